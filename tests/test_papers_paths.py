"""Generative pruning: the paper's worked example by hand, real weights against brute force,
contexts fitted aloud."""

from collections.abc import Sequence
from pathlib import Path
from re import findall

import numpy as np
import pytest
from numpy.typing import NDArray

from models.llama.model import LlamaGenerator
from models.llama.token_tree import grow, score_paths
from models.protocols import Ability, PathScores, Prompt, Said
from papers.htmlrag.blocks import (
    PaperBlocks,
    PathScorer,
    adjusted_pages,
    block_paths,
    numbered_html,
    paper_blocks,
    path_scorer,
    rank_finer,
)
from papers.htmlrag.prune import prune_as_printed
from pipeline.prune.prune import PruneOptions
from pipeline.question.question import Question
from prompts import load
from tests.support import LIBRARY, Connect, data_of
from tests.support.doubles import Dead
from tests.support.extras import needs_llama
from tests.support.pages import document

pytestmark = pytest.mark.anyio
FIGURE_3 = (
    "<nav><div><h1>Introducing OpenAI o1-preview, a series of models that reason about hard "
    "problems</h1>"
    "<a href='/more'>Read more</a></div></nav>"
    "<div><div>{other}</div><div><p>In our tests, the next model update</p><p>performs "
    "similarly.</p></div>"
    "<div>{other}</div></div>"
).format(other="Some other text of the page that no one asked for, in one sentence.")
SHARES = {
    "<html><body><": {"nav": 0.1, "div": 0.9},
    "<html><body><nav><": {"h": 0.8, "a": 0.2},
    "<html><body><div><div": {"1": 0.2, "2": 0.7, "3": 0.1},
}
"""Figure 3's probabilities, where tokens have rivals; a token without any has probability 1."""


