"""The rows of the four papers as a table that is made by running them here.

    python -m bench.papers                 the table: works, differs (why, figure), cannot, missing
    python -m bench.papers --only 36-57    some rows
    python -m bench.papers --markdown      as a table for docs/how-it-works.md
    python -m bench.papers --check         exit 1 where a check fails, more than `MISSING` are
                                           missing, or the document's table differs

ZI: zero-indexing; HR: HtmlRAG; RA: RAPTOR; ID: IDMS. A check asserts what its row says
and prints what it counted. Not for: the papers' own scores, which need their models and
data."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

import anyio

from bench import papers_html, papers_idms, papers_raptor, papers_zero
from bench.paper_row import ROOT, ROWS, Outcome, opened
from errors import WinnowError

COUNT: Final = 81
MISSING: Final = 4
DOCUMENT: Final = ROOT / "docs" / "how-it-works.md"
"""Has the table; `--check` compares where each row is, and its state."""
MODULES: Final = (papers_zero, papers_html, papers_raptor, papers_idms)
"""Imported for the rows that they hold."""


async def table(numbers: Sequence[int], *, markdown: bool) -> dict[int, Outcome | None]:
    """Run the rows, print each, and return what was found; None for a check that
    failed."""
    bench = opened()
    found: dict[int, Outcome | None] = {}
    if markdown:
        print("| # | row | where | here | figure, or why |\n|---|---|---|---|---|")
    for number in numbers:
        row = ROWS[number]
        try:
            found[number] = outcome = await row.check(bench)
        except (AssertionError, WinnowError) as error:
            found[number] = None
            print(f"FELL  {number} {row.title}: {error!r}", file=sys.stderr, flush=True)
            continue
        if markdown:
            print(f"{_beginning(number, outcome)} {outcome.said} |", flush=True)
        else:
            print(
                f"{number:3} {outcome.state:8} {row.title}: {outcome.said}", flush=True
            )
    return found


def _beginning(number: int, outcome: Outcome) -> str:
    """Return a line of the document's table up to the figure."""
    row = ROWS[number]
    where = f"`{row.where}`" if row.where else "–"
    return f"| {number} | {row.title} | {where} | {outcome.state} |"


def main() -> int:
    """Print the table; return 1 where a check falls short."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", default=f"1-{COUNT}", metavar="FROM-TO")
    wanted = parser.parse_args()
    low, _, high = wanted.only.partition("-")
    numbers = [
        number for number in sorted(ROWS) if int(low) <= number <= int(high or low)
    ]

    async def run() -> dict[int, Outcome | None]:
        return await table(numbers, markdown=wanted.markdown)

    found = anyio.run(run)
    states = Counter(outcome.state if outcome else "fell" for outcome in found.values())
    print(f"{len(found)} rows: {dict(states)}", file=sys.stderr)
    if not wanted.check:
        return int(states["fell"] > 0)
    shown = DOCUMENT.read_text("utf-8")
    stale = [
        number
        for number, outcome in found.items()
        if outcome and _beginning(number, outcome) not in shown
    ]
    if stale:
        print(f"{DOCUMENT.name} says otherwise of rows {stale}", file=sys.stderr)
    few = len(ROWS) != COUNT or states["missing"] > MISSING
    return int(few or bool(stale) or states["fell"] > 0)


if __name__ == "__main__":
    sys.exit(main())
