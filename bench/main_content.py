"""Main content of a page that is read without a question, beside other readers, on
pages that others labelled.

    PYTHONPATH=. python -m bench.main_content            all sets by type of page; some minutes
    PYTHONPATH=. python -m bench.main_content --check    the same against the bars
    PYTHONPATH=. python -m bench.main_content --worst 9  the pages that lose most against trafilatura, of the half seen

Three sets: half of scrapinghub's article-extraction-benchmark (`aeb`), half of
mozilla/readability's test pages (`mozilla`), and WCXB (`wcxb`), by its seven types of
page. Precision, recall and F1 over words, each as often unchanged there (multisets), of
what is shown against the labelled text; mean over pages. What is shown is the whole
first answer, without a budget. Sites whose CRC-32 is odd are held aside: of them means
alone are printed. readability-lxml is read where it can be imported
(`PYTHONPATH=.:FOLDER`). Not for: questions and budgets (`bench/run.py`)."""

import argparse
import asyncio
import gzip
import importlib
import json
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import numpy as np
import trafilatura
from selectolax.lexbor import LexborHTMLParser

from bench.html_questions import DATA
from pipeline.prune.prune import PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.relevance import Blend
from readers.html.document import read_document
from readers.page import Page

PAGES: Final = DATA / "pages"
SHARED: Final = DATA / "main_content"
WORDS: Final = 20
"""Words from which a labelled main text is one."""
UNBOUNDED: Final = 10_000_000
LEAST: Final = {"aeb": 0.93, "mozilla": 0.92}
"""Least F1 of a set, in both halves."""
RECALL: Final = 0.94
"""Least recall of a set, in both halves."""
PEER: Final = {"wcxb forum": 0.884, "wcxb collection": 0.699}
"""F1 of defuddle on other pages of WCXB; it does not run here."""
_NO_HOST: Final = "fakehost"
"""Host of pages that have none: they are held aside by their name."""
_WORD: Final = re.compile(r"\w+")

Shares = tuple[float, float, float]
"""Precision, recall, F1."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A page and its main text, as people wrote it down."""

    name: str
    group: str
    """Set and, where it is known, type: `aeb`, `wcxb forum`."""
    file: Path
    text: str
    held: bool

    @property
    def html(self) -> str:
        """The page as it was served."""
        return gzip.decompress(self.file.read_bytes()).decode("utf-8", "replace")


