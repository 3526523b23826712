"""One JSON API of search as a row of a table: what sets each apart, and how values are
found in its answers.

Light on purpose: the files of providers are read at every start. Not for: asking
(`web_api.py`)."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.fetch import USER_AGENT

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery, SearchStatus

Field = str | Callable[[Mapping[str, object]], object]
"""Position of a value in a row: a path for `at`, or a function."""
_DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}

Judge = Callable[[int, object], "SearchStatus | None"]
"""HTTP status and parsed body (None if not JSON) to what they mean for one API; None
for the usual meaning."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent."""

    method: str
    url: str
    headers: Mapping[str, str]
    params: Mapping[str, str] | None = None
    body: Mapping[str, object] | None = None


class Api(Protocol):
    """Who asks a service (`web_api.WebApi`)."""

    base: str
    """Its address, without a slash at the end."""
    key: str
    """The key, or the mail address of one without keys."""
    today: Callable[[], date]


Fault = tuple[str, "SearchStatus", float | None]
"""A sentence, empty for nothing, the status where that left no result, and the seconds
until it is worth asking again."""
NO_FAULT: Final[Fault] = ("", "ok", None)


@dataclass(frozen=True, slots=True)
class Service:
    """One search API."""

    name: str
    title: str
    address: str
    write: "Callable[[Api, SearchQuery, str, int], Request | str]"
    """Takes who asks, for what, in which words, and how many results are wanted; a
    sentence where that cannot be asked."""
    judge: Judge
    able: frozenset[str]
    """What of a query it honours, in the words of `unmet`."""
    most: int
    """Results of one request."""
    longest: int
    """Characters of a query that it takes."""
    words: int = 1_000
    """Words of a query that it takes."""
    pages: int = 0
    """Pages that it has; without any, a later page is cut from one longer list, up to
    `most`."""
    rows: Callable[[Mapping[str, object]], object] = lambda answer: answer.get(
        "results"
    )
    """The list of results in an answer."""
    headline: str = "title"
    """Position of the title in a row, which has its `Request` as `asked`; likewise the
    next fields."""
    url: Field = "url"
    """An address, or a DOI."""
    snippet: tuple[Field, ...] = ()
    """One text or several, or a list of texts."""
    published: str = ""
    language: Field = ""
    engines: Field = ""
    """A list of names of engines that found it."""
    authors: Field = ""
    """A list of names."""
    doi: str = ""
    read: Callable[[bytes], object] = json.loads
    """A body as values."""
    pause: float = 0.0
    """Seconds between requests, one at a time, where a service asks for that."""
    keyless: bool = False
    """Whether it needs no key; the user's email address is used instead."""
    meaning: "Mapping[SearchStatus, str]" = field(default_factory=dict)
    """Statuses of which there is more to say here than elsewhere."""
    fault: "Callable[[Mapping[str, object]], Fault]" = lambda answer: NO_FAULT
    """What failed although an answer came."""


def agent(contact: str) -> str:
    """Return the name we go by, with the address of the person who asks where one is
    set."""
    return f"{USER_AGENT[:-1]}; mailto:{contact})" if contact else USER_AGENT


def since_of(api: Api, query: "SearchQuery") -> str:
    """Return the first day that `query` wants, for services that know days and no
    periods; empty for any."""
    if query.since or query.until or query.freshness == "any":
        return query.since
    return (api.today() - timedelta(days=_DAYS[query.freshness])).isoformat()


def given(**fields: object) -> dict[str, object]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}


def at(value: object, path: str) -> object:
    """Return what lies in `value` at a dotted path of names and numbers, None for
    nothing there.

    A `*` goes through a list and gives what lies below each entry; `|` parts paths of
    which the first that leads to something counts. Where there is no list, `*` gives an
    empty one."""
    if "|" in path:
        return next(
            filter(None, (at(value, option) for option in path.split("|"))), None
        )
    step, _, tail = path.partition(".")
    if step == "*":
        entries = value if isinstance(value, list) else []
        return [at(entry, tail) if tail else entry for entry in entries]
    if isinstance(value, list) and step.isdecimal():
        value = value[int(step)] if int(step) < len(value) else None
    else:
        value = value.get(step) if isinstance(value, dict) else None
    return at(value, tail) if tail else value


def rows_of(value: object) -> list[Mapping[str, object]] | None:
    """Return the objects of a JSON list; None if `value` is not a list."""
    if not isinstance(value, list):
        return None
    return [row for row in value if isinstance(row, dict)]


def joined(passages: Iterable[object]) -> str:
    """Return several passages of one page, texts or lists of texts, as one snippet."""
    texts = [
        text
        for passage in passages
        for text in (passage if isinstance(passage, list) else [passage])
    ]
    return " … ".join(text for text in texts if isinstance(text, str) and text.strip())


def error_text(answer: object) -> str:
    """Return the words of an error body in the forms the APIs document: error, errors,
    detail, message, nested; "" for any other form."""
    names = ("detail", "error", "errors", "message", "msg", "info", "errMsg")
    return answer if isinstance(answer, str) else _nested(answer, names, error_text)


def error_code(answer: object) -> str:
    """Return the machine-readable code of an error body (`code` or `tag`, at the top or
    below `error`/`errors`), "" without one."""
    code = at(answer, "code|tag")
    if isinstance(code, str):
        return code
    return _nested(answer, ("error", "errors"), error_code)


def _nested(answer: object, names: Iterable[str], read: Callable[[object], str]) -> str:
    """Return what `read` finds first in a list, or under `names`; "" for nothing."""
    values = (
        answer if isinstance(answer, list) else [at(answer, name) for name in names]
    )
    deeper = (value for value in values if isinstance(value, dict | list | str))
    return next(filter(None, map(read, deeper)), "")
