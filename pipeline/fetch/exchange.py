"""One web address asked to the end: guarded hops, one retry, robots.txt, typed
failures.

A robots.txt is read by Protego, since Python's own `urllib.robotparser` takes the first
rule that fits and reads `*` literally. Not for: bodies
(`pipeline/fetch/body.py`), files, the cache, conversion and the deadline
(`pipeline/fetch/client.py` puts the steps together); rates over time, since a server
that wants fewer requests says so with 429 and `Retry-After`."""

import random
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, NamedTuple

import anyio
import httpcore2
import httpx2
from protego import Protego

from errors import AddressRefused, SourceError, SourceNotFound, SourceTimeout, narrow
from pipeline.fetch import AGENT
from pipeline.fetch.address import Target, check_url, is_inner
from pipeline.fetch.body import BROKEN, read_as_far
from pipeline.fetch.cookies import Jar, same_site
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.refresh import MOST_REFRESHES, refresh_of
from pipeline.work import in_thread
from readers.sniff import decode

DAY: Final = timedelta(days=1).total_seconds()
"""A page is asked for again after a day, whatever its server promises: an `immutable`
year is meant for assets."""
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_CHALLENGE_HEADERS: Final = ("cf-mitigated", "x-datadome", "x-amzn-waf-action")
"""Sent by services that check for robots, with any status."""
_GONE: Final = frozenset((404, 410))
_STATUS_HINTS: Final = {
    **dict.fromkeys((401, 402, 407), "The page needs a login; use another source."),
    **dict.fromkeys((403, 406, 451), "Access denied; try another source."),
    **dict.fromkeys(_GONE, "Check the address, or search for where the page is now."),
    429: "Wait a minute, or use another source.",
}


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """One answer of a web server."""

    target: Target
    status: int
    headers: Mapping[str, str]
    """By names whose case is of no matter."""
    body: bytes
    """Unpacked; empty unless the status is 2xx."""
    own: bool = False
    """Whether cookies of the person's were sent for it."""
    cut: str = ""
    """Why the rest of the body is missing; empty for a whole one."""
    set_cookies: tuple[str, ...] = ()
    """Its `Set-Cookie` headers."""
    address: str = ""
    """The address that was connected to; empty where a proxy connected."""
    outside: bool = True
    """Whether it, or a step on the way to it, came from a public address: nothing that
    it names is asked for inside."""

    @property
    def location(self) -> str:
        """Where a redirect leads, empty for any other answer."""
        return self.headers.get("location", "") if self.status in _REDIRECTS else ""


def error_for(answer: ServerAnswer, *, url: str, now: float) -> SourceError | None:
    """Return the error of a response that is not a page (not 2xx, or a bot check); None
    for a page."""
    status = answer.status
    if any(name in answer.headers for name in _CHALLENGE_HEADERS):
        return SourceError(
            f"{url} is behind a bot check ({status}).",
            source=url,
            hint="Use another source for this.",
        )
    if 200 <= status < 300:
        return None
    broken = (
        "The site is broken or busy; try later."
        if status >= 500
        else "Check the address, or use another source."
    )
    hint = _STATUS_HINTS.get(status, broken)
    wait = retry_after(answer.headers, now=now)
    if wait is not None and status not in _GONE:
        hint = f"Try again in {wait:.0f} s."
    phrase = next(
        (row.phrase for row in HTTPStatus if row == status), "(an unknown status)"
    )
    kind = SourceNotFound if status in _GONE else SourceError
    return kind(f"{url} returned {status} {phrase}.", source=url, hint=hint)


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds of `Retry-After` during which a server wants no requests, or
    None where the header is missing or malformed.

    A past date gives 0; a number of seconds is a year at most."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(min(int(value[:9]), 365 * DAY))
    try:
        return (
            max(0.0, parsedate_to_datetime(value).timestamp() - now) if value else None
        )
    except (ValueError, TypeError, OverflowError):
        return None


def lifetime(
    headers: Mapping[str, str], *, default: float, shared: bool = False
) -> float | None:
    """Return the seconds that an answer stays fresh (RFC 9111): 0 to ask each time,
    None never to keep it.

    `default` holds where `Cache-Control` says nothing of its age; `shared` is a cache
    for more than one user (§5.2.2.7). The server's own value is cut to a day."""
    fields = headers.get("cache-control", "").lower().split(",")
    pairs = (text.partition("=") for text in fields)
    directives = {name.strip(): value.strip(' "') for name, _, value in pairs}
    if "no-store" in directives or (shared and "private" in directives):
        return None
    if "no-cache" in directives:
        return 0.0
    promised, age = directives.get("max-age", ""), headers.get("age", "").strip()
    if not promised.isdecimal():
        return default
    spent = float(age[:12]) if age.isdecimal() else 0.0
    return min(max(float(promised[:12]) - spent, 0.0), DAY)


