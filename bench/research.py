"""The main job on the sample library: is the gold answer in what `research` returns,
and None where there is none?

`python -m bench.research` prints the share of examples/questions.jsonl whose gold
answers are all in the evidence, by split, kind and budget. Two baselines read the same
pages within the same budgets: BM25 over plain chunks of 400 characters, and the heads
of the pages that BM25 ranks first. `--check` exits 1 when a bar of the issue falls
short. Not for: parts alone (`bench/html.py`, `bench/extract.py`, `bench/search.py`)."""

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client
from mcp_types import TextContent

from pipeline.evidence.show import Sheet
from pipeline.fetch.files import read_file
from pipeline.question.question import Question as Analysed
from pipeline.reading.bm25 import BM25
from readers.html.document import read_document
from server.app import build_server
from server.settings import read_settings
from tools.common.answer import data_of

ROOT: Final = Path(__file__).resolve().parents[1]
LIBRARY: Final = ROOT / "examples" / "library"
BUDGETS: Final = (1000, 3000)
BARS: Final = {1000: 0.80, 3000: 0.95}
"""Shares that issue 2 asks for; unanswerable questions must all come back as none."""
CHUNK: Final = 400
Question = dict[str, Any]
Outcome = tuple[str, str]
"""Verdict and quoted text."""
Outcomes = dict[tuple[str, int], Outcome]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit 1 when a bar falls short; no baselines",
    )
    parser.add_argument(
        "--misses",
        action="store_true",
        help="print the questions of the dev split that were missed",
    )
    args = parser.parse_args()
    questions = [
        json.loads(line)
        for line in (ROOT / "examples" / "questions.jsonl")
        .read_text("utf-8")
        .splitlines()
    ]
    started = time.perf_counter()
    evidence = anyio.run(ask_all, questions)
    print(
        f"{len(questions)} questions at {len(BUDGETS)} budgets in "
        f"{time.perf_counter() - started:.0f} s\n"
    )
    failed = _print_tables(questions, evidence)
    if args.misses:
        _print_misses(questions, evidence)
    if args.check:
        sys.exit(_report(failed))
    _print_baselines(questions)


async def ask_all(questions: Sequence[Question], cache: Path | None = None) -> Outcomes:
    """Return the outcome of every question and budget, asked through an MCP client with
    the cache in that folder, or with a fresh one."""
    found: Outcomes = {}
    with tempfile.TemporaryDirectory() as fresh:
        settings = read_settings(
            {"folders": str(LIBRARY), "cache": str(cache or fresh)}, {}
        )
        async with Client(build_server(settings)) as client:
            for question in questions:
                for budget in BUDGETS:
                    arguments = {"question": question["question"], "max_tokens": budget}
                    result = await client.call_tool("research", arguments)
                    text = "\n".join(
                        part.text
                        for part in result.content
                        if isinstance(part, TextContent)
                    )
                    data = data_of(result)
                    if result.is_error or data["tokens"] > budget:
                        raise RuntimeError(f"{question['id']}: {text[:300]}")
                    found[question["id"], budget] = (data["verdict"], _quoted(text))
    return found


