"""Exa, which gives dates and passages."""

from typing import TYPE_CHECKING, Final

from pipeline.search.provider import over
from pipeline.search.service import Api, Request, Service, error_code, given, since_of

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery, SearchStatus


def _exa(api: Api, query: "SearchQuery", words: str, count: int) -> Request:
    since = since_of(api, query)
    body = given(
        query=words,
        type="auto",
        numResults=count,
        contents={"highlights": True},
        startPublishedDate=f"{since}T00:00:00.000Z" if since else "",
        endPublishedDate=f"{query.until}T23:59:59.999Z" if query.until else "",
        userLocation=query.region.upper(),
        includeDomains=[query.site] if query.site else [],
    )
    if query.safe:
        body["moderation"] = query.safe != "off"
    return Request("POST", f"{api.base}/search", {"x-api-key": api.key}, body=body)


def _judged(code: int, answer: object) -> "SearchStatus | None":
    # A 403 may be over the words that were asked for; the key is good for others.
    refused = error_code(answer) in ("PROHIBITED_CONTENT", "CONTENT_FILTER_ERROR")
    return "bad_response" if code == 403 and refused else None


PROVIDER: Final = over(
    Service(
        name="exa",
        title="Exa",
        address="https://api.exa.ai",
        write=_exa,
        judge=_judged,
        able=frozenset(
            {"freshness", "dates", "region", "site", "safe search", "paging"}
        ),
        most=100,
        longest=1_000,
        snippet=("highlights",),
        published="publishedDate",
    ),
    key="Key of the Exa API.",
    place=40,
)
