"""Requests with the sentences that answer them (../shared/data/evidence), and how a
ranking of sentences is measured.

What `train/verdict.py` and a test share. Not for: measuring by itself.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from pipeline.reading.bm25 import Floats, PageUnits
from pipeline.text.tokens import count_tokens

ROOT: Final = Path(__file__).resolve().parents[1]
DATA: Final = ROOT.parent / "shared" / "data"
BUDGETS: Final = (256, 512)
Spans = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Case:
    """One request with its page."""

    request: str
    page: PageUnits
    gold: frozenset[int]
    tokens: tuple[int, ...]
    held_out: bool
    seen: bool
    """Whether the ranker's constants were looked at on this request (the first 120 of
    each set)."""
    without: PageUnits
    """Kinds of pages without the answer: its paragraph, its article in HotpotQA, three
    sentences in long documents."""


def measure(scores: Floats, case: Case) -> list[float]:
    """Return R-precision, F1 of the best two, and the share of gold within each of
    `BUDGETS` tokens."""
    order = np.argsort(-scores, kind="stable").tolist()
    k = len(case.gold)
    values = [
        len(case.gold.intersection(order[:k])) / k,
        2 * len(case.gold.intersection(order[:2])) / (k + 2),
    ]
    for budget in BUDGETS:
        used = np.cumsum([case.tokens[row] for row in order])
        values.append(
            len(case.gold.intersection(order[: int((used <= budget).sum())])) / k
        )
    return values


def read_lines(name: str) -> list[dict[str, Any]]:
    """Return the records of a JSON lines file below the data folder."""
    return [
        json.loads(line)
        for line in (DATA / name).read_text(encoding="utf-8").splitlines()
    ]


def read_cases(name: str, limit: int) -> list[Case]:
    """Return the requests of a set with their pages, `limit` of them evenly spread (0:
    all)."""
    texts = {
        record["text_id"]: record
        for record in read_lines(f"evidence/{name}.texts.jsonl")
    }
    questions = list(enumerate(read_lines(f"evidence/{name}.questions.jsonl")))
    step = max(1, len(questions) // limit) if limit else 1
    kept = questions[::step][: limit or None]
    return [
        _case(question, texts[question["text_id"]], place, name)
        for place, question in kept
    ]


def _case(
    question: dict[str, Any], record: dict[str, Any], place: int, name: str
) -> Case:
    text, units = record["text"], record["units"]
    headings = record["headings"] or [""] * len(units)
    gold = {
        row
        for row, (a, b) in enumerate(units)
        for start, end in question["gold"]
        if min(b, end) - max(a, start) >= 0.5 * min(b - a, end - start)
    }
    language = name.removeprefix("xquad_") if name.startswith("xquad_") else ""
    sentences = [" ".join(text[a:b].split()) for a, b in units]
    away = _away(text, units, headings, gold, name)
    kept = [row for row in range(len(units)) if row not in away]
    # The long documents are five: their requests are parted by their own number, all others by
    # their text's.
    part = (
        question["id"]
        if name == "chunkeval"
        else question["text_id"].rpartition("-")[2]
    )
    return Case(
        request=question["request"],
        page=PageUnits(sentences, headings, language),
        gold=frozenset(gold),
        tokens=tuple(count_tokens(text[a:b]) for a, b in units),
        held_out=zlib.crc32(part.encode()) % 2 == 1,
        seen=place < 120,
        without=PageUnits(
            [sentences[row] for row in kept], [headings[row] for row in kept], language
        ),
    )


def _away(
    text: str, units: Spans, headings: Sequence[str], gold: set[int], name: str
) -> set[int]:
    """Rows to cut so that the page no longer answers."""
    if name == "hotpot":
        return {
            row
            for row, heading in enumerate(headings)
            if heading in {headings[g] for g in gold}
        }
    if name == "chunkeval":
        return {g + near for g in gold for near in (-1, 0, 1)}
    paragraphs = [text.count("\n\n", 0, a) for a, _ in units]
    return {
        row
        for row, paragraph in enumerate(paragraphs)
        if paragraph in {paragraphs[g] for g in gold}
    }
