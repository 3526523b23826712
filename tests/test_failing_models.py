"""A model that fails costs its own scores, never the call: each door answers by words, and says so."""

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tests.support import Connect, text_of
from tests.support.model_server import Remote

Answer = Callable[[dict[str, object]], Response]
PAGES = {
    "ferry.html": "<title>Ferry</title><h1>Ferry</h1><p>The ferry to Ostholm leaves at 7:45 from pier two.</p>"
    "<p>A ticket costs 12 crowns, and a bicycle 5 crowns.</p>",
    "museum.html": "<title>Museum</title><h1>Museum</h1><p>The museum shows nets and ropes of the harbour.</p>",
}
QUESTION = "When does the ferry to Ostholm leave?"
DOORS: dict[str, Callable[[Path], dict[str, object]]] = {
    "extract_relevant": lambda folder: {"sources": [str(folder / name) for name in PAGES]},
    "fetch_and_prune_html": lambda folder: {"sources": [str(folder / name) for name in PAGES]},
    "raptor_query": lambda folder: {"sources": [str(folder / name) for name in PAGES]},
    "research": lambda _folder: {},
    "search_web": lambda _folder: {},
}


def _vectors(*values: object) -> Answer:
    def answer(body: dict[str, object]) -> Response:
        texts = body["input"]
        assert isinstance(texts, list)
        rows = [
            {"object": "embedding", "index": n, "embedding": list(values)}
            for n in range(len(texts))
        ]
        return JSONResponse({"object": "list", "data": rows, "model": body["model"]})

    return answer


def _status(code: int) -> Answer:
    return lambda _body: JSONResponse({"error": {"message": "out of memory"}}, status_code=code)


def _text(text: str) -> Answer:
    return lambda _body: PlainTextResponse(text, media_type="application/json")


def _vectors_text(vector: str) -> Answer:
    def answer(body: dict[str, object]) -> Response:
        texts = body["input"]
        assert isinstance(texts, list)
        rows = [f'{{"index": {n}, "embedding": {vector}}}' for n in range(len(texts))]
        return _text(f'{{"data": [{", ".join(rows)}]}}')(body)

    return answer


FAULTS: dict[str, tuple[str, str, Answer]] = {
    "an embedder's status 500": ("embedder", "/embeddings", _status(500)),
    "an embedder's status 401": ("embedder", "/embeddings", _status(401)),
    "no vectors": ("embedder", "/embeddings", _text('{"data": []}')),
    "an empty vector": ("embedder", "/embeddings", _vectors()),
    "a vector of texts": ("embedder", "/embeddings", _vectors("a", "b")),
    "a vector of nulls": ("embedder", "/embeddings", _vectors(None, None)),
    "a vector of zeros": ("embedder", "/embeddings", _vectors(0.0, 0.0, 0.0)),
    "a vector over every bound": ("embedder", "/embeddings", _vectors(1e39, 1.0)),
    "an integer over every bound": ("embedder", "/embeddings", _vectors_text(f"[1{400 * '0'}, 1]")),
    "not numbers": (
        "embedder",
        "/embeddings",
        _text('{"data": [{"index": 0, "embedding": [NaN, 1]}]}'),
    ),
    "cut JSON": ("embedder", "/embeddings", _text('{"data": [{"index": 0, "embed')),
    "a list in place of an object": ("embedder", "/embeddings", _text("[1, 2]")),
    "a reranker's status 500": ("reranker", "/rerank", _status(500)),
    "no ranking": ("reranker", "/rerank", _text('{"results": []}')),
    "a ranking of texts": (
        "reranker",
        "/rerank",
        _text('{"results": [{"index": 0, "relevance_score": "high"}]}'),
    ),
    "a ranking of what was not sent": (
        "reranker",
        "/rerank",
        _text('{"results": [{"index": 7000, "relevance_score": 1}]}'),
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_model_that_fails_costs_its_scores_and_each_door_says_so(
    fault: str, connect: Connect, remote: Remote, tmp_path: Path
) -> None:
    role, path, answer = FAULTS[fault]
    remote.will(path, answer)
    folder = tmp_path / "pages"
    folder.mkdir()
    for name, page in PAGES.items():
        (folder / name).write_text(page)
    given = {
        role: f"openai:{remote.url}#model",
        "folders": str(folder),
        "cache": str(tmp_path / "cache"),
    }
    async with connect(search="folder", **given) as client:
        for door, arguments in DOORS.items():
            result = await client.call_tool(door, {"question": QUESTION, **arguments(folder)})
            said = text_of(result)
            assert not result.is_error, (door, said)
            assert "ferry" in said.lower(), door
            # A folder's hits are ordered by words in any case.
            assert door == "search_web" or ("7:45" in said and "words alone decided" in said), (
                door,
                said,
            )
