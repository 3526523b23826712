"""The whole zero-index pipeline in one call: question in, enriched prompt with cited
evidence out (zero-index §2).

Reads as its numbered steps, each a call. Not for: the search
(`pipeline/sources/gather.py`), or the answer itself, which the calling model writes
from the evidence."""

import hashlib
import html
from dataclasses import dataclass
from functools import partial

import anyio

from pipeline.answer import Answer, answer, read_within
from pipeline.evidence.assemble import UNASKED, Assembled
from pipeline.evidence.show import FRAME_SHARE, notice_within, shortened, verdict_text
from pipeline.generated import CheckedAnswer, Writing, write_answer
from pipeline.messages import ANSWER_TOKENS
from pipeline.question.question import Question
from pipeline.reading.reading import Reading
from pipeline.search.mixed import RankedPage
from pipeline.search.query import SearchResult
from pipeline.services import Services
from pipeline.sources.gather import Gathered, Wanted, gather_pages
from pipeline.text.frame import framed, notice, one_line
from pipeline.text.tokens import count_tokens
from pipeline.work import Report
from prompts import load
from readers.page import Document, Page


@dataclass(frozen=True, slots=True)
class Researched:
    """The enriched prompt, and how its pages were found."""

    gathered: Gathered
    answer: Answer
    written: CheckedAnswer | None = None
    """The local generator's answer, where it was wanted."""


async def research(
    request: Wanted,
    services: Services,
    *,
    max_tokens: int,
    reserve: int,
    report: Report,
    write: bool = False,
    note: str = "",
) -> Researched:
    """Answer `request.question` with evidence; with `write`, also with a written answer.

    `note` is a line above the evidence. For `max_tokens` and `reserve` see `answer`.

    Raises `SearchFailed`: no provider could answer. A failing model is only named."""
    began = anyio.current_time()
    # 1. Load: PARSER, search, fetch, mixed ranking; a page that did not come is
    # represented by its snippet
    gathered = await gather_pages(request, services, report=report)
    documents = [await _document(page, gathered, services) for page in gathered.ranked]
    # 2.-7. EXTRACTOR, and the enriched prompt
    budget = max_tokens or UNASKED
    written_tokens = min(ANSWER_TOKENS, budget // 3) if write else 0
    answered = await answer(
        partial(read_within, request.question, services, documents),
        gathered.missing(),
        max_tokens=max_tokens,
        reserve=reserve + written_tokens,
        head=partial(_head, note, budget - written_tokens, services),
    )
    await report(9, 10, verdict_text(answered.reading))
    # 8. Where it is wanted, the local generator's answer, each sentence checked
    written = None
    if write:
        seconds_left = services.seconds - (anyio.current_time() - began)
        written = await _written(
            request.question, answered.assembled, services, seconds=seconds_left
        )
        _write_above(written, answered, written_tokens)
    count = len(answered.assembled.evidence)
    await report(10, 10, f"{count} passage{'s' * (count != 1)}")
    return Researched(gathered, answered, written)


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


def _write_above(written: CheckedAnswer, answered: Answer, max_tokens: int) -> None:
    """Write the written answer above everything else, or why there is none, within
    `max_tokens`; what a model wrote from outside pages is framed as outside text."""
    text = shortened(one_line(written.failure), max_tokens)
    if not written.failure:
        head = (
            f"Answer by {one_line(written.model)} from {written.shown} passages, checked word "
            f"by word:"
        )
        delimiter = answered.delimiter
        frame_tokens = count_tokens(f"{head}\n{framed('-', delimiter)}")
        words = shortened(written.text, max(0, max_tokens - frame_tokens))
        text = f"{head}\n{framed(words, delimiter)}"
    answered.sheet.add(text, first=True)


async def _document(
    ranked: RankedPage, gathered: Gathered, services: Services
) -> Document:
    result = ranked.result
    if result.url in gathered.documents:
        return gathered.documents[result.url]
    return await services.documents.read(_snippet_page(result))


def _snippet_page(result: SearchResult) -> Page:
    """Return a page with only the snippet of a result."""
    return Page(
        url=result.url,
        final_url=result.url,
        title=result.title,
        html=f"<p>{html.escape(result.snippet)}</p>",
        media_type="text/html",
        author=result.author,
        published=result.published,
        doi=result.doi,
        content_hash=hashlib.blake2b(
            f"{result.url}\n{result.snippet}".encode(), digest_size=16
        ).hexdigest(),
        trust="snippet",
    )


def _head(
    note: str, max_tokens: int, services: Services, reading: Reading, delimiter: str
) -> str:
    """Return the instructions for the caller's model, and `note`.

    A small budget or a `none` leaves the instructions out: they are there if they leave
    enough of the budget to passages."""
    prompt = load("enriched")
    values = {"date": services.today().isoformat(), "notice": notice(delimiter)}
    instructions = prompt.fill(**values, evidence="").strip()
    fits = count_tokens(instructions) <= FRAME_SHARE * max_tokens / 2
    instructed = reading.verdict != "none" and fits
    head = instructions if instructed else notice_within(delimiter, max_tokens)
    return "\n".join(filter(None, (head, note)))
