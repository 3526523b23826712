"""A search in one call: PARSER → providers → mixed ranking, as a ranked list within a budget.

Not for: evidence from the pages that are found (`pipeline/research.py`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pipeline.document.units import split_sentences
from pipeline.evidence.show import GAP, Sheet, injection_line, shortened
from pipeline.fetch.handles import page_handle
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25
from pipeline.search.mixed import RankedPage
from pipeline.services import Services
from pipeline.sources.gather import (
    Gathered,
    Wanted,
    gather_pages,
    provider_lines,
)
from pipeline.text.frame import (
    framed,
    headline,
    inert,
    is_injection,
    new_delimiter,
    notice,
    one_line,
    source_line,
)
from pipeline.text.tokens import count_tokens
from pipeline.text.words import language_of
from pipeline.work import Report
from readers.page import Document

LEAD: Final = 2
"""Maximum room of a hit, in even shares: a truncated passage may lose the answer."""
ENDING_TOKENS: Final = 80
"""Room kept for the lines after the list."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked page of the list."""

    ranked: RankedPage
    document: Document | None
    """The page, where it was read."""
    handle: str
    """Handle of the page as read; "" where it was not."""
    injection: bool
    """Whether title or passage may be a prompt injection."""

    @property
    def words(self) -> str:
        """Its best passage, else the snippet of the search."""
        return self.ranked.passage or self.ranked.result.snippet

    @property
    def published(self) -> str:
        """Its date as the search says it, else as the page does."""
        read = self.document.page.published if self.document else ""
        return self.ranked.result.published or read


@dataclass(frozen=True, slots=True)
class HitList:
    """The list as text, and what it was made of."""

    gathered: Gathered
    hits: tuple[Hit, ...]
    sheet: Sheet
    shown: int
    """Hits that fit, the first ones."""
    delimiter: str
    """The answer's own delimiter for untrusted text."""

    @property
    def providers(self) -> list[str]:
        """Return a line for each provider with its status and reason."""
        return provider_lines(self.gathered.outcomes, self.delimiter)


async def search_pages(
    wanted: Wanted, services: Services, *, max_tokens: int, report: Report
) -> HitList:
    """Search for `wanted` and return the list of ranked pages in at most `max_tokens`.

    Raises `SearchFailed`: no provider could answer."""
    gathered = await gather_pages(wanted, services, report=report)
    hits = tuple(
        _hit(page, gathered.documents.get(page.result.url)) for page in gathered.ranked
    )
    delimiter = new_delimiter()
    sheet = Sheet(max_tokens, reserve=min(ENDING_TOKENS, max_tokens // 5))
    if hits:
        sheet.add_cut(notice(delimiter))

    shown = _fill(sheet, hits, delimiter, wanted.question)
    sheet.release()
    speaking = (str(hit.ranked.place) for hit in hits[:shown] if hit.injection)
    sheet.add(injection_line(speaking))
    if not (hits or gathered.parsed.needless):
        sheet.add_cut(
            "Nothing was found. Try other words, or another freshness or language."
        )
    if shown < len(hits):
        sheet.add_cut(f"Results that did not fit: {len(hits) - shown}.")
    return HitList(gathered, hits, sheet, shown, delimiter)


def _hit(ranked: RankedPage, document: Document | None) -> Hit:
    handle = page_handle(document.page) if document else ""
    hit = Hit(ranked, document, handle, injection=False)
    return replace(
        hit, injection=is_injection(f"{hit.ranked.result.title}\n{hit.words}")
    )


def _fill(sheet: Sheet, hits: Sequence[Hit], delimiter: str, question: Question) -> int:
    """Write hits until one does not fit; return the number of those that fit.

    Each gets an even share of the room, up to `LEAD` shares where the bare lines of the others
    still fit."""
    bare = [_entry(hit, delimiter, "") for hit in hits]
    costs = [count_tokens(entry) + 1 for entry in bare]
    for number, hit in enumerate(hits):
        even = sheet.room // (len(hits) - number)
        room = min(LEAD * even, sheet.room - sum(costs[number + 1 :]))
        frame = count_tokens(f"{bare[number]}\n{framed('.', delimiter)}")
        passage = excerpt(hit.words, question, max(0, room - frame))
        if not (sheet.add(_entry(hit, delimiter, passage)) or sheet.add(bare[number])):
            return number
    return len(hits)


def excerpt(text: str, question: Question, max_tokens: int) -> str:
    """Return a passage on one line within `max_tokens`: the sentence that bears most on
    `question`, with the sentences around it that fit, first those after it."""
    text = inert(text)
    spans = split_sentences(text)
    if count_tokens(one_line(text)) <= max_tokens or len(spans) < 2:
        return shortened(one_line(text), max_tokens)
    sentences = [one_line(text[start:stop]) for start, stop in spans]
    language = language_of(text, "")
    scores = BM25(sentences, language=language).scores(question.translated_to(language))

    def quoted(start: int, stop: int) -> str:
        gaps = GAP if start else "", GAP if stop < len(sentences) else ""
        return " ".join(filter(None, (gaps[0], *sentences[start:stop], gaps[1])))

    start = int(scores.argmax())
    stop = start + 1
    while stop < len(sentences) and count_tokens(quoted(start, stop + 1)) <= max_tokens:
        stop += 1
    while start and count_tokens(quoted(start - 1, stop)) <= max_tokens:
        start -= 1
    return shortened(quoted(start, stop), max_tokens)


def _entry(hit: Hit, delimiter: str, passage: str) -> str:
    result = hit.ranked.result
    url, address = source_line(result.url)
    titled = headline(result.title, hit.published, author=result.author)
    words = "\n".join(filter(None, (address, titled, passage)))
    head = "\n".join(filter(None, (f"{hit.ranked.place}. {url}", hit.handle)))
    return f"{head}\n{framed(words, delimiter)}" if words else head
