"""Asking trees: facts found, budgets exact, modes, broad questions, near-duplicates."""

import html
import random
import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from errors import UsageError
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from papers.raptor.build import build_tree
from papers.raptor.query import ChosenNode, NodeMode, Traversal, query_tree, take
from papers.raptor.tree import Clustering, NodeOptions, NodeTree
from pipeline.question.broad import is_broad
from pipeline.question.question import Question
from pipeline.raptor.query import lifted
from pipeline.reading.reading import Reading
from pipeline.text.tokens import count_tokens
from readers.html.document import read_document
from readers.page import Document, Page, Sentence
from tests.support import ROOT
from tests.support.raptor_pages import Counting, guided

FACTS = {
    "When was the lighthouse of Tarn first lit?": "The lighthouse of Tarn was lit for the first "
    "time in 1847.",
    "Who paid for the school in Orvik?": "A widow named Marta Lind paid for the school in Orvik "
    "out of her own purse.",
    "How deep is the well below the castle?": "The well below the castle is 112 metres deep and "
    "has never run dry.",
}
FILLER = (
    "The council met on day {i} and spoke at length about roads, drains and the price of oats in "
    "the valley.",
    "In week {i} the weather was mild, the fields were wet, and most farmers stayed near their "
    "houses.",
    "Visitor {i} praised the bread, the bells and the long view over the hills towards the border.",
)


def page_of(sentences: Sequence[str], name: str) -> Document:
    groups = [sentences[i : i + 4] for i in range(0, len(sentences), 4)]
    body = "".join(f"<p>{html.escape(' '.join(group))}</p>" for group in groups)
    url = f"https://example.org/{name}"
    return read_document(
        Page(
            url=url,
            final_url=url,
            title=f"Chronicle {name}",
            html=f"<html lang='en'><body><main><h1>Chronicle</h1>{body}</main></body></html>",
            media_type="text/html",
            language="en",
            content_hash=name,
        )
    )


