"""A draft against its sources: are its quotations and statements there word for word,
which numbers and names are in no source, which references are there?

Looked up as written: 94000 is not 94,000. Whether a source says what a statement says
is left to the reader, who gets the nearest passage of each. What could not be read is
reported beside what was not found. Not for: taking a draft apart (`draft.py`), or what
an answer looks like (`extras/drafts/answer.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from extras.drafts.draft import CitedText, Draft
from extras.drafts.quotes import Standing, Text, find_quote, unwritten
from pipeline.document.cite import cite
from pipeline.question.question import Question
from pipeline.reading.relevance import Reader
from pipeline.text.frame import opened
from pipeline.work import in_thread, time_left
from readers.page import Document, Failure

Outcome = (
    Standing | Literal["nearest", "in no source"] | Literal["there", "gone", "not read"]
)
COMPLETE: Final = frozenset({"verbatim", "there"})
"""Outcomes of what is found as it is written."""
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

    @property
    def lacks(self) -> bool:
        """Whether something of it was looked for and not found."""
        return self.outcome not in COMPLETE and self.outcome != "nearest"


@dataclass(slots=True)
class Sources:
    """The documents that were read, by their names, and why others were not."""

    documents: Mapping[str, Document]
    unread: Mapping[str, Failure]
    texts: dict[int, Text] = field(default_factory=dict)
    """The words of each document, by its `id`: one may have two names."""

    def __post_init__(self) -> None:
        for document in self.documents.values():
            if id(document) not in self.texts:
                self.texts[id(document)] = Text(document)

    def cited(self, names: tuple[str, ...]) -> list[Text]:
        """Return the cited documents, all where none of them was read."""
        ids = [id(self.documents[name]) for name in names if name in self.documents]
        return [self.texts[key] for key in dict.fromkeys(ids or self.texts)]

    @property
    def nowhere(self) -> str:
        """What nothing was found in: `in no source`, or in none that was read."""
        if not self.unread:
            return "in no source"
        return f"in no source that was read ({len(self.unread)} not read)"


async def check(
    draft: Draft,
    documents: Mapping[str, Document],
    unread: Mapping[str, Failure],
    *,
    reader: Reader,
) -> tuple[Checked, ...]:
    """Check everything in `draft`: quotations, then statements, then references.

    `documents` are by the name that they were asked for with, `unread` says why there
    is none of a name; `reader` orders the passages for a statement. Raises
    `ModelError`. Statements for which no time is left are `not read`."""
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
        _reference(url, title, sources) for url, title in draft.references.items()
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
    """Find a statement word for word, else the passage nearest to it, and which numbers
    and names of it are written in no source."""
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
    missing = await in_thread(unwritten, statement, list(sources.texts.values()))
    outcome: Outcome = "in no source" if missing else "nearest"
    note = f"{sources.nowhere}: {', '.join(missing)}" if missing else ""
    return Checked("statement", cited.text, outcome, citation, words, note)


def _reference(url: str, title: str, sources: Sources) -> Checked:
    """Say whether a reference is there, and under which title."""
    shown_name = f"{title}: {opened(url)}" if title else opened(url)
    failure = sources.unread.get(url)
    if failure is not None:
        outcome: Outcome = "gone" if failure.gone else "not read"
        return Checked("reference", shown_name, outcome, note=failure.reason)
    if url not in sources.documents:
        note = "It is not among the sources."
        return Checked("reference", shown_name, "not read", note=note)
    page = sources.documents[url].page
    note = f"its title is “{page.title}”"
    return Checked("reference", shown_name, "there", page.final_url, note=note)
