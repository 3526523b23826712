"""Overview of a tree's sources without a generator: the outline of its documents.

Everything comes from the kept leaves: headings, quoted sentences and vectors. Not for:
which questions ask for one (`pipeline/question/broad.py`)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import numpy as np

from cancellation import check_cancelled
from pipeline.document.cite import cite
from pipeline.evidence.assemble import Assembled, fill
from pipeline.evidence.show import Shown, shortened
from pipeline.raptor.leaves import common_path, leaves_as_document
from pipeline.raptor.tree import Source, SummaryQuote, Tree
from pipeline.text.frame import TITLE_TOKENS, framed, inert, one_line, source_line
from pipeline.text.tokens import Budget, count_tokens, cut_to_tokens
from readers.page import Document, Evidence, Score

SENTENCE_TOKENS: Final = range(6, 71)
"""Range of tokens of a sentence that is quoted: shorter ones are headings, longer ones
lists."""
ENDS: Final = tuple('.!?。！？…"”»)')


class OverviewPart(NamedTuple):
    """Something that an overview may say: a heading, or a quoted sentence."""

    group: int
    """The section that says it, in the order of the answer."""
    depth: int
    """Of that section, 0 for a document."""
    text: str
    rank: tuple[float, ...]
    """The smallest gets room first."""
    document: int
    """Index into `Tree.sources`."""
    start: int = -1
    """Of a quoted sentence, in its document; else below 0."""
    end: int = -1


class _Heading(NamedTuple):
    """A heading, or the title of a document."""

    document: int
    depth: int
    text: str


def overview(
    tree: Tree, documents: Mapping[int, Document], *, max_tokens: int, delimiter: str
) -> Assembled:
    """Return what `tree` is about, within `max_tokens` exactly: of each document its
    title and how it begins, then headings with the first sentence below them.

    The tree has at least one leaf.

    Args:
        documents: Pages by index into `tree.sources`, as far as they are at hand;
            leaves replace the others.
        delimiter: the answer's own delimiter around untrusted text (`pipeline/text/frame.py`).
    """
    parts = list(_parts(tree))
    with_leaves = {leaf.document for leaf in tree.leaves}

    def grouped(rows: Sequence[int]) -> dict[int, list[OverviewPart]]:
        by_group: dict[int, list[OverviewPart]] = {}
        for item in sorted(
            (parts[row] for row in rows),
            key=lambda item: (item.group, item.start, item.rank),
        ):
            by_group.setdefault(item.group, []).append(item)
        return by_group

    def text(rows: Sequence[int]) -> str:
        groups = grouped(rows)
        # A single document is cited by its address; of several the titles are in the text.
        if len(with_leaves) == 1:
            url, title_line = source_line(tree.sources[min(with_leaves)].url)
            head = f"[1] {url}" if url else ""
        else:
            named = len({item.document for items in groups.values() for item in items})
            head, title_line = f"Documents: {len(with_leaves)}", ""
            head += f"; {named} named." if named < len(with_leaves) else "."
        words = "\n".join(filter(None, (title_line, _sections_text(groups))))
        return f"{head}\n{framed(words, delimiter)}".lstrip() if groups else ""

    order = sorted(range(len(parts)), key=lambda row: parts[row].rank)
    chosen = fill(order, lambda rows: count_tokens(text(rows)), max_tokens)
    groups, written = grouped(chosen), text(chosen)
    evidence = tuple(_evidence(tree, items, documents) for items in groups.values())
    labels = tuple(items[0].text for items in groups.values())
    return Assembled(
        evidence,
        Shown(labels, written, count_tokens(written)),
        len(parts) - len(chosen),
    )


def _evidence(
    tree: Tree, items: Sequence[OverviewPart], documents: Mapping[int, Document]
) -> Evidence:
    """Return one section; its citation leads to the first words that it quotes."""
    number = items[0].document
    source = tree.sources[number]
    citation = source.url
    for item in [item for item in items if item.start >= 0][:1]:
        page = documents.get(number) or leaves_as_document(
            source, tree.leaves_of[number]
        )
        citation = cite(page, item.start, item.end)
    return Evidence(
        text="\n".join(item.text for item in items),
        url=source.url,
        title=source.title,
        block_path="",
        sentences=(),
        score=Score(1 / len(tree.sources), "guided"),
        citation=citation,
    )


def _sections(tree: Tree) -> tuple[list[_Heading], list[int]]:
    """Return the headings of all sections, each document's title first, and the section
    of each leaf."""
    headings: list[_Heading] = []
    section: list[int] = []
    opened: tuple[str, ...] = ()
    stack: list[int] = []
    for leaf in tree.leaves:
        source = tree.sources[leaf.document]
        title = source.title or ("" if len(tree.sources) == 1 else _named(source))
        path = (title, *leaf.heading_path)
        is_new = not headings or headings[-1].document != leaf.document
        stack = [] if is_new else stack[: len(common_path([path, opened]))]
        for heading in path[len(stack) :]:
            headings.append(_Heading(leaf.document, len(stack), heading))
            stack.append(len(headings) - 1)
        section.append(stack[-1])
        opened = path
    return headings, section


def _named(source: Source) -> str:
    """Return the last name of the address of a document without a title."""
    return unquote(source.url.rstrip("/").rpartition("/")[2])


def _parts(tree: Tree) -> Iterator[OverviewPart]:
    """Yield titles and headings, then quoted sentences: what a document begins with,
    the first below each heading, then of each document in turn those nearest to its
    middle."""
    headings, section = _sections(tree)
    size = Counter(section)
    for group, (document, depth, text) in enumerate(headings):
        if text:
            first = (depth, 0, -len(tree.leaves_of[document]), -size[group])
            yield OverviewPart(group, depth, _short(text), first, document)
    centrality = _centrality(tree)
    quotes_of: dict[int, list[SummaryQuote]] = {}
    for quote in _leads(tree):
        quotes_of.setdefault(tree.leaves[quote.leaf].document, []).append(quote)
    for document, quotes in quotes_of.items():
        leaves = len(tree.leaves_of[document])
        central = sorted(quotes, key=lambda quote: -centrality[quote.leaf])
        turns = {quote: turn for turn, quote in enumerate(central)}
        opened: set[int] = set()
        for quote in quotes:
            group = section[quote.leaf]
            depth = headings[group].depth
            rank: tuple[float, ...] = (math.inf, turns[quote])
            if group not in opened:
                level = depth if opened else 0
                rank = (level, 1, -leaves, -size[group])
            opened.add(group)
            start, stop = tree.leaves[quote.leaf].sentences[quote.sentence]
            words = inert(_sentence(tree, quote))
            yield OverviewPart(group, depth, words, rank, document, start, stop)


def _centrality(tree: Tree) -> dict[int, float]:
    """Return how near each leaf is to the middle of its document."""
    rows = tree.vectors[: len(tree.leaves)].astype(np.float32)
    nearness: dict[int, float] = {}
    start = 0
    for leaves in tree.leaves_of:
        own = rows[start : start + len(leaves)]
        if len(own):
            near = (own @ own.mean(axis=0)).tolist()
            nearness |= dict(enumerate(near, start))
        start += len(leaves)
    return nearness


def _leads(tree: Tree) -> Iterator[SummaryQuote]:
    """Yield of each leaf the first sentence that says something by itself, each text
    once."""
    texts: set[str] = set()
    for number, leaf in enumerate(tree.leaves):
        check_cancelled()
        headings = set(map(one_line, leaf.heading_path))
        for index in range(len(leaf.sentences)):
            quote = SummaryQuote(number, index)
            text = _sentence(tree, quote)
            is_whole = text.endswith(ENDS) and text not in headings | texts
            if is_whole and count_tokens(text) in SENTENCE_TOKENS:
                texts.add(text)
                yield quote
                break


def outline(tree: Tree, *, max_tokens: int) -> str:
    """Return the sources of a tree and their headings, a line each with the number of
    leaves below it, as deep as fits `max_tokens` tokens. Of the deepest level that does
    not fit whole its first lines are returned."""
    head = (
        f"{len(tree.sources)} documents, {len(tree.leaves)} leaves, "
        f"vectors: {tree.built_with.embedder}"
    )
    headings, section = _sections(tree)
    size = Counter(section)
    lines = [
        f"{'  ' * depth}- {_short(heading)} [{size[number]} leaves]"
        for number, (_, depth, heading) in enumerate(headings)
    ]
    budget = Budget(max_tokens)
    written: set[int] = set()
    if not budget.spend(count_tokens(head)):
        return cut_to_tokens(head, max_tokens)
    for number in sorted(range(len(lines)), key=lambda number: headings[number].depth):
        if not budget.spend(count_tokens(lines[number]) + 1):
            break
        written.add(number)
    return "\n".join([head, *(lines[number] for number in sorted(written))])


def _sections_text(groups: Mapping[int, Sequence[OverviewPart]]) -> str:
    """Return a line a section: its heading, then its sentences, gaps marked."""
    lines: list[str] = []
    for items in groups.values():
        line, stop = "  " * items[0].depth, -1
        for item in items:
            gap = ("" if item.start - stop < 3 else "… ") if stop >= 0 else ""
            line += f"{item.text}: " if item.start < 0 else f"{gap}{item.text} "
            stop = item.end
        lines.append(line.rstrip(": "))
    return "\n".join(lines)


def _sentence(tree: Tree, quote: SummaryQuote) -> str:
    return one_line(tree.leaves[quote.leaf].sentence(quote.sentence))


def _short(text: str) -> str:
    return shortened(one_line(inert(text)), TITLE_TOKENS)
