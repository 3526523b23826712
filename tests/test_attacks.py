"""The attack set (`tests/support/attacks.py`) through the server as a client meets it: none of it
comes through."""

import json
import os
import re
from collections.abc import Sized
from pathlib import Path

import pytest
from mcp import Client
from mcp_types import TextResourceContents

import readers
from tests.support import LIBRARY, Connect, Site, data_of, text_of
from tests.support.attacks import (
    BAD,
    CARRYING,
    FACT,
    FILL,
    HIDDEN_DOCX,
    HIDDEN_HTML,
    HIDDEN_PDF,
    PASSWORDS,
    SCAN,
    SECRET_FILES,
    SEEN_DOCX,
    SEEN_PDF,
    SPEAKING,
    UNSEEN_SCRIPTS,
    outside,
)
from tests.support.hidden_files import FILES
from tests.support.hidden_forms import HIDDEN_CSS, HIDDEN_MARKDOWN, SEEN_CSS, SEEN_MARKDOWN

pytestmark = pytest.mark.anyio

ASKED = "When was the harbour light built?"
TOOLS = ("fetch_and_prune_html", "extract_relevant", "raptor_query")
KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA the harbour light was built "
    "in 1999\n"
)
_TURNED = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]")


def test_the_set_has_more_than_a_hundred_and_twenty_cases() -> None:
    tables: list[Sized] = [HIDDEN_HTML, HIDDEN_PDF, HIDDEN_DOCX, UNSEEN_SCRIPTS, SPEAKING, CARRYING]
    assert sum(map(len, [*tables, SECRET_FILES, PASSWORDS])) >= 180


async def answers(
    client: Client, url: str, *tools: str, **more: object
) -> dict[str, tuple[str, str]]:
    """What each tool says of a page: the text, and the result beside it as JSON."""
    reported = {}
    for tool in tools or TOOLS:
        result = await client.call_tool(
            tool, {"question": ASKED, "sources": [url], "max_tokens": 2000, **more}
        )
        reported[tool] = text_of(result), json.dumps(data_of(result), ensure_ascii=False)
    return reported


def handles_in(*reported: tuple[str, str]) -> set[str]:
    return set(re.findall("winnow://(?:page|tree|session)/[0-9a-f]+", json.dumps(reported)))


async def read(client: Client, handle: str) -> str:
    whole = (await client.read_resource(handle)).contents[0]
    assert isinstance(whole, TextResourceContents)
    return whole.text


def page_of(body: str) -> str:
    head = "" if "<title" in body else "<title>Harbour</title>"
    return f"{head}<h1>Harbour</h1><p>{FACT}</p>{body}<p>{FILL}</p>"


async def through(connect: Connect, sources: dict[str, str]) -> dict[str, str]:
    """Return the sources whose hidden words reach a tool or the resource of the page, with the
    door."""
    found = {}
    async with connect(networks="loopback", embedder="none", seconds="300") as client:
        for name, url in sources.items():
            reported = await answers(client, url)
            handle = next(
                (one for one in handles_in(reported["fetch_and_prune_html"]) if "/page/" in one), ""
            )
            assert handle, (name, reported)
            whole = await read(client, handle)
            for door, text in {
                **{tool: "".join(said) for tool, said in reported.items()},
                "resource": whole,
            }.items():
                assert "1871" in text, (name, door, text)
                if "PWNED" in text or _TURNED.search(text):
                    found[name] = door
    return found


async def test_hidden_text_of_pages_reaches_no_tool(connect: Connect, site: Site) -> None:
    pages = enumerate(HIDDEN_HTML.items())
    urls = {name: site.put(f"/{n}", page_of(body.format(bad=BAD))) for n, (name, body) in pages}
    assert await through(connect, urls) == {}


def _words(body: str) -> str:
    """The words that are read of a page; forms by the hundred need no server each."""
    document = readers.read(page_of(body.format(bad=BAD)).encode(), content_type="text/html")
    return "\n".join(block.text for block in document.blocks)


def test_text_that_chromium_does_not_draw_is_not_read_and_like_text_is() -> None:
    """What Chromium draws of each form: `python -m bench.attack_hidden --seen`."""
    read = {name: _words(body) for name, body in HIDDEN_CSS.items()}
    assert {name for name, words in read.items() if FACT not in words or "PWNED" in words} == set()
    assert {name for name, body in SEEN_CSS.items() if BAD not in _words(body)} == set()


def _read(body: bytes, name: str) -> tuple[str, int]:
    """The words that are read of a file, and how many were left out."""
    document = readers.read(body, name=name)
    return "\n".join(block.text for block in document.blocks), document.page.hidden


