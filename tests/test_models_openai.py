"""The remote backend against a real server on loopback: what is sent, what comes back, what each
failure is reported."""

import json
import socket
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from errors import ModelError
from models.protocols import Said
from tests.support.model_server import Remote, loopback_client
from tests.support.models import model_of

KEY = "sk-0123456789abcdef"
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def _vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0]


def _embeddings(body: dict[str, object]) -> Response:
    texts = body["input"]
    assert isinstance(texts, list)
    data = [
        {"object": "embedding", "index": n, "embedding": _vector(text)}
        for n, text in enumerate(texts)
    ]
    return JSONResponse(
        {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"total_tokens": 1}}
    )


def _ranking(body: dict[str, object]) -> Response:
    texts = body["documents"]
    assert isinstance(texts, list)
    results = [{"index": n, "relevance_score": len(text) / 100} for n, text in enumerate(texts)]
    results.sort(key=lambda item: -item["relevance_score"])
    return JSONResponse({"model": body["model"], "results": results})


def _chat(text: str, *, ended: str = "stop") -> Callable[[dict[str, object]], Response]:
    def answer(body: dict[str, object]) -> Response:
        message = {"role": "assistant", "content": text}
        choices = [{"index": 0, "message": message, "finish_reason": ended}]
        return JSONResponse(
            {"object": "chat.completion", "model": body["model"], "choices": choices}
        )

    return answer


def _status(code: int, text: str = "no", **headers: str) -> Callable[[dict[str, object]], Response]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _body: JSONResponse({"error": {"message": text}}, status_code=code, headers=named)


@pytest.mark.anyio
async def test_vectors_come_back_in_order_and_at_unit_length(remote: Remote) -> None:
    remote.will("/embeddings", _embeddings)
    texts = ["x" * (n + 1) for n in range(150)]
    async with loopback_client() as http:
        embedder = model_of("embedder", f"openai:{remote.url}#bge-m3", http=http, key=KEY)
        found = await embedder.embed(texts, kind="passage")
    expected = np.array([_vector(text) for text in texts])
    assert np.allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert found.dtype == np.float32
    assert embedder.dimension == 3
    assert len(remote.asked) == 5
    assert {(path, key) for path, _, key in remote.asked} == {("/v1/embeddings", f"Bearer {KEY}")}
    assert remote.asked[0][1]["model"] == "bge-m3"


@pytest.mark.anyio
async def test_empty_and_broken_texts_are_sent_as_a_server_takes_them(remote: Remote) -> None:
    remote.will("/embeddings", _embeddings)
    async with loopback_client() as http:
        embedder = model_of("embedder", f"openai:{remote.url}#m", http=http)
        assert (await embedder.embed(["", "\ud800", "y" * 1_000_000], kind="query")).shape == (3, 3)
        assert (await embedder.embed([], kind="query")).shape == (0, 3)
    sent = remote.asked[-1][1]["input"]
    assert isinstance(sent, list)
    assert [len(text) for text in sent] == [1, 1, 8_000]
    assert remote.asked[0][2] == ""


@pytest.mark.anyio
async def test_the_words_that_a_model_wants_before_a_query_are_sent(remote: Remote) -> None:
    remote.will("/embeddings", _embeddings)
    async with loopback_client() as http:
        embedder = model_of("embedder", f"openai:{remote.url}#nomic-embed-text", http=http)
        await embedder.embed(["ferry"], kind="query")
        await embedder.embed(["ferry"], kind="passage")
    assert [body["input"] for _, body, _ in remote.asked] == [
        ["search_query: ferry"],
        ["search_document: ferry"],
    ]


@pytest.mark.anyio
async def test_scores_come_back_in_the_order_of_the_texts(remote: Remote) -> None:
    remote.will("/rerank", _ranking)
    async with loopback_client() as http:
        reranker = model_of(
            "reranker", f"openai:{remote.url}#bge-reranker-v2-m3", http=http, key=KEY
        )
        found = await reranker.score("query", ["aaa", "a", "aa"])
        assert (await reranker.score("query", [])).shape == (0,)
    assert np.allclose(found, [0.03, 0.01, 0.02])
    assert remote.asked[0][1]["query"] == "query"


