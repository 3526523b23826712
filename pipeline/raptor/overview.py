"""Overview of a tree's sources without a generator: the outline of one document, the
themes of several.

Everything comes from the kept leaves: headings, quoted sentences, vectors and words. Not
for: which questions ask for one (`pipeline/question/broad.py`)."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cancellation import check_cancelled
from models.protocols import unit_rows
from pipeline.document.cite import cite
from pipeline.evidence.assemble import Assembled, fill
from pipeline.evidence.show import Shown, shortened
from pipeline.raptor.leaves import common_path, leaves_as_document
from pipeline.raptor.tree import SummaryQuote, Tree
from pipeline.text.frame import TITLE_TOKENS, framed, inert, one_line, source_line
from pipeline.text.tokens import Budget, count_tokens, cut_to_tokens
from pipeline.text.words import guess_language, index_terms, is_cjk, lower_runs
from readers.page import Document, Evidence, Score

CHILDREN: Final = 7
"""Most documents of which each has a line of its own."""
SENTENCE_TOKENS: Final = range(6, 71)
"""Range of tokens of a sentence that is quoted: shorter ones are headings, longer ones
lists."""
ENDS: Final = tuple('.!?。！？…"”»)')
SUMMARY_CITATIONS: Final = 8
"""Most citations kept under a summary or a theme."""
WORDS: Final = 5
"""Maximum words of a theme."""
LIKE_SCORE: Final = 0.5
"""Minimum z-score of the mean similarity of two groups to be one theme. On the folder
`house` (docs/log.md) .3 to .6 give its seven themes, 0 joins three, 1 parts
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
    tree: Tree, documents: Mapping[int, Document], *, max_tokens: int, delimiter: str
) -> Assembled:
    """Return what `tree` is about, within `max_tokens` exactly: a line a theme, or the
    outline of a single document.

    The tree has at least one leaf.

    Args:
        documents: Pages by index into `tree.sources`, as far as they are at hand;
            leaves replace the others.
        delimiter: the answer's own delimiter around untrusted text (`pipeline/text/frame.py`).
    """
    with_leaves = sorted({leaf.document for leaf in tree.leaves})
    themes = themes_of(tree) if len(with_leaves) > 1 else []
    candidates = list(_theme_parts(tree, themes) if themes else _section_parts(tree))

    def grouped(rows: Sequence[int]) -> dict[int, list[OverviewPart]]:
        by_group: dict[int, list[OverviewPart]] = {}
        for item in sorted(
            (candidates[row] for row in rows),
            key=lambda item: (item.group, item.start, item.rank),
        ):
            by_group.setdefault(item.group, []).append(item)
        return by_group

    def text(rows: Sequence[int]) -> str:
        sentences = (
            _themes_text(tree, themes, grouped(rows))
            if themes
            else _sections_text(grouped(rows))
        )
        # A single document is cited by its address; of several the titles are in the text.
        url, title_line = (
            ("", "")
            if len(with_leaves) > 1
            else source_line(tree.sources[with_leaves[0]].url)
        )
        words = "\n".join(filter(None, (title_line, sentences)))
        return (
            f"{f'[1] {url}' if url else ''}\n{framed(words, delimiter)}".lstrip()
            if sentences
            else ""
        )

    order = sorted(range(len(candidates)), key=lambda row: candidates[row].rank)
    chosen = fill(order, lambda rows: count_tokens(text(rows)), max_tokens)
    groups, written = grouped(chosen), text(chosen)
    evidence = tuple(
        _evidence(
            tree, items, themes[group].documents if themes else with_leaves, documents
        )
        for group, items in groups.items()
    )
    labels = tuple(
        str(group + 1) if themes else items[0].text for group, items in groups.items()
    )
    return Assembled(
        evidence,
        Shown(labels, written, count_tokens(written)),
        len(candidates) - len(chosen),
    )


