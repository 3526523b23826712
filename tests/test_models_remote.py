"""What servers report themselves, the forms of reranking, and choosing: protocol by protocol, over
loopback."""

import socket
from collections.abc import Callable

import anyio
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from errors import ModelError
from models.options import read_options
from models.protocols import Said
from models.remote.openai import OpenAIEmbedder, OpenAIGenerator, OpenAIReranker
from models.remote.server import Endpoint
from tests.support.model_server import Remote, loopback_client


def _says(answer: object) -> Callable[[dict[str, object]], Response]:
    return lambda _body: JSONResponse(answer)


def _llama_server(remote: Remote, *, parameters: int, context: int = 4_096) -> None:
    meta = {
        "n_vocab": 49_152,
        "n_ctx_train": 8_192,
        "n_embd": 576,
        "n_params": parameters,
        "size": 98_000_000,
    }
    remote.reported["/v1/models"] = {
        "data": [{"id": "smol.gguf", "owned_by": "llamacpp", "meta": meta}]
    }
    remote.reported["/props"] = {
        "default_generation_settings": {"n_ctx": context},
        "model_path": "smol.gguf",
    }


@pytest.mark.anyio
async def test_llama_server_reports_window_dimension_and_which_model_it_serves(
    remote: Remote,
) -> None:
    _llama_server(remote, parameters=134_515_008)
    async with loopback_client() as http:
        endpoint = Endpoint(http, remote.url, "any name")
        generator, embedder = OpenAIGenerator(endpoint), OpenAIEmbedder(endpoint)
        assert generator.context_tokens == 8_192
        await generator.prepare()
        assert (generator.server, generator.context_tokens) == ("llama-server", 4_096)
        await embedder.prepare()
        assert embedder.dimension == 576
        other = OpenAIGenerator(endpoint)
        _llama_server(remote, parameters=361_000_000)
        await other.prepare()
    assert generator.name == embedder.name
    assert generator.name != other.name
    assert remote.asked == []


@pytest.mark.anyio
async def test_vllm_reports_its_window(remote: Remote) -> None:
    remote.reported["/v1/models"] = {
        "data": [{"id": "qwen", "owned_by": "vllm", "root": "Qwen", "max_model_len": 16_384}]
    }
    async with loopback_client() as http:
        generator = OpenAIGenerator(Endpoint(http, remote.url, "qwen"))
        await generator.prepare()
    assert (generator.server, generator.context_tokens) == ("vLLM", 16_384)


@pytest.mark.anyio
@pytest.mark.parametrize(("options", "context"), [("", 8_192), ("n_ctx=16384", 16_384)])
async def test_ollama_is_asked_for_a_window_and_reports_which_model_it_serves(
    remote: Remote, options: str, context: int
) -> None:
    remote.reported["/v1/models"] = {
        "data": [{"id": "bge-m3:latest", "owned_by": "library"}, {"id": "b"}]
    }
    info = {
        "general.architecture": "bert",
        "bert.context_length": 32_768,
        "bert.embedding_length": 1_024,
    }
    remote.will_at_root("/api/show", _says({"modified_at": "2026-11-01", "model_info": info}))
    async with loopback_client() as http:
        endpoint = Endpoint(http, remote.url, "bge-m3")
        generator = OpenAIGenerator(endpoint, options=read_options(options))
        embedder = OpenAIEmbedder(endpoint)
        await generator.prepare()
        assert (generator.server, generator.context_tokens) == ("Ollama", context)
        await embedder.prepare()
        assert embedder.dimension == 1_024
        before = embedder.name
        remote.will_at_root("/api/show", _says({"modified_at": "2026-11-02", "model_info": info}))
        pulled_again = OpenAIEmbedder(endpoint)
        await pulled_again.prepare()
    assert pulled_again.name != before


