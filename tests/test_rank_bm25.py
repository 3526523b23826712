"""BM25 and fusion against figures worked out by hand."""

import math

import numpy as np
import pytest

from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, blend, reciprocal_rank_fusion, standardise, unit_range


def test_scores_are_those_of_the_formula() -> None:
    # Lengths 2, 3, 1 terms, mean 2; "ferry" occurs in two of three texts, twice in the second
    index = BM25(["ferry lake", "ferry ferry island", "lighthouse"])
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = idf * 1 * 2.2 / (1 + 1.2 * (0.7 + 0.3 * 2 / 2))
    second = idf * 2 * 2.2 / (2 + 1.2 * (0.7 + 0.3 * 3 / 2))
    assert index.scores(Question("ferry")) == pytest.approx([first, second, 0.0], rel=1e-6)


def test_a_term_of_every_text_still_counts_for_something() -> None:
    scores = BM25(["lake east", "lake west"]).scores(Question("lake"))
    assert (scores > 0).all()
    assert scores[0] == scores[1]


def test_a_repeated_query_term_counts_once() -> None:
    index = BM25(["ferry lake", "lake"])
    assert index.scores(Question("ferry ferry ferry")) == pytest.approx(
        index.scores(Question("ferry"))
    )


def test_a_query_of_stop_words_alone_is_scored_by_them() -> None:
    scores = BM25(["to be or not to be", "the lake"], language="en").scores(Question("to be"))
    assert scores.tolist() == [
        0.0,
        0.0,
    ]  # texts are counted without stop words, so nothing can match


def test_no_texts_give_no_scores() -> None:
    assert BM25([]).scores(Question("lake")).shape == (0,)


def test_empty_texts_score_nothing_beside_others() -> None:
    scores = BM25(["", "lake"]).scores(Question("lake"))
    assert scores[0] == 0
    assert scores[1] > 0


def test_chinese_questions_find_their_sentence_by_character_pairs() -> None:
    scores = BM25(["渡轮的票价是二十三元", "灯塔建于一九三一年"]).scores(Question("票价是多少"))
    assert int(scores.argmax()) == 0


def test_reciprocal_ranks_add_up_as_in_the_paper() -> None:
    fused = reciprocal_rank_fusion([[0, 1], [1]], 3)
    assert fused == pytest.approx([1 / 61, 1 / 62 + 1 / 61, 0.0], rel=1e-6)


def test_unit_range_and_standardise_take_lists_without_differences() -> None:
    same = np.asarray([2.0, 2.0], dtype=np.float32)
    assert unit_range(same).tolist() == [0.0, 0.0]
    assert standardise(same).tolist() == [0.0, 0.0]
    assert unit_range(np.asarray([1.0, 3.0, 2.0], dtype=np.float32)).tolist() == [0.0, 1.0, 0.5]


def test_blend_weighs_standardised_lists() -> None:
    one = np.asarray([1.0, -1.0], dtype=np.float32)
    other = np.asarray([-10.0, 10.0], dtype=np.float32)
    assert blend([one, other]) == pytest.approx([0.0, 0.0])
