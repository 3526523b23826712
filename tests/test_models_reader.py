"""The reader that Winnow carries: what it reads, limits, threads, bad files."""

import json
import shutil
from pathlib import Path

import anyio
import numpy as np
import pytest
import tokenizers

from errors import ModelError
from models.onnx import (
    ABOVE_TOKENS,
    EMBEDDED,
    QUESTION_TOKENS,
    READER_SENTENCE_TOKENS,
    READER_TOKENS,
    OnnxReader,
    encode,
    join,
    read_tokenizer,
)
from models.protocols import Window
from tests.support.waiting import bounded

FERRY = Window(
    "Ferry questions › Fares",
    (
        "The boats are white with a blue funnel.",
        "A bicycle costs 4.50 francs one way.",
        "Dogs travel free when they are kept on a lead.",
    ),
)
RECIPE = Window(
    "Blue tart", ("Whisk the eggs with sugar until pale.", "Bake for forty minutes at 180 degrees.")
)
BICYCLE = "What do I pay for taking my bicycle on the ferry?"


@pytest.fixture(scope="module")
def reader() -> OnnxReader:
    return OnnxReader()


@pytest.mark.anyio
async def test_the_sentence_that_answers_is_kept_before_its_neighbours(reader: OnnxReader) -> None:
    for question, best in (
        (BICYCLE, 1),
        ("Is there a fee for my dog?", 2),
        ("What colour is the funnel?", 0),
    ):
        (reading,) = await reader.read(question, [FERRY])
        assert reading.keep.dtype == np.float32
        assert int(reading.keep.argmax()) == best


@pytest.mark.anyio
async def test_a_window_that_answers_is_likelier_to_than_another_subjects(
    reader: OnnxReader,
) -> None:
    answering, other = await reader.read(BICYCLE, [FERRY, RECIPE])
    assert answering.answers > other.answers + 0.2
    assert answering.keep.max() > other.keep.max() + 0.2


@pytest.mark.anyio
async def test_order_is_kept_and_a_reading_does_not_depend_on_its_batch(reader: OnnxReader) -> None:
    windows = [RECIPE, FERRY, Window("", ("Yes.",)), Window("A › B", FERRY.sentences * 6)] * 3
    together = await reader.read(BICYCLE, windows)
    for window, reading in zip(windows, together, strict=True):
        (alone,) = await reader.read(BICYCLE, [window])
        assert reading.keep == pytest.approx(alone.keep, abs=1e-3)
        assert reading.answers == pytest.approx(alone.answers, abs=1e-3)


@pytest.mark.anyio
async def test_sentences_past_the_end_get_nothing_and_change_nothing(reader: OnnxReader) -> None:
    long = Window(
        "Fares", ("The boats are white with a blue funnel and sail all year round.",) * 40
    )
    (reading,) = await reader.read(BICYCLE, [long])
    fitting = int((reading.keep > 0).sum())
    assert 5 < fitting < 40
    assert not reading.keep[fitting:].any()
    (cut,) = await reader.read(BICYCLE, [Window("Fares", long.sentences[:fitting])])
    assert cut.keep == pytest.approx(reading.keep[:fitting], abs=1e-6)


@pytest.mark.anyio
async def test_no_windows_empty_broken_and_huge_texts_are_read(reader: OnnxReader) -> None:
    assert await reader.read(BICYCLE, []) == []
    texts = ("", "\ud800 half a pair", "\x00", "🐟", "x" * 5_000_000, "word " * 1_000_000)
    with bounded():
        readings = await reader.read(
            "?" * 100_000, [Window("", ()), Window("\x00", texts), Window("a " * 9_999, texts)]
        )
    assert [len(reading.keep) for reading in readings] == [0, 6, 6]
    assert all(0 <= reading.answers <= 1 for reading in readings)


def test_an_input_holds_question_headings_and_sentences_within_their_limits() -> None:
    tokenizer = read_tokenizer(EMBEDDED / "tokenizer.json")
    window = join(tokenizer, [7] * 100, [8] * 99 + [9], [[5] * 100, [], [6] * 3])
    assert window.asked == QUESTION_TOKENS + 2
    assert window.ids.count(8) == ABOVE_TOKENS - 1
    assert window.ids.count(9) == 1
    assert np.diff(window.starts).tolist() == [READER_SENTENCE_TOKENS, 1, 3]
    assert len(join(tokenizer, [7] * 48, [8] * 24, [[5] * 10] * 99).ids) <= READER_TOKENS


def test_the_shown_form_is_question_then_headings_then_sentences() -> None:
    tokenizer = read_tokenizer(EMBEDDED / "tokenizer.json")
    (window,) = encode(tokenizer, "Which colour?", [Window("Boats", ("Blue.", "Red."))])
    written = tokenizers.Tokenizer.from_file(str(EMBEDDED / "tokenizer.json"))
    shown = written.decode(window.ids, skip_special_tokens=False)
    assert shown == "[CLS] which colour? [SEP] boats : blue. red. [SEP]"
    assert written.decode(window.ids[window.starts[1] : window.starts[2]]) == "red."


@pytest.mark.anyio
async def test_a_cancelled_call_stops_long_before_its_end(reader: OnnxReader) -> None:
    windows = [Window("Fares", FERRY.sentences * 6)] * 12_000
    await reader.read(BICYCLE, windows[:1])
    with bounded(), anyio.move_on_after(1.5) as scope:  # the whole takes minutes
        await reader.read(BICYCLE, windows)
    assert scope.cancelled_caught


def test_nothing_is_loaded_before_the_first_window_and_the_name_reports_the_weights() -> None:
    reader = OnnxReader()
    manifest = json.loads((EMBEDDED / "manifest.json").read_text())["reader"]
    assert reader.name == f"winnow-reader:int8-token-eased:onnx:{manifest['sha256'][:12]}"
    assert reader.reads("Where is it?")
    assert not reader.reads("東京の天気")
    assert not reader.loaded


@pytest.mark.anyio
async def test_files_that_are_links_are_read_as_some_installers_leave_them(tmp_path: Path) -> None:
    for name in ("reader.onnx", "model.onnx", "tokenizer.json", "manifest.json"):
        (tmp_path / name).symlink_to(EMBEDDED / name)
    (linked,) = await OnnxReader(tmp_path).read(BICYCLE, [FERRY])
    (own,) = await OnnxReader().read(BICYCLE, [FERRY])
    assert linked.answers == own.answers


@pytest.mark.anyio
async def test_a_damaged_file_is_refused_and_a_missing_one_is_named(tmp_path: Path) -> None:
    for name in ("reader.onnx", "model.onnx", "tokenizer.json", "manifest.json"):
        shutil.copy(EMBEDDED / name, tmp_path / name)
    data = bytearray((tmp_path / "reader.onnx").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "reader.onnx").write_bytes(data)
    with pytest.raises(ModelError, match="damaged"):
        await OnnxReader(tmp_path).read(BICYCLE, [FERRY])
    (tmp_path / "reader.onnx").unlink()
    with pytest.raises(ModelError, match=r"reader\.onnx"):
        await OnnxReader(tmp_path).read(BICYCLE, [FERRY])
    (tmp_path / "manifest.json").write_text('{"name": "x"}')
    with pytest.raises(ModelError, match="does not describe a reader"):
        _ = OnnxReader(tmp_path).name
