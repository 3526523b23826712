"""Crossref, which serves better who gives a mail address."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from extras.scholarly import catalogue, failed_within, get, terms
from pipeline.search.provider import over
from pipeline.search.service import Api, Request, at, since_of

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery


def _people(row: Mapping[str, object]) -> list[str]:
    people = row.get("author")
    persons = (
        [person for person in people if isinstance(person, dict)]
        if isinstance(people, list)
        else []
    )
    return [
        " ".join(
            str(person[name])
            for name in ("given", "family", "name")
            if person.get(name)
        )
        for person in persons
    ]


def _crossref(api: Api, query: "SearchQuery", text: str, count: int) -> Request:
    since = since_of(api, query)
    period = [f"from-pub-date:{since}"] * bool(since) + [
        f"until-pub-date:{query.until}"
    ] * bool(query.until)
    parameters = {
        "query.bibliographic": " ".join(terms(text)),
        "filter": ",".join(period),
    }
    return get(api, "/works", **parameters, rows=count)


PROVIDER: Final = over(
    catalogue(
        name="crossref",
        title="Crossref",
        address="https://api.crossref.org",
        write=_crossref,
        judge=failed_within,
        rows=lambda answer: at(answer, "message.items"),
        headline="title.0",
        url="URL",
        snippet=("abstract",),
        published="issued.date-parts.0",
        language="language",
        authors=_people,
        doi="DOI",
        pause=0.2,
    ),
    kind="research",
    place=73,
)