def labelled_pages() -> list[Labelled]:
    """Return the pages of all sets."""
    pages = []
    for line in (PAGES / "wcxb.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        main = row["ground_truth"].get("main_content") or ""
        if len(_WORD.findall(main)) >= WORDS:
            kind, held = (
                row["type"]["primary"],
                is_held(urlsplit(row["url"]).hostname or ""),
            )
            file = PAGES / f"{row['page']}.html.gz"
            pages.append(Labelled(row["page"], f"wcxb {kind}", file, main, held))
    pages.sort(key=lambda page: page.name)
    for line in (SHARED / "pages.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        name = row["page"]
        host = urlsplit(row["url"]).hostname or ""
        held = is_held(name if host in {"", _NO_HOST} else host)
        pages.append(
            Labelled(
                name,
                row["set"],
                SHARED / "pages" / f"{name}.html.gz",
                row["text"],
                held,
            )
        )
    return pages


def is_held(site: str) -> bool:
    """Whether a site is held aside."""
    return zlib.crc32(site.removeprefix("www.").encode()) % 2 == 1


def plain_form(html: str) -> str:
    """Return the main content of a page as the query-less form shows it."""
    document = read_document(Page("u", "u", "", html, "text/html"))
    options = PruneOptions(max_tokens=UNBOUNDED, format="text")
    result = asyncio.run(
        prune([document], Question(""), options=options, reader=Blend(None))
    )
    return "\n".join(page.text for page in result.pages)


def readers() -> Mapping[str, Callable[[str], str]]:
    """Return ours and what else reads main content here."""
    found: dict[str, Callable[[str], str]] = {
        "ours": plain_form,
        "trafilatura": lambda html: trafilatura.extract(html) or "",
        "body": _body,
    }
    try:
        readability = importlib.import_module("readability")
        found["readability"] = lambda html: _body(readability.Document(html).summary())
    except ImportError:
        print("readability-lxml is not installed")
    return found


def _body(html: str) -> str:
    """Return all text of a page's body but scripts and styles: what reading without any
    choice gives."""
    tree = LexborHTMLParser(html)
    tree.strip_tags(["script", "style", "noscript", "template"])
    return tree.body.text(separator=" ") if tree.body else ""


def shares(text: str, main: str) -> Shares:
    """Return precision, recall and F1 of the words of a text against the main
    text's."""
    have, want = (
        Counter(_WORD.findall(text.lower())),
        Counter(_WORD.findall(main.lower())),
    )
    both = (have & want).total()
    return (
        both / max(1, have.total()),
        both / max(1, want.total()),
        2 * both / max(1, have.total() + want.total()),
    )


def measured(pages: Sequence[Labelled]) -> dict[str, dict[str, Shares]]:
    """Return by reader and page what each reads, and print its processor time."""
    table: dict[str, dict[str, Shares]] = {}
    sources = {page.name: page.html for page in pages}
    for reader, read in readers().items():
        begin = time.process_time()
        table[reader] = {
            page.name: _shares(read, sources[page.name], page.text) for page in pages
        }
        print(
            f"  {reader:12}{(time.process_time() - begin) / len(pages) * 1e3:6.0f} ms of "
            f"processor a page"
        )
    return table


def _shares(read: Callable[[str], str], html: str, main: str) -> Shares:
    try:
        return shares(read(html), main)
    except importlib.import_module(
        "lxml"
    ).etree.ParserError:  # readability, on a page without a document
        return shares("", main)


def print_means(
    pages: Sequence[Labelled], table: Mapping[str, Mapping[str, Shares]]
) -> list[str]:
    """Print means by set, type and half; return what falls short of the bars."""
    short: list[str] = []
    for held in (False, True):
        print(f"{'Held aside' if held else 'Looked at'}: precision / recall / F1")
        for group in (
            "aeb",
            "mozilla",
            "wcxb",
            *sorted({page.group for page in pages if " " in page.group}),
        ):
            names = [
                page.name
                for page in pages
                if page.held == held and f"{page.group} ".startswith(f"{group} ")
            ]
            if not names:
                continue
            means = {
                reader: np.mean([rows[name] for name in names], axis=0)
                for reader, rows in table.items()
            }
            cells = "  ".join(
                f"{reader} " + " / ".join(f"{v:.3f}" for v in mean)
                for reader, mean in means.items()
            )
            print(f"  {group:20}{len(names):4}  {cells}")
            least = {
                "trafilatura": float(means["trafilatura"][2]),
                "the bar": LEAST.get(group, 0.0),
            }
            least["defuddle"] = PEER.get(group, 0.0)
            _, recall, score = means["ours"]
            label = f"{group}, {'held aside' if held else 'looked at'}"
            short += [
                f"{label}: F1 {score:.3f}, {name} {bar:.3f}"
                for name, bar in least.items()
                if score < bar
            ]
            short += (
                [f"{label}: recall {recall:.3f}, the bar {RECALL}"]
                if recall < RECALL
                else []
            )
    return short


def print_worst(
    pages: Sequence[Labelled], table: Mapping[str, Mapping[str, Shares]], most: int
) -> None:
    """Print the pages looked at whose F1 is furthest below trafilatura's."""
    seen = [page for page in pages if not page.held]
    seen.sort(
        key=lambda page: (
            table["ours"][page.name][2] - table["trafilatura"][page.name][2]
        )
    )
    for page in seen[:most]:
        cells = (
            f"{reader} " + " / ".join(f"{value:.3f}" for value in rows[page.name])
            for reader, rows in table.items()
        )
        print(f"  {page.name:24} {page.group:20} {'  '.join(cells)}")


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description="Main content beside other readers.")
    parser.add_argument(
        "--check", action="store_true", help="end with 1 where a bar is missed"
    )
    parser.add_argument("--every", type=int, default=1, help="take every n-th page")
    parser.add_argument(
        "--worst",
        type=int,
        default=0,
        help="print so many pages that lose against trafilatura",
    )
    given = parser.parse_args()
    if not SHARED.is_dir():
        print("not measured: ../shared/data is not beside this checkout")
        return 0
    pages = labelled_pages()[:: given.every]
    table = measured(pages)
    short = print_means(pages, table)
    print_worst(pages, table, given.worst)
    for line in short:
        print(f"SHORT {line}")
    return 1 if given.check and short else 0


if __name__ == "__main__":
    sys.exit(main())
