"""Trees through the doors: the tool grows them and shows written summaries."""

import re
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp.client import Client
from starlette.responses import JSONResponse, Response

from cache.store import open_stores
from errors import ModelError
from models.onnx import OnnxEmbedder
from pipeline.document.units import split_sentences
from pipeline.evidence.show import FIRST
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.question.question import Question
from pipeline.raptor.build import build_tree
from pipeline.raptor.evidence import to_evidence
from pipeline.raptor.outline import outline
from pipeline.raptor.overview import overview
from pipeline.raptor.query import ChosenNode, query_tree
from pipeline.raptor.summarise import Writer
from pipeline.raptor.tree import Tree, TreeOptions, find_tree, keep_tree
from pipeline.raptor.write import write_tree
from pipeline.reading.relevance import EMBED_TOKENS
from pipeline.text.tokens import count_tokens
from pipeline.work import no_report
from tests.support import Clock, Connect, data_of, text_of
from tests.support.model_server import model_server
from tests.support.raptor_pages import SUBJECTS, Author, chapters, guided, page_of, prose


def a_file(folder: Path, name: str, subject: str, lines: int = 40) -> str:
    body = prose(
        [
            f"The {subject} of station {i} was counted by the wardens in the year {1900 + i}."
            for i in range(lines)
        ]
    )
    (folder / name).write_text(
        f"<html><title>{subject}</title><main><h1>{subject}</h1>{body}</main></html>"
    )
    return str(folder / name)


@pytest.mark.anyio
async def test_a_handle_with_a_further_page_gives_a_tree_over_both(
    connect: Connect, tmp_path: Path
) -> None:
    first, second = a_file(tmp_path, "a.html", "Herons"), a_file(tmp_path, "b.html", "Badgers")
    async with connect(folders=str(tmp_path)) as client:
        asked = await client.call_tool(
            "raptor_query", {"question": "herons of station 7", "sources": [first]}
        )
        handle = data_of(asked)["tree"]
        more = await client.call_tool(
            "raptor_query", {"question": "badgers of station 7", "sources": [handle, second]}
        )
        both = await client.call_tool(
            "raptor_query", {"question": "x", "sources": [handle, handle]}
        )
    assert data_of(more)["tree"] != handle
    assert data_of(more)["leaves"] > data_of(asked)["leaves"]
    assert "Badgers of station 7 " in text_of(more)
    assert both.is_error
    assert "Two trees" in text_of(both)


@pytest.mark.anyio
async def test_the_papers_clustering_is_a_setting_of_the_server(
    connect: Connect, tmp_path: Path
) -> None:
    call = {
        "question": "herons of station 7",
        "sources": [a_file(tmp_path, "a.html", "Herons", lines=160)],
    }
    trees = {}
    for clustering in ("kmeans", "gmm"):
        async with connect(folders=str(tmp_path), clustering=clustering) as client:
            for mode in ("guided", "collapsed", "traversal"):
                result = await client.call_tool("raptor_query", {**call, "mode": mode})
                assert "Herons of station 7 " in text_of(result)
                trees[clustering] = data_of(result)["tree"]
    assert trees["gmm"] != trees["kmeans"]


@pytest.mark.anyio
async def test_a_page_that_is_named_again_is_shown_once(connect: Connect, tmp_path: Path) -> None:
    name = a_file(tmp_path, "a.html", "Herons")
    async with connect(folders=str(tmp_path)) as client:
        asked = await client.call_tool("raptor_query", {"question": "herons", "sources": [name]})
        again = await client.call_tool(
            "raptor_query", {"question": "herons", "sources": [data_of(asked)["tree"], name]}
        )
    assert data_of(again)["leaves"] == data_of(asked)["leaves"]


@pytest.mark.anyio
async def test_written_summaries_take_the_place_of_extracted_ones_once_and_name_all_their_leaves(
    tmp_path: Path,
) -> None:
    stores = open_stores(tmp_path, size_limit=10**8, clock=lambda: 1000.0)
    author = Author(
        "The ferry leaves the harbour of Pell at dawn. It was built by Johanna Krall in 1873."
    )
    document = chapters(30)
    tree = await build_tree([document], embedder=None, options=TreeOptions(), store=stores.trees)

    async def written() -> Tree:
        return await write_tree(
            tree, Writer(author), embedder=None, store=stores.trees, report=no_report
        )

    wrote = await written()
    assert find_tree(stores.trees, tree.id) is not None
    assert [node.id for node in wrote.nodes] == [node.id for node in tree.nodes]
    changed = [node for node in wrote.nodes if node.is_summary and not node.quotes]
    assert {node.text for node in changed} == {"The ferry leaves the harbour of Pell at dawn."}
    # Of the clusters that say nothing of a ferry the extracted summaries stay.
    assert any(node.quotes for node in wrote.nodes)
    assert {node.unsupported for node in changed} == {("1873", "Johanna", "Krall")}
    asked = len(author.asked)
    assert asked == sum(node.is_summary for node in tree.nodes)
    await written()
    assert len(author.asked) == asked
    found = [ChosenNode(node, node.text, node.tokens, 1.0) for node in changed]
    evidence = to_evidence(wrote, found, {0: document})
    assert [len(one.sources) for one in evidence] == [min(8, len(node.leaves)) for node in changed]
    stores.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answer",
    [
        "Yes. Thank you. The passage is a summary of the passages.",
        "The trumpet leaves the orchestra at dawn and carries no sound to the islands.",
        "The ferry leaves the harbour of Pell at dawn. " * 5,
    ],
)
async def test_a_generator_that_is_gone_or_writes_nonsense_leaves_the_extracted_summaries(
    answer: str, tmp_path: Path
) -> None:
    stores = open_stores(tmp_path, size_limit=10**8, clock=lambda: 1000.0)
    tree = await build_tree(
        [chapters(30)], embedder=None, options=TreeOptions(), store=stores.trees
    )
    with pytest.raises(ModelError, match="no words"):
        await write_tree(
            tree, Writer(Author("")), embedder=None, store=stores.trees, report=no_report
        )
    wrote = await write_tree(
        tree, Writer(Author(answer)), embedder=None, store=stores.trees, report=no_report
    )
    assert wrote.nodes == tree.nodes
    kept = find_tree(stores.trees, tree.id)
    assert kept is not None and kept.nodes == tree.nodes
    stores.close()


