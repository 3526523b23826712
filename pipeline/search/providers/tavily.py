"""Tavily, which also answers a few requests without a key; used-up plans are 432 and 433."""

from typing import TYPE_CHECKING, Final

from pipeline.search.provider import over
from pipeline.search.service import Api, Request, Service, given

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery


def _tavily(api: Api, query: "SearchQuery", words: str, count: int) -> Request:
    dated = bool(query.since or query.until)
    body = given(
        query=words,
        max_results=count,
        search_depth="basic",
        start_date=query.since,
        end_date=query.until,
        time_range="" if dated or query.freshness == "any" else query.freshness,
        language=query.language,
        include_domains=[query.site] if query.site else [],
    )
    headers = (
        {"Authorization": f"Bearer {api.key}"}
        if api.key
        else {"X-Tavily-Access-Mode": "keyless"}
    )
    return Request("POST", f"{api.base}/search", headers, body=body)


PROVIDER: Final = over(
    Service(
        name="tavily",
        title="Tavily",
        address="https://api.tavily.com",
        write=_tavily,
        judge=lambda code, answer: "quota" if code in (432, 433) else None,
        able=frozenset({"freshness", "dates", "language", "site", "paging"}),
        most=20,
        longest=400,
        snippet=("content",),
        published="published_date",
    ),
    key="Key of the Tavily API; tavily is asked without one if named.",
    keyless=True,
    place=30,
)