@pytest.mark.anyio
async def test_tei_is_asked_to_rerank_in_its_own_form(remote: Remote) -> None:
    remote.reported["/info"] = {
        "model_id": "BAAI/bge-reranker",
        "model_sha": "abc",
    }

    def rank(body: dict[str, object]) -> Response:
        texts = body["texts"]
        assert isinstance(texts, list)
        assert len(texts) <= 32
        return JSONResponse(
            [{"index": n, "score": -len(text)} for n, text in enumerate(texts)][::-1]
        )

    remote.will_at_root("/rerank", rank)
    async with loopback_client() as http:
        reranker = OpenAIReranker(Endpoint(http, remote.root, "BAAI/bge-reranker"))
        found = await reranker.score("q", ["x" * n for n in range(1, 40)])
    assert found.tolist() == [-float(n) for n in range(1, 40)]
    assert [path for path, _, _ in remote.asked] == ["/rerank"] * 2


@pytest.mark.anyio
async def test_a_server_that_reports_nothing_is_measured_by_one_vector_and_keeps_one_name(
    remote: Remote,
) -> None:
    remote.reported["/v1/models"] = {"data": [{"id": "one"}, {"id": "two"}]}
    remote.will("/embeddings", _says({"data": [{"index": 0, "embedding": [3.0, 4.0]}]}))
    async with loopback_client() as http:
        embedder = OpenAIEmbedder(Endpoint(http, remote.url, "two"))
        assert embedder.dimension == 0
        await embedder.embed(["text"], kind="passage")
        assert embedder.dimension == 2
    assert embedder.name == f"two:openai:{remote.url}"
    assert [path for path, _, _ in remote.asked] == ["/api/show", "/v1/embeddings"]


@pytest.mark.anyio
async def test_a_server_that_is_away_has_a_name_that_no_cache_knows_until_it_is_back(
    remote: Remote,
) -> None:
    now = [0.0]
    async with loopback_client() as http:
        endpoint = Endpoint(http, remote.url, "m")
        one, other = (OpenAIEmbedder(endpoint, clock=lambda: now[0]) for _ in range(2))
        for embedder in (one, other):
            await embedder.prepare()
        assert one.name != other.name
        _llama_server(remote, parameters=1)
        now[0] = 6.0
        for embedder in (one, other):
            await embedder.prepare()
    assert one.name == other.name


@pytest.mark.anyio
async def test_a_server_that_hangs_costs_a_start_the_time_for_facts_and_no_more() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with loopback_client() as http:
            address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
            generator = OpenAIGenerator(Endpoint(http, address, "m", facts_seconds=0.3))
            # Without that bound the server would be waited for until `answer_seconds`, 120 s.
            with anyio.fail_after(60):
                await generator.prepare()
                await generator.prepare()
    assert generator.context_tokens == 8_192


@pytest.mark.anyio
async def test_a_model_swapped_behind_its_name_is_noticed_within_a_minute(remote: Remote) -> None:
    now = [0.0]
    _llama_server(remote, parameters=1)
    async with loopback_client() as http:
        embedder = OpenAIEmbedder(Endpoint(http, remote.url, "m"), clock=lambda: now[0])
        names = []
        for now[0], parameters in ((0.0, 1), (59.0, 2), (61.0, 2)):
            _llama_server(remote, parameters=parameters)
            await embedder.prepare()
            names.append(embedder.name)
    assert names[0] == names[1] != names[2]


@pytest.mark.anyio
async def test_a_silent_server_times_out(remote: Remote) -> None:
    def silent(_body: dict[str, object]) -> Response:
        remote.release.wait(20)
        return PlainTextResponse("late")

    remote.will("/chat/completions", silent)
    async with loopback_client() as http:
        generator = OpenAIGenerator(
            Endpoint(http, remote.url, "m", "sk-secret", answer_seconds=0.3)
        )
        with (
            anyio.fail_after(15),
            pytest.raises(ModelError, match="did not answer in time") as caught,
        ):
            await generator.generate([Said("user", "?")], max_tokens=5)
    remote.release.set()
    assert "sk-secret" not in str(caught.value)
