"""RAPTOR as printed through the doors: clusters, summaries, traversal and collapsed tree."""

from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from papers.raptor.build import build_tree
from papers.raptor.evidence import to_evidence
from papers.raptor.query import query_tree
from papers.raptor.tree import NodeOptions
from pipeline.document.units import split_sentences
from pipeline.question.question import Question
from tests.support import Connect, data_of, text_of
from tests.support.model_server import model_server
from tests.support.raptor_pages import chapters
from tests.test_raptor_doors import a_file


@pytest.mark.anyio
@pytest.mark.parametrize(
    "clustering", ["kmeans", pytest.param("gmm", marks=pytest.mark.needs("papers"))]
)
async def test_every_mode_and_clustering_answers_from_the_same_leaves(
    connect: Connect, tmp_path: Path, clustering: str
) -> None:
    name = a_file(tmp_path, "a.html", "Herons", lines=160)
    call: dict[str, Any] = {"question": "herons of station 7", "sources": [name]}
    trees = set()
    async with connect(folders=str(tmp_path), papers=f"clustering={clustering}") as client:
        for mode in ("guided", "collapsed", "traversal"):
            result = await client.call_tool("raptor_query", {**call, "mode": mode})
            assert "Herons of station 7 " in text_of(result)
            trees.add(data_of(result)["tree"])
            call["sources"] = list(trees)
    assert len(trees) == 1


@pytest.mark.anyio
async def test_a_generator_writes_the_summaries_once(connect: Connect, tmp_path: Path) -> None:
    prompts: list[str] = []

    def summarise(body: dict[str, Any]) -> Response:
        prompts.append(body["messages"][-1]["content"])
        passages = prompts[-1].partition("Passages:\n")[2].rpartition("Summary:")[0]
        lines = [passages[start:end] for start, end in split_sentences(passages)]
        text = f"{lines[0].strip()} {lines[-1].strip()}"
        message = {"role": "assistant", "content": text}
        return JSONResponse({"choices": [{"message": message, "finish_reason": "stop"}]})

    name = a_file(tmp_path, "a.html", "Herons", lines=160)
    call = {"question": "What of herons?", "sources": [name], "mode": "collapsed"}
    with model_server() as served:
        served.reported["/v1/models"] = {"data": [{"id": "good", "meta": {"n_ctx": 4096}}]}
        served.will("/chat/completions", summarise)
        async with connect(
            folders=str(tmp_path), generator=f"openai:{served.url}#good", seconds="120"
        ) as client:
            first = await client.call_tool("raptor_query", call)
            asked = len(prompts)
            second = await client.call_tool("raptor_query", call)
    assert asked > 1
    assert len(prompts) == asked
    assert any(one["is_summary"] for one in data_of(first)["passages"])
    assert data_of(second)["passages"] == data_of(first)["passages"]


@pytest.mark.anyio
async def test_neighbouring_leaves_are_one_passage_with_one_link() -> None:
    document = chapters(30)
    tree = await build_tree([document], embedder=None, options=NodeOptions(), store=None)
    found = await query_tree(
        tree, Question("record ferry harbour of Pell"), mode="flat", max_tokens=900, embedder=None
    )
    evidence = to_evidence(tree, found, {0: document})
    assert len(evidence) < len(found)
    assert len({one.citation for one in evidence}) == len(evidence)
    assert sum(one.text.count("as record ferry") for one in evidence) == sum(
        passage.text.count("as record ferry") for passage in found
    )
    assert not any(one.text.startswith(heading) for one in evidence for heading in one.heading_path)
