"""OpenAlex, which lets a stranger search some ten to a hundred times a day and then
says 429."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from extras.scholarly import catalogue, get, terms
from pipeline.search.provider import over
from pipeline.search.service import Api, Request, since_of

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery, SearchStatus


def _openalex(api: Api, query: "SearchQuery", text: str, count: int) -> Request:
    since = since_of(api, query)
    period = [f"from_publication_date:{since}"] * bool(since)
    period += [f"to_publication_date:{query.until}"] * bool(query.until)
    searched = " ".join(terms(text))
    return get(
        api, "/works", search=searched, filter=",".join(period), **{"per-page": count}
    )


def _abstract(row: Mapping[str, object]) -> str:
    """Return an abstract that OpenAlex gives as the positions of each word; "" for
    none, and without malformed entries."""
    index = row.get("abstract_inverted_index")
    places = index.items() if isinstance(index, dict) else ()
    placed_words = (
        (position, word)
        for word, where in places
        if isinstance(where, list)
        for position in where
    )
    return " ".join(
        word
        for _, word in sorted(
            (position, word)
            for position, word in placed_words
            if isinstance(position, int)
        )
    )


def _openalex_judged(code: int, answer: object) -> "SearchStatus | None":
    spent = any(word in str(answer).lower() for word in ("daily", "budget", "credit"))
    return "quota" if code == 429 and spent else "rate_limited" if code == 403 else None


PROVIDER: Final = over(
    catalogue(
        name="openalex",
        title="OpenAlex",
        address="https://api.openalex.org",
        write=_openalex,
        judge=_openalex_judged,
        headline="display_name|title",
        url="best_oa_location.pdf_url|open_access.oa_url|doi|primary_location.landing_page_url|id",
        snippet=(_abstract,),
        published="publication_date|publication_year",
        language="language",
        authors="authorships.*.author.display_name",
        doi="doi",
    ),
    kind="research",
    place=71,
)
