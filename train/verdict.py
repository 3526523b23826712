"""Fits the weights of the verdict's gate (`pipeline/reading/verdict.py`) and prints them.

    python -m train.verdict [--limit REQUESTS]

Data: the half of ../shared/data/evidence called tuned (texts are parted by their number),
the sample library's dev questions, the dev part of the reader's questions with their
twins. How good the verdict is: `python -m bench run SET --twins`."""

import argparse
import json
from collections.abc import Sequence
from typing import Final

import anyio
import numpy as np

from bench.evidence import ROOT, read_cases
from bench.html_questions import document
from bench.remembering import Remembering
from models.onnx import OnnxEmbedder, OnnxReader
from pipeline.document.units import tag_sentences
from pipeline.fetch.files import read_file
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, PageUnits, page_units
from pipeline.reading.relevance import Blend, Reader, Reread
from pipeline.reading.verdict import as_row, confidence_of, read_features
from readers.html.document import read_document
from train.reader.data import own_rows

EVIDENCE: Final = (
    "hotpot",
    "chunkeval",
    "xquad_en",
    "xquad_de",
    "xquad_ru",
    "xquad_zh",
)
AWAY: Final = 0.25
"""Weight of a question on another's page in the fit: easy ones would make the
confidence too sure of the hard ones."""
Pages = Sequence[PageUnits]


async def fit(limit: int) -> None:
    """Print the gate's weights: logistic regression with a small ridge, by Newton's
    method."""
    embedder = Remembering(OnnxEmbedder())
    examples = [
        example
        for name in EVIDENCE
        for example in _evidence_examples(name, limit or 80)
    ]
    examples += _library_examples() + _written_examples(4 * limit or 320)
    readers: dict[str, Reader] = {
        "read": Reread(Blend(embedder), OnnxReader()),
        "meaning": Blend(embedder),
        "words": Blend(None),
    }
    for form, reader in readers.items():
        rows: list[tuple[float, ...]] = []
        labels: list[tuple[float, float]] = []
        for request, pages, answers, weight in examples:
            relevance = await reader.read(Question(request), pages)
            # The page that answers best decides; which one that is, the present weights say.
            features = max(
                read_features(Question(request), relevance), key=confidence_of
            )
            if form != "read" or features.read is not None:
                rows.append((*as_row(features), 1.0))
                labels.append((answers, weight))
        x, y, w = np.array(rows), np.array(labels)[:, 0], np.array(labels)[:, 1]
        ridge = np.array([0.5] * (x.shape[1] - 1) + [1e-6])
        weights = np.zeros(x.shape[1])
        for _ in range(50):
            p = 1 / (1 + np.exp(-x @ weights))
            curvature = (x * (w * p * (1 - p))[:, None]).T @ x + np.diag(ridge)
            weights -= np.linalg.solve(curvature, x.T @ (w * (p - y)) + ridge * weights)
        print(
            form,
            len(rows),
            "examples; constant first:",
            [round(float(v), 2) for v in (weights[-1], *weights[:-1])],
        )


def _written_examples(limit: int) -> list[tuple[str, Pages, float, float]]:
    """The development part of the reader's questions: on their page, their twins, and
    every second on another page."""
    rows = [row for row in own_rows() if row["split"] == "dev"]
    rows = rows[:: max(1, len(rows) // limit)] if limit else rows
    names = list(dict.fromkeys(row["page"] for row in rows))
    units = {
        name: page_units(document(name), tag_sentences(document(name)))
        for name in names
    }
    examples: list[tuple[str, Pages, float, float]] = []
    for place, row in enumerate(rows):
        examples.append((row["question"], [units[row["page"]]], 1.0, 1.0))
        if row["twin"]:
            examples.append((row["twin"], [units[row["page"]]], 0.0, 1.0))
        if place % 2:
            away = names[(names.index(row["page"]) + len(names) // 2) % len(names)]
            examples.append((row["question"], [units[away]], 0.0, AWAY))
    return examples


def _evidence_examples(name: str, limit: int) -> list[tuple[str, Pages, float, float]]:
    """Request, pages, whether they answer, weight: the page, the page without its
    answer, another request's page."""
    cases = [case for case in read_cases(name, limit) if not case.held_out]
    others = [*cases[len(cases) // 2 :], *cases[: len(cases) // 2]]
    return [
        (case.request, [page], answers, weight)
        for case, other in zip(cases, others, strict=True)
        for page, answers, weight in (
            (case.page, 1.0, 1.0),
            (case.without, 0.0, 1.0),
            (other.page, 0.0, AWAY),
        )
    ]


def _library_examples() -> list[tuple[str, Pages, float, float]]:
    """The sample library's dev questions with their eight best pages by BM25, and
    without the pages that answer."""
    lines = (
        (ROOT / "examples" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    )
    folder = ROOT / "examples" / "library"
    names = sorted(path.name for path in folder.iterdir())
    documents = [
        read_document(read_file(folder / name, roots=[folder])) for name in names
    ]
    pages = [page_units(document, tag_sentences(document)) for document in documents]
    index = BM25([f"{document.page.title} {document.text}" for document in documents])
    examples: list[tuple[str, Pages, float, float]] = []
    for question in map(json.loads, lines):
        if question["split"] != "dev":
            continue
        order = np.argsort(
            -index.scores(Question(question["question"])), kind="stable"
        ).tolist()
        best = [pages[place] for place in order[:8]]
        away = [
            pages[place] for place in order if names[place] not in question["pages"]
        ][:8]
        if question["answers"]:
            examples.append((question["question"], best, 1.0, 1.0))
            examples.append((question["question"], away, 0.0, 2 * AWAY))
        else:
            examples.append((question["question"], best, 0.0, 5.0))
    return examples


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--limit", type=int, default=0, help="requests of each set; 0: some 80"
    )
    anyio.run(fit, parser.parse_args().limit)
