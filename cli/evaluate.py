"""`winnow eval`: the generator that is set, measured beside the rules on the same questions in one run.

Each step that a generator can take part in is run both ways on a folder of questions and documents; the table tells
what to switch on. Not for: the measuring itself (`cli/measure`), or speeds alone (`winnow models bench`).
"""

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tqdm import tqdm

from cli.calls import progress_bar
from cli.measure.asking import answer_questions, parse_requests
from cli.measure.chunks import find_boundaries, write_forms, write_summaries
from cli.measure.library import Row, Setup, read_library
from cli.measure.reading import extract_sentences, prune_by_paths
from errors import UsageError
from pipeline.work import Report, in_thread
from server.settings import Settings
from server.wiring import open_services

STEPS: Final[dict[str, Callable[[Setup], Awaitable[list[Row]]]]] = {
    "prune": prune_by_paths,
    "extract": extract_sentences,
    "parse": parse_requests,
    "answer": answer_questions,
    "segment": find_boundaries,
    "density": write_forms,
    "summarise": write_summaries,
}
PATIENCE: Final = 600.0
"""Seconds for one call of the generator; a slow one is measured, not cut."""
CARRIED: Final = Path(__file__).resolve().parents[1] / "examples"
"""The sample library with its questions; a checkout has it, a wheel does not."""


async def evaluate(settings: Settings, folder: Path | None, steps: str, limit: int, as_json: bool, quiet: bool) -> int:
    """Measure `steps` on `folder` (None: the sample library), print the table on stdout, and return the exit code.

    Args:
        settings: With a generator.
        folder: Holds `questions.jsonl` and `library/`.
        steps: Names of steps with commas between; empty for all.
        limit: Most questions, documents or clusters of a step.
        as_json: Print one object for machines.
        quiet: No progress on stderr.

    Raises:
        UsageError: No generator is set, a step is unknown, or the folder is out of form.
        WinnowError: A model or a document failed.
    """
    names = [name.strip() for name in steps.split(",") if name.strip()] or list(STEPS)
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        raise UsageError(f"There is no step {unknown[0]!r}.", hint=f"Use some of {','.join(STEPS)}.")
    if limit < 1:
        raise UsageError(f"--limit is {limit}.", hint="Measure on at least 1 question.")
    rows: list[Row] = []
    async with open_services(settings) as services:
        if services.generator is None:
            raise UsageError(
                "There is nothing to measure: no generator is set.",
                hint="Set WINNOW_GENERATOR (or --set generator=…) to llama:FILE.gguf or openai:URL#MODEL; "
                "`winnow models list` shows models that can be pulled.",
            )
        library = await in_thread(read_library, folder or CARRIED)
        with progress_bar(shown=not quiet and sys.stderr.isatty()) as bar:
            setup = Setup(
                library,
                services.generator,
                services.embedder,
                services.reranker,
                services.today(),
                limit,
                PATIENCE,
                _shown(bar),
            )
            for name in names:
                if not quiet and bar is None:
                    print(f"winnow: measuring {name}", file=sys.stderr, flush=True)
                rows += await STEPS[name](setup)
        generator, embedder = services.generator.name, services.embedder.name if services.embedder else "none"
    told = {"generator": generator, "embedder": embedder, "data": str(folder or CARRIED), "limit": limit}
    if as_json:
        print(json.dumps({**told, "rows": [asdict(row) for row in rows]}, ensure_ascii=False, indent=2))
    else:
        print("\n".join([f"generator {generator}, embedder {embedder}, at most {limit} a step", *table(rows)]))
    return 0


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as aligned lines under a head; what went wrong stands below its row."""
    wide = max((len(row.what) for row in rows), default=0)
    head = (
        f"{'step':10} {'figure':{wide}} {'n':>5} {'rules':>7} {'model':>7} {'tokens':>9} {'seconds':>8} {'failed':>6}"
    )
    lines = [head]
    step = ""
    for row in rows:
        spent = f"{_number(row.tokens, 0):>9} {_number(row.seconds, 1):>8} {row.failed or '':>6}"
        figures = f"{_number(row.rules, 3):>7} {_number(row.model, 3):>7}"
        name = row.step if row.step != step else ""
        lines.append(f"{name:10} {row.what:{wide}} {row.n:>5} {figures} {spent}".rstrip())
        if row.note:
            lines.append(f"{'':10} {' '.join(row.note.split())}")
        step = row.step
    return lines


def _number(value: float | None, places: int) -> str:
    return "" if value is None else f"{value:,.{places}f}"


def _shown(bar: "tqdm[Any] | None") -> Report:
    async def show(done: float, total: float | None, message: str) -> None:
        if bar is not None:
            bar.total = total or max(done, 1)
            bar.n = done
            bar.set_description_str(message[:80])

    return show
