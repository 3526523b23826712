"""Trees measured: evidence recall by way of asking, and what building and asking cost
as the text grows.

    python -m bench.raptor                                  the sizes, then all sets of ../shared/data; some 15 minutes
    python -m bench.raptor --only recall                    or sizes, or shown: the answer's text, through an MCP client
    python -m bench.raptor --generator model.gguf           summaries by a generator against extracted ones
    python -m bench.raptor --check                          samples and pinned floors, some minutes; exits 1 naming each
                                                            bar that fell

The lift of guided questions was chosen on the even half of the questions (crc32 of the
id); tables and floors use the odd half. Not for: answers by a reader model."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
import numpy as np

from bench.longdoc import DATA, MEETINGS, SETS, recall, reported
from bench.raptor_asked import METHODS, asked_trees, picked
from bench.raptor_shown import BUDGETS as SHOWN_BUDGETS
from bench.raptor_shown import shown
from bench.raptor_sizes import (
    LENGTHS,
    STORED,
    Cost,
    show_reference,
    sizes,
    slowest_stop,
)
from bench.raptor_written import written
from cache.store import open_stores
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from papers.raptor.tree import Clustering, NodeOptions
from pipeline.cached_models import CachedEmbedder

SAMPLE: Final = {"policyqa": 8, "qmsum_s": 3, "covidqa": 4}
"""Documents a set for --check: those with the most questions."""
FLOORS: Final = {"policyqa": 0.622, "qmsum_s": 0.565, "covidqa": 0.954}
"""Guided recall at 2,000 tokens on the samples of --check, less 0.03 for other rounding
on other machines."""
NOISE: Final = 0.03
"""What guided may lose to fused on a sample of some fifty questions before it
counts."""
MEETING_GAIN: Final = 0.05
MEETING_SHOWN: Final = {"shown": 0.69, "whole": 0.45}
"""Shares that an answer of 2,000 tokens must quote: of the gold words of a meeting, and of
the words of the written answer to a question about all of it."""
LOST: Final = 0.02
"""What an answer may show less than the tree chose at equal words."""
ASKED: Final = {True: 12, False: 60}
"""Questions a set that are asked through an MCP client, for --check and for the whole
tables."""


async def retrieval(
    embedder: Embedder, *, sample: bool, budgets: Sequence[int], clustering: Clustering
) -> dict[str, float]:
    """Print recall by set, method and budget; return the figures by
    `set/method/budget`."""
    figures: dict[str, float] = {}
    for name in SAMPLE if sample else SETS:
        asked = await asked_trees(
            name,
            embedder,
            NodeOptions(clustering=clustering),
            SAMPLE[name] if sample else None,
        )
        leaves = sum(len(one.tree.leaves) for one in asked)
        print(
            f"\n{name}: {sum(len(one.questions) for one in asked)} questions, {leaves} leaves, "
            f"{len(asked)} trees"
        )
        print(
            "  "
            + " ".join(f"{f'at {budget}':>8}" for budget in budgets)
            + "  evidence recall"
        )
        rows: dict[tuple[str, int], list[float]] = {}
        for one in asked:
            for question in one.questions:
                for method in METHODS:
                    for budget in budgets:
                        spans = await picked(
                            one, question.text, method, embedder, budget
                        )
                        rows.setdefault((method, budget), []).append(
                            recall(question.gold, spans)
                        )
        for method in METHODS:
            means = [float(np.mean(rows[method, budget])) for budget in budgets]
            print("  " + " ".join(f"{mean:8.3f}" for mean in means) + f"  {method}")
            figures |= {
                f"{name}/{method}/{budget}": mean
                for budget, mean in zip(budgets, means, strict=True)
            }
        for other in ("leaves, fused", "paper's collapsed"):
            for budget in budgets:
                line, mean, _, high = reported(
                    f"guided over {other} at {budget}",
                    rows["guided", budget],
                    rows[other, budget],
                )
                print(line, flush=True)
                if other == "leaves, fused":
                    (
                        figures[f"{name}/gain/{budget}"],
                        figures[f"{name}/gain at most/{budget}"],
                    ) = (
                        mean,
                        high,
                    )
    return figures


def fallen(figures: dict[str, float], cost: Cost) -> list[str]:
    """Return one line for every bar that does not hold."""
    bars: list[tuple[str, float, Callable[[float, float], bool], float]] = []
    for name in SAMPLE:
        guided, fused = (
            figures[f"{name}/guided/2000"],
            figures[f"{name}/leaves, fused/2000"],
        )
        bars.append(
            (f"{name}: guided recall at 2000", guided, float.__ge__, FLOORS[name])
        )
        bars.append(
            (f"{name}: guided less fused at 2000", guided - fused, float.__ge__, -NOISE)
        )
        for budget in (500, 2000):
            most = figures[f"{name}/gain at most/{budget}"]
            bars.append(
                (
                    f"{name}: upper end of guided less fused at {budget}",
                    most,
                    float.__ge__,
                    0.0,
                )
            )
    gain = figures[f"{MEETINGS}/gain/2000"]
    bars.append(
        (
            f"{MEETINGS}: guided less fused at 2000 (meetings)",
            gain,
            float.__ge__,
            MEETING_GAIN,
        )
    )
    for name in SETS:
        for budget in SHOWN_BUDGETS:
            for other, least in (("chosen", -LOST), ("flat", 0.0)):
                most = figures[f"{name}/shown over {other} at most/{budget}"]
                bars.append(
                    (
                        f"{name}: upper end of shown less {other} at {budget}",
                        most,
                        float.__ge__,
                        least,
                    )
                )
    for way, least in MEETING_SHOWN.items():
        bars.append(
            (
                f"{MEETINGS}: {way} at 2000",
                figures[f"{MEETINGS}/{way}/2000"],
                float.__ge__,
                least,
            )
        )
    bars.append(("exponent of build time", cost.exponent, float.__le__, 1.15))
    bars.append(
        (
            "nodes of the tree that is asked",
            float(cost.last.nodes),
            float.__ge__,
            10_000.0,
        )
    )
    bars.append(
        ("milliseconds of a query on it", cost.last.query_ms, float.__le__, 500.0)
    )
    return [
        f"{what}: {value:.3f}, bar {bar:.3f}"
        for what, value, holds, bar in bars
        if not holds(value, bar)
    ]


async def run(args: argparse.Namespace) -> int:
    """Run everything, one part, or the checks."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(args.cache or folder)
        stores = open_stores(kept, size_limit=STORED, clock=time.time)
        cached = CachedEmbedder(OnnxEmbedder(), stores.embeddings)
        try:
            if args.check:
                figures = await retrieval(
                    cached, sample=True, budgets=(500, 2000), clustering="kmeans"
                )
                for name in SETS:
                    # The bars for meetings are of all of them: those with most questions are the
                    # longest.
                    all_of_it = name == MEETINGS
                    most = None if all_of_it else SAMPLE.get(name, 4)
                    figures |= await shown(
                        name, kept, most=most, limit=ASKED[not all_of_it]
                    )
                broken = fallen(
                    figures, sizes((20_000, 80_000, 320_000, 800_000), words=True)
                )
                print(
                    "\n"
                    + ("\n".join(f"FELL  {line}" for line in broken) or "all bars hold")
                )
                return 1 if broken else 0
            if args.generator:
                await written(
                    Path(args.generator).expanduser(),
                    cached,
                    stores,
                    minutes=args.minutes,
                )
                return 0
            if args.only in (None, "sizes"):
                sizes(LENGTHS, words=True)
                show_reference(sizes(LENGTHS, words=False, keep=kept).last)
                await slowest_stop(LENGTHS[-1])
            for name in SETS if args.only in (None, "shown") else ():
                await shown(name, kept, most=None, limit=ASKED[False])
            if args.only in (None, "recall"):
                await retrieval(
                    cached,
                    sample=False,
                    budgets=(500, 1000, 2000),
                    clustering=args.clustering,
                )
        finally:
            stores.close()
    return 0


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="samples and pinned floors"
    )
    parser.add_argument(
        "--only", choices=["recall", "sizes", "shown"], help="one part instead of all"
    )
    parser.add_argument(
        "--clustering", choices=["kmeans", "gmm", "umap"], default="kmeans"
    )
    parser.add_argument(
        "--generator",
        metavar="FILE",
        help="a GGUF file whose model writes the meetings' summaries",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=25.0,
        help="for --generator: when no further meeting begins",
    )
    parser.add_argument(
        "--cache", help="folder that keeps embeddings, summaries and trees between runs"
    )
    args = parser.parse_args()
    if not DATA.is_dir():
        print(f"no data at {DATA}: nothing was measured", file=sys.stderr)
        return 2
    return anyio.run(run, args)


if __name__ == "__main__":
    sys.exit(main())
