"""What the catalogues of research (OpenAlex, Semantic Scholar, Crossref, arXiv) share.

All answer without a key. Crossref and OpenAlex serve better who gives a mail address. A
hit leads to the free text where a catalogue knows one, else to the DOI. Not for: one of
them (`providers/`), nor the call itself (`web_api.py`)."""

import functools
import re
from typing import TYPE_CHECKING, Final

from pipeline.search.service import Api, Request, Service, agent, at, since_of
from seams import later

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery, SearchStatus

MOST_TERMS: Final = 12
"""Words of a question that are sent where all of them must be met or each is an
operand."""
_SCHOLARLY_TERM: Final = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")
ABLE: Final = frozenset({"freshness", "dates", "paging"})
catalogue: Final = functools.partial(
    Service, able=ABLE, most=100, longest=1_000, keyless=True
)


@functools.cache
def _trifles() -> frozenset[str]:
    words = later("pipeline.text.words", "words")
    return frozenset(
        words("stop", "en") | words("questions.words", "en") | words("scholarly.filler")
    )


def terms(text: str) -> list[str]:
    """Return what a question is about, without the words that only ask for research on
    it."""
    found = [
        term for term in _SCHOLARLY_TERM.findall(text) if term.lower() not in _trifles()
    ]
    return (found or _SCHOLARLY_TERM.findall(text))[:MOST_TERMS]


def get(api: Api, path: str, **params: str | int) -> Request:
    """Return a request with the parameters that have a value."""
    sent = {name: str(value) for name, value in params.items() if value}
    # Crossref and OpenAlex read the mail address there; in the URL it would appear in
    # logs.
    return Request("GET", api.base + path, {"User-Agent": agent(api.key)}, sent)


def between(api: Api, query: "SearchQuery", form: str, *, open_end: str = "") -> str:
    """Return the first and last day that are wanted in a service's own form, empty for
    any. A missing first day is the year 1000, a missing last one `open_end`."""
    since = since_of(api, query)
    return (
        form.format(since or "1000-01-01", query.until or open_end)
        if since or query.until
        else ""
    )


def failed_within(code: int, answer: object) -> "SearchStatus | None":
    """Return the status of an answer of Crossref, which may say 200 and `failed`, and
    refuses whom it takes for a harvester."""
    is_failed = code == 200 and at(answer, "status") == "failed"
    return "blocked" if code == 403 else "bad_response" if is_failed else None
