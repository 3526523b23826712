"""A draft against its sources: are its quotations there word for word, which numbers,
dates and names of its statements are in no source, does each reference exist?

Facts only: whether a source says what a statement says is left to the reader, who gets
the nearest passage of each. What could not be read is reported beside what was not
found. Not for: taking a draft apart (`draft.py`), or what an answer looks like
(`extras/drafts/answer.py`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from extras.drafts.details import (
    SourceDetails,
    has_details,
    missing_details,
    source_details,
)
from extras.drafts.draft import CitedText, Draft, Reference
from extras.drafts.quotes import Standing, Text, find_quote
from pipeline.document.cite import cite
from pipeline.document.page import Document, Failure
from pipeline.document.units import tag_sentences
from pipeline.question.question import Question
from pipeline.reading.bm25 import PageUnits, page_units
from pipeline.reading.relevance import Reader
from pipeline.search.chain import Findings as Works
from pipeline.text.words import index_terms
from pipeline.work import in_thread, time_left

Outcome = (
    Standing
    | Literal["in the sources", "in no source", "no number, date or name"]
    | Literal["there", "another title", "retracted", "gone", "not read"]
)
COMPLETE: Final = frozenset(
    {"verbatim", "in the sources", "no number, date or name", "there"}
)
"""Results in which nothing is missing."""
TITLE_SHARE: Final = 0.5
"""Share of a title's words that a page's own title must have, either way: drafts
shorten titles and add the site."""
LEFT: Final = 0.15
"""Part of a call's time from which no further statement is looked up."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One quotation, statement or reference, with its result."""

    kind: Literal["quote", "statement", "reference"]
    text: str
    outcome: Outcome
    citation: str = ""
    """Opens the nearest source at its words; empty for none."""
    words: str = ""
    """The source's words, verbatim."""
    note: str = ""
    """What differs, what is in no source, or why nothing was looked up."""


class Sources:
    """The documents that were read, as quotations and statements are looked up in
    them."""

    def __init__(
        self, documents: Mapping[str, Document], unread: Mapping[str, Failure]
    ) -> None:
        """Split documents, by their names, into words and units; `unread` says why
        there is no document of a name."""
        self.unread = unread
        self._texts: dict[int, Text] = {}
        self._units: dict[int, PageUnits] = {}
        self._spans: dict[int, list[tuple[int, int]]] = {}
        self._details: dict[str, SourceDetails] = {}
        self._by_name = {name: id(document) for name, document in documents.items()}
        for document in documents.values():
            if id(document) not in self._texts:
                tagged = tag_sentences(document)
                self._texts[id(document)] = Text(document)
                self._units[id(document)] = page_units(document, tagged)
                self._spans[id(document)] = [(one.start, one.end) for one in tagged]

    def named(self, cited: Sequence[str]) -> list[int]:
        """Return the keys of the cited documents, of all where none of them was
        read."""
        keys = [self._by_name[name] for name in cited if name in self._by_name]
        return keys or list(self._texts)

    def texts(self, keys: Sequence[int]) -> list[Text]:
        """Return the words of documents."""
        return [self._texts[key] for key in keys]

    def units(self, keys: Sequence[int]) -> list[PageUnits]:
        """Return the units of documents."""
        return [self._units[key] for key in keys]

    def passage(self, keys: Sequence[int], row: int) -> tuple[str, str]:
        """Return the citation and the words of the unit `row` among those of
        documents, numbered through."""
        places = [(key, span) for key in keys for span in self._spans[key]]
        key, (start, end) = places[row]
        document = self._texts[key].document
        words = " ".join(document.text[start:end].split())
        return cite(document, start, end), words

    def details(self, language: str) -> SourceDetails:
        """Return the numbers, dates and words of all documents."""
        if language not in self._details:
            written = [text.document.text for text in self._texts.values()]
            self._details[language] = source_details(written, language)
        return self._details[language]

    @property
    def qualified(self) -> str:
        """Return in how much of the sources something was looked up: `in no source`,
        or in those that were read."""
        if not self.unread:
            return "in no source"
        read, lost = len(self._texts), len(self.unread)
        return (
            f"in none of the {read} source{'s' * (read != 1)} read "
            f"({lost} {'was' if lost == 1 else 'were'} not read)"
        )


