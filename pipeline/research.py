"""The whole zero-index pipeline in one call: question in, enriched prompt with cited
evidence out (zero-index §2).

Reads as its numbered steps, each a call. Not for: the search
(`pipeline/sources/gather.py`), or the answer itself, which the calling model writes
from the evidence."""

import hashlib
import html
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import anyio

from pipeline.answer import settled, write
from pipeline.evidence.assemble import UNASKED, Assembled
from pipeline.evidence.show import (
    FRAME_SHARE,
    Sheet,
    hint_room,
    notice_within,
    shortened,
    verdict_text,
)
from pipeline.generated import CheckedAnswer, Writing, write_answer
from pipeline.messages import ANSWER_TOKENS
from pipeline.question.question import Question
from pipeline.reading.extract import (
    extract,
    read_documents,
)
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import Blend
from pipeline.search.mixed import RankedPage
from pipeline.search.query import SearchOutcome, SearchResult
from pipeline.services import Services
from pipeline.sources.gather import (
    Gathered,
    Wanted,
    gather_pages,
    room_for,
)
from pipeline.text.frame import (
    failure_text,
    framed,
    new_delimiter,
    notice,
    one_line,
    quoted,
    shown_location,
)
from pipeline.text.tokens import count_tokens
from pipeline.work import LONG_SHARE, Report, in_thread, time_left
from prompts import load
from readers.page import Document, Page, Trust


@dataclass(frozen=True, slots=True)
class Researched:
    """The enriched prompt and its evidence."""

    text: str
    tokens: int
    """Exactly `count_tokens(text)`."""
    gathered: Gathered
    documents: tuple[Document, ...]
    """The pages that were read, best first."""
    reading: Reading
    assembled: Assembled
    delimiter: str
    """The answer's own delimiter around untrusted text."""
    written: CheckedAnswer | None = None
    """The local generator's answer, where it was wanted."""


