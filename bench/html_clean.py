"""Cleaning, hostile shapes and the query-less form of a page, measured.

    PYTHONPATH=. python -m bench.html_clean            all tables; a few minutes
    PYTHONPATH=. python -m bench.html_clean --check    hostile shapes and a tenth of the pages against the bars

Reference of the query-less form. Prose: runs of four words of the main text of
wcxb.jsonl that are in the raw page and are not hidden there. Rows and listings: those
of the page's own DOM (tables of two rows and two columns or more; `pre`) in its main
region, or all outside furniture where it marks none. Furniture: runs of four words in
nav, footer, aside and their roles that are not in the main text; Wikipedia pages have
no main text and count for rows, listings and furniture only. Half of the sites, by
CRC-32, are held aside: of them only totals are printed. Not for: main content beside
other readers (`bench/main_content.py`), questions and budgets (`bench/html.py`)."""

import argparse
import asyncio
import gc
import gzip
import importlib
import json
import re
import resource
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from bench.html import speed
from pipeline.evidence.forms import Form
from pipeline.prune.prune import PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.relevance import Blend
from pipeline.text.tokens import count_tokens
from readers.html.clean import clean
from readers.html.document import read_document
from readers.html.style_sheets import StyleJudge
from readers.page import Page

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "pages"
RUN: Final = 4
"""Words of a run that is looked for."""
WORDS: Final = 20
"""Words from which a labelled main text is one."""
UNBOUNDED: Final = 10_000_000
SECONDS: Final = 2.0
"""Most seconds of processor time for cleaning a hostile page."""
SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
GROWTH: Final = 2.0
"""Most time for a MB of 10, against that for a MB of one."""
_BODY: Final = re.compile(r"<body[^>]*>(.*)</body>", re.DOTALL | re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")
_MAIN: Final = "main, article, [role=main], #mw-content-text, #content"
_AROUND: Final = (
    "nav, footer, aside, [role=navigation], [role=contentinfo], "
    "[role=complementary], .navbox, .catlinks"
)
_HIDDEN: Final = '[style*="display:none"], [style*="display: none"], [hidden], .sortkey'
"""Sort keys and machine-readable dates, which are hidden in cells."""
_COVERED: Final = '[aria-hidden="true"], [style*="opacity:0"], [style*="opacity: 0"]'
"""Closed accordions, slides not shown, star ratings: cleaning drops them on purpose;
wcxb's main text counts them."""
_THERE: Final = 0.1
"""Share of the main text that must be in a page for its prose to be counted: a script
fetched the rest of one."""
LEAST: Final = {"prose": 0.97, "rows": 0.97, "code": 0.97}
"""Mean shares kept, on the pages tuned on and on those held aside alike."""
WORST: Final = 0.9
"""Of each of them, on every page."""
MOST: Final = {"furniture": 0.02, "tokens": 0.21}

Runs = set[tuple[str, ...]]
Cells = tuple[set[str], ...]
"""The cells of a row, each in the forms that it may have."""
HOSTILE: Final[dict[str, Callable[[], str]]] = {
    "200,000 nested": lambda: "<div>" * 200_000 + "x",
    "a million siblings": lambda: "<p>x</p>" * 1_000_000,
    "10 MB of elements with attributes": lambda: (
        ("<div>" + "<b a='1'>x</b><br>" * 20) * 28_000
    ),
    "10 MB of line breaks": lambda: "<div>" + "<br>" * 2_500_000,
    "10 MB of definition terms": lambda: "<dl>" + "<dt>a<dd>b" * 1_000_000,
    "fake end tags in comments": lambda: "<div><!--</div>-->" * 100_000 + "x",
    "nested definition lists": lambda: "<dl><dd>" * 60_000 + "x",
    "a tag with 200,000 attributes": lambda: (
        "<div " + " ".join(f"a{i}=1" for i in range(200_000)) + ">x"
    ),
    "the same after a quoted bracket": lambda: (
        '<div a=">" ' + " ".join(f"a{i}=1" for i in range(200_000)) + ">x"
    ),
    "40,000 open formatting elements": lambda: "".join(
        f"<p><b a={i}>x" for i in range(40_000)
    ),
    "unclosed quotes": lambda: '<a title="' * 200_000,
    "500,000 brackets": lambda: "<" * 500_000,
}


@dataclass(frozen=True, slots=True)
class Label:
    """What people wrote down about a page."""

    kind: str
    """Article, forum, product and so on."""
    main: str
    """Its main text."""
    held: bool
    """Whether its site is held aside."""


def is_held(site: str) -> bool:
    """Whether a site is held aside."""
    return zlib.crc32(site.removeprefix("www.").encode()) % 2 == 1


def runs(text: str) -> Runs:
    """Return the runs of `RUN` words of a text, in lower case."""
    words = _WORD.findall(text.lower())
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def labels() -> dict[str, Label]:
    """Return the labels of the pages that have a main text."""
    found: dict[str, Label] = {}
    for line in (DATA / "wcxb.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        main = row["ground_truth"].get("main_content") or ""
        if len(_WORD.findall(main)) >= WORDS:
            found[row["page"]] = Label(
                row["type"]["primary"],
                main,
                is_held(urlsplit(row["url"]).hostname or ""),
            )
    return found


def plain_form(html: str, form: Form = "markdown") -> tuple[str, int]:
    """Return the main content of a page as the query-less form shows it, and its
    tokens."""
    document = read_document(Page("u", "u", "", html, "text/html"))
    options = PruneOptions(max_tokens=UNBOUNDED, format=form)
    result = asyncio.run(
        prune([document], Question(""), options=options, reader=Blend(None))
    )
    return "\n".join(page.text for page in result.pages), result.tokens


def measure(html: str, main: str) -> dict[str, float]:
    """Return the shares of one page: prose, rows, code, furniture (nan where it has
    none), tokens against raw."""
    text, tokens = plain_form(html)
    have, wanted = runs(text), runs(main)
    parser = LexborHTMLParser(html, scripting=True)
    strip_hidden(parser)
    there = wanted & runs(parser.root.text(separator=" ")) if parser.root else set()
    regions = parser.css(_MAIN)
    around = [
        node for node in parser.css(_AROUND) if node.css_first(_MAIN) is None
    ]  # one left open holds the page
    beside: Runs = set()
    for node in around:
        beside |= runs(node.text(separator=" "))
    beside = beside - wanted
    for node in around:
        node.decompose()
    rest = runs(parser.root.text(separator=" ")) if parser.root else set()
    beside -= rest
    inner = parser.css_first(_MAIN) if regions else None
    region = inner or parser.root
    rows, listings = (_rows(region), _code_lines(region)) if region else ([], [])
    lines = text.split("\n")
    cells = {f" {_folded(line)} " for line in lines}
    kept_lines = verbatim(lines)
    return {
        "prose": _share(len(there & have), len(there))
        if len(there) > _THERE * len(wanted)
        else float("nan"),
        "rows": _share(
            sum(any(stand_in(row, line) for line in cells) for row in rows), len(rows)
        ),
        "code": _share(sum(line in kept_lines for line in listings), len(listings)),
        "furniture": _share(len(beside & have), len(beside)),
        "tokens": tokens / max(1, count_tokens(html)),
    }


def strip_hidden(parser: LexborHTMLParser) -> None:
    """Take out what a page hides, by its elements or its own sheets, and scripts.

    What covers half of its words was saved with a dialog open, or waits for a script,
    and stays."""
    if parser.root is None:
        return
    styles = StyleJudge(parser.root)
    hiding = {
        node.mem_id: styles.look(node, {}, styles.ground)[0]
        for node in parser.css("[class]")
    }
    parser.strip_tags(
        ["script", "style", "noscript", "template", "svg"], recursive=True
    )
    for node in parser.css(_HIDDEN):
        node.decompose()
    every = _words(parser.root)
    for node in parser.css(_COVERED):
        if 2 * _words(node) < every:
            node.decompose()
    waiting: list[LexborNode] = []
    for node in parser.css(":not(html):not(body)[class]"):
        hidden = hiding.get(node.mem_id)
        if hidden in {"hard", "shut"}:
            node.decompose()
        elif hidden:
            waiting.append(node)
    if 2 * sum(_words(node) for node in waiting) < every:
        for node in waiting:
            node.decompose()


def _words(node: LexborNode | None) -> int:
    return len(node.text(separator=" ").split()) if node is not None else 0


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def stand_in(row: Cells, line: str) -> bool:
    """Return whether all cells of a row are on a line in their order; between them a
    spanning cell may be."""
    position = 0
    for cell in row:
        ends = [
            at + len(form) + 1
            for form in cell
            if (at := line.find(f" {form} ", position)) >= 0
        ]
        if not ends:
            return False
        position = min(ends)
    return True


def verbatim(lines: list[str]) -> set[str]:
    """Return the lines of Markdown as they read: without the indentation of the item
    that a listing is in."""
    kept: set[str] = set()
    indent = ""
    for line in lines:
        if line.lstrip().startswith("```"):
            indent = line[: len(line) - len(line.lstrip())]
        kept.add(line.rstrip().removeprefix(indent))
    return kept


def _rows(region: LexborNode) -> list[Cells]:
    """Return the visible cells of the first 60 data rows of each table of the region,
    as words.

    Whether an inline element parts two words (`<b>One</b><br>two`) or not
    (`H<sub>2</sub>O`) is not asked."""
    found: list[Cells] = []
    for table in region.css("table"):
        if table.css_first("table table") or len(table.css("tr")) < 2:
            continue
        for row in table.css("tr")[:60]:
            parts = [
                {_folded(cell.text(separator=" ")), _folded(cell.text())} - {""}
                for cell in row.css("td")
            ]
            if sum(map(bool, parts)) >= 2:
                found.append(tuple(part for part in parts if part))
    return found


def _code_lines(region: LexborNode) -> list[str]:
    for edge in region.css(
        "pre br, pre div, pre p, pre li"
    ):  # as are the lines of some listings
        edge.insert_before("\n")
    lines = [
        line.rstrip()
        for node in region.css("pre")
        for line in node.text(deep=True).split("\n")
    ]
    return [line for line in lines if line]


def _source(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


def print_plain(every: int) -> list[str]:
    """Print the query-less form on the pages tuned on and those held aside; return what
    falls short."""
    known = labels()
    table: list[tuple[str, bool, dict[str, float]]] = []
    for path in sorted(DATA.glob("*.html.gz"))[::every]:
        name = path.name.removesuffix(".html.gz")
        label = known.get(name)
        held = label.held if label else is_held(name)
        table.append((name, held, measure(_source(path), label.main if label else "")))
    short: list[str] = []
    for held in (False, True):
        part = [(name, row) for name, of, row in table if of == held]
        print(
            f"Without a query, {'held aside' if held else 'tuned on'}: {len(part)} pages"
        )
        for key in (*LEAST, *MOST):
            values = [(row[key], name) for name, row in part if row[key] == row[key]]
            if not values:
                continue
            mean = float(np.mean([value for value, _ in values]))
            ends = sorted(values, reverse=key in MOST)[:6]
            worst = (
                ""
                if held
                else "; worst "
                + ", ".join(f"{name} {value:.2f}" for value, name in ends)
            )
            print(f"  {key:10} mean {mean:.3f} of {len(values)} pages{worst}")
            if not LEAST.get(key, 0) <= mean <= MOST.get(key, 1):
                short.append(
                    f"{key}: mean {mean:.3f}, not {LEAST.get(key) or MOST[key]}"
                )
            below = [name for value, name in values if key in LEAST and value < WORST]
            if below:
                short.append(
                    f"{key}: {f'{len(below)} held pages' if held else ', '.join(below)} below "
                    f"{WORST}"
                )
    return short


def print_speed(every: int) -> None:
    """Print megabytes a second of cleaning, the bare parse and htmlrag where it is
    installed.

    What was imported is not looked through for garbage, as in the server
    (`server/process.py`): 21.9 MB/s, else 20.3."""
    gc.collect()
    gc.freeze()
    found: dict[str, Callable[[str], object]] = {
        "bare parse": LexborHTMLParser,
        "ours: clean": clean,
    }
    try:
        found["htmlrag.clean_html"] = importlib.import_module("htmlrag").clean_html
    except ImportError:
        print("htmlrag is not installed")
    sources = [_source(path) for path in sorted(DATA.glob("*.gz"))[::every]]
    for name, work in found.items():
        print(f"  {name:20} {speed(work, sources):7.1f} MB/s")


def print_hostile() -> int:
    """Print seconds of cleaning hostile shapes; return how many are over the bar."""
    over = 0
    for name, make in HOSTILE.items():
        html = make()
        seconds = _seconds(html)
        over += seconds > SECONDS
        print(f"  {name:34} {seconds:5.2f} s{'  SHORT' if seconds > SECONDS else ''}")
    return over


def print_growth() -> int:
    """Print time and memory of cleaning 10 kB to 10 MB of real bodies in a row; return
    how many bars fall short."""
    bodies = ""
    for path in sorted(DATA.glob("*.gz")):
        body = _BODY.search(_source(path))
        bodies += f"<section>{body[1] if body else ''}</section>"
        if len(bodies) >= SIZES[-1]:
            break
    rates: dict[int, float] = {}
    for size in SIZES:
        html = "<!doctype html><html><body>" + bodies[:size]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rates[size] = min(_seconds(html) for _ in range(3)) / size * 1e6
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
        print(
            f"  {size / 1e6:5.2f} MB of real bodies {rates[size] * 1e3:20.1f} ms/MB, the peak of "
            f"memory {grown:+.0f} MB"
        )
    ratio = rates[SIZES[-1]] / rates[SIZES[-2]]
    print(
        f"  time for a MB, of {SIZES[-1] / 1e6:.0f} against of {SIZES[-2] / 1e6:.0f}: {ratio:.2f} "
        f"(at most {GROWTH})"
    )
    return int(ratio > GROWTH)


def _seconds(html: str) -> float:
    begin = time.process_time()
    clean(html)
    return time.process_time() - begin


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description="Cleaning and the query-less form.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="take every n-th page")
    given = parser.parse_args()
    if not DATA.is_dir():
        print("not measured: ../shared/data is not beside this checkout")
        return 0
    short = print_growth() + print_hostile()
    if not given.check:
        print_speed(given.every)
    lines = print_plain(10 if given.check else given.every)
    for line in lines:
        print(f"SHORT {line}")
    return 1 if short or lines else 0


if __name__ == "__main__":
    sys.exit(main())
