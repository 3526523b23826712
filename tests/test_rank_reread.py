"""The second look: which windows a cross-encoder is shown, what its reading changes, and what is
never read twice."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import numpy as np
import pytest

from cache.store import open_stores
from models.onnx import OnnxReader
from models.protocols import TextKind, Vectors, Window, WindowReading
from pipeline.cached_models import CachedCrossEncoder
from pipeline.question.question import Question
from pipeline.reading.bm25 import PageUnits
from pipeline.reading.extract import left_unread, read_documents
from pipeline.reading.relevance import WINDOWS, WINDOWS_OF_PAGES, Blend, Relevance, Reread
from pipeline.work import Call
from tests.support.pages import document
from tests.support.waiting import soon

FILLER = [
    f"Paragraph {i} writes of walks along the shore, of gulls, and of what the café serves in "
    f"spring."
    for i in range(60)
]


class Pointing:
    """A cross-encoder that finds one word and remembers what it was shown."""

    name = "pointing"

    def __init__(self, word: str) -> None:
        """Take the word that answers."""
        self.word = word
        self.shown: list[Window] = []

    def reads(self, text: str) -> bool:
        """Whether the text is in Latin letters."""
        return all(letter < "\u0250" for letter in text)

    async def read(self, question: str, windows: Sequence[Window]) -> list[WindowReading]:
        """Return 1 for each sentence that holds the word."""
        self.shown += windows
        keep = [
            np.array([self.word in one for one in window.sentences], dtype=np.float32)
            for window in windows
        ]
        return [WindowReading(found, float(found.max())) for found in keep]


@pytest.mark.anyio
async def test_what_the_reader_finds_comes_before_what_only_shares_words() -> None:
    texts = [
        *FILLER[:20],
        "The toilet is behind the ticket hall.",
        "Tickets: see below, or ask about tickets at the hall.",
        *FILLER[20:],
    ]
    page = PageUnits(texts, ["Pier"] * len(texts), "en")
    found = await Reread(Blend(None), Pointing("toilet")).read(
        Question("Where are tickets sold in the hall?"), [page]
    )
    assert int(found.values.argmax()) == 20
    assert found.read is not None
    assert found.read[20] == 1


@pytest.mark.anyio
async def test_the_best_units_are_read_in_whole_sentences_of_one_page() -> None:
    pages = [
        PageUnits([f"{text} Page {n}." for text in FILLER], [f"Title {n}"] * 60, "en")
        for n in range(3)
    ]
    first = await Blend(None).read(Question("Which walks does paragraph 41 tell of?"), pages)
    encoder = Pointing("41")
    await Reread(Blend(None), encoder).read(
        Question("Which walks does paragraph 41 tell of?"), pages
    )
    # One paragraph has the number that is asked for: what is below half of its score is not read
    # beyond the first ones.
    assert len(encoder.shown) == WINDOWS
    best = [pages[row // 60].texts[row % 60] for row in np.argsort(-first.values)[:5].tolist()]
    assert all(any(text in window.sentences for window in encoder.shown) for text in best)
    assert all(len({text[-2] for text in window.sentences}) == 1 for window in encoder.shown)
    assert {window.above for window in encoder.shown} <= {"Title 0", "Title 1", "Title 2"}


@pytest.mark.anyio
async def test_of_pages_that_are_alike_as_many_windows_are_read_as_a_call_may() -> None:
    texts = ["Gulls nest on the roofs of the harbour in spring."] * 90 + [
        "The museum is closed."
    ] * 90
    pages = [PageUnits(texts, [f"Title {n}"] * len(texts), "en") for n in range(12)]
    encoder = Pointing("roofs")
    await Reread(Blend(None), encoder).read(Question("Where do gulls nest?"), pages)
    assert len(encoder.shown) == WINDOWS_OF_PAGES


@pytest.mark.anyio
async def test_a_question_that_the_reader_cannot_read_is_left_to_the_blend() -> None:
    page = PageUnits(FILLER, [""] * 60, "en")
    encoder = Pointing("gulls")
    found = await Reread(Blend(None), encoder).read(Question("Πού είναι οι γλάροι;"), [page])
    assert (encoder.shown, found.read) == ([], None)
    assert (
        await Reread(Blend(None), encoder).read(Question("Where are gulls?"), [])
    ).values.tolist() == []


@pytest.mark.anyio
async def test_no_window_is_read_twice_for_one_question(tmp_path: Path) -> None:
    stores = open_stores(tmp_path, size_limit=10_000_000)
    try:
        windows = [Window("Pier", ("Gulls nest here.", "No dogs.")), Window("", ("A toilet.",))]
        encoder = Pointing("toilet")
        first = await CachedCrossEncoder(encoder, stores.scores).read("Where?", windows)
        again = await CachedCrossEncoder(encoder, stores.scores).read("Where?", windows[::-1])
        assert len(encoder.shown) == 2
        assert [one.keep.tolist() for one in first] == [[0, 0], [1]]
        assert [one.answers for one in again] == [1, 0]
    finally:
        stores.close()


@pytest.mark.anyio
async def test_the_carried_reader_finds_an_answer_in_other_words() -> None:
    texts = [
        *FILLER[:15],
        "Dogs must stay at home: only guide animals are let aboard.",
        *FILLER[15:40],
    ]
    page = PageUnits(texts, ["Ferry › Rules"] * len(texts), "en")
    found = await Reread(Blend(None), OnnxReader()).read(
        Question("May I bring my pet on the boat?"), [page]
    )
    assert found.read is not None
    assert int(found.read.argmax()) == 15


class Counting:
    """An embedder that counts the texts it is given."""

    name, dimension = "counting", 2

    def __init__(self) -> None:
        """Start at none."""
        self.passages = 0

    def reads(self, text: str) -> bool:
        """Whether it can, which it always does."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the same vector for every text."""
        self.passages += len(texts) if kind == "passage" else 0
        return np.tile(np.array([1, 0], dtype=np.float32), (len(texts), 1))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answers", "question", "least", "most"),
    [
        ("berth 7", "Which walks does berth 7 have?", 100, 250),
        ("nowhere", "Which walks does berth 7 have?", 400, 1_000),
        ("nowhere", "Which walks does Piran have?", 100, 250),
    ],
    ids=["a window answers", "none does", "a name is nowhere"],
)
async def test_of_a_long_text_all_is_embedded_only_where_it_may_answer_and_no_window_does(
    answers: str, question: str, least: int, most: int
) -> None:
    texts = [f"{FILLER[number % 60]} It is berth {number} of all." for number in range(1_500)]
    page = PageUnits(texts, [""] * len(texts), "en")
    embedder = Counting()
    reader = Reread(Blend(embedder), Pointing(answers))
    found = await reader.read(Question(question), [page])
    assert found.long
    assert least < embedder.passages < most
    pages = [PageUnits(texts[:800], [""] * 800, "en"), PageUnits(texts[800:], [""] * 700, "en")]
    several = await reader.read(Question(question), pages)
    assert not several.long


