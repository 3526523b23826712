"""Looks for questions and texts of the evaluation among what is trained on: runs of 13
equal words.

`python -m papers.recipes.datasheet --check` looks through all of it. A question of fewer words
is compared whole. Pages that evaluation questions are asked on may hold none of ours.
Not for: dropping what was found, which is done by hand where a source is read
(`data.py`)."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from train.reader.data import ROOT, SHARED, Corpus, own_rows

RUN: Final = 13
LICENCE: Final = "open-access article distributed under the terms"
"""A common phrase of half of all papers, not specific to one."""
_WORD: Final = re.compile(r"\w+")


def runs(text: str) -> Iterator[tuple[str, ...]]:
    """Yield all runs of `RUN` words; a shorter text whole."""
    words = _WORD.findall(text.lower())
    for start in range(max(1, len(words) - RUN + 1)):
        yield tuple(words[start : start + RUN])


def judged_questions() -> set[str]:
    """Return the questions that Winnow is judged by: nothing of them may be trained on.
    Pairs whose part is "train" are made for it and are not among them."""
    files = [
        SHARED / "asked" / "questions.jsonl",
        SHARED / "html_qa" / "questions.jsonl",
        *(SHARED / "evidence").glob("*.questions.jsonl"),
        *(ROOT / "bench" / "asked").glob("*.jsonl"),
        ROOT / "examples" / "questions.jsonl",
    ]
    fields = ("question", "request", "twin")
    return {
        row[field]
        for path in files
        for row in _judged(path)
        for field in fields
        if row.get(field)
    }


def judged_texts() -> set[str]:
    """Return the texts of data sets whose questions have texts of their own."""
    return {
        row["text"]
        for path in (SHARED / "evidence").glob("*.texts.jsonl")
        for row in _rows(path)
    }


def judged_pages() -> set[str]:
    """Return the pages, or files, that questions as people ask them were written on."""
    files = [
        SHARED / "asked" / "questions.jsonl",
        *(ROOT / "bench" / "asked").glob("*.jsonl"),
    ]
    return {
        str(row.get("page") or row.get("document") or row["file"])
        for path in files
        for row in _judged(path)
        if "over" not in row  # asked over a whole folder
    }


def found_in(known: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Return those of `texts` that share a run of words with one of `known`."""
    marked = {run for text in known for run in runs(text) if run}
    return [text for text in texts if any(run in marked for run in runs(text))]


def findings(corpus: Corpus) -> dict[str, list[str]]:
    """Return, by what it is, the training side of each overlap."""
    questions = [question.question for question in corpus.questions]
    sentences = [
        sentence for text in corpus.texts.values() for sentence in text.sentences
    ]
    long = [
        sentence
        for sentence in sentences
        if len(_WORD.findall(sentence)) >= RUN and LICENCE not in sentence
    ]
    asked = {str(row["page"]) for row in own_rows() if row["split"] == "train"}
    return {
        "question": found_in(judged_questions(), questions),
        "sentence": found_in(judged_texts(), long),
        "page": sorted(asked & judged_pages()),
    }


def _judged(path: Path) -> Iterator[dict[str, str]]:
    return (row for row in _rows(path) if row.get("part") != "train")


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())
