"""Whether a request needs a search (zero-index §3.1): how often `needless` is right.

    python -m bench.needless          the table, and every request that was taken wrongly
    python -m bench.needless --check  exit 1 where the precision is under its bar

Needless ones, and near ones that do need a search, are in `bench/asked/needless.tsv`;
beside them every question of the sets in `../shared/data` needs one. The bar is on
precision: a search that was not needed costs seconds, a missing one the answer."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.longdoc import DATA
from papers.zero_index.parser import needless

LISTED: Final = Path(__file__).with_name("asked") / "needless.tsv"
UNSEEN: Final = (
    LISTED.with_name("needless_unseen.tsv"),
    LISTED.with_name("needless_unseen_2.tsv"),
)
"""A hundred requests each, half of them needless, by two who had not read the rules and
not each other."""
PRECISION: Final = 0.97
"""Least share of the requests taken for needless that are."""
RECALL: Final = 0.5
"""Least share of the needless requests that are taken for it: the rest is searched, as
before."""


def listed(path: Path = LISTED) -> Iterator[tuple[str, bool]]:
    """Yield the requests of a list, and whether they are needless."""
    for line in path.read_text("utf-8").splitlines():
        kind, _, text = line.partition("\t")
        if text:
            yield text, kind == "needless"


def questions() -> Iterator[str]:
    """Yield every question of the sets."""
    for path in sorted(DATA.rglob("*questions.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if isinstance(row.get("question"), str):
                yield row["question"]


def unseen(paths: Sequence[Path] = UNSEEN) -> tuple[int, int, int]:
    """Return of the requests of some lists, each once, how many needless ones there
    are, how many of them the rules find, and how many others they take for it."""
    requests = dict(pair for path in paths for pair in listed(path))
    rows = [(bool(needless(text)), truth) for text, truth in requests.items()]
    return (
        sum(truth for _, truth in rows),
        sum(found and truth for found, truth in rows),
        sum(found and not truth for found, truth in rows),
    )


def measure() -> tuple[float, float]:
    """Print the table; return precision and recall."""
    rows = [*listed(), *((text, False) for text in questions())]
    taken = [bool(needless(text)) for text, _ in rows]
    right = sum(found and truth for found, (_, truth) in zip(taken, rows, strict=True))
    truths = sum(truth for _, truth in rows)
    precision, recall = right / max(1, sum(taken)), right / truths
    print(f"{len(rows)} requests, {truths} of them needless, {sum(taken)} taken for it")
    print(f"precision {precision:.3f}, recall {recall:.3f}")
    for found, (text, truth) in zip(taken, rows, strict=True):
        if found != truth:
            print(f"  {'taken' if found else 'not taken'}: {text}")
    return precision, recall


def main() -> int:
    """Print the table; return 1 when `--check` finds a figure under its bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    precision, recall = measure()
    free, found, others = unseen()
    print(f"unseen: {free} needless, {found} found, {others} others taken for it")
    return int(wanted.check and (precision < PRECISION or recall < RECALL))


if __name__ == "__main__":
    sys.exit(main())
