"""A provider over one JSON API of search, which a row describes (`service.py`): one
call over HTTP, its answer typed by status.

Every failure becomes a `SearchOutcome` with a reason that a person can act on, and
never contains a key. Not for: the row of one API (`providers/`), their other endpoints
(news, answers, page texts), or waiting and repeating (`pipeline/search/chain.py`)."""

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import anyio
import httpx2

from pipeline.fetch.address import names_inside
from pipeline.fetch.exchange import retry_after as seconds_asked
from pipeline.search.chain import DEADLINE
from pipeline.search.provider import Access
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.search.results import (
    day_of,
    hit,
    on_site,
    plain_text,
    sentences,
    unmet,
    words_of,
)
from pipeline.search.service import (
    Field,
    Request,
    Service,
    at,
    error_text,
    joined,
    rows_of,
)

RESULTS_BYTES: Final = 4_000_000
"""A page of results has about 50 kB, with long passages 300 kB."""
LONGEST_AUTHORS: Final = 20
"""Names of authors that are kept; papers of physics have thousands."""
_DOI: Final = re.compile(r"10\.\d{4,9}/[-._;()/:a-zA-Z0-9]{1,100}")
_STATUS_OF_CODE: Final[Mapping[int, SearchStatus]] = {
    401: "unauthorized",
    402: "quota",
    403: "unauthorized",
    408: "timeout",
    429: "rate_limited",
    504: "timeout",
}
_MEANING: Final[Mapping[SearchStatus, str]] = {
    "unauthorized": "the key was not accepted, or not for this",
    "quota": "the plan or the credits are used up",
    "rate_limited": "too many requests",
    "timeout": "the service itself timed out",
    "blocked": "the service refuses us",
}


