"""Segments: one optimum for all boundaries, thresholds over margins, lengths kept."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from models.onnx import OnnxEmbedder
from papers.idms.partition import PRICE, Rule, cut_by_margins, partition, segment
from pipeline.raptor.leaves import Ranges
from readers.page import Sentence

TOPICS = (
    (
        "The volcano threw ash over the island for three days.",
        "Lava ran down its northern slope into the sea.",
        "Geologists had seen the ground swell before the eruption.",
        "Earthquakes shook the crater every few minutes.",
    ),
    (
        "Sourdough bread needs flour, water, salt and patience.",
        "The baker folds the dough every half hour.",
        "A hot oven with steam makes the crust crackle.",
        "Loaves should cool for an hour before you slice them.",
    ),
    (
        "The court ruled that the contract was void.",
        "The judge held that the seller had hidden defects.",
        "Both lawyers said they would appeal the verdict.",
        "The plaintiff was awarded damages and costs.",
    ),
)


def sentences(texts: list[str]) -> list[Sentence]:
    return [
        Sentence(i + 1, text, i * 1000, i * 1000 + len(text), 0) for i, text in enumerate(texts)
    ]


def assert_covers(found: Ranges, n: int) -> None:
    assert [i for start, end in found for i in range(start, end)] == list(range(n))
    assert all(start < end for start, end in found)


@pytest.mark.anyio
async def test_boundaries_fall_where_the_topic_changes(embedder: OnnxEmbedder) -> None:
    texts = [text for topic in TOPICS for text in topic]
    found = await segment(sentences(texts), embedder=embedder, minimum=0, maximum=500)
    assert found == [(0, 4), (4, 8), (8, 12)]


@pytest.mark.anyio
@pytest.mark.parametrize("rule", ["partition", "running"])
@pytest.mark.parametrize("n", [0, 1, 2, 12])
async def test_every_rule_covers_all_sentences(rule: Rule, n: int, embedder: OnnxEmbedder) -> None:
    texts = [text for topic in TOPICS for text in topic][:n]
    found = await segment(sentences(texts), embedder=embedder, rule=rule, minimum=50, maximum=200)
    assert_covers(found, n)


@pytest.mark.anyio
async def test_without_an_embedder_shared_words_hold_a_segment_together() -> None:
    texts = [
        f"The heron {verb} by the heron pond." for verb in ("waits", "fishes", "sleeps", "calls")
    ]
    texts += [
        f"Our tax form {verb} the tax office." for verb in ("reaches", "leaves", "bores", "angers")
    ]
    found = await segment(sentences(texts), embedder=None, minimum=0, maximum=500)
    assert 4 in {start for start, _ in found}


@pytest.mark.anyio
async def test_a_script_the_embedder_cannot_read_is_cut_by_words(embedder: OnnxEmbedder) -> None:
    texts = [f"渡し船{i}は港を出る。" for i in range(30)]
    found = await segment(sentences(texts), embedder=embedder, minimum=20, maximum=60)
    assert_covers(found, 30)
    assert len(found) > 3


def vectors_of(numbers: list[list[float]]) -> NDArray[np.float32]:
    rows = np.asarray(numbers, dtype=np.float32) + 1e-3
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def worth(vectors: NDArray[np.float32], ranges: list[tuple[int, int]]) -> float:
    return sum(
        float(np.linalg.norm(vectors[a:b].sum(axis=0)) ** 2 / (b - a)) - PRICE for a, b in ranges
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3), min_size=1, max_size=9)
)
def test_no_other_partition_is_worth_more(numbers: list[list[float]]) -> None:
    vectors = vectors_of(numbers)
    n = len(vectors)
    found = partition(vectors, [10] * n, minimum=0, maximum=1000)
    assert_covers(found, n)
    for mask in range(2 ** (n - 1)):
        edges = [0, *(i + 1 for i in range(n - 1) if mask >> i & 1), n]
        assert worth(vectors, list(pairwise(edges))) <= worth(vectors, found) + 1e-4


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=150), st.integers(0, 40), st.integers(50, 120)
)
def test_segments_stay_within_their_lengths(costs: list[int], minimum: int, maximum: int) -> None:
    generator = np.random.default_rng(len(costs))
    vectors = vectors_of(generator.normal(size=(len(costs), 8)).tolist())
    found = partition(vectors, costs, minimum=minimum, maximum=maximum)
    assert_covers(found, len(costs))
    assert all(sum(costs[a:b]) <= maximum or b - a == 1 for a, b in found)


def test_short_segments_are_joined_where_that_is_possible() -> None:
    vectors = vectors_of([[(-1.0) ** i, 0.0] for i in range(8)])
    assert len(partition(vectors, [10] * 8, minimum=0, maximum=100)) == 8
    assert all(b - a >= 4 for a, b in partition(vectors, [10] * 8, minimum=40, maximum=100))


def cuts(margins: list[float], rule: Rule) -> list[int]:
    """Gaps at which a rule sets boundaries where lengths do not matter."""
    costs = [10] * (len(margins) + 1)
    found = cut_by_margins(
        np.asarray(margins), costs, rule=rule, minimum=0, maximum=10 * len(costs)
    )
    return [start - 1 for start, _ in found[1:]]


def test_the_running_mean_is_the_papers_rule() -> None:
    # Before each: 0; 0.5; 0.35; 0.3667.
    assert cuts([0.5, 0.2, 0.4, 0.36], "running") == [1, 3]
    assert cuts([0.5, 0.5, 0.5], "running") == [1, 2]


def test_the_default_cuts_at_margins_a_deviation_below_their_mean() -> None:
    assert cuts([0.6, 0.6, 0.05, 0.6, 0.6, 0.6, 0.55], "partition") == [2]


@pytest.mark.parametrize("rule", ["partition", "running"])
def test_lengths_hold_for_margins_too(rule: Rule) -> None:
    margins = np.random.default_rng(5).uniform(-1, 1, size=199)
    found = cut_by_margins(margins, [20] * 200, rule=rule, minimum=60, maximum=160)
    assert_covers(found, 200)
    assert all(b - a <= 8 for a, b in found)