ROBOTS_BYTES: Final = 512_000
"""RFC 9309 asks for at least 500 KiB; what follows is not looked at."""
HOUR: Final = timedelta(hours=1).total_seconds()
"""For how long rules are believed, and silence is kept at most; RFC 9309 allows a day
for rules."""


@dataclass(slots=True)
class Site:
    """One scheme, host and port. Times are those of the fetcher's clock."""

    places: anyio.Semaphore
    """One for each request at a time."""
    asking: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while its robots.txt is fetched, so that this happens once."""
    rules: Protego | None = None
    """None where they could not be had: nothing may be read until they can."""
    rules_until: float = 0.0
    quiet_until: float = 0.0


_TRANSIENT: Final = frozenset((502, 503, 504))
_MOST_SITES: Final = 512
_BUSY: Final = frozenset((429, 503))
"""Status codes whose `Retry-After` applies to the whole site."""
_RETRYABLE: Final = (
    httpx2.ConnectError,
    httpx2.RemoteProtocolError,
    httpx2.ReadError,
    httpx2.WriteError,
)


class _Reach(NamedTuple):
    """Who asks, and what may be asked by it."""

    client: httpx2.AsyncClient
    limits: FetchLimits


class WebExchange:
    """Asks web addresses within limits. Every request of a fetcher, for robots.txt too,
    goes through here."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        open_web: httpx2.AsyncClient,
        limits: FetchLimits,
        clock: Callable[[], float],
    ) -> None:
        """Ask by `client`, and by `open_web`, which reaches public addresses only, what
        a page from outside leads to."""
        self._inner = _Reach(client, limits)
        self._outer = _Reach(open_web, limits.public_only())
        self._limits = limits
        self._clock = clock
        self._places = anyio.Semaphore(limits.overall)
        self._sites: dict[str, Site] = {}
        """By origin, the one asked longest ago first."""

    async def ask(
        self,
        url: str,
        *,
        robots: bool = True,
        outside: bool = False,
    ) -> ServerAnswer:
        """Return the answer for `url` after redirects, each hop checked as the first.

        `outside` is for what a page of a public address names. From the first hop on
        that comes from a public address, no private one is asked, whatever an operator
        allows.

        `robots` is False for files made for programs: robots.txt is for
        crawlers. For pages, a person's cookies are sent by their own rules until a
        redirect leads to another site: that site is not trusted. Cookies that a hop
        sets are sent on by theirs, and go with the request. A page that sends its
        reader on by itself is a redirect, too.

        Raises `SourceError`: refused, redirected too often, unreachable, too slow, too
        large or damaged. An answer with an error status (`error_for`) is returned, and
        so is a body that is cut."""
        reach = self._outer if outside else self._inner
        target = check_url(url, reach.limits)
        host = target.host
        refreshes = 0
        jar = Jar(self._limits.cookies if robots else None)
        steps: set[tuple[str, str]] = set()
        for _ in range(self._limits.max_redirects + 1):
            if robots and self._limits.respect_robots:
                await self._check_robots(url, target, reach)
            if not same_site(host, target.host):
                jar.forget_person()
            sent = jar.headers(str(target.url))
            step = str(target.url), sent.get("Cookie", "")
            if step in steps:
                raise SourceError(
                    f"{url} redirects in a loop.",
                    source=url,
                    hint="Use another source.",
                )
            steps.add(step)
            answer = await self._hop(url, target, sent, reach)
            reach = self._outer if answer.outside else reach
            answer = replace(answer, outside=reach is self._outer)
            jar.keep(str(target.url), answer.set_cookies)
            location = answer.location
            if not location:
                location = (
                    refresh_of(answer.headers, answer.body, str(target.url)) or ""
                )
                refreshes += 1
                cookies = jar.headers(location).get("Cookie", "") if location else ""
                is_end = not location or (location, cookies) in steps
                if is_end or refreshes > MOST_REFRESHES:
                    return replace(answer, own=jar.was_personal)
            target = self._next(url, answer, location, reach)
        raise SourceError(
            f"{url} redirects more than {self._limits.max_redirects} times.",
            source=url,
            hint="Use another source.",
        )

    def _next(
        self, url: str, answer: ServerAnswer, location: str, reach: _Reach
    ) -> Target:
        try:
            return check_url(str(answer.target.url.join(location)), reach.limits)
        except (httpx2.InvalidURL, UnicodeError, ValueError) as e:
            raise SourceError(
                f"{url} redirects to an invalid address.",
                source=url,
                hint="Use another source.",
            ) from e
        except AddressRefused as e:
            raise AddressRefused(
                f"{url} redirects to a refused address: {e.shown}",
                source=url,
                hint=e.hint,
            ) from e

    async def _hop(
        self, url: str, target: Target, headers: Mapping[str, str], reach: _Reach
    ) -> ServerAnswer:
        """Return the answer of one address, after the pause that its site asked for.

        Raises `SourceError` where that is longer than `step_seconds`, and
        `SourceError` without an answer."""
        site = self._site(target)
        silence = max(site.quiet_until - self._clock(), 0.0)
        if silence > self._limits.step_seconds:
            raise SourceError(
                f"{url} is not requested now: {narrow(target.host)} is rate-limiting us "
                f"for another {silence:.0f} s.",
                source=url,
                hint=f"Try again in {silence:.0f} s, or use another source.",
            )
        await anyio.sleep(silence)
        try:
            answer = await self._twice(url, target, headers, reach)
        except _RETRYABLE as e:
            raise _failure(url, target, e) from e
        wait = retry_after(answer.headers, now=self._clock())
        if answer.status in _BUSY and wait:
            site.quiet_until = self._clock() + min(wait, HOUR)
        return answer

    def _site(self, target: Target) -> Site:
        """Return what is known of a site; of more than `_MOST_SITES` the one asked for
        longest ago is forgotten."""
        origin = target.origin
        site = self._sites.pop(origin, None) or Site(
            anyio.Semaphore(self._limits.per_host)
        )
        self._sites[origin] = site
        if len(self._sites) > _MOST_SITES:
            self._sites.pop(next(iter(self._sites)))
        return site

    async def _twice(
        self, url: str, target: Target, headers: Mapping[str, str], reach: _Reach
    ) -> ServerAnswer:
        """Return an answer, the second where the connection failed, broke off or the
        server is busy for a moment; of two broken bodies the longer one."""
        attempt = partial(self._once, url, target, headers, reach)
        if not self._limits.retry:
            return await attempt()
        answer, pause = None, 0.0
        try:
            answer = await attempt()
        except _RETRYABLE as e:
            if _is_certificate(e):
                raise
        else:
            wait = retry_after(answer.headers, now=self._clock())
            is_passing = answer.status in _TRANSIENT or answer.cut == BROKEN
            pause = wait or 0.0
            if not is_passing and (answer.status != 429 or wait is None):
                return answer
            if pause > self._limits.step_seconds:
                return answer
        await anyio.sleep(pause + random.uniform(*self._limits.retry_pause))
        if answer is None or not answer.cut:
            return await attempt()
        try:
            second = await attempt()
        except (*_RETRYABLE, SourceError):
            return answer
        return max(answer, second, key=lambda reply: (not reply.cut, len(reply.body)))

    async def _once(
        self,
        url: str,
        target: Target,
        headers: Mapping[str, str],
        reach: _Reach,
    ) -> ServerAnswer:
        """Ask once.

        The body of an answer with an error status is dropped. Raises the errors after
        which it may be asked again as they are, `SourceError` for all others."""
        limits = self._limits
        try:
            async with (
                # A slow host's queue must not hold places that others could use.
                self._site(target).places,
                self._places,
                reach.client.stream(
                    "GET", target.url, headers=dict(headers)
                ) as response,
            ):
                # Before the body, after which the connection may be closed.
                address = _connected(response, limits)
                body, cut = b"", ""
                if response.is_success:
                    body, cut = await read_as_far(
                        response,
                        url=url,
                        max_bytes=limits.max_bytes,
                    )
                # read and discard the body, so that the connection can be reused
                else:
                    with anyio.move_on_after(0.3), suppress(httpx2.HTTPError):
                        async for _ in response.aiter_raw():
                            pass
                cookies = tuple(response.headers.get_list("set-cookie"))
                return ServerAnswer(
                    target,
                    response.status_code,
                    response.headers,
                    body,
                    cut=cut,
                    set_cookies=cookies,
                    address=address,
                    outside=not address or not is_inner(ip_address(address), limits),
                )
        except _RETRYABLE:
            raise
        except SourceError as e:
            raise type(e)(e.what, source=url, hint=e.hint) from e
        except httpx2.TimeoutException as e:
            raise SourceTimeout(
                f"{url} did not answer in time.", source=url, hint="Try later."
            ) from e
        except (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            httpx2.StreamError,
            httpcore2.ProtocolError,
        ) as e:
            raise _failure(url, target, e) from e

    async def _check_robots(self, url: str, target: Target, reach: _Reach) -> None:
        """Raise `AddressRefused` for a page whose site asks programs to leave it alone,
        or whose robots.txt could not be had."""
        site = self._site(target)
        async with site.asking:
            if self._clock() >= site.rules_until:
                site.rules = await self._fetch_robots(target, reach)
                # A file that could not be had is looked for again after a minute.
                site.rules_until = self._clock() + (
                    HOUR if site.rules is not None else HOUR / 60
                )
        if site.rules is not None and await in_thread(
            site.rules.can_fetch, str(target.url), AGENT
        ):
            return
        why = (
            "disallows it for automated clients"
            if site.rules is not None
            else "cannot be read now, so the whole site is disallowed"
        )
        raise AddressRefused(
            f"{url} is not fetched: the site's robots.txt {why}.",
            source=url,
            hint=(
                "Tell the user, who may open it in a browser; an operator can "
                "disable this rule with WINNOW_ROBOTS=false."
            ),
        )

    async def _fetch_robots(self, target: Target, reach: _Reach) -> Protego | None:
        """Return a site's rules: none for 4xx (RFC 9309 §2.3.1.3), None for 5xx, 429,
        a cut body, too many redirects and silence (§2.3.1.4).

        Where the site itself cannot be reached or may not be asked, that error is
        raised: the page would fail alike."""
        file = Target(
            target.url.copy_with(raw_path=b"/robots.txt"), target.host, target.port
        )
        with anyio.move_on_after(self._limits.step_seconds):
            for _ in range(self._limits.max_redirects + 1):
                try:
                    answer = await self._once(str(file.url), file, {}, reach)
                    reach = self._outer if answer.outside else reach
                except _RETRYABLE as e:
                    raise _failure(str(target.url), target, e) from e
                if answer.location:
                    file = self._next(str(target.url), answer, answer.location, reach)
                elif answer.status >= 500 or answer.status == 429 or answer.cut:
                    break
                else:
                    lines = answer.body[: ROBOTS_BYTES + 1].splitlines(keepends=True)
                    if len(answer.body) > ROBOTS_BYTES:
                        lines.pop()  # half a rule may allow what the whole does not
                    rules = decode(b"".join(lines)).text
                    return await in_thread(Protego.parse, rules)
        return None


