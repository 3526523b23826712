"""Leaves of documents with a vector each: their types, their handle, and how they are
kept in a store.

They are plain data: JSON and arrays, never pickle. Leaf `i` has row `i` of
`Tree.vectors`. Not for: building (`build.py`), asking (`query.py`, `overview.py`), or
clusters above the leaves (`papers/raptor`)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from cache.store import JsonValue, Store
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, Floats
from readers.page import Document

Chunking = Literal["sentences", "idms"]
Half = NDArray[np.float16]

TREE_SCHEME: Final = "winnow://tree/"
TREE_VERSION: Final = 8
"""Raised when leaves, ids or the stored form change: no old tree is then taken for a new
one."""


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """How a tree is built; part of its handle."""

    chunking: Chunking = "sentences"
    """`sentences` packs whole sentences to `leaf_tokens`; `idms` cuts where the subject
    changes."""
    leaf_tokens: int = 100
    """Length of a leaf as `count_tokens` counts (RAPTOR §3: 100)."""

    @property
    def segment_tokens(self) -> tuple[int, int]:
        """Least and most tokens of an `idms` leaf. On 36 texts of ten paragraphs Pk is
        .084 with at most twice a leaf's length, .031 with three times, .025 with four
        times, as without a bound; the lower one costs nothing."""
        return self.leaf_tokens // 2, 4 * self.leaf_tokens


class Source(NamedTuple):
    """One document below the tree."""

    url: str
    title: str
    content_hash: str
    published: str
    unread: str = ""
    """What of it was not read; see `Page.unread`."""
    rest: str = ""


class Leaf(NamedTuple):
    """A stretch of a document: whole sentences, verbatim, with its place."""

    id: str
    """24 hex digits over URL and text, and earlier occurrences: insertions elsewhere do
    not change it."""
    text: str
    """`Document.text[start:end]`."""
    document: int
    """Index into `Tree.sources`."""
    heading_path: tuple[str, ...]
    """The headings above all of it, outermost first, without those that repeat the
    page's title."""
    block_path: str
    """Path of the block that the leaf begins in."""
    start: int
    end: int
    tokens: int
    """`count_tokens` of what is shown."""
    sentences: tuple[tuple[int, int], ...]
    """Spans of its sentences in `Document.text`, in order."""
    shown: str
    """What is read, scored and returned: table rows as `header: value` pairs, no
    invisible characters."""
    form: str = ""
    """What a generator wrote for the index beside it (IDMS)."""

    def sentence(self, number: int) -> str:
        """Return one of its sentences, verbatim."""
        start, stop = self.sentences[number]
        return self.text[start - self.start : stop - self.start]

    @property
    def heading_line(self) -> str:
        """The innermost two headings over it; the page's title before every leaf would
        cost 3 points of recall."""
        return " > ".join(self.heading_path[-2:])

    @property
    def embedded(self) -> str:
        """What an embedder reads: the heading line, then the text, or the form written
        for it."""
        return f"{self.heading_line}\n{self.form or self.shown}".strip()


class SummaryQuote(NamedTuple):
    """A sentence of a leaf, verbatim."""

    leaf: int
    """Index of its leaf."""
    sentence: int
    """Index into `Leaf.sentences`."""


@dataclass(frozen=True, slots=True)
class BuiltWith:
    """What made a tree."""

    embedder: str
    """Its name, or `lexical` for word vectors."""
    cut_by: str
    """What cut `idms` leaves; empty for others."""
    options: TreeOptions


@dataclass(frozen=True, eq=False)
class Tree:
    """The leaves of some documents."""

    id: str
    """The handle, `winnow://tree/<24 hex digits>`."""
    leaves: tuple[Leaf, ...]
    vectors: Half
    """Unit vectors [leaves, dimension]; further rows are of nodes above them."""
    sources: tuple[Source, ...]
    built_with: BuiltWith
    _counted: dict[str, BM25] = field(default_factory=dict, init=False, repr=False)
    """By language of questions: the words of the leaves, counted at the first
    question."""

    def word_scores(self, question: Question) -> Floats:
        """Return the BM25 score of every leaf [leaves]; 0 where no word of `question`
        occurs."""
        language = question.language
        if language not in self._counted:
            texts = [
                f"{leaf.heading_line}\n{leaf.shown}\n{leaf.form}"
                for leaf in self.leaves
            ]
            self._counted[language] = BM25(texts, language=language)
        return self._counted[language].scores(question)

    @cached_property
    def leaves_of(self) -> tuple[tuple[Leaf, ...], ...]:
        """The leaves of each source, in order."""
        leaves: list[list[Leaf]] = [[] for _ in self.sources]
        for leaf in self.leaves:
            leaves[leaf.document].append(leaf)
        return tuple(map(tuple, leaves))


def tree_handle(documents: Sequence[Document], built_with: BuiltWith) -> str:
    """Return the handle of the tree that these documents, options and models give; no
    tree need exist."""
    texts = [
        str(TREE_VERSION),
        repr(built_with.options),
        built_with.embedder,
        built_with.cut_by,
    ]
    for document in documents:
        page = document.page
        texts.extend(
            (page.final_url or page.url, page.title, page.content_hash, document.text)
        )
    return TREE_SCHEME + hashed(texts)


def hashed(texts: Sequence[str]) -> str:
    """Return 24 hex digits over texts; other texts, or the same ones parted otherwise,
    give others."""
    digest = hashlib.blake2b(digest_size=12)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class _Stored(NamedTuple):
    """The JSON part of a tree; vectors are kept beside it."""

    dimension: int
    sources: tuple[Source, ...]
    leaves: tuple[Leaf, ...]
    built_with: BuiltWith


_STORED: Final = TypeAdapter(_Stored)


def keep_tree(store: Store, tree: Tree) -> None:
    """Write `tree` to `store` under its handle; the JSON part comes last, so an
    incomplete write is not a tree. An older one of that handle is replaced."""
    stored = _Stored(
        dimension=int(tree.vectors.shape[1]),
        sources=tree.sources,
        leaves=tree.leaves,
        built_with=tree.built_with,
    )
    head = {
        "format": TREE_VERSION,
        "tree": cast(JsonValue, _STORED.dump_python(stored, mode="json")),
    }
    _write(store, tree.id, cast(JsonValue, head), tree.vectors.astype("<f2").tobytes())


def _write(store: Store, handle: str, head: JsonValue, vectors: bytes) -> None:
    store.set_bytes(f"{handle}:vectors", vectors, expire=CACHED_ANSWER_SECONDS)
    store.set_json(handle, head, expire=CACHED_ANSWER_SECONDS)
    # A used tree is written again once a day, so that it does not expire.
    store.set_json(f"{handle}:used", True, expire=CACHED_ANSWER_SECONDS / 30)


def find_tree(store: Store, handle: str) -> Tree | None:
    """Return the tree kept under `handle`, or None where there is none, an old form, or
    a part is missing. A tree that is read is kept for longer."""
    head = store.get_json(handle)
    if not isinstance(head, dict) or head.get("format") != TREE_VERSION:
        return None
    vectors = store.get_bytes(f"{handle}:vectors")
    if vectors is None:
        return None
    if store.get_json(f"{handle}:used") is None:
        _write(store, handle, head, vectors)
    stored = _STORED.validate_python(head["tree"])
    rows = np.frombuffer(vectors, dtype="<f2").astype(np.float16)
    return Tree(
        id=handle,
        leaves=stored.leaves,
        vectors=rows.reshape(len(stored.leaves), stored.dimension),
        sources=stored.sources,
        built_with=stored.built_with,
    )