class Stopping(Counting):
    """An embedder that embeds some passages, and then none for as long as anybody waits."""

    def __init__(self, most: int) -> None:
        """Take after how many passages it stops."""
        super().__init__()
        self.most = most

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return vectors as `Counting` does, until it stops."""
        if self.passages > self.most:
            await anyio.sleep_forever()
        return await super().embed(texts, kind=kind)


@pytest.mark.anyio
async def test_a_long_text_is_scored_the_same_wherever_time_ends_and_it_is_said() -> None:
    texts = [f"{FILLER[number % 60]} It is berth {number} of all." for number in range(1_500)]
    page = PageUnits(texts, [""] * len(texts), "en")

    async def read(most: int) -> Relevance:
        reader = Reread(Blend(Stopping(most)), Pointing("nowhere"))
        with Call(soon(2), light=True).running():
            return await reader.read(Question("Which walks does berth 7 have?"), [page])

    early, late = [await read(most) for most in (300, 400)]
    assert early.late
    assert late.late
    assert np.array_equal(early.values, late.values)


@pytest.mark.anyio
async def test_what_models_had_no_time_for_is_said_of_several_pages_too() -> None:
    pages = [document(f"<p>{line}</p>", f"https://a.example/{line[:12]}") for line in FILLER[:2]]
    with Call(soon(1), light=True).running():
        reading = await read_documents(
            Question("Which walks are there?"), pages, reader=Blend(Stopping(-1))
        )
    unread = left_unread(reading, pages)
    assert [one.source for one in unread if one.late] == [one.page.final_url for one in pages]
