"""Long documents with questions and their gold spans: what `bench.raptor` measures
with.

From ../shared/data: policies, meetings and papers of `longdoc`, long texts of
`evidence/chunkeval`. Not for: building or asking trees."""

import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from readers.page import Block, Document, Page
from readers.tree import Node

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
FAR: Final = 10**9
"""More tokens than any text has: no bound on a segment."""
MEETINGS: Final = "qmsum_s"
SETS: Final = ("policyqa", MEETINGS, "covidqa", "chunkeval")
DRAWS: Final = 1000
"""Draws of the bootstrap after every interval."""

Spans = list[tuple[int, int, int]]
"""Document index, start, end."""
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its gold spans."""

    text: str
    gold: Spans
    """Empty where only an answer is known."""
    answers: tuple[str, ...] = ()
    """What people wrote as its answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """Documents that are under one tree, and the questions put to it."""

    documents: list[Document]
    questions: list[Question]


def document_of(text: str, name: str) -> Document:
    """Return plain text without a title as a document whose offsets are those of
    `text`: one block a paragraph."""
    blocks = [
        Block(
            f"p{n}",
            (),
            " ".join(m.group().split()),
            "",
            "paragraph",
            m.start(),
            m.end(),
        )
        for n, m in enumerate(re.finditer(r"\S[^\n]*(?:\n(?!\s*\n)[^\n]+)*", text))
    ]
    digest = hashlib.sha256(text.encode()).hexdigest()
    page = Page(name, name, "", "", "text/plain", "en", content_hash=digest)
    return Document(page, "", text, tuple(blocks), Node("body"))


def read_lines(path: Path) -> list[Row]:
    """Return the objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def is_odd(name: str) -> bool:
    """Whether a question belongs to the half that nothing was chosen on."""
    return zlib.crc32(name.encode()) % 2 == 1


def groups_of(
    name: str, *, most: int | None = None, halves: bool = True, answered: bool = False
) -> list[Group]:
    """Return the documents of one set with their questions: together where the set is a
    corpus, else one by one.

    Args:
        name: One of `SETS`.
        most: Only the documents with most questions, this many; None takes all.
        halves: Only the half of the questions that nothing was chosen on.
        answered: Also questions without gold spans that have an answer.
    """
    texts, rows, corpus = _read(name)
    wanted_rows = [
        row
        for row in rows
        if (row["gold"] or answered) and (not halves or is_odd(str(row["id"])))
    ]
    counts = Counter(
        str(key) for row in wanted_rows for key in cast("list[str]", row["docs"])
    )
    wanted = {key for key, _ in counts.most_common(most)} if most else set(texts)
    texts = {key: text for key, text in texts.items() if key in wanted}
    groups: list[Group] = []
    for keys in [list(texts)] if corpus else [[key] for key in texts]:
        place = {key: n for n, key in enumerate(keys)}
        questions = [
            _question(row, place)
            for row in wanted_rows
            if set(cast("list[str]", row["docs"])) <= set(place)
        ]
        if questions:
            named = [
                document_of(texts[key], f"https://example.org/{name}/{key}")
                for key in keys
            ]
            groups.append(Group(named, questions))
    return groups


def _read(name: str) -> tuple[dict[str, str], list[Row], bool]:
    """The texts by key, the questions as rows of `longdoc`, and whether the texts are
    one corpus."""
    if name == "chunkeval":
        folder = DATA / "evidence"
        texts = {
            str(row["text_id"]): str(row["text"])
            for row in read_lines(folder / f"{name}.texts.jsonl")
        }
        rows: list[Row] = []
        for row in read_lines(folder / f"{name}.questions.jsonl"):
            key = row["text_id"]
            gold = [
                {"doc": key, "start": start, "end": end}
                for start, end in cast("list[list[int]]", row["gold"])
            ]
            rows.append(
                {
                    "id": row["id"],
                    "question": row["request"],
                    "docs": [key],
                    "gold": gold,
                }
            )
        return texts, rows, False
    folder = DATA / "longdoc" / name
    texts = {
        str(row["id"]): str(row["text"]) for row in read_lines(folder / "docs.jsonl")
    }
    corpus = json.loads((folder / "meta.json").read_text())["scope"] == "corpus"
    return texts, read_lines(folder / "queries.jsonl"), corpus


def _question(row: Row, place: dict[str, int]) -> Question:
    gold = cast("list[dict[str, int | str]]", row["gold"])
    spans = [
        (place[str(span["doc"])], int(span["start"]), int(span["end"])) for span in gold
    ]
    return Question(
        str(row["question"]),
        spans,
        tuple(map(str, cast("list[str]", row.get("answers") or []))),
    )


def recall(gold: Spans, spans: Spans) -> float:
    """Share of the gold characters that `spans` cover."""
    hit = total = 0
    for document, start, end in gold:
        covered = np.zeros(end - start, dtype=bool)
        for other, low, high in spans:
            if other == document and low < end and high > start:
                covered[max(low, start) - start : min(high, end) - start] = True
        hit += int(covered.sum())
        total += end - start
    return hit / total if total else 0.0


def interval(differences: NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of the mean by a seeded bootstrap over questions."""
    generator = np.random.default_rng(7)
    draws = generator.integers(len(differences), size=(DRAWS, len(differences)))
    low, high = np.percentile(differences[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def reported(
    what: str, ours: Sequence[float], theirs: Sequence[float]
) -> tuple[str, float, float, float]:
    """Return a line about the paired difference of two methods, then its mean and its
    interval."""
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(
        theirs, dtype=np.float64
    )
    low, high = interval(difference)
    mean = float(difference.mean())
    verdict = "above" if low > 0 else "below" if high < 0 else "level"
    return f"  {what}: {mean:+.3f} [{low:+.3f}, {high:+.3f}] {verdict}", mean, low, high