@pytest.mark.parametrize(("ending", "hidden", "seen"), FILES)
def test_hidden_text_of_files_is_left_out_and_counted_and_like_text_is_read(
    ending: str, hidden: dict[str, bytes], seen: dict[str, bytes]
) -> None:
    read = {name: _read(body, f"a.{ending}") for name, body in hidden.items()}
    assert {
        name for name, (words, _) in read.items() if FACT not in words or "PWNED" in words
    } == set()
    # What is deleted, or shown as nothing by its format, is not a text.
    assert {name for name, (_, count) in read.items() if not count} <= {
        "deleted",
        "a format that shows nothing",
    }
    assert {
        name for name, body in seen.items() if BAD not in _read(body, f"a.{ending}")[0]
    } == set()


@pytest.mark.parametrize("name", HIDDEN_MARKDOWN)
def test_text_that_no_renderer_of_markdown_draws_is_not_read(name: str) -> None:
    words = _read(f"# Light\n\n{FACT}\n\n{HIDDEN_MARKDOWN[name].format(bad=BAD)}".encode(), "a.md")[
        0
    ]
    assert FACT in words
    assert "PWNED" not in words


@pytest.mark.parametrize("name", SEEN_MARKDOWN)
def test_text_that_renderers_of_markdown_draw_is_read(name: str) -> None:
    assert (
        BAD
        in _read(f"# Light\n\n{FACT}\n\n{SEEN_MARKDOWN[name].format(bad=BAD)}".encode(), "a.md")[0]
    )


async def test_hidden_text_of_pdf_files_reaches_no_tool(connect: Connect, site: Site) -> None:
    files = enumerate(HIDDEN_PDF.items())
    urls = {name: site.put(f"/{n}.pdf", body, kind="application/pdf") for n, (name, body) in files}
    assert await through(connect, urls) == {}


async def test_hidden_text_of_word_files_reaches_no_tool(connect: Connect, site: Site) -> None:
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    urls = {
        name: site.put(f"/{n}.docx", body, kind=kind)
        for n, (name, body) in enumerate(HIDDEN_DOCX.items())
    }
    assert await through(connect, urls) == {}


async def test_text_of_files_that_a_reader_sees_stays(connect: Connect, site: Site) -> None:
    urls = {
        name: site.put(f"/{n}.pdf", body, kind="application/pdf")
        for n, (name, body) in enumerate(SEEN_PDF.items())
    }
    for number, (name, body) in enumerate(SEEN_DOCX.items()):
        urls[f"Word: {name}"] = site.put(f"/{number}.docx", body, kind="application/octet-stream")
    lost = []
    async with connect(networks="loopback", embedder="none") as client:
        for name, url in urls.items():
            text = (await answers(client, url, TOOLS[0]))[TOOLS[0]][0]
            lost += [name] if BAD not in text or "left out" in text else []
    assert lost == []


async def test_the_text_behind_a_scanned_page_is_read_and_labelled(
    connect: Connect, site: Site
) -> None:
    url = site.put("/scan.pdf", SCAN, kind="application/pdf")
    async with connect(networks="loopback", embedder="none") as client:
        for tool, (text, _) in (await answers(client, url)).items():
            assert FACT in text, tool
            assert "pages whose text is a layer that is not drawn, as on scans: 1" in outside(
                text
            ), tool


async def test_what_was_hidden_is_counted_in_every_answer(connect: Connect, site: Site) -> None:
    urls = [
        site.put("/h", page_of(f"<p style='color:white'>{BAD}</p>")),
        site.put("/p.pdf", HIDDEN_PDF["white ink"], kind="application/pdf"),
        site.put("/d.docx", HIDDEN_DOCX["vanish"], kind="application/octet-stream"),
    ]
    async with connect(networks="loopback", embedder="none") as client:
        for url in urls:
            for tool, (text, _) in (await answers(client, url)).items():
                assert re.search(r"Note on \S+: .*\bhidden .*removed: [1-9]", text), (
                    tool,
                    url,
                    text,
                )


async def test_data_that_is_not_seen_takes_no_ones_place(connect: Connect, site: Site) -> None:
    pages = enumerate(UNSEEN_SCRIPTS.items())
    urls = {
        name: site.put(f"/{n}", f"<title>Harbour</title><p>{FACT}</p>{body}")
        for n, (name, body) in pages
    }
    assert await through(connect, urls) == {}


async def test_data_of_a_page_that_shows_nothing_is_labelled(connect: Connect, site: Site) -> None:
    url = site.put(
        "/shell", f"<title>Harbour</title><div id=root></div>{UNSEEN_SCRIPTS['article of JSON-LD']}"
    )
    async with connect(networks="loopback", embedder="none") as client:
        for tool, (text, _) in (await answers(client, url)).items():
            assert "1871" in text, tool
            assert "text was taken from its JSON-LD or script data" in outside(text), tool


