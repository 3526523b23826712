"""From the passages of a tree to evidence that can be cited and shown within a budget.

Not for: choosing passages (`pipeline/raptor/query.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.documents import Document, Evidence, Score
from pipeline.evidence.cite import cite
from pipeline.evidence.show import Shown, headings_to_show, show_evidence
from pipeline.raptor.query import Passage
from pipeline.raptor.tree import Tree

SOURCES: Final = 8
"""Most citations kept under a summary."""
STRAY_TOKENS: Final = 6
"""Leaves shorter than this are labels and buttons that stand alone on a page; they tell nothing."""


def to_evidence(tree: Tree, passages: Sequence[Passage], documents: Mapping[int, Document]) -> tuple[Evidence, ...]:
    """Return the passages as evidence, passages of one document together, in the order of their best.

    Args:
        tree: The tree that was asked.
        passages: As `query_tree` returns them.
        documents: Pages by index into `tree.sources`; a passage whose page is not at hand is cited by its address.
    """
    worth = [passage for passage in passages if passage.is_summary or passage.tokens >= STRAY_TOKENS]
    return tuple(_evidence(tree, passage, documents) for passage in worth)


def fit_evidence(evidence: Sequence[Evidence], *, max_tokens: int, mark: str) -> tuple[tuple[Evidence, ...], Shown]:
    """Return the evidence that fits `max_tokens` when shown, weakest dropped first, and its text."""
    kept = list(evidence)
    shown = show_evidence(kept, mark, max_tokens=max_tokens)
    while kept and shown.tokens > max_tokens:
        kept.remove(min(kept, key=lambda one: one.score.value))
        shown = show_evidence(kept, mark, max_tokens=max_tokens)
    return tuple(kept), shown


def _evidence(tree: Tree, passage: Passage, documents: Mapping[int, Document]) -> Evidence:
    document = documents.get(passage.document)
    leaf = tree.leaves[passage.leaves[0]]
    source = tree.sources[passage.document] if passage.document >= 0 else None
    cited = cite(document, passage.start, passage.end) if document and not passage.is_summary else passage.url
    return Evidence(
        text=passage.text,
        url=passage.url,
        title=passage.title or "Several pages",
        block_path=leaf.block_path,
        sentences=(),
        score=Score(passage.score, "guided"),
        citation=cited,
        heading_path=headings_to_show(passage.title, passage.heading_path),
        published=source.published if source else "",
        author=document.page.author if document else "",
        is_summary=passage.is_summary,
        sources=_sources(tree, passage, documents) if passage.is_summary else (),
    )


def _sources(tree: Tree, passage: Passage, documents: Mapping[int, Document]) -> tuple[str, ...]:
    """Return the citations of what a summary stands on: its quoted sentences, or the leaves below."""
    node = next(node for node in tree.nodes if node.id == passage.node)
    quotes = () if passage.written else node.quotes
    spans = [(quote.leaf, quote.start, quote.end) for quote in quotes] or [
        (leaf, tree.leaves[leaf].start, tree.leaves[leaf].end) for leaf in passage.leaves
    ]
    cited = []
    for leaf, start, end in spans[:SOURCES]:
        document = documents.get(tree.leaves[leaf].document)
        cited.append(cite(document, start, end) if document else tree.leaves[leaf].url)
    return tuple(cited)
