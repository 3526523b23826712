"""Margins by a generator: a kept prefix, the lean taken off, every rule usable, embeddings where it
fails."""

from collections.abc import Sequence
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cache.store import Store
from errors import ContextExceeded, ModelError
from models.llama.model import LlamaGenerator
from models.protocols import Ability, PathScores, Prompt
from papers.idms.idms import ORDERS, Idms, IdmsOptions, Judge, judge_of, split_prompt
from papers.idms.partition import Rule, cut_by_margins
from readers.page import Sentence
from tests.support import LIBRARY, Connect, data_of, text_of
from tests.support.doubles import Dead
from tests.support.extras import needs_llama

pytestmark = pytest.mark.anyio
TEXTS = [f"The heron {verb} by the pond." for verb in ("waits", "fishes", "sleeps")]
TEXTS += [f"Our tax form {verb} the office." for verb in ("reaches", "leaves", "bores")]


def sentences(texts: Sequence[str]) -> list[Sentence]:
    return [
        Sentence(i + 1, text, i * 1000, i * 1000 + len(text), 0) for i, text in enumerate(texts)
    ]


class Reader:
    """Says yes where the next sentence begins as the one before, and leans to whatever is offered
    first."""

    name = "reader"
    context_tokens = 1_000
    abilities: frozenset[Ability] = frozenset({"score_tree"})
    lean = 0.3

    def __init__(self) -> None:
        self.prefixes: list[str] = []
        self.paths = 0

    async def generate(self, messages: object, *, max_tokens: int, schema: object = None) -> str:
        """Refuse; only scores are asked for."""
        raise ModelError("It does not write.", hint="Ask for scores.")

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return log-probabilities whose margin is +-0.4 and the lean."""
        assert isinstance(prefix, str) and among_siblings
        self.prefixes.append(prefix)
        self.paths += len(paths)
        margins = [self._margin(prefix + path) for path in paths[::2]]
        chances = [(1 + sign * margin) / 2 for margin in margins for sign in (1, -1)]
        return PathScores(np.log(chances), 10, 5, 5, 30)

    def _margin(self, asked: str) -> float:
        text, question = asked.split("\n\nNext sentence: ")
        margin = 0.4 if question.startswith(text.splitlines()[-1][:5]) else -0.4
        return margin + (self.lean if "Answer Yes or No" in question else -self.lean)


async def test_the_lean_to_the_first_option_is_measured_and_taken_off() -> None:
    margins = await Judge(Reader(), store=None, seconds=30).margins(TEXTS)
    assert margins == pytest.approx([0.4, 0.4, -0.4, 0.4, 0.4])


@pytest.mark.parametrize("rule", ["partition", "running"])
async def test_every_rule_finds_the_one_boundary_that_the_model_sees(rule: Rule) -> None:
    idms = Idms(IdmsOptions(rule), generator=Reader(), seconds=30)
    found = await idms.ranges(sentences(TEXTS), embedder=None, minimum=0, maximum=500)
    assert idms.notes == ["Boundaries by reader."]
    starts = {start for start, _ in found}
    # The paper's running mean also cuts after every margin that is no better than those before.
    assert starts == {0, 3} or (rule == "running" and 3 in starts)


async def test_the_papers_rule_shows_the_model_the_open_chunk_alone() -> None:
    reader = Reader()
    found = await Judge(reader, store=None, seconds=30).chunks(TEXTS)
    assert [start for start, _ in found] == [0, 2, 3] and found[-1][1] == len(TEXTS)
    for gap, prefix in enumerate(reader.prefixes):
        start = max(start for start, _ in found if start <= gap)
        shown = [number for number, text in enumerate(TEXTS) if text in prefix]
        assert shown == list(range(start, gap + 1))


async def test_each_prompt_goes_on_from_the_one_before_until_the_window_is_full() -> None:
    reader = Reader()
    await Judge(reader, store=None, seconds=30).margins(TEXTS * 40)
    recreated = [
        after
        for before, after in zip(reader.prefixes, reader.prefixes[1:], strict=False)
        if not after.startswith(before)
    ]
    # 240 sentences of seven tokens in windows of 500.
    assert 2 <= len(recreated) <= 4
    assert max(len(prefix) for prefix in reader.prefixes) < 4_000


async def test_gaps_are_asked_about_many_at_once() -> None:
    reader = Reader()
    judged = await Judge(reader, store=None, seconds=30).margins(TEXTS * 40)
    assert reader.paths == 2 * (len(TEXTS) * 40 - 1 + 8)
    assert len(reader.prefixes) < reader.paths / 8
    assert np.abs(judged).max() == pytest.approx(0.4)


class Short(Reader):
    """Holds fewer of its own tokens than it says by ours."""

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Refuse what is over 600 characters."""
        if len(prefix) + max(map(len, paths)) > 600:
            raise ContextExceeded("That is too long.", hint="Shorten it.")
        return await super().score_tree(prefix, paths, among_siblings=among_siblings)


