"""Trees whose summaries a generator wrote against trees of extracted sentences and flat
fusion, on the meetings.

    python -m bench.raptor --generator model.gguf --cache FOLDER [--minutes 25]

Every summary is checked against its children as in the product, and kept in FOLDER: a
second run goes on where the first one stopped. Shortest meetings first, until the
minutes are used up. A written summary is given no gold span: it proves nothing by
itself. What it adds shows in the words of the written answers. Not for: judging a
generator's style."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import anyio
import numpy as np

from bench.longdoc import MEETINGS, Group, answer_words, groups_of, recall, reported
from bench.raptor_asked import Asked, answered
from cache.store import Stores
from models.llama.model import LlamaGenerator
from models.protocols import Embedder
from papers.raptor.build import build_tree
from papers.raptor.query import NodeMode
from papers.raptor.summarise import Writer
from papers.raptor.tree import NodeOptions, NodeTree

BUDGETS: Final = (500, 1000, 2000)
MODES: Final[tuple[NodeMode | Literal["guided"], ...]] = (
    "flat",
    "guided",
    "collapsed",
    "traversal",
)
KINDS: Final = ("extracted", "written")

Cell = tuple[str, NodeMode | Literal["guided"], int]
"""Kind of summaries, mode, budget."""


@dataclass(slots=True)
class Figures:
    """What was measured, one figure a question."""

    evidence: dict[Cell, list[float]] = field(default_factory=dict)
    """Recall of gold spans, of the questions that have some."""
    words: dict[Cell, list[float]] = field(default_factory=dict)
    """Share of the written answer's words, of the questions about a part."""
    whole: dict[Cell, list[float]] = field(default_factory=dict)
    """Share of the written answer's words, of the questions about the whole meeting."""


async def written(
    file: Path, embedder: Embedder, stores: Stores, *, minutes: float
) -> dict[str, float]:
    """Measure with the generator in `file`; returns figures by `written/…`, empty where
    no meeting was finished."""
    generator = LlamaGenerator(file)
    writer = Writer(generator)
    groups = sorted(
        groups_of(MEETINGS, halves=False, answered=True),
        key=lambda g: len(g.documents[0].text),
    )
    figures = Figures()
    trees: list[NodeTree] = []
    print(
        f"\nsummaries by {generator.name}: meetings from the shortest, {minutes:.0f} minutes"
    )
    try:
        with anyio.move_on_after(60 * minutes):
            for group in groups:
                began = time.monotonic()
                options = NodeOptions()
                plain = await build_tree(
                    group.documents, embedder=embedder, options=options, store=None
                )
                wrote = await build_tree(
                    group.documents,
                    embedder=embedder,
                    options=options,
                    store=stores.trees,
                    writer=writer,
                )
                with anyio.CancelScope(shield=True):
                    await _ask(
                        group, {"extracted": plain, "written": wrote}, embedder, figures
                    )
                trees.append(wrote)
                _write_tree(wrote, time.monotonic() - began)
    finally:
        await generator.aclose()
    if not trees:
        print("  not one meeting was finished")
        return {}
    _write_writer(trees)
    print(f"  {len(trees)} of {len(groups)} meetings")
    return _write_lines(figures)


async def _ask(
    group: Group, trees: dict[str, NodeTree], embedder: Embedder, figures: Figures
) -> None:
    for question in group.questions:
        for kind, tree in trees.items():
            for mode in MODES:
                for budget in BUDGETS:
                    one = Asked(tree, group.documents, group.questions)
                    shown, spans = await answered(
                        one, question.text, mode, embedder, budget
                    )
                    words = figures.words if question.gold else figures.whole
                    words.setdefault((kind, mode, budget), []).append(
                        answer_words(question.answers, shown)
                    )
                    if question.gold:
                        found = recall(question.gold, spans)
                        figures.evidence.setdefault((kind, mode, budget), []).append(
                            found
                        )


def _write_tree(tree: NodeTree, seconds: float) -> None:
    inner = [node for node in tree.nodes if node.is_summary]
    kept = [node for node in inner if not node.quotes]
    name = tree.sources[0].url.rsplit("/", 1)[-1]
    print(
        f"  {name}: {len(tree.leaves)} leaves, {len(inner)} summaries, {len(kept)} of them "
        f"written, {seconds:.0f} s",
        flush=True,
    )


def _write_writer(trees: Sequence[NodeTree]) -> None:
    """How much of what the generator wrote outlived the check."""
    inner = [node for tree in trees for node in tree.nodes if node.is_summary]
    kept = [node for node in inner if not node.quotes]
    marked = sum(bool(node.unsupported) for node in inner)
    tokens = float(np.mean([node.tokens for node in kept])) if kept else 0.0
    print(
        f"  {len(inner)} summaries: {len(kept)} written ({tokens:.0f} tokens on average), "
        f"{len(inner) - len(kept)} had no sentence that its children bear out and were extracted; "
        f"{marked} lost a sentence with a number or a name that no child has"
    )


def _write_lines(figures: Figures) -> dict[str, float]:
    for title, rows in (
        ("evidence recall", figures.evidence),
        ("words of the written answer, questions about a part", figures.words),
        ("words of the written answer, questions about the whole", figures.whole),
    ):
        if not rows:
            continue
        count = len(next(iter(rows.values())))
        print(
            f"\n{title}, {count} questions\n  "
            + " ".join(f"{f'at {budget}':>8}" for budget in BUDGETS)
        )
        for mode in MODES:
            for kind in KINDS if mode != "flat" else KINDS[:1]:
                means = [float(np.mean(rows[kind, mode, budget])) for budget in BUDGETS]
                name = (
                    "leaves, fused" if mode == "flat" else f"{mode}, {kind} summaries"
                )
                print("  " + " ".join(f"{mean:8.3f}" for mean in means) + f"  {name}")
    print()
    found: dict[str, float] = {}
    for kind in KINDS:
        for budget in BUDGETS:
            ours, fused = (
                figures.evidence[kind, "guided", budget],
                figures.evidence[kind, "flat", budget],
            )
            line, mean, _, high = reported(
                f"evidence at {budget}, guided ({kind}) over fused", ours, fused
            )
            print(line)
            found |= {
                f"written/{kind}/gain/{budget}": mean,
                f"written/{kind}/gain at most/{budget}": high,
            }
    for name, rows in (("part", figures.words), ("whole", figures.whole)):
        for mode in MODES[1:] if rows else ():
            for budget in BUDGETS:
                wrote, taken, fused = (
                    rows[kind, way, budget] for kind, way in _compared(mode)
                )
                what = f"answer words ({name}) at {budget}, {mode}, written summaries"
                print(reported(f"{what} over extracted", wrote, taken)[0])
                print(reported(f"{what} over fused leaves", wrote, fused)[0])
    return found


def _compared(
    mode: NodeMode | Literal["guided"],
) -> tuple[tuple[str, NodeMode | Literal["guided"]], ...]:
    return ("written", mode), ("extracted", mode), ("extracted", "flat")
