"""One web address asked to the end: guarded hops, one retry, robots.txt, and failures as typed errors.

Not for: files, the cache and conversion (`pipeline/fetch/client.py` puts the steps together).
"""

import random
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import anyio
import httpcore2
import httpx2

from errors import AddressRefused, SourceBlocked, SourceError, SourceTimeout, SourceUnavailable
from pipeline.fetch.address import Target, check_url
from pipeline.fetch.body import drain, read_body
from pipeline.fetch.gates import Gates
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.pauses import Pauses
from pipeline.fetch.robots import FETCH_SECONDS, MAX_BYTES, RobotsMemory, Rules, parse_robots, product_token
from pipeline.fetch.status import retry_after
from pipeline.read.charset import decode

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_TRANSIENT: Final = frozenset((502, 503, 504))
_BUSY: Final = frozenset((429, 503))
"""Answers whose `Retry-After` speaks for the whole site."""
_RETRY_SECONDS: Final = (0.1, 0.5)
"""A wait before the one retry is drawn from this range, so that many clients do not come back at once."""
_LONGEST_RETRY_AFTER: Final = 3.0
"""A server that asks for longer is not waited for; the caller is told instead."""
_RETRYABLE: Final = (httpx2.ConnectError, httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)


@dataclass(frozen=True, slots=True)
class Answer:
    """The last answer of a chain of redirects."""

    target: Target
    """Where it came from."""
    status: int
    headers: Mapping[str, str]
    """By lower-case names."""
    body: bytes
    """Unpacked; empty unless the status is 2xx."""


