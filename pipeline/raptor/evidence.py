"""From the passages of a tree to evidence that is cited and shown within a budget.

Neighbouring leaves that were chosen become one passage with one link. A generator is
slow, so summaries are written when they are shown, those of one answer within a time,
and kept by content. Not for: choosing (`query.py`)."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import anyio

from cache.store import Store
from errors import ModelError
from pipeline.document.cite import cite
from pipeline.document.page import Document, Evidence, Score, Trust, least_trust
from pipeline.evidence.assemble import Assembled, fill
from pipeline.evidence.show import Shown, show_evidence
from pipeline.messages import side_by_side
from pipeline.raptor.leaves import common_path
from pipeline.raptor.query import ChosenNode
from pipeline.raptor.summarise import EXTRACTIVE, Writer, kept_summary
from pipeline.raptor.tree import Leaf, Source, Tree
from pipeline.text.frame import inert, is_injection
from pipeline.text.tokens import count_tokens

SOURCES: Final = 8
"""Most citations kept under a summary or a theme."""


async def write_shown(
    tree: Tree,
    passages: Sequence[ChosenNode],
    writer: Writer,
    *,
    store: Store,
    seconds: float,
) -> tuple[ChosenNode, ...]:
    """Return `passages` with extracted summaries replaced by written ones, as many as
    `seconds` allow, in order.

    A written summary is no longer than the extracted one, so a budget holds. What the
    generator does not manage, or what its children do not support, stays extracted."""
    shown = list(passages)
    if not tree.built_with.summariser.startswith(EXTRACTIVE):
        return tuple(shown)

    async def write(place: int) -> None:
        passage = passages[place]
        texts = [tree.nodes[child].text for child in passage.node.children]
        summary = await kept_summary(
            writer, texts, max_tokens=passage.tokens, store=store
        )
        if summary.text:
            shown[place] = passage._replace(
                text=summary.text, tokens=count_tokens(summary.text), written=True
            )

    extracted = [
        i for i, one in enumerate(passages) if one.node.quotes and not one.written
    ]
    # A generator that is gone costs nothing but its words: what is extracted answers as well.
    with anyio.move_on_after(seconds), suppress(ModelError):
        await side_by_side([partial(write, place) for place in extracted])
    return tuple(shown)


def fit_evidence(
    tree: Tree,
    passages: Sequence[ChosenNode],
    documents: Mapping[int, Document],
    *,
    max_tokens: int,
    mark: str,
) -> Assembled:
    """Return the evidence of the best passages that fits `max_tokens` when shown, and
    its text.

    Args:
        max_tokens: Bound on the tokens of the text, kept exactly.
        mark: The answer's own mark for untrusted text.
    """

    def evidence(places: Sequence[int]) -> tuple[Evidence, ...]:
        return to_evidence(
            tree,
            _said_once(tree, [passages[place] for place in sorted(places)]),
            documents,
        )

    def shown(places: Sequence[int]) -> Shown:
        return show_evidence(evidence(places), mark, max_tokens=max_tokens)

    order = sorted(range(len(passages)), key=lambda place: -passages[place].score)
    costs = [passage.tokens for passage in passages]
    chosen = fill(order, costs, lambda places: shown(places).tokens, max_tokens)
    return Assembled(evidence(chosen), shown(chosen), len(passages) - len(chosen))


def _said_once(tree: Tree, passages: Sequence[ChosenNode]) -> list[ChosenNode]:
    """Return the passages, extracted summaries without sentences that a leaf or a
    summary before them shows.

    A summary of which nothing is left goes. What a generator wrote, and text as a
    page's table has it, stays whole."""
    said = "\n".join(one.text for one in passages if not one.node.is_summary)
    kept: list[ChosenNode] = []
    for one in passages:
        quotes = one.node.quotes if one.node.is_summary and not one.written else ()
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
    tree: Tree, passages: Sequence[ChosenNode], documents: Mapping[int, Document]
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


def _follows(tree: Tree, before: ChosenNode, passage: ChosenNode) -> bool:
    if before.node.is_summary or passage.node.is_summary:
        return False
    (one,), (other,) = before.node.leaves, passage.node.leaves
    return other == one + 1 and tree.leaves[one].document == tree.leaves[other].document


def _evidence(
    tree: Tree, run: Sequence[ChosenNode], documents: Mapping[int, Document]
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
    if len({leaf.document for leaf in leaves}) == 1:
        one = _of_page(one, tree.sources[leaves[0].document])
        document = documents.get(leaves[0].document)
        one = _of_document(one, document, leaves) if document else one
    said = "\n".join((one.title if one.url else "", *headings, text))
    return replace(one, speaks=is_injection(said))


def _of_page(one: Evidence, source: Source) -> Evidence:
    """Return evidence with the address and title of the page that has all of it."""
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
        behind = bisect_left(blocks, leaf.end, key=lambda block: block.start)
        trusts += [block.trust for block in blocks[first:behind]]
    return least_trust(trusts)


def _sources(
    tree: Tree, passage: ChosenNode, documents: Mapping[int, Document]
) -> tuple[str, ...]:
    """Return the citations of a summary: of its quoted sentences or, where it was
    written, of the leaves below."""
    spans = [
        (quote.leaf, *tree.leaves[quote.leaf].sentences[quote.sentence])
        for quote in passage.node.quotes
    ]
    if passage.written or not spans:
        spans = [
            (leaf, tree.leaves[leaf].start, tree.leaves[leaf].end)
            for leaf in passage.node.leaves
        ]
    cited = []
    for leaf, start, end in spans[:SOURCES]:
        place = tree.leaves[leaf].document
        cited.append(
            cite(documents[place], start, end)
            if place in documents
            else tree.sources[place].url
        )
    return tuple(cited)
