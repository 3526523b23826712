"""The desk in Chromium: bytes of the page, first paint, and frames while a large answer
is scrolled.

`python -m bench.desk`; `--check` exits 1 when a bar falls short; `--pictures FOLDER`
draws those of the documents. An evidence of 40 pages with 10 passages each is sent as a client would
send it. On a busy machine the clock says little of frames, so the processor time of the
page's main thread for one is the bar, at 50 a second. Needs Playwright and Chromium.
Not for: whether anything is right (`tests/test_desk.py`)."""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from extras.desk.page import desk_html
from tests.support import LIBRARY
from tests.support.desk import HOST_PAGE, browsing, desk_served
from tools.common.ending import RESULT
from tools.common.view import VIEW_KEY

BYTES_BAR: Final = 150_000
PAINT_BAR: Final = 1_000.0
"""Milliseconds from asking for the page to its first words."""
FRAME_BAR: Final = 20.0
"""Milliseconds of the main thread for a frame: 50 frames a second."""
PAGES, PASSAGES = 40, 10
WORDS: Final = (
    "The gauge at Osterhythe showed two metres and ten on the night of the flood, and "
    "fell within a week. "
)
SCROLL: Final = """() => new Promise(done => {
  const began = performance.now(); let frames = 0;
  const room = document.scrollingElement.scrollHeight;
  const turn = () => {
    frames += 1; window.scrollBy(0, 60);
    if (frames < 240) requestAnimationFrame(turn);
    else done({ frames, seconds: (performance.now() - began) / 1000, room });
  };
  requestAnimationFrame(turn);
})"""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="exit 1 when a bar falls short"
    )
    parser.add_argument(
        "--pictures",
        metavar="FOLDER",
        help="write a picture of each view of the sample library",
    )
    args = parser.parse_args()
    if args.pictures:
        with browsing() as browser:
            draw_pictures(Path(args.pictures), browser)
        return
    size = len(desk_html().encode())
    print(f"page: {size:,} bytes")
    failed = [f"the page has {size} bytes"] * (size > BYTES_BAR)
    with browsing() as browser:
        failed += _paint(browser)
        failed += _frames(browser, _evidence())
    for line in failed:
        print(f"BAR MISSED: {line}")
    sys.exit(1 if failed and args.check else 0)


def draw_pictures(folder: Path, browser: Any) -> None:
    """Ask the sample library in every view, and save what is seen."""
    asked = {
        "ask": ("How deep is Lake Orvane, and when was the lighthouse lit again?", ""),
        "read": ("How deep is Lake Orvane?", "lake-orvane.html"),
    }
    with tempfile.TemporaryDirectory(prefix="winnow-") as place:
        # A copy, since pictures show where it lies.
        library = Path(shutil.copytree(LIBRARY, Path(place) / "library"))
        # Longer than in use, so that what else this machine does is not in the picture.
        with desk_served(Path(place) / "cache", "seconds=100", library=library) as url:
            _draw(folder, browser, url, asked)


def _draw(
    folder: Path, browser: Any, url: str, asked: Mapping[str, tuple[str, str]]
) -> None:
    page = browser.new_page(viewport={"width": 1180, "height": 760})
    for view, wanted in asked.items():
        page.goto(f"{url}#{view}")
        areas = page.locator(f"#{view} textarea")
        areas.first.fill(wanted[0])
        areas.nth(1).fill(wanted[1])
        page.locator(f"#{view} form.ask button.main").click()
        page.locator(f"#{view} .answer").wait_for(timeout=120_000)
        page.locator(f"#{view} h2").first.wait_for()
        page.screenshot(path=folder / f"desk-{view}.png")
    page.close()


def _paint(browser: Any) -> list[str]:
    """Return what is missed: the first paint of the desk, from a server that answers at
    once."""
    paints = []
    for _ in range(3):
        page = browser.new_page()
        page.route(
            "**/*",
            lambda route: route.fulfill(body=desk_html(), content_type="text/html"),
        )
        page.goto("http://127.0.0.1:9/desk/")
        page.locator("textarea").first.wait_for()
        paints.append(
            page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
        )
        page.close()
    paint = statistics.median(paints)
    print(f"first paint: {paint:.0f} ms (median of 3)")
    return [f"the first paint came after {paint:.0f} ms"] * (paint > PAINT_BAR)


def _frames(browser: Any, result: dict[str, Any]) -> list[str]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_content(HOST_PAGE)
    page.evaluate("html => begin(html, 'raptor_query')", desk_html())
    page.wait_for_function("log.some(m => m.method === 'ui/notifications/initialized')")
    page.evaluate("result => { notify('ui/notifications/tool-input', { arguments: { question: 'q' "
    "} }); "
                  "notify('ui/notifications/tool-result', result) }", result)  # fmt: skip
    app = page.frames[1]
    app.locator(".card").first.wait_for()
    session = page.context.new_cdp_session(app)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _busy(session)
    reported = app.evaluate(SCROLL)
    cost = 1000 * (_busy(session) - before) / reported["frames"]
    page.close()
    rate = reported["frames"] / reported["seconds"]
    clock = f"{rate:.0f} frames a second by the clock"
    print(
        f"evidence: {reported['room']:,} px high, {clock}, {cost:.1f} ms of the main thread each"
    )
    return [f"a frame of the evidence takes {cost:.1f} ms"] * (cost > FRAME_BAR)


def _busy(session: Any) -> float:
    """Return the seconds of the processor that the main thread has spent in tasks."""
    metrics = {
        one["name"]: one["value"]
        for one in session.send("Performance.getMetrics")["metrics"]
    }
    return float(metrics["TaskDuration"])


def _evidence() -> dict[str, Any]:
    passages = [
        {
            "label": f"{page + 1}{chr(97 + number)}",
            "page": page,
            "text": WORDS * 3,
            "headings": ["The course of the flood", f"Day {number}"],
            "citation": f"https://example.org/{page}#:~:text=gauge",
            "also": [],
            "score": 0.8,
            "by": "read",
            "trust": "visible",
            "injection": False,
            "summary": False,
            "sources": [],
            "start": number * 100,
            "end": number * 100 + 90,
            "before": WORDS,
            "after": WORDS,
            "units": [[WORDS.strip(), 0.8]] * 3,
        }
        for page in range(PAGES)
        for number in range(PASSAGES)
    ]
    pages = [
        {
            "url": f"https://example.org/{page}",
            "title": f"Report {page}",
            "author": "",
            "published": "2024-05-01",
            "handle": "",
            "strip": [cell / 60 for cell in range(60)],
            "kept": [[number / 12, number / 12 + 0.05] for number in range(PASSAGES)],
        }
        for page in range(PAGES)
    ]
    return _answer(
        {
            "kind": "evidence",
            "question": "q",
            "max_tokens": 0,
            "passages": passages,
            "pages": pages,
        }
    )


def _answer(view: dict[str, Any]) -> dict[str, Any]:
    data = {
        "verdict": "answered",
        "reason": "",
        "tokens": 9_000,
    }
    return {
        "content": [{"type": "text", "text": "text"}],
        "_meta": {RESULT: data, VIEW_KEY: view},
    }


if __name__ == "__main__":
    main()
