"""Overview of a tree's sources without a generator: the outline of one document, the
themes of several.

Everything comes from the kept tree: headings and quoted sentences of leaves and
summaries, vectors and words. Themes are made for the overview: the tree's clusters are
of one size, and three papers among forty deserve a line of their own. Not for: which
questions ask for one (`query.py`), or the nodes as a tree (`outline.py`)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.protocols import unit_rows
from pipeline.document.cite import cite
from pipeline.document.page import Document, Evidence, Score
from pipeline.evidence.assemble import Assembled, fill
from pipeline.evidence.show import Shown, shortened
from pipeline.raptor.cluster import CHILDREN, kmeans
from pipeline.raptor.evidence import SUMMARY_CITATIONS
from pipeline.raptor.leaves import common_path, leaves_as_document
from pipeline.raptor.outline import telling_words, word_forms
from pipeline.raptor.summarise import ENDS, SUMMARY_SENTENCE_TOKENS
from pipeline.raptor.tree import SummaryQuote, Tree
from pipeline.text.frame import TITLE_TOKENS, framed, inert, one_line, source_line
from pipeline.text.tokens import count_tokens
from pipeline.text.words import index_terms
from pipeline.work import check_cancelled

LIKE_SCORE: Final = 0.5
"""Minimum z-score of the mean similarity of two groups to be one theme. On the folder
`house` of bench/overviews.py .3 to .6 give its seven themes, 0 joins three, 1 parts
one."""
THEME_GROUPS: Final = 400
"""Groups that themes are made of; of more documents the nearest are put together first,
which bounds time to n²."""
LEAD_LEAVES: Final = 5
"""Leaves at the beginning of a document among whose sentences its lead is; pages begin
with advertising and dates."""

Floats = NDArray[np.float64]


class OverviewPart(NamedTuple):
    """Something that an overview may say: the words of a theme or heading, a title, or
    a quoted sentence."""

    group: int
    """The theme or section that says it, in the order of the answer."""
    text: str
    rank: tuple[float, ...]
    """The smallest gets room first."""
    indent: str = ""
    is_title: bool = False
    document: int = -1
    """Of a quoted sentence; else none."""
    start: int = -1
    end: int = -1


class Theme(NamedTuple):
    """Documents that belong together."""

    documents: tuple[int, ...]
    """Indices into `Tree.sources`, the nearest to the middle first."""
    words: tuple[str, ...]
    """Whole words that they share and others lack."""


def overview(
    tree: Tree, documents: Mapping[int, Document], *, max_tokens: int, mark: str
) -> Assembled:
    """Return what `tree` is about, within `max_tokens` exactly: a line a theme, or the
    outline of a single document.

    The tree has at least one leaf.

    Args:
        documents: Pages by index into `tree.sources`, as far as they are at hand;
            leaves replace the others.
        mark: The answer's own mark for untrusted text (`pipeline/text/frame.py`).
    """
    with_leaves = sorted({leaf.document for leaf in tree.leaves})
    themes = themes_of(tree) if len(with_leaves) > 1 else []
    parts = list(_theme_parts(tree, themes) if themes else _section_parts(tree))

    def grouped(rows: Sequence[int]) -> dict[int, list[OverviewPart]]:
        own: dict[int, list[OverviewPart]] = {}
        for part in sorted(
            (parts[row] for row in rows),
            key=lambda part: (part.group, part.start, part.rank),
        ):
            own.setdefault(part.group, []).append(part)
        return own

    def text(rows: Sequence[int]) -> str:
        sentences = (
            _themes_text(tree, themes, grouped(rows))
            if themes
            else _sections_text(grouped(rows))
        )
        # A single document is cited by its address; of several the titles are in the text.
        url, whole = (
            ("", "")
            if len(with_leaves) > 1
            else source_line(tree.sources[with_leaves[0]].url)
        )
        words = "\n".join(filter(None, (whole, sentences)))
        return (
            f"{f'[1] {url}' if url else ''}\n{framed(words, mark)}".lstrip()
            if sentences
            else ""
        )

    order = sorted(range(len(parts)), key=lambda row: parts[row].rank)
    chosen = fill(order, lambda rows: count_tokens(text(rows)), max_tokens)
    groups, shown = grouped(chosen), text(chosen)
    evidence = tuple(
        _evidence(
            tree, own, themes[group].documents if themes else with_leaves, documents
        )
        for group, own in groups.items()
    )
    labels = tuple(
        str(group + 1) if themes else own[0].text for group, own in groups.items()
    )
    return Assembled(
        evidence, Shown(labels, shown, count_tokens(shown)), len(parts) - len(chosen)
    )


def _evidence(
    tree: Tree,
    own: Sequence[OverviewPart],
    places: Sequence[int],
    documents: Mapping[int, Document],
) -> Evidence:
    """Return one theme or section; its citation leads to the first words that it
    quotes."""
    source, citation = tree.sources[places[0]], tree.sources[places[0]].url
    for part in [part for part in own if part.start >= 0][:1]:
        page = documents.get(part.document)
        page = page or leaves_as_document(
            tree.sources[part.document], tree.leaves_of[part.document]
        )
        citation = cite(page, part.start, part.end)
    several = len(places) > 1
    return Evidence(
        text="\n".join(part.text for part in own),
        url=source.url,
        title="Several pages" if several else source.title,
        block_path="",
        sentences=(),
        score=Score(len(places) / len(tree.sources), "guided"),
        citation=citation,
        is_summary=several,
        sources=tuple(tree.sources[index].url for index in places[:SUMMARY_CITATIONS])
        if several
        else (),
    )


# One document: its outline


def _sections(tree: Tree) -> tuple[list[tuple[int, str]], list[int]]:
    """Return the depth and the heading of each section, and the section of each
    leaf."""
    headings: list[tuple[int, str]] = []
    section: list[int] = []
    opened: tuple[str, ...] = ()
    stack: list[int] = []
    for leaf in tree.leaves:
        path = (tree.sources[leaf.document].title, *leaf.heading_path)
        stack = stack[: len(common_path([path, opened]))]
        for heading in path[len(stack) :]:
            headings.append((len(stack), heading))
            stack.append(len(headings) - 1)
        section.append(stack[-1])
        opened = path
    return headings, section


def _section_parts(tree: Tree) -> Iterator[OverviewPart]:
    """Yield headings, the first sentence below each, then what the summaries quote,
    from the uppermost down."""
    headings, section = _sections(tree)
    size = Counter(section)
    for group, (depth, heading) in enumerate(headings):
        if heading:
            yield OverviewPart(
                group, _short(heading), (depth, 0, -size[group]), indent="  " * depth
            )
    spoken: dict[SummaryQuote, tuple[float, ...]] = {}
    led: set[int] = set()
    for number, group in enumerate(section):
        for lead in (
            list(_whole_sentences(tree, number))[:1] if group not in led else ()
        ):
            led.add(group)
            spoken[lead] = (headings[group][0], 1, -size[group])
    for node in sorted(tree.nodes, key=lambda node: (-node.layer, -len(node.leaves))):
        # A text of one leaf has no summary.
        for quote in node.quotes if len(tree.nodes) > 1 else _whole_sentences(tree, 0):
            spoken.setdefault(quote, (math.inf, -node.layer, -len(node.leaves)))
    for quote, rank in spoken.items():
        yield _quoted(tree, quote, section[quote.leaf], rank)


def _sections_text(groups: Mapping[int, Sequence[OverviewPart]]) -> str:
    """Return a line a section: its heading, then its sentences, gaps marked."""
    lines: list[str] = []
    for own in groups.values():
        line, end = "", -1
        for part in own:
            gap = ("" if part.start - end < 3 else "… ") if end >= 0 else ""
            line += (
                f"{part.indent}{part.text}: "
                if part.start < 0
                else f"{gap}{part.text} "
            )
            end = part.end
        lines.append(line.rstrip(": "))
    return "\n".join(lines)


def _sentence(tree: Tree, quote: SummaryQuote) -> str:
    return one_line(tree.leaves[quote.leaf].sentence(quote.sentence))


def _whole_sentences(tree: Tree, number: int) -> Iterator[SummaryQuote]:
    """The sentences of a leaf that say something by themselves."""
    for index in range(len(tree.leaves[number].sentences)):
        text = _sentence(tree, SummaryQuote(number, index))
        heading = text in map(one_line, tree.leaves[number].heading_path)
        if (
            not heading
            and text.endswith(ENDS)
            and count_tokens(text) in SUMMARY_SENTENCE_TOKENS
        ):
            yield SummaryQuote(number, index)


def _quoted(
    tree: Tree, quote: SummaryQuote, group: int, rank: tuple[float, ...]
) -> OverviewPart:
    leaf = tree.leaves[quote.leaf]
    start, end = leaf.sentences[quote.sentence]
    return OverviewPart(
        group,
        inert(_sentence(tree, quote)),
        rank,
        document=leaf.document,
        start=start,
        end=end,
    )


def _short(text: str) -> str:
    return shortened(one_line(inert(text)), TITLE_TOKENS)


# Several documents: their themes


def themes_of(tree: Tree) -> list[Theme]:
    """Return the themes of the documents of `tree`, the largest first; a document like
    no other is one alone. Of at most `CHILDREN` documents each is one alone."""
    with_leaves = [index for index, own in enumerate(tree.leaves_of) if own]
    terms = [
        word_forms([leaf.shown for leaf in tree.leaves_of[index]])
        for index in with_leaves
    ]
    likeness = _likeness(tree, with_leaves, terms)
    # Of a few documents each has a line.
    groups = (
        [[i] for i in range(len(with_leaves))]
        if len(with_leaves) <= CHILDREN
        else _groups(likeness)
    )
    spread = Counter(chain.from_iterable(terms))
    found = []
    for group in groups:
        middle = likeness[np.ix_(group, group)].sum(axis=1)
        nearest = [group[i] for i in np.argsort(-middle, kind="stable").tolist()]
        theme_words = telling_words(
            [terms[i] for i in nearest], spread, len(with_leaves)
        )
        found.append(Theme(tuple(with_leaves[i] for i in nearest), theme_words))
    return sorted(found, key=lambda theme: (-len(theme.documents), theme.documents))


def _likeness(
    tree: Tree, with_leaves: Sequence[int], terms: Sequence[Mapping[str, Counter[str]]]
) -> Floats:
    """How alike documents are [n, n], in deviations: by the mean of their leaves'
    vectors, and by their words."""
    n = len(with_leaves)
    owners = np.array([leaf.document for leaf in tree.leaves])
    rows = tree.vectors[: len(owners)]
    vectors = np.stack(
        [rows[owners == index].mean(axis=0, dtype=np.float32) for index in with_leaves]
    )
    spread = Counter(chain.from_iterable(terms))
    column = {
        term: i
        for i, term in enumerate(
            term for term, count in spread.items() if 1 < count < n
        )
    }
    counted = np.zeros((n, max(1, len(column))), dtype=np.float32)
    for row, own in enumerate(terms):
        for term, words in own.items():
            if term in column:
                counted[row, column[term]] = (1 + math.log(words.total())) * math.log(
                    n / spread[term]
                )
    total = np.zeros((n, n))
    for view in (unit_rows(vectors - vectors.mean(axis=0)), unit_rows(counted)):
        cosines = (view @ view.T).astype(np.float64)
        apart = cosines[~np.eye(n, dtype=bool)]
        total += (cosines - apart.mean()) / (apart.std() + 1e-9) / 2
    return total


def _groups(likeness: Floats) -> list[list[int]]:
    """Put together the two groups that are most alike on average until none are alike
    enough (average linkage). More than `THEME_GROUPS` are first cut into so many by
    k-means."""
    groups = [[i] for i in range(len(likeness))]
    if len(groups) > THEME_GROUPS:
        groups = kmeans(
            np.asarray(unit_rows(likeness.astype(np.float32))),
            list(range(len(likeness))),
            THEME_GROUPS,
        )
    member = np.zeros((len(groups), len(likeness)))
    for row, group in enumerate(groups):
        member[row, group] = 1 / len(group)
    alike = member @ likeness @ member.T
    np.fill_diagonal(alike, -np.inf)
    while len(groups) > 1:
        check_cancelled()
        one, other = divmod(int(alike.argmax()), len(groups))
        if alike[one, other] < LIKE_SCORE:
            break
        a, b = len(groups[one]), len(groups[other])
        joined = (a * alike[one] + b * alike[other]) / (a + b)
        alike[one], alike[:, one] = joined, joined
        alike[one, one] = -np.inf
        alike = np.delete(np.delete(alike, other, axis=0), other, axis=1)
        groups[one] += groups.pop(other)
    return groups


def _theme_parts(tree: Tree, themes: Sequence[Theme]) -> Iterator[OverviewPart]:
    """Of each theme its words, titles in turn, and the lead of the nearest; of few
    documents what they say at most."""
    tops = {tuple(tree.documents_below(node)): node for node in tree.nodes}
    for group, theme in enumerate(themes):
        yield OverviewPart(group, ", ".join(theme.words), (0, group))
        for turn, index in enumerate(theme.documents):
            yield OverviewPart(
                group, title_of(tree, index), (1 + turn, group), is_title=True
            )
        said = _lead(tree, theme)
        said += (
            tops[theme.documents].quotes
            if len(theme.documents) == 1 and len(themes) <= CHILDREN
            else ()
        )
        for turn, quote in enumerate(dict.fromkeys(said)):
            yield _quoted(
                tree,
                quote,
                group,
                (1.5 if not turn else len(tree.sources) + turn, group),
            )


def _lead(tree: Tree, theme: Theme) -> tuple[SummaryQuote, ...]:
    """Of the first sentences of a theme's nearest document the one that has most words
    of its title and the theme; none where no sentence says something."""
    index = theme.documents[0]
    first = [i for i, leaf in enumerate(tree.leaves) if leaf.document == index][
        :LEAD_LEAVES
    ]
    wanted = set(index_terms(f"{tree.sources[index].title} {' '.join(theme.words)}"))
    found: dict[SummaryQuote, int] = {}
    for quote in (
        quote for number in first for quote in _whole_sentences(tree, number)
    ):
        terms = set(index_terms(_sentence(tree, quote)))
        found[quote] = len(wanted & terms)
    return (max(found, key=lambda quote: found[quote]),) if found else ()


def title_of(tree: Tree, index: int) -> str:
    """Return what a document is called: its title, else its first words."""
    source = tree.sources[index]
    return _short(source.title or tree.leaves_of[index][0].shown)


def _themes_text(
    tree: Tree, themes: Sequence[Theme], groups: Mapping[int, Sequence[OverviewPart]]
) -> str:
    head = f"Documents: {len(tree.sources)}; themes: {len(themes)}."
    lines = [head] if groups else []
    for group, own in groups.items():
        count = len(themes[group].documents)
        about = ", ".join(
            part.text for part in own if part.start < 0 and not part.is_title
        )
        titles = [part.text for part in own if part.is_title]
        titles += [f"{count - len(titles)} more"] if 0 < len(titles) < count else []
        lines.append(
            f"({group + 1}) {count} document{'s' * (count > 1)}, about {about}: "
            f"{'; '.join(titles)}".rstrip(": ")
        )
        lines.extend(f"  {part.text}" for part in own if part.start >= 0)
    return "\n".join(lines)
