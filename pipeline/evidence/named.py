"""Parts that a question asks for as a whole: sections named by their heading, complete
lists, the steps of one page.

A heading matches if the question contains each of its words or a synonym
(`sections.same` in the word tables), words of the page's title aside. Not for: choosing
and filling (`passages.py`)."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pipeline.document.page import Document, Sentence
from pipeline.question.question import Question
from pipeline.text.words import (
    index_terms,
    meanings,
    raw_words,
)

CERTAIN: Final = 2
"""Minimum words of a heading to match by all its words in the question."""
LONG_HEADING_WORDS: Final = 5
"""Words of a heading from which the question may lack one of them."""
MOST_UNITS: Final = 400
"""Units of a section beyond which it is a chapter, and never whole in an answer."""


class Section(NamedTuple):
    """Units [start, stop) of one document under a heading, with the heading at
    `start`."""

    start: int
    stop: int


def named_sections(
    documents: Sequence[Document],
    tagged: Sequence[Sequence[Sentence]],
    question: Question,
) -> Iterator[Section]:
    """Yield the sections of all documents whose heading `question` names, numbered
    through all documents. One of more than `MOST_UNITS` is left out; an inner section
    comes before the one around it."""
    language, asked = question.language, question.whole
    known = {*question.terms(), *_alike(question.text, language)}
    first = 0
    for document, units in zip(documents, tagged, strict=True):
        title = _terms(document.page.title, language)
        for start, stop in _sections(document, units):
            heading = _terms(units[start].text, language)
            # The page title is not a section: naming it means the page.
            if asked.all or asked.sample or not units[start].heading_path:
                heading -= title
            own = {term for term in heading if not _is_number(term)}
            lacks = len(own - known)
            whole = bool(own) and (
                lacks <= len(own) // LONG_HEADING_WORDS
                or _compound(units[start].text, language) in known
            )
            if (
                whole
                and (len(own) >= CERTAIN or asked.all or asked.sample)
                and stop - start <= MOST_UNITS
            ):
                yield Section(first + start, first + stop)
        first += len(units)


def _sections(
    document: Document, units: Sequence[Sentence]
) -> Iterator[tuple[int, int]]:
    """Yield the range of each heading and the units under it, sections inside included;
    inner ones come first."""
    opened: list[tuple[int, int]] = []
    for number, unit in enumerate(units):
        if document.blocks[unit.block].kind != "heading":
            continue
        depth = len(unit.heading_path)
        while opened and opened[-1][1] >= depth:
            yield opened.pop()[0], number
        opened.append((number, depth))
    yield from ((start, len(units)) for start, _ in opened)


def _terms(text: str, language: str) -> set[str]:
    return set(index_terms(text, language=language))


def _is_number(term: str) -> bool:
    """Whether a term is the number of a section, as `26.3.3`."""
    return term.replace(".", "").isdecimal()


def _compound(heading: str, language: str) -> str:
    """Return a heading's words as one, as programs write them: `TaskGroup` for "Task
    Groups"."""
    return "".join(index_terms("".join(raw_words(heading)), language=language))


def _alike(question: str, language: str) -> set[str]:
    """Return the terms of headings that mean what the question says: "exit status" for
    "exit codes"."""
    lowered = question.casefold()
    found = (
        heading
        for said, heading in meanings("sections.same", language).items()
        if said in lowered
    )
    return {term for heading in found for term in _terms(heading, language)}