class Figure3:
    """The figure's tokenizer and its numbers as logits, walked by the token tree that real models
    use."""

    name = "figure-3"
    abilities: frozenset[Ability] = frozenset({"score_tree"})
    context_tokens = 2_000

    def __init__(self) -> None:
        self.seen: Sequence[str] = ()

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return scores of `paths` out of `SHARES`."""
        self.seen = paths
        pieces = [findall(r"><|[<>]|\d|[a-z]+|\S", path) for path in paths]
        known = sorted({piece for path in pieces for piece in path})
        numbered = [tuple(map(known.index, path)) for path in pieces]

        def logits_after(beginning: tuple[int, ...]) -> NDArray[np.float32]:
            # Whatever the rest of the vocabulary has: only siblings count.
            shares = SHARES.get("".join(known[number] for number in beginning), {})
            return np.array([np.log(shares.get(piece, 99.0)) for piece in known], dtype=np.float32)

        tree = grow(numbered)
        scores = score_paths(tree, logits_after, among_siblings=among_siblings)
        size = sum(map(len, tree.values()))
        return PathScores(np.array([scores[path] for path in numbered]), 0, 0, size, 0)


async def test_the_papers_figure_3_comes_out_as_computed_by_hand() -> None:
    page, model = document(FIGURE_3), Figure3()
    found = paper_blocks([page], max_words=14)
    scores = await PathScorer(model, [page], context_tokens=2_000, seconds=10).score(
        "OpenAI tests", found
    )
    by_path = dict(zip(model.seen, np.exp(scores).tolist(), strict=True))
    expected = {
        "<html><body><nav><h1>": 0.1 * 0.8,
        "<html><body><nav><a>": 0.1 * 0.2,
        "<html><body><div><div1>": 0.9 * 0.2,
        "<html><body><div><div2>": 0.9 * 0.7,
        "<html><body><div><div3>": 0.9 * 0.1,
    }
    assert by_path == pytest.approx(expected, abs=1e-6)


async def test_the_paper_method_keeps_the_block_whose_path_is_likeliest() -> None:
    long = FIGURE_3.replace("no one asked for", "no one asked for " * 40).replace(
        "In our tests", "In our tests " * 40
    )
    page, model = document(long), Figure3()
    scorer = PathScorer(model, [page], context_tokens=9_000, seconds=10)
    result = await prune_as_printed(
        [page], Question("other text of the page"), PruneOptions(260), finer=scorer
    )
    assert "performs similarly" in result.pages[0].text
    assert "no one" not in result.pages[0].text
    assert "figure-3" in result.scored_by


def test_tags_are_numbered_in_the_html_as_in_the_paths() -> None:
    page = document(
        "<section>own words <p>one</p><p>two "
        "<b>bold</b></p></section><section>x<h2>y</h2></section>"
    )
    found = paper_blocks([page], max_words=1)
    html = numbered_html([page.root], found, first=1)
    assert "<p1>one</p1>" in html
    assert "own words" in html
    for path in block_paths(found, first=1):
        assert all(step in html for step in findall(r"<[a-z]+\d*>", path))
    assert any(path.endswith("<section1>own words") for path in block_paths(found, first=1))


def test_the_authors_pruners_get_their_numbers_from_zero_and_pages_are_siblings() -> None:
    pages = [document("<p>one</p><p>two</p>"), document("<p>three</p>", "http://b/")]
    found = paper_blocks(pages, max_words=1)
    assert block_paths(found, first=0)[:2] == ["<html0><body><p0>", "<html0><body><p1>"]
    assert block_paths(found, first=1)[2] == "<html2><body><p>"
    roots = [page.root for page in pages]
    assert numbered_html(roots, found, first=0).startswith("<html0><body><p0>one</p0>")


def brute_force(path: Path, prefix: str, paths: list[str]) -> tuple[NDArray[np.float64], int]:
    """Score each path by an evaluation of its own, softmax among the tokens that some path has
    there."""
    import llama_cpp  # noqa: PLC0415  only with the extra llama, which the caller has checked
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter  # noqa: PLC0415  as above

    model = llama_cpp.Llama(
        str(path),
        n_ctx=512,
        logits_all=True,
        verbose=False,
        n_threads=1,
        type_k=0,
        type_v=0,
        flash_attn=False,
    )
    template = Jinja2ChatFormatter(model.metadata["tokenizer.chat_template"], "</s>", "<s>")
    said = template(messages=[{"role": "user", "content": prefix}]).prompt
    before = model.tokenize(said.encode(), add_bos=not said.startswith("<s>"), special=True)
    line = model.tokenize(b"\n", add_bos=False)
    tokens = [model.tokenize(("\n" + text).encode(), add_bos=False)[len(line) :] for text in paths]
    scores, evaluated = [], 0
    for one in tokens:
        model.reset()
        model.eval(before + one)
        evaluated += len(before) + len(one)
        total = 0.0
        for place, token in enumerate(one):
            rivals = sorted(
                {
                    other[place]
                    for other in tokens
                    if other[:place] == one[:place] and len(other) > place
                }
            )
            logits = model.scores[len(before) - 1 + place][rivals].astype(np.float64)
            total += float(logits[rivals.index(token)] - np.log(np.exp(logits).sum()))
        scores.append(total)
    model.close()
    return np.array(scores), evaluated


@needs_llama
async def test_real_weights_score_as_brute_force_does_with_far_fewer_tokens(
    stories: LlamaGenerator, shared: Path
) -> None:
    page = document(
        "<div><p>A cat.</p><p>A dog.</p></div><div><ul><li>sun</li><li>sea</li></ul></div>"
    )
    found = paper_blocks([page], max_words=1)
    scorer = path_scorer(stories, [page], seconds=60)
    assert scorer is not None
    scores = await scorer.score("Who?", found)
    roots, shown = adjusted_pages([page], found)
    prompt = load("prune_html").fill(html=numbered_html(roots, shown, first=1), question="Who?")
    weights = shared / "models" / "stories260K" / "stories260K-f32.gguf"
    plain, evaluated = brute_force(weights, prompt, block_paths(shown, first=1))
    assert np.abs(scores - plain).max() < 1e-3
    assert scorer.cost is not None
    assert scorer.cost.evaluated_tokens <= scorer.cost.prefix_tokens + scorer.cost.tree_tokens
    assert scorer.cost.evaluated_tokens * 3 < evaluated


@needs_llama
async def test_a_page_over_the_context_is_fitted_by_whole_blocks_and_said(
    stories: LlamaGenerator,
) -> None:
    page = document(
        "".join(f"<div><p>Cat {n} sat by the sea and saw {n} ships.</p></div>" for n in range(400))
    )
    found = paper_blocks([page], max_words=20)
    scorer = path_scorer(stories, [page], seconds=60)
    assert scorer is not None
    order = list(range(len(found.blocks)))
    ranking = await rank_finer([page], "cat 7", found, order, scorer, budget=9_000)
    assert 0 < ranking.shown < ranking.total == len(found.blocks)
    assert len(ranking.scores) == len(ranking.blocks.blocks) > 0


@needs_llama
async def test_a_model_without_room_scores_nothing_and_the_pruning_goes_on(
    stories: LlamaGenerator,
) -> None:
    page = document(f"<p>{'cats ' * 2_000}</p>")
    scorer = path_scorer(stories, [page], seconds=60)
    result = await prune_as_printed([page], Question("cats"), PruneOptions(300), finer=scorer)
    assert result.pages
    assert "no room" in result.scored_by


class Broken(Dead, Figure3):
    """A model that died."""


async def test_a_model_that_fails_leaves_the_first_step_and_the_reason() -> None:
    page = document(FIGURE_3)
    asked, options = Question("model update"), PruneOptions(100)
    broken = PathScorer(Broken(), [page], context_tokens=900, seconds=10)
    with_it = await prune_as_printed([page], asked, options, finer=broken)
    without = await prune_as_printed([page], asked, options)
    assert "signal 9" in with_it.scored_by
    assert with_it.pages == without.pages
    assert without.scored_by == ""


@needs_llama
async def test_the_tool_reports_which_generator_scored(connect: Connect, shared: Path) -> None:
    weights = shared / "models" / "stories260K" / "stories260K-f32.gguf"
    call = {
        "sources": [str(LIBRARY / "ferry-timetable.html")],
        "question": "first Sunday departure",
        "max_tokens": 600,
    }
    async with connect(
        generator=f"llama:{weights}", seconds="90", papers="pruning=paper"
    ) as client:
        result = await client.call_tool("fetch_and_prune_html", call)
    async with connect() as client:
        plain = await client.call_tool("fetch_and_prune_html", call)
    assert "stories260K" in data_of(result)["scored_by"]
    assert "scored_by" not in data_of(plain)  # empty fields are left out


def test_messages_carry_the_prompt_in_the_authors_words() -> None:
    text = load("prune_html").fill(html="<p>x</p>", question="y?")
    assert text.startswith(
        "**HTML**: ```<p>x</p>```\n**Question**: **y?**\n Your task is to identify"
    )
    assert text.endswith("<html1><body><div2><p>Some key information...")
    assert Said("user", text).role == "user"
    assert isinstance(PaperBlocks().blocks, list)
