"""The tool `search_web`: PARSER → providers → mixed ranking, shown as a ranked list (design §3).

Not for: reading pages at length (`fetch_and_prune_html`) or gathering evidence (`research`).
"""

import re
from datetime import date
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from errors import UsageError
from pipeline.documents import Document, SearchQuery, Trust
from pipeline.evidence.show import Sheet, shortened, told_speaking
from pipeline.fetch.handles import page_handle
from pipeline.gather import Gathered, Wanted, gather_pages
from pipeline.rank.mixed import RankedPage
from pipeline.text.frame import LONGEST, address, framed, headline, inert, new_mark, notice, one_line, speaks_to_models
from pipeline.text.tokens import count_tokens
from tools.context import (
    SPEAKS,
    TRUST,
    Next,
    ToolContext,
    answer,
    failures_of,
    larger,
    repeated,
    reporter,
    services_of,
    tell_failures,
    tell_rest,
    told,
    write_next,
)

DAY: Final = r"^(\d{4}-\d{2}-\d{2})?$"
REGION: Final = r"^([A-Za-z]{2})?$"

TOOL: Final = "search_web"
MOST_PAGES: Final = 10


class Hit(BaseModel):
    """One ranked page."""

    place: int = Field(description="1-based place after ranking, and number in the text part")
    url: str
    published: str = Field(description="ISO date, empty when unknown")
    language: str = Field(description="ISO 639-1 code, empty when unknown")
    handle: str = Field(
        description="Names the page as it was read; other tools take it without fetching again. Empty: not read"
    )
    engine: str = Field(description="Providers and engines that listed it")
    engine_rank: int = Field(description="Place in the provider's own order")
    score: float
    made_by: str = Field(description="What made the score")
    won_by: str = Field(description="Which item of the page won: its snippet, its content, or the engine's order")
    trust: Trust = Field(default="visible", description=TRUST)
    speaks: bool = Field(default=False, description=SPEAKS)


class SearchWebResult(BaseModel):
    """Structured part of the answer."""

    queries: list[str] = Field(description="Queries that were sent")
    entities: list[str] = Field(description="Names and unknown words, kept whole")
    freshness: str
    parsed_by: str = "rules"
    hits: list[Hit]
    providers: list[str] = Field(description="Each provider with its status and reason")
    failures: list[str] = Field(description="Pages that could not be read, with the reason")
    next: list[Next] = Field(description="Calls that go on from here, best first")
    tokens: int = Field(description="Tokens of the text part")


async def search_web(  # noqa: PLR0913, PLR0917  a tool's arguments are its schema
    question: Annotated[
        str,
        Field(description="What to find, in any language.", min_length=1, max_length=2000),
    ],
    ctx: ToolContext,
    max_results: Annotated[int, Field(description="Pages to return.", ge=1, le=20)] = 8,
    freshness: Annotated[
        Literal["any", "day", "week", "month", "year"], Field(description="Pages of this last period.")
    ] = "any",
    language: Annotated[str, Field(description="ISO 639-1 code, e.g. 'de'.", max_length=8)] = "",
    site: Annotated[str, Field(description="One host only.", max_length=253)] = "",
    after: Annotated[str, Field(description="First ISO day.", pattern=DAY)] = "",
    before: Annotated[str, Field(description="Last ISO day.", pattern=DAY)] = "",
    region: Annotated[str, Field(description="Country code, e.g. 'at'.", pattern=REGION)] = "",
    safe_search: Annotated[Literal["", "off", "moderate", "strict"], Field(description="Filter for adult pages.")] = "",
    page: Annotated[int, Field(description="Page of results.", ge=1, le=MOST_PAGES)] = 1,
    rank: Annotated[
        Literal["mixed", "snippet", "engine", "paper"],
        Field(description="snippet is faster than mixed."),
    ] = "mixed",
    max_tokens: Annotated[int, Field(description="Token budget.", ge=100, le=20000)] = 1500,
) -> Annotated[CallToolResult, SearchWebResult]:
    """Search the web (or the user's folders) for pages, ranked by how well they answer.

    For evidence on a question use research. To read a page found here pass its handle to fetch_and_prune_html. Put
    times into freshness, not into the question.
    """
    filters = SearchQuery(
        "", since=_day(after), until=_day(before), region=region, site=_host(site), safe=safe_search, page=page
    )
    wanted = Wanted(question, max_results, freshness, language, rank, filters=filters)
    gathered = await gather_pages(wanted, services_of(ctx), report=reporter(ctx))
    mark = new_mark()
    sheet, shown = _sheet(gathered, max_tokens, mark)
    following = [*_top(gathered), *repeated(TOOL, gathered.failures)]
    if shown < len(gathered.ranked):
        following.extend(larger(TOOL, max_tokens))
    elif len(gathered.ranked) >= max_results and page < MOST_PAGES:
        following.append(Next(tool=TOOL, arguments={"page": page + 1}))
    tell_rest(sheet, gathered.failures)
    write_next(sheet, following, TOOL)
    _add_notes(sheet, gathered, mark)
    return answer(sheet.text, _data(gathered, following, sheet.tokens, mark))


