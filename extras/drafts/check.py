"""A draft against its sources: are its quotations there word for word, which numbers,
dates and names of its statements are in no source, does each reference exist?

Facts only: whether a source says what a statement says is left to the reader, who gets
the nearest passage of each. What could not be read is reported beside what was not
found. Not for: taking a draft apart (`draft.py`), or what an answer looks like
(`extras/drafts/answer.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from extras.drafts.details import SourceDetails, missing_details, source_details
from extras.drafts.draft import CitedText, Draft, Reference
from extras.drafts.quotes import Standing, Text, find_quote
from pipeline.document.cite import cite
from pipeline.question.question import Question
from pipeline.reading.relevance import Reader
from pipeline.search.chain import Findings as Works
from pipeline.text.frame import opened
from pipeline.text.words import index_terms
from pipeline.work import in_thread, time_left
from readers.page import Document, Failure

Outcome = (
    Standing
    | Literal["numbers and names occur", "in no source", "no number, date or name"]
    | Literal["there", "another title", "retracted", "gone", "not read"]
)
UNCHECKED: Final = "no number, date or name"
"""Outcome of a statement of which nothing can be looked up."""
COMPLETE: Final = frozenset({"verbatim", "numbers and names occur", "there"})
"""Outcomes in which nothing is missing; a statement may be false all the same."""
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


@dataclass(slots=True)
class Sources:
    """The documents that were read, by their names, and why others were not."""

    documents: Mapping[str, Document]
    unread: Mapping[str, Failure]
    texts: dict[int, Text] = field(default_factory=dict)
    """The words of each document, by its `id`: one may have two names."""
    _details: dict[str, SourceDetails] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for document in self.documents.values():
            if id(document) not in self.texts:
                self.texts[id(document)] = Text(document)

    def cited(self, names: tuple[str, ...]) -> list[Text]:
        """Return the cited documents, all where none of them was read."""
        ids = [id(self.documents[name]) for name in names if name in self.documents]
        return [self.texts[key] for key in dict.fromkeys(ids or self.texts)]

    def details(self, language: str) -> SourceDetails:
        """Return the numbers, dates and words of all documents."""
        if language not in self._details:
            written = [text.document.text for text in self.texts.values()]
            self._details[language] = source_details(written, language)
        return self._details[language]

    @property
    def nowhere(self) -> str:
        """Where something was looked up: `in no source`, or in those that were read."""
        if not self.unread:
            return "in no source"
        read, lost = len(self.texts), len(self.unread)
        return (
            f"in {f'none of the {read} sources' if read != 1 else 'not the one source'} read "
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
    # 1. The words of every source, once
    sources = await in_thread(Sources, documents, unread)
    # 2. Quotations, word for word
    results = await in_thread(
        lambda: [_quotation(quote, sources) for quote in draft.quotes]
    )
    # 3. Statements, as far as there is time
    enough = LEFT * time_left()
    for statement in draft.statements:
        results.append(
            await _statement(statement, sources, reader)
            if time_left() >= enough
            else _unread(statement, "No time was left: check fewer items at once.")
        )
    # 4. References
    references = (
        _reference(reference, sources, works) for reference in draft.references
    )
    return (*results, *references)


def _quotation(quote: CitedText, sources: Sources) -> Checked:
    """Look a quotation up in the sources that it cites, then in all."""
    match = find_quote(quote.text, sources.cited(quote.cited))
    if match.standing != "nowhere":
        note = "; ".join(
            f"quoted “{quoted}”, source has “{actual}”"
            if quoted and actual
            else f"added “{quoted}”"
            if quoted
            else f"left out “{actual}”"
            for quoted, actual in match.differs
        )
        return Checked(
            "quote", quote.text, match.standing, match.url, match.words, note
        )
    elsewhere = find_quote(quote.text, sources.cited(()))
    if elsewhere.standing == "verbatim":
        note = "not in the cited source, but in another"
        return Checked("quote", quote.text, "nowhere", elsewhere.url, note=note)
    return Checked("quote", quote.text, "nowhere", note=sources.nowhere)


def _unread(statement: CitedText, note: str) -> Checked:
    return Checked("statement", statement.text, "not read", note=note)


async def _statement(cited: CitedText, sources: Sources, reader: Reader) -> Checked:
    """Find a statement word for word, else the passage nearest to it, and what of it no
    source has."""
    texts = sources.cited(cited.cited)
    spans = [(text.document, unit) for text in texts for unit in text.tagged]
    if not spans:
        lost = (f"{name}: {why.reason}" for name, why in sources.unread.items())
        return _unread(cited, "; ".join(lost) or "The sources contain no text.")
    match = await in_thread(find_quote, cited.text, texts)
    if match.standing == "verbatim":
        return Checked("statement", cited.text, "verbatim", match.url)
    statement = Question(cited.text)
    relevance = await reader.read(statement, [text.units for text in texts])
    nearest = int(np.argmax(relevance.values))
    document, unit = spans[nearest]
    citation = cite(document, unit.start, unit.end)
    # The next sentence of the paragraph may take back what this one says.
    stop = max(
        following.end
        for owner, following in spans[nearest : nearest + 2]
        if owner is document and following.block == unit.block
    )
    words = " ".join(document.text[unit.start : stop].split())
    language = statement.language
    details = await in_thread(sources.details, language)
    missing = missing_details(cited.text, language, details)
    outcome: Outcome = "numbers and names occur"
    if missing:
        outcome = "in no source"
    elif not missing_details(cited.text, language, SourceDetails()):
        outcome = UNCHECKED
    note = f"{sources.nowhere}: {', '.join(missing)}" if missing else ""
    return Checked("statement", cited.text, outcome, citation, words, note)


def _reference(reference: Reference, sources: Sources, works: Works) -> Checked:
    """Say whether a reference is there, by what a catalogue has of its DOI, else by its
    page, and under which title."""
    url, title = reference.url, reference.title
    shown_name = f"{title}: {opened(url)}" if title else opened(url)

    def outcome(result: Outcome, citation: str = "", note: str = "") -> Checked:
        return Checked("reference", shown_name, result, citation, note=note)

    doi = reference.doi
    work = next((work for work in works.results if doi and work.doi == doi), None)
    if work is not None and work.retracted:
        return outcome("retracted", work.url, f"retracted, as {work.engine} says")
    failure = sources.unread.get(url)
    if failure is not None and (failure.gone or work is None):
        return outcome("gone" if failure.gone else "not read", note=failure.reason)
    page = sources.documents[url].page if url in sources.documents else None
    entry = work or page
    if entry is None:
        return outcome("not read", note="It is not among the sources.")
    address = page.final_url if page else entry.url
    cited_words, title_words = set(index_terms(title)), set(index_terms(entry.title))
    shortest = min(len(cited_words), len(title_words))
    if len(cited_words & title_words) < TITLE_SHARE * shortest:
        return outcome("another title", address, f"its title is “{entry.title}”")
    return outcome("there", address)
