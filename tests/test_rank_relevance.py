"""Scores of units: what makes a unit bear on a question, within which work, and that cancelled work
stops."""

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from models.protocols import TextKind, Vectors
from pipeline.question.question import Question
from pipeline.reading.bm25 import PageUnits
from pipeline.reading.relevance import EMBED_LONGEST, EMBED_TOKENS, Blend
from pipeline.text.tokens import count_tokens
from tests.support.waiting import bounded, until


def page(*texts: str, language: str = "en", above: Sequence[str] = ()) -> PageUnits:
    return PageUnits(texts, above or [""] * len(texts), language)


@pytest.mark.anyio
async def test_what_is_above_a_unit_counts_for_it() -> None:
    units = page(
        "Adults pay 4 crowns.",
        "Adults pay 9 crowns.",
        above=["Fares › Day boat", "Fares › Night boat"],
    )
    found = await Blend(None).read(Question("What do adults pay on the night boat?"), [units])
    assert int(found.values.argmax()) == 1


class Counting:
    """An embedder that counts what it is given; every text has the same vector."""

    name = "counting"
    background = MappingProxyType({"mean": 0.03, "deviation": 0.08, "near": 0.45})
    dimension = 2

    def __init__(self, *, reads: bool = True) -> None:
        """Answer `reads` with the given value."""
        self.texts: list[str] = []
        self._reads = reads

    def reads(self, text: str) -> bool:
        """Whether the script is known."""
        return self._reads or text == ""

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return ones."""
        if kind == "passage":
            self.texts += texts
        return np.full((len(texts), 2), 2**-0.5, dtype=np.float32)


@pytest.mark.anyio
async def test_a_huge_page_is_embedded_only_within_the_budget() -> None:
    units = page(
        *[
            f"Sentence {i} writes of ferry {i % 7} and of the harbour wall. " * 3
            for i in range(3000)
        ]
    )
    model = Counting()
    found = await Blend(model).read(Question("Which ferry?"), [units])
    assert 0 < sum(map(count_tokens, model.texts)) <= EMBED_TOKENS
    assert max(map(count_tokens, model.texts)) <= EMBED_LONGEST
    assert found.cosines is not None
    assert np.isnan(found.cosines).any()
    assert len(found.values) == 3000


@pytest.mark.anyio
async def test_an_embedder_that_does_not_read_the_script_is_left_out() -> None:
    model = Counting(reads=False)
    found = await Blend(model).read(
        Question("湊川市の人口は何人ですか。"), [page("人口は約八万人です。", language="ja")]
    )
    assert (found.made_by, found.cosines, model.texts) == ("bm25", None, [])


class Reversing:
    """A reranker that likes the last text best."""

    name = "reversing"

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return 0, 1, 2, …"""
        return np.arange(len(texts), dtype=np.float32)


@pytest.mark.anyio
async def test_a_reranker_has_the_last_word_on_the_best() -> None:
    units = page(
        "The Desmann lock costs 1,899 yuan.",
        "The Xiaomi lock costs less.",
        "Door locks have become clever.",
    )
    plain = await Blend(None).read(Question("How much does the Desmann lock cost?"), [units])
    turned = await Blend(None, Reversing()).read(
        Question("How much does the Desmann lock cost?"), [units]
    )
    assert turned.values.argsort().tolist() == plain.values.argsort().tolist()[::-1]
    assert turned.made_by == "rerank"


@pytest.mark.anyio
async def test_the_same_question_gives_the_same_scores_and_an_empty_page_none() -> None:
    units = page("The ferry leaves at nine.", "The harbour was dug in 1871.")
    first, again = [
        await Blend(Counting()).read(Question("When was the harbour dug?"), [units, page()])
        for _ in range(2)
    ]
    assert first.values.tolist() == again.values.tolist()
    assert (await Blend(Counting()).read(Question("When?"), [page()])).values.tolist() == []
    assert (await Blend(None).read(Question("When?"), [])).values.tolist() == []


@pytest.mark.anyio
async def test_a_cancelled_reading_leaves_no_thread_running() -> None:
    units = page(
        *[f"Sentence number {i} of a page that is far too long. " * 4 for i in range(200_000)]
    )
    with anyio.move_on_after(0.3) as scope:
        await Blend(None).read(Question("Which page is too long?"), [units])
    assert scope.cancelled_caught
    # The whole index takes tens of seconds.
    with bounded(5):
        await until(lambda: running_threads() == 1)


def running_threads() -> int:
    """How many threads of this process run now, the one that asks among them."""
    states = [
        (task / "stat").read_text("ascii").rpartition(")")[2].split()[0]
        for task in Path("/proc/self/task").iterdir()
    ]
    return states.count("R")


@pytest.mark.anyio
async def test_each_page_is_stemmed_in_its_own_language_and_a_question_reaches_all() -> None:
    pages = [
        page("Die Tageskarten kosten fünf Euro.", language="de"),
        page("The tickets were sold."),
    ]
    assert (await Blend(None).read(Question("Tageskarte"), pages)).values.tolist() == [1.0, 0.0]
    assert int((await Blend(None).read(Question("selling a ticket"), pages)).values.argmax()) == 1
