"""Rows that a request's choosing words point at: a table's ends for "the last", a column's extremes for "the lowest".

No row says of itself that it is the last or has the least: its place and its numbers among the others do. Such rows are
lifted, never above the best sentence, for a page may have other tables than the one that is meant. Not for: scores by
words and meaning (`relevance.py`), or saying that nothing answers (`verdict.py`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.documents import Block, Document, Sentence
from pipeline.rank.fuse import Floats
from pipeline.text.words import index_terms
from pipeline.work import check_cancelled

NAMED: Final = 0.9
"""Part of the distance to the best score that the extremes of a column gain which the question names; not all of it, so
that lifted rows stay in their own order (`python -m bench.extract_tables`)."""
UNNAMED: Final = 0.6
"""Part that a table's ends gain for "first" and "last", and extremes of columns that are not named ("the shortest song"
means one headed Length). At .9 timetables crowd out what "the last boat" is asked of (library at 1,000 tokens .833 to
.783), at .4 table questions lose .04."""
FEWEST: Final = 3
"""Rows of a table in which something can be chosen."""
MOST_ALIKE: Final = 2
"""Rows that may share an extreme; more of them are no choice."""
MOST_COLUMNS: Final = 64
"""Columns of a table that are looked at."""
NUMBERS_SHARE: Final = 0.6
"""Part of a column's cells that must be numbers."""

_ENDS: Final = {
    "en": "first last final earliest latest newest oldest recent recently top bottom beginning initial initially",
    "de": "erste ersten erster erstes letzte letzten letzter letztes früheste frühesten späteste spätesten neueste "
    "neuesten älteste ältesten",
    "fr": "premier première premiers premières dernier dernière derniers dernières récent récente",
    "es": "primer primero primera último última reciente",
    "ru": "первый первая первое первого последний последняя последнее последнего",
}
_LEAST: Final = {
    "en": "least fewest lowest shortest smallest fastest slowest earliest oldest youngest cheapest lightest minimum "
    "closest nearest worst",
    "de": "wenigsten niedrigste niedrigsten kürzeste kürzesten kleinste kleinsten schnellste schnellsten früheste "
    "frühesten älteste ältesten jüngste jüngsten billigste billigsten geringste geringsten "
    "leichteste leichtesten",
    "fr": "moins plus minimum",
    "es": "menos más menor mínimo",
    "ru": "меньше наименьший самый самая самое самую самого самой",
}
_MOST: Final = {
    "en": "most highest longest largest biggest greatest latest newest oldest tallest heaviest maximum best richest "
    "deepest fastest farthest furthest recent strongest",
    "de": "meisten höchste höchsten längste längsten größte größten schwerste schwersten neueste neuesten späteste "
    "spätesten beste besten weiteste weitesten",
    "fr": "plus maximum",
    "es": "más mayor máximo",
    "ru": "больше наибольший самый самая самое самую самого самой",
}
"""Words that say no side by themselves (`le plus petit`, `самый`) stand on both."""
CHOOSING: Final = {language: " ".join(side[language] for side in (_ENDS, _LEAST, _MOST)) for language in _ENDS}
"""All words that choose by place or number, by language."""
_MEASURES: Final = {
    "lightest": "weight mass",
    "heaviest": "weight mass",
    "cheapest": "price cost fee",
    "tallest": "height",
    "shortest": "length height duration time runtime",
    "longest": "length duration time runtime",
    "deepest": "depth",
    "fastest": "speed time",
    "slowest": "speed time",
    "nearest": "distance",
    "closest": "distance",
    "farthest": "distance",
    "furthest": "distance",
    "largest": "size area population capacity",
    "biggest": "size area population capacity",
    "smallest": "size area population capacity",
    "oldest": "age year date born founded built",
    "youngest": "age year date born",
    "newest": "year date founded built released",
    "earliest": "year date time",
    "latest": "year date time",
    "leichteste": "gewicht masse",
    "schwerste": "gewicht masse",
    "billigste": "preis kosten",
    "kürzeste": "länge dauer höhe",
    "längste": "länge dauer",
    "größte": "größe fläche einwohner höhe",
    "kleinste": "größe fläche einwohner höhe",
    "älteste": "alter jahr baujahr",
    "jüngste": "alter jahr baujahr",
    "schnellste": "geschwindigkeit zeit",
}
"""What the column is called whose extreme a word means."""
_ENDS_SIGNS: Final = ("最初", "最后", "最後", "第一", "最新", "最早")
_EXTREME_SIGN: Final = "最"

_WORD: Final = re.compile(r"[^\W\d_]+")
_NOTE: Final = re.compile(r"\[[^\[\]]{0,9}\]")
_CLOCK: Final = re.compile(r"\D{0,2}(\d{1,4}):([0-5]\d)(?::([0-5]\d))?(\.\d{1,6})?")
_NUMBER: Final = re.compile(r"[^\w+−.-]{0,3}(?:[A-Z]{0,3}[$€£¥#] ?)?([+−-]?(?:\d[\d.,\u00a0\u202f ]{0,20}\d|\.?\d+))")
_YEAR: Final = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)")
_MONTH: Final = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE)
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAY: Final = re.compile(r"(?<!\d)([0-3]?\d)(?!\d)")
_DATE: Final = 30
"""Characters of a cell in which a year stands for a date."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a request's words choose by."""

    ends: bool
    least: bool
    most: bool
    measures: str = ""
    """Names of columns that the words mean."""

    def __bool__(self) -> bool:
        """Whether they choose at all."""
        return self.ends or self.least or self.most


