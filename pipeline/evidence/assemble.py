"""Filling a token budget with evidence from several pages (design §4 Assemble; zero-index §4).

Takes scored sentences, returns verbatim passages grouped by page and the text that shows them. Pages that answer are
opened as the budget bears, caps keep one page or one site from taking all, what several pages say in the same words is
shown once with all their citations, and what is left over is counted. Not for: scoring (`pipeline/extract`) or finding
pages (`pipeline/gather.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from pipeline.documents import Document, Evidence, Extraction, ScoredSentence, Sentence
from pipeline.evidence.antecedent import antecedents
from pipeline.evidence.cite import cite
from pipeline.evidence.passage import passage_text, row_below_header
from pipeline.evidence.show import Shown, headings_to_show, headline, show_evidence
from pipeline.text.tokens import count_tokens
from pipeline.trace import traced

OPEN_SHARE: Final = 0.6
"""A page is opened only when its best sentence has at least this share of the best score of all."""
TOKENS_A_PAGE: Final = 300
"""Budget for each page opened beyond the first: a page costs 40 to 60 tokens before its first word."""
PAGE_CAP: Final = 0.6
"""Most of the budget that one page may take while another page still has scored sentences."""
SITE_CAP: Final = 0.7
"""The same for all pages of one site while another site still has scored sentences; local files are no site. Above
`PAGE_CAP`, so that a second page of a site always adds something."""
SAME_WORDS: Final = 12
"""Letters and digits from which on equal sentences of two pages are one statement; `Yes.` on two pages is two."""
NEIGHBOUR_SHARE: Final = 0.25
"""Part of the budget for what stands around the chosen sentences: the rest of a list, the next rows of a table."""
NEIGHBOUR_REACH: Final = 12
"""How many sentences away from a chosen one a neighbour may stand."""
FILL_SHARE: Final = 0.4
"""Sentences below this share of the best score are not worth their tokens, however much room there is."""
STRAY_SHARE: Final = 0.75
"""The same for furniture and stray words: opening hours in a footer answer, a menu's entry does not."""
LISTED: Final = frozenset({"item", "row", "code", "definition"})
"""Kinds of units that say something in a word or two."""
LABEL_TOKENS: Final = 3
STRAY_TOKENS: Final = 5
"""Running text shorter than this is no sentence; short items and rows of tables are."""
PASSAGE_COST: Final = 6
"""Tokens of a passage's label, brackets and line breaks, before its heading and citation are counted."""
LINK_COST: Final = 32
"""Tokens of a passage's link: 20 to 40 on the sample library; the last step of `assemble` makes up for the rest."""
FRAME_COST: Final = 12
"""Tokens of a page's number, marks and line breaks, before its headline and address are counted."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """Evidence within its budget, by page in the order of the documents."""

    evidence: tuple[Evidence, ...]
    shown: Shown
    left_out: int
    """Scored sentences that did not fit."""


@dataclass(slots=True)
class _Shelf:
    """What is chosen from one document so far."""

    document: Document
    sentences: tuple[Sentence, ...]
    chosen: dict[int, ScoredSentence] = field(default_factory=dict)
    tokens: int = 0
    site: str = ""
    """Host of the page without `www.`; empty for files."""


@dataclass(slots=True)
class _Shelves:
    """All shelves, what is said on them, and what they cost together."""

    all: tuple[_Shelf, ...]
    links: bool
    used: int = 0
    said: set[str] = field(default_factory=set)
    """Keys of the chosen sentences (`_key`)."""

    def __getitem__(self, place: int) -> _Shelf:
        return self.all[place]

    def __iter__(self) -> Iterator[_Shelf]:
        return iter(self.all)

    def site_tokens(self, site: str) -> int:
        """Tokens of all pages of a site."""
        return sum(shelf.tokens for shelf in self.all if shelf.site == site)


@traced("assemble")
def assemble(
    documents: Sequence[Document], extraction: Extraction, *, max_tokens: int, mark: str, links: bool = True
) -> Assembled:
    """Choose sentences best first until `max_tokens` are used, and write them out.

    Args:
        documents: Pages in the order they should be numbered.
        extraction: What was found in these documents; nothing is chosen from a `none`.
        max_tokens: Bound on `count_tokens` of the text, kept exactly.
        mark: The answer's own mark for untrusted text (`pipeline/text/frame.py`).
        links: Whether the text shows the link of every passage; each costs 20 to 40 tokens.
    """
    # 1. One shelf a document; duplicates across pages are taken once
    tagged = zip(documents, extraction.tagged, strict=False)
    shelves = _Shelves(tuple(_Shelf(page, tags, site=_site(page)) for page, tags in tagged), links)
    ranked = _without_repeats(_candidates(shelves, extraction.sentences))
    # 2. Which pages: those that answer, as many as the budget bears, each with its best sentence
    opened = _opened(shelves, ranked, 1 + max_tokens // TOKENS_A_PAGE)
    for item in opened.values():
        _take(shelves, item, max_tokens)
    # 3. Best first, within the caps of a page and of a site
    for item in ranked:
        if item.document in opened and not _capped(shelves, item.document, opened, max_tokens):
            _take(shelves, item, int(max_tokens * (1 - NEIGHBOUR_SHARE)))
    # 4. What pronoun-led sentences lean on, what stands around, then whatever still fits, full sites last
    rest = [*_antecedents(shelves), *_neighbours(shelves, ranked), *ranked]
    for item in rest:
        if not _site_full(shelves, item.document, opened, max_tokens):
            _take(shelves, item, max_tokens)
    for item in rest:
        _take(shelves, item, max_tokens)
    # 5. Passages with all places that say the same, text, and the last word on the budget
    order = {(item.document, item.sentence.number): place for place, item in enumerate(ranked)}
    places = _places(shelves)
    while True:
        evidence = tuple(passage for own in range(len(shelves.all)) for passage in _passages(shelves, own, places))
        shown = show_evidence(evidence, mark, links=links)
        if shown.tokens <= max_tokens or not evidence:
            break
        _drop_least(shelves, order)
    chosen = {(place, number) for place, shelf in enumerate(shelves) for number in shelf.chosen}
    return Assembled(evidence, shown, sum(key not in chosen for key in order))


def _site(document: Document) -> str:
    parts = urlsplit(document.page.final_url or document.page.url)
    return (parts.hostname or "").removeprefix("www.") if parts.scheme in {"http", "https"} else ""


def _capped(shelves: _Shelves, place: int, opened: dict[int, ScoredSentence], max_tokens: int) -> bool:
    """Whether a page, or its site, has its share while another opened page, or site, is there."""
    full = len(opened) > 1 and shelves[place].tokens > PAGE_CAP * max_tokens
    return full or _site_full(shelves, place, opened, max_tokens)


def _site_full(shelves: _Shelves, place: int, opened: dict[int, ScoredSentence], max_tokens: int) -> bool:
    """Whether a page's site has its share while a page of another site is opened."""
    site = shelves[place].site
    elsewhere = any(shelves[other].site != site for other in opened)
    return bool(site) and elsewhere and shelves.site_tokens(site) > SITE_CAP * max_tokens


