"""The tree over documents: its types, its handle, and how it is kept in a store.

    documents → Leaf… → TreeNode (layer 0) → TreeNode (layer 1, summary) → … → roots

A tree is plain data: JSON and arrays, never pickle. Node `i` has row `i` of `Tree.vectors`; leaves come first, so leaf
`i` is node `i`. Not for: building (`build.py`), asking (`query.py`), drawing (`outline.py`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from cache.store import JsonValue, Store
from errors import UsageError
from pipeline.documents import Document
from pipeline.raptor.lexical import LexicalIndex

Chunking = Literal["sentences", "idms"]
Clustering = Literal["kmeans", "gmm", "umap", "runs"]
Half = NDArray[np.float16]

SCHEME: Final = "winnow://tree/"
FORMAT: Final = 3
"""Raised when leaves, extracted summaries, ids or the stored form change: no old tree is then taken for a new one."""
MAX_LEAF_TOKENS: Final = 2000
UNUSED_SECONDS: Final = 30 * 86_400.0
"""A tree that nobody asked for this long leaves the store."""
RENEWED_SECONDS: Final = 86_400.0
"""A tree in use is written anew at most this often, which sets its time of leaving on."""


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """How a tree is built; part of its handle."""

    chunking: Chunking = "sentences"
    """`sentences` packs whole sentences to `leaf_tokens`; `idms` cuts where the subject changes."""
    leaf_tokens: int = 100
    """Length of a leaf as `count_tokens` counts (RAPTOR §3: 100)."""
    clustering: Clustering = "kmeans"
    """Soft spherical k-means; the paper's Gaussian mixture with BIC on components (`gmm`) or on UMAP; neighbours."""
    pooled: bool = False
    """Cluster the leaves of all documents together; else a tree a document, and themes over their roots."""
    summary_tokens: int = 130
    """Most tokens of a summary (RAPTOR App. C: mean 131)."""
    window_tokens: int = 3500
    """Most tokens of a cluster's texts; a larger cluster is clustered again (RAPTOR §3)."""
    seed: int = 224

    def __post_init__(self) -> None:
        """Refuse lengths that cannot work.

        Raises:
            UsageError: A length is out of range.
        """
        if not 20 <= self.leaf_tokens <= MAX_LEAF_TOKENS:
            raise UsageError(f"leaf_tokens is {self.leaf_tokens}.", hint=f"Choose 20 to {MAX_LEAF_TOKENS}.")
        if not 20 <= self.summary_tokens <= 1000:
            raise UsageError(f"summary_tokens is {self.summary_tokens}.", hint="Choose 20 to 1000.")
        if self.window_tokens < 2 * self.summary_tokens:
            raise UsageError(
                f"window_tokens is {self.window_tokens}.", hint="It must hold at least two summaries; 3500 is usual."
            )


@dataclass(frozen=True, slots=True)
class Source:
    """One document below the tree."""

    url: str
    title: str
    content_hash: str
    published: str = ""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A stretch of a document: whole sentences, verbatim, with its place."""

    text: str
    """`Document.text[start:end]`."""
    document: int
    """Index into `Tree.sources`."""
    url: str
    title: str
    heading_path: tuple[str, ...]
    block_path: str
    """Path of the block that the leaf begins in."""
    start: int
    end: int
    tokens: int
    """`count_tokens` of what is shown."""
    sentences: tuple[tuple[int, int], ...]
    """Spans of its sentences in `Document.text`, in order."""
    shown: str = ""
    """What is read, scored and returned where that is not `text`: table rows as `header: value` pairs, no invisible
    characters."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that a summary took over verbatim."""

    leaf: int
    """Index of the leaf it stands in."""
    start: int
    """Span in that leaf's document."""
    end: int


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A leaf (layer 0) or a summary (layer 1 and up)."""

    id: str
    """Hash of the leaf's place and text, or of the children's ids: the same content has the same id everywhere."""
    layer: int
    text: str
    children: tuple[int, ...]
    """Indices of the nodes below, empty for a leaf; a node may be the child of several."""
    leaves: tuple[int, ...]
    """Indices of all leaves below, in reading order; a leaf lists itself."""
    tokens: int
    """`count_tokens(text)`."""
    is_summary: bool
    quotes: tuple[Quote, ...] = ()
    """The sentences of an extractive summary, in order; empty for leaves and written summaries."""
    unborne: tuple[str, ...] = ()
    """Numbers and names of a written summary that no child has; the sentences that held them were dropped."""


@dataclass(frozen=True, slots=True)
class BuiltWith:
    """What made a tree."""

    embedder: str
    """Name of the embedder, or `lexical` where there was none that reads the texts."""
    summariser: str
    options: TreeOptions


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A tree (or several, where nothing joined them) over the leaves of some documents."""

    id: str
    """The handle, `winnow://tree/<24 hex digits>`."""
    nodes: tuple[TreeNode, ...]
    leaves: tuple[Leaf, ...]
    layers: tuple[tuple[int, ...], ...]
    """Node indices by layer, leaves first."""
    roots: tuple[int, ...]
    """Nodes without a parent, in reading order."""
    vectors: Half
    """Unit vectors [nodes, dimension]."""
    runs: tuple[tuple[int, int], ...]
    """Runs of neighbouring leaves, as [start, end) ranges that cover all leaves: the sections that guide a query."""
    lexical: LexicalIndex
    """Terms of the leaves."""
    sources: tuple[Source, ...]
    built_with: BuiltWith


