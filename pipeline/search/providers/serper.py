"""Serper, which brings Google's results.

It documents no errors; users recorded 403 for a wrong key and 400 with words on credits once they
are used up.
"""

from datetime import date
from typing import TYPE_CHECKING, Final

from pipeline.search.provider import over
from pipeline.search.service import Api, Request, Service, error_text, given

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery


def _serper(api: Api, query: "SearchQuery", words: str, count: int) -> Request:
    body = given(
        q=words,
        num=count,
        tbs=_google_period(query),
        hl=query.language,
        gl=query.region.lower(),
        page=query.page if query.page > 1 else 0,
    )
    return Request("POST", f"{api.base}/search", {"X-API-KEY": api.key}, body=body)


def _google_period(query: "SearchQuery") -> str:
    """Return Google's `tbs`: for the dates of a query, of which one may be missing,
    else for its freshness; "" for any time.

    Raises `ValueError` for a date that is not ISO."""
    if query.since or query.until:
        bounds = (("cd_min", query.since), ("cd_max", query.until))
        days = [(name, date.fromisoformat(day)) for name, day in bounds if day]
        return ",".join(
            [
                "cdr:1",
                *(f"{name}:{day.month}/{day.day}/{day.year}" for name, day in days),
            ]
        )
    return f"qdr:{query.freshness[0]}" if query.freshness != "any" else ""


PROVIDER: Final = over(
    Service(
        name="serper",
        title="Serper",
        address="https://google.serper.dev",
        write=_serper,
        judge=lambda code, answer: (
            "quota"
            if code in (400, 402, 403) and "credit" in error_text(answer).lower()
            else None
        ),
        able=frozenset({"freshness", "dates", "language", "region", "paging"}),
        most=100,
        longest=2_000,
        pages=100,
        rows=lambda answer: answer.get("organic"),
        url="link",
        snippet=("snippet",),
        published="date",
    ),
    key="Key of the Serper API (Google's results).",
    place=50,
)
