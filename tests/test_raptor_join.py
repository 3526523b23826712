"""Pages that join a tree: clusters are, and only summaries whose children changed are made
again."""

import pytest

from models.onnx import OnnxEmbedder
from pipeline.document.page import Document
from pipeline.raptor.build import build_tree
from pipeline.raptor.summarise import Writer
from pipeline.raptor.tree import Tree, TreeOptions
from tests.support.raptor_pages import (
    Author,
    Counting,
    assert_sound,
    chapters,
    guided,
    page_of,
    prose,
    quoted,
)


def summaries(tree: Tree) -> set[str]:
    return {node.id for node in tree.nodes if node.is_summary}


async def grown(
    documents: list[Document],
    embedder: Counting,
    options: TreeOptions,
    author: Author,
    before: Tree | None = None,
) -> Tree:
    return await build_tree(
        documents,
        embedder=embedder,
        options=options,
        store=None,
        writer=Writer(author),
        grown_from=before,
    )


@pytest.mark.slow
@pytest.mark.anyio
async def test_one_more_page_redoes_only_the_summaries_above_it(embedder: OnnxEmbedder) -> None:
    options = TreeOptions()
    author, counting = Author("The record talks."), Counting(embedder)
    documents = [*(chapters(12 + i, f"page{i}") for i in range(13)), chapters(20, "page13")]
    before = await grown(documents[:-1], counting, options, author)
    asked, embedded = len(author.asked), len(counting.texts)
    after = await grown(documents, counting, options, author, before)
    assert_sound(after, documents)
    redone = summaries(after) - summaries(before)
    # What the generator was asked is just what is new, and so is what the embedder read.
    assert len(author.asked) - asked == len(redone)
    own = sum(leaf.document == 13 for leaf in after.leaves)
    assert len(counting.texts) - embedded == own + len(redone)
    own_summaries = summaries(await grown(documents[-1:], counting, options, author))
    assert len(redone - own_summaries) <= 3
    assert summaries(before) & summaries(after)


@pytest.mark.anyio
async def test_a_page_that_grew_keeps_the_clusters_of_what_was_and_quotes_it_where_it_is_now(
    embedder: OnnxEmbedder,
) -> None:
    options, author = TreeOptions(), Author("")
    weeks = [
        f"<h2>Week {n}</h2>"
        + prose([f"In week {n} the ferry ran {i} times to the island of Pell." for i in range(9)])
        for n in range(30)
    ]
    before = await grown([page_of("".join(weeks))], Counting(embedder), options, author)
    news = "<h2>News</h2>" + prose(
        [f"Line {i} of the news talks of the new pier at Orvik." for i in range(9)]
    )
    document = page_of(news + "".join(weeks))
    after = await grown([document], Counting(embedder), options, author, before)
    assert_sound(after, [document])
    assert len(summaries(before) - summaries(after)) <= 0.4 * len(summaries(before))
    assert all(
        quoted(after, [document], node) == node.text for node in after.nodes if node.is_summary
    )


@pytest.mark.anyio
async def test_growing_twice_the_same_way_gives_the_same_tree_under_a_handle_of_its_own(
    embedder: OnnxEmbedder,
) -> None:
    documents = [chapters(10, f"page{i}") for i in range(5)]
    author, counting, options = Author("The record talks."), Counting(embedder), TreeOptions()
    before = await grown(documents[:4], counting, options, author)
    one = await grown(documents, counting, options, author, before)
    two = await grown(documents, counting, options, author, before)
    refresh = await grown(documents, counting, options, author)
    assert (one.id, one.nodes) == (two.id, two.nodes)
    assert len({before.id, one.id, refresh.id}) == 3


@pytest.mark.anyio
async def test_a_page_that_left_takes_its_nodes_with_it(embedder: OnnxEmbedder) -> None:
    documents = [chapters(10, f"page{i}") for i in range(6)]
    options, author, counting = TreeOptions(), Author("The record talks."), Counting(embedder)
    before = await grown(documents, counting, options, author)
    asked = len(author.asked)
    after = await grown(documents[1:], counting, options, author, before)
    assert_sound(after, documents[1:])
    assert len(author.asked) - asked <= 3
    assert {after.sources[leaf.document].url for leaf in after.leaves} == {
        document.page.final_url for document in documents[1:]
    }


@pytest.mark.anyio
async def test_extracted_summaries_that_were_taken_over_quote_the_right_sentences(
    embedder: OnnxEmbedder,
) -> None:
    documents = [chapters(10, f"page{i}") for i in range(5)]
    before = await build_tree(documents[1:], embedder=embedder, options=TreeOptions(), store=None)
    after = await build_tree(
        documents, embedder=embedder, options=TreeOptions(), store=None, grown_from=before
    )
    for node in after.nodes:
        assert not node.is_summary or quoted(after, documents, node) == node.text
    answer = await guided(after, documents, "record bird 7", embedder, max_tokens=300)
    assert any("bird 7" in one.text for one in answer.evidence)


@pytest.mark.anyio
async def test_what_a_generator_wrote_stays_when_a_page_joins_without_it(
    embedder: OnnxEmbedder,
) -> None:
    documents = [chapters(12, f"page{i}") for i in range(5)]
    options = TreeOptions()
    before = await grown(
        documents[:4], Counting(embedder), options, Author("The ferry leaves at dawn.")
    )
    written = {node.id for node in before.nodes if node.is_summary and not node.quotes}
    assert written
    after = await build_tree(
        documents, embedder=embedder, options=options, store=None, grown_from=before
    )
    assert_sound(after, documents)
    kept = {node.id for node in after.nodes if node.is_summary and not node.quotes}
    # All but those at the very top, whose children changed.
    assert kept <= written
    assert len(written - kept) <= 3
    again = await build_tree(
        [*documents, chapters(9, "p")],
        embedder=embedder,
        options=options,
        store=None,
        grown_from=after,
    )
    assert len(kept & {node.id for node in again.nodes if not node.quotes}) >= len(kept) - 3
    by_another = await grown(documents, Counting(embedder), options, Author("It says so."), after)
    assert not {node.text for node in by_another.nodes} & {"The ferry leaves at dawn."}


@pytest.mark.anyio
async def test_a_tree_by_other_options_brings_nothing(embedder: OnnxEmbedder) -> None:
    documents = [chapters(8, f"page{i}") for i in range(3)]
    other = await build_tree(
        documents, embedder=None, options=TreeOptions(leaf_tokens=60), store=None
    )
    plain = await build_tree(documents, embedder=embedder, options=TreeOptions(), store=None)
    after = await build_tree(
        documents, embedder=embedder, options=TreeOptions(), store=None, grown_from=other
    )
    assert (after.id, after.nodes) == (plain.id, plain.nodes)