@pytest.mark.anyio
async def test_summaries_are_written_between_calls_and_a_server_that_ended_is_gone_on_from(
    connect: Connect, tmp_path: Path
) -> None:
    third, further = threading.Event(), threading.Event()
    prompts: list[str] = []

    async def outline_of(client: Client, handle: str) -> str:
        return str(getattr((await client.read_resource(handle)).contents[0], "text", ""))

    def summarise(body: dict[str, Any]) -> Response:
        prompts.append(body["messages"][-1]["content"])
        if len(prompts) == 3:
            third.set()
            further.wait(60)
        passages = prompts[-1].partition("Passages:\n")[2].rpartition("Summary:")[0]
        lines = [passages[start:end] for start, end in split_sentences(passages)]
        text = f"{lines[0].strip()} {lines[-1].strip()}"
        message = {"role": "assistant", "content": text}
        return JSONResponse({"choices": [{"message": message, "finish_reason": "stop"}]})

    name = a_file(tmp_path, "a.html", "Herons", lines=160)
    call = {"question": "herons of station 7", "sources": [name], "mode": "collapsed"}
    with model_server() as served:
        served.reported["/v1/models"] = {"data": [{"id": "good", "meta": {"n_ctx": 4096}}]}
        served.will("/chat/completions", summarise)
        setting = f"openai:{served.url}#good"
        async with connect(folders=str(tmp_path), generator=setting) as client:
            first = data_of(await client.call_tool("raptor_query", call))
            await anyio.to_thread.run_sync(third.wait, 20)
            more = first["summaries"] - 2
            assert f"that the generator wrote: 2 of 2; {more} to come." in text_of(
                await client.call_tool("raptor_query", call)
            )
            further.set()
        kept, before = set(prompts[:2]), len(prompts)
        async with connect(folders=str(tmp_path), generator=setting) as client:
            again = data_of(await client.call_tool("raptor_query", call))
            with anyio.fail_after(30):
                while "summaries: extractive" in await outline_of(client, again["tree"]):
                    pass
            wrote = text_of(await client.call_tool("raptor_query", call))
    assert again["tree"] == first["tree"]
    assert kept.isdisjoint(prompts[before:])
    assert "to come" not in wrote


@pytest.mark.anyio
async def test_a_tree_in_use_stays_and_one_that_no_one_asks_leaves(tmp_path: Path) -> None:
    clock = Clock()
    stores = open_stores(tmp_path, size_limit=10**8, clock=clock)
    tree = await build_tree([chapters(5)], embedder=None, options=TreeOptions(), store=None)
    keep_tree(stores.trees, tree)
    for _ in range(3):
        clock.now += 0.7 * CACHED_ANSWER_SECONDS
        assert find_tree(stores.trees, tree.id) is not None
    clock.now += 1.1 * CACHED_ANSWER_SECONDS
    assert find_tree(stores.trees, tree.id) is None
    stores.close()


@pytest.mark.anyio
async def test_nodes_are_called_by_titles_and_headings() -> None:
    documents = [chapters(24, "alpha"), chapters(12, "beta")]
    tree = await build_tree(documents, embedder=OnnxEmbedder(), options=TreeOptions(), store=None)
    text = outline(tree, max_tokens=100_000)
    assert text.splitlines()[1].startswith("- Alpha; Beta [")
    assert "About the ferry" in text


@pytest.mark.anyio
async def test_neighbouring_leaves_are_one_passage_with_one_link() -> None:
    document = chapters(30)
    tree = await build_tree([document], embedder=None, options=TreeOptions(), store=None)
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


