"""Extraction: the sentence that answers comes first, what answers nothing comes back as None, cancelled work stops."""

import queue
import time
from collections.abc import Sequence

import anyio
import anyio.to_thread
import numpy as np
import pytest
from numpy.typing import NDArray

from models.onnx import OnnxEmbedder
from models.protocols import Embedder, TextKind, Vectors
from pipeline.evidence.antecedent import antecedents
from pipeline.extract.extract import MOST, extract
from pipeline.extract.gate import THRESHOLD
from pipeline.extract.lexical import PageText, TermIndex, guess_language
from pipeline.extract.score import EMBED_LONGEST, EMBED_TOKENS, lexical_scores, score_sentences
from pipeline.extract.tag import tag_sentences
from pipeline.text.tokens import count_tokens
from pipeline.work import in_thread
from tests.support.pages import document as page

LOCKS = """<html lang="en"><title>Smart door locks</title><body><main><h1>Smart door locks</h1>
<p>Door locks have become clever. We looked at three makers over a year.</p>
<h2>Xiaomi</h2><p>The Xiaomi lock has a fingerprint reader and runs ten months on its batteries.</p>
<h2>Desmann</h2><p>The Desmann lock costs 1,899 yuan. Its face recognition opens the door in 0.8 seconds.
Desmann gives a warranty of three years.</p>
<table><caption>Weights</caption><tr><th>Lock</th><th>Weight</th></tr><tr><td>Xiaomi</td><td>4.1 kg</td></tr>
<tr><td>Desmann</td><td>5.2 kg</td></tr></table></main></body></html>"""
BRIDGE = """<html lang="en"><title>Harbour bridge</title><body><main><h1>Harbour bridge</h1>
<p>The bridge opened in 1932 after eight years of work.</p><p>It carries eight lanes of traffic.</p>
</main></body></html>"""
SCHWIMMBAD = """<html lang="de"><title>Freibad Auental</title><body><main><h1>Freibad Auental</h1>
<p>Das Freibad liegt am Fluss und wurde 1954 gebaut.</p>
<p>Eine Tageskarte für Erwachsene kostet 5,50 Euro, für Kinder 2,50 Euro.</p></main></body></html>"""
TOSHI = """<html lang="ja"><title>湊川市</title><body><main><h1>湊川市</h1>
<p>湊川市は海に面した町です。人口は約八万人です。</p><p>市役所は1962年に建てられました。</p></main></body></html>"""


@pytest.mark.anyio
@pytest.mark.parametrize("with_model", [True, False])
@pytest.mark.parametrize(
    ("request_text", "wanted"),
    [
        ("How much does the Desmann lock cost?", "1,899 yuan"),
        ("What is the weight of the Desmann lock?", "5.2 kg"),
        ("When did the harbour bridge open?", "1932"),
        ("Was kostet eine Tageskarte für Erwachsene im Freibad Auental?", "5,50 Euro"),
        ("湊川市の人口は何人ですか。", "約八万人"),
    ],
)
async def test_the_sentence_that_answers_is_among_the_first_two(
    request_text: str, wanted: str, with_model: bool, embedder: OnnxEmbedder
) -> None:
    documents = [page(LOCKS), page(BRIDGE), page(SCHWIMMBAD), page(TOSHI)]
    found = await extract(request_text, documents, embedder=embedder if with_model else None)
    assert found.answered
    assert found.confidence >= THRESHOLD
    assert any(wanted in item.sentence.text for item in found.sentences[:2])


@pytest.mark.anyio
@pytest.mark.parametrize("with_model", [True, False])
@pytest.mark.parametrize(
    "request_text",
    [
        "What do reviewers say about the Huawei vacuum cleaner?",
        "What is the boiling point of liquid nitrogen?",
        "Wer gewann 1998 die Fußballweltmeisterschaft?",
        "日本の首相の給料はいくらですか。",
    ],
)
async def test_what_no_page_answers_comes_back_as_none_with_a_reason(
    request_text: str, with_model: bool, embedder: OnnxEmbedder
) -> None:
    documents = [page(LOCKS), page(BRIDGE), page(SCHWIMMBAD), page(TOSHI)]
    found = await extract(request_text, documents, embedder=embedder if with_model else None)
    assert not found.answered
    assert found.sentences == ()
    assert found.confidence < THRESHOLD
    assert found.reason.startswith("The best sentence holds")


@pytest.mark.anyio
async def test_words_that_choose_among_rows_are_not_looked_for_in_a_table() -> None:
    rows = "".join(f"<tr><td>{name}<td>{size}" for name, size in (("Orva", 71), ("Skell", 148), ("Tarn", 23)))
    table = f"<h1>Rivers</h1><table><tr><th>River<th>Length in km{rows}</table>"
    request = "which river on the list has the third longest length?"
    tabular = await extract(request, [page(table)], embedder=None)
    prose = await extract(
        request, [page("<h1>Rivers</h1><p>River. Length in km. Orva, Skell, Tarn.</p>")], embedder=None
    )
    assert tabular.verdict != "none"
    assert prose.confidence < tabular.confidence


@pytest.mark.anyio
async def test_a_name_that_is_on_no_page_is_named_in_the_reason() -> None:
    found = await extract("How heavy is the Huawei lock?", [page(LOCKS)], embedder=None)
    assert "Huawei" in found.reason


@pytest.mark.anyio
async def test_pages_without_text_give_none_and_no_documents_do_too() -> None:
    assert not (await extract("anything", [page("<p></p>")], embedder=None)).answered
    assert not (await extract("anything", [], embedder=None)).answered
    assert not (await extract("", [page(LOCKS)], embedder=None)).answered


