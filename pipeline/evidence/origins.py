"""Which pages hold a passage's words: wire stories, mirrors and other copies across sites, small edits included.

What several pages say in the same words is one origin, however many sites carry it: no page confirms what it copied.
Words are compared as runs of three terms, so that a word changed, left out or put in costs three of them. Pages that
say the same in words of their own are origins of their own. Not for: showing equal units once (`assemble.py`), or
results of a search (`pipeline/search/chain.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pipeline.documents import Document, Evidence, Sentence
from pipeline.evidence.cite import cite
from pipeline.text.words import word_runs

LEAST: Final = 10
"""Runs of three terms from which a text is told from others by its words; shorter ones must be equal."""
COPIED: Final = 0.5
"""Share of a text's runs that a page holds from which it is a copy: of 150 pages with every tenth word dropped, put in
or replaced .98 to 1.0 are found (with .6 .93, with .7 .81), and 2 of 22,350 pairs of different pages are
taken for copies, over a line of reviews of one site (`python -m bench.claims`)."""


class Copies:
    """The runs of some pages, each counted when it is first compared."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        """Take what is compared of each page, by its place."""
        self._texts = texts
        self._runs: dict[int, frozenset[tuple[str, ...]]] = {}

    def hold(self, place: int, texts: Iterable[str]) -> bool:
        """Return whether the page at `place` holds one of `texts`."""
        for text in texts:
            runs = word_runs(text)
            if len(runs) < LEAST or place not in self._texts:
                continue
            if place not in self._runs:
                self._runs[place] = word_runs(self._texts[place])
            if len(runs & self._runs[place]) >= COPIED * len(runs):
                return True
        return False


def cite_copy(document: Document, units: Sequence[Sentence], text: str, *, at: Sentence | None) -> str:
    """Return the citation of `text` among the units of a page: of `at`, else the nearest one, and those beside it."""
    wanted = word_runs(text)
    runs = [word_runs(document.text[unit.start : unit.end]) for unit in units]
    low = high = units.index(at) if at else max(range(len(units)), key=lambda row: len(runs[row] & wanted))
    while low and len(runs[low - 1] & wanted) > COPIED * len(runs[low - 1]):
        low -= 1
    while high + 1 < len(units) and len(runs[high + 1] & wanted) > COPIED * len(runs[high + 1]):
        high += 1
    return cite(document, units[low].start, units[high].end)


def count_origins(evidence: Iterable[Evidence]) -> int:
    """Return how many origins stand behind some passages: pages, those that share a passage's words taken as one."""
    origins: list[set[str]] = []
    for one in evidence:
        pages = {citation.partition("#")[0] for citation in (one.url, *one.also)}
        pages = pages.union(*(origin for origin in origins if origin & pages))
        origins = [origin for origin in origins if not origin & pages] + [pages]
    return len(origins)
