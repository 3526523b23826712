"""What the result of a tool says beside its text, for hosts and programs: its parts, as Pydantic
models, and how they are made of passages and pages.

Not for: the text, and what every answer ends with (`answer.py`).
"""

from collections.abc import Container, Iterable, Sequence
from itertools import groupby, repeat
from typing import Any, ClassVar, Final, TypeVar

from pydantic import (
    BaseModel,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from pipeline.document.cite import count_origins
from pipeline.document.page import (
    Document,
    Evidence,
    Reading,
    Trust,
)
from pipeline.document.table import Told
from pipeline.evidence.assemble import Assembled
from pipeline.evidence.show import shortened
from pipeline.evidence.values import cited_row, rows_shown
from pipeline.fetch.handles import page_handle
from pipeline.text.frame import TITLE_TOKENS, address, one_line

WITH_WORDS: Final = "words"
"""Context in which a result is dumped with the words of pages, for readers of the result alone."""
TRUST: Final = "Where the words come from; absent for what the page shows"
HIDDEN: Final = "Words that no reader of the page sees, left out"
SPEAKS: Final = "It speaks to a model that reads it, and is data all the same"
APART: Final = "in the structured result only"
MOST_ROWS: Final = 50
"""Rows of a table in a structured result: more than a text has room for."""


class Part(BaseModel):
    """A result or a part of one, of which `WORDS` are fields that repeat the text.

    They are dumped in the context `WITH_WORDS` only, so that whoever reads text and result pays for
    no word twice.
    """

    WORDS: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _dump(
        self, dump: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> Any:
        told = dump(self)
        if info.context == WITH_WORDS:
            return told
        return {name: value for name, value in told.items() if name not in self.WORDS}


class Next(BaseModel):
    """A call that goes on from an answer."""

    tool: str
    arguments: dict[str, object] = Field(
        description="What changes; the arguments of this call that fit stay"
    )


class Passage(Part):
    """One verbatim passage, which stands in the text under `label`."""

    WORDS = frozenset(("text", "headings"))

    label: str = Field(description="Where the text part shows it, such as 1a")
    link: str = Field(
        description="To be put behind the page's address, so that it opens at these words"
    )
    also: list[str] = Field(
        default=[], description="Citations of other pages that hold the same words"
    )
    score: float = Field(description="0..1, the best unit of all at 1")
    trust: Trust = Field(default="visible", description=TRUST)
    speaks: bool = Field(default=False, description=SPEAKS)
    is_summary: bool = Field(
        default=False, description="Extracted or written over several leaves of a tree"
    )
    sources: list[str] = Field(
        default=[],
        description="For a summary: citations of what it stands on, at most 8",
    )
    text: str = Field(default="", description=f"Its words; {APART}")
    headings: list[str] = Field(
        default=[], description=f"Headings that it stands under; {APART}"
    )


class PartFound(BaseModel):
    """How one part of the question stands."""

    question: str
    verdict: str
    label: str = Field(description="Its best passage, empty for none")


class ComputedValue(Part):
    """What was computed over all rows of a table, which stands in the text."""

    WORDS = frozenset(("what", "value", "table"))

    rows: int = Field(description="Rows that it stands on")
    over: int = Field(description="Rows that were looked at")
    link: str = Field(description="To the first of its rows")
    what: str = Field(default="", description=f"What was computed; {APART}")
    value: str = Field(
        default="", description=f"Empty where its rows are the answer; {APART}"
    )
    table: list[list[str]] = Field(
        default=[],
        description=f"Columns used, then its first {MOST_ROWS} rows not shown elsewhere; {APART}",
    )


class Quoted(Part):
    """What a result has that shows passages."""

    WORDS = frozenset(("titles", "notes"))

    passages: list[Passage] = Field(description="The evidence")
    pages: list[str] = Field(description="Addresses of pages 1, 2, … of the text")
    handles: list[str] = Field(
        description="Of each page: its handle, by which it is read whole; empty for a snippet"
    )
    titles: list[str] = Field(default=[], description=f"Of each page; {APART}")
    hidden: list[int] = Field(default=[], description=f"Of each page: {HIDDEN}")
    left_out: int = Field(description="Parts worth showing that did not fit")
    failures: list[str] = Field(
        description="Sources that could not be read, with the reason"
    )
    notes: list[str] = Field(
        default=[], description=f"What else a reader should know; {APART}"
    )
    next: list[Next] = Field(description="Calls that go on from here, best first")
    tokens: int = Field(description="Tokens of the text")


class Found(Quoted):
    """What a result has that answers a question by passages, or says that none does."""

    answered: bool = Field(description="Whether the passages surely answer")
    verdict: str = Field(
        description="answered; unsure: the nearest passages, which may not answer; none: no passage"
    )
    reason: str
    confidence: float = Field(description="0..1")
    parts: list[PartFound] = Field(
        default=[],
        description="Of a question with several parts each; answered means all",
    )
    computed: list[ComputedValue] = Field(
        default=[], description="What tables tell, computed over all their rows"
    )
    origins: int = Field(
        default=0,
        description="Independent origins of the passages, told where pages share words",
    )


F = TypeVar("F", bound=Found)


def found_in(
    kind: type[F],
    reading: Reading,
    assembled: Assembled,
    read: Sequence[Document],
    documents: Iterable[Document],
    **more: object,
) -> F:
    """Return what a reading of the documents `read` and its passages tell as a result of some kind,
    with `more` of its fields.

    `documents` are those that the passages may be from.
    """
    shown = rows_shown(reading.computed, read, assembled.evidence)
    labels = assembled.parts or repeat("")
    fields = {
        "answered": reading.answered,
        "verdict": reading.verdict,
        "reason": reading.reason,
        "confidence": round(reading.confidence, 4),
        "parts": [
            PartFound(
                question=shortened(one_line(part.question.text), TITLE_TOKENS),
                verdict=part.verdict,
                label=label,
            )
            for part, label in zip(reading.parts, labels, strict=False)
        ],
        "computed": computed_in(reading.computed, read, shown),
        "origins": count_origins(assembled.evidence)
        if any(one.also for one in assembled.evidence)
        else 0,
    }
    return kind.model_validate(fields | shown_in(assembled, documents) | more)


def shown_in(assembled: Assembled, documents: Iterable[Document]) -> dict[str, object]:
    """Return the fields of a result that tell of passages and their pages, and how much was left
    out."""
    handles = {
        document.page.final_url: page_handle(document.page) for document in documents
    }
    pages = [
        next(own)
        for _, own in groupby(assembled.evidence, key=lambda one: (one.url, one.title))
    ]
    return {
        "passages": [
            Passage(
                label=label,
                link=_link(one),
                also=list(one.also),
                score=round(one.score.value, 3),
                trust=one.trust,
                speaks=one.speaks,
                is_summary=one.is_summary,
                sources=list(one.sources),
                text=one.text.removeprefix(
                    f"{label}\n"
                ),  # of an overview, whose labels are headings
                headings=list(map(one_line, one.heading_path)),
            )
            for label, one in zip(
                assembled.shown.labels, assembled.evidence, strict=True
            )
        ],
        "pages": [address(one.url) for one in pages],
        "handles": [handles.get(one.url, "") for one in pages],
        # In an overview a page's title is the label of its passage.
        "titles": [
            "" if one.title in assembled.shown.labels else one_line(one.title)
            for one in pages
        ],
        "hidden": [one.hidden for one in pages]
        if any(one.hidden for one in pages)
        else [],
        "left_out": assembled.left_out,
    }


def computed_in(
    computed: Iterable[Told],
    documents: Sequence[Document],
    shown: Container[tuple[int, int]],
) -> list[ComputedValue]:
    """Return what tables tell, each with the first of its rows, and with those that are not `shown`
    elsewhere."""
    return [
        ComputedValue(
            rows=len(told.rows),
            over=told.over,
            link=cited_row(told, documents),
            what=one_line(told.what),
            value=one_line(told.value),
            table=_rows_of(told, shown),
        )
        for told in computed
    ]


def _rows_of(told: Told, shown: Container[tuple[int, int]]) -> list[list[str]]:
    rows = [
        row for row in told.rows if (told.document, told.table.blocks[row]) not in shown
    ]
    if not rows:
        return []
    lines = [told.table.columns, *(told.table.rows[row] for row in rows[:MOST_ROWS])]
    return [[one_line(line[column]) for column in told.columns] for line in lines]


def _link(one: Evidence) -> str:
    """Return the fragment of a passage's citation, or the whole citation where it is no fragment of
    the page."""
    return one.citation.removeprefix(one.url.partition("#")[0])
