"""Opens citations of real pages in a real Chromium and reads which words it highlights.

    python -m bench.citations            some 360 citations of ../shared/data/pages; the table and what went wrong
    python -m bench.citations --check    some 70; exit code 1 where fewer than 97 % highlight the right words

Every page is served on loopback without its scripts, with highlights painted in one
colour; a picture of the window shows which of the words in it carry that colour. Right
is a highlight of the cited words and nothing else; a table's row may begin at its first
distinctive cell. Every third citation is a run of `RUN` units, as evidence joins them:
right is what begins in the first and ends in the last. What Chromium itself says it
renders (`innerText`) is the reference for words that nothing could highlight, such as
an image's description: they may be missing. Needs the package playwright and an
installed Chromium. Not for: which sentences are chosen."""

import argparse
import base64
import gzip
import importlib
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

import anyio

from bench.evidence import DATA
from bench.loopback import Answer, serving
from errors import WinnowError
from pipeline.document.cite import cite
from pipeline.document.units import tag_sentences
from pipeline.fetch.render import find_browser
from readers.html.document import read_document
from readers.page import Document, Page, Sentence

SHARE: Final = 0.97
"""Of citations must highlight the right words."""
PAGES: Final = 40
A_PAGE: Final = 6
RUNS: Final = 3
"""On each page."""
RUN: Final = 4
LOOKS: Final = (60, 300, 900)
"""Milliseconds before each look: Chromium searches for the words after the page is
loaded."""
WIDTH, HEIGHT = 1200, 2000
_WORD: Final = re.compile(r"[^\W_]+")
_STYLE: Final = (
    "<style>::target-text{background-color:#f0f!important;color:#f0f!important}"
    "*{transition:none!important;animation:none!important;scroll-behavior:auto!important;"
    "opacity:1!important;"  # some pages wait for a script before they show themselves
    "background-image:none!important}</style>"  # a gradient over the words pales the paint
)
_WORDS: Final = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const WORD = /[\\u3040-\\u9fff]|[\\p{L}\\p{N}]+?(?=[\\u3040-\\u9fff])|[\\p{L}\\p{N}]+/gu;
  const found = [], range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const box = node.parentElement.getBoundingClientRect();
    if (box.bottom < 0 || box.top > innerHeight) continue;
    for (const match of node.data.matchAll(WORD)) {
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const at = range.getClientRects()[0];
      if (!at || at.width === 0) continue;
      const x = at.x + at.width / 2, y = at.y + at.height / 2;
      // A word under another layer's words is where their highlight is painted.
      const top = document.elementsFromPoint(x, y).find(
        one => [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim()));
      if (!top || top.contains(node) || node.parentElement.contains(top)) found.push([match[0], x, y]);
    }
  }
  return found;
}"""
_COVERING: Final = re.compile(r"(?i)\bposition\s*:\s*(?:fixed|sticky)\b")
"""What would are over the words, or out of the window's reach, without the style sheet
or script that places it."""
_PAINTED: Final = """async ([picture, points]) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + picture;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width; canvas.height = image.height;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  context.drawImage(image, 0, 0);
  const data = context.getImageData(0, 0, image.width, image.height).data;
  return points.map(([x, y]) => {
    if (x < 0 || y < 0 || x >= image.width || y >= image.height) return false;
    const at = 4 * (Math.floor(y) * image.width + Math.floor(x));
    return data[at] > 240 && data[at + 1] < 16 && data[at + 2] > 240;
  });
}"""


@dataclass(frozen=True, slots=True)
class Cited:
    """One citation and what the browser made of it."""

    page: str
    wanted: str
    """The cited span of the page's text."""
    citation: str
    highlighted: str
    """The words that Chromium painted, joined."""
    outcome: str
    """`right`, `row from a later cell`, `run`, `nothing to highlight`, `nothing`,
    `other words` or `part of a run`."""

    @property
    def right(self) -> bool:
        """Whether the words are the cited ones."""
        return self.outcome in {
            "right",
            "row from a later cell",
            "run",
            "nothing to highlight",
        }


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="some 70 citations; exit code 1 below the share",
    )
    parser.add_argument("--browser", default="auto", help="path of Chromium, or auto")
    wanted = parser.parse_args()
    reason = missing(wanted.browser)
    if reason or not DATA.is_dir():
        print(f"skipped: {reason or '../shared/data is not beside this checkout'}")
        return 0
    documents = real_pages(PAGES // 5 if wanted.check else PAGES)
    seen = anyio.run(highlight, documents, A_PAGE, wanted.browser)
    for outcome, count in Counter(one.outcome for one in seen).most_common():
        print(f"{outcome:24} {count:>4}")
    for one in seen:
        if not one.right:
            print(
                f"- {one.page}: {one.outcome}\n  wanted {one.wanted[:160]!r}\n  got    "
                f"{one.highlighted[:160]!r}"
            )
            print(f"  {one.citation.partition('#')[2][:200]}")
    right = sum(one.right for one in seen)
    print(f"{right} of {len(seen)} right ({right / len(seen):.1%}); bar {SHARE:.0%}")
    if wanted.check and right < SHARE * len(seen):
        print("BAR MISSED: citations that highlight the right words")
        return 1
    return 0


def missing(browser: str = "auto") -> str:
    """Return why no browser can be driven here, empty where one can."""
    try:
        find_browser(browser)
    except WinnowError as error:
        return str(error)
    return ""


def real_pages(count: int) -> dict[str, str]:
    """Return raw HTML by name, `count` pages evenly spread over
    ../shared/data/pages."""
    paths = sorted((DATA / "pages").glob("*.html.gz"))
    return {
        path.name.removesuffix(".html.gz"): gzip.decompress(path.read_bytes()).decode(
            "utf-8", "replace"
        )
        for path in paths[:: max(1, len(paths) // count)][:count]
    }


async def highlight(
    pages: dict[str, str], a_page: int, browser: str = "auto"
) -> list[Cited]:
    """Open `a_page` citations and `RUNS` of runs of each of `pages` (name to HTML);
    return what Chromium highlights.

    Raises:
        MissingExtra: Playwright is not installed.
        UsageError: There is no Chromium.
    """
    executable = find_browser(browser)
    playwright = importlib.import_module("playwright.async_api")
    found: list[Cited] = []
    with served(pages) as address:
        async with playwright.async_playwright() as driver:
            chromium = await driver.chromium.launch(
                executable_path=str(executable),
                args=["--no-sandbox", "--disable-gpu", "--disable-sync", "--no-pings"],
            )
            try:
                window = await chromium.new_page(
                    viewport={"width": WIDTH, "height": HEIGHT}
                )
                decoder = await chromium.new_page()
                for name, html in pages.items():
                    url = f"{address}/{name}"
                    document = read_document(Page(url, url, "", html, "text/html"))
                    spans = [*spread(document, a_page), *spread(document, RUNS, RUN)]
                    found += [
                        await _opened(window, decoder, document, span, name)
                        for span in spans
                    ]
            finally:
                await chromium.close()
    return found


def spread(document: Document, count: int, length: int = 1) -> list[Sequence[Sentence]]:
    """Return `count` runs of `length` sentences, evenly spread over the main text of a
    page, none without letters."""
    every = tag_sentences(document)
    blocks = [document.blocks[s.block] for s in every]
    shown = [
        s
        for s, block in zip(every, blocks, strict=True)
        if block.main and block.kind != "about"
    ]
    reported = [s for s in shown if len(_letters(s.text)) >= 8]
    reported = [s for s in reported if s.number - 1 + length <= len(every)]
    firsts = reported[len(reported) // (2 * count) :: max(1, len(reported) // count)][
        :count
    ]
    return [every[first.number - 1 : first.number - 1 + length] for first in firsts]


async def _opened(
    window: Any, decoder: Any, document: Document, span: Sequence[Sentence], name: str
) -> Cited:
    citation = cite(document, span[0].start, span[-1].end)
    # Another document each time: a change of the fragment alone is not a navigation.
    address, _, fragment = citation.partition("#")
    await window.goto(
        f"{address}?{span[0].number}-{len(span)}#{fragment}", wait_until="load"
    )
    got = ""
    for wait in LOOKS:
        await window.wait_for_timeout(wait)
        words = await window.evaluate(_WORDS)
        picture = base64.b64encode(await window.screenshot()).decode()
        painted = await decoder.evaluate(
            _PAINTED, [picture, [[x, y] for _, x, y in words]]
        )
        got = " ".join(
            word for (word, _, _), lit in zip(words, painted, strict=True) if lit
        )
        if got:
            break
    shown = _letters(await window.evaluate("() => document.body.innerText"))
    wanted = document.text[span[0].start : span[-1].end]
    if not fragment and not got and not _rendered(wanted, "", shown):
        return Cited(name, wanted, citation, got, "nothing to highlight")
    first, last = (
        _rendered(document.text[one.start : one.end], got, shown)
        for one in (span[0], span[-1])
    )
    if len(span) > 1:
        return Cited(name, wanted, citation, got, _outcome_of_run(first, last, got))
    kind = document.blocks[span[0].block].kind
    return Cited(name, wanted, citation, got, _outcome(first, got, row=kind == "row"))


def _rendered(wanted: str, got: str, shown: str) -> str:
    """Return `wanted` without stretches that are not in `got` and of which Chromium
    renders no such letters."""
    words, lit = _WORD.findall(wanted), _WORD.findall(got)
    kept: list[str] = []
    for kind, begin, end, *_ in SequenceMatcher(
        None, words, lit, autojunk=False
    ).get_opcodes():
        stretch = words[begin:end]
        kept += (
            stretch if kind == "equal" or _letters("".join(stretch)) in shown else []
        )
    return " ".join(kept)


def _outcome(wanted: str, got: str, *, row: bool) -> str:
    if not got:
        return "nothing"
    if _letters(got) == _letters(wanted):
        return "right"
    if row and _letters(wanted).endswith(_letters(got)):
        return "row from a later cell"
    return "other words"


def _outcome_of_run(first: str, last: str, got: str) -> str:
    """A table's row may be reported by a later cell where a run begins, and by an
    earlier one where it ends."""
    if not got:
        return "nothing"
    first, last, got = _letters(first), _letters(last), _letters(got)
    begins = any(got.startswith(first[at:]) for at in range(max(1, len(first) - 2)))
    ends = any(
        got.endswith(last[:at]) for at in range(len(last), min(2, len(last) - 1), -1)
    )
    return "run" if begins and ends and len(got) > len(last) else "part of a run"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


@contextmanager
def served(pages: dict[str, str]) -> Iterator[str]:
    """Serve `pages` on loopback, without scripts, with painted highlights; yield the
    address."""

    def answer(path: str) -> Answer:
        html = re.sub(
            r"(?i)<meta[^>]{0,40}http-equiv[^>]{0,400}>",
            "",
            pages.get(path.strip("/").partition("?")[0], ""),
        )
        html = _COVERING.sub("position:static", html)
        policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"
        return Answer(
            (html + _STYLE).encode() if html else b"",
            headers={"Content-Security-Policy": policy},
        )

    with serving(answer) as port:
        yield f"http://127.0.0.1:{port}"


if __name__ == "__main__":
    sys.exit(main())