def _candidates(shelves: _Shelves, scored: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    """What may be shown: all that scores at all, but furniture and stray words only where they are among the best."""
    found = []
    for scored_item in scored:
        item = _after_heading(shelves[scored_item.document], scored_item)
        shelf = shelves[item.document]
        least = FILL_SHARE if _worth_adding(shelf, item.sentence) else STRAY_SHARE
        if item.score.value >= least * scored[0].score.value and not _is_label(shelf, item.sentence):
            found.append(item)
    return found


def _after_heading(shelf: _Shelf, item: ScoredSentence) -> ScoredSentence:
    """A heading stands for the first sentence below it, which carries the heading in its path."""
    number = item.sentence.number
    while number < len(shelf.sentences) and shelf.document.blocks[shelf.sentences[number - 1].block].kind == "heading":
        number += 1
    return ScoredSentence(item.document, shelf.sentences[number - 1], item.score)


def _without_repeats(scored: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    kept: dict[str, ScoredSentence] = {}
    for item in scored:
        kept.setdefault(_key(item.sentence, item.document), item)
    return list(kept.values())


def _key(sentence: Sentence, document: int) -> str:
    """What equal statements share: letters and digits in one case; short ones are equal only on their own page."""
    letters = "".join(filter(str.isalnum, sentence.text.casefold()))
    return letters if len(letters) >= SAME_WORDS else f"{document} {sentence.text.casefold()}"


def _opened(shelves: _Shelves, ranked: Sequence[ScoredSentence], most: int) -> dict[int, ScoredSentence]:
    """Return the best sentence of each page that may be shown, best page first, a site within its share of them."""
    best: dict[int, ScoredSentence] = {}
    for item in ranked:
        best.setdefault(item.document, item)
    worth = {place: item for place, item in best.items() if item.score.value >= OPEN_SHARE * ranked[0].score.value}
    share = max(1, round(SITE_CAP * most))
    counts: dict[str, int] = {}
    first: dict[int, ScoredSentence] = {}
    for place, item in worth.items():
        site = shelves[place].site
        counts[site] = counts.get(site, 0) + 1
        if not site or counts[site] <= share:
            first[place] = item
    return dict(list({**first, **worth}.items())[:most])


def _take(shelves: _Shelves, item: ScoredSentence, room: int) -> None:
    """Put a sentence on its shelf if nothing there says the same and its estimated cost fits into `room` in all."""
    shelf = shelves[item.document]
    number = item.sentence.number
    key = _key(item.sentence, item.document)
    if number in shelf.chosen or key in shelves.said:
        return
    beside = number - 1 in shelf.chosen or number + 1 in shelf.chosen
    told = row_below_header(shelf.document, item.sentence) if beside else ""
    cost = count_tokens(told or item.sentence.text) + 1
    if not beside:
        cost += PASSAGE_COST + count_tokens(
            " › ".join(headings_to_show(shelf.document.page.title, item.sentence.heading_path))
        )
        cost += LINK_COST if shelves.links else 0
    if not shelf.chosen:
        page = shelf.document.page
        head = headline(page.title, page.published, author=page.author)
        cost += FRAME_COST + count_tokens(head) + count_tokens(page.final_url)
    if shelves.used + cost > room:
        return
    shelf.chosen[number] = item
    shelf.tokens += cost
    shelves.used += cost
    shelves.said.add(key)


def _antecedents(shelves: _Shelves) -> list[ScoredSentence]:
    """Sentences that chosen ones cannot be read without, with the scores of those."""
    found = []
    for place, shelf in enumerate(shelves):
        for number in antecedents(shelf.sentences, sorted(shelf.chosen)):
            leaning = next(shelf.chosen[n] for n in range(number, len(shelf.sentences) + 1) if n in shelf.chosen)
            found.append(ScoredSentence(place, shelf.sentences[number - 1], leaning.score))
    return found


def _neighbours(shelves: _Shelves, ranked: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    """Sentences under the same heading as a chosen one, nearest first, best-chosen first."""
    found: list[ScoredSentence] = []
    for reach in range(1, NEIGHBOUR_REACH + 1):
        for item in ranked:
            shelf = shelves[item.document]
            if item.sentence.number not in shelf.chosen:
                continue
            for number in (item.sentence.number + reach, item.sentence.number - reach):
                if 1 <= number <= len(shelf.sentences):
                    near = shelf.sentences[number - 1]
                    if near.heading_path == item.sentence.heading_path and _worth_adding(shelf, near):
                        found.append(ScoredSentence(item.document, near, item.score))
    return found


def _worth_adding(shelf: _Shelf, near: Sentence) -> bool:
    """Furniture and stray words (a label, a button, a date line's rest) say nothing beside a passage."""
    block = shelf.document.blocks[near.block]
    return block.main and (block.kind in LISTED or count_tokens(near.text) >= STRAY_TOKENS)


def _is_label(shelf: _Shelf, sentence: Sentence) -> bool:
    """A word or two that stand alone in running text: a category, a button; never an answer by themselves."""
    return shelf.document.blocks[sentence.block].kind not in LISTED and count_tokens(sentence.text) < LABEL_TOKENS


def _drop_least(shelves: _Shelves, order: dict[tuple[int, int], int]) -> None:
    last = max(
        ((place, number) for place, shelf in enumerate(shelves) for number in shelf.chosen),
        key=lambda key: order.get(key, len(order) + key[1]),
    )
    del shelves[last[0]].chosen[last[1]]


def _places(shelves: _Shelves) -> dict[str, list[tuple[int, int]]]:
    """Return where each statement stands: key to (document, number), of statements that were chosen somewhere."""
    places: dict[str, list[tuple[int, int]]] = {}
    for place, shelf in enumerate(shelves):
        for sentence in shelf.sentences:
            if (key := _key(sentence, place)) in shelves.said:
                places.setdefault(key, []).append((place, sentence.number))
    return places


def _passages(shelves: _Shelves, own: int, places: dict[str, list[tuple[int, int]]]) -> list[Evidence]:
    shelf = shelves[own]
    runs: list[list[Sentence]] = []
    for number in sorted(shelf.chosen):
        sentence = shelf.sentences[number - 1]
        if runs and runs[-1][-1].number == number - 1 and runs[-1][-1].heading_path == sentence.heading_path:
            runs[-1].append(sentence)
        else:
            runs.append([sentence])
    whole = [_without_last_headings(shelf, run) for run in runs]
    return [_evidence(shelf, run, _also(shelves, own, run, places)) for run in whole]


def _also(
    shelves: _Shelves, own: int, run: Sequence[Sentence], places: dict[str, list[tuple[int, int]]]
) -> tuple[str, ...]:
    """Return the citations of other pages that hold a passage's best sentence, with as much around as they share."""
    shelf = shelves[own]
    best = max(range(len(run)), key=lambda place: shelf.chosen[run[place].number].score.value)
    keys = [_key(sentence, own) for sentence in run]
    cited: dict[int, str] = {}
    for place, number in places.get(keys[best], ()):
        other = shelves[place]
        if place in cited or other.document.page.final_url == shelf.document.page.final_url:
            continue
        low = high = number
        for step in range(best - 1, -1, -1):
            if low < 2 or _key(other.sentences[low - 2], place) != keys[step]:
                break
            low -= 1
        for step in range(best + 1, len(run)):
            if high >= len(other.sentences) or _key(other.sentences[high], place) != keys[step]:
                break
            high += 1
        cited[place] = cite(other.document, other.sentences[low - 1].start, other.sentences[high - 1].end)
    return tuple(cited.values())


def _without_last_headings(shelf: _Shelf, run: list[Sentence]) -> list[Sentence]:
    """A heading at the end of a passage announces what is not there; a passage that is only a heading stays."""
    while len(run) > 1 and shelf.document.blocks[run[-1].block].kind == "heading":
        run = run[:-1]
    return run


def _evidence(shelf: _Shelf, run: Sequence[Sentence], also: tuple[str, ...]) -> Evidence:
    document = shelf.document
    best = max((shelf.chosen[s.number] for s in run), key=lambda item: item.score.value)
    return Evidence(
        text=passage_text(document, run),
        url=document.page.final_url,
        title=document.page.title,
        block_path=document.blocks[run[0].block].path,
        sentences=tuple(s.number for s in run),
        score=best.score,
        citation=cite(document, run[0].start, run[-1].end),
        heading_path=headings_to_show(document.page.title, run[0].heading_path),
        published=document.page.published,
        author=document.page.author,
        also=also,
    )
