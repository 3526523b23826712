"""Europe PMC."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from extras.scholarly import (
    ABLE_WITH_DOIS,
    between,
    catalogue,
    failed_within,
    get,
    terms,
)
from pipeline.search.provider import over
from pipeline.search.service import Api, Request, at

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery


def _europe_pmc(api: Api, query: "SearchQuery", text: str, count: int) -> Request:
    period = between(api, query, " AND FIRST_PDATE:[{} TO {}]", open_end="3000-12-31")
    works = " OR ".join(f'DOI:"{doi}"' for doi in query.dois)
    searched = works or " ".join(terms(text)) + period
    return get(
        api, "/search", query=searched, format="json", resultType="core", pageSize=count
    )


def _free_pdf(row: Mapping[str, object]) -> object:
    """Return the open PDF that Europe PMC knows of, else the bare DOI, else the
    record's address."""
    texts = at(row, "fullTextUrlList.fullTextUrl")
    for text in texts if isinstance(texts, list) else []:
        if at(text, "documentStyle") == "pdf" and at(text, "availabilityCode") in (
            "OA",
            "F",
        ):
            return at(text, "url")
    return (
        row.get("doi")
        or f"https://europepmc.org/article/{row.get('source')}/{row.get('id')}"
    )


PROVIDER: Final = over(
    catalogue(
        name="europepmc",
        title="Europe PMC",
        address="https://www.ebi.ac.uk/europepmc/webservices/rest",
        write=_europe_pmc,
        judge=failed_within,
        rows=lambda answer: at(answer, "resultList.result"),
        url=_free_pdf,
        snippet=("abstractText",),
        published="firstPublicationDate|pubYear",
        authors="authorList.author.*.fullName",
        doi="doi",
        able=ABLE_WITH_DOIS,
        retracted=lambda row: (
            "Retracted Publication" in str(at(row, "pubTypeList.pubType"))
        ),
        pause=0.2,
    ),
    kind="research",
    place=74,
)
