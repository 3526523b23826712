"""From the passages of a tree to evidence that is cited and shown within a budget.

Neighbouring leaves that were chosen become one passage with one link. Not for: choosing
(`query.py`)."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from papers.raptor.query import ChosenNode
from papers.raptor.tree import NodeTree
from pipeline.document.cite import cite
from pipeline.evidence.assemble import Assembled, fill
from pipeline.evidence.show import Shown, show_evidence
from pipeline.raptor.leaves import common_path
from pipeline.raptor.tree import Leaf, Source
from pipeline.text.frame import inert, is_injection
from pipeline.text.tokens import count_tokens
from readers.page import Document, Evidence, Score, Trust, least_trust

SUMMARY_CITATIONS: Final = 8
"""Most citations kept under a summary."""


def fit_evidence(
    tree: NodeTree,
    passages: Sequence[ChosenNode],
    documents: Mapping[int, Document],
    *,
    max_tokens: int,
    delimiter: str,
) -> Assembled:
    """Return the evidence of the best passages that fits `max_tokens` when shown, and
    its text; empty where none fits.

    Args:
        max_tokens: Bound on the tokens of the text, kept exactly.
        delimiter: the answer's own delimiter around untrusted text.
    """

    def evidence(places: Sequence[int]) -> tuple[Evidence, ...]:
        return to_evidence(
            tree,
            _said_once(tree, [passages[index] for index in sorted(places)]),
            documents,
        )

    def shown(places: Sequence[int]) -> Shown:
        return show_evidence(evidence(places), delimiter, max_tokens=max_tokens)

    order = sorted(range(len(passages)), key=lambda index: -passages[index].score)
    chosen = fill(order, lambda places: shown(places).tokens, max_tokens)
    return Assembled(evidence(chosen), shown(chosen), len(passages) - len(chosen))


def _said_once(tree: NodeTree, passages: Sequence[ChosenNode]) -> list[ChosenNode]:
    """Return the passages, extracted summaries without sentences that a leaf or a
    summary before them shows.

    A summary of which nothing is left goes. What a generator wrote, and text as a
    page's table has it, stays whole."""
    said = "\n".join(one.text for one in passages if not one.node.is_summary)
    kept: list[ChosenNode] = []
    for one in passages:
        quotes = one.node.quotes
        text, left = one.text, list(quotes)
        for quote in quotes:
            sentence = " ".join(
                tree.leaves[quote.leaf].sentence(quote.sentence).split()
            )
            if sentence in said and sentence in text:
                text = " ".join(text.replace(sentence, "", 1).split())
                left.remove(quote)
        if quotes:
            said += f"\n{text}"
        node = one.node._replace(quotes=tuple(left))
        if text:
            kept.append(
                one._replace(node=node, text=text, tokens=count_tokens(text))
                if quotes
                else one
            )
    return kept


def to_evidence(
    tree: NodeTree, passages: Sequence[ChosenNode], documents: Mapping[int, Document]
) -> tuple[Evidence, ...]:
    """Return the passages as evidence in their order, leaves that follow each other on
    a page as one.

    Args:
        documents: Pages by index into `tree.sources`; a passage whose page is not at
    hand is cited by its address."""
    runs: list[list[ChosenNode]] = []
    for passage in passages:
        if runs and _follows(tree, runs[-1][-1], passage):
            runs[-1].append(passage)
        else:
            runs.append([passage])
    return tuple(_evidence(tree, run, documents) for run in runs)


def _follows(tree: NodeTree, before: ChosenNode, passage: ChosenNode) -> bool:
    if before.node.is_summary or passage.node.is_summary:
        return False
    (one,), (other,) = before.node.leaves, passage.node.leaves
    return other == one + 1 and tree.leaves[one].document == tree.leaves[other].document


def _located(
    one: Evidence,
    tree: NodeTree,
    leaves: Sequence[Leaf],
    documents: Mapping[int, Document],
) -> Evidence:
    """Return evidence with the page that all its leaves are from, and its place there;
    of several pages as it is."""
    first = leaves[0].document
    if any(leaf.document != first for leaf in leaves):
        return one
    one = _of_page(one, tree.sources[first])
    return _of_document(one, documents[first], leaves) if first in documents else one


def _evidence(
    tree: NodeTree, run: Sequence[ChosenNode], documents: Mapping[int, Document]
) -> Evidence:
    """One summary, or leaves that follow each other."""
    leaves = [tree.leaves[leaf] for passage in run for leaf in passage.node.leaves]
    is_summary = run[0].node.is_summary
    headings = () if is_summary else common_path([leaf.heading_path for leaf in leaves])
    text = run[0].text
    for before, leaf, passage in zip(leaves, leaves[1:], run[1:], strict=False):
        text += (" " if leaf.block_path == before.block_path else "\n") + passage.text
    one = Evidence(
        text=inert(text),
        url="",
        title="Several pages",
        block_path=leaves[0].block_path,
        sentences=(),
        score=Score(max(passage.score for passage in run), "guided"),
        citation="",
        # A heading that the text begins with is not said twice.
        heading_path=tuple(
            heading for heading in headings if not text.startswith(heading)
        ),
        is_summary=is_summary,
        sources=_sources(tree, run[0], documents) if is_summary else (),
    )
    one = _located(one, tree, leaves, documents)
    said = "\n".join((one.title if one.url else "", *headings, text))
    return replace(one, injection=is_injection(said))


def _of_page(one: Evidence, source: Source) -> Evidence:
    """Return a copy of `one` with address, title and date of `source`, the page that
    has all of it. The caller makes sure of that; nothing is checked here."""
    return replace(
        one,
        url=source.url,
        title=source.title,
        citation=source.url,
        published=source.published,
    )


def _of_document(one: Evidence, document: Document, leaves: Sequence[Leaf]) -> Evidence:
    """Return evidence with what its page, which is at hand, says of it."""
    cited = (
        one.citation
        if one.is_summary
        else cite(document, leaves[0].start, leaves[-1].end)
    )
    return replace(
        one,
        citation=cited,
        author=document.page.author,
        trust=_trust(document, leaves),
        hidden=document.page.hidden,
    )


def _trust(document: Document, leaves: Sequence[Leaf]) -> Trust:
    blocks = document.blocks
    trusts = [document.page.trust]
    for leaf in leaves:
        first = bisect_left(blocks, leaf.start, key=lambda block: block.start)
        last = bisect_left(blocks, leaf.end, key=lambda block: block.start)
        trusts += [block.trust for block in blocks[first:last]]
    return least_trust(trusts)


def _sources(
    tree: NodeTree, passage: ChosenNode, documents: Mapping[int, Document]
) -> tuple[str, ...]:
    """Return the citations of a summary: of its quoted sentences or, where it was
    written, of the leaves below. At most `SUMMARY_CITATIONS` are cited."""
    spans = [
        (quote.leaf, *tree.leaves[quote.leaf].sentences[quote.sentence])
        for quote in passage.node.quotes
    ]
    if not spans:
        spans = [
            (leaf, tree.leaves[leaf].start, tree.leaves[leaf].end)
            for leaf in passage.node.leaves
        ]
    cited = []
    for leaf, start, end in spans[:SUMMARY_CITATIONS]:
        index = tree.leaves[leaf].document
        cited.append(
            cite(documents[index], start, end)
            if index in documents
            else tree.sources[index].url
        )
    return tuple(cited)