async def research(
    request: Wanted,
    services: Services,
    *,
    max_tokens: int,
    report: Report,
    write: bool = False,
    note: str = "",
) -> Researched:
    """Answer `request.question` with evidence, within `max_tokens`; with `write`, also
    with a written answer.

    `note` is a line above the evidence. With 0 `max_tokens` the budget is
    `UNASKED`, and weak passages are left out.

    Raises `SearchFailed`: no provider could answer. A failing model is only named."""
    began = anyio.current_time()
    # 1.–4. PARSER, search, fetch, mixed ranking
    gathered = await gather_pages(request, services, report=report)
    # 5.–6. Documents, best page first; EXTRACTOR: the core's reading of all of them, or None
    documents, reading = await _read(request.question, gathered, services)
    if not documents:
        reading = replace(reading, note="No pages were found.")
    reading, unread = settled(reading, documents, gathered.missing())
    gathered = replace(gathered, failures=(*gathered.failures, *unread))
    await report(9, 10, verdict_text(reading))
    # 7. Assemble the enriched prompt within the budget
    budget = max_tokens or UNASKED
    room = budget - (min(ANSWER_TOKENS, budget // 3) if write else 0)
    text, assembled, delimiter = await in_thread(
        enriched,
        gathered,
        documents,
        reading,
        services,
        room,
        note,
        open_end=not max_tokens,
    )
    # 8. Where it is wanted, the local generator's answer, each sentence checked
    seconds_left = services.seconds - (anyio.current_time() - began)
    written = (
        await _written(request.question, assembled, services, seconds=seconds_left)
        if write
        else None
    )
    if written is not None:
        text = _above(written, text, delimiter, budget)
    await report(
        10,
        10,
        f"{len(assembled.evidence)} passage{'s' * (len(assembled.evidence) != 1)}",
    )
    return Researched(
        text,
        count_tokens(text),
        gathered,
        tuple(documents),
        reading,
        assembled,
        delimiter,
        written,
    )


async def _read(
    question: Question, gathered: Gathered, services: Services
) -> tuple[list[Document], Reading]:
    """Return the pages with their reading; without time for that, only their best
    passages, by words."""
    with anyio.move_on_after(LONG_SHARE * time_left()):
        # A page that did not come is represented by its snippet.
        documents = [
            await _document(ranked, gathered, services) for ranked in gathered.ranked
        ]
        reading = await extract(
            question,
            documents,
            reader=services.reader,
            extractor=services.extractor,
        )
        return documents, reading
    short_pages = [
        await services.documents.read(
            _short_page(page.result, page.passage, trust="visible")
        )
        for page in gathered.ranked
    ]
    reading = await read_documents(
        question, short_pages, reader=Blend(None), seconds=services.seconds
    )
    return short_pages, replace(reading, late=True)


async def _written(
    question: Question, assembled: Assembled, services: Services, *, seconds: float
) -> CheckedAnswer:
    if services.generator is None:
        return CheckedAnswer(
            (), "", 0, "No answer was written: no generator is set (WINNOW_GENERATOR)."
        )
    writing = Writing(
        services.generator, services.stores.scores, max(seconds, 0.0), services.today()
    )
    return await write_answer(
        question.text, assembled.evidence, assembled.shown.labels, writing
    )


def _above(written: CheckedAnswer, text: str, delimiter: str, max_tokens: int) -> str:
    """Return `text` with the written answer above it; what a model wrote from outside
    pages is framed as outside text. Both are cut to `max_tokens`; a failure is written
    in place of the answer."""
    sheet = Sheet(max_tokens)
    room = max_tokens - count_tokens(text) - 1
    if written.failure:
        sheet.add(shortened(one_line(written.failure), room))
    else:
        head = (
            f"Answer by {one_line(written.model)} from {written.shown} passages, checked word "
            f"by word:"
        )
        frame_tokens = count_tokens(f"{head}\n{framed('-', delimiter)}")
        sheet.add(
            f"{head}\n{framed(shortened(written.text, max(0, room - frame_tokens)), delimiter)}"
        )
    sheet.add_cut(text)
    return sheet.text


async def _document(
    ranked: RankedPage, gathered: Gathered, services: Services
) -> Document:
    result = ranked.result
    if result.url in gathered.documents:
        return gathered.documents[result.url]
    return await services.documents.read(
        _short_page(result, result.snippet, trust="snippet")
    )


def _short_page(result: SearchResult, text: str, *, trust: Trust) -> Page:
    """Return a page with only the passage or snippet of a result."""
    return Page(
        url=result.url,
        final_url=result.url,
        title=result.title,
        html=f"<p>{html.escape(text)}</p>",
        media_type="text/html",
        author=result.author,
        published=result.published,
        doi=result.doi,
        content_hash=hashlib.blake2b(
            f"{result.url}\n{text}".encode(), digest_size=16
        ).hexdigest(),
        trust=trust,
    )


def enriched(
    gathered: Gathered,
    documents: Sequence[Document],
    reading: Reading,
    services: Services,
    max_tokens: int,
    note: str = "",
    *,
    open_end: bool,
) -> tuple[str, Assembled, str]:
    """Return the enriched prompt within `max_tokens`, its passages and its delimiter.

    `note` is a line above the evidence. With `open_end` weak passages are left out even
    if they fit. A small budget or a `none` leaves the instructions out. Without passages the text says why no answer
    was found."""
    delimiter = new_delimiter()
    prompt = load("enriched")
    values = {"date": services.today().isoformat(), "notice": notice(delimiter)}
    # The instructions are included if they leave enough of the budget to passages.
    filled = count_tokens(prompt.fill(**values, evidence=""))
    instructed = reading.verdict != "none" and filled <= FRAME_SHARE * max_tokens / 2
    head = (
        prompt.fill(**values, evidence="").strip()
        if instructed
        else notice_within(delimiter, max_tokens)
    )
    sheet = Sheet(
        max_tokens,
        reserve=hint_room(max_tokens) + room_for(gathered.failures, max_tokens),
    )
    assembled = write(
        documents,
        reading,
        sheet,
        delimiter,
        head="\n".join(filter(None, (head, note))),
        open_end=open_end,
    )
    sheet.release()
    for line in _foot(
        gathered, reading, {passage.url for passage in assembled.evidence}
    ):
        sheet.add_cut(line) if reading.verdict == "none" else sheet.add(line)
    # A provider's message is quoted between delimiters, so it is written whole or not
    # at all. What a provider can never search bears on a verdict that nothing answers.
    messages = dict.fromkeys(
        (outcome.provider, message)
        for outcome in _outcomes_to_name(gathered.outcomes)
        for message, is_said in (
            (outcome.reason, outcome.status != "ok" or reading.verdict != "answered"),
            (outcome.unsearched, reading.verdict == "none"),
        )
        if message and is_said
    )
    for provider, message in messages:
        sheet.add(f"{provider}: {quoted(message, delimiter)}")
    return sheet.text, assembled, delimiter


def _outcomes_to_name(outcomes: Sequence[SearchOutcome]) -> list[SearchOutcome]:
    """Return the outcomes without the empty ones of a provider that found something by
    another wording of the question."""
    answering = {outcome.provider for outcome in outcomes if outcome.status == "ok"}
    return [
        outcome
        for outcome in outcomes
        if outcome.status != "empty" or outcome.provider not in answering
    ]


def _foot(
    gathered: Gathered, reading: Reading, quoted_pages: AbstractSet[str]
) -> list[str]:
    """Return what was not read, and what was searched: failures always, all of it where
    nothing answers.

    What a page lacks that an answer does not quote is no matter of that answer. At most
    five failures are listed."""
    aside = reading.verdict == "answered"
    failures = [
        failure
        for failure in gathered.failures
        if not (aside and failure.page and failure.page not in quoted_pages)
    ]
    sources: dict[str, list[str]] = {}
    for failure in failures[:5]:
        sources.setdefault(failure.reason, []).append(failure.source)
    lines = [
        f"Not read: {', '.join([*map(shown_location, earlier), failure_text(source, reason)])}"
        for reason, (*earlier, source) in sources.items()
    ]
    outcomes = _outcomes_to_name(gathered.outcomes)
    answers = ", ".join(
        dict.fromkeys(f"{outcome.provider}: {outcome.status}" for outcome in outcomes)
    )
    lines += gathered.notes
    texts = [query.text for query in gathered.parsed.queries]
    queries = "; ".join(
        f'"{one_line(text)}"' for text in texts if text != reading.question.text
    )
    is_reworded = reading.verdict == "none" and (queries or len(outcomes) > 1)
    if is_reworded or any(outcome.status != "ok" for outcome in outcomes):
        lines.append(
            f"Searched: {queries} ({answers})." if queries else f"Searched: {answers}."
        )
    return lines