@pytest.mark.anyio
async def test_sentences_point_into_the_document_they_came_from() -> None:
    documents = [page(BRIDGE, "https://a.example/"), page(LOCKS, "https://b.example/")]
    found = await extract("How much does the Desmann lock cost?", documents, embedder=None)
    best = found.sentences[0]
    assert best.document == 1
    assert best.sentence == tag_sentences(documents[1])[best.sentence.number - 1]


@pytest.mark.anyio
async def test_furniture_ranks_below_the_same_words_in_the_text() -> None:
    words = "The ferry to Pell Island leaves at nine."
    sentences = [words, "Something else stands here.", words]
    scored = await score_sentences(
        "When does the ferry to Pell Island leave?",
        [PageText(sentences, ["", "", ""], [0.6, 1.0, 1.0], "en")],
        embedder=None,
    )
    assert int(scored.values.argmax()) == 2


@pytest.mark.anyio
async def test_a_bridge_question_finds_its_second_half_through_the_best_sentence() -> None:
    sentences = [
        "Nothing to see in this opening line.",
        *[f"Filler number {i} is about gardens and weather." for i in range(20)],
        "The film Blue Harvest was directed by Marta Quill.",
        *[f"More filler number {i} is about roads and towns." for i in range(20)],
        "Quill was born in the village of Osterhythe.",
    ]
    scored = await score_sentences(
        "In which place was the director of the film Blue Harvest born?",
        [PageText(sentences, [""] * len(sentences), (), "en")],
        embedder=None,
    )
    assert set(np.argsort(-scored.values)[:2].tolist()) == {21, 42}


class Counting:
    """An embedder that counts what it is given; every text has the same vector."""

    name = "counting"
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
    sentences = [f"Sentence {i} tells of ferry {i % 7} and of the harbour wall. " * 3 for i in range(3000)]
    model = Counting()
    scored = await score_sentences("Which ferry?", [PageText(sentences, [""] * 3000, (), "en")], embedder=model)
    assert 0 < sum(map(count_tokens, model.texts)) <= EMBED_TOKENS
    assert max(map(count_tokens, model.texts)) <= EMBED_LONGEST
    assert scored.cosines is not None
    assert int((~np.isnan(scored.cosines)).sum()) == len(model.texts)


@pytest.mark.anyio
async def test_an_embedder_that_does_not_read_the_script_is_left_out() -> None:
    model: Embedder = Counting(reads=False)
    found = await extract("湊川市の人口は何人ですか。", [page(TOSHI)], embedder=model)
    assert found.answered
    assert found.sentences[0].score.made_by == "bm25"


class Reversing:
    """A reranker that likes the last text best."""

    name = "reversing"

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return 0, 1, 2, …"""
        return np.arange(len(texts), dtype=np.float32)


@pytest.mark.anyio
async def test_a_reranker_has_the_last_word_on_the_best() -> None:
    plain = await extract("How much does the Desmann lock cost?", [page(LOCKS)], embedder=None)
    turned = await extract("How much does the Desmann lock cost?", [page(LOCKS)], embedder=None, reranker=Reversing())
    assert [i.sentence.number for i in turned.sentences] == [i.sentence.number for i in plain.sentences][::-1]
    assert {item.score.made_by for item in turned.sentences} == {"rerank"}


@pytest.mark.anyio
async def test_an_extraction_is_bounded() -> None:
    html = "<main>" + "".join(f"<p>Ferry {i} leaves the harbour at nine.</p>" for i in range(500)) + "</main>"
    found = await extract("When does the ferry leave the harbour?", [page(html)], embedder=None)
    assert len(found.sentences) == MOST


@pytest.mark.anyio
async def test_a_cancelled_extraction_leaves_no_thread_running() -> None:
    sentences = [f"Sentence number {i} of a page that is far too long. " * 4 for i in range(200_000)]
    pages = [PageText(sentences, [""] * len(sentences), (), "en")]
    with anyio.move_on_after(0.3) as scope:
        await score_sentences("Which page is too long?", pages, embedder=None)
    assert scope.cancelled_caught
    spent: queue.Queue[float] = queue.Queue()

    def index() -> None:
        began = time.thread_time()
        try:
            TermIndex(pages)
        finally:
            spent.put(time.thread_time() - began)

    with anyio.move_on_after(0.3):
        await in_thread(index)
    # The whole index takes tens of the processor's seconds.
    assert await anyio.to_thread.run_sync(spent.get) < 5


def test_each_page_is_stemmed_in_its_own_language_and_a_request_reaches_all() -> None:
    pages = [
        PageText(["Die Tageskarten kosten fünf Euro."], [""], (), "de"),
        PageText(["The tickets were sold."], [""], (), "en"),
    ]
    index = TermIndex(pages)
    assert lexical_scores("Tageskarte", index).tolist() == [1.0, 0.0]
    assert lexical_scores("selling a ticket", index).argmax() == 1


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is the house that was built by the river?", "en"),
        ("Wo ist das Haus, das am Fluss gebaut wurde?", "de"),
        ("Où est la maison qui est dans la forêt?", "fr"),
        ("Где дом, который был на реке?", "ru"),
        ("", "en"),
    ],
)
def test_a_language_is_guessed_from_its_stop_words(text: str, language: str) -> None:
    assert guess_language(text) == language


def test_a_sentence_led_by_a_pronoun_brings_the_one_before_and_others_bring_none() -> None:
    html = "<p>Marwood surveyed the lake. She had a goat. It carried the tripod. The goat was old.</p><p>It ends.</p>"
    document = page(html)
    sentences = tag_sentences(document)
    texts = {s.text: s.number for s in sentences}
    tripod = texts["It carried the tripod."]
    assert antecedents(sentences, [tripod]) == (tripod - 2, tripod - 1)
    assert antecedents(sentences, [texts["The goat was old."], texts["It ends."]]) == ()
