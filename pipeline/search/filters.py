"""Filters of a search, as a caller writes them.

Not for: what a question itself asks for (`pipeline/question/wants.py`)."""

import re
from datetime import date

from errors import UsageError
from pipeline.search.query import SafeSearch, SearchQuery


def filters_of(
    *,
    after: str = "",
    before: str = "",
    region: str = "",
    site: str = "",
    safe: SafeSearch = "",
    page: int = 1,
) -> SearchQuery:
    """Return a query without words that holds these filters.

    `after` and `before` are ISO days, `region` is an ISO 3166 code of two letters, `site` a
    host or its address, `page` counts from 1; "" sets no filter. Raises `UsageError` for what is
    no day or no host."""
    return SearchQuery(
        "",
        since=_day(after),
        until=_day(before),
        region=region,
        site=_host(site),
        safe=safe,
        page=page,
    )


def _day(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat() if value else ""
    except ValueError as error:
        raise UsageError(
            f"{value!r} is not a valid date.",
            hint="Use an ISO date such as 2026-05-31.",
        ) from error


def _host(value: str) -> str:
    address = value.strip().lower()
    host = address.removeprefix("https://").removeprefix("http://").strip("/")
    if not re.fullmatch(r"[\w.-]*", host):
        raise UsageError(
            f"site is {value!r}.",
            hint="Use a host name such as python.org, without a path.",
        )
    return host
