"""The second step of the paper's pruning: a scorer of finer blocks decides."""

import re
from dataclasses import replace

import numpy as np
import pytest

from pipeline.document.page import Block
from pipeline.document.tree import text_of
from pipeline.html.blocks import resolve
from pipeline.prune.paper import PaperBlocks, PathScorer, finer_blocks, paper_blocks
from pipeline.prune.prune import Method, Pruned, PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.reading.relevance import Blend
from pipeline.text.tokens import count_tokens
from tests.support.doubles import Letters
from tests.support.pages import document

pytestmark = pytest.mark.anyio
WORDS = "of many words " * 12
SECTIONS = "".join(
    f"<section><h2>Part "
    f"{i}</h2>{''.join(f'<p>Sentence {i}.{j} {WORDS}</p>' for j in range(6))}</section>"
    for i in range(8)
)


class Wanting(PathScorer):
    """A scorer that wants one phrase, and remembers what it was shown."""

    def __init__(self, phrase: str) -> None:
        self.name, self.weight, self.max_tokens = "wanting", 1.0, 900
        self.phrase = phrase
        self.shown: list[Block] = []

    async def score(self, query: str, found: PaperBlocks) -> Floats:
        """Return 1 for blocks that hold the phrase."""
        self.shown = found.blocks
        return np.array([self.phrase in block.text for block in found.blocks], dtype=np.float32)


async def test_the_second_step_scores_finer_blocks_of_the_survivors_only() -> None:
    one, scorer = document(SECTIONS), Wanting("3.4")
    options = PruneOptions(150, "html", method="paper")
    result = await prune(
        [one], Question("Part 3 Sentence"), options=options, reader=Blend(None), finer=scorer
    )
    assert 0 < sum(count_tokens(block.text) for block in scorer.shown) <= scorer.max_tokens
    assert max(len(block.text.split()) for block in scorer.shown) < 128
    assert "Sentence 3.4" in result.pages[0].text
    assert result.tokens <= 150


async def test_what_the_second_step_was_not_shown_comes_in_further_parts() -> None:
    one, scorer = document(SECTIONS), Wanting("3.4")
    options = PruneOptions(150, "html", method="paper")
    parts: list[Pruned] = []
    while not parts or parts[-1].parts_left:
        options = replace(options, part=len(parts) + 1)
        result = await prune(
            [one], Question("Part 3 Sentence"), options=options, reader=Blend(None), finer=scorer
        )
        parts.append(result)
    shown = " ".join(page.text for part in parts for page in part.pages)
    assert all(sentence in shown for sentence in re.findall(r"Sentence \d\.\d+", one.text))
    assert len(scorer.shown) < len(paper_blocks([one], max_words=128).blocks)


async def test_the_second_step_is_shown_twice_the_budget() -> None:
    one, scorer = document(SECTIONS * 2), Wanting("3.4")
    scorer.max_tokens = 100_000
    shown = {}
    for budget in (150, 1_500):
        options = PruneOptions(budget, "html", method="paper")
        await prune(
            [one], Question("Part 3 Sentence"), options=options, reader=Blend(None), finer=scorer
        )
        shown[budget] = sum(count_tokens(block.text) for block in scorer.shown)
    assert 300 < shown[150] <= 1_500 < shown[1_500] <= 3_000


async def test_the_papers_method_goes_by_the_embedder_alone_and_blocks_by_words_too() -> None:
    """`Letters` takes the second block for the nearer one; a word of the question is in the first."""
    one = document(f"<p>harbour {'zzzz ' * 150}</p><p>{'hr abour ' * 150}</p>")
    kept = {}
    methods: tuple[Method, ...] = ("paper", "blocks")
    for method in methods:
        options = PruneOptions(700, "html", method=method)
        found = await prune(
            [one], Question("harbour"), options=options, reader=Blend(None), embedder=Letters()
        )
        kept[method] = "zzzz" in found.pages[0].text
    assert kept == {"paper": False, "blocks": True}


def test_finer_blocks_split_the_kept_ones_without_loss_and_their_paths_resolve() -> None:
    one = document(f"<div>loose words here {SECTIONS}</div>")
    found = paper_blocks([one], max_words=256)
    for kept in ([0], [2, 5], list(range(len(found.blocks)))):
        finer = finer_blocks([one], found, kept, max_words=40)
        words = sorted(" ".join(found.blocks[number].text for number in kept).split())
        assert sorted(" ".join(block.text for block in finer.blocks).split()) == words
        for block in finer.blocks:
            node = resolve(one.root, block.path)
            assert node is not None
            assert block.text in text_of(node) or block.path in finer.split[0]
