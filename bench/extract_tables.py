"""Answers about tables within a budget, with and without the rows that a request's
choosing words point at.

    python -m bench.extract_tables        160 questions about tables of real pages, 66 of them on pages held aside

`bench.extract` prints it too. Baseline: the same extraction with its scores as words
and meaning gave them. Not for: the None gate on these questions (`bench/extract.py`).
"""

from collections import Counter
from dataclasses import replace
from typing import Final

import anyio

from bench.html_questions import DATA, Question, document, judged, table_questions
from bench.remembering import Remembering
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from pipeline.evidence.assemble import assemble
from pipeline.question.question import Question as Asked
from pipeline.reading.bm25 import page_units
from pipeline.reading.extract import read_documents
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import Blend
from readers.page import Document

BUDGETS: Final = (500, 1_000, 2_000)
MARK: Final = "benchmark"


async def table_budgets(embedder: Embedder, limit: int) -> dict[str, float]:
    """Print the shares of answers that are in each budget; return those of all
    questions, and the gain at 500."""
    asked = table_questions(limit)
    found: Counter[tuple[str, int, bool]] = Counter()
    for question in asked:
        page = document(question.page)
        lifted = await read_documents(
            Asked(question.text), [page], reader=Blend(embedder)
        )
        for way, reading in (
            ("lifted", lifted),
            ("scores alone", await _unlifted(question, page, lifted, embedder)),
        ):
            for budget in BUDGETS:
                shown = assemble(
                    [page], reading, max_tokens=budget, delimiter=MARK
                ).shown.text
                found[way, budget, question.held] += judged(question, shown)[0]
    held = sum(question.held for question in asked)
    print(f"\nanswers about tables, {len(asked)} questions ({held} held aside)")
    shares: dict[tuple[str, int], float] = {}
    for way in ("lifted", "scores alone"):
        cells = []
        for budget in BUDGETS:
            both = found[way, budget, True] + found[way, budget, False]
            shares[way, budget] = both / len(asked)
            cells.append(
                f"{budget}: {shares[way, budget]:.3f} "
                f"({found[way, budget, True] / max(held, 1):.3f})"
            )
        print(f"  {way:13} {'   '.join(cells)}")
    return {
        "table answers in 500 tokens": shares["lifted", 500],
        "table answers in 500 tokens over scores alone": shares["lifted", 500]
        - shares["scores alone", 500],
    }


async def _unlifted(
    question: Question, page: Document, lifted: Reading, embedder: Embedder
) -> Reading:
    """Return the reading with its units ordered by their scores alone."""
    relevance = await Blend(embedder).read(
        Asked(question.text), [page_units(page, lifted.tagged[0])]
    )
    return replace(lifted, values=relevance.values)


if __name__ == "__main__":
    if DATA.is_dir():
        anyio.run(table_budgets, Remembering(OnnxEmbedder()), 0)
    else:
        print("not measured: ../shared/data is not beside this checkout")