def _evidence(
    tree: Tree,
    items: Sequence[OverviewPart],
    places: Sequence[int],
    documents: Mapping[int, Document],
) -> Evidence:
    """Return one theme or section; its citation leads to the first words that it
    quotes."""
    source, citation = tree.sources[places[0]], tree.sources[places[0]].url
    for item in [item for item in items if item.start >= 0][:1]:
        page = documents.get(item.document)
        page = page or leaves_as_document(
            tree.sources[item.document], tree.leaves_of[item.document]
        )
        citation = cite(page, item.start, item.end)
    is_theme = len(places) > 1
    return Evidence(
        text="\n".join(item.text for item in items),
        url=source.url,
        title="Several pages" if is_theme else source.title,
        block_path="",
        sentences=(),
        score=Score(len(places) / len(tree.sources), "guided"),
        citation=citation,
        is_summary=is_theme,
        sources=tuple(tree.sources[index].url for index in places[:SUMMARY_CITATIONS])
        if is_theme
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
    """Yield headings, the first sentence below each, then that of the other leaves,
    those nearest to the whole first."""
    headings, section = _sections(tree)
    size = Counter(section)
    for group, (depth, heading) in enumerate(headings):
        if heading:
            yield OverviewPart(
                group, _short(heading), (depth, 0, -size[group]), indent="  " * depth
            )
    opened: set[int] = set()
    centrality = _centrality(tree, range(len(tree.leaves)))
    for quote in _leads(tree, range(len(tree.leaves))):
        group = section[quote.leaf]
        rank: tuple[float, ...] = (math.inf, -centrality[quote.leaf])
        if group not in opened:
            rank = (headings[group][0], 1, -size[group])
        opened.add(group)
        yield _quoted(tree, quote, group, rank)


def _centrality(tree: Tree, leaves: Sequence[int]) -> dict[int, float]:
    """Return how near each of some leaves is to the middle of all of them."""
    rows = tree.vectors[list(leaves)].astype(np.float32)
    nearness = rows @ rows.mean(axis=0)
    return dict(zip(leaves, nearness.tolist(), strict=True))


def _leads(tree: Tree, leaves: Iterable[int]) -> Iterator[SummaryQuote]:
    """Yield of each leaf the first sentence that says something by itself, each text
    once."""
    texts: set[str] = set()
    for number in leaves:
        check_cancelled()
        headings = set(map(one_line, tree.leaves[number].heading_path))
        for index in range(len(tree.leaves[number].sentences)):
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
        for number, (depth, heading) in enumerate(headings)
    ]
    budget = Budget(max_tokens)
    written: set[int] = set()
    if not budget.spend(count_tokens(head)):
        return cut_to_tokens(head, max_tokens)
    for number in sorted(range(len(lines)), key=lambda number: headings[number][0]):
        if not budget.spend(count_tokens(lines[number]) + 1):
            break
        written.add(number)
    return "\n".join([head, *(lines[number] for number in sorted(written))])


def _sections_text(groups: Mapping[int, Sequence[OverviewPart]]) -> str:
    """Return a line a section: its heading, then its sentences, gaps marked."""
    lines: list[str] = []
    for items in groups.values():
        line, stop = "", -1
        for item in items:
            gap = ("" if item.start - stop < 3 else "… ") if stop >= 0 else ""
            line += (
                f"{item.indent}{item.text}: "
                if item.start < 0
                else f"{gap}{item.text} "
            )
            stop = item.end
        lines.append(line.rstrip(": "))
    return "\n".join(lines)


def _sentence(tree: Tree, quote: SummaryQuote) -> str:
    return one_line(tree.leaves[quote.leaf].sentence(quote.sentence))


def _quoted(
    tree: Tree, quote: SummaryQuote, group: int, rank: tuple[float, ...]
) -> OverviewPart:
    leaf = tree.leaves[quote.leaf]
    start, stop = leaf.sentences[quote.sentence]
    return OverviewPart(
        group,
        inert(_sentence(tree, quote)),
        rank,
        document=leaf.document,
        start=start,
        end=stop,
    )


def _short(text: str) -> str:
    return shortened(one_line(inert(text)), TITLE_TOKENS)


# Several documents: their themes


def themes_of(tree: Tree) -> list[Theme]:
    """Return the themes of the documents of `tree`, the largest first; a document like
    no other is one alone. Of at most `CHILDREN` documents each is one alone."""
    with_leaves = [index for index, leaves in enumerate(tree.leaves_of) if leaves]
    spellings: dict[str, Counter[str]] = {}
    terms = [
        _terms([leaf.shown for leaf in tree.leaves_of[index]], spellings)
        for index in with_leaves
    ]
    likeness = _likeness(tree, with_leaves)
    groups = (
        [[row] for row in range(len(with_leaves))]
        if len(with_leaves) <= CHILDREN
        else _groups(likeness)
    )
    spread = Counter(chain.from_iterable(terms))
    themes: list[Theme] = []
    for group in groups:
        middle = likeness[np.ix_(group, group)].sum(axis=1)
        nearest = [group[row] for row in np.argsort(-middle, kind="stable").tolist()]
        telling = _telling([terms[row] for row in nearest], spread, len(with_leaves))
        words = tuple(spellings[term].most_common(1)[0][0] for term in telling)
        themes.append(Theme(tuple(with_leaves[row] for row in nearest), words))
    return sorted(themes, key=lambda theme: (-len(theme.documents), theme.documents))


def _terms(texts: Sequence[str], spellings: dict[str, Counter[str]]) -> Counter[str]:
    """Return the index terms of a document, taken for the language of its first texts;
    `spellings` gets the whole words of each."""
    check_cancelled()
    language = guess_language(" ".join(texts[:3])) or "en"
    terms: Counter[str] = Counter()
    runs = Counter(word for text in texts for word in lower_runs(text))
    for word, count in runs.items():
        for term in set(index_terms(word, language=language)):
            terms[term] += count
            # Of a run of Chinese or Japanese a pair of characters is what can be said alone.
            spelling = term if is_cjk(word) else word
            spellings.setdefault(term, Counter())[spelling] += count
    return terms