async def test_a_model_that_holds_less_than_it_says_is_asked_about_less_at_once() -> None:
    short = await Judge(Short(), store=None, seconds=30).margins(TEXTS * 9)
    whole = await Judge(Reader(), store=None, seconds=30).margins(TEXTS * 9)
    assert np.allclose(short, whole)
    with pytest.raises(ModelError, match="too long"):
        await Judge(Short(), store=None, seconds=30).margins(["a" * 390, "b" * 390])


async def test_margins_are_kept_so_that_a_document_is_judged_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", size_limit=1_000_000, clock=lambda: 1_800_000_000.0)
    reader = Reader()
    judge = Judge(reader, store=store, seconds=30)
    first = await judge.margins(TEXTS)
    asked = len(reader.prefixes)
    again = await judge.margins(TEXTS)
    store.close()
    assert len(reader.prefixes) == asked
    assert np.array_equal(first, again)


class Stopping(Reader):
    """Dies at its third prompt, once."""

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Fail once."""
        if len(self.prefixes) == 2:
            self.prefixes.append("the one it died of")
            raise ModelError("It died of signal 9.", hint="Try again.")
        return await super().score_tree(prefix, paths, among_siblings=among_siblings)


async def test_what_was_judged_before_a_failure_is_not_asked_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", size_limit=1_000_000, clock=lambda: 1_800_000_000.0)
    stopping, whole = Stopping(), Reader()
    with pytest.raises(ModelError, match="signal 9"):
        await Judge(stopping, store=store, seconds=30).margins(TEXTS * 9)
    judged = await Judge(stopping, store=store, seconds=30).margins(TEXTS * 9)
    alone = await Judge(whole, store=None, seconds=30).margins(TEXTS * 9)
    store.close()
    assert len(stopping.prefixes) == len(whole.prefixes) + 1
    assert np.array_equal(judged, alone)


class Broken(Dead, Reader):
    """A model that died."""


async def test_a_model_that_fails_leaves_it_to_the_rest_and_the_reason_is_kept() -> None:
    idms = Idms(generator=Broken(), seconds=9)
    found = await idms.ranges(sentences(TEXTS), embedder=None, minimum=0, maximum=500)
    assert "Boundaries by embeddings" in idms.notes[0] and "signal 9" in idms.notes[0]
    assert found[-1][1] == len(TEXTS)


def test_without_a_generator_there_is_no_judge() -> None:
    assert judge_of(None, store=None, seconds=5) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=7), st.integers(0, 25), st.integers(30, 60)
)
def test_no_other_partition_within_the_bounds_lies_lower(
    levels: list[int], minimum: int, maximum: int
) -> None:
    margins = np.array(levels, dtype=np.float64)
    n = len(margins) + 1
    found = cut_by_margins(margins, [10] * n, rule="partition", minimum=minimum, maximum=maximum)
    floor = margins.mean() - margins.std()

    def worth(cuts: tuple[int, ...]) -> float:
        return float(sum(floor - margins[cut - 1] for cut in cuts))

    def fits(cuts: tuple[int, ...]) -> bool:
        edges = (0, *cuts, n)
        sizes = [10 * (b - a) for a, b in pairwise(edges)]
        return all(minimum <= size <= maximum for size in sizes)

    chosen = tuple(start for start, _ in found[1:])
    every = (cuts for count in range(n) for cuts in combinations(range(1, n), count))
    allowed = [worth(cuts) for cuts in every if fits(cuts)]
    if allowed:
        assert fits(chosen)
        assert worth(chosen) == pytest.approx(max(allowed), abs=1e-9)


def naive(weights: Path, texts: Sequence[str]) -> tuple[NDArray[np.float64], int]:
    """Margins in both orders [2, n - 1], each from whole prompts of its own, and the tokens that
    this evaluates."""
    import llama_cpp  # noqa: PLC0415  only with the extra llama, which the caller has checked

    plain = llama_cpp.Llama(
        str(weights),
        n_ctx=512,
        logits_all=True,
        verbose=False,
        n_threads=1,
        type_k=0,
        type_v=0,
        flash_attn=False,
    )
    line = plain.tokenize(b"\n", add_bos=False)
    margins, evaluated = [], 0
    for order, gap in product(ORDERS, range(len(texts) - 1)):
        prefix, question = split_prompt("\n".join(texts[: gap + 1]), texts[gap + 1], order)
        before = plain.tokenize(prefix.encode(), add_bos=True, special=False)
        paths = [
            plain.tokenize(f"\n{question} {option}".encode(), add_bos=False)[len(line) :]
            for option in ORDERS[0]
        ]
        fork = next(
            place for place, pair in enumerate(zip(*paths, strict=False)) if pair[0] != pair[1]
        )
        logs = []
        for path in paths:
            plain.reset()
            plain.eval(before + path)
            evaluated += len(before) + len(path)
            logs.append(float(plain.scores[len(before) - 1 + fork][path[fork]]))
        margins.append(np.tanh((logs[0] - logs[1]) / 2))
    plain.close()
    return np.array(margins).reshape(2, -1), evaluated


@needs_llama
async def test_real_weights_give_the_margins_of_whole_prompts_with_fewer_tokens(
    stories: LlamaGenerator, shared: Path
) -> None:
    texts = ["The cat sat.", "It was red.", "Tom ran.", "The sun set."]
    judge = judge_of(stories, store=None, seconds=60)
    assert judge is not None
    before = stories.tokens
    judged = await judge.margins(texts)
    spent = stories.tokens - before
    (yes_first, no_first), evaluated = naive(
        shared / "models" / "stories260K" / "stories260K-f32.gguf", texts
    )
    lean = np.mean(yes_first - no_first) / 2
    assert np.abs(judged - (yes_first - lean)).max() < 1e-3
    assert spent < evaluated / 2


@needs_llama
async def test_a_tree_by_margins_says_whose_boundaries_it_has(
    connect: Connect, shared: Path
) -> None:
    weights = shared / "models" / "stories260K" / "stories260K-f32.gguf"
    call = {
        "question": "When does the ferry leave?",
        "sources": [str(LIBRARY / "ferry-timetable.html")],
    }
    async with connect(generator=f"llama:{weights}", seconds="120") as client:
        judged = await client.call_tool("raptor_query", {**call, "chunking": "idms"})
        plain = await client.call_tool("raptor_query", call)
    async with connect() as client:
        embedded = await client.call_tool("raptor_query", {**call, "chunking": "idms"})
    assert "Boundaries by stories260K" in text_of(judged)
    assert "oundaries" not in text_of(plain)
    assert data_of(judged)["tree"] != data_of(embedded)["tree"]
