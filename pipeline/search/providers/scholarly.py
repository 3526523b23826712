"""The catalogues of research (OpenAlex, Semantic Scholar, Crossref, Europe PMC, arXiv) as rows like
other services.

All answer without a key. OpenAlex lets a stranger search some ten to a hundred times a day and then
says 429, Semantic Scholar shares one allowance between all strangers, arXiv wants one request in
three seconds, and Crossref and OpenAlex serve better who gives a mail address. A hit leads to the
free text where a catalogue knows one, else to the DOI. arXiv answers in Atom, says "Rate exceeded."
with status 200, and puts errors into an entry. Not for: the call itself (`exchange.py`).
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from pipeline.documents import SearchQuery, SearchStatus
from pipeline.search.providers.exchange import Request, at, error_text
from pipeline.search.providers.services import Service, WebApi, agent, since_of
from pipeline.text.words import words

MOST_TERMS: Final = 12
"""Words of a question that are sent where all of them must be met or each is an operand."""
_TERM: Final = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")
_TRIFLES: Final = words("stop", "en") | words("questions.words", "en") | words("scholarly.filler")
_ABLE: Final = frozenset({"freshness", "dates", "paging"})
_NAMED: Final = _ABLE | {"dois"}
_WITHDRAWN: Final = frozenset({"retraction", "withdrawal", "removal"})
"""Kinds of Crossref's updates, its publishers' and Retraction Watch's, by which a work no longer
stands."""
_BUSY: Final = "Rate exceeded"


def _terms(text: str) -> list[str]:
    """Return what a question is about, without the words that only ask for research on it."""
    found = [term for term in _TERM.findall(text) if term.lower() not in _TRIFLES]
    return (found or _TERM.findall(text))[:MOST_TERMS]


def _get(api: WebApi, path: str, **params: str | int) -> Request:
    sent = {name: str(value) for name, value in params.items() if value}
    # Crossref and OpenAlex read the mail address there; in the address of the request it would
    # stand in logs.
    return Request("GET", api.base + path, {"User-Agent": agent(api.key)}, sent)


def _between(api: WebApi, query: SearchQuery, form: str, *, open_end: str = "") -> str:
    """Return the first and last day that are wanted in a service's own form, empty for any."""
    since = since_of(api, query)
    return (
        form.format(since or "1000-01-01", query.until or open_end) if since or query.until else ""
    )


def _openalex(api: WebApi, query: SearchQuery, text: str, count: int) -> Request:
    if query.dois:
        return _get(api, "/works", filter=f"doi:{'|'.join(query.dois)}", **{"per-page": count})
    since = since_of(api, query)
    period = [f"from_publication_date:{since}"] * bool(since)
    period += [f"to_publication_date:{query.until}"] * bool(query.until)
    searched = " ".join(_terms(text))
    return _get(api, "/works", search=searched, filter=",".join(period), **{"per-page": count})


def _abstract(row: Mapping[str, object]) -> str:
    """Return an abstract that OpenAlex gives as the places of each word."""
    index = row.get("abstract_inverted_index")
    places = index.items() if isinstance(index, dict) else ()
    told = ((place, word) for word, where in places if isinstance(where, list) for place in where)
    return " ".join(
        word for _, word in sorted((place, word) for place, word in told if isinstance(place, int))
    )


def _semantic_scholar(api: WebApi, query: SearchQuery, text: str, count: int) -> Request:
    fields = "title,abstract,url,authors,publicationDate,externalIds,openAccessPdf"
    period = _between(api, query, "{}:{}")
    searched = " ".join(_terms(text))
    return _get(
        api,
        "/graph/v1/paper/search",
        query=searched,
        limit=count,
        fields=fields,
        publicationDateOrYear=period,
    )


def _crossref(api: WebApi, query: SearchQuery, text: str, count: int) -> Request:
    if query.dois:
        return _get(api, "/works", filter=",".join(f"doi:{doi}" for doi in query.dois), rows=count)
    since = since_of(api, query)
    period = [f"from-pub-date:{since}"] * bool(since) + [f"until-pub-date:{query.until}"] * bool(
        query.until
    )
    named = {"query.bibliographic": " ".join(_terms(text)), "filter": ",".join(period)}
    return _get(api, "/works", **named, rows=count)


def _people(row: Mapping[str, object]) -> list[str]:
    people = row.get("author")
    named = [one for one in people if isinstance(one, dict)] if isinstance(people, list) else []
    return [
        " ".join(str(one[part]) for part in ("given", "family", "name") if one.get(part))
        for one in named
    ]


def _withdrawn(row: Mapping[str, object]) -> bool:
    return not _WITHDRAWN.isdisjoint(
        map(str, rows if isinstance(rows := at(row, "updated-by.*.type"), list) else ())
    )


def _europe_pmc(api: WebApi, query: SearchQuery, text: str, count: int) -> Request:
    period = _between(api, query, " AND FIRST_PDATE:[{} TO {}]", open_end="3000-12-31")
    named = " OR ".join(f'DOI:"{doi}"' for doi in query.dois)
    searched = named or " ".join(_terms(text)) + period
    return _get(api, "/search", query=searched, format="json", resultType="core", pageSize=count)


