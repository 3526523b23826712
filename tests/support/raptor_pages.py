"""Pages, an embedder and a generator that several tests about trees share, and what holds for every
tree."""

import html
from collections.abc import Mapping, Sequence

from errors import ModelError
from models.protocols import Embedder, Said, TextKind, Vectors
from papers.raptor.tree import NodeTree, TreeNode
from pipeline.evidence.assemble import Assembled, assemble
from pipeline.question.question import Question
from pipeline.raptor.query import read_leaves
from pipeline.raptor.tree import Tree
from pipeline.reading.relevance import Blend
from pipeline.text.tokens import count_tokens
from readers.html.document import read_document
from readers.page import Document, Page

SUBJECTS = {
    "ferry": "The ferry leaves the harbour of Pell at dawn and carries cars, bicycles and mail to "
    "the islands",
    "cheese": "The cheese ripens for weeks in a cool cellar, where its rind is washed with brine "
    "and turned by hand",
    "sensor": "The level sensor reads the height of the water by radar and sends a value to the "
    "gauge every minute",
    "bird": "The grebe builds a floating nest among the reeds and carries its chicks on its back "
    "across the lake",
}


class Counting:
    """An embedder that counts the texts which reach the wrapped one it."""

    def __init__(self, behind: Embedder) -> None:
        self._behind = behind
        self.texts: list[str] = []

    @property
    def name(self) -> str:
        """Name of the wrapped embedder."""
        return self._behind.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._behind.dimension

    @property
    def background(self) -> Mapping[str, float] | None:
        """What the wrapped embedder says of its cosines."""
        return getattr(self._behind, "background", None)

    def reads(self, text: str) -> bool:
        """Whether the wrapped embedder reads `text`."""
        return self._behind.reads(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Note the texts and pass them on."""
        self.texts.extend(texts)
        return await self._behind.embed(texts, kind=kind)


class Author:
    """A generator that answers with a fixed text, or fails, and remembers what it was asked."""

    name = "author"
    context_tokens = 4096

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self.asked: list[str] = []

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Note what was asked and answer."""
        self.asked.append(messages[-1].content)
        if not self._answer:
            raise ModelError("The author has no words.")
        return self._answer


def page_of(body: str, name: str = "page", language: str = "en") -> Document:
    page = Page(
        url=f"https://example.org/{name}",
        final_url=f"https://example.org/{name}",
        title=name.title(),
        html=f"<html lang='{language}'><body><main>{body}</main></body></html>",
        media_type="text/html",
        language=language,
        content_hash=f"{name}-{len(body)}",
    )
    return read_document(page)


def prose(sentences: Sequence[str], per_paragraph: int = 4) -> str:
    groups = [sentences[i : i + per_paragraph] for i in range(0, len(sentences), per_paragraph)]
    return "".join(f"<p>{html.escape(' '.join(group))}</p>" for group in groups)


def chapters(count: int, name: str = "page") -> Document:
    """A page of `count` sentences a subject, each with its own number."""
    parts = [
        f"<h2>About the {subject}</h2>"
        + prose([f"{sentence}, as record {subject} {i} says." for i in range(count)])
        for subject, sentence in SUBJECTS.items()
    ]
    return page_of("".join(parts), name)


def assert_sound(tree: NodeTree, documents: Sequence[Document]) -> None:
    """What holds for every tree: places, provenance, layers and ids."""
    for i, leaf in enumerate(tree.leaves):
        document = documents[leaf.document]
        assert leaf.text == document.text[leaf.start : leaf.end]
        assert tree.sources[leaf.document].url == document.page.final_url
        assert leaf.block_path in {block.path for block in document.blocks}
        assert leaf.sentences[0][0] == leaf.start
        assert leaf.sentences[-1][1] == leaf.end
        assert tree.nodes[i].leaves == (i,)
    for i, node in enumerate(tree.nodes):
        assert node.tokens == count_tokens(node.text)
        assert node.is_summary == (node.layer > 0) == bool(node.children)
        assert all(tree.nodes[child].layer < node.layer and child < i for child in node.children)
        assert (
            set(node.leaves) == {leaf for c in node.children for leaf in tree.nodes[c].leaves}
            or not node.children
        )
        for quote in node.quotes:
            assert quote.leaf in node.leaves
            assert 0 <= quote.sentence < len(tree.leaves[quote.leaf].sentences)
    assert len({node.id for node in tree.nodes}) == len(tree.nodes)
    children = {child for node in tree.nodes for child in node.children}
    assert set(tree.roots) == set(range(len(tree.nodes))) - children
    assert {leaf for root in tree.roots for leaf in tree.nodes[root].leaves} == set(
        range(len(tree.leaves))
    )
    assert tree.vectors.shape[0] == len(tree.nodes)


async def guided(
    tree: Tree,
    documents: Sequence[Document],
    question: str,
    embedder: Embedder | None,
    *,
    max_tokens: int = 2000,
) -> Assembled:
    """The evidence of a guided question; of a page that `documents` lacks the leaves use."""

    async def pages(places: Sequence[int]) -> Mapping[int, Document]:
        return {place: documents[place] for place in places if place < len(documents)}

    read, reading = await read_leaves(
        tree,
        Question(question),
        pages,
        reader=Blend(embedder),
        embedder=embedder,
        max_tokens=max_tokens,
    )
    return assemble(read, reading, max_tokens=max_tokens, delimiter="m")


def quoted(tree: NodeTree, documents: Sequence[Document], node: TreeNode) -> str:
    """What is based on the pages where an extracted summary says that its sentences are."""
    said = []
    for quote in node.quotes:
        leaf = tree.leaves[quote.leaf]
        start, end = leaf.sentences[quote.sentence]
        said.append(" ".join(documents[leaf.document].text[start:end].split()))
    return " ".join(said)