@pytest.mark.anyio
async def test_an_answer_is_the_models_text(remote: Remote) -> None:
    remote.will("/chat/completions", _chat("Paris."))
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#qwen3:4b", http=http, key=KEY)
        said = [Said("system", "Be brief."), Said("user", "Capital of France?")]
        assert await generator.generate(said, max_tokens=10) == "Paris."
    body = remote.asked[0][1]
    assert body["messages"] == [{"role": item.role, "content": item.content} for item in said]
    assert (body["max_tokens"], body["temperature"]) == (10, 0)
    assert "response_format" not in body


@pytest.mark.anyio
async def test_a_schema_is_sent_and_the_reply_is_checked_under_it(remote: Remote) -> None:
    remote.will(
        "/chat/completions",
        *(_chat(' {"answer": 42}\n'), _chat('{"answer": "many"}'), _chat('{"answer": "few"}')),
        *(_chat("Sure! 42"), _chat("Sure! 42")),
    )
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#m", http=http)
        said = [Said("user", "6 x 7?")]
        assert json.loads(await generator.generate(said, max_tokens=20, schema=SCHEMA)) == {
            "answer": 42
        }
        with pytest.raises(ModelError, match="invalid at answer"):
            await generator.generate(said, max_tokens=20, schema=SCHEMA)
        with pytest.raises(ModelError, match="did not return JSON"):
            await generator.generate(said, max_tokens=20, schema=SCHEMA)
    form = remote.asked[0][1]["response_format"]
    assert form == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    }


@pytest.mark.anyio
async def test_an_answer_that_is_not_valid_is_shown_to_the_model_once_with_its_fault(
    remote: Remote,
) -> None:
    remote.will(
        "/chat/completions", _chat('{"answer": "many"}'), _chat('```json\n{"answer": 42}\n```')
    )
    async with loopback_client() as http:
        generator = model_of("generator", f"openai:{remote.url}#m", http=http)
        found = await generator.generate([Said("user", "6 x 7?")], max_tokens=20, schema=SCHEMA)
    assert json.loads(found) == {"answer": 42}
    said = remote.asked[1][1]["messages"]
    assert isinstance(said, list)
    assert [item["role"] for item in said] == ["user", "assistant", "user"]
    assert said[1]["content"] == '{"answer": "many"}'
    assert "'many' is not of type 'integer'" in said[2]["content"]


@pytest.mark.anyio
async def test_a_text_over_the_servers_window_is_cut_until_it_fits(remote: Remote) -> None:
    def small(body: dict[str, object]) -> Response:
        texts = body["input"]
        assert isinstance(texts, list)
        if max(map(len, texts)) > 2_000:
            words = "input (1202 tokens) is too large to process. increase the physical batch size"
            return JSONResponse({"error": {"message": words}}, status_code=500)
        return _embeddings(body)

    remote.will("/embeddings", small)
    async with loopback_client() as http:
        embedder = model_of("embedder", f"openai:{remote.url}#m", http=http)
        found = await embedder.embed(["x" * 9_000, "short"], kind="passage")
        await embedder.embed(["x" * 9_000], kind="passage")
    assert found.shape == (2, 3)
    batches = [cast("list[str]", body["input"]) for _, body, _ in remote.asked]
    assert [max(map(len, texts)) for texts in batches] == [8_000, 4_000, 2_000, 2_000]


@pytest.mark.anyio
async def test_a_text_that_is_never_short_enough_is_an_error(remote: Remote) -> None:
    remote.will("/embeddings", _status(413, "Input is too large"))
    async with loopback_client() as http:
        with pytest.raises(ModelError, match="413"):
            await model_of("embedder", f"openai:{remote.url}#m", http=http).embed(
                ["x" * 9_000], kind="query"
            )
    assert len(remote.asked) == 5


