"""The tool `search_web`: PARSER → providers → mixed ranking, shown as a ranked list.

Not for: reading pages at length (`fetch_and_prune_html`) or gathering evidence
(`research`)."""

import re
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import Field

from errors import UsageError
from pipeline.document.page import Document, SearchQuery, Trust
from pipeline.evidence.show import Sheet, injection_line, shortened
from pipeline.fetch.handles import page_handle
from pipeline.question.question import Question
from pipeline.search.mixed import RankedPage
from pipeline.sources.gather import Gathered, Wanted, gather_pages
from pipeline.text.frame import (
    TITLE_CHARACTERS,
    address,
    framed,
    headline,
    inert,
    is_injection,
    new_mark,
    notice,
    one_line,
    source_line,
)
from pipeline.text.tokens import count_tokens
from tools.common.answer import Ending, answer, larger, provider_line, repeated
from tools.common.context import (
    ToolContext,
    reporter,
    services_of,
)
from tools.common.results import APART, INJECTION, TRUST, Next, Part
from tools.common.tool import Tool

DAY_PATTERN: Final = r"^(\d{4}-\d{2}-\d{2})?$"
REGION: Final = r"^([A-Za-z]{2})?$"

NAME: Final = "search_web"
MOST_RESULT_PAGES: Final = 10
LEAD: Final = 2
"""Maximum room of a hit, in even shares: a truncated passage may lose the answer."""


class Hit(Part):
    """One ranked page."""

    WORDS = frozenset(("title", "author", "passage"))

    place: int = Field(description="Rank, and number in the text")
    url: str
    published: str = Field(description="ISO date, empty when unknown")
    language: str = Field(description="ISO 639-1 code, empty when unknown")
    handle: str = Field(
        description="Handle of the page as read; other tools use it without fetching again. Empty: not read"
    )
    engine: str = Field(description="Providers and engines that listed it")
    engine_rank: int = Field(description="Rank at the provider")
    score: float
    made_by: str = Field(description="What made the score")
    won_by: str = Field(
        description="Which part of the page decided: snippet, content, or the engine's order"
    )
    trust: Trust = Field(default="visible", description=TRUST)
    speaks: bool = Field(default=False, description=INJECTION)
    title: str = Field(default="", description=f"Its title; {APART}")
    author: str = Field(
        default="", description=f"Who wrote it, as it says itself; {APART}"
    )
    passage: str = Field(
        default="",
        description=f"Its best passage or snippet, as long as in the text; {APART}",
    )


class SearchWebResult(Part):
    """Structured result of `search_web`."""

    WORDS = frozenset(("notes",))

    queries: list[str] = Field(description="Queries that were sent")
    entities: list[str] = Field(description="Names and unknown words, kept as phrases")
    freshness: str
    parsed_by: str = "rules"
    hits: list[Hit]
    providers: list[str] = Field(description="Each provider with its status and reason")
    failures: list[str] = Field(
        description="Pages that could not be read, with the reason"
    )
    notes: list[str] = Field(default=[], description=f"Other notes; {APART}")
    next: list[Next] = Field(description="Follow-up calls, best first")
    tokens: int = Field(description="Tokens of the text")


async def search_web(  # noqa: PLR0913, PLR0917  a tool's arguments are its schema
    question: Annotated[
        str,
        Field(
            description="What to find, in any language.", min_length=1, max_length=2000
        ),
    ],
    ctx: ToolContext,
    max_results: Annotated[int, Field(description="Pages.", ge=1, le=20)] = 8,
    freshness: Annotated[
        Literal["any", "day", "week", "month", "year"],
        Field(description="Age of pages."),
    ] = "any",
    language: Annotated[str, Field(description="ISO 639-1 code.", max_length=8)] = "",
    site: Annotated[str, Field(description="One host only.", max_length=253)] = "",
    after: Annotated[
        str, Field(description="First ISO day.", pattern=DAY_PATTERN)
    ] = "",
    before: Annotated[
        str, Field(description="Last ISO day.", pattern=DAY_PATTERN)
    ] = "",
    region: Annotated[str, Field(description="Country code.", pattern=REGION)] = "",
    safe_search: Annotated[
        Literal["", "off", "moderate", "strict"], Field(description="Adult filter.")
    ] = "",
    page: Annotated[
        int, Field(description="Results page.", ge=1, le=MOST_RESULT_PAGES)
    ] = 1,
    rank: Annotated[
        Literal["mixed", "snippet", "engine", "paper"],
        Field(description="snippet is faster than mixed."),
    ] = "mixed",
    max_tokens: Annotated[
        int, Field(description="Token budget.", ge=100, le=20000)
    ] = 1500,
) -> Annotated[CallToolResult, SearchWebResult]:
    """Search the web (or the user's folders) for pages, best first.

    For evidence on a question use research. To read a page found here pass its handle
    to fetch_and_prune_html."""
    filters = SearchQuery(
        "",
        since=_day(after),
        until=_day(before),
        region=region,
        site=_host(site),
        safe=safe_search,
        page=page,
    )
    asked = Question(question)
    wanted = Wanted(asked, max_results, freshness, language, rank, filters=filters)
    gathered = await gather_pages(wanted, services_of(ctx), report=reporter(ctx))
    hits = [
        _hit(one, gathered.documents.get(one.result.url)) for one in gathered.ranked
    ]
    mark = new_mark()
    sheet, shown = _sheet(gathered.ranked, hits, max_tokens, mark)
    following = _following(
        wanted, gathered, hits, larger(NAME, max_tokens) if shown < len(hits) else None
    )
    ending = Ending(NAME, sheet, following, gathered.failures)
    ending.write(partial(_write_search, gathered, mark))
    providers = dict.fromkeys(
        provider_line(outcome, mark) for outcome in gathered.outcomes
    )
    facts: dict[str, object] = {
        "queries": [query.text for query in gathered.parsed.queries],
        "entities": list(gathered.parsed.entities),
        "freshness": gathered.parsed.queries[0].freshness,
        "parsed_by": gathered.parsed.made_by,
        "hits": hits,
        "providers": list(providers),
        "notes": _notes(gathered),
    }
    return answer(sheet.text, SearchWebResult.model_validate(facts | ending.facts))