def _quoted(text: str) -> str:
    """Only what is between marks counts: a question must not answer itself."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("«") and line.endswith("»"):
            inside = not line.startswith("«/")
        elif inside:
            kept.append(line)
    return "\n".join(kept)


def _holds(question: Question, text: str) -> bool:
    folded = " ".join(text.split()).casefold()
    return all(
        any(" ".join(alt.split()).casefold() in folded for alt in alts)
        for alts in question["answers"]
    )


def is_right(question: Question, outcome: Outcome) -> bool:
    """Whether all gold answers are in the quoted text; for an unanswerable question,
    whether it was not answered."""
    verdict, text = outcome
    return _holds(question, text) if question["answers"] else verdict != "answered"


def _share(values: Iterable[bool]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else float("nan")


def _print_tables(questions: Sequence[Question], evidence: Outcomes) -> list[str]:
    failed = []
    print(
        f"{'split':14}{'questions':>10}"
        + "".join(f"{f'at {b} tokens':>16}" for b in BUDGETS)
    )
    for split in ("dev", "test", "all"):
        for answerable in (True, False):
            group = [
                q
                for q in questions
                if split in (q["split"], "all") and bool(q["answers"]) == answerable
            ]
            shares = [
                _share(is_right(q, evidence[q["id"], b]) for q in group)
                for b in BUDGETS
            ]
            name = f"{split} {'answered' if answerable else 'None'}"
            print(
                f"{name:14}{len(group):>10}"
                + "".join(f"{share:>16.3f}" for share in shares)
            )
            if split == "all":
                for budget, share in zip(BUDGETS, shares, strict=True):
                    bar = BARS[budget] if answerable else 1.0
                    if share < bar:
                        failed.append(f"{name} at {budget} tokens: {share:.3f} < {bar}")
    print(f"\n{'verdicts':22}{'answered':>10}{'unsure':>10}{'none':>10}")
    for split in ("dev", "test"):
        for answerable in (True, False):
            group = [
                q
                for q in questions
                if q["split"] == split and bool(q["answers"]) == answerable
            ]
            verdicts = [evidence[q["id"], BUDGETS[-1]][0] for q in group]
            shares = [
                _share(v == name for v in verdicts)
                for name in ("answered", "unsure", "none")
            ]
            name = f"{split} {'answerable' if answerable else 'unanswerable'}"
            print(f"{name:22}" + "".join(f"{share:>10.3f}" for share in shares))
    kinds: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        kinds[question["kind"]].append(question)
    print(f"\n{'kind':14}")
    for kind, group in sorted(kinds.items()):
        shares = [
            _share(is_right(q, evidence[q["id"], b]) for q in group) for b in BUDGETS
        ]
        print(
            f"{kind:14}{len(group):>10}"
            + "".join(f"{share:>16.3f}" for share in shares)
        )
    return failed


def _print_misses(questions: Sequence[Question], evidence: Outcomes) -> None:
    for question in questions:
        missed = [
            b for b in BUDGETS if not is_right(question, evidence[question["id"], b])
        ]
        if missed and question["split"] == "dev":
            print(
                f"\n{question['id']} {question['kind']} at {missed}: {question['question']}"
            )
            print(f"   gold {question['answers']} on {question['pages']}")
            print(f"   answered: {evidence[question['id'], missed[0]][0]}")


def _print_baselines(questions: Sequence[Question]) -> None:
    documents = [
        read_document(read_file(path, roots=[LIBRARY], max_bytes=30_000_000))
        for path in sorted(LIBRARY.iterdir())
    ]
    chunks = [
        text[i : i + CHUNK]
        for text in (d.text for d in documents)
        for i in range(0, len(text), CHUNK)
    ]
    chunk_index, page_index = BM25(chunks), BM25([d.text for d in documents])
    answerable = [q for q in questions if q["answers"]]
    print(
        f"\n{'baselines, answerable questions':40}"
        + "".join(f"{f'at {b} tokens':>16}" for b in BUDGETS)
    )
    for name, index, texts in (
        ("BM25 over chunks of 400 characters", chunk_index, chunks),
        (
            "heads of the pages BM25 ranks first",
            page_index,
            [d.text[:2000] for d in documents],
        ),
    ):
        shares = [
            _share(
                _holds(q, _filled(index, texts, q["question"], b)) for q in answerable
            )
            for b in BUDGETS
        ]
        print(f"{name:40}" + "".join(f"{share:>16.3f}" for share in shares))


def _filled(index: BM25, texts: Sequence[str], question: str, budget: int) -> str:
    sheet = Sheet(budget)
    for place in (-index.scores(Analysed(question))).argsort(kind="stable"):
        if not sheet.add(texts[int(place)]):
            break
    return sheet.text


def _report(failed: Sequence[str]) -> int:
    for line in failed:
        print(f"BAR MISSED: {line}")
    print("all bars hold" if not failed else f"{len(failed)} bars missed")
    return 1 if failed else 0


if __name__ == "__main__":
    main()
