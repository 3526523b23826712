"""A provider over one JSON API of search, which a row describes (`service.py`).

Not for: the row of one API (`providers/`), their other endpoints (news, answers, page texts), or
the call itself (`exchange.py`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from typing import Final

import anyio
import httpx2

from pipeline.fetch.address import names_inside
from pipeline.search.chain import DEADLINE
from pipeline.search.exchange import (
    Exchange,
    day_of,
    hit,
    plain_text,
    sentences,
    unmet,
    words_of,
)
from pipeline.search.provider import Access
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult
from pipeline.search.service import Field, Request, Service, at, joined, rows_of

_DOI: Final = re.compile(r"10\.\d{4,9}/[-._;()/:a-zA-Z0-9]{1,100}")
LONGEST_AUTHORS: Final = 20
"""Names of authors that are kept; papers of physics have thousands."""


def made(service: Service, access: Access) -> "WebApi":
    """Return the provider over `service`, with the key, or the mail address of one without keys."""
    return WebApi(
        service, access.http, access.contact if service.keyless else access.key
    )


class WebApi:
    """A provider over one search API."""

    def __init__(
        self,
        service: Service,
        client: httpx2.AsyncClient,
        key: str = "",
        *,
        base_url: str = "",
        timeout: float = DEADLINE,
        today: Callable[[], date] = date.today,
    ) -> None:
        """Ask `service` with the `key` of the person who asks; a keyless service takes
        their mail address in its place.

        `today` turns a freshness into a date where that is all a service knows. Without
        a key where it needs one, its name ends in `-keyless`."""
        self.name = (
            service.name if key or service.keyless else f"{service.name}-keyless"
        )
        self._service = service
        self.base = (base_url or service.address).rstrip("/")
        self._exchange = Exchange(
            self.name,
            client,
            timeout,
            key,
            service.judge,
            read=service.read,
            inside=names_inside(self.base),
        )
        self.key = key
        self.today = today
        self._turn = anyio.Lock()
        self._free_at = 0.0

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return one page of results, at most `limit`; never raises for what the
        service does.

        It is `empty` beyond the pages or results that the service has, and
        `unsupported` for DOIs where it is not asked by them."""
        service = self._service
        first = 0 if service.pages else (query.page - 1) * limit
        if first >= service.most or 0 < service.pages < query.page:
            end = (
                f"{service.pages} pages" if service.pages else f"{service.most} results"
            )
            notes = f"{service.title} has no more than {end}."
            return self._exchange.finished([], query, limit=limit, notes=notes)
        if query.dois and "dois" not in service.able:
            return self._exchange.failed(
                "unsupported", f"{service.title} is not asked by DOI."
            )
        operator = "site" not in service.able
        words, cut = words_of(
            query, longest=service.longest, words=service.words, operator=operator
        )
        count = min(first + limit, service.most)
        answer = await self._ask(service.write(self, query, words, count))
        if isinstance(answer, SearchOutcome):
            return answer
        rows = rows_of(service.rows(answer))
        if rows is None:
            return self._exchange.strange()
        notes = sentences(unmet(query, service.able), cut)
        return self._exchange.finished(
            map(self._result, rows[first:]), query, limit=limit, notes=notes
        )

    async def _ask(self, request: Request) -> dict[str, object] | SearchOutcome:
        if not self._service.pause:
            return await self._exchange.ask(request)
        async with self._turn:
            await anyio.sleep_until(self._free_at)
            answer = await self._exchange.ask(request)
            self._free_at = anyio.current_time() + self._service.pause
            return answer

    def _result(self, row: Mapping[str, object]) -> SearchResult | None:
        service = self._service
        url = _value(row, service.url)
        address = (
            f"https://doi.org/{url}"
            if isinstance(url, str) and _DOI.fullmatch(url)
            else url
        )
        bare = {"title": at(row, service.headline), "url": address}
        snippet = joined(_value(row, field) for field in service.snippet)
        found = hit(self.name, bare, url="url", snippet=snippet)
        language = at(row, service.language)
        doi = _DOI.search(str(at(row, service.doi) or ""))
        names = _value(row, service.authors)
        authors = (
            [plain_text(name) for name in names[:LONGEST_AUTHORS]]
            if isinstance(names, list)
            else []
        )
        return found and replace(
            found,
            published=day_of(at(row, service.published)),
            language=language[:2] if isinstance(language, str) else "",
            author="; ".join(filter(None, authors)),
            doi=doi[0].lower() if doi else "",
            retracted=service.retracted(row),
        )


def _value(row: Mapping[str, object], field: Field) -> object:
    return at(row, field) if isinstance(field, str) else field(row)