def _following(
    wanted: Wanted, gathered: Gathered, hits: Sequence[Hit], wider: list[Next] | None
) -> list[Next]:
    """Return follow-up calls; `wider` shows hits that did not fit (None: all did)."""
    # The best page, by its handle where it was read already
    calls = [
        Next(
            tool="fetch_and_prune_html",
            arguments={"sources": [best.handle or best.url]},
        )
        for best in hits[:1]
    ]
    calls += repeated(NAME, gathered.failures)
    page = wanted.filters.page
    if wider is not None:
        calls += wider
    elif len(hits) >= wanted.max_pages and page < MOST_RESULT_PAGES:
        calls.append(Next(tool=NAME, arguments={"page": page + 1}))
    return calls


def _day(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat() if value else ""
    except ValueError as error:
        raise UsageError(
            f"{value!r} is not a valid date.",
            hint="Use an ISO date such as 2026-05-31.",
        ) from error


def _host(value: str) -> str:
    host = (
        value.strip()
        .lower()
        .removeprefix("https://")
        .removeprefix("http://")
        .strip("/")
    )
    if not re.fullmatch(r"[\w.-]*", host):
        raise UsageError(
            f"site is {value!r}.",
            hint="Use a host name such as python.org, without a path.",
        )
    return host


def _hit(ranked: RankedPage, document: Document | None) -> Hit:
    result, shown = ranked.result, ranked.passage or ranked.result.snippet
    # The engine's snippet may be part of the page too.
    quoted = document is None or (
        shown == result.snippet and shown not in document.text
    )
    return Hit(
        place=ranked.place,
        url=address(result.url),
        published=result.published,
        language=result.language or (document.page.language if document else ""),
        handle=page_handle(document.page) if document else "",
        engine=one_line(result.engine)[:TITLE_CHARACTERS],
        engine_rank=result.rank,
        score=round(ranked.score.value, 4),
        made_by=ranked.score.made_by,
        won_by=ranked.won_by,
        trust="snippet" if document is None or quoted else document.page.trust,
        speaks=is_injection(f"{result.title}\n{shown}"),
        title=one_line(result.title),
        author=one_line(result.author),
    )


def _sheet(
    ranked: Sequence[RankedPage], hits: Sequence[Hit], max_tokens: int, mark: str
) -> tuple[Sheet, int]:
    """Return the answer with the hits that fit, and their number; sets the shown
    passages in `hits`."""
    sheet = Sheet(max_tokens, reserve=min(80, max_tokens // 5))
    if hits:
        sheet.add_cut(notice(mark))
    bare = [_entry(one, hit, mark, "") for one, hit in zip(ranked, hits, strict=True)]
    costs = [count_tokens(entry) + 1 for entry in bare]
    shown = 0
    for one, hit in zip(ranked, hits, strict=True):
        even = sheet.room // (len(hits) - shown)
        most = min(LEAD * even, sheet.room - sum(costs[shown + 1 :]))
        frame = count_tokens(f"{bare[shown]}\n{framed('.', mark)}")
        passage = shortened(
            one_line(inert(one.passage or one.result.snippet)), max(0, most - frame)
        )
        if sheet.add(_entry(one, hit, mark, passage)):
            hit.passage = passage
        elif not sheet.add(bare[shown]):
            break
        shown += 1
    sheet.release()
    sheet.add(injection_line(str(hit.place) for hit in hits[:shown] if hit.speaks))
    if not hits:
        sheet.add_cut(
            "Nothing was found. Try other words, or another freshness or language."
        )
    if shown < len(hits):
        sheet.add_cut(f"{len(hits) - shown} more results did not fit.")
    return sheet, shown


def _notes(gathered: Gathered) -> list[str]:
    notes = (*map(one_line, gathered.parsed.notes), gathered.notice)
    return list(filter(None, notes))


def _write_search(gathered: Gathered, mark: str, sheet: Sheet) -> None:
    """Write which providers did not answer as asked, and what is to be said of the
    search."""
    for outcome in gathered.outcomes:
        if outcome.status != "ok" or outcome.reason:
            sheet.add(provider_line(outcome, mark)) or sheet.add_cut(
                f"{outcome.provider}: {outcome.status}"
            )
    for line in _notes(gathered):
        sheet.add_cut(line)


def _entry(ranked: RankedPage, hit: Hit, mark: str, passage: str) -> str:
    result = ranked.result
    url, whole = source_line(result.url)
    titled = headline(result.title, result.published, author=result.author)
    words = "\n".join(filter(None, (whole, titled, passage)))
    head = "\n".join(filter(None, (f"{hit.place}. {url}", hit.handle)))
    return f"{head}\n{framed(words, mark)}" if words else head


TOOL: Final = Tool(
    function=search_web,
    title="Search pages",
    command="search",
    help="list pages ranked by how well they answer",
    advice="To look for pages only: search_web.",
    place=20,
)
