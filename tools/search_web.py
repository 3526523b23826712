"""The tool `search_web`: PARSER → providers → mixed ranking, shown as a ranked list (design §3).

Not for: reading pages at length (`fetch_and_prune_html`) or gathering evidence (`research`).
"""

from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from pipeline.frame import framed, new_mark, notice, one_line
from pipeline.gather import Gathered, Wanted, gather_pages
from pipeline.rank.mixed import RankedPage
from pipeline.sheet import Sheet, shortened
from tools.context import ToolContext, answer, reporter, services_of


class Hit(BaseModel):
    """One ranked page."""

    place: int = Field(description="1-based place after ranking")
    title: str
    url: str
    published: str = Field(description="ISO date, empty when unknown")
    engine: str = Field(description="Provider that found it")
    engine_rank: int = Field(description="Place in the provider's own order")
    score: float
    made_by: str = Field(description="What made the score")
    won_by: str = Field(description="Which item of the page won: its snippet, its content, or the engine's order")


class SearchWebResult(BaseModel):
    """Structured part of the answer."""

    queries: list[str] = Field(description="Queries that were sent")
    entities: list[str] = Field(description="Names and unknown words, kept whole")
    need_search: bool = Field(description="Whether the request needs a search at all; advice only")
    freshness: str
    hits: list[Hit]
    providers: list[str] = Field(description="Each provider with its status and reason")
    failures: list[str] = Field(description="Pages that could not be read, with the reason")
    tokens: int = Field(description="Tokens of the text part")


async def search_web(
    query: Annotated[
        str,
        Field(description="What to find, as a question or keywords, in any language.", min_length=1, max_length=2000),
    ],
    ctx: ToolContext,
    max_results: Annotated[int, Field(description="Pages to return.", ge=1, le=20)] = 8,
    freshness: Annotated[
        Literal["any", "day", "week", "month", "year"], Field(description="Only pages from this last period.")
    ] = "any",
    language: Annotated[
        str, Field(description="ISO 639-1 code of the pages, e.g. 'de'; empty for any.", max_length=8)
    ] = "",
    rank: Annotated[
        Literal["mixed", "snippet", "engine"],
        Field(description="mixed reads the pages and is best; snippet is faster; engine keeps the engine's order."),
    ] = "mixed",
    max_tokens: Annotated[int, Field(description="Most tokens of the answer.", ge=100, le=20000)] = 1500,
) -> Annotated[CallToolResult, SearchWebResult]:
    """Search the web (or the user's document folders); returns pages ranked by how well they answer.

    Use it to find pages. To get evidence for a question in one call, use research instead; to read a page found here,
    pass its URL to fetch_and_prune_html. Put times into freshness, not into the query.
    """
    wanted = Wanted(query, max_results, freshness, language, rank)
    gathered = await gather_pages(wanted, services_of(ctx), report=reporter(ctx))
    text, tokens = _text(gathered, max_tokens)
    return answer(text, _data(gathered, tokens))


def _text(gathered: Gathered, max_tokens: int) -> tuple[str, int]:
    mark = new_mark()
    sheet = Sheet(max_tokens, reserve=min(80, max_tokens // 5))
    shown = 0
    if gathered.ranked:
        sheet.add_cut(notice(mark))
    for left, ranked in zip(range(len(gathered.ranked), 0, -1), gathered.ranked, strict=True):
        if not sheet.add(_entry(shown + 1, ranked, mark, max(0, sheet.room // left - 45))) and not sheet.add(
            _entry(shown + 1, ranked, mark, 0)
        ):
            break
        shown += 1
    sheet.release()
    if not gathered.ranked:
        sheet.add_cut("Nothing was found. Try other words, or another freshness or language.")
    if shown < len(gathered.ranked):
        sheet.add_cut(f"{len(gathered.ranked) - shown} more results did not fit; ask again with a larger max_tokens.")
    for outcome in gathered.outcomes:
        if outcome.status != "ok" or outcome.reason:
            sheet.add_cut(f"{outcome.provider}: {outcome.status}. {one_line(outcome.reason)}")
    for failure in gathered.failures[:3]:
        sheet.add_cut(f"Not read: {one_line(failure.source)}: {one_line(failure.reason)}")
    return sheet.text, sheet.tokens


def _entry(place: int, ranked: RankedPage, mark: str, passage_tokens: int) -> str:
    result = ranked.result
    date = f" ({result.published})" if result.published else ""
    head = f"{place}. {one_line(result.title) or '(no title)'}{date}\n{result.url}"
    passage = shortened(one_line(ranked.passage or result.snippet), passage_tokens)
    return f"{head}\n{framed(passage, mark)}" if passage else head


def _data(gathered: Gathered, tokens: int) -> SearchWebResult:
    return SearchWebResult(
        queries=[query.text for query in gathered.parsed.queries],
        entities=list(gathered.parsed.entities),
        need_search=gathered.parsed.need_search,
        freshness=gathered.parsed.queries[0].freshness,
        hits=[
            Hit(
                place=place,
                title=one_line(ranked.result.title),
                url=ranked.result.url,
                published=ranked.result.published,
                engine=ranked.result.engine,
                engine_rank=ranked.result.rank,
                score=round(ranked.score.value, 4),
                made_by=ranked.score.made_by,
                won_by=ranked.won_by,
            )
            for place, ranked in enumerate(gathered.ranked, start=1)
        ],
        providers=[f"{o.provider}: {o.status} {one_line(o.reason)}".strip() for o in gathered.outcomes],
        failures=[str(f"{f.source}: {f.reason}") for f in gathered.failures],
        tokens=tokens,
    )
