"""Trees through the doors: the tool grows them, gives an overview, and asks nodes above leaves."""

import re
from pathlib import Path

import pytest

from cache.store import open_stores
from models.onnx import OnnxEmbedder
from pipeline.evidence.show import FIRST
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.raptor.build import build_tree
from pipeline.raptor.overview import outline, overview
from pipeline.raptor.tree import TreeOptions, find_tree, keep_tree
from pipeline.reading.relevance import EMBED_TOKENS
from pipeline.text.tokens import count_tokens
from tests.support import Clock, Connect, data_of, text_of
from tests.support.raptor_pages import SUBJECTS, chapters, guided, page_of, prose


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
async def test_a_page_that_is_named_again_is_shown_once(connect: Connect, tmp_path: Path) -> None:
    name = a_file(tmp_path, "a.html", "Herons")
    async with connect(folders=str(tmp_path)) as client:
        asked = await client.call_tool("raptor_query", {"question": "herons", "sources": [name]})
        again = await client.call_tool(
            "raptor_query", {"question": "herons", "sources": [data_of(asked)["tree"], name]}
        )
    assert data_of(again)["leaves"] == data_of(asked)["leaves"]


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
async def test_a_question_about_a_folder_names_each_document_and_how_it_begins(
    connect: Connect, tmp_path: Path
) -> None:
    for name, line in SUBJECTS.items():
        for letter in "abcdefgh":
            body = prose(
                [f"{line}, as {name} record {letter} of {year} says." for year in (1900, 1910)]
            )
            page = (
                f"<html><title>The {name} {letter}, as told by the wardens</title><main><h1>The "
                f"{name}</h1>{body}</main></html>"
            )
            (tmp_path / f"{letter}-{name}.html").write_text(page)
    (tmp_path / "untitled.txt").write_text("The lock keeper paints the gate each spring.\n" * 3)
    call = {
        "question": "Worum geht es in diesen Dokumenten?",
        "sources": [str(tmp_path)],
        "max_tokens": 2400,
    }
    async with connect(folders=str(tmp_path), seconds="120") as client:
        result = await client.call_tool("raptor_query", call)
        few = await client.call_tool("raptor_query", {**call, "max_tokens": 200})
    text = text_of(result)
    assert "Documents: 33.\n" in text
    titles = [f"The {name} {letter}" for name in SUBJECTS for letter in "abcdefgh"]
    begun = [line for line in text.splitlines() if " record " in line and " of 1900 says." in line]
    assert all(any(line.startswith(title) for line in text.splitlines()) for title in titles)
    assert len(begun) == 32
    assert "untitled: The lock keeper paints the gate each spring." in text
    cited = [one for one in data_of(result)["passages"] if "#:~:text=" in one["link"]]
    assert len(cited) >= 33
    assert re.search(r"Documents: 33; \d+ named\.", text_of(few)), "what has no room is counted"


@pytest.mark.anyio
@pytest.mark.parametrize("budget", [30, 100, 2000])
async def test_an_overview_keeps_its_budget_and_has_sentences_where_no_headings_are(
    budget: int,
) -> None:
    lines = [
        f"Sentence {i} of the speech describes the harbour, the boats and the price of salt."
        for i in range(80)
    ]
    tree = await build_tree(
        [page_of(prose(lines))], embedder=None, options=TreeOptions(), store=None
    )
    reported = overview(tree, {}, max_tokens=budget, delimiter="123")
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


@pytest.mark.anyio
@pytest.mark.parametrize("question", ["What is this document about?", "Who signed it?"])
@pytest.mark.parametrize("mode", ["guided", "collapsed"])
async def test_a_page_without_text_is_an_ordinary_answer_with_nothing_in_it(
    connect: Connect, tmp_path: Path, question: str, mode: str
) -> None:
    (tmp_path / "a.html").write_text("<html><frameset><frame src='b'></frameset></html>")
    call = {"question": question, "sources": [str(tmp_path / "a.html")], "mode": mode}
    async with connect(folders=str(tmp_path)) as client:
        first = await client.call_tool("raptor_query", call)
        again = {**call, "sources": [data_of(first)["tree"]]}
        second = await client.call_tool("raptor_query", again)
    for result in (first, second):
        assert not result.is_error
        assert data_of(result)["leaves"] == 0
        assert data_of(result).get("passages", []) == []


@pytest.mark.anyio
async def test_an_outline_keeps_its_budget_and_has_the_headings_of_each_source() -> None:
    documents = [chapters(24, "alpha"), chapters(12, "beta")]
    tree = await build_tree(documents, embedder=None, options=TreeOptions(), store=None)
    for budget in (1, 10, 40, 200, 1000, 100_000):
        assert count_tokens(outline(tree, max_tokens=budget)) <= budget
    whole = outline(tree, max_tokens=100_000).splitlines()
    assert "2 documents" in whole[0]
    assert [line.split(" [")[0] for line in whole if "Alpha" in line or "Beta" in line] == [
        "- Alpha",
        "- Beta",
    ]
    assert sum("About the ferry" in line for line in whole) == 2
