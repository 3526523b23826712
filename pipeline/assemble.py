"""Filling a token budget with evidence from several pages (design §4 Assemble; zero-index §4).

Takes scored sentences, returns verbatim passages grouped by page and the text that shows them. Pages that answer are
opened as the budget bears, a cap keeps one page from taking all, and what is left over is counted. Not for: scoring
(`pipeline/extract`) or finding pages (`pipeline/gather.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.documents import Document, Evidence, Extraction, ScoredSentence, Sentence
from pipeline.extract.antecedent import antecedents
from pipeline.extract.cite import cite
from pipeline.frame import one_line
from pipeline.show import Shown, headings_to_show, show_evidence
from pipeline.tokens import count_tokens

OPEN_SHARE: Final = 0.6
"""A page is opened only when its best sentence has at least this share of the best score of all."""
TOKENS_A_PAGE: Final = 300
"""Budget for each page opened beyond the first: a page costs 40 to 60 tokens before its first word."""
PAGE_CAP: Final = 0.6
"""Most of the budget that one page may take while another page still has scored sentences."""
NEIGHBOUR_SHARE: Final = 0.25
"""Part of the budget for what stands around the chosen sentences: the rest of a list, the next rows of a table."""
NEIGHBOUR_REACH: Final = 12
"""How many sentences away from a chosen one a neighbour may stand."""
FILL_SHARE: Final = 0.2
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
"""Tokens of a page's number, marks and line breaks, before its title and address are counted."""


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
    chosen: dict[int, ScoredSentence]
    tokens: int = 0