def lift_rows(
    request: str, documents: Sequence[Document], tagged: Sequence[Sequence[Sentence]], values: Floats
) -> Floats:
    """Return the scores [size] with the rows lifted that the words of `request` choose, up to the best of all scores.

    Args:
        request: As the user put it.
        documents: Pages in order.
        tagged: Their sentences; all together are the rows of `values`.
        values: Scores [size], at least 0.
    """
    choice = read_choice(request)
    if not choice or not len(values):
        return values
    gains: Floats = np.zeros_like(values)
    begin = 0
    for document, sentences in zip(documents, tagged, strict=True):
        for table in _tables(document, sentences):
            for place, gain in _chosen(request, choice, document, sentences, table):
                gains[begin + place] = max(gains[begin + place], gain)
        begin += len(sentences)
    lifted: Floats = values + gains * (values.max() - values)
    return lifted


def read_choice(request: str) -> Choice:
    """Return what the words of `request` choose by."""
    words = set(_WORD.findall(request.casefold()))
    ends, least, most = (
        any(not words.isdisjoint(known.split()) for known in side.values()) for side in (_ENDS, _LEAST, _MOST)
    )
    extreme = _EXTREME_SIGN in request
    measures = " ".join(named for word, named in _MEASURES.items() if not words.isdisjoint({word, f"{word}n"}))
    return Choice(ends or any(sign in request for sign in _ENDS_SIGNS), least or extreme, most or extreme, measures)


def number_of(cell: str) -> float | None:
    """Return the number that a cell begins with: a time in its smallest unit, a date in years; None for other text."""
    text = _NOTE.sub("", cell).strip()
    if clock := _CLOCK.match(text):
        total = 0.0
        for part in clock.groups()[:3]:
            total = total if part is None else 60 * total + int(part)
        return total + float(clock[4] or 0)
    year = _YEAR.search(text) if len(text) <= _DATE else None
    month = _MONTH.search(text) if year else None
    if year and month:
        day = _DAY.search(text)
        return float(year[1]) + _MONTHS.index(month[1].lower()) / 4 / 12 + (int(day[1]) if day else 0) / 400
    if found := _NUMBER.match(text):
        return _read_number(found[1])
    return float(year[1]) if year else None


def _read_number(spelled: str) -> float:
    """Read digits with separators: the last of two kinds is the decimal one, a comma before three digits is none."""
    digits = re.sub(r"\s", "", spelled).replace("−", "-").rstrip(".,")
    if "," in digits and "." in digits:
        grouping = "," if digits.rfind(".") > digits.rfind(",") else "."
        digits = digits.replace(grouping, "")
    if digits.count(",") > 1 or re.search(r",\d{3}$", digits):
        digits = digits.replace(",", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    return float(digits.replace(",", "."))


def _tables(document: Document, sentences: Sequence[Sentence]) -> Iterator[range]:
    """Yield the places of rows that follow each other below one header."""
    start = 0
    for place in range(1, len(sentences) + 1):
        if place < len(sentences) and _table(document, sentences[place]) == _table(document, sentences[start]):
            continue
        if place - start >= FEWEST and document.blocks[sentences[start].block].kind == "row":
            yield range(start, place)
        start = place


def _table(document: Document, sentence: Sentence) -> tuple[str, str, tuple[str, ...]]:
    block = document.blocks[sentence.block]
    return block.kind, block.lead, sentence.heading_path


def _chosen(
    request: str, choice: Choice, document: Document, sentences: Sequence[Sentence], table: range
) -> Iterator[tuple[int, float]]:
    """Yield a table's rows that are chosen, each with the part of its distance to the best that it gains."""
    if choice.ends:
        yield from ((table[0], UNNAMED), (table[-1], UNNAMED))
    if not (choice.least or choice.most):
        return
    named: dict[int, list[int]] = {}
    language = document.page.language
    words = [set(index_terms(text, language=language)) for text in (request, choice.measures)]
    for name, cells in _columns([document.blocks[sentences[place].block] for place in table]):
        terms = index_terms(name, language=language)
        rank = next((rank for rank, known in enumerate(words) if not known.isdisjoint(terms)), len(words))
        numbers = [cell for cell in cells if cell is not None]
        for extreme in [min(numbers)] * choice.least + [max(numbers)] * choice.most:
            places = [place for place, cell in zip(table, cells, strict=True) if cell == extreme]
            if len(places) <= MOST_ALIKE:
                named.setdefault(rank, []).extend(places)
    if named:
        # The columns that the request names, or else those that its words mean, or else all.
        best = min(named)
        yield from ((place, NAMED if best < len(words) else UNNAMED) for place in named[best])


def _columns(rows: Sequence[Block]) -> Iterator[tuple[str, list[float | None]]]:
    """Yield header and cells of the columns of numbers."""
    header = rows[0].header.split(" | ")
    for column in range(min(MOST_COLUMNS, max(len(row.cells) for row in rows))):
        check_cancelled()
        cells = [number_of(row.cells[column]) if column < len(row.cells) else None for row in rows]
        if sum(cell is not None for cell in cells) >= max(FEWEST, NUMBERS_SHARE * len(rows)):
            yield header[column] if column < len(header) else "", cells