async def check(
    draft: Draft,
    documents: Mapping[str, Document],
    unread: Mapping[str, Failure],
    works: Works,
    *,
    reader: Reader,
) -> tuple[Checked, ...]:
    """Check everything in `draft`: quotations, then statements, then references.

    `documents` are by the name that they were asked for with, `unread` says why there
    is none of a name, `works` what catalogues of research know of the DOIs that it
    cites; `reader` orders the passages for a statement. Raises `ModelError`. Statements
    for which no time is left are `not read`."""
    # 1. Words and units of every source, once
    sources = await in_thread(Sources, documents, unread)
    # 2. Quotations, word for word
    results = await in_thread(
        lambda: [_quotation(quote, sources) for quote in draft.quotes]
    )
    # 3. Statements, as far as there is time
    enough = LEFT * time_left()
    for statement in draft.statements:
        if time_left() < enough:
            late = "No time was left: check fewer items at once."
            results.append(Checked("statement", statement.text, "not read", note=late))
        else:
            results.append(
                await _statement(statement.text, statement.cited, sources, reader)
            )
    # 4. References
    references = (
        _reference(reference, documents, unread, works)
        for reference in draft.references
    )
    return (*results, *references)


def _quotation(quote: CitedText, sources: Sources) -> Checked:
    """Look a quotation up in the sources that it cites, then in all."""
    match = find_quote(quote.text, sources.texts(sources.named(quote.cited)))
    note = "; ".join(
        f"quoted “{quoted}”, source has “{actual}”"
        if quoted and actual
        else f"added “{quoted}”"
        if quoted
        else f"left out “{actual}”"
        for quoted, actual in match.differs
    )
    if match.standing == "nowhere":
        note = sources.qualified
        elsewhere = find_quote(quote.text, sources.texts(sources.named(())))
        if elsewhere.standing == "verbatim":
            match = elsewhere
            note = "not in the cited source, but in another"
            return Checked("quote", quote.text, "nowhere", match.url, note=note)
    return Checked("quote", quote.text, match.standing, match.url, match.words, note)


async def _statement(
    text: str, cited: Sequence[str], sources: Sources, reader: Reader
) -> Checked:
    """Find the passage nearest to a statement, and what of it no source has."""
    keys = sources.named(cited)
    units = sources.units(keys)
    if not any(page.texts for page in units):
        lost = "; ".join(
            f"{name}: {why.reason}" for name, why in sources.unread.items()
        )
        note = lost or "The sources contain no text."
        return Checked("statement", text, "not read", note=note)
    statement = Question(text)
    relevance = await reader.read(statement, units)
    nearest = int(np.argmax(relevance.values))
    citation, words = sources.passage(keys, nearest)
    missing = await in_thread(
        lambda: missing_details(
            text, statement.language, sources.details(statement.language)
        )
    )
    if missing:
        note = f"{sources.qualified}: {', '.join(missing)}"
        return Checked("statement", text, "in no source", citation, words, note)
    outcome: Outcome = (
        "in the sources"
        if has_details(text, statement.language)
        else "no number, date or name"
    )
    return Checked("statement", text, outcome, citation, words)


def _reference(
    reference: Reference,
    documents: Mapping[str, Document],
    unread: Mapping[str, Failure],
    works: Works,
) -> Checked:
    """Say whether a reference is there, by what a catalogue has of its DOI, else by its
    page, and under which title."""
    name = f"{reference.title}: {reference.url}" if reference.title else reference.url
    listed = (
        work for work in works.results if reference.doi and work.doi == reference.doi
    )
    work = next(listed, None)
    if work is not None and work.retracted:
        note = f"retracted, as {work.engine} says"
        return Checked("reference", name, "retracted", work.url, note=note)
    failure = unread.get(reference.url)
    if failure is not None and (failure.gone or work is None):
        outcome: Outcome = "gone" if failure.gone else "not read"
        return Checked("reference", name, outcome, note=failure.reason)
    page = documents[reference.url].page if reference.url in documents else None
    found = work or page
    if found is None:
        note = "It is not among the sources."
        return Checked("reference", name, "not read", note=note)
    address = page.final_url if page else found.url
    given, titled = set(index_terms(reference.title)), set(index_terms(found.title))
    shared = len(given & titled)
    if given and titled and shared < TITLE_SHARE * min(len(given), len(titled)):
        note = f"its title is “{found.title}”"
        return Checked("reference", name, "another title", address, note=note)
    return Checked("reference", name, "there", address)
