"""The rows of the four papers as a table that is made by running them here.

    python -m bench.papers                 the table: works, differs (why, figure), cannot, missing
    python -m bench.papers --only 36-57    some rows
    python -m bench.papers --markdown      as a table for docs/how-it-works.md
    python -m bench.papers --check         exit 1 where a check fails or more than `MISSING` are missing

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
from bench.paper_row import ROWS, Outcome, opened
from errors import WinnowError

COUNT: Final = 81
MISSING: Final = 4
MODULES: Final = (papers_zero, papers_html, papers_raptor, papers_idms)
"""Imported for the rows that they hold."""


async def table(numbers: Sequence[int], *, markdown: bool) -> dict[int, Outcome | None]:
    """Run the rows, print each, and return what was found; None for a check that
    failed."""
    bench = opened()
    found: dict[int, Outcome | None] = {}
    if markdown:
        print("| # | row | here | figure, or why |\n|---|---|---|---|")
    for number in numbers:
        row = ROWS[number]
        try:
            found[number] = outcome = await row.check(bench)
        except (AssertionError, WinnowError) as error:
            found[number] = None
            print(f"FELL  {number} {row.title}: {error!r}", file=sys.stderr, flush=True)
            continue
        if markdown:
            print(
                f"| {number} | {row.title} | {outcome.state} | {outcome.said} |",
                flush=True,
            )
        else:
            print(
                f"{number:3} {outcome.state:8} {row.title}: {outcome.said}", flush=True
            )
    return found


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
    whole = not wanted.check or len(ROWS) == COUNT
    return int(not whole or states["fell"] > 0 or states["missing"] > MISSING)


if __name__ == "__main__":
    sys.exit(main())
