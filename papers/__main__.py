"""The rows of the four papers, each made by running it here.

    python -m papers                     lists the rows
    python -m papers raptor.62           runs one; also raptor.umap: those with the word in their title or file
    python -m papers idms                runs the rows of a paper; --all of all four
    python -m papers --all --markdown    as the table of docs/how-it-works.md
    python -m papers --all --check       exit 1 where a check fails, or the document's table differs

A row works as printed, differs (with why and the figure), or cannot be had here. Needs a
checkout: the checks are in `bench/`. Not for: the papers' own scores, which need their
models and data."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

import anyio

from bench import papers_html, papers_idms, papers_raptor, papers_zero
from bench.paper_row import ROOT, ROWS, Outcome, Row, opened
from errors import WinnowError, how_to_add
from extra import PACKAGES

COUNT: Final = 81
DOCUMENT: Final = ROOT / "docs" / "how-it-works.md"
"""Has the table; `--check` compares where each row is, and its state."""
ROW_MODULES: Final = (papers_zero, papers_html, papers_raptor, papers_idms)
"""Imported for the rows that they hold."""
PAPERS: Final = {"ZI": "zero_index", "HR": "htmlrag", "RA": "raptor", "ID": "idms"}
"""Beginning of a title to the folder of the paper."""


def name_of(row: Row) -> str:
    """Return what a row is called, such as `raptor.62`."""
    paper = PAPERS.get(row.title.split()[0], "zero_index")
    return f"{paper}.{row.number}"


def named(names: Sequence[str]) -> list[int]:
    """Return the numbers of the rows that some names mean: `raptor`, `raptor.62`, or
    `raptor.umap` for a word of the title or the file. None for an unknown name."""
    found: list[int] = []
    for name in names:
        paper, _, part = name.partition(".")
        for number, row in sorted(ROWS.items()):
            own = name_of(row)
            in_words = part.casefold() in f"{row.title} {row.where}".casefold()
            if own.startswith(f"{paper}.") and (
                own == name or (in_words and not part.isdigit())
            ):
                found.append(number)
    return list(dict.fromkeys(found))


def lacking(error: ModuleNotFoundError) -> str:
    """Return what to install for a module that a check could not import."""
    module = (error.name or "").partition(".")[0]
    extras = [extra for extra, modules in PACKAGES.items() if module in modules]
    return (
        f"needs the extra {' or '.join(extras)}: {how_to_add(extras[-1])}"
        if extras
        else f"needs the package {module}, of the development environment"
    )


async def table(numbers: Sequence[int], *, markdown: bool) -> dict[int, Outcome | None]:
    """Run the rows, print each, and return what was found; None for a check that
    failed. A row that needs a package which is not installed is only named."""
    bench = opened()
    found: dict[int, Outcome | None] = {}
    if markdown:
        print("| # | row | where | here | figure, or why |\n|---|---|---|---|---|")
    for number in numbers:
        row = ROWS[number]
        try:
            found[number] = outcome = await row.check(bench)
        except ModuleNotFoundError as error:
            print(f"{name_of(row)} {row.title}: {lacking(error)}", flush=True)
            continue
        except (AssertionError, WinnowError) as error:
            found[number] = None
            print(f"FELL  {name_of(row)} {row.title}: {error!r}", file=sys.stderr)
            continue
        if markdown:
            print(f"{_beginning(number, outcome)} {outcome.said} |", flush=True)
        else:
            print(
                f"{name_of(row)} {outcome.state}: {row.title}: {outcome.said}",
                flush=True,
            )
    return found


def _beginning(number: int, outcome: Outcome) -> str:
    """Return a line of the document's table up to the figure."""
    row = ROWS[number]
    where = f"`{row.where}`" if row.where else "–"
    return f"| {number} | {row.title} | {where} | {outcome.state} |"


def main() -> int:
    """List or run rows; return 1 where a check falls short, 2 for an unknown name."""
    parser = argparse.ArgumentParser(
        prog="python -m papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="ROW")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    if not given.names and not given.all:
        for _, row in sorted(ROWS.items()):
            print(f"{name_of(row):14} {row.title} ({row.where or 'nowhere'})")
        return 0
    numbers = sorted(ROWS) if given.all else named(given.names)
    if not numbers:
        print(f"No row is called {' '.join(given.names)}.", file=sys.stderr)
        return 2

    async def run() -> dict[int, Outcome | None]:
        return await table(numbers, markdown=given.markdown)

    found = anyio.run(run)
    states = Counter(outcome.state if outcome else "fell" for outcome in found.values())
    print(f"{len(found)} rows: {dict(states)}", file=sys.stderr)
    stale = [
        number
        for number, outcome in found.items()
        if given.check and outcome and _beginning(number, outcome) not in _shown()
    ]
    if stale:
        print(f"{DOCUMENT.name} says otherwise of rows {stale}", file=sys.stderr)
    few = given.check and len(ROWS) != COUNT
    return int(few or bool(stale) or states["fell"] > 0)


def _shown() -> str:
    return DOCUMENT.read_text("utf-8")


if __name__ == "__main__":
    sys.exit(main())
