"""The second step of the paper's pruning: a scorer of finer blocks decides."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from models.protocols import Ability, PathScores, Prompt
from papers.htmlrag.block_tree import block_tree
from papers.htmlrag.blocks import (
    PaperBlocks,
    PathScorer,
    adjusted_pages,
    finer_blocks,
    paper_blocks,
)
from papers.htmlrag.prune import prune_as_printed
from pipeline.prune.prune import Pruned, PruneOptions
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.text.tokens import count_tokens
from readers.html.clean import clean
from readers.page import Block
from readers.tree import count_words, text_of, walk
from tests.support.doubles import Letters
from tests.support.pages import document, resolve

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
        self.name, self.max_tokens = "wanting", 900
        self.phrase = phrase
        self.shown: list[Block] = []

    async def score(self, query: str, found: PaperBlocks) -> Floats:
        """Return 1 for blocks that hold the phrase."""
        self.shown = found.blocks
        return np.array([self.phrase in block.text for block in found.blocks], dtype=np.float32)


async def test_the_second_step_scores_finer_blocks_of_the_survivors_only() -> None:
    one, scorer = document(SECTIONS), Wanting("3.4")
    options = PruneOptions(150)
    result = await prune_as_printed([one], Question("Part 3 Sentence"), options, finer=scorer)
    assert 0 < sum(count_tokens(block.text) for block in scorer.shown) <= scorer.max_tokens
    assert max(len(block.text.split()) for block in scorer.shown) < 128
    assert "Sentence 3.4" in result.pages[0].text
    assert result.tokens <= 150


async def test_what_the_second_step_was_not_shown_comes_in_further_parts() -> None:
    one, scorer = document(SECTIONS), Wanting("3.4")
    options = PruneOptions(150)
    parts: list[Pruned] = []
    while not parts or parts[-1].parts_left:
        options = replace(options, part=len(parts) + 1)
        result = await prune_as_printed([one], Question("Part 3 Sentence"), options, finer=scorer)
        parts.append(result)
    shown = " ".join(page.text for part in parts for page in part.pages)
    assert all(sentence in shown for sentence in re.findall(r"Sentence \d\.\d+", one.text))
    assert len(scorer.shown) < len(paper_blocks([one], max_words=128).blocks)


async def test_the_second_step_is_shown_twice_the_budget() -> None:
    one, scorer = document(SECTIONS * 2), Wanting("3.4")
    scorer.max_tokens = 100_000
    shown = {}
    for budget in (150, 1_500):
        options = PruneOptions(budget)
        await prune_as_printed([one], Question("Part 3 Sentence"), options, finer=scorer)
        shown[budget] = sum(count_tokens(block.text) for block in scorer.shown)
    assert 300 < shown[150] <= 1_500 < shown[1_500] <= 3_000


async def test_blocks_are_kept_by_the_embedder_alone() -> None:
    """`Letters` takes the second block for the nearer one; a word of the question is in the first."""
    one = document(f"<p>harbour {'zzzz ' * 150}</p><p>{'hr abour ' * 150}</p>")
    asked, options = Question("harbour"), PruneOptions(700)
    by_vectors = await prune_as_printed([one], asked, options, embedder=Letters())
    by_words = await prune_as_printed([one], asked, options)
    assert "zzzz" not in by_vectors.pages[0].text
    assert "zzzz" in by_words.pages[0].text


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


def test_paths_in_the_adjusted_tree_lead_to_their_blocks_past_no_wrapper() -> None:
    one = document(f"<article><div>loose words here {SECTIONS}</div></article>")
    found = paper_blocks([one], max_words=256)
    for kept in ([0], [3], [2, 5], list(range(len(found.blocks)))):
        finer = finer_blocks([one], found, kept, max_words=40)
        roots, shown = adjusted_pages([one], finer)
        assert [block.text for block in shown.blocks] == [block.text for block in finer.blocks]
        assert len({block.path for block in shown.blocks}) == len(shown.blocks)
        for block in shown.blocks:
            node = resolve(roots[0], block.path)
            assert node is not None
            assert text_of(node) == block.text or block.path in shown.split[0]
        for node in walk(roots[0]):
            assert node is roots[0] or isinstance(node.children[0], str) or len(node.children) > 1


class Listening:
    """A generator that takes all paths for equal, and remembers what it was asked."""

    name = "listening"
    abilities: frozenset[Ability] = frozenset({"score_tree"})
    context_tokens = 100

    def __init__(self) -> None:
        self.prompt = ""
        self.paths: Sequence[str] = ()

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return equal scores."""
        self.prompt = prefix if isinstance(prefix, str) else prefix[-1].content
        self.paths = paths
        return PathScores(np.zeros(len(paths)), 1, 1, 1, 1)