class Exchange:
    """Asks web addresses within limits. Every request of a fetcher, for robots.txt too, goes through here."""

    def __init__(self, client: httpx2.AsyncClient, limits: FetchLimits, clock: Callable[[], float]) -> None:
        self._client = client
        self._limits = limits
        self._clock = clock
        self._gates = Gates(overall=limits.overall, per_host=limits.per_host)
        self._robots = RobotsMemory()
        self._pauses = Pauses()

    async def ask(self, url: str, *, validators: Mapping[str, str]) -> Answer:
        """Return the answer for `url` after redirects, each hop checked as the first.

        Args:
            url: What was asked for.
            validators: Headers for a conditional request to the first hop and no other.

        Raises:
            SourceError: Refused, unreachable, too slow, too large or damaged.
        """
        target = check_url(url, self._limits)
        headers = validators
        seen: set[str] = set()
        for _ in range(self._limits.max_redirects + 1):
            if str(target.url) in seen:
                raise SourceUnavailable(f"{url} redirects in a circle.", source=url, hint="Use another source.")
            seen.add(str(target.url))
            if self._limits.respect_robots:
                await self._check_robots(url, target)
            answer = await self._hop(url, target, headers)
            location = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not location:
                return answer
            target = self._next(url, target, location)
            headers = {}
        raise SourceUnavailable(
            f"{url} redirects more than {self._limits.max_redirects} times.", source=url, hint="Use another source."
        )

    def _next(self, url: str, target: Target, location: str) -> Target:
        try:
            return check_url(str(target.url.join(location)), self._limits)
        except (httpx2.InvalidURL, UnicodeError, ValueError) as e:
            raise SourceUnavailable(
                f"{url} redirects to an invalid address ({e}).", source=url, hint="Use another source."
            ) from e
        except AddressRefused as e:
            raise AddressRefused(
                f"{url} redirects to where nothing is fetched: {e.what}", source=url, hint=e.hint
            ) from e

    async def _hop(self, url: str, target: Target, headers: Mapping[str, str]) -> Answer:
        """Return the answer of one address, asked a second time where that may help.

        Raises:
            SourceBlocked: The site asked to be left alone, and the time is not over.
        """
        origin = _origin(target)
        pause = self._pauses.remaining(origin, now=self._clock())
        if pause > _LONGEST_RETRY_AFTER:
            raise SourceBlocked(
                f"{url} is not asked now: {target.host} asked to be left alone for another {pause:.0f} s.",
                source=url,
                hint=f"Try again in {pause:.0f} s, or use another source.",
            )
        await anyio.sleep(pause)
        answer = await self._twice(url, target, headers)
        if answer.status in _BUSY:
            self._pauses.note(origin, retry_after(answer.headers, now=self._clock()) or 0.0, now=self._clock())
        return answer

    async def _twice(self, url: str, target: Target, headers: Mapping[str, str]) -> Answer:
        if self._limits.retry:
            try:
                answer = await self._once(url, target, headers)
            except _RETRYABLE as e:
                if _is_certificate(e):
                    raise _failure(url, target, e) from e
                await anyio.sleep(random.uniform(*_RETRY_SECONDS))
            else:
                wait = self._wait_for(answer)
                if wait is None:
                    return answer
                await anyio.sleep(wait)
        try:
            return await self._once(url, target, headers)
        except _RETRYABLE as e:
            raise _failure(url, target, e) from e

    def _wait_for(self, answer: Answer) -> float | None:
        """Return the seconds after which an answer is worth asking for again, None when it stands."""
        asked = retry_after(answer.headers, now=self._clock())
        if answer.status not in _TRANSIENT and (answer.status != 429 or asked is None):
            return None
        if asked is not None and asked > _LONGEST_RETRY_AFTER:
            return None
        return (asked or 0.0) + random.uniform(*_RETRY_SECONDS)

    async def _once(self, url: str, target: Target, headers: Mapping[str, str], max_bytes: int = 0) -> Answer:
        """Ask once; `max_bytes` above 0 replaces both caps."""
        limits = self._limits
        try:
            async with (
                self._gates.request(target.host),
                self._client.stream("GET", target.url, headers=dict(headers)) as response,
            ):
                body = b""
                if 200 <= response.status_code < 300:
                    body = await read_body(
                        response,
                        url=url,
                        max_bytes=max_bytes or limits.max_bytes,
                        max_unpacked=max_bytes or limits.max_unpacked,
                    )
                else:
                    await drain(response)
                return Answer(target, response.status_code, _plain_headers(response.headers), body)
        except _RETRYABLE:
            raise
        except SourceError as e:
            raise type(e)(e.what, source=url, hint=e.hint) from e
        except httpx2.TimeoutException as e:
            raise SourceTimeout(f"{url} did not answer in time.", source=url, hint="Try later.") from e
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, httpcore2.ProtocolError) as e:
            raise _failure(url, target, e) from e

    async def _check_robots(self, url: str, target: Target) -> None:
        """Leave a page alone whose site asks for that.

        Raises:
            AddressRefused: robots.txt disallows the path, or could not be had.
        """
        origin = _origin(target)
        rules = self._robots.get(origin, now=self._clock())
        if rules is None:
            async with self._gates.flight(f"robots:{origin}"):
                rules = self._robots.get(origin, now=self._clock())
                if rules is None:
                    rules = await self._fetch_robots(target)
                    self._robots.keep(origin, rules, now=self._clock())
        if rules.allows(target.url.raw_path.decode("ascii", "replace")):
            return
        why = "disallows it for programs" if rules.reachable else "cannot be read at the moment, so nothing may be"
        raise AddressRefused(
            f"{url} is not fetched: the site's robots.txt {why}.",
            source=url,
            hint="Tell the user, who may open it; an operator can switch this rule off.",
        )

    async def _fetch_robots(self, target: Target) -> Rules:
        """Return a site's rules: none for 4xx (RFC 9309 §2.3.1.3), unreachable for 5xx, 429 and silence (§2.3.1.4).

        Raises:
            SourceError: The site itself cannot be reached or may not be asked; the page would fail alike.
        """
        place = Target(target.url.copy_with(raw_path=b"/robots.txt"), target.host, target.port)
        with anyio.move_on_after(FETCH_SECONDS):
            for _ in range(self._limits.max_redirects + 1):
                try:
                    answer = await self._once(str(place.url), place, {}, MAX_BYTES)
                except _RETRYABLE as e:
                    raise _failure(str(target.url), target, e) from e
                location = answer.headers.get("location", "")
                if answer.status not in _REDIRECTS or not location:
                    return self._rules_of(answer)
                place = self._next(str(target.url), place, location)
        return Rules(reachable=False)

    def _rules_of(self, answer: Answer) -> Rules:
        if answer.status >= 500 or answer.status == 429:
            return Rules(reachable=False)
        if not 200 <= answer.status < 300:
            return Rules()
        return parse_robots(decode(answer.body).text, agent=product_token(self._limits.user_agent))


def _origin(target: Target) -> str:
    return f"{target.url.scheme}://{target.host}:{target.port}"


def _plain_headers(headers: httpx2.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _is_certificate(error: BaseException) -> bool:
    """Return whether a failed connection failed over the site's certificate."""
    cause: BaseException | None = error
    for _ in range(6):
        if cause is None:
            return False
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _failure(url: str, target: Target, error: Exception) -> SourceUnavailable:
    """Return what a failed exchange means to the caller."""
    if _is_certificate(error):
        return SourceUnavailable(
            f"{url}: the certificate of {target.host} is not valid.", source=url, hint="Use another source."
        )
    if isinstance(error, httpx2.ConnectError):
        what = f"{url}: no connection to {target.host} port {target.port} ({error or 'refused'})."
        return SourceUnavailable(what, source=url, hint="Check the address, or try later.")
    return SourceUnavailable(
        f"{url}: the connection to {target.host} broke ({error or type(error).__name__}).",
        source=url,
        hint="Try again later.",
    )
