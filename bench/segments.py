"""Chunk boundaries measured: the partition against rules over margins, on paragraphs
strung together.

    python -m bench.segments            36 documents of ten foreign paragraphs
    python -m bench.segments --check    12 of them; exits 1 where the partition's error is over its bar

The segments' price was chosen on the even documents; the odd ones are measured. Not
for: trees (`bench/raptor.py`)."""

import argparse
import itertools
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio
import numpy as np

from bench.longdoc import DATA, FAR, read_lines
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from papers.idms.partition import Rule, cut_by_margins, partition
from pipeline.raptor.leaves import sentence_costs
from pipeline.raptor.tree import TreeOptions

MOST_ERROR: Final = 0.05


@dataclass(frozen=True, slots=True)
class Cut:
    """How well some boundaries agree with the true ones."""

    pk: float
    """Share of windows of half a true segment whose ends are wrongly taken for one
    segment, or for two; 0 is best."""
    f1: float
    """Of boundaries at exactly the true places."""
    count: int
    """Boundaries found."""


def agreement(found: Sequence[tuple[int, int]], true: Sequence[tuple[int, int]]) -> Cut:
    """Return how well the ranges `found` agree with `true`, both [start, end) and
    covering the same n > 1 items."""
    n = true[-1][1]
    ours, theirs = (
        np.repeat(range(len(ranges)), [b - a for a, b in ranges])
        for ranges in (found, true)
    )
    window = min(n - 1, max(1, round(n / len(true) / 2)))
    wrong = (ours[:-window] == ours[window:]) != (theirs[:-window] == theirs[window:])
    cuts, truth = {start for start, _ in found[1:]}, {start for start, _ in true[1:]}
    both = len(cuts) + len(truth)
    return Cut(
        float(np.mean(wrong)), 2 * len(cuts & truth) / both if both else 1.0, len(cuts)
    )


def strung_documents() -> list[list[list[str]]]:
    """Documents of ten paragraphs from foreign articles, a list of sentences each; the
    odd half."""
    paragraphs: dict[str, list[str]] = {}
    for row in read_lines(DATA / "evidence" / "hotpot.texts.jsonl"):
        text, units = str(row["text"]), row["units"]
        assert isinstance(units, list)
        for match in re.finditer(
            r"(?:^|\n\n)[^\n]+\n([^\n]+(?:\n(?!\n)[^\n]+)*)", text
        ):
            start, end = match.span(1)
            sentences = [text[a:b].strip() for a, b in units if a >= start and b <= end]
            if 3 <= len(sentences) <= 9:
                paragraphs.setdefault(match.group(1), sentences)
    shuffled = list(paragraphs.values())
    random.Random(0).shuffle(shuffled)  # the same documents in every run
    whole = [shuffled[i : i + 10] for i in range(0, len(shuffled) - 9, 10)]
    return whole[1::2]


async def boundaries(embedder: Embedder, documents: int) -> dict[str, float]:
    """Print Pk, F1 and sentences a chunk of every rule; return Pk by rule."""
    rules: list[tuple[str, Rule | None]] = [
        ("partition", None),
        ("partition, idms leaves", None),
        ("running mean (paper)", "running"),
        ("mean - 1 deviation", "partition"),
    ]
    errors: dict[str, list[Cut]] = {}
    sizes: dict[str, list[float]] = {}
    for paragraphs in strung_documents()[:documents]:
        sentences = [sentence for paragraph in paragraphs for sentence in paragraph]
        vectors = await embedder.embed(sentences, kind="passage")
        edges = np.cumsum([0, *map(len, paragraphs)]).tolist()
        truth = list(itertools.pairwise(edges))
        costs = sentence_costs(sentences)
        margins = (vectors[:-1] * vectors[1:]).sum(axis=1)
        for name, rule in rules:
            if rule is None:
                least, most = (
                    TreeOptions().segment_tokens if "leaves" in name else (0, FAR)
                )
                found = partition(vectors, costs, minimum=least, maximum=most)
            else:
                found = cut_by_margins(
                    margins, costs, rule=rule, minimum=0, maximum=FAR
                )
            errors.setdefault(name, []).append(agreement(found, truth))
            sizes.setdefault(name, []).append(len(sentences) / len(found))
    print(
        f"\nchunk boundaries, {documents} documents of ten foreign paragraphs\n      Pk     F1  "
        f"sentences a chunk"
    )
    for name, _ in rules:
        f1 = np.mean([cut.f1 for cut in errors[name]])
        print(
            f"  {np.mean([cut.pk for cut in errors[name]]):6.3f} {f1:6.3f} "
            f"{np.mean(sizes[name]):8.1f}  {name}"
        )
    return {
        name: float(np.mean([cut.pk for cut in found]))
        for name, found in errors.items()
    }


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="fewer documents and the bar"
    )
    args = parser.parse_args()
    if not DATA.is_dir():
        print(f"no data at {DATA}: nothing was measured", file=sys.stderr)
        return 2
    errors = anyio.run(boundaries, OnnxEmbedder(), 12 if args.check else 36)
    fallen = [
        name
        for name in errors
        if name.startswith("partition") and errors[name] > MOST_ERROR
    ]
    for name in fallen:
        print(f"FELL  Pk of {name}: {errors[name]:.3f}, bar {MOST_ERROR:.3f}")
    return int(bool(fallen))


if __name__ == "__main__":
    sys.exit(main())