def made(service: Service, access: Access) -> "WebApi":
    """Return the provider over `service`, with the key, or the mail address of one without keys.

    An instance that a person runs is part of its name: answers are cached by it."""
    key = access.contact if service.keyless else access.key
    host = urlsplit(access.address).netloc.rpartition("@")[2]
    api = WebApi(service, access.http, key, base_url=access.address)
    api.name += f" {host}" if host else ""
    return api


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
        their mail address in its place, or the login of `base_url`.

        `today` turns a freshness into a date where that is all a service knows. Without
        a key where it needs one, its name ends in `-keyless`."""
        address = urlsplit(base_url or service.address)
        login, _, host = address.netloc.rpartition("@")
        # In the address a login would appear in the client's log.
        self.base = address._replace(netloc=host).geturl().rstrip("/")
        self.key = key or unquote(login)
        is_named = self.key or service.keyless or not service.address
        self.name = service.name if is_named else f"{service.name}-keyless"
        self.today = today
        self._service = service
        self._client = client
        self._timeout = timeout
        self._is_inside = names_inside(self.base)
        self._turn = anyio.Lock()
        self._free_at = 0.0

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return one page of results, at most `limit`; never raises for what the
        service does.

        It is `empty` beyond the pages or results that the service has, and
        `unsupported` for what it is not asked by."""
        # 1. The request, if the service can be asked that
        service = self._service
        skipped = 0 if service.pages else (query.page - 1) * limit
        words = words_of(
            query,
            longest=service.longest,
            words=service.words,
            operator="site" not in service.able,
        )
        request = self._request(query, words, skipped, skipped + limit)
        if isinstance(request, SearchOutcome):
            return request
        # 2. The answer
        answer = await self._ask(request)
        if isinstance(answer, SearchOutcome):
            return answer
        rows = rows_of(service.rows(answer))
        if rows is None:
            return self._failed(
                "bad_response",
                "The answer has no list of results; the API may have changed.",
            )
        # 3. Its results
        results = [self._result({**row, "asked": request}) for row in rows[skipped:]]
        hits = [hit for hit in results if hit and on_site(hit.url, query.site)][:limit]
        fault, status, pause = service.fault(answer)
        if hits:
            notes = sentences(plain_text(fault), unmet(query, service.able))
            ranked = (replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))
            return SearchOutcome(tuple(ranked), self.name, "ok", notes)
        if not fault:
            status = "empty"
            fault = sentences("Nothing was found.", unmet(query, service.able))
        return self._failed(status, plain_text(fault), pause)

    def _request(
        self, query: SearchQuery, words: str, skipped: int, count: int
    ) -> Request | SearchOutcome:
        """Return what is sent, or why the service cannot be asked that."""
        service = self._service
        if skipped >= service.most or 0 < service.pages < query.page:
            bound = (
                f"{service.pages} pages" if service.pages else f"{service.most} results"
            )
            return self._failed("empty", f"{service.title} has no more than {bound}.")
        request = service.write(self, query, words, min(count, service.most))
        if isinstance(request, str):
            return self._failed("unsupported", request)
        return request

    async def _ask(self, request: Request) -> dict[str, object] | SearchOutcome:
        """Send `request` when it is its turn."""
        if not self._service.pause:
            return await self._send(request)
        async with self._turn:
            await anyio.sleep_until(self._free_at)
            answer = await self._send(request)
            self._free_at = anyio.current_time() + self._service.pause
            return answer

    async def _send(self, request: Request) -> dict[str, object] | SearchOutcome:
        """Return the JSON object of a 200, or how it failed. Raises nothing over the
        other side.

        A redirect is not followed and counts as a failure, and so does a body over
        `RESULTS_BYTES`."""
        try:
            async with self._client.stream(
                request.method,
                request.url,
                headers={"Accept": "application/json", **request.headers},
                params=request.params,
                json=request.body,
                timeout=self._timeout,
                follow_redirects=False,
            ) as response:
                body = await _read_body(response)
        except httpx2.TimeoutException:
            return self._failed(
                "timeout", f"No answer from {request.url} within {self._timeout:g} s."
            )
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            is_away = isinstance(error, httpx2.ConnectError)
            return self._failed(
                "unreachable" if is_away else "bad_response",
                f"No {'connection to' if is_away else 'answer from'} {request.url}: "
                f"{error or type(error).__name__}.",
            )
        except (UnicodeError, ValueError):
            return self._failed(
                "unauthorized",
                "The key cannot be sent: it holds characters that no header may hold.",
            )
        answer: object = None
        with suppress(ValueError, RecursionError):
            answer = self._service.read(body)
        judged = self._service.judge(response.status_code, answer)
        if response.status_code != 200 or judged is not None:
            return self._refused(response, answer, judged)
        if isinstance(answer, dict):
            return answer
        form = (
            "HTML came instead of data"
            if body.lstrip()[:1] == b"<"
            else "The answer is not complete"
        )
        return self._failed(
            "bad_response",
            f"{form}; something between here and {request.url} may have answered instead.",
        )

    def _refused(
        self, response: httpx2.Response, answer: object, judged: SearchStatus | None
    ) -> SearchOutcome:
        code = response.status_code
        status = judged or _STATUS_OF_CODE.get(code, "bad_response")
        meaning = self._service.meaning.get(status) or _MEANING.get(
            status,
            "the service failed" if code >= 500 else "the request was not accepted",
        )
        if status == "unauthorized" and not self.key:
            meaning = "a key or a login is asked for, and none is set"
        words = plain_text(error_text(answer), longest=200).rstrip(".")
        reason = f"HTTP {code}: {meaning}{f' ({words})' if words else ''}."
        return self._failed(status, reason, retry_after(response.headers))

    def _failed(
        self, status: SearchStatus, reason: str, pause: float | None = None
    ) -> SearchOutcome:
        """Return an answer without results; the key is taken out of `reason`, also where
        the other side repeated it."""
        password = self.key.partition(":")[2]
        for secret in filter(None, (self.key, password)):
            for form in (secret, repr(secret)[1:-1], quote(secret, safe="")):
                reason = reason.replace(form, "[key]")
        return SearchOutcome((), self.name, status, reason, pause)

    def _result(self, row: Mapping[str, object]) -> SearchResult | None:
        service = self._service
        url = _value(row, service.url)
        if isinstance(url, str) and _DOI.fullmatch(url):
            url = f"https://doi.org/{url}"
        engines = _texts(_value(row, service.engines))
        result = hit(
            ":".join(filter(None, (self.name, "+".join(engines)))),
            url=url,
            title=at(row, service.headline),
            snippet=joined(_value(row, field) for field in service.snippet),
        )
        doi = _DOI.search(str(at(row, service.doi) or ""))
        return result and replace(
            result,
            published=day_of(at(row, service.published)),
            language="".join(_texts([_value(row, service.language)]))[:2],
            author="; ".join(_texts(_value(row, service.authors))),
            doi=doi[0].lower() if doi else "",
            inside=self._is_inside,
        )


def _value(row: Mapping[str, object], field: Field) -> object:
    return at(row, field) if isinstance(field, str) else field(row)


def _texts(values: object) -> list[str]:
    """Return the texts of a list, as plain lines without empty ones."""
    names = values[:LONGEST_AUTHORS] if isinstance(values, list) else []
    return [text for name in names if (text := plain_text(name))]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, else of the used-up window of
    `X-RateLimit-Reset`, None where neither says it."""
    if (seconds := seconds_asked(headers, now=time.time())) is not None:
        return seconds
    # Several windows in one header ("0, 14523" left; "1, 1419704" seconds): the longest that is
    # used up counts.
    counts = headers.get("x-ratelimit-remaining", "").split(",")
    ends = headers.get("x-ratelimit-reset", "").split(",")
    waits = [
        float(bound)
        for count, bound in zip(counts, ends, strict=False)
        if count.strip() == "0" and bound.strip().isdecimal()
    ]
    return max(waits, default=None)


async def _read_body(response: httpx2.Response) -> bytes:
    """Return the body; b"" for one over `RESULTS_BYTES`, which then is read as not
    complete.

    Raises httpx2's errors."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > RESULTS_BYTES:
            return b""
    return bytes(body)