def _connected(response: httpx2.Response, limits: FetchLimits) -> str:
    """Return the address that an answer came from, empty where a proxy was asked for
    it."""
    stream = response.extensions.get("network_stream")
    server = stream.get_extra_info("server_addr") if stream is not None else None
    if not server or (limits.proxy is not None and server[1] == limits.proxy.port):
        return ""  # what merely has the proxy's port is taken for public, which reaches less
    return str(server[0]).partition("%")[0]


def _is_certificate(error: BaseException | None) -> bool:
    for _ in range(6):  # causes of causes; they may go in a circle
        if error is not None and not isinstance(error, ssl.SSLCertVerificationError):
            error = error.__cause__ or error.__context__
    return isinstance(error, ssl.SSLCertVerificationError)


def _failure(url: str, target: Target, error: Exception) -> SourceError:
    host, hint = narrow(target.host), "Try again later."
    if _is_certificate(error):
        why, hint = f"the certificate of {host} is not valid", "Use another source."
    elif isinstance(error, httpx2.ConnectError):
        why = f"no connection to {host} port {target.port} ({error or 'refused'})"
    else:
        # The parser's message for invalid HTTP repeats the response.
        is_parser = isinstance(error, httpx2.ProtocolError | httpcore2.ProtocolError)
        words = "" if is_parser else str(error)
        why = f"the connection to {host} broke ({words or type(error).__name__})"
    return SourceError(f"{url}: {why}.", source=url, hint=hint)
