"""arXiv, which wants one request in three seconds and answers in Atom.

It says "Rate exceeded." with status 200, and puts errors into an entry.
"""

import re
from typing import TYPE_CHECKING, Final

from extras.scholarly import between, catalogue, get, terms
from pipeline.search.provider import over
from pipeline.search.service import Api, Request, error_text

if TYPE_CHECKING:
    from lxml import etree

    from pipeline.search.query import SearchQuery, SearchStatus

_RATE_EXCEEDED: Final = "Rate exceeded"


def _arxiv(api: Api, query: "SearchQuery", text: str, count: int) -> Request:
    # Terms side by side must all be met, which a question's never are; relevance orders them well.
    searched = " OR ".join(f'all:"{term}"' for term in terms(text))
    period = between(
        api, query, "submittedDate:[{}0000 TO {}2359]", open_end="3000-12-31"
    ).replace("-", "")
    return get(
        api,
        "/api/query",
        search_query=f"({searched}) AND {period}" if period else searched,
        max_results=count,
    )


def _atom(body: bytes) -> dict[str, object]:
    """Return the entries of arXiv's Atom as rows; an error of its own, or that it is
    busy, as `error`. Raises `ValueError` for an incomplete feed."""
    if body.strip().startswith(_RATE_EXCEEDED.encode()):
        return {"error": _RATE_EXCEEDED}
    from readers.text.markup import child_text, parse_xml  # noqa: PLC0415  brings markdown-it and lxml, 0.1 s

    root = parse_xml(body) if body.rstrip().endswith(b"</feed>") else None
    if root is None:
        raise ValueError
    entries = list(root.iter("{*}entry"))
    for entry in entries:
        if "/api/errors" in child_text(entry, "id"):
            return {"error": child_text(entry, "summary") or "Error"}
    return {"entries": [_row(entry) for entry in entries]}


def _row(entry: "etree._Element") -> dict[str, object]:
    """Return an entry of the feed by names."""
    from readers.text.markup import child_text  # noqa: PLC0415  as above

    page = child_text(entry, "id")
    links = entry.iter("{*}link")
    pdf = next((link.get("href") for link in links if link.get("title") == "pdf"), page)
    row: dict[str, object] = {
        name: child_text(entry, name)
        for name in ("title", "summary", "published", "doi")
    }
    row["url"] = pdf.replace("http://arxiv.org", "https://arxiv.org")
    # What carries no publisher's DOI has arXiv's own, without the version.
    number = re.search(r"/abs/([^?#]+?)(?:v\d+)?$", page)
    row["doi"] = row["doi"] or (f"10.48550/arxiv.{number[1]}" if number else "")
    row["authors"] = [child_text(person, "name") for person in entry.iter("{*}author")]
    return row


def _arxiv_judged(code: int, answer: object) -> "SearchStatus | None":
    error = error_text(answer)
    if error or code == 503:
        return (
            "rate_limited" if error == _RATE_EXCEEDED or code == 503 else "bad_response"
        )
    return "blocked" if code == 403 else None


PROVIDER: Final = over(
    catalogue(
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
    kind="research",
    place=75,
)