@pytest.mark.anyio
@pytest.mark.parametrize("budget", [200, 512, 1000])
async def test_a_question_about_one_document_is_answered_with_its_outline(
    connect: Connect, tmp_path: Path, budget: int
) -> None:
    body = "".join(
        f"<h2>About the {name}</h2>"
        + prose([f"{line}, as record {name} {i} says." for i in range(12)])
        for name, line in SUBJECTS.items()
    )
    (tmp_path / "a.html").write_text(
        f"<html><title>Four things</title><main><h1>Four things</h1>{body}</main></html>"
    )
    call = {
        "question": "What is this document about?",
        "sources": [str(tmp_path / "a.html")],
        "max_tokens": budget,
    }
    async with connect(folders=str(tmp_path)) as client:
        result = await client.call_tool("raptor_query", call)
        fact = await client.call_tool(
            "raptor_query", {**call, "question": "What does the grebe carry?"}
        )
    text = text_of(result)
    lines = [line for line in text.splitlines() if line.strip().startswith("About the")]
    assert [line.split(":")[0].strip() for line in lines] == [
        f"About the {name}" for name in SUBJECTS
    ]
    assert budget < 512 or all(": The " in line for line in lines), "each section's first sentence"
    assert count_tokens(text) <= budget
    cited = sum("#:~:text=" in one["link"] for one in data_of(result)["passages"])
    assert budget < 512 or cited >= FIRST - 1, "the first passage is the document itself"
    assert "carries its chicks" in text_of(fact)
    assert "    About the" not in text_of(fact)


@pytest.mark.anyio
async def test_a_question_about_a_folder_is_answered_with_a_line_a_theme(
    connect: Connect, tmp_path: Path
) -> None:
    for name, line in SUBJECTS.items():
        for i in range(4):
            body = prose(
                [f"{line}, as {name} record {i} of {year} says." for year in range(1900, 1920)]
            )
            page = (
                f"<html><title>The {name} {'abcd'[i]}</title><main><h1>The "
                f"{name}</h1>{body}</main></html>"
            )
            (tmp_path / f"{'dcba'[i]}-{name}.html").write_text(page)
    call = {
        "question": "Worum geht es in diesen Dokumenten?",
        "sources": [str(tmp_path)],
        "max_tokens": 800,
    }
    async with connect(folders=str(tmp_path), seconds="120") as client:
        result = await client.call_tool("raptor_query", call)
    lines = [line for line in text_of(result).splitlines() if " documents, about " in line]
    assert len(lines) == len(SUBJECTS)
    for name in SUBJECTS:
        own = next(line for line in lines if f"The {name} a" in line)
        assert "4 documents" in own
        assert all(f"The {name} {letter}" in own for letter in "abcd")
    words = [line.partition("about ")[2].partition(":")[0].split(", ") for line in lines]
    assert any("brine" in one for one in words), "whole words, not stems"
    assert len({word for one in words for word in one}) == sum(map(len, words)), (
        "a theme's words are its own"
    )
    assert [one["is_summary"] for one in data_of(result)["passages"]] == [True] * 4
    assert all(len(one["sources"]) == 4 for one in data_of(result)["passages"])


@pytest.mark.anyio
@pytest.mark.parametrize("budget", [30, 100, 2000])
async def test_an_overview_keeps_its_budget_and_uses_whole_sentences_where_there_are_no_headings(
    budget: int,
) -> None:
    lines = [
        f"Sentence {i} of the speech describes the harbour, the boats and the price of salt."
        for i in range(80)
    ]
    tree = await build_tree(
        [page_of(prose(lines))], embedder=None, options=TreeOptions(), store=None
    )
    reported = overview(tree, {}, max_tokens=budget, mark="123")
    assert reported.shown.tokens == count_tokens(reported.shown.text) <= budget
    sentences = re.findall(r"Sentence \d+ of the speech describes [^.]*\.", reported.shown.text)
    assert set(sentences) <= set(lines)
    assert len(sentences) >= {30: 0, 100: 3, 2000: 12}[budget]
    places = [lines.index(sentence) for sentence in sentences]
    assert places == sorted(places)


@pytest.mark.anyio
async def test_a_page_shows_what_extract_relevant_shows_first(
    connect: Connect, tmp_path: Path
) -> None:
    source = a_file(tmp_path, "a.html", "Herons")
    call = {
        "question": "Who counted the herons of station 23?",
        "sources": [source],
        "max_tokens": 256,
    }
    async with connect(folders=str(tmp_path)) as client:
        shown = [
            text_of(await client.call_tool(tool, call))
            for tool in ("raptor_query", "extract_relevant")
        ]
    assert all("Herons of station 23 " in text for text in shown)


@pytest.mark.anyio
async def test_leaves_speak_for_a_page_that_is_gone(embedder: OnnxEmbedder) -> None:
    document = chapters(300)
    tree = await build_tree([document], embedder=embedder, options=TreeOptions(), store=None)
    assert sum(leaf.tokens for leaf in tree.leaves) > EMBED_TOKENS
    for documents in ([document], []):
        answer = await guided(
            tree, documents, "What does record sensor 77 say?", embedder, max_tokens=300
        )
        assert any("record sensor 77 says" in one.text for one in answer.evidence)
        assert all(one.url == "https://example.org/page" for one in answer.evidence)
        assert all(
            one.citation.startswith("https://example.org/page#:~:text=") for one in answer.evidence
        )