def _free_pdf(row: Mapping[str, object]) -> object:
    """Return the open PDF that Europe PMC knows of, else the DOI, else the record."""
    texts = at(row, "fullTextUrlList.fullTextUrl")
    for one in texts if isinstance(texts, list) else []:
        if at(one, "documentStyle") == "pdf" and at(one, "availabilityCode") in ("OA", "F"):
            return at(one, "url")
    return row.get("doi") or f"https://europepmc.org/article/{row.get('source')}/{row.get('id')}"


def _arxiv(api: WebApi, query: SearchQuery, text: str, count: int) -> Request:
    # Terms side by side must all be met, which a question's never are; relevance orders them well.
    searched = " OR ".join(f'all:"{term}"' for term in _terms(text))
    period = _between(
        api, query, "submittedDate:[{}0000 TO {}2359]", open_end="3000-12-31"
    ).replace("-", "")
    return _get(
        api,
        "/api/query",
        search_query=f"({searched}) AND {period}" if period else searched,
        max_results=count,
    )


def _atom(body: bytes) -> dict[str, object]:
    """Return the entries of arXiv's Atom as rows; raises ValueError for what is no whole feed."""
    if body.strip().startswith(_BUSY.encode()):
        return {"error": _BUSY}
    from pipeline.read.text import child_text, parse_xml  # noqa: PLC0415  brings markdown-it and lxml, 0.1 s

    root = parse_xml(body) if body.rstrip().endswith(b"</feed>") else None
    if root is None:
        raise ValueError
    rows: list[dict[str, object]] = []
    for entry in root.iter("{*}entry"):
        if "/api/errors" in child_text(entry, "id"):
            return {"error": child_text(entry, "summary") or "Error"}
        pdf = [link.get("href") for link in entry.iter("{*}link") if link.get("title") == "pdf"]
        row: dict[str, object] = {
            name: child_text(entry, name) for name in ("title", "summary", "published", "doi")
        }
        row["url"] = (pdf[:1] or [child_text(entry, "id")])[0].replace(
            "http://arxiv.org", "https://arxiv.org"
        )
        # What carries no publisher's DOI has arXiv's own, without the version.
        number = re.search(r"/abs/([^?#]+?)(?:v\d+)?$", child_text(entry, "id"))
        row["doi"] = row["doi"] or (f"10.48550/arxiv.{number[1]}" if number else "")
        row["authors"] = [child_text(person, "name") for person in entry.iter("{*}author")]
        rows.append(row)
    return {"entries": rows}


def _openalex_judged(code: int, answer: object) -> SearchStatus | None:
    spent = any(word in str(answer).lower() for word in ("daily", "budget", "credit"))
    return "quota" if code == 429 and spent else "rate_limited" if code == 403 else None


def _arxiv_judged(code: int, answer: object) -> SearchStatus | None:
    said = error_text(answer)
    if said or code == 503:
        return "rate_limited" if said == _BUSY or code == 503 else "bad_response"
    return "blocked" if code == 403 else None


def _failed_within(code: int, answer: object) -> SearchStatus | None:
    """Crossref and Europe PMC may say 200 and `failed` or `errCode`; both refuse whom they take for
    a harvester."""
    wrong = at(answer, "status") == "failed" or at(answer, "errCode")
    return "blocked" if code == 403 else "bad_response" if code == 200 and wrong else None


_catalogue: Final = partial(Service, able=_ABLE, most=100, longest=1_000, keyless=True)

SCHOLARLY: Final[dict[str, Service]] = {
    service.name: service
    for service in (
        _catalogue(
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
            able=_NAMED,
            retracted=lambda row: row.get("is_retracted") is True,
        ),
        _catalogue(
            name="semanticscholar",
            title="Semantic Scholar",
            address="https://api.semanticscholar.org",
            write=_semantic_scholar,
            judge=lambda code, answer: "blocked" if code == 403 else None,
            rows=lambda answer: answer.get("data", [] if answer.get("total") == 0 else None),
            url="openAccessPdf.url|externalIds.DOI|url",
            snippet=("abstract",),
            published="publicationDate",
            authors="authors.*.name",
            doi="externalIds.DOI",
            pause=1.0,
        ),
        _catalogue(
            name="crossref",
            title="Crossref",
            address="https://api.crossref.org",
            write=_crossref,
            judge=_failed_within,
            rows=lambda answer: at(answer, "message.items"),
            headline="title.0",
            url="URL",
            snippet=("abstract",),
            published="issued.date-parts.0",
            language="language",
            authors=_people,
            doi="DOI",
            able=_NAMED,
            retracted=_withdrawn,
            pause=0.2,
        ),
        _catalogue(
            name="europepmc",
            title="Europe PMC",
            address="https://www.ebi.ac.uk/europepmc/webservices/rest",
            write=_europe_pmc,
            judge=_failed_within,
            rows=lambda answer: at(answer, "resultList.result"),
            url=_free_pdf,
            snippet=("abstractText",),
            published="firstPublicationDate|pubYear",
            authors="authorList.author.*.fullName",
            doi="doi",
            able=_NAMED,
            retracted=lambda row: "Retracted Publication" in str(at(row, "pubTypeList.pubType")),
            pause=0.2,
        ),
        _catalogue(
            name="arxiv",
            title="arXiv",
            address="https://export.arxiv.org",
            write=_arxiv,
            judge=_arxiv_judged,
            rows=lambda answer: answer.get("entries"),
            snippet=("summary",),
            published="published",
            authors="authors.*",
            doi="doi",
            read=_atom,
            pause=3.0,
        ),
    )
}
"""The catalogues, by name, in the order in which they are asked: the widest first, then by what
they give of a text."""