def tree_handle(documents: Sequence[Document], built_with: BuiltWith, *, grown_from: str = "") -> str:
    """Return the handle of the tree that these documents, options and models give; no tree need exist.

    A tree that was grown from another has a handle of its own: its clusters are not those of a tree built at once.
    """
    digest = hashlib.blake2b(digest_size=12)
    parts = [str(FORMAT), repr(built_with.options), built_with.embedder, built_with.summariser, grown_from]
    for document in documents:
        page = document.page
        parts.extend((page.final_url or page.url, page.title, page.content_hash, document.text))
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return SCHEME + digest.hexdigest()


def leaf_id(leaf: Leaf) -> str:
    """Return the id of a leaf: 24 hex digits over its URL, place and text."""
    return _hashed((leaf.url, str(leaf.start), str(leaf.end), leaf.text))


def parent_id(children: Sequence[str]) -> str:
    """Return the id of an inner node: 24 hex digits over its children's ids."""
    return _hashed(("node", *children))


def _hashed(parts: Sequence[str]) -> str:
    data = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def keep_tree(store: Store, tree: Tree) -> None:
    """Write `tree` to `store` under its handle; the JSON part comes last, so a torn write is no tree."""
    lexical = tree.lexical
    arrays = {f"{tree.id}:vectors": tree.vectors.astype("<f2").tobytes(), f"{tree.id}:terms": lexical.to_bytes()}
    head: dict[str, JsonValue] = {
        "format": FORMAT,
        "dimension": int(tree.vectors.shape[1]),
        "sources": [[s.url, s.title, s.content_hash, s.published] for s in tree.sources],
        "leaves": [_pack_leaf(leaf) for leaf in tree.leaves],
        "nodes": [_pack_node(node) for node in tree.nodes],
        "runs": [list(run) for run in tree.runs],
        "roots": list(tree.roots),
        "terms": list(lexical.vocabulary),
        "languages": list(lexical.languages),
        "embedder": tree.built_with.embedder,
        "summariser": tree.built_with.summariser,
        "options": cast("dict[str, JsonValue]", asdict(tree.built_with.options)),
    }
    _write(store, tree.id, head, arrays)


def _write(store: Store, handle: str, head: dict[str, JsonValue], arrays: dict[str, bytes]) -> None:
    store.set_many_bytes(arrays, expire=UNUSED_SECONDS)
    store.set_json(handle, head, expire=UNUSED_SECONDS)
    store.set_json(f"{handle}:used", True, expire=RENEWED_SECONDS)


def _pack_leaf(leaf: Leaf) -> list[JsonValue]:
    spans: list[JsonValue] = [offset for span in leaf.sentences for offset in span]
    return [
        leaf.document,
        leaf.start,
        leaf.end,
        leaf.tokens,
        list(leaf.heading_path),
        leaf.block_path,
        leaf.text,
        spans,
        leaf.shown,
    ]


def _pack_node(node: TreeNode) -> list[JsonValue]:
    quotes: list[JsonValue] = [n for quote in node.quotes for n in (quote.leaf, quote.start, quote.end)]
    if not node.is_summary:
        return [node.id]
    return [
        node.id,
        node.layer,
        node.text,
        list(node.children),
        list(node.leaves),
        node.tokens,
        quotes,
        list(node.unborne),
    ]


