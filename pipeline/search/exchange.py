"""One call to a search API over HTTP, its answer typed by status, and results as plain
text; what all providers share.

Every failure becomes a `SearchOutcome` with a reason that a person can act on, and
never contains a key. Titles and snippets arrive with marks around the hits (`<b>`),
entities and control characters, and were written by strangers. Not for: the parameters
and fields of one API (`providers/`), waiting and repeating
(`pipeline/search/chain.py`).
"""

import html
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import quote, urlsplit

import httpx2

from pipeline.fetch.exchange import retry_after as seconds_asked
from pipeline.search.chain import DEADLINE
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.search.service import Judge, Request, error_text
from pipeline.text.frame import TITLE_CHARACTERS, one_line

RESULTS_BYTES: Final = 4_000_000
"""A page of results has about 50 kB, with long passages 300 kB."""
_SNIPPET_TAG: Final = re.compile(r"<(?:!--[^<>]*|/?[a-zA-Z][^<>]*)>")
_URL_LOGIN: Final = re.compile(r"(?<=//)[^/@]*@")
"""Name and password in an address, which no reason may show."""
_KIND_OF_STATUS: Final[Mapping[int, SearchStatus]] = {
    401: "unauthorized",
    402: "quota",
    403: "unauthorized",
    408: "timeout",
    429: "rate_limited",
    504: "timeout",
}
_STATUS_REASONS: Final[Mapping[SearchStatus, str]] = {
    "unauthorized": "the key was not accepted, or not for this",
    "quota": "the plan or the credits are used up",
    "rate_limited": "too many requests",
    "timeout": "the service itself timed out",
    "blocked": "the service refuses us",
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """Calls to one search API: its name in outcomes, the client, the key that no reason
    may show."""

    name: str
    client: httpx2.AsyncClient
    timeout: float = DEADLINE
    secret: str = field(default="", repr=False)
    judge: Judge = lambda code, answer: None
    meaning: Mapping[SearchStatus, str] = field(default_factory=dict)
    """Statuses of which there is more to say here than elsewhere."""
    read: Callable[[bytes], object] = json.loads
    """A body as values; raises ValueError for one of another form."""
    inside: bool = False
    """Whether the service is on this machine or in its network: what it finds may be
    there, too."""

    async def ask(self, request: Request) -> dict[str, object] | SearchOutcome:
        """Send `request`; return the JSON object of a 200, or how it failed. Raises
        nothing over the other side.

        A redirect is not followed and counts as a failure, and so does a body over
        `RESULTS_BYTES`."""
        address = _URL_LOGIN.sub("", request.url)
        try:
            async with self.client.stream(
                request.method,
                request.url,
                headers={"Accept": "application/json", **request.headers},
                params=request.params,
                json=request.body,
                timeout=self.timeout,
                follow_redirects=False,
            ) as response:
                body = await _read_body(response)
        except httpx2.TimeoutException:
            return self.failed(
                "timeout", f"No answer from {address} within {self.timeout:g} s."
            )
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            away = isinstance(error, httpx2.ConnectError)
            missed = (
                f"No {'connection to' if away else 'answer from'} {address}: "
                f"{error or type(error).__name__}."
            )
            return self.failed("unreachable" if away else "bad_response", missed)
        except (UnicodeError, ValueError):
            return self.failed(
                "unauthorized",
                "The key cannot be sent: it holds characters that no header may hold.",
            )
        answer: object = None
        with suppress(ValueError, RecursionError):
            answer = self.read(body)
        judged = self.judge(response.status_code, answer)
        if response.status_code != 200 or judged is not None:
            return self._refused(response, answer, judged)
        if isinstance(answer, dict):
            return answer
        form = (
            "HTML came instead of data"
            if body.lstrip()[:1] == b"<"
            else "The answer is not complete"
        )
        return self.failed(
            "bad_response",
            f"{form}; something between here and {address} may have answered instead.",
        )

    def _refused(
        self, response: httpx2.Response, answer: object, judged: SearchStatus | None
    ) -> SearchOutcome:
        code = response.status_code
        status = judged or _KIND_OF_STATUS.get(code, "bad_response")
        said = plain_text(error_text(answer), longest=200).rstrip(".")
        meaning = _STATUS_REASONS.get(
            status,
            "the service failed" if code >= 500 else "the request was not accepted",
        )
        if status == "unauthorized" and not self.secret:
            meaning = "a key or a login is asked for, and none is set"
        meaning = self.meaning.get(status, meaning)
        wait = retry_after(response.headers)
        return self.failed(
            status, f"HTTP {code}: {meaning}{f' ({said})' if said else ''}.", wait=wait
        )

    def failed(
        self, status: SearchStatus, reason: str, *, wait: float | None = None
    ) -> SearchOutcome:
        """Return a failure; the key is taken out of `reason`, also where the other side
        repeated it."""
        if self.secret:
            for form in (
                self.secret,
                repr(self.secret)[1:-1],
                quote(self.secret, safe=""),
            ):
                reason = reason.replace(form, "[key]")
        return SearchOutcome((), self.name, status, reason, wait)

    def finished(
        self,
        results: Iterable[SearchResult | None],
        query: SearchQuery,
        *,
        limit: int,
        notes: str = "",
    ) -> SearchOutcome:
        """Return the answer: hits with an address, on the requested site, numbered, at
        most `limit`.

        Without any the status is `empty`."""
        kept = [
            hit for hit in results if hit is not None and on_site(hit.url, query.site)
        ][:limit]
        if not kept:
            return SearchOutcome(
                (), self.name, "empty", f"Nothing was found. {notes}".strip()
            )
        numbered = tuple(
            replace(hit, rank=rank, inside=self.inside)
            for rank, hit in enumerate(kept, start=1)
        )
        return SearchOutcome(numbered, self.name, "ok", notes)

    def strange(self) -> SearchOutcome:
        """Return the failure of an answer that is JSON of another form."""
        return self.failed(
            "bad_response",
            "The answer has no list of results; the API may have changed.",
        )


def plain_text(value: object, *, longest: int = 2_000) -> str:
    """Return `value` as one line without markup, entities and invisible characters;
    "" if it is not text.

    `longest`: Characters kept; real snippets have a median of 1,509 in the CRAG sample
    and a long tail."""
    if not isinstance(value, str):
        return ""
    bare = html.unescape(_SNIPPET_TAG.sub("", value[: 4 * longest]))
    return one_line(bare)[:longest]


def web_address(value: object) -> str:
    """Return `value` if it is an http(s) address with a host, else the empty string."""
    if not isinstance(value, str) or not value.strip().isprintable():
        return ""
    try:
        parts = urlsplit(value.strip())
    except ValueError:
        return ""
    return value.strip() if parts.scheme in ("http", "https") and parts.hostname else ""


def day_of(value: object) -> str:
    """Return the ISO day of a date as APIs write it: ISO, mail format, `May 3, 2024` or
    a list of numbers.

    A year, or a year and its month, stays as it is; empty for anything else."""
    if isinstance(value, list):
        value = "-".join(f"{part:02}" for part in value if isinstance(part, int))
    if isinstance(value, str) and re.fullmatch(r"[12]\d{3}(-\d\d)?", value):
        return value
    if not isinstance(value, str) or len(value) > 60:
        return ""
    readers: tuple[Callable[[str], date], ...] = (
        lambda text: date.fromisoformat(text[:10]),
        lambda text: datetime.strptime(text.strip(), "%b %d, %Y").date(),
        lambda text: parsedate_to_datetime(text).date(),
    )
    for read in readers:
        try:
            return read(value).isoformat()
        except (ValueError, TypeError, IndexError):
            continue
    return ""


def hit(
    provider: str, row: Mapping[str, object], *, url: str, snippet: object
) -> SearchResult | None:
    """Return a result from the fields `title` and `url` of `row` and a text; None
    without a web address.

    Without a title that is the address."""
    address = web_address(row.get(url))
    if not address:
        return None
    title = plain_text(row.get("title"), longest=TITLE_CHARACTERS) or address
    return SearchResult(
        title=title, url=address, snippet=plain_text(snippet), engine=provider
    )


def on_site(url: str, site: str) -> bool:
    """Return whether `url` lies on the host `site` or below it; any address does where
    `site` is empty."""
    wanted = site.lower().strip(". ").removeprefix("www.")
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    return not wanted or host == wanted or host.endswith(f".{wanted}")


def words_of(
    query: SearchQuery,
    *,
    longest: int = 400,
    words: int = 1_000,
    operator: bool = False,
) -> tuple[str, str]:
    """Return the words of `query`, cut to what an API takes, and the sentence that says
    so if they were cut.

    Most engines cut or refuse more than 400 characters. With `operator` the site is
    prefixed as `site:HOST`.
    """
    text = " ".join(query.text.split())
    site = f"site:{query.site} " if operator and query.site else ""
    kept = " ".join(text.split()[: words - bool(site)])[: longest - len(site)]
    return (
        site + kept,
        "" if kept == text else f"The query was cut to {len(kept)} characters.",
    )


def unmet(query: SearchQuery, able: frozenset[str]) -> str:
    """Return the sentence on what of `query` a provider cannot honour; empty when it
    honours all that is set."""
    asked = {
        "freshness": query.freshness != "any" and not (query.since or query.until),
        "dates": bool(query.since or query.until),
        "language": bool(query.language),
        "region": bool(query.region),
        "safe search": bool(query.safe),
        "paging": query.page > 1,
    }
    missing = [name for name, wished in asked.items() if wished and name not in able]
    return f"Ignored filters: {', '.join(missing)}." if missing else ""


def sentences(*parts: str) -> str:
    """Join sentences, leaving out empty ones."""
    return " ".join(filter(None, parts))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, else of the used-up window of
    `X-RateLimit-Reset`, None where neither says it."""
    if (wait := seconds_asked(headers, now=time.time())) is not None:
        return wait
    # Several windows in one header ("0, 14523" left; "1, 1419704" seconds): the longest that is
    # used up counts.
    left = headers.get("x-ratelimit-remaining", "").split(",")
    ends = headers.get("x-ratelimit-reset", "").split(",")
    waits = [
        float(end)
        for now, end in zip(left, ends, strict=False)
        if now.strip() == "0" and end.strip().isdecimal()
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