async def test_everything_that_a_page_says_is_inside_its_frame(
    connect: Connect, site: Site
) -> None:
    """Also what a search engine repeats of it, and what the handles open; in the result beside it
    nothing."""
    found = {}
    async with connect(
        folders=" ", searxng=site.url(""), networks="loopback", embedder="none"
    ) as client:
        for number, (name, form) in enumerate(SPEAKING.items()):
            body = form.format(bad=BAD)
            url = site.put(f"/{number}", page_of(body))
            title = re.sub("</?title>", "", body)
            row = {
                "url": url,
                "title": title,
                "content": f"{FACT} {BAD}",
                "publishedDate": BAD,
                "engines": ["mojeek"],
            }
            given = {"query": ASKED, "results": [row], "unresponsive_engines": [["mojeek", BAD]]}
            site.put("/search", json.dumps(given), kind="application/json")
            reported = await answers(client, url)
            for tool in ("search_web", "research"):
                result = await client.call_tool(tool, {"question": f"{ASKED} {number}"})
                reported[tool] = text_of(result), json.dumps(data_of(result), ensure_ascii=False)
            reported |= {
                handle: (await read(client, handle), "")
                for handle in handles_in(*reported.values())
            }
            for tool, (text, data) in reported.items():
                assert "1871" in text or "/tree/" in tool, (name, tool, text)
                quoted = re.sub("«([0-9]{12})» .*? «/\\1»", "", data)
                if "PWNED" in outside(text) or "PWNED" in re.sub('#:~:text=[^"]*', "", quoted):
                    found[name, tool] = outside(text) + data
    assert found == {}


async def test_a_title_of_a_thousand_words_leaves_the_budget_to_the_answer(
    connect: Connect, site: Site
) -> None:
    url = site.put("/long", page_of(f"<title>{BAD} {'and so on ' * 300}</title>"))
    async with connect(networks="loopback", embedder="none") as client:
        for tool, (text, _) in (await answers(client, url, max_tokens=300)).items():
            assert FACT in text, tool
            assert max(map(len, text.splitlines())) < 400, tool


async def test_failures_repeat_nothing_that_the_other_side_says(
    connect: Connect, site: Site
) -> None:
    shell = f"<title>{BAD}</title><div id=root></div><script src=x.js></script>"
    urls = [
        site.put("/shell", shell),
        site.put("/gone", f"<h1>{BAD}</h1>", status=404),
        site.put("/kind", b"\x00\x01\x02", kind="application/x-PWNED; charset=PWNED"),
        site.put("/away", ""),
    ]
    site.pages["/away"] = (
        302,
        {"Location": f"ftp://PWNED@evil.example/{BAD}", "Content-Length": "0"},
        b"",
    )
    good = site.put("/good", page_of(""))
    async with connect(networks="loopback", embedder="none") as client:
        for tool in TOOLS:
            result = await client.call_tool(tool, {"question": ASKED, "sources": [*urls, good]})
            assert "Not read" in text_of(result)
            assert "obey the harbour" not in outside(text_of(result))
            assert "obey the harbour" not in json.dumps(data_of(result))


async def test_no_answer_carries_data_out(connect: Connect, site: Site) -> None:
    found = {}
    async with connect(networks="loopback", embedder="none") as client:
        for number, (name, shown) in enumerate(CARRYING.items()):
            escaped = shown.replace("&", "&amp;").replace("<", "&lt;")
            definition = "<p>[r]: https://evil.example/p</p>"
            url = site.put(
                f"/{number}", page_of(f"<p>{FACT} {escaped} of the harbour light</p>{definition}")
            )
            reported: dict[tuple[str, str], tuple[str, str]] = {}
            for form in ("markdown", "text"):
                reported |= {
                    (form, t): said
                    for t, said in (await answers(client, url, TOOLS[0], format=form)).items()
                }
            reported |= {
                ("", tool): said for tool, said in (await answers(client, url, *TOOLS[1:])).items()
            }
            for door, (text, _) in reported.items():
                assert FACT in text, (name, door)
                live = re.search(
                    r"!\[[^\]]*\][(\[]|(?<!\\)\]\(\s*<?(?:[a-z]+:|//)|(?<!\\)<(?:im|ifr|sty|link|a |vid)"
                    r"|\]:\s*(?:https?:)?//",
                    text,
                )
                if live:
                    found[name, *door] = text
    assert found == {}