def find_tree(store: Store, handle: str) -> Tree | None:
    """Return the tree kept under `handle`, or None where there is none, an old form, or a part is missing."""
    head = store.get_json(handle)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        return None
    arrays = store.get_many_bytes([f"{handle}:vectors", f"{handle}:terms"])
    if len(arrays) != 2:
        return None
    if store.get_json(f"{handle}:used") is None:
        _write(store, handle, head, arrays)
    return _Unpacker(head).tree(handle, vectors=arrays[f"{handle}:vectors"], terms=arrays[f"{handle}:terms"])


class _Unpacker:
    """Reads the JSON part of a stored tree; a wrong shape is a ValueError of the code that wrote it."""

    def __init__(self, head: dict[str, JsonValue]) -> None:
        self._head = head

    def tree(self, handle: str, *, vectors: bytes, terms: bytes) -> Tree:
        sources = tuple(Source(*map(str, _list(row))) for row in self._rows("sources"))
        leaves = tuple(_leaf(_list(row), sources) for row in self._rows("leaves"))
        nodes = tuple(_node(i, _list(row), leaves) for i, row in enumerate(self._rows("nodes")))
        lexical = LexicalIndex.from_bytes(
            terms,
            vocabulary=[str(term) for term in self._rows("terms")],
            languages=tuple(str(code) for code in self._rows("languages")),
        )
        rows = np.frombuffer(vectors, dtype="<f2").astype(np.float16)
        return Tree(
            id=handle,
            nodes=nodes,
            leaves=leaves,
            layers=layers_of(nodes),
            roots=tuple(_ints(self._rows("roots"))),
            vectors=rows.reshape(len(nodes), int(cast("int", self._head["dimension"]))),
            runs=tuple(_pairs(n for row in self._rows("runs") for n in _ints(_list(row)))),
            lexical=lexical,
            sources=sources,
            built_with=self._built_with(),
        )

    def _built_with(self) -> BuiltWith:
        options = cast("dict[str, object]", self._head["options"])
        return BuiltWith(
            embedder=str(self._head["embedder"]),
            summariser=str(self._head["summariser"]),
            options=TreeOptions(**options),  # type: ignore[arg-type]  # written from these very fields
        )

    def _rows(self, name: str) -> list[JsonValue]:
        return _list(self._head[name])


def _list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise TypeError(f"a stored tree holds {type(value).__name__} where a list belongs")
    return value


def _ints(values: Sequence[JsonValue]) -> list[int]:
    return [int(cast("int", value)) for value in values]


def _pairs(numbers: Iterator[int]) -> Iterator[tuple[int, int]]:
    return zip(numbers, numbers, strict=True)


def _leaf(row: list[JsonValue], sources: Sequence[Source]) -> Leaf:
    document, start, end, tokens = _ints(row[:4])
    return Leaf(
        text=str(row[6]),
        document=document,
        url=sources[document].url,
        title=sources[document].title,
        heading_path=tuple(map(str, _list(row[4]))),
        block_path=str(row[5]),
        start=start,
        end=end,
        tokens=tokens,
        sentences=tuple(_pairs(iter(_ints(_list(row[7]))))),
        shown=str(row[8]),
    )


def _node(place: int, row: list[JsonValue], leaves: Sequence[Leaf]) -> TreeNode:
    if place < len(leaves):
        return leaf_node(place, leaves[place], node_id=str(row[0]))
    numbers = iter(_ints(_list(row[6])))
    return TreeNode(
        id=str(row[0]),
        layer=int(cast("int", row[1])),
        text=str(row[2]),
        children=tuple(_ints(_list(row[3]))),
        leaves=tuple(_ints(_list(row[4]))),
        tokens=int(cast("int", row[5])),
        is_summary=True,
        quotes=tuple(Quote(*three) for three in zip(numbers, numbers, numbers, strict=True)),
        unborne=tuple(map(str, _list(row[7]))),
    )


def leaf_node(place: int, leaf: Leaf, *, node_id: str = "") -> TreeNode:
    """Return the node of leaf number `place`; its id is made where none is given."""
    return TreeNode(
        id=node_id or leaf_id(leaf),
        layer=0,
        text=leaf.shown or leaf.text,
        children=(),
        leaves=(place,),
        tokens=leaf.tokens,
        is_summary=False,
    )


def layers_of(nodes: Sequence[TreeNode]) -> tuple[tuple[int, ...], ...]:
    """Return the node indices by layer, lowest first."""
    if not nodes:
        return ()
    layers: list[list[int]] = [[] for _ in range(1 + max(node.layer for node in nodes))]
    for place, node in enumerate(nodes):
        layers[node.layer].append(place)
    return tuple(tuple(layer) for layer in layers)
