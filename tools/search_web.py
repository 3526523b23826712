"""The tool `search_web`: PARSER → providers → mixed ranking, shown as a ranked list.

Not for: reading pages at length (`fetch_and_prune_html`) or gathering evidence
(`research`)."""

from functools import partial
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import Field

from pipeline.question.question import Question
from pipeline.search.filters import filters_of
from pipeline.search_pages import HitList, search_pages
from pipeline.sources.gather import Wanted, write_search
from tools.common.context import ToolContext, reporter, services_of
from tools.common.ending import Ending, larger, repeated, result_of
from tools.common.results import Next
from tools.common.tool import Tool
from tools.results.hits import SearchWebResult, search_result

DAY_PATTERN: Final = r"^(\d{4}-\d{2}-\d{2})?$"
NAME: Final = "search_web"
MOST_RESULT_PAGES: Final = 10


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
        str, Field(description="Earliest ISO date.", pattern=DAY_PATTERN)
    ] = "",
    before: Annotated[
        str, Field(description="Latest ISO date.", pattern=DAY_PATTERN)
    ] = "",
    region: Annotated[
        str, Field(description="Country code.", pattern=r"^([A-Za-z]{2})?$")
    ] = "",
    safe_search: Annotated[
        Literal["", "off", "moderate", "strict"], Field(description="Adult filter.")
    ] = "",
    page: Annotated[
        int, Field(description="Results page.", ge=1, le=MOST_RESULT_PAGES)
    ] = 1,
    rank: Annotated[
        Literal["mixed", "engine", "paper"],
        Field(description="engine reads no page: faster."),
    ] = "mixed",
    max_tokens: Annotated[
        int, Field(description="Token budget.", ge=100, le=20000)
    ] = 1500,
) -> Annotated[CallToolResult, SearchWebResult]:
    """Search the web (or the user's folders) for pages, best first.

    For evidence on a question use research. To read a page found here pass its handle
    to fetch_and_prune_html."""
    # 1. The list of pages
    filters = filters_of(
        after=after,
        before=before,
        region=region,
        site=site,
        safe=safe_search,
        page=page,
    )
    text = Question(question)
    order = Wanted(text, max_results, freshness, language, rank, filters=filters)
    hits = await search_pages(
        order, services_of(ctx), max_tokens=max_tokens, report=reporter(ctx)
    )
    # 2. How to go on
    following = _following(hits, order, max_tokens)
    ending = Ending(NAME, hits.sheet, following, hits.gathered.failures)
    ending.write(
        partial(write_search, hits.gathered, "unsure", delimiter=hits.delimiter)
    )
    # 3. Hand it over
    return result_of(hits.sheet.text, search_result(hits, ending))


def _following(hits: HitList, order: Wanted, max_tokens: int) -> list[Next]:
    """Return follow-up calls: the best page, by its handle where it was read already; what failed;
    the hits that did not fit, else the next page of results."""
    calls = [
        Next(
            tool="fetch_and_prune_html",
            arguments={"sources": [hit.handle or hit.ranked.result.url]},
        )
        for hit in hits.hits[:1]
    ]
    calls += repeated(NAME, hits.gathered.failures)
    page = order.filters.page
    if hits.shown < len(hits.hits):
        calls += larger(NAME, max_tokens)
    elif len(hits.hits) >= order.max_pages and page < MOST_RESULT_PAGES:
        calls.append(Next(tool=NAME, arguments={"page": page + 1}))
    return calls


TOOL: Final = Tool(
    function=search_web,
    title="Search pages",
    command="search",
    help="list pages ranked by how well they answer",
    advice="To look for pages only: search_web.",
    place=20,
)
