"""Questions with known answers, and the documents that they are asked of.

A folder holds `questions.jsonl` and `library/` (`examples/README.md` says in which form).
Not for: other data sets."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cancellation import check_cancelled
from errors import UsageError
from pipeline.fetch.files import read_file
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25
from readers.html.document import read_document
from readers.page import Document

CARRIED: Final = Path(__file__).resolve().parents[1] / "examples"
"""The sample library with its questions; a checkout has it, a wheel does not."""


QUESTIONS: Final = "questions.jsonl"
LIBRARY: Final = "library"


@dataclass(frozen=True, slots=True)
class MeasuredQuestion:
    """One question with what answers it."""

    question: str
    answers: tuple[tuple[str, ...], ...]
    """Facts, each in the wordings that count; empty where the library does not
    answer."""
    pages: tuple[str, ...]
    """File names."""
    split: str = ""

    def is_in(self, text: str) -> bool:
        """Whether every fact is in `text`, in one of its wordings."""
        folded = _folded(text)
        return all(
            any(_folded(wording) in folded for wording in fact) for fact in self.answers
        )


@dataclass(frozen=True, slots=True)
class Library:
    """Questions and the documents that they are asked of."""

    asked: tuple[MeasuredQuestion, ...]
    names: tuple[str, ...]
    documents: tuple[Document, ...]
    index: BM25

    def nearest(
        self, text: str, *, first: Sequence[str] = (), count: int = 3
    ) -> list[Document]:
        """Return `count` documents, or all of `first` where those are more: them, then
        the nearest to `text`."""
        order = [self.names.index(name) for name in first]
        scores = self.index.scores(Question(text))
        order += [
            i
            for i in sorted(range(len(scores)), key=lambda i: -float(scores[i]))
            if i not in order
        ]
        return [self.documents[i] for i in order[: max(count, len(first))]]


def read_library(folder: Path) -> Library:
    """Return the questions and documents of `folder`."""
    questions, documents = folder / QUESTIONS, (folder / LIBRARY).resolve()
    if not questions.is_file() or not documents.is_dir():
        raise UsageError(
            f"{folder} holds no {QUESTIONS} with a folder {LIBRARY} beside it.",
            hint="Name a folder that does; a checkout of Winnow carries one in examples/, an "
            "installed wheel none.",
        )
    paths = sorted(
        path
        for path in documents.iterdir()
        if path.is_file() and not path.name.startswith(".")
    )
    names = tuple(path.name for path in paths)
    asked = [
        _asked(line, number, names)
        for number, line in enumerate(
            questions.read_text("utf-8").splitlines(), start=1
        )
        if line.strip()
    ]
    read = []
    for path in paths:
        check_cancelled()
        read.append(read_document(read_file(path, roots=[documents])))
    if not read or not asked:
        raise UsageError(
            f"{folder} holds {len(asked)} questions and {len(read)} documents.",
            hint="Add what is missing.",
        )
    return Library(
        tuple(asked), names, tuple(read), BM25([document.text for document in read])
    )


def _asked(line: str, number: int, names: Sequence[str]) -> MeasuredQuestion:
    try:
        row = json.loads(line)
        answers = tuple(
            tuple(str(wording) for wording in fact) for fact in row["answers"]
        )
        one = MeasuredQuestion(
            str(row["question"]),
            answers,
            tuple(str(name) for name in row.get("pages", ())),
            str(row.get("split", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise UsageError(
            f"Line {number} of {QUESTIONS} is no question: {e!r}.",
            hint='Use {"question": "…", "answers": [["one wording", "another"]], "pages": '
            '["name.html"]}.',
        ) from e
    strange = [name for name in one.pages if name not in names]
    if strange:
        raise UsageError(
            f"Line {number} of {QUESTIONS} names {strange[0]}, which is not in {LIBRARY}.",
            hint="Correct it.",
        )
    return one


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
