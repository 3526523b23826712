"""Overview of a tree's sources without a generator: the outline of one document, the
themes of several.

Everything comes from the kept leaves: headings, quoted sentences, vectors and words. Not
for: which questions ask for one (`pipeline/question/broad.py`)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.protocols import unit_rows
from pipeline.document.cite import cite
from pipeline.document.page import Document, Evidence, Score
from pipeline.evidence.assemble import Assembled, fill
from pipeline.evidence.show import Shown, shortened
from pipeline.raptor.leaves import common_path, leaves_as_document
from pipeline.raptor.summarise import (
    ENDS,
    SUMMARY_SENTENCE_TOKENS,
    Quotable,
    extract_summary,
    sentences_of,
)
from pipeline.raptor.tree import SummaryQuote, Tree
from pipeline.reading.bm25 import rarities
from pipeline.text.frame import TITLE_TOKENS, framed, inert, one_line, source_line
from pipeline.text.tokens import Budget, count_tokens, cut_to_tokens
from pipeline.text.words import guess_language, index_terms, is_cjk, lower_runs
from pipeline.work import check_cancelled

CHILDREN: Final = 7
"""Leaves, or summaries, that one summary is made of; also the documents of which each has
a line of its own."""
SUMMARY_TOKENS: Final = 130
"""Most tokens of a summary (RAPTOR App. C: mean 131)."""
SUMMARY_CITATIONS: Final = 8
"""Most citations kept under a summary or a theme."""
WORDS: Final = 5
"""Maximum words of a theme."""
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
    """Yield headings, the first sentence below each, then the sentences that say
    most, of all of it first."""
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
    quotes = central_quotes(tree)
    for height in range(len(quotes) - 1, -1, -1):
        for quote in chain.from_iterable(quotes[height]):
            spoken.setdefault(quote, (math.inf, -height))
    for quote, rank in spoken.items():
        yield _quoted(tree, quote, section[quote.leaf], rank)


def central_quotes(tree: Tree) -> list[list[tuple[SummaryQuote, ...]]]:
    """Return the sentences that say most of the leaves of `tree`: by height, of each
    window of `CHILDREN` leaves or, above, windows; of all leaves last.

    Windows do as well as clusters (`python -m bench.papers_raptor --ablation`)."""
    sentences = sentences_of(tree)
    idf = rarities([Counter(chain(*(t for _, t in leaf))) for leaf in sentences])
    level = [
        tuple(SummaryQuote(leaf, number) for number in range(len(own)))
        for leaf, own in enumerate(sentences)
    ]
    heights: list[list[tuple[SummaryQuote, ...]]] = []
    while not heights or len(level) > 1:
        windows = [
            level[low : low + CHILDREN] for low in range(0, len(level), CHILDREN)
        ]
        level = [
            _summarised(tree, window, sentences, idf, summaries=bool(heights))
            for window in windows
        ]
        heights.append(level)
    return heights


def _summarised(
    tree: Tree,
    window: Sequence[Sequence[SummaryQuote]],
    sentences: Sequence[Sequence[tuple[str, list[str]]]],
    idf: Mapping[str, float],
    *,
    summaries: bool,
) -> tuple[SummaryQuote, ...]:
    """Return the most central of the sentences of a window; `summaries`: each of its
    members is one, and all get a share."""
    check_cancelled()
    leaves = sorted({quote.leaf for member in window for quote in member})
    rows = tree.vectors[leaves].astype(np.float32)
    centre = unit_rows(rows.mean(axis=0, keepdims=True))[0]
    likeness = dict(zip(leaves, (rows @ centre).tolist(), strict=True))
    candidates = [
        Quotable(
            quote,
            *sentences[quote.leaf][quote.sentence],
            likeness[quote.leaf],
            number if summaries else 0,
        )
        for number, member in enumerate(window, start=1)
        for quote in member
    ]
    return extract_summary(candidates, idf, max_tokens=SUMMARY_TOKENS).quotes


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
        f"{'  ' * depth}- {_short(heading)} [{size[place]} leaves]"
        for place, (depth, heading) in enumerate(headings)
    ]
    budget = Budget(max_tokens)
    kept: set[int] = set()
    if not budget.spend(count_tokens(head)):
        return cut_to_tokens(head, max_tokens)
    for place in sorted(range(len(lines)), key=lambda place: headings[place][0]):
        if not budget.spend(count_tokens(lines[place]) + 1):
            break
        kept.add(place)
    return "\n".join([head, *(lines[place] for place in sorted(kept))])


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
    for group, theme in enumerate(themes):
        yield OverviewPart(group, ", ".join(theme.words), (0, group))
        for turn, index in enumerate(theme.documents):
            yield OverviewPart(
                group, title_of(tree, index), (1 + turn, group), is_title=True
            )
        said = _lead(tree, theme)
        if len(theme.documents) == 1 and len(themes) <= CHILDREN:
            said += central_quotes_of(tree, theme.documents[0])
        for turn, quote in enumerate(dict.fromkeys(said)):
            yield _quoted(
                tree,
                quote,
                group,
                (1.5 if not turn else len(tree.sources) + turn, group),
            )


def central_quotes_of(tree: Tree, document: int) -> tuple[SummaryQuote, ...]:
    """Return the sentences that say most of one document."""
    places = [row for row, leaf in enumerate(tree.leaves) if leaf.document == document]
    alone = replace(
        tree,
        leaves=tuple(tree.leaves[row] for row in places),
        vectors=tree.vectors[places],
    )
    (top,) = central_quotes(alone)[-1]
    return tuple(quote._replace(leaf=places[quote.leaf]) for quote in top)


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


def word_forms(texts: Sequence[str]) -> dict[str, Counter[str]]:
    """Return the index terms of `texts`, each with its whole words and their counts.
    All are taken for the language of the first three."""
    check_cancelled()
    language = guess_language(" ".join(texts[:3])) or "en"
    found: dict[str, Counter[str]] = {}
    for word, count in Counter(
        word for text in texts for word in lower_runs(text)
    ).items():
        for term in set(index_terms(word, language=language)):
            # Of a run of Chinese or Japanese a pair of characters is what can be said alone.
            found.setdefault(term, Counter())[term if is_cjk(word) else word] += count
    return found


def telling_words(
    own: Sequence[Mapping[str, Counter[str]]], spread: Mapping[str, int], n: int
) -> tuple[str, ...]:
    """Return the words that at least half of some texts contain and few others do, in
    their most frequent spelling.

    Args:
        own: Terms and words of each text, as `word_forms` gives them.
        spread: Number of texts that contain each term. One of `own` that it lacks
            raises `KeyError`; a `Counter` counts it as 0.
        n: All texts.
    """
    inside = Counter(chain.from_iterable(own))
    often: dict[str, float] = {}
    for term, counts in (pair for words in own for pair in words.items()):
        often[term] = often.get(term, 0.0) + math.log1p(counts.total())
    worth = {
        term: often[term] * count * math.log((n + 1) / max(1, spread[term] - count + 1))
        for term, count in inside.items()
        if 2 * count >= len(own)
        and (len(term) > 2 or is_cjk(term))
        and not term[0].isdigit()
    }
    best = sorted(worth, key=lambda term: (-worth[term], term))[:WORDS]
    return tuple(
        sum((words.get(term, Counter()) for words in own), Counter()).most_common(1)[0][
            0
        ]
        for term in best
    )
