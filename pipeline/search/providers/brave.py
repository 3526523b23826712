"""Brave, which has an index of its own; its `offset` counts pages, and a wrong key is a 422."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pipeline.search.provider import over
from pipeline.search.service import Api, Request, Service, error_code, given

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery, SearchStatus

_BRAVE_LANGUAGE: Final = {"zh": "zh-hans", "pt": "pt-pt", "ja": "jp"}
"""Where Brave's code is not the ISO one."""
_BRAVE_JUDGED: Final[Mapping[str, "SearchStatus"]] = {
    "SUBSCRIPTION_TOKEN_INVALID": "unauthorized",
    "SUBSCRIPTION_NOT_FOUND": "unauthorized",
    "OPTION_NOT_IN_PLAN": "unauthorized",
    "RATE_LIMITED": "rate_limited",
    "QUOTA_LIMITED": "quota",
}


def _brave(api: Api, query: "SearchQuery", words: str, count: int) -> Request:
    between = (
        f"{query.since or '1970-01-01'}to{query.until or '9999-12-31'}"
        if query.since or query.until
        else ""
    )
    period = "" if query.freshness == "any" else f"p{query.freshness[0]}"
    filters = given(
        freshness=between or period,
        search_lang=_BRAVE_LANGUAGE.get(query.language, query.language),
        country=query.region.upper() or "ALL",  # its own default is the United States
        safesearch=query.safe,
        offset=query.page - 1,
    )
    fixed = {
        "q": words,
        "count": count,
        "text_decorations": "false",
        "extra_snippets": "true",
    }
    sent = {name: str(value) for name, value in {**fixed, **filters}.items()}
    return Request(
        "GET", f"{api.base}/v1/web/search", {"X-Subscription-Token": api.key}, sent
    )


def _brave_rows(answer: Mapping[str, object]) -> object:
    # Without any hit the member `web` is left out.
    web = answer.get("web", {"results": []})
    return (
        web.get("results")
        if isinstance(web, dict) and answer.get("type") == "search"
        else None
    )


PROVIDER: Final = over(
    Service(
        name="brave",
        title="Brave",
        address="https://api.search.brave.com/res",
        write=_brave,
        judge=lambda code, answer: _BRAVE_JUDGED.get(error_code(answer)),
        able=frozenset(
            {"freshness", "dates", "language", "region", "safe search", "paging"}
        ),
        most=20,
        longest=400,
        words=50,
        pages=10,
        rows=_brave_rows,
        snippet=("description", "extra_snippets"),
        published="page_age",
        language="language",
    ),
    key="Key of the Brave Search API.",
    place=20,
)