def chronicle(name: str = "a", fillers: int = 240) -> Document:
    sentences = [FILLER[i % 3].format(i=i) for i in range(fillers)]
    for n, fact in enumerate(FACTS.values(), start=1):
        sentences.insert(n * len(sentences) // 4, fact)
    return page_of(sentences, name)


async def tree_of(documents: Sequence[Document], embedder: Embedder | None) -> NodeTree:
    return await build_tree(documents, embedder=embedder, options=NodeOptions(), store=None)


async def ask(
    tree: NodeTree, question: str, embedder: Embedder | None, **options: object
) -> tuple[ChosenNode, ...]:
    given = {"mode": "collapsed", "max_tokens": 2000, **options}
    return await query_tree(tree, Question(question), embedder=embedder, **given)  # type: ignore[arg-type]  # passed by name


@pytest.mark.anyio
@pytest.mark.parametrize("fillers", [240, pytest.param(2400, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("with_embedder", [True, False])
async def test_guided_finds_each_fact_in_a_long_chronicle(
    with_embedder: bool, fillers: int, embedder: OnnxEmbedder
) -> None:
    using = embedder if with_embedder else None
    documents = [chronicle(fillers=fillers)]
    tree = await tree_of(documents, using)
    for question, fact in FACTS.items():
        answer = await guided(tree, documents, question, using, max_tokens=250)
        assert any(fact in one.text for one in answer.evidence), question


@pytest.mark.anyio
async def test_a_large_tree_is_asked_by_its_kept_vectors(embedder: OnnxEmbedder) -> None:
    documents = [chronicle(fillers=2400)]
    counting = Counting(embedder)
    tree = await tree_of(documents, counting)
    counting.texts.clear()
    question = "How deep is the well below the castle?"
    await guided(tree, documents, question, counting)
    assert set(counting.texts) == {question}


@pytest.mark.anyio
@pytest.mark.parametrize("budget", [40, 60, 99, 500, 2000, 50_000])
async def test_guided_answers_keep_their_budget_to_the_token(budget: int) -> None:
    documents = [chronicle(), chronicle("b", 30)]
    tree = await tree_of(documents, None)
    answer = await guided(tree, documents, "Who paid for the school?", None, max_tokens=budget)
    assert answer.shown.tokens == count_tokens(answer.shown.text) <= budget
    assert answer.evidence


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["collapsed", "traversal", "flat"])
@pytest.mark.parametrize("budget", [1, 7, 60, 99, 500, 2000, 50_000])
async def test_every_mode_keeps_its_budget_to_the_token(mode: NodeMode, budget: int) -> None:
    tree = await tree_of([chronicle(), chronicle("b", 30)], None)
    answer = await ask(tree, "Who paid for the school?", None, mode=mode, max_tokens=budget)
    assert (
        sum(passage.tokens for passage in answer)
        == sum(count_tokens(passage.text) for passage in answer)
        <= budget
    )
    assert all(passage.tokens == count_tokens(passage.text) for passage in answer)


@pytest.mark.anyio
async def test_a_passage_is_what_is_at_its_place(embedder: OnnxEmbedder) -> None:
    documents = [chronicle(), chronicle("b", 60)]
    tree = await tree_of(documents, embedder)
    answer = await ask(tree, "How deep is the well?", embedder, mode="flat", max_tokens=900)
    leaves = [tree.leaves[passage.node.leaves[0]] for passage in answer]
    for leaf, passage in zip(leaves, answer, strict=True):
        assert documents[leaf.document].text[leaf.start : leaf.end] == passage.text
        assert tree.sources[leaf.document].url == documents[leaf.document].page.final_url
        assert tree.sources[leaf.document].title == f"Chronicle {'ab'[leaf.document]}"
    order = [(leaf.document, leaf.start) for leaf in leaves]
    first = [document for document, _ in order]
    assert all(
        order[i][1] < order[i + 1][1]
        for i in range(len(order) - 1)
        if order[i][0] == order[i + 1][0]
    ), "reading order inside a document"
    assert len(set(first)) == sum(i == 0 or first[i] != first[i - 1] for i in range(len(first)))


@pytest.mark.anyio
async def test_what_does_not_fit_is_skipped_for_what_does() -> None:
    long = "The secret treasure map lies " + ", ".join(f"behind door {i}" for i in range(40)) + "."
    short = "The treasure map was burnt."
    tree = await tree_of(
        [
            page_of(
                [long, *[f"Plain line {i} says nothing of note here." for i in range(30)], short],
                "c",
            )
        ],
        None,
    )
    answer = await ask(tree, "secret treasure map", None, max_tokens=120, mode="flat")
    assert any(short in passage.text for passage in answer)
    assert sum(passage.tokens for passage in answer) <= 120


@pytest.mark.anyio
async def test_a_copy_of_a_page_does_not_fill_the_answer_twice(embedder: OnnxEmbedder) -> None:
    documents = [chronicle("a", 30), chronicle("b", 30)]
    tree = await tree_of(documents, embedder)
    answer = await guided(
        tree, documents, "How deep is the well below the castle?", embedder, max_tokens=600
    )
    assert answer.shown.text.count("112 metres") == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    "clustering", ["kmeans", pytest.param("gmm", marks=pytest.mark.needs("papers"))]
)
async def test_collapsed_and_traversal_return_nodes_of_several_layers(
    clustering: Clustering, embedder: OnnxEmbedder
) -> None:
    options = NodeOptions(clustering=clustering)
    documents = [chronicle(), chronicle("b", 120)]
    tree = await build_tree(documents, embedder=embedder, options=options, store=None)
    for mode in ("collapsed", "traversal"):
        answer = await ask(tree, "Chronicle of the castle", embedder, max_tokens=1500, mode=mode)
        assert len({passage.node.layer for passage in answer}) > 1
        ranked = [passage.score for passage in sorted(answer, key=lambda one: -one.score)]
        assert max(ranked) <= 1.0001, "no cosine"


@pytest.mark.anyio
async def test_the_papers_collapsed_tree_takes_the_nearest_nodes_repeats_and_all(
    embedder: OnnxEmbedder,
) -> None:
    tree = await tree_of([chronicle("a", 60), chronicle("b", 60)], embedder)
    question = "How deep is the well below the castle?"
    paper = await ask(tree, question, embedder, mode="collapsed", repeats=True, max_tokens=600)
    ours = await ask(tree, question, embedder, mode="collapsed", max_tokens=600)
    assert sum("112 metres" in passage.text for passage in paper) > 1
    assert sum("112 metres" in passage.text for passage in ours) < sum(
        "112 metres" in passage.text for passage in paper
    )
    vector = (await embedder.embed([question], kind="query"))[0]
    cosines = np.sort(tree.vectors.astype(np.float32) @ vector)[::-1]
    assert max(passage.score for passage in paper) == pytest.approx(cosines[0], abs=1e-3)


@pytest.mark.anyio
async def test_a_traversal_keeps_so_many_nodes_of_so_many_layers(embedder: OnnxEmbedder) -> None:
    tree = await tree_of([chronicle(), chronicle("b", 120)], embedder)
    layers = {}
    for walk in (Traversal(1), Traversal(3), Traversal(3, 1)):
        given = {"mode": "traversal", "max_tokens": 9_000, "walk": walk, "repeats": True}
        found = await ask(tree, "the well", embedder, **given)
        layers[walk] = [one.node.layer for one in found]
    top = len(tree.layers) - 1
    assert len(layers[Traversal(1)]) <= 1 + top < len(layers[Traversal(3)]) <= 3 * (1 + top)
    assert set(layers[Traversal(3, 1)]) == {top}


@pytest.mark.anyio
async def test_an_embedder_that_did_not_build_the_tree_is_not_asked(embedder: OnnxEmbedder) -> None:
    tree = await tree_of([chronicle()], None)
    answer = await ask(tree, "How deep is the well?", embedder)
    words_only = await ask(tree, "How deep is the well?", None)
    assert answer == words_only


@pytest.mark.anyio
async def test_empty_questions_are_refused() -> None:
    tree = await tree_of([chronicle("a", 8)], None)
    with pytest.raises(UsageError):
        await ask(tree, "   ", None)
    with pytest.raises(UsageError):
        await guided(tree, [], "   ", None)


@pytest.mark.anyio
async def test_a_question_of_unknown_words_still_gets_passages() -> None:
    documents = [chronicle("a", 30)]
    tree = await tree_of(documents, None)
    by_nodes = await ask(tree, "zyxw qwert", None, max_tokens=300)
    by_units = await guided(tree, documents, "zyxw qwert", None, max_tokens=300)
    scores = [passage.score for passage in by_nodes] + [
        one.score.value for one in by_units.evidence
    ]
    assert by_nodes
    assert by_units.evidence
    assert np.isfinite(scores).all()


PHRASINGS = (
    (ROOT / "tests" / "support" / "overview_questions.tsv").read_text(encoding="utf-8").splitlines()
)


@pytest.mark.parametrize("half", [0, 1], ids=["words were chosen on these", "held aside"])
def test_questions_about_the_whole_are_known_in_every_language(
    half: int,
) -> None:
    rows = [line.split("\t") for line in PHRASINGS]
    asked = [
        (kind, question) for kind, question in rows if zlib.crc32(question.encode()) % 2 == half
    ]
    wrong = [question for kind, question in asked if is_broad(question) != (kind == "whole")]
    assert len(asked) >= 60
    assert len(wrong) <= 0.06 * len(asked), wrong


def test_words_of_its_title_do_not_narrow_a_question_about_the_whole() -> None:
    release = ["What’s New In Python 3.11 — Python 3.11.2 documentation"]
    assert is_broad("Give me an overview of what is new in Python 3.11.", release)
    assert is_broad("Summarise the git workflows document.", ["gitworkflows"])
    assert not is_broad("Give me an overview of asyncio in Python 3.11.", release)
    assert not is_broad("What is new in Python 3.11?", release)


def test_a_lift_raises_neighbours_but_not_over_the_best_or_page_borders() -> None:
    values = np.zeros(180, dtype=np.float32)
    values[[10, 12, 14, 80]] = 0.9, 1.0, 0.9, 0.95
    documents = [page_of([f"This is line {i}." for i in range(4)], "a")] * 3
    units = tuple(Sentence(i + 1, "x", i, i + 1, 0) for i in range(100))
    reading = Reading("none", "", 0.0, (units[:15], units[:85], units[:80]), values, "bm25")
    got = lifted(documents, reading)
    assert got.values.argmax() == 12
    assert got.values.max() == 1.0
    assert got.values[11] > got.values[81] > 0 == got.values[15]
    assert got.verdict == "unsure"


@pytest.mark.anyio
async def test_filling_passes_over_what_was_said() -> None:
    tree = await tree_of([chronicle("a", 16), chronicle("b", 16)], None)
    order = list(range(len(tree.leaves)))
    once = take(tree, order, 10_000, distinct=True)
    assert {tree.leaves[i].document for i in once} == {0}
    assert take(tree, order, 10_000, distinct=False) == order


@pytest.mark.anyio
async def test_a_summary_whose_leaves_are_shown_gives_its_room_to_another_node() -> None:
    words = random.Random(5)
    lines = [
        " ".join("".join(words.choices("abdeilmnorstu", k=6)) for _ in range(7)) + "."
        for _ in range(160)
    ]
    tree = await tree_of([page_of(lines, "a")], None)
    place = next(
        i for i, node in enumerate(tree.nodes) if node.layer == 1 and len(node.leaves) >= 4
    )
    family = [*tree.nodes[place].leaves, place]
    assert take(tree, family, 10_000, distinct=False) == family
    assert take(tree, family, 10_000, distinct=True) == family[:-1]
