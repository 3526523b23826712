"""Trees measured: evidence recall by way of asking.

    python -m bench.raptor            all sets of ../shared/data
    python -m bench.raptor --check    samples and pinned floors; exits 1 naming each bar that fell

The lift of guided questions was chosen on the even half of the questions (crc32 of the
id); tables and floors use the odd half. Not for: answers by a reader model."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import numpy as np

from bench.longdoc import DATA, MEETINGS, SETS, recall, reported
from bench.raptor_asked import METHODS, asked_trees, picked
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
STORED: Final = 2_000_000_000
"""Bytes of embeddings and trees."""


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


def fallen(figures: dict[str, float]) -> list[str]:
    """Return one line for every bar that does not hold."""
    bars: dict[str, tuple[float, float]] = {}
    for name in SAMPLE:
        guided, fused = (
            figures[f"{name}/{way}/2000"] for way in ("guided", "leaves, fused")
        )
        bars[f"{name}: guided recall at 2000"] = guided, FLOORS[name]
        bars[f"{name}: guided less fused at 2000"] = guided - fused, -NOISE
        for budget in (500, 2000):
            gain = figures[f"{name}/gain at most/{budget}"]
            bars[f"{name}: upper end of guided less fused at {budget}"] = gain, 0.0
    gain = figures[f"{MEETINGS}/gain/2000"]
    bars[f"{MEETINGS}: guided less fused at 2000"] = gain, MEETING_GAIN
    return [
        f"{what}: {value:.3f}, bar {bar:.3f}"
        for what, (value, bar) in bars.items()
        if value < bar
    ]


async def run(args: argparse.Namespace) -> int:
    """Measure all sets, or samples against the bars."""
    with tempfile.TemporaryDirectory() as folder:
        stores = open_stores(
            Path(args.cache or folder), size_limit=STORED, clock=time.time
        )
        cached = CachedEmbedder(OnnxEmbedder(), stores.embeddings)
        try:
            figures = await retrieval(
                cached,
                sample=args.check,
                budgets=(500, 2000) if args.check else (500, 1000, 2000),
                clustering=args.clustering,
            )
        finally:
            stores.close()
    broken = fallen(figures) if args.check else []
    print(*[f"FELL  {line}" for line in broken], sep="\n")
    return int(bool(broken))


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="samples and pinned floors"
    )
    parser.add_argument(
        "--clustering", choices=["kmeans", "gmm", "umap"], default="kmeans"
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
