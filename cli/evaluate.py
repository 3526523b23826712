"""`winnow eval`: the generator that is set, measured beside the rules on the same questions in one run.

Each step that a generator can take part in is run both ways on a folder of questions and documents; the table tells
what to switch on. Not for: the measuring itself (`cli/measure`), or speeds alone (`winnow models bench`).
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from cli.measure.library import Row, Setup, read_library
from cli.measure.steps import STEPS
from cli.output import OK, PATIENCE, drawn_progress, print_json
from errors import UsageError
from pipeline.work import in_thread, no_report
from server.settings import Settings
from server.wiring import open_services

CARRIED: Final = Path(__file__).resolve().parents[1] / "examples"
"""The sample library with its questions; a checkout has it, a wheel does not."""


async def evaluate(settings: Settings, folder: Path | None, steps: str, limit: int, as_json: bool, quiet: bool) -> int:
    """Measure `steps` on `folder` (None: the sample library), print the table on stdout, and return the exit code.

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
        with drawn_progress(quiet=quiet) as draw:
            setup = Setup(
                library,
                services.generator,
                services.embedder,
                services.reader,
                services.today(),
                limit,
                PATIENCE,
                draw or no_report,
            )
            for name in names:
                if not quiet and draw is None:
                    print(f"winnow: measuring {name}", file=sys.stderr, flush=True)
                rows += await STEPS[name](setup)
        generator, embedder = services.generator.name, services.embedder.name if services.embedder else "none"
    if as_json:
        run = {"generator": generator, "embedder": embedder, "data": str(folder or CARRIED), "limit": limit}
        print_json({**run, "rows": [asdict(row) for row in rows]})
    else:
        print("\n".join([f"generator {generator}, embedder {embedder}, at most {limit} a step", *_table(rows)]))
    return OK


def _table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as aligned lines under a head; what went wrong stands below its row."""
    wide = max((len(row.what) for row in rows), default=0)
    form = f"{{:10}} {{:{wide}}} {{:>5}} {{:>7}} {{:>7}} {{:>9}} {{:>8}} {{:>6}}"
    lines = [form.format("step", "figure", "n", "rules", "model", "tokens", "seconds", "failed")]
    step = ""
    for row in rows:
        figures = (_number(row.rules, 3), _number(row.model, 3), _number(row.tokens, 0), _number(row.seconds, 1))
        name = row.step if row.step != step else ""
        lines.append(form.format(name, row.what, row.n, *figures, row.failed or "").rstrip())
        if row.note:
            lines.append(f"{'':10} {' '.join(row.note.split())}")
        step = row.step
    return lines


def _number(value: float | None, places: int) -> str:
    return "" if value is None else f"{value:,.{places}f}"