def _telling(
    theme: Sequence[Mapping[str, int]], spread: Mapping[str, int], n: int
) -> list[str]:
    """Return the terms that at least half of a theme's documents contain and few of all
    `n`, of which `spread` counts those with a term."""
    worth = {
        term: sum(math.log1p(terms.get(term, 0)) for terms in theme)
        * count
        * math.log((n + 1) / (spread[term] - count + 1))
        for term, count in Counter(chain.from_iterable(theme)).items()
        if 2 * count >= len(theme)
        and (len(term) > 2 or is_cjk(term))
        and not term[0].isdigit()
    }
    return sorted(worth, key=lambda term: (-worth[term], term))[:WORDS]


def _likeness(tree: Tree, with_leaves: Sequence[int]) -> Floats:
    """How alike documents are [n, n], in deviations, by the mean of their leaves'
    vectors."""
    owners = np.array([leaf.document for leaf in tree.leaves])
    rows = tree.vectors[: len(owners)]
    vectors = np.stack(
        [rows[owners == index].mean(axis=0, dtype=np.float32) for index in with_leaves]
    )
    centred = unit_rows(vectors - vectors.mean(axis=0))
    cosines = (centred @ centred.T).astype(np.float64)
    apart = cosines[~np.eye(len(with_leaves), dtype=bool)]
    return np.asarray((cosines - apart.mean()) / (apart.std() + 1e-9))


def _groups(likeness: Floats) -> list[list[int]]:
    """Put together the two groups that are most alike on average until none are alike
    enough (average linkage). More than `THEME_GROUPS` are first put to the
    nearest of so many."""
    groups = [[i] for i in range(len(likeness))]
    if len(groups) > THEME_GROUPS:
        # Around documents at equal steps, each with those that are most like it.
        middles = np.linspace(0, len(likeness) - 1, THEME_GROUPS).astype(int)
        nearest = likeness[:, middles].argmax(axis=1)
        nearest[middles] = np.arange(THEME_GROUPS)
        groups = [
            np.flatnonzero(nearest == number).tolist() for number in range(THEME_GROUPS)
        ]
    member = np.zeros((len(groups), len(likeness)))
    for row, group in enumerate(groups):
        member[row, group] = 1 / len(group)
    similarity = member @ likeness @ member.T
    np.fill_diagonal(similarity, -np.inf)
    while len(groups) > 1:
        check_cancelled()
        one, column = divmod(int(similarity.argmax()), len(groups))
        if similarity[one, column] < LIKE_SCORE:
            break
        a, b = len(groups[one]), len(groups[column])
        joined = (a * similarity[one] + b * similarity[column]) / (a + b)
        similarity[one], similarity[:, one] = joined, joined
        similarity[one, one] = -np.inf
        similarity = np.delete(np.delete(similarity, column, axis=0), column, axis=1)
        groups[one] += groups.pop(column)
    return groups


def _theme_parts(tree: Tree, themes: Sequence[Theme]) -> Iterator[OverviewPart]:
    """Of each theme its words, titles in turn, and the lead of the nearest document; of
    few documents one sentence of each of their leaves."""
    rows_of: dict[int, list[int]] = {}
    for row, leaf in enumerate(tree.leaves):
        rows_of.setdefault(leaf.document, []).append(row)
    for group, theme in enumerate(themes):
        yield OverviewPart(group, ", ".join(theme.words), (0, group))
        for turn, index in enumerate(theme.documents):
            # Its title, else its first words
            title = tree.sources[index].title or tree.leaves_of[index][0].shown
            yield OverviewPart(group, _short(title), (1 + turn, group), is_title=True)
        leaves = rows_of[theme.documents[0]]
        title = tree.sources[theme.documents[0]].title
        telling = set(index_terms(f"{title} {' '.join(theme.words)}"))
        openings = list(_leads(tree, leaves[:LEAD_LEAVES]))
        quotes = sorted(
            openings,
            key=lambda quote: -len(telling & set(index_terms(_sentence(tree, quote)))),
        )[:1]
        if len(theme.documents) == 1 and len(themes) <= CHILDREN:
            centrality = _centrality(tree, leaves)
            quotes += sorted(
                _leads(tree, leaves), key=lambda quote: -centrality[quote.leaf]
            )
        for turn, quote in enumerate(dict.fromkeys(quotes)):
            rank = len(tree.sources) + turn if turn else 1.5
            yield _quoted(tree, quote, group, (rank, group))


def _themes_text(
    tree: Tree, themes: Sequence[Theme], groups: Mapping[int, Sequence[OverviewPart]]
) -> str:
    head = f"Documents: {len(tree.sources)}; themes: {len(themes)}."
    lines = [head] if groups else []
    for group, items in groups.items():
        count = len(themes[group].documents)
        about = ", ".join(
            item.text for item in items if item.start < 0 and not item.is_title
        )
        titles = [item.text for item in items if item.is_title]
        titles += [f"{count - len(titles)} more"] if 0 < len(titles) < count else []
        lines.append(
            f"({group + 1}) {count} document{'s' * (count > 1)}, about {about}: "
            f"{'; '.join(titles)}".rstrip(": ")
        )
        lines.extend(f"  {item.text}" for item in items if item.start >= 0)
    return "\n".join(lines)