async def test_the_second_step_reads_what_the_first_leaves_without_its_wrappers() -> None:
    rest = f"<div><p>{'other words ' * 300}</p></div>"
    one = document(f"<article><ul><li>The harbour opens.</li><li>{rest}</li></ul>{rest}</article>")
    model = Listening()
    scorer = PathScorer(model, [one], context_tokens=100, seconds=10)
    options = PruneOptions(60)
    await prune_as_printed([one], Question("harbour"), options, finer=scorer, block_words=20)
    assert model.paths == ["<html><li>"]
    assert "```<html><li>The harbour opens.</li></html>```" in model.prompt


async def test_the_lowest_blocks_are_deleted_and_the_structure_is_repaired() -> None:
    result = await prune_as_printed([document()], Question("Danube countries"), PruneOptions(120))
    text = result.pages[0].text
    assert result.tokens <= 120
    assert "ten countries" in text
    assert text_of(clean(text)).split() == text_of(clean(text.replace("><", "> <"))).split()
    whole = await prune_as_printed([document()], Question(""), PruneOptions(9000))
    assert sorted(text_of(clean(whole.pages[0].text)).split()) == sorted(
        text_of(document().root).split()
    )
    assert len(whole.pages[0].kept) == len(document().blocks)


@pytest.mark.parametrize("word", ["a" * 700, "&lt;" * 300, "天" * 400])
async def test_a_block_that_begins_with_a_word_over_the_budget_gives_its_beginning(
    word: str,
) -> None:
    one = document(f"<p>{word} ends</p>")
    result = await prune_as_printed([one], Question("ends"), PruneOptions(70))
    assert 0 < result.tokens <= 70


FIGURE_6 = (
    "<div><h1>OpenAI o1-preview</h1><div><p>In our tests, the next model update performs "
    "similarly to PhD students</p>"
    "</div>For complex reasoning tasks this is a significant advancement</div>"
)


def test_a_node_below_the_limit_is_one_block() -> None:
    blocks = block_tree(clean(FIGURE_6), max_words=100)
    assert [(block.path, count_words(block.text)) for block in blocks] == [("html", 23)]


def test_a_larger_node_is_opened_and_its_own_text_is_a_block_as_in_figure_6() -> None:
    blocks = block_tree(clean(FIGURE_6), max_words=12)
    assert [(block.path, block.text[:12]) for block in blocks] == [
        ("html/body", "For complex "),
        ("html/body/h1", "OpenAI o1-pr"),
        ("html/body/p", "In our tests"),
    ]


def test_equal_siblings_are_numbered_and_blocks_come_breadth_first() -> None:
    html = (
        "<div><p>a a a</p><p>b b b</p></div><div><ul><li>c c</li><li>d d</li></ul><p>e e</p></div>"
    )
    assert [block.path for block in block_tree(clean(html), max_words=3)] == [
        "html/body/div1/p1",
        "html/body/div1/p2",
        "html/body/div2/p",
        "html/body/div2/ul/li1",
        "html/body/div2/ul/li2",
    ]


def test_chinese_counts_as_words_so_that_a_chinese_page_is_cut_like_an_english_one() -> None:
    html = "<p>" + "天地玄黄宇宙洪荒" * 20 + "</p><p>" + "日月盈昃辰宿列张" * 20 + "</p>"
    assert len(block_tree(clean(html), max_words=256)) == 1
    assert len(block_tree(clean(html), max_words=100)) == 2
