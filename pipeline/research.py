"""The whole zero-index pipeline in one call: question in, enriched prompt with cited evidence out (zero-index §2).

Reads as its numbered steps, each a call. Not for: the answer itself, which the calling model writes from the evidence.
"""

import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.assemble import Assembled, assemble
from pipeline.documents import Document, Extraction, Page, SearchResult
from pipeline.extract.extract import extract
from pipeline.frame import new_mark, notice, one_line
from pipeline.gather import Gathered, Wanted, gather_pages
from pipeline.rank.mixed import RankedPage
from pipeline.services import Services
from pipeline.sheet import Sheet, shortened
from pipeline.show import LINKS_FROM, UNSURE
from pipeline.tokens import count_tokens
from pipeline.work import Report, in_thread
from prompts import load

FOOT_SHARE: Final = 0.1
"""Part of the budget kept for what was searched, what failed and what was left out."""
FOOT_MOST: Final = 150
"""The same in tokens, for large budgets."""


@dataclass(frozen=True, slots=True)
class Researched:
    """The enriched prompt and everything it stands on."""

    text: str
    tokens: int
    """Exactly `count_tokens(text)`."""
    gathered: Gathered
    extraction: Extraction
    assembled: Assembled


async def research(wanted: Wanted, services: Services, *, max_tokens: int, report: Report) -> Researched:
    """Answer `wanted.question` with evidence, within `max_tokens`.

    Raises:
        SearchFailed: No provider could answer.
    """
    # 1.–4. PARSER, search, fetch, mixed ranking
    gathered = await gather_pages(wanted, services, report=report)
    # 5. Documents, best page first; a page that did not come is represented by its snippet
    documents = [await _document(ranked, gathered, services) for ranked in gathered.ranked]
    # 6. EXTRACTOR: the sentences that answer, or None
    question = gathered.parsed.standalone or wanted.question
    extraction = await extract(question, documents, embedder=services.embedder, reranker=services.reranker)
    await report(9, 10, extraction.reason)
    # 7. Assemble the enriched prompt within the budget
    text, assembled = await in_thread(_enriched, wanted, gathered, documents, extraction, services, max_tokens)
    await report(10, 10, f"{len(assembled.evidence)} passages")
    return Researched(text, count_tokens(text), gathered, extraction, assembled)


async def _document(ranked: RankedPage, gathered: Gathered, services: Services) -> Document:
    result = ranked.result
    if result.url in gathered.documents:
        return gathered.documents[result.url]
    return await services.reader.read(_snippet_page(result))


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
    wanted: Wanted,
    gathered: Gathered,
    documents: Sequence[Document],
    extraction: Extraction,
    services: Services,
    max_tokens: int,
) -> tuple[str, Assembled]:
    mark = new_mark()
    foot_room = min(int(max_tokens * FOOT_SHARE), FOOT_MOST)
    prompt = load("enriched")
    values = {
        "question": shortened(one_line(wanted.question), max_tokens // 4),
        "date": services.today().isoformat(),
        "notice": notice(mark),
    }
    empty = count_tokens(prompt.fill(**values, evidence=UNSURE))
    room = max(0, max_tokens - foot_room - empty)
    assembled = assemble(documents, extraction, max_tokens=room, mark=mark, links=max_tokens >= LINKS_FROM)
    body = assembled.shown.text or f"No answer found. {extraction.reason}"
    if extraction.verdict == "unsure" and assembled.shown.text:
        body = f"{UNSURE}\n{body}"
    sheet = Sheet(max_tokens)
    sheet.add_cut(prompt.fill(**values, evidence=body))
    for line in _foot(wanted, gathered, assembled, extraction, max_tokens):
        sheet.add_cut(line)
    return sheet.text, assembled


def _foot(
    wanted: Wanted, gathered: Gathered, assembled: Assembled, extraction: Extraction, max_tokens: int
) -> list[str]:
    lines = []
    if assembled.left_out:
        lines.append(
            f"Left out: {assembled.left_out} weaker sentences; ask again with max_tokens={min(2 * max_tokens, 20_000)}."
        )
    if extraction.verdict == "none" and gathered.ranked:
        seen = ", ".join(one_line(ranked.result.url) for ranked in gathered.ranked[:5])
        lines.append(f"Looked at {len(gathered.ranked)} pages: {seen}")
    queries = "; ".join(f'"{one_line(query.text)}"' for query in gathered.parsed.queries)
    told = (f"{o.provider}: {o.status}" + (f" ({one_line(o.reason)})" if o.reason else "") for o in gathered.outcomes)
    answers = ", ".join(dict.fromkeys(told))
    lines.append(f"Searched: {queries} ({answers}).")
    lines.extend(f"Not read: {one_line(f.source)}: {one_line(f.reason)}" for f in gathered.failures[:5])
    return lines
