"""The embedded embedder: fidelity, order, limits, threads, bad files."""

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import numpy as np
import pytest

from errors import ModelError
from models.onnx import EMBEDDED, OnnxEmbedder
from models.text import reads_latin
from tests.support.waiting import bounded, moment
from train.embedder.texts import varied_texts

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.anyio
async def test_vectors_agree_with_the_float32_original(embedder: OnnxEmbedder) -> None:
    reference = np.load(EMBEDDED / "reference.npz")
    texts = varied_texts()
    found = await embedder.embed([texts[place] for place in reference["places"]], kind="passage")
    cosine = (found * reference["vectors"]).sum(axis=1)
    assert len(cosine) == 40
    assert cosine.mean() >= 0.99
    assert cosine.min() >= 0.98


@pytest.mark.anyio
async def test_every_vector_has_unit_length_and_the_named_dimension(embedder: OnnxEmbedder) -> None:
    found = await embedder.embed(varied_texts()[:60], kind="passage")
    assert found.shape == (60, embedder.dimension)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@pytest.mark.anyio
async def test_order_is_kept_and_a_vector_does_not_depend_on_its_batch(
    embedder: OnnxEmbedder,
) -> None:
    texts = varied_texts()[40:90]
    together = await embedder.embed(texts, kind="passage")
    alone = np.concatenate([await embedder.embed([text], kind="passage") for text in texts])
    assert (together * alone).sum(axis=1).min() > 0.9999


@pytest.mark.anyio
async def test_related_texts_are_nearer_than_unrelated_ones(embedder: OnnxEmbedder) -> None:
    query = await embedder.embed(["When does the ferry leave?"], kind="query")
    texts = [
        "The boat departs from the pier at nine in the morning.",
        "Whisk the eggs with sugar until pale.",
    ]
    near, far = (await embedder.embed(texts, kind="passage")) @ query[0]
    assert near > far + 0.2


@pytest.mark.anyio
async def test_no_texts_give_no_rows(embedder: OnnxEmbedder) -> None:
    assert (await embedder.embed([], kind="passage")).shape == (0, 384)


@pytest.mark.anyio
async def test_empty_broken_and_huge_texts_get_vectors(embedder: OnnxEmbedder) -> None:
    texts = ["", "\ud800 half a pair", "\x00", "word " * 2_000_000, "x" * 5_000_000]
    with bounded():
        found = await embedder.embed(texts, kind="passage")
    assert np.isfinite(found).all()


@pytest.mark.anyio
async def test_words_past_the_window_change_nothing(embedder: OnnxEmbedder) -> None:
    long = "river bridge " * 200
    one, other = await embedder.embed([long, long + "completely different ending"], kind="passage")
    assert np.allclose(one, other, atol=1e-6)


def test_nothing_is_loaded_before_the_first_text() -> None:
    embedder = OnnxEmbedder()
    assert embedder.dimension == 384
    assert not embedder.loaded

    async def first() -> None:
        await embedder.embed(["now"], kind="query")

    anyio.run(first)
    assert embedder.loaded


def test_the_name_reports_model_quantisation_runtime_and_weights() -> None:
    manifest = json.loads((EMBEDDED / "manifest.json").read_text())
    assert (
        OnnxEmbedder().name
        == f"all-MiniLM-L6-v2:int8-token-eased:onnx:{manifest['sha256']['model.onnx'][:12]}"
    )


@pytest.mark.anyio
async def test_many_tasks_at_once_get_their_own_vectors(embedder: OnnxEmbedder) -> None:
    texts = varied_texts()[:48]
    expected = await embedder.embed(texts, kind="passage")
    found: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = {}

    async def ask(place: int) -> None:
        found[place] = await embedder.embed(texts[place * 3 : place * 3 + 3], kind="passage")

    async with anyio.create_task_group() as group:
        for place in range(16):
            group.start_soon(ask, place)
    assert (np.concatenate([found[place] for place in range(16)]) * expected).sum(
        axis=1
    ).min() > 0.9999


def test_one_embedder_serves_event_loops_in_two_threads() -> None:
    embedder = OnnxEmbedder()
    shapes: list[tuple[int, ...]] = []

    async def ask() -> None:
        shapes.append((await embedder.embed(varied_texts()[:20], kind="passage")).shape)

    threads = [threading.Thread(target=anyio.run, args=(ask,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shapes == [(20, 384)] * 2


@pytest.mark.anyio
async def test_a_cancelled_call_stops_long_before_its_end(embedder: OnnxEmbedder) -> None:
    texts = [f"{number} " + "station platform delay " * 60 for number in range(12_000)]
    await embedder.embed(texts[:1], kind="passage")
    with bounded(), anyio.move_on_after(0.5) as scope:  # the whole takes minutes
        await embedder.embed(texts, kind="passage")
    assert scope.cancelled_caught
    assert (await embedder.embed(["still there"], kind="query")).shape == (1, 384)


@pytest.mark.anyio
async def test_the_event_loop_goes_on_while_texts_are_embedded(embedder: OnnxEmbedder) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await moment()
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await embedder.embed(["harbour storm signal " * 50] * 40, kind="passage")
        group.cancel_scope.cancel()
    assert ticks >= 5


def test_english_is_read_and_other_scripts_are_not(embedder: OnnxEmbedder) -> None:
    for text in (
        "Where is it?",
        "Où est la gare ?",
        "42 / 7 = 6",
        "",
        "price: 東京 hotel booking",
        "ｆｕｌｌ width",
    ):
        assert embedder.reads(text), text
    for text in (
        "東京の天気",
        "Где вокзал?",
        "أين المحطة",
        "ποῦ",
        "東京タワーの高さは何 m ですか",
        "기차역",
    ):
        assert not embedder.reads(text), text


def test_only_the_beginning_of_a_long_text_decides_its_script() -> None:
    assert reads_latin("English words " * 400 + "日本語" * 100_000)


def _copy(folder: Path) -> Path:
    for name in ("model.onnx", "tokenizer.json", "manifest.json"):
        shutil.copy(EMBEDDED / name, folder / name)
    return folder


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
async def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    (_copy(tmp_path) / name).unlink()
    with pytest.raises(ModelError, match=name) as caught:
        await OnnxEmbedder(tmp_path).embed(["text"], kind="query")
    assert "Reinstall Winnow" in caught.value.hint


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
async def test_a_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    path = _copy(tmp_path) / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match="damaged"):
        await OnnxEmbedder(tmp_path).embed(["text"], kind="query")


def test_a_broken_manifest_is_a_model_error(tmp_path: Path) -> None:
    (_copy(tmp_path) / "manifest.json").write_text('{"name": "x"}')
    with pytest.raises(ModelError, match="broken"):
        _ = OnnxEmbedder(tmp_path).name


def test_embedding_writes_nothing_to_stdout_or_stderr() -> None:
    code = (
        "import anyio; from models.onnx import OnnxEmbedder; e = OnnxEmbedder(); "
        "anyio.run(lambda: e.embed(['a', 'b ' * 900], kind='passage'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")


def test_importing_the_embedder_does_not_import_the_runtime() -> None:
    code = "import sys, models.choose; print('onnxruntime' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60, check=True
    )
    assert done.stdout.split() == [b"False", b"False"]