def _top(gathered: Gathered) -> list[Next]:
    """The call that reads the best page, by its handle where it was read already."""
    urls = [_handle(gathered, best) or address(best.result.url) for best in gathered.ranked[:1]]
    return [Next(tool="fetch_and_prune_html", arguments={"sources": urls})] if urls else []


def _day(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat() if value else ""
    except ValueError as error:
        raise UsageError(f"{value!r} is no day.", hint="Use a day of the calendar such as 2026-05-31.") from error


def _host(value: str) -> str:
    host = value.strip().lower().removeprefix("https://").removeprefix("http://").strip("/")
    if not re.fullmatch(r"[\w.-]*", host):
        raise UsageError(f"site is {value!r}.", hint="Use a host such as python.org, without a path.")
    return host


def _handle(gathered: Gathered, ranked: RankedPage) -> str:
    document = _document(gathered, ranked)
    return page_handle(document.page) if document is not None else ""


def _speaks(ranked: RankedPage) -> bool:
    return speaks_to_models(f"{ranked.result.title}\n{ranked.passage or ranked.result.snippet}")


def _trust(gathered: Gathered, ranked: RankedPage) -> Trust:
    document, shown = _document(gathered, ranked), ranked.passage or ranked.result.snippet
    # The engine's words may be the page's as well.
    if document is None or (shown == ranked.result.snippet and shown not in document.text):
        return "snippet"
    return document.page.trust


def _document(gathered: Gathered, ranked: RankedPage) -> Document | None:
    return gathered.documents.get(ranked.result.url)


def _language(gathered: Gathered, ranked: RankedPage) -> str:
    document = _document(gathered, ranked)
    return document.page.language if document is not None else ""


def _sheet(gathered: Gathered, max_tokens: int, mark: str) -> tuple[Sheet, int]:
    """Return the answer with the hits that fit, and how many those are."""
    sheet = Sheet(max_tokens, reserve=min(80, max_tokens // 5))
    shown = 0
    if gathered.ranked:
        sheet.add_cut(notice(mark))
    for left, ranked in zip(range(len(gathered.ranked), 0, -1), gathered.ranked, strict=True):
        handle = _handle(gathered, ranked)
        bare = _entry(shown + 1, ranked, handle, mark, 0)
        room = max(0, sheet.room // left - count_tokens(f"{bare}\n{framed('.', mark)}"))
        if not sheet.add(_entry(shown + 1, ranked, handle, mark, room)) and not sheet.add(bare):
            break
        shown += 1
    sheet.release()
    sheet.add(told_speaking(str(place) for place, one in enumerate(gathered.ranked[:shown], start=1) if _speaks(one)))
    if not gathered.ranked:
        sheet.add_cut("Nothing was found. Try other words, or another freshness or language.")
    if shown < len(gathered.ranked):
        sheet.add_cut(f"{len(gathered.ranked) - shown} more results did not fit.")
    return sheet, shown


def _add_notes(sheet: Sheet, gathered: Gathered, mark: str) -> None:
    for outcome in gathered.outcomes:
        if outcome.status != "ok" or outcome.reason:
            sheet.add(told(outcome, mark)) or sheet.add_cut(f"{outcome.provider}: {outcome.status}")
    for line in filter(None, (one_line(gathered.parsed.fallback), gathered.notice)):
        sheet.add_cut(line)
    tell_failures(sheet, gathered.failures)


def _entry(place: int, ranked: RankedPage, handle: str, mark: str, passage_tokens: int) -> str:
    result = ranked.result
    read = f"\n{handle}" if handle else ""
    passage = shortened(one_line(inert(ranked.passage or result.snippet)), passage_tokens)
    words = f"{headline(result.title, result.published, author=result.author)}\n{passage}".strip()
    head = f"{place}. {address(result.url)}{read}"
    return f"{head}\n{framed(words, mark)}" if words else head


def _data(gathered: Gathered, following: list[Next], tokens: int, mark: str) -> SearchWebResult:
    return SearchWebResult(
        queries=[query.text for query in gathered.parsed.queries],
        entities=list(gathered.parsed.entities),
        freshness=gathered.parsed.queries[0].freshness,
        parsed_by=gathered.parsed.made_by,
        hits=[
            Hit(
                place=place,
                url=address(ranked.result.url),
                published=ranked.result.published,
                language=ranked.result.language or _language(gathered, ranked),
                handle=_handle(gathered, ranked),
                engine=one_line(ranked.result.engine)[:LONGEST],
                engine_rank=ranked.result.rank,
                score=round(ranked.score.value, 4),
                made_by=ranked.score.made_by,
                won_by=ranked.won_by,
                trust=_trust(gathered, ranked),
                speaks=_speaks(ranked),
            )
            for place, ranked in enumerate(gathered.ranked, start=1)
        ],
        providers=list(dict.fromkeys(told(outcome, mark) for outcome in gathered.outcomes)),
        failures=failures_of(gathered.failures),
        next=following,
        tokens=tokens,
    )
