"""Measures how answers read: passages, crumbs, holes, room left, words quoted; from the
text alone, as a model has it.

    python -m bench.passages                        every set, 256, 512 and 1,000 tokens
    python -m bench.passages --sets asked_kinds --limit 100
    python -m bench.passages --check                a spread sample; exit code 1, naming each bar that falls short

Columns: `shown`, the share of questions whose whole answer is quoted; `passages`, the
median of an answer; `crumbs`, passages of fewer than eight words that are not row, code
or first of their answer; `holes`, places inside a passage where something is left out;
`labels`, passages that end with a heading or a colon; `full`, the mean share of the
budget that is used; `quoted`, the share of an answer's tokens that is between its
marks."""

import argparse
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Final

import anyio

from bench.answer_sets import read_set
from bench.answers import ask, served
from bench.html_questions import DATA
from pipeline.evidence.show import GAP
from pipeline.text.tokens import count_tokens

TOOL: Final = "extract_relevant"
SETS: Final = ("asked", "asked_more", "asked_kinds")
BUDGETS: Final = (256, 512, 1_000)
FEWEST: Final = 8
"""Words of a passage that is not a crumb."""
CHECKED: Final = 40
"""Questions of each set that `--check` asks."""
BARS: Final = {"passages": 4.0, "crumbs": 0.01, "holes": 0.0, "labels": 0.01}
"""Most at 512 tokens."""
QUOTED: Final = {256: 0.75, 512: 0.85}
"""Least share of quoted words, over all answers together."""
_LABEL: Final = re.compile(r"^\(([a-z]{1,2})(?:, [^)]*)?\) ", re.MULTILINE)
_FRAME: Final = re.compile(r"^«/?\w+»$")
_LEFT_OUT: Final = re.compile(rf"^{GAP} \d+ more \w+$")


@dataclass(frozen=True, slots=True)
class Form:
    """How one answer reads."""

    shown: bool
    passages: int
    crumbs: int
    holes: int
    labels: int
    tokens: int
    quoted: int


def passages_of(text: str) -> list[list[str]]:
    """Return the passages of an answer, each as its lines."""
    found: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        if _FRAME.match(line):
            inside = "/" not in line
        elif inside and _LABEL.match(line):
            found.append([_LABEL.sub("", line)])
        elif inside and found:
            found[-1].append(line)
    return found


def form_of(text: str, *, quoted: str, shown: bool) -> Form:
    """Return how an answer reads, by its text and the words that it quotes."""
    passages = passages_of(text)
    return Form(
        shown=shown,
        passages=len(passages),
        crumbs=sum(_is_crumb(lines) for lines in passages[1:]),
        holes=sum(_holes(lines) for lines in passages),
        labels=sum(lines[-1].endswith((":", "：")) for lines in passages),
        tokens=count_tokens(text),
        quoted=count_tokens(quoted),
    )


def _is_crumb(lines: Sequence[str]) -> bool:
    words = re.findall(
        r"\w+", " ".join(line for line in lines if not _LEFT_OUT.match(line))
    )
    is_row = any(" | " in line or "; " in line for line in lines)
    is_code = any(line.startswith("  ") for line in lines)
    return len(words) < FEWEST and not (is_row or is_code)


def _holes(lines: Sequence[str]) -> int:
    """Return how often a passage leaves something out before its end."""
    return sum(
        line == GAP or line.startswith(f"{GAP} ")
        for line in lines
        if not _LEFT_OUT.match(line)
    )


async def measure(
    name: str, limit: int, budgets: Sequence[int]
) -> dict[int, list[Form]]:
    """Return how the answers to the questions of a set read, by budget."""
    of = read_set(name, limit)
    found: dict[int, list[Form]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as cache:
        async with served(of, Path(cache)) as (client, folder):
            for question in of.asked:
                for budget in budgets:
                    answer = await ask(
                        client, TOOL, question.text, folder / question.page, budget
                    )
                    if not answer.quoted:
                        continue
                    hit = of.hit(question, answer.quoted)
                    found[budget].append(
                        form_of(answer.text, quoted=answer.quoted, shown=hit)
                    )
    return found


def figures(forms: Sequence[Form], budget: int) -> dict[str, float]:
    """Return the columns of some answers."""
    passages = sum(form.passages for form in forms)
    return {
        "shown": mean(form.shown for form in forms),
        "passages": median(form.passages for form in forms),
        "crumbs": sum(form.crumbs for form in forms) / passages,
        "holes": mean(form.holes for form in forms),
        "labels": sum(form.labels for form in forms) / passages,
        "full": mean(form.tokens for form in forms) / budget,
        "quoted": sum(form.quoted for form in forms)
        / sum(form.tokens for form in forms),
    }


async def run(
    sets: Sequence[str], limit: int, budgets: Sequence[int], *, check: bool
) -> int:
    """Print the table; return the exit code."""
    missed: list[str] = []
    for name in sets:
        for budget, forms in (await measure(name, limit, budgets)).items():
            row = figures(forms, budget)
            cells = "  ".join(f"{key} {value:.3f}" for key, value in row.items())
            print(f"{name:12}{budget:>6}  n {len(forms):4}  {cells}", flush=True)
            over = [
                f"{key} {row[key]:.3f} > {bar}"
                for key, bar in BARS.items()
                if budget == 512 and row[key] > bar
            ]
            under = (
                [f"quoted {row['quoted']:.3f} < {QUOTED[budget]}"]
                if row["quoted"] < QUOTED.get(budget, 0)
                else []
            )
            missed += [f"{name} at {budget}: {line}" for line in over + under]
    for line in missed if check else ():
        print(f"BAR MISSED: {line}")
    return 1 if check and missed else 0


def main() -> int:
    """Read the options and measure; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="a sample; exit code 1, naming each bar that falls short",
    )
    parser.add_argument("--sets", default=",".join(SETS), metavar="NAMES")
    parser.add_argument(
        "--limit", type=int, default=0, help="questions of each set, 0 for all"
    )
    wanted = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    limit = CHECKED if wanted.check else wanted.limit
    budgets = BUDGETS[:2] if wanted.check else BUDGETS
    names = wanted.sets.split(",")

    async def start() -> int:
        return await run(names, limit, budgets, check=wanted.check)

    return anyio.run(start)


if __name__ == "__main__":
    sys.exit(main())