def assemble(
    documents: Sequence[Document], extraction: Extraction, *, max_tokens: int, mark: str, links: bool = True
) -> Assembled:
    """Choose sentences best first until `max_tokens` are used, and write them out.

    Args:
        documents: Pages in the order they should be numbered.
        extraction: What was found in these documents; nothing is chosen from a `none`.
        max_tokens: Bound on `count_tokens` of the text, kept exactly.
        mark: The answer's own mark for untrusted text (`pipeline/frame.py`).
        links: Whether the text shows the link of every passage; each costs 20 to 40 tokens.
    """
    # 1. One shelf a document; duplicates across pages are taken once
    tagged = zip(documents, extraction.tagged, strict=False)
    shelves = [_Shelf(document, sentences, {}) for document, sentences in tagged]
    ranked = _without_repeats(_candidates(shelves, extraction.sentences))
    # 2. Which pages: those that answer, as many as the budget bears, each with its best sentence
    used = 0
    opened = _opened(ranked, 1 + max_tokens // TOKENS_A_PAGE)
    for item in opened.values():
        used += _take(shelves, item, max_tokens - used, links=links)
    # 3. Best first, within the cap of a page
    limit = int(max_tokens * (1 - NEIGHBOUR_SHARE))
    for item in ranked:
        if item.document not in opened:
            continue
        if len(opened) > 1 and shelves[item.document].tokens > PAGE_CAP * max_tokens:
            continue
        used += _take(shelves, item, limit - used, links=links)
    # 4. What pronoun-led sentences lean on, what stands around, then whatever still fits
    for item in [*_antecedents(shelves), *_neighbours(shelves, ranked), *ranked]:
        used += _take(shelves, item, max_tokens - used, links=links)
    # 5. Passages, text, and the last word on the budget
    order = {(item.document, item.sentence.number): place for place, item in enumerate(ranked)}
    while True:
        evidence = tuple(passage for shelf in shelves for passage in _passages(shelf))
        shown = show_evidence(evidence, mark, links=links)
        if shown.tokens <= max_tokens or not evidence:
            break
        _drop_least(shelves, order)
    chosen = {(place, number) for place, shelf in enumerate(shelves) for number in shelf.chosen}
    return Assembled(evidence, shown, sum(key not in chosen for key in order))


def _candidates(shelves: Sequence[_Shelf], scored: Sequence[ScoredSentence]) -> list[ScoredSentence]:
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
    seen: set[str] = set()
    kept = []
    for item in scored:
        key = "".join(item.sentence.text.lower().split())
        if key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def _opened(ranked: Sequence[ScoredSentence], most: int) -> dict[int, ScoredSentence]:
    """Return the best sentence of each page that may be shown, best page first."""
    best: dict[int, ScoredSentence] = {}
    for item in ranked:
        best.setdefault(item.document, item)
    worth = {place: item for place, item in best.items() if item.score.value >= OPEN_SHARE * ranked[0].score.value}
    return dict(list(worth.items())[:most])


def _take(shelves: Sequence[_Shelf], item: ScoredSentence, room: int, *, links: bool) -> int:
    """Put a sentence on its shelf if its estimated cost fits; return the cost, 0 when it stays out."""
    shelf = shelves[item.document]
    number = item.sentence.number
    if number in shelf.chosen:
        return 0
    cost = count_tokens(item.sentence.text) + 1
    if number - 1 not in shelf.chosen and number + 1 not in shelf.chosen:
        cost += PASSAGE_COST + count_tokens(
            " › ".join(headings_to_show(shelf.document.page.title, item.sentence.heading_path))
        )
        cost += LINK_COST if links else 0
    if not shelf.chosen:
        page = shelf.document.page
        cost += FRAME_COST + count_tokens(one_line(page.title)) + count_tokens(page.final_url)
    if cost > room:
        return 0
    shelf.chosen[number] = item
    shelf.tokens += cost
    return cost


def _antecedents(shelves: Sequence[_Shelf]) -> list[ScoredSentence]:
    """Sentences that chosen ones cannot be read without, with the scores of those."""
    found = []
    for place, shelf in enumerate(shelves):
        for number in antecedents(shelf.sentences, sorted(shelf.chosen)):
            leaning = next(shelf.chosen[n] for n in range(number, len(shelf.sentences) + 1) if n in shelf.chosen)
            found.append(ScoredSentence(place, shelf.sentences[number - 1], leaning.score))
    return found


def _neighbours(shelves: Sequence[_Shelf], ranked: Sequence[ScoredSentence]) -> list[ScoredSentence]:
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


def _drop_least(shelves: Sequence[_Shelf], order: dict[tuple[int, int], int]) -> None:
    last = max(
        ((place, number) for place, shelf in enumerate(shelves) for number in shelf.chosen),
        key=lambda key: order.get(key, len(order) + key[1]),
    )
    del shelves[last[0]].chosen[last[1]]


def _passages(shelf: _Shelf) -> list[Evidence]:
    runs: list[list[Sentence]] = []
    for number in sorted(shelf.chosen):
        sentence = shelf.sentences[number - 1]
        if runs and runs[-1][-1].number == number - 1 and runs[-1][-1].heading_path == sentence.heading_path:
            runs[-1].append(sentence)
        else:
            runs.append([sentence])
    return [_evidence(shelf, run) for run in (_without_last_headings(shelf, run) for run in runs)]


def _without_last_headings(shelf: _Shelf, run: list[Sentence]) -> list[Sentence]:
    """A heading at the end of a passage announces what is not there; a passage that is only a heading stays."""
    while len(run) > 1 and shelf.document.blocks[run[-1].block].kind == "heading":
        run = run[:-1]
    return run


def _evidence(shelf: _Shelf, run: Sequence[Sentence]) -> Evidence:
    document = shelf.document
    text = ""
    for before, sentence in zip([None, *run], run, strict=False):
        joint = "" if before is None else " " if before.block == sentence.block else "\n"
        text += joint + one_line(sentence.text)
    best = max((shelf.chosen[s.number] for s in run), key=lambda item: item.score.value)
    return Evidence(
        text=text,
        url=document.page.final_url,
        title=document.page.title,
        block_path=document.blocks[run[0].block].path,
        sentences=tuple(s.number for s in run),
        score=best.score,
        citation=cite(document, run[0].start, run[-1].end),
        heading_path=headings_to_show(document.page.title, run[0].heading_path),
        published=document.page.published,
    )
