"""The questions and documents that a generator is measured on, and rows of what comes out.

A folder of data holds `questions.jsonl` (an object a line: `question`; `answers`, a list of facts, each a list of
wordings, empty where nothing answers; `pages`, the file names that answer) and the documents in `library/`. A checkout
carries one in `examples/`. Not for: measuring (`steps.py`).
"""

import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Final, TypeVar

from cli.measure.watched import Watched
from errors import UsageError
from models.protocols import Embedder, Generator
from pipeline.documents import Document
from pipeline.extract.tag import tag_sentences
from pipeline.fetch.files import read_file
from pipeline.html.document import read_document
from pipeline.rank.bm25 import BM25
from pipeline.rank.relevance import Reader
from pipeline.work import Report, check_cancelled

QUESTIONS: Final = "questions.jsonl"
LIBRARY: Final = "library"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with what answers it."""

    question: str
    answers: tuple[tuple[str, ...], ...]
    """Facts, each in the wordings that count; empty where the library does not answer."""
    pages: tuple[str, ...]
    """File names."""

    def is_in(self, text: str) -> bool:
        """Whether every fact stands in `text`, in one of its wordings."""
        folded = _folded(text)
        return all(any(_folded(wording) in folded for wording in fact) for fact in self.answers)


@dataclass(frozen=True, slots=True)
class Library:
    """Questions and the documents that they are asked of."""

    asked: tuple[Asked, ...]
    names: tuple[str, ...]
    documents: tuple[Document, ...]
    index: BM25
    """Words of the documents, whole."""

    def nearest(self, text: str, *, first: Sequence[str] = (), count: int = 3) -> list[Document]:
        """Return `count` documents, or all of `first` where those are more: them, then the nearest to `text`."""
        order = [self.names.index(name) for name in first]
        scores = self.index.scores(text)
        order += [i for i in sorted(range(len(scores)), key=lambda i: -float(scores[i])) if i not in order]
        return [self.documents[i] for i in order[: max(count, len(first))]]


@dataclass(frozen=True, slots=True)
class Setup:
    """What every step is measured with."""

    library: Library
    generator: Generator
    embedder: Embedder | None
    reader: Reader
    """What judges units, as the tools have it."""
    today: date
    limit: int
    """Most questions, documents or clusters of a step."""
    seconds: float
    """Patience for one call; the figures are not about the deadline of a tool."""
    report: Report

    @property
    def answerable(self) -> list[Asked]:
        """Questions that the library answers, `limit` of them evenly spread."""
        return some([one for one in self.library.asked if one.answers and one.pages], self.limit)

    @property
    def unanswerable(self) -> list[Asked]:
        """Questions that it does not answer, likewise."""
        return some([one for one in self.library.asked if not one.answers], self.limit)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure by rules and by the model."""

    step: str
    what: str
    n: int = 0
    rules: float | None = None
    """None where the rules have no such figure."""
    model: float | None = None
    """None where the model could not be asked; `note` says why."""
    tokens: int | None = None
    """Tokens that went through the model for this row and those of the step that stand without a number."""
    seconds: float | None = None
    failed: int = 0
    note: str = ""


@dataclass(slots=True)
class Figure:
    """One figure's values by rules (none where they have no such figure) and by the model; the row has their means."""

    what: str
    rules: list[float] = field(default_factory=list)
    model: list[float] = field(default_factory=list)


class Table:
    """The rows of one step in the making, and the generator that it asks."""

    def __init__(self, step: str, setup: Setup) -> None:
        self.watched = Watched(setup.generator)
        self._step = step
        self._report = setup.report
        self._figures: list[Figure] = []

    def figure(self, what: str) -> Figure:
        """Return a new figure, whose row comes after those of the ones before."""
        self._figures.append(Figure(what))
        return self._figures[-1]

    async def each(self, items: Sequence[T]) -> AsyncIterator[T]:
        """Yield the items, and report after each."""
        for number, item in enumerate(items):
            yield item
            await self._report(number + 1, len(items), self._step)

    async def rows(self) -> list[Row]:
        """Return a row a figure; the first tells what the generator spent."""
        rows = [
            Row(self._step, one.what, max(len(one.rules), len(one.model)), _mean(one.rules), _mean(one.model))
            for one in self._figures
        ]
        asked, tokens = self.watched, await self.watched.tokens()
        rows[0] = replace(rows[0], tokens=tokens, seconds=asked.seconds, failed=asked.failed, note=asked.fault)
        return rows