@pytest.mark.anyio
async def test_json_cut_at_its_tokens_is_named_as_such(remote: Remote) -> None:
    remote.will("/chat/completions", _chat('{"answer": 4', ended="length"))
    async with loopback_client() as http:
        with pytest.raises(ModelError, match="cut at max_tokens"):
            await model_of("generator", f"openai:{remote.url}#m", http=http).generate(
                [Said("user", "?")], max_tokens=3, schema=SCHEMA
            )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (400, "window"),
        (401, "WINNOW_KEYS"),
        (404, "model's name"),
        (500, "server's log"),
        (501, "--embeddings"),
    ],
)
async def test_an_error_status_is_reported_with_what_to_do(
    remote: Remote, code: int, hint: str
) -> None:
    remote.will("/embeddings", _status(code, f"Incorrect key {KEY} for this"))
    async with loopback_client() as http:
        embedder = model_of("embedder", f"openai:{remote.url}#bge-m3", http=http, key=KEY)
        with pytest.raises(ModelError, match=f"answered {code} for model 'bge-m3'") as caught:
            await embedder.embed(["text"], kind="query")
    assert hint in caught.value.hint
    assert KEY not in str(caught.value)


@pytest.mark.anyio
async def test_a_limited_call_is_repeated_once_after_the_asked_pause(remote: Remote) -> None:
    remote.will("/embeddings", _status(429, retry_after="0"), _embeddings)
    async with loopback_client() as http:
        assert (
            await model_of("embedder", f"openai:{remote.url}#m", http=http).embed(
                ["a"], kind="query"
            )
        ).shape == (1, 3)
    assert len(remote.asked) == 2


@pytest.mark.anyio
@pytest.mark.parametrize(("pause", "times"), [("0", 3), ("3600", 1)])
async def test_a_call_that_stays_limited_fails(remote: Remote, pause: str, times: int) -> None:
    remote.will("/embeddings", _status(429, retry_after=pause))
    async with loopback_client() as http:
        with pytest.raises(ModelError, match="429"):
            await model_of("embedder", f"openai:{remote.url}#m", http=http).embed(
                ["a"], kind="query"
            )
    assert len(remote.asked) == times


GARBAGE: list[object] = [
    [],
    {},
    {"data": []},
    {"data": [{"index": 1, "embedding": [1.0]}]},
    {"data": [{"index": 0, "embedding": "AAAA"}]},
    {"data": [{"index": 0, "embedding": []}]},
    {"data": [{"index": 0, "embedding": [None]}]},
    {"data": [{"index": 0, "embedding": [1e400]}]},
    {"results": [{"index": 0}]},
    {"results": [{"index": "zero", "relevance_score": 1}]},
    {"choices": []},
    {"choices": [{"message": {"content": None}}]},
]


@pytest.mark.anyio
@pytest.mark.parametrize("answer", GARBAGE, ids=range(len(GARBAGE)))
async def test_an_answer_in_another_form_is_a_model_error(remote: Remote, answer: object) -> None:
    for path in ("/embeddings", "/rerank", "/chat/completions"):
        remote.will(path, lambda _body: Response(json.dumps(answer), media_type="application/json"))
    async with loopback_client() as http:
        spec = f"openai:{remote.url}#m"
        with pytest.raises(ModelError, match="an unknown response format"):
            await model_of("embedder", spec, http=http).embed(["a"], kind="query")
        with pytest.raises(ModelError, match="an unknown response format"):
            await model_of("reranker", spec, http=http).score("q", ["a"])
        with pytest.raises(ModelError, match="an unknown response format"):
            await model_of("generator", spec, http=http).generate([Said("user", "?")], max_tokens=5)


@pytest.mark.anyio
async def test_a_web_page_instead_of_an_api_is_a_model_error(remote: Remote) -> None:
    remote.will("/embeddings", lambda _body: PlainTextResponse("<html>Welcome</html>"))
    async with loopback_client() as http:
        with pytest.raises(ModelError, match="Welcome") as caught:
            await model_of("embedder", f"openai:{remote.url}#m", http=http).embed(
                ["a"], kind="query"
            )
    assert "/v1" in caught.value.hint


@pytest.mark.anyio
async def test_no_one_listening_is_a_model_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with loopback_client() as http:
        with pytest.raises(ModelError, match="cannot be reached"):
            await model_of("embedder", f"openai:http://127.0.0.1:{port}/v1#m", http=http).embed(
                ["a"], kind="query"
            )