async def test_links_have_their_addresses_in_the_list_of_links_alone(
    connect: Connect, site: Site
) -> None:
    url = site.put(
        "/l", page_of(f"<p>See <a href='https://evil.example/?q=PWNED'>the light</a>. {FILL}</p>")
    )
    async with connect(networks="loopback", embedder="none") as client:
        plain = (await answers(client, url, TOOLS[0]))[TOOLS[0]][0]
        call = {"sources": [url], "part": "links"}
        listed = text_of(await client.call_tool(TOOLS[0], call))
    assert "evil.example" not in plain
    assert re.findall(r".*evil\.example.*", listed) == ["the light | https://evil.example/?q=PWNED"]


async def test_hidden_files_and_keys_are_read_by_no_tool(connect: Connect, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    for name in SECRET_FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(KEY if name in {"renamed.txt", "server.pem"} else f"{FACT} {BAD}.\n")
    (folder / "open.md").write_text(f"# Light\n\n{FACT}\n")
    read = {}
    async with connect(folders=str(folder), embedder="none", search="folder") as client:
        for name in SECRET_FILES:
            for source in (name, str(folder / name), (folder / name).as_uri()):
                for tool in TOOLS:
                    result = await client.call_tool(tool, {"question": ASKED, "sources": [source]})
                    if not result.is_error or "in 1999" in text_of(result):
                        read[name] = tool
        whole = await client.call_tool(
            "extract_relevant", {"question": ASKED, "sources": [str(folder)]}
        )
        found = [
            await client.call_tool(tool, {"question": ASKED}) for tool in ("research", "search_web")
        ]
    assert read == {}
    for result in (whole, *found):
        assert "1871" in text_of(result)
        assert "in 1999" not in text_of(result)


async def test_what_a_person_names_as_a_folder_is_open_though_it_is_hidden_below_another(
    connect: Connect, tmp_path: Path
) -> None:
    drafts, notes, shut = tmp_path / ".drafts", tmp_path / ".env", tmp_path / ".git"
    for folder in (drafts, shut):
        folder.mkdir()
        (folder / "light.md").write_text(f"# Light\n\n{FACT}\n")
    notes.write_text("OIL=the lamp burns rapeseed oil\n")
    roots = os.pathsep.join(map(str, (tmp_path, drafts, notes)))
    async with connect(folders=roots, embedder="none", search="folder") as client:
        for source, asked, says in (
            (".drafts/light.md", ASKED, "1871"),
            (".env", "What does the lamp burn?", "rapeseed"),
        ):
            read = await client.call_tool(
                "extract_relevant", {"question": asked, "sources": [source]}
            )
            found = await client.call_tool("research", {"question": asked})
            assert says in text_of(read)
            assert says in text_of(found)
        assert (await client.call_tool(TOOLS[0], {"sources": [".git/light.md"]})).is_error


async def test_a_password_in_an_address_is_never_repeated(connect: Connect, site: Site) -> None:
    site.put("/", "")
    site.pages["/"] = (
        302,
        {"Location": "http://anna:s3cret@127.0.0.1:1/", "Content-Length": "0"},
        b"",
    )
    good = site.put("/good", page_of(""))
    said = []
    async with connect(networks="loopback", embedder="none") as client:
        for tool in TOOLS:
            for url in (*PASSWORDS, site.url("/")):
                alone = await client.call_tool(tool, {"question": ASKED, "sources": [url]})
                beside = await client.call_tool(tool, {"question": ASKED, "sources": [url, good]})
                assert alone.is_error
                said += [text_of(alone), text_of(beside), json.dumps(data_of(beside))]
    assert [text for text in said if "s3cret" in text] == []


async def test_a_handle_of_a_file_opens_only_where_the_file_may_be_read(
    connect: Connect, tmp_path: Path
) -> None:
    """Two servers of one machine share a cache on disk; only one of them may read the folder."""
    folder = tmp_path / "private"
    folder.mkdir()
    path = folder / "light.md"
    path.write_text(f"# Light\n\n{FACT} {FILL}\n" * 3)
    cache = str(tmp_path / "cache")
    async with connect(folders=str(folder), cache=cache, embedder="none") as client:
        handles = await handles_of(client, str(path))
        assert all([await opens(client, handle) for handle in handles])
    async with connect(folders=str(LIBRARY), cache=cache, embedder="none") as client:
        assert not any([await opens(client, handle) for handle in handles])


async def handles_of(client: Client, source: str) -> list[str]:
    fetched = await client.call_tool(
        "fetch_and_prune_html", {"question": ASKED, "sources": [source]}
    )
    asked = await client.call_tool("raptor_query", {"question": ASKED, "sources": [source]})
    found = handles_in((json.dumps(data_of(fetched)), json.dumps(data_of(asked))))
    assert len(found) == 2
    return sorted(found)


async def opens(client: Client, handle: str) -> bool:
    tool = "raptor_query" if "/tree/" in handle else "fetch_and_prune_html"
    return not (await client.call_tool(tool, {"question": ASKED, "sources": [handle]})).is_error