def read_library(folder: Path) -> Library:
    """Return the questions and documents of `folder`."""
    questions, documents = folder / QUESTIONS, folder / LIBRARY
    if not questions.is_file() or not documents.is_dir():
        raise UsageError(
            f"{folder} holds no {QUESTIONS} with a folder {LIBRARY} beside it.",
            hint="Name a folder that does; a checkout of Winnow carries one in examples/, an installed wheel none.",
        )
    paths = sorted(path for path in documents.iterdir() if path.is_file() and not path.name.startswith("."))
    names = tuple(path.name for path in paths)
    asked = [
        _asked(line, number, names)
        for number, line in enumerate(questions.read_text("utf-8").splitlines(), start=1)
        if line.strip()
    ]
    read = []
    for path in paths:
        check_cancelled()
        read.append(read_document(read_file(path, roots=[documents.resolve()])))
    if not read or not asked:
        raise UsageError(
            f"{folder} holds {len(asked)} questions and {len(read)} documents.", hint="Add what is missing."
        )
    return Library(tuple(asked), names, tuple(read), BM25([document.text for document in read]))


def _asked(line: str, number: int, names: Sequence[str]) -> Asked:
    try:
        row = json.loads(line)
        answers = tuple(tuple(str(wording) for wording in fact) for fact in row["answers"])
        one = Asked(str(row["question"]), answers, tuple(str(name) for name in row.get("pages", ())))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise UsageError(
            f"Line {number} of {QUESTIONS} is no question: {e!r}.",
            hint='Use {"question": "…", "answers": [["one wording", "another"]], "pages": ["name.html"]}.',
        ) from e
    strange = [name for name in one.pages if name not in names]
    if strange:
        raise UsageError(
            f"Line {number} of {QUESTIONS} names {strange[0]}, which is not in {LIBRARY}.", hint="Correct it."
        )
    return one


def strung(documents: Sequence[Document], count: int) -> list[list[list[str]]]:
    """Return at most `count` documents of 3 to 10 paragraphs from different pages, each a list of sentences.

    Paragraphs are those of 3 to 9 sentences in the library's commonest language; where one ends, the subject changes.
    Equal documents give equal paragraphs in equal order.
    """
    languages = [document.page.language[:2].lower() for document in documents]
    common = max(sorted(set(languages)), key=languages.count, default="")
    piles = [_paragraphs(document) for document, code in zip(documents, languages, strict=True) if code == common]
    draw = random.Random(0)
    for pile in piles:
        draw.shuffle(pile)
    made: list[list[list[str]]] = []
    while len(made) < count:
        # The fullest piles first, so that the pages last as long as they can; one page gives one paragraph.
        full = sorted((pile for pile in piles if pile), key=len, reverse=True)[:10]
        if len(full) < 3:
            break
        parts = [pile.pop() for pile in full]
        draw.shuffle(parts)
        made.append(parts)
    return made


def _paragraphs(document: Document) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for sentence in tag_sentences(document):
        block = document.blocks[sentence.block]
        if block.main and block.kind == "paragraph":
            found.setdefault(sentence.block, []).append(sentence.text)
    return [texts for texts in found.values() if 3 <= len(texts) <= 9]


def some(items: Sequence[T], limit: int) -> list[T]:
    """Return at most `limit` of `items`, evenly spread, in their order."""
    if len(items) <= limit:
        return list(items)
    return [items[number * len(items) // limit] for number in range(limit)]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
