"""Tokens that each generative step sends through a model, against the naive way, on the
sample library.

    python -m bench.costs             every step on two questions (some minutes)
    python -m bench.costs --check     paths, votes and margins of one question; exit code 1 where a ratio misses its bar

Naive is: a whole prompt for each path, vote, or gap and answer; every sentence of every
page in the paper's tags, a call a page (zero-index §4.1); every summary of a tree, not
only those that an answer shows. One call stays one call. The model is
SmolLM2-135M-Instruct unless `--model FILE.gguf` names another. Not for: what answers
are worth (`python -m bench.eval`)."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from bench.eval import Watched
from bench.generation import weights
from bench.library import CARRIED, MeasuredQuestion, read_library
from errors import ModelError
from models.llama.model import LlamaGenerator
from models.onnx import OnnxEmbedder
from models.protocols import Generator, PathScores, Prompt
from papers.htmlrag.blocks import paper_blocks, path_scorer
from papers.idms.idms import Judge
from papers.raptor.build import build_tree
from papers.raptor.summarise import Writer, kept_summary
from papers.raptor.tree import NodeOptions
from papers.zero_index.ask import Asking
from papers.zero_index.parser import parse
from papers.zero_index.tags import paper_tags
from pipeline.question.question import Question
from pipeline.raptor.leaves import main_sentences
from pipeline.reading.extract import extract
from pipeline.reading.relevance import Blend
from pipeline.text.tokens import count_tokens
from readers.page import Document

PATIENCE: Final = 3_000.0
BARS: Final = {
    "prune: block paths": 2.0,
    "extract: votes": 2.0,
    "segment: margins": 2.0,
}
"""Times fewer tokens than the naive way."""
SHOWN: Final = 2
"""Summaries that an answer of some 400 tokens shows."""
SENTENCES: Final = 12
"""Sentences whose gaps are judged."""
TODAY: Final = date(2026, 11, 21)


@dataclass(slots=True)
class Cost:
    """Tokens of one step, summed over questions."""

    ours: float = 0
    naive: float = 0


class Recorded(Watched):
    """A generator that keeps its last path scores with the prompt before them, and sums
    what all of them cost."""

    def __init__(self, generator: Generator) -> None:
        """Watch `generator`."""
        super().__init__(generator)
        self.scores: PathScores | None = None
        self.prompt = ""
        self.evaluated = self.whole = 0

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Ask, and keep what was asked and said."""
        self.prompt = prefix if isinstance(prefix, str) else prefix[-1].content
        self.scores = await super().score_tree(
            prefix, paths, among_siblings=among_siblings
        )
        self.evaluated += self.scores.evaluated_tokens
        self.whole += self.scores.whole_tokens
        return self.scores

    async def tokens(self) -> int:
        """Return the tokens that went through the model."""
        return await super().tokens() or 0

    @property
    def naive(self) -> float:
        """Tokens of a whole prompt for each path of the last call."""
        assert self.scores is not None
        return self.scores.whole_tokens


FigureTable = dict[str, Cost]


def _add(table: FigureTable, name: str, ours: float, naive: float) -> None:
    cost = table.setdefault(name, Cost())
    cost.ours += ours
    cost.naive += naive


