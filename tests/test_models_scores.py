"""Scores and vectors that were kept: read again for the same model, never for one whose files or
server changed."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.responses import JSONResponse, Response

from cache.store import Stores, open_stores
from models.fingerprint import WHOLE_BYTES, fingerprint
from models.llama.model import LlamaEmbedder, LlamaGenerator
from models.remote.openai import OpenAIEmbedder, OpenAIReranker
from models.remote.server import Endpoint
from pipeline.cached_models import CachedEmbedder, CachedReranker
from tests.support.extras import need
from tests.support.model_server import Remote, loopback_client, model_server
from tests.support.waiting import bounded


class FileReranker:
    """A reranker whose weights are a file: the number in it, times a text's length."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.asked: list[list[str]] = []

    @property
    def name(self) -> str:
        """The file's name and digest, as every backend of ours has it."""
        return f"weights:{fingerprint([self._path])}"

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the scores."""
        self.asked.append(list(texts))
        return np.array(
            [float(self._path.read_text()) * len(text) for text in texts], dtype=np.float32
        )


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """A cache of this test's own."""
    opened = open_stores(tmp_path / "cache", size_limit=50_000_000, clock=time.time)
    yield opened
    opened.close()


@pytest.mark.anyio
async def test_a_text_is_scored_once_for_each_query_also_by_the_next_process(
    stores: Stores, tmp_path: Path
) -> None:
    (tmp_path / "weights").write_text("2")
    first, second = FileReranker(tmp_path / "weights"), FileReranker(tmp_path / "weights")
    found = await CachedReranker(first, stores.scores).score("q", ["a", "bb", "a"])
    again = await CachedReranker(second, stores.scores).score("q", ["bb", "ccc", "a"])
    assert found.tolist() == [2, 4, 2]
    assert again.tolist() == [4, 6, 2]
    assert again.dtype == np.float32
    assert (first.asked, second.asked) == ([["a", "bb"]], [["ccc"]])
    await CachedReranker(second, stores.scores).score("qa", ["bb"])
    assert second.asked[-1] == ["bb"]
    assert (await CachedReranker(second, stores.scores).score("q", [])).shape == (0,)


@pytest.mark.anyio
async def test_a_swapped_file_never_reads_the_scores_of_the_old_one(
    stores: Stores, tmp_path: Path
) -> None:
    weights, other = tmp_path / "weights", tmp_path / "other"
    weights.write_text("2")
    other.write_text("3")
    cached = CachedReranker(FileReranker(weights), stores.scores)
    assert (await cached.score("q", ["a", "bb"])).tolist() == [2, 4]
    kept_name = cached.name
    shutil.copy(other, weights)
    assert (await cached.score("q", ["a", "bb"])).tolist() == [3, 6]
    assert cached.name != kept_name
    weights.write_text("2")
    assert (await cached.score("q", ["a", "bb"])).tolist() == [2, 4]


def test_one_changed_byte_or_setting_changes_the_fingerprint(
    tmp_path: Path,
) -> None:
    path = tmp_path / "small"
    path.write_bytes(bytes(100_000))
    before = fingerprint([path], 1_024)
    assert before == fingerprint([path], 1_024)
    assert before != fingerprint([path], 512)
    path.write_bytes(bytes(50_000) + b"\1" + bytes(49_999))
    assert before != fingerprint([path], 1_024)


def test_a_large_file_written_again_has_another_fingerprint_in_milliseconds(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(WHOLE_BYTES * 8)
    with bounded():
        before = fingerprint([path])
    with path.open("r+b") as file:
        file.seek(12_345_678)
        file.write(b"another weight")
    assert fingerprint([path]) != before


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_gguf_file_that_is_swapped_never_reads_vectors_of_the_old_one(
    shared: Path, stores: Stores, tmp_path: Path
) -> None:
    need("llama")
    path, other = tmp_path / "model.gguf", tmp_path / "other.gguf"
    whole = bytearray((shared / "models" / "all-minilm-l6-v2-f16.gguf").read_bytes())
    path.write_bytes(whole)
    layers = len(whole) * 3 // 4
    whole[layers : layers + 100_000] = bytes(100_000)
    other.write_bytes(whole)
    model = LlamaEmbedder(path)
    cached = CachedEmbedder(model, stores.embeddings)
    try:
        before, name, pid = (
            (await cached.embed(["a boat at noon"], kind="passage"))[0],
            model.name,
            model.pid,
        )
        os.replace(other, path)
        after = (await cached.embed(["a boat at noon"], kind="passage"))[0]
        assert model.name != name
        assert model.pid != pid
    finally:
        await model.aclose()
    assert before @ after < 0.999


def test_one_changed_byte_in_the_middle_of_a_gguf_file_is_another_name(
    shared: Path, tmp_path: Path
) -> None:
    whole = bytearray((shared / "models" / "stories260K" / "stories260K-f32.gguf").read_bytes())
    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    before = LlamaGenerator(path).name
    assert LlamaGenerator(path).name == before
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    assert LlamaGenerator(path).name != before


def test_a_large_gguf_file_written_again_is_another_name(shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    shutil.copy(shared / "models" / "stories260K" / "stories260K-f32.gguf", path)
    with path.open("r+b") as file:
        file.truncate(WHOLE_BYTES * 8)
    before = LlamaGenerator(path).name
    with path.open("r+b") as file:
        file.seek(WHOLE_BYTES * 3 + 12_345)
        file.write(b"another weight")
    assert LlamaGenerator(path).name != before


@pytest.mark.anyio
async def test_a_model_swapped_behind_a_server_never_reads_old_vectors_or_scores(
    stores: Stores,
) -> None:
    def serve(remote: Remote, *, parameters: int) -> None:
        meta = {"n_embd": 2, "n_params": parameters}
        remote.reported["/v1/models"] = {
            "data": [{"id": "m", "owned_by": "llamacpp", "meta": meta}]
        }

        def embed(_body: dict[str, object]) -> Response:
            return JSONResponse({"data": [{"index": 0, "embedding": [1.0, float(parameters)]}]})

        def rank(_body: dict[str, object]) -> Response:
            return JSONResponse({"results": [{"index": 0, "relevance_score": float(parameters)}]})

        remote.will("/embeddings", embed)
        remote.will("/rerank", rank)

    with model_server() as remote:
        async with loopback_client() as http:
            endpoint = Endpoint(http, remote.url, "m")
            rows, scores = [], []
            for parameters in (1, 2, 2):
                serve(remote, parameters=parameters)
                embedder = CachedEmbedder(OpenAIEmbedder(endpoint), stores.embeddings)
                reranker = CachedReranker(OpenAIReranker(endpoint), stores.scores)
                rows.append((await embedder.embed(["text"], kind="passage"))[0])
                scores.append(float((await reranker.score("q", ["text"]))[0]))
        assert np.allclose(rows[0], np.array([1, 1]) / np.sqrt(2), atol=1e-3)
        assert np.allclose(rows[1], np.array([1, 2]) / np.sqrt(5), atol=1e-3)
        assert np.allclose(rows[1], rows[2])
        assert scores == [1, 2, 2]
        assert len(remote.asked) == 4
