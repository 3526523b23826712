"""Semantic Scholar, which shares one allowance between all strangers."""

from typing import TYPE_CHECKING, Final

from extras.scholarly import between, catalogue, get, terms
from pipeline.search.provider import over
from pipeline.search.service import Api, Request

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery


def _semantic_scholar(api: Api, query: "SearchQuery", text: str, count: int) -> Request:
    fields = "title,abstract,url,authors,publicationDate,externalIds,openAccessPdf"
    period = between(api, query, "{}:{}")
    searched = " ".join(terms(text))
    return get(
        api,
        "/graph/v1/paper/search",
        query=searched,
        limit=count,
        fields=fields,
        publicationDateOrYear=period,
    )


PROVIDER: Final = over(
    catalogue(
        name="semanticscholar",
        title="Semantic Scholar",
        address="https://api.semanticscholar.org",
        write=_semantic_scholar,
        judge=lambda code, answer: "blocked" if code == 403 else None,
        rows=lambda answer: answer.get(
            "data", [] if answer.get("total") == 0 else None
        ),
        url="openAccessPdf.url|externalIds.DOI|url",
        snippet=("abstract",),
        published="publicationDate",
        authors="authors.*.name",
        doi="externalIds.DOI",
        pause=1.0,
    ),
    kind="research",
    place=72,
)
