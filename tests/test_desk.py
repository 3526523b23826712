"""The desk in a browser: every view and state, strangers' words as words, who may ask, and that all
can use it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bench.desk import draw_pictures
from tests.support import LIBRARY, ROOT, Site
from tests.support.desk import browsing, desk_served, violations
from tests.support.pdf import make_pdf
from tests.test_web import hits

slow = pytest.mark.slow
MOST_BYTES = 150_000
DESK = ROOT / "extras" / "desk"
LAKE = str(LIBRARY / "lake-orvane.html")
OVERRIDE = "\u202e"
"""Turns what follows from right to left."""
SHIFTED = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({ type: "layout-shift", buffered: true });
"""
MOST_SHIFT = 0.1
"""What web.dev calls good of the cumulative layout shift."""
PATIENCE = 110_000
"""Milliseconds for an answer: two cores shared with other tests."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk")


@pytest.fixture(scope="module")
def url(cache: Path) -> Iterator[str]:
    with desk_served(cache, "networks=loopback", "robots=0", "seconds=100") as address:
        yield address


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.add_init_script(SHIFTED)
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    opened.goto(url)
    yield opened
    context.close()


def ask(page: Any, view: str, question: str, *sources: str) -> Any:
    """Ask in one view; return what its region shows in the end."""
    page.evaluate("view => { location.hash = view }", view)
    section = page.locator(f"section#{view}")
    section.locator("textarea").first.fill(question)
    section.locator("textarea").nth(1).fill("\n".join(sources))
    section.locator("form.ask button.main").click()
    section.locator(".region[aria-busy]").wait_for(state="detached")
    return section.locator(".region")


@slow
def test_a_message_that_is_no_object_is_refused(url: str) -> None:
    bodies = (
        b"null",
        b"[]",
        b"{",
        b"[" * 20_000,
        b"\xff",
        b'{"method": "tools/call", "params": 7}',
    )
    origin = url.rstrip("/").rsplit("/", 1)[0]
    with httpx2.Client(timeout=60) as http:
        for body in bodies:
            said = http.post(f"{url}message", content=body, headers={"Origin": origin})
            assert 400 <= said.status_code < 500, body


@slow
def test_the_page_is_small_enough_to_be_sent(url: str) -> None:
    with httpx2.Client(timeout=30) as http:
        assert 10_000 < len(http.get(url).content) <= MOST_BYTES


def test_every_language_says_everything_that_english_says() -> None:
    texts = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (DESK / "texts").glob("*.json")
    }
    holes = {
        code: {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in said.items()}
        for code, said in texts.items()
    }
    assert {"en", "de", "zh"} <= set(texts)
    assert all(said == holes["en"] for said in holes.values())
    used = "".join(path.read_text(encoding="utf-8") for path in DESK.glob("*.js"))
    assert [key for key in re.findall(r'\bt\("([\w.]+)"', used) if key not in texts["en"]] == []


@slow
def test_only_who_has_the_address_and_comes_from_our_own_page_gets_in(url: str) -> None:
    origin, token = url.rstrip("/").rsplit("/", 1)
    body = {"method": "resources/read", "params": {"uri": "winnow://status"}}
    ours = {"Origin": origin}
    with httpx2.Client(timeout=30) as http:
        assert http.get(url).status_code == 200
        assert "default-src 'none'" in http.get(url).headers["content-security-policy"]
        assert http.get(f"{origin}/").status_code == 403
        assert http.get(f"{origin}/{token[:-1]}x/").status_code == 403
        assert http.get(url, headers={"Host": "attacker.example"}).status_code == 403
        assert http.get(url, headers={"Origin": "http://attacker.example"}).status_code == 403
        assert http.post(f"{url}message", json=body, headers=ours).status_code == 200
        assert http.post(f"{url}message", json=body).status_code == 403
        assert http.post(f"{url}message", json=body, headers={"Origin": "null"}).status_code == 403
        plain = {**ours, "Content-Type": "text/plain"}
        assert (
            http.post(f"{url}message", content=json.dumps(body), headers=plain).status_code == 403
        )


@slow
def test_a_cited_file_opens_in_the_browser_without_its_scripts(tmp_path: Path) -> None:
    library = tmp_path / "my notes"
    library.mkdir()
    (library / "50% #1.pdf").write_bytes(make_pdf([[("Valves.", 12)]], title="valves"))
    (library / "page.html").write_text("<p>Für Ann<script>alert(1)</script>", encoding="utf-8")
    (library / ".env").write_text("KEY=1", encoding="utf-8")
    (tmp_path / "outside.txt").write_text("secret", encoding="utf-8")

    def opened(path: Path) -> httpx2.Response:
        return http.get(f"{url}file", params={"url": path.as_uri()})

    with (
        desk_served(tmp_path / "cache", library=library) as url,
        httpx2.Client(timeout=30) as http,
    ):
        pdf = opened(library / "50% #1.pdf")
        assert (pdf.headers["content-type"], pdf.content[:4]) == ("application/pdf", b"%PDF")
        page = opened(library / "page.html")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "Für Ann" in page.text
        assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        for path in (library / ".env", tmp_path / "outside.txt", library / "gone.txt", library):
            assert opened(path).status_code == 404, path
        assert http.get(f"{url}file").status_code == 404
        origin = url.rstrip("/").rsplit("/", 1)[0]
        assert http.get(f"{origin}/file", params={"url": library.as_uri()}).status_code == 403


@slow
def test_a_card_opens_its_file(page: Any) -> None:
    cards = ask(page, "ask", "How deep is Lake Orvane?", LAKE).locator(".card")
    with page.context.expect_page() as opening:
        cards.get_by_text("Open the page at these words").first.click()
    opening.value.wait_for_load_state()
    assert "Lake Orvane" in opening.value.inner_text("body")


@slow
def test_a_question_is_asked_and_its_evidence_picked_by_keyboard_alone(page: Any) -> None:
    page.keyboard.press("Tab")  # to the skip link, and over the top to the question
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("How deep is Lake Orvane?")
    page.keyboard.press("Enter")
    page.locator(".running").wait_for()
    page.locator("#ask .card").first.wait_for()
    assert page.locator("#ask .verdict strong").inner_text() in {"Answered", "Unsure"}
    assert page.locator("#ask .card .unit").count() > 0
    page.locator("#ask .card input").first.focus()
    page.keyboard.press("Space")
    page.locator(".picks button", has_text="Copy").focus()
    page.keyboard.press("Enter")
    page.locator("[role=status]", has_text="Copied").wait_for(state="attached")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert page.locator("#ask .card .words").first.inner_text()[:20] in copied
    assert violations(page) == []


@slow
def test_a_card_says_what_failed_what_is_missing_and_that_nothing_answers(
    page: Any,
) -> None:
    gone = str(LIBRARY / "gone.html")
    failed = ask(page, "ask", "How deep is Lake Orvane?", gone)
    assert "gone.html" in failed.locator(".failed").inner_text()
    partial = ask(page, "ask", "How deep is Lake Orvane?", LAKE, gone)
    assert "gone.html" in partial.locator(".partial").inner_text()
    assert partial.locator(".card").count() > 0
    nothing = ask(page, "ask", "zxqv wlkjh mnbvf?", LAKE)
    assert nothing.locator(".verdict.none").is_visible()
    assert violations(page) == []


@slow
def test_cancelling_stops_the_work(page: Any, site: Site) -> None:
    late = [site.put(f"/slow{number}", "<p>late</p>") for number in range(20)]
    page.locator("#ask textarea").first.fill("late?")
    page.locator("#ask textarea").nth(1).fill("\n".join(late))
    page.locator("#ask form.ask button.main").click()
    assert site.held.wait(60)
    page.locator("#ask .running button").click()
    page.locator("#ask .cancelled button").wait_for()
    # One site is asked for some pages at once: the others would be asked for now.
    site.hold.set()
    assert ask(page, "ask", "How deep is Lake Orvane?", LAKE).locator(".card").count() > 0
    assert len(site.asked) < len(late)


@slow
def test_a_page_is_read_with_what_was_kept_lit_and_every_score_at_hand(page: Any) -> None:
    region = ask(page, "read", "How deep is Lake Orvane?", LAKE)
    assert region.locator(".block.kept").count() > 0
    assert region.locator(".block.pruned").count() > 0
    region.locator(".block.kept").first.hover()
    assert re.search(r"kept · score \d\.\d\d by", region.locator(".shown").inner_text())
    # The tree beside it opens branch by branch and leads to the block.
    branch = region.locator(
        ".outline details:not([open])", has=page.locator("> summary.kept")
    ).first.element_handle()
    branch.query_selector("summary").click()
    leaf = branch.wait_for_selector("button.kept")
    leaf.click()
    assert leaf.query_selector("bdi").inner_text() in page.evaluate(
        "document.activeElement.textContent"
    )
    assert violations(page) == []


@slow
def test_research_is_asked_further_and_exported(page: Any) -> None:
    region = ask(page, "ask", "What does the ferry cost for a bicycle?")
    with page.expect_download() as download:
        region.locator("select").first.select_option("bibtex")
        region.get_by_role("button", name="Save").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("@misc{")
    region.locator(".further input").fill("How deep is Lake Orvane?")
    region.locator(".further button").click()
    region.locator(".card", has_text="213").first.wait_for()
    assert violations(page) == []


@slow
def test_research_is_paused_and_gone_on_with(browser: Any, site: Site, tmp_path: Path) -> None:
    page_of = site.put("/slow", "<h1>Skell</h1><p>The harbour of Skell is 14 metres deep.</p>")
    site.put("/search", hits((page_of, "The harbour of Skell.")), kind="application/json")
    searxng = (
        f"searxng={site.url('')}",
        "search=searxng",
        "networks=loopback",
        "robots=0",
        "seconds=100",
    )
    with desk_served(tmp_path / "cache", *searxng) as url:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        page.locator("#ask textarea").first.fill("How deep is the harbour of Skell?")
        page.keyboard.press("Enter")
        assert site.held.wait(100)
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("heading", name="Paused").wait_for()
        site.hold.set()
        page.get_by_role("button", name="Continue", exact=True).click()
        page.locator("#ask .card", has_text="14 metres").wait_for()
        page.close()


@slow
def test_the_documents_have_a_picture_of_every_view(browser: Any, tmp_path: Path) -> None:
    draw_pictures(tmp_path, browser)
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn == {path.name for path in (ROOT / "docs").glob("desk-*.png")}
    assert len(drawn) == 2


@slow
def test_words_of_pages_are_words_wherever_they_stand(page: Any, site: Site) -> None:
    attack = "<img src=x onerror=window.taken=1><script>window.taken=1</script>"
    word = "".join(f"&#{ord(char)};" for char in attack)
    evil = (
        f"<title>{word} {OVERRIDE}gnp.exe</title><meta name=author content='{word}'>"
        f"<h1>{word} {OVERRIDE} harbour</h1><p>The harbour of Skell is {word} 14 metres deep "
        f"{OVERRIDE}"
        f" and {'wide' * 5000}.</p>"
        f"<p>The harbour {word} has</p><table><tr><th>{word}<th>depth<tr><td>harbour<td>14 "
        f"{word}</table>"
        "<p><a href='javascript:window.taken=1'>harbour depth</a></p>"
    )
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url))
    source = site.put("/harbour%3Cimg%20src=x%20onerror=taken=1%3E", evil)
    for view in ("ask", "read", "tree"):
        region = ask(page, view, f"How deep is the harbour of Skell? {attack}", source)
        assert region.locator("img, script, a[href^=javascript]").count() == 0
        region.get_by_text(attack).first.wait_for(state="attached")
    assert page.evaluate("window.taken") is None
    start = page.url.split("#")[0]
    assert [url for url in elsewhere if not url.startswith((start, "data:", "blob:"))] == []


@slow
def test_it_fits_every_screen_and_says_the_same_in_other_languages(browser: Any, url: str) -> None:
    for locale, scheme, width, title in (
        ("de-AT", "dark", 390, "Fragen"),
        ("zh-CN", "light", 640, "提问"),  # 1,280 px at 200 %
        ("ar", "dark", 2560, "Ask"),
    ):
        context = browser.new_context(
            locale=locale,
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        assert page.title().startswith(title)
        if locale == "ar":
            page.evaluate("document.documentElement.dir = 'rtl'")
        ask(page, "ask", "How deep is Lake Orvane?", LAKE).locator(".card").first.wait_for()
        ask(page, "read", "", LAKE)
        for view in ("ask", "read", "tree"):
            page.evaluate("view => { location.hash = view }", view)
            page.locator(f"#{view} h2, #{view} form").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
                locale,
                view,
            )
            assert violations(page) == [], (locale, view)
        context.close()


@slow
def test_a_page_of_thousands_of_blocks_is_drawn_and_the_layout_does_not_shift(
    page: Any, site: Site
) -> None:
    long = "".join(f"<p>Sentence {n} describes the harbour number {n}.</p>" for n in range(3000))
    region = ask(page, "read", "harbour number 2711", site.put("/long", f"<h1>Harbours</h1>{long}"))
    assert region.locator(".block").count() > 2900
    assert page.evaluate("window.shifted") < MOST_SHIFT