async def reading_costs(
    table: FigureTable,
    model: LlamaGenerator,
    one: MeasuredQuestion,
    pages: list[Document],
    *,
    quick: bool,
) -> None:
    """Add what pruning, extracting and parsing of one question cost."""
    await model.score_tree(
        "another", [" prefix"]
    )  # so that nothing of an earlier prefix is kept
    watched = Recorded(model)
    scorer = path_scorer(watched, pages[:1], seconds=PATIENCE)
    assert scorer is not None
    found = paper_blocks(pages[:1], max_words=128)
    await scorer.score(one.question, found)
    _add(table, "prune: block paths", await watched.tokens(), watched.naive)
    reader = Blend(OnnxEmbedder())
    voting = Recorded(model)
    reported = await extract(
        Question(one.question),
        pages,
        reader=reader,
        extractor=Asking(voting, "votes", PATIENCE),
    )
    if voting.scores is None:
        return  # the gate sent the model nothing
    _add(table, "extract: votes", await voting.tokens(), voting.naive)
    if quick:
        return
    watched = Recorded(model)
    await extract(
        Question(one.question),
        pages,
        reader=reader,
        extractor=Asking(watched, "lines", PATIENCE),
    )
    every = sum(count_tokens(paper_tags(sentences)) for sentences in reported.tagged)
    # The model's tokens for one of ours, from a prompt that both have counted.
    rate = voting.scores.prefix_tokens / count_tokens(voting.prompt)
    _add(table, "extract: lines", await watched.tokens(), every * rate)
    watched = Recorded(model)
    await parse(Question(one.question), watched, None, PATIENCE, today=TODAY)
    _add(table, "parse: one call", await watched.tokens(), await watched.tokens())


async def tree_costs(
    table: FigureTable, model: LlamaGenerator, document: Document, *, quick: bool
) -> None:
    """Add what margins of a document's first sentences and summaries of its tree
    cost."""
    texts = [sentence.text for sentence in main_sentences(document)[:SENTENCES]]
    watched = Recorded(model)
    await Judge(watched, store=None, seconds=PATIENCE).margins(texts)
    _add(table, "segment: margins", watched.evaluated, watched.whole)
    if quick:
        return
    tree = await build_tree(
        [document], embedder=OnnxEmbedder(), options=NodeOptions(), store=None
    )
    inner = [
        [tree.nodes[i].text for i in node.children]
        for node in tree.nodes
        if node.is_summary
    ]
    watched = Recorded(model)
    for children in inner[:SHOWN]:
        await kept_summary(Writer(watched), children, max_tokens=130, store=None)
    shown, every = (
        sum(count_tokens(text) for node in part for text in node)
        for part in (inner[:SHOWN], inner)
    )
    spent = await watched.tokens()
    _add(table, "summarise: shown ones", spent, spent * every / max(shown, 1))


async def measure(path: Path, *, quick: bool) -> FigureTable:
    """Print the tables; return the costs."""
    model = LlamaGenerator(path)
    library = await anyio.to_thread.run_sync(read_library, CARRIED)
    asked = [one for one in library.asked if one.answers and len(one.pages) == 1][
        : 1 if quick else 2
    ]
    table: FigureTable = {}
    try:
        for one in asked:
            await reading_costs(
                table,
                model,
                one,
                library.nearest(one.question, first=one.pages),
                quick=quick,
            )
        longest = max(library.documents, key=lambda document: len(document.text))
        await tree_costs(table, model, longest, quick=quick)
        print(f"tokens evaluated, {len(asked)} questions   ours      naive  times less")
        for name, cost in table.items():
            print(
                f"{name:30} {cost.ours:8.0f} {cost.naive:10.0f} "
                f"{cost.naive / max(cost.ours, 1):11.1f}",
                flush=True,
            )
    finally:
        await model.aclose()
    return table


def main() -> int:
    """Print the tables; return 1 when `--check` finds a ratio short of its bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="the short form, against its bars"
    )
    parser.add_argument("--model", type=Path, help="another GGUF file")
    wanted = parser.parse_args()
    try:
        path = wanted.model or weights()
    except ModelError as error:
        print(f"skipped: {error}")
        return 0
    table = anyio.run(partial(measure, path, quick=wanted.check))
    ratios = {
        name: table[name].naive / max(table[name].ours, 1) if name in table else 0.0
        for name in BARS
    }
    missed = [
        f"{name}: {ratio:.1f} times less, bar {BARS[name]}"
        for name, ratio in ratios.items()
        if ratio < BARS[name]
    ]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if wanted.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
