"""Extraction: the sentence that answers comes first, what answers nothing comes back as None."""

from dataclasses import replace

import pytest

from models.onnx import OnnxEmbedder
from pipeline.document.units import tag_sentences
from pipeline.evidence.assemble import NEAREST_TOKENS, assemble
from pipeline.evidence.show import VERDICT_LINES, verdict_line, verdict_text
from pipeline.question.question import Question
from pipeline.reading.extract import left_unread, read_documents, unless_cut
from pipeline.reading.relevance import Blend
from pipeline.reading.verdict import ANSWERED_CONFIDENCE, NONE
from pipeline.text.frame import new_delimiter
from pipeline.work import Call
from tests.support import best_units
from tests.support.pages import document as page
from tests.support.waiting import soon

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
@pytest.mark.parametrize(("seconds", "rows"), [(-1, 150_000), (3_600, 400)])
async def test_a_long_page_is_read_as_far_as_time_allows_beside_a_short_one(
    seconds: float, rows: int
) -> None:
    long = page("".join(f"<p>Berth {n} costs {n % 40} crowns a day." for n in range(rows)))
    with Call(soon(seconds), light=True).running():
        found = await read_documents(
            Question("When did the harbour bridge open?"), [long, page(BRIDGE)], reader=Blend(None)
        )
    late = seconds < 60
    assert found.tagged[1][:1] == tag_sentences(page(BRIDGE))[:1]
    assert 0 < len(found.tagged[0]) < rows if late else len(found.tagged[0]) == rows
    assert (long.page.final_url in found.unread) == late
    unread = left_unread(found, [long])
    assert ("No time was left to read all of it." in [one.reason for one in unread]) == late
    assert unless_cut(replace(found, verdict="none"), unread).verdict == (
        "unsure" if late else "none"
    )


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
    found = await read_documents(
        Question(request_text), documents, reader=Blend(embedder if with_model else None)
    )
    assert found.answered
    assert found.confidence >= ANSWERED_CONFIDENCE
    assert any(wanted in unit.text for unit in best_units(found)[:2])


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
    found = await read_documents(
        Question(request_text), documents, reader=Blend(embedder if with_model else None)
    )
    assert found.confidence < NONE
    # A window that is near in meaning to a question in another language than the embedder's makes
    # it unsure at worst.
    assert found.verdict == "none" or (
        with_model and found.verdict == "unsure" and "Wer" in request_text
    )
    if found.verdict == "none":
        assert verdict_text(found).startswith("None: ")
        nearest = assemble(documents, found, max_tokens=1000, delimiter=new_delimiter())
        assert nearest.left_out == 0, "short sources are shown whole"


@pytest.mark.anyio
async def test_of_long_sources_without_an_answer_few_lines_are_shown() -> None:
    long = page(
        "<h1>Boats</h1>" + "".join(f"<p>The boat number {n} carries coal.</p>" for n in range(90))
    )
    found = await read_documents(Question("Who painted the chapel?"), [long], reader=Blend(None))
    assert found.verdict == "none"
    shown = assemble([long], found, max_tokens=1000, delimiter=new_delimiter()).shown
    assert 0 < shown.tokens <= NEAREST_TOKENS


@pytest.mark.anyio
async def test_words_that_choose_among_rows_are_no_reason_for_none() -> None:
    rows = "".join(
        f"<tr><td>{name}<td>{size}" for name, size in (("Orva", 71), ("Skell", 148), ("Tarn", 23))
    )
    table = f"<h1>Rivers</h1><table><tr><th>River<th>Length in km{rows}</table>"
    request = "which river on the list has the third longest length?"
    assert (
        await read_documents(Question(request), [page(table)], reader=Blend(None))
    ).verdict != "none"


@pytest.mark.anyio
async def test_a_name_that_is_on_no_page_is_named() -> None:
    found = await read_documents(
        Question("How heavy is the Huawei lock?"), [page(LOCKS)], reader=Blend(None)
    )
    assert found.absent == ("Huawei",)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "text", "absent"),
    [
        ("What does --gpu-check do?", "The option --cpu-check looks for a gpu.", "--gpu-check"),
        ("What does --gpu-check do?", "Start it with --gpu_check.", ""),
        ("What is new in Python 3.7?", "Python 3.8 was made in 2019, 37 people worked.", "3.7"),
        ("What is new in Python 3.7?", "Python v3.7.1 mends a fault.", ""),
        ("What is the value of MAX_RETRIES?", "Retries are at most seven.", "MAX_RETRIES"),
        ("Does it cost 1.50?", "It costs 1,50 crowns.", ""),
        ("Are there 1.000 boats?", "There are 1000 boats.", ""),
        ("How do I split it into files of 2 GB?", "For pieces of 2 gigabytes say 2G.", ""),
    ],
)
async def test_an_option_or_version_that_nothing_read_has_is_named(
    question: str, text: str, absent: str
) -> None:
    found = await read_documents(Question(question), [page(f"<p>{text}</p>")], reader=Blend(None))
    assert found.absent == ((absent,) if absent else ())
    answered = verdict_line(replace(found, verdict="answered"))
    assert answered.startswith(VERDICT_LINES["answered"])
    assert answered.endswith(f'Nowhere in the one source read: "{absent}".' if absent else "below.")


@pytest.mark.anyio
async def test_the_first_line_is_the_verdict_and_a_name_that_is_on_no_page() -> None:
    documents = [page(LOCKS)]
    question = "How heavy is the Huawei lock of the canal?"
    found = replace(
        await read_documents(Question(question), documents, reader=Blend(None)), verdict="unsure"
    )
    assert verdict_line(found) == (
        'Unsure whether this answers the question. Nowhere in the one source read: "Huawei".'
    )


@pytest.mark.anyio
async def test_pages_without_text_give_none_and_no_documents_do_too() -> None:
    assert not (
        await read_documents(Question("anything"), [page("<p></p>")], reader=Blend(None))
    ).answered
    assert not (await read_documents(Question("anything"), [], reader=Blend(None))).answered
    assert not (await read_documents(Question(""), [page(LOCKS)], reader=Blend(None))).answered


@pytest.mark.anyio
async def test_sentences_point_into_the_document_they_came_from() -> None:
    documents = [page(BRIDGE, "https://a.example/"), page(LOCKS, "https://b.example/")]
    found = await read_documents(
        Question("How much does the Desmann lock cost?"), documents, reader=Blend(None)
    )
    place, best = found.places[int(found.values.argmax())]
    assert place == 1
    assert best == tag_sentences(documents[1])[best.number - 1]
    assert documents[1].text[best.start : best.end] == best.text
