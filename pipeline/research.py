"""The whole zero-index pipeline in one call: question in, enriched prompt with cited evidence out (zero-index §2).

Reads as its numbered steps, each a call. Not for: the answer itself, which the calling model writes from the evidence.
"""

import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import anyio

from errors import without_password
from pipeline.answer import Answer, Writing, write_answer
from pipeline.documents import Document, Page, Reading, SearchResult
from pipeline.evidence.assemble import UNASKED, Assembled, assemble
from pipeline.evidence.sheet import Sheet, shortened
from pipeline.evidence.show import FRAME_SHARE, doubt, notice_within
from pipeline.extract.extract import extract, left_unread, unless_cut
from pipeline.gather import Gathered, Wanted, gather_pages
from pipeline.messages import ANSWER_TOKENS
from pipeline.rank.mixed import RankedPage
from pipeline.services import Services
from pipeline.sources import room_for
from pipeline.text.frame import address, framed, new_mark, notice, one_line, quoted
from pipeline.text.tokens import count_tokens
from pipeline.work import Report, in_thread
from prompts import load

FOOT_SHARE: Final = 0.05
"""Part of the budget kept for what failed and how to go on."""
FOOT_MOST: Final = 150
"""The same in tokens, for large budgets."""


@dataclass(frozen=True, slots=True)
class Researched:
    """The enriched prompt and everything it stands on."""

    text: str
    tokens: int
    """Exactly `count_tokens(text)`."""
    gathered: Gathered
    reading: Reading
    assembled: Assembled
    mark: str
    """The answer's own mark for untrusted text."""
    written: Answer | None = None
    """The local generator's answer, where it was wanted."""


async def research(
    wanted: Wanted, services: Services, *, max_tokens: int, report: Report, write: bool = False
) -> Researched:
    """Answer `wanted.question` with evidence, within `max_tokens`; with `write`, also with a written answer.

    Raises:
        SearchFailed: No provider could answer.
    """
    began = anyio.current_time()
    # 1.–4. PARSER, search, fetch, mixed ranking
    gathered = await gather_pages(wanted, services, report=report)
    # 5. Documents, best page first; a page that did not come is represented by its snippet
    documents = [await _document(ranked, gathered, services) for ranked in gathered.ranked]
    # 6. EXTRACTOR: the core's reading of all of them, or None
    reading = await extract(wanted.question, documents, reader=services.reader, asking=services.asking)
    gathered = replace(gathered, failures=(*gathered.failures, *left_unread(reading)))
    reading = unless_cut(reading, gathered.missing())
    await report(9, 10, reading.reason)
    # 7. Assemble the enriched prompt within the budget
    most = max_tokens or UNASKED
    room = most - (min(ANSWER_TOKENS, most // 3) if write else 0)
    text, assembled, mark = await in_thread(
        _enriched, gathered, documents, reading, services, room, open_end=not max_tokens
    )
    # 8. Where it is wanted, the local generator's answer, each sentence checked
    left = services.seconds - (anyio.current_time() - began)
    written = await _written(wanted.question, assembled, services, seconds=left) if write else None
    if written is not None:
        text = _above(written, text, mark, most)
    await report(10, 10, f"{len(assembled.evidence)} passages")
    return Researched(text, count_tokens(text), gathered, reading, assembled, mark, written)


async def _written(question: str, assembled: Assembled, services: Services, *, seconds: float) -> Answer:
    if services.generator is None:
        return Answer((), "", 0, "No answer was written: no generator is set (WINNOW_GENERATOR).")
    writing = Writing(services.generator, services.stores.scores, max(seconds, 0.0), services.today())
    return await write_answer(question, assembled.evidence, assembled.shown.labels, writing)


def _above(written: Answer, text: str, mark: str, max_tokens: int) -> str:
    """Return `text` with the written answer above it; what a model wrote from strangers' pages is framed as theirs."""
    sheet = Sheet(max_tokens)
    room = max_tokens - count_tokens(text) - 1
    if written.failure:
        sheet.add(shortened(one_line(written.failure), room))
    else:
        head = f"Answer by {one_line(written.model)} from {written.shown} passages, checked word by word:"
        around = count_tokens(f"{head}\n{framed('-', mark)}")
        sheet.add(f"{head}\n{framed(shortened(written.text, max(0, room - around)), mark)}")
    sheet.add_cut(text)
    return sheet.text


async def _document(ranked: RankedPage, gathered: Gathered, services: Services) -> Document:
    result = ranked.result
    if result.url in gathered.documents:
        return gathered.documents[result.url]
    return await services.documents.read(_snippet_page(result))


def _snippet_page(result: SearchResult) -> Page:
    return Page(
        url=result.url,
        final_url=result.url,
        title=result.title,
        html=f"<p>{html.escape(result.snippet)}</p>",
        media_type="text/html",
        published=result.published,
        content_hash=hashlib.blake2b(f"{result.url}\n{result.snippet}".encode(), digest_size=16).hexdigest(),
        notes=("only the search snippet; the page itself was not read",),
    )


def _enriched(
    gathered: Gathered,
    documents: Sequence[Document],
    reading: Reading,
    services: Services,
    max_tokens: int,
    *,
    open_end: bool,
) -> tuple[str, Assembled, str]:
    mark = new_mark()
    prompt = load("enriched")
    values = {"date": services.today().isoformat(), "notice": notice(mark)}
    # The instructions of the enriched prompt stand there where they leave the words their share.
    instructed = count_tokens(prompt.fill(**values, evidence="")) <= FRAME_SHARE * max_tokens / 2
    head = prompt.fill(**values, evidence="").strip() if instructed else notice_within(mark, max_tokens)
    foot = max(min(int(max_tokens * FOOT_SHARE), FOOT_MOST), room_for(gathered.failures, max_tokens))
    sheet = Sheet(max_tokens, reserve=foot)
    sheet.add(head)
    sheet.add(doubt(reading))
    assembled = assemble(documents, reading, max_tokens=sheet.room, mark=mark, open_end=open_end)
    why = reading.reason if documents else "There were no pages to read."
    sheet.add_cut(assembled.shown.text or f"No answer found. {why}")
    sheet.release()
    for line in _foot(gathered, reading):
        sheet.add_cut(line) if reading.verdict == "none" else sheet.add(line)
    # A provider's own words stand between marks, so they are written whole or not at all.
    for told in dict.fromkeys(f"{o.provider}: {quoted(o.reason, mark)}" for o in gathered.outcomes if o.reason):
        sheet.add(told)
    return sheet.text, assembled, mark


def _foot(gathered: Gathered, reading: Reading) -> list[str]:
    """Return what was not read, and what was searched: failures always, all of it where nothing answers."""
    lines = [f"Not read: {address(f.source)}: {without_password(one_line(f.reason))}" for f in gathered.failures[:5]]
    answers = ", ".join(dict.fromkeys(f"{outcome.provider}: {outcome.status}" for outcome in gathered.outcomes))
    if gathered.parsed.fallback:
        lines.append(one_line(gathered.parsed.fallback))
    if reading.verdict == "none" and gathered.ranked:
        seen = ", ".join(address(ranked.result.url) for ranked in gathered.ranked[:5])
        lines.append(f"Looked at {len(gathered.ranked)} pages: {seen}")
    queries = "; ".join(f'"{one_line(query.text)}"' for query in gathered.parsed.queries)
    if reading.verdict == "none" or any(o.status != "ok" for o in gathered.outcomes):
        lines.append(f"Searched: {queries} ({answers}).")
    return lines
