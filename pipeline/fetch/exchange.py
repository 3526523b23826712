"""One web address asked to the end: guarded hops, one retry, robots.txt, bodies within their caps, typed failures.

httpx2 unpacks gzip, deflate, brotli and zstd in pieces of at most 1 MiB, so that a bomb is noticed at the cap and not
at its end. Not for: files, the cache, conversion and the deadline (`pipeline/fetch/client.py` puts the steps together).
"""

import random
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import anyio
import anyio.lowlevel
import httpcore2
import httpx2

from errors import (
    AddressRefused,
    SourceBlocked,
    SourceError,
    SourceTimeout,
    SourceTooLarge,
    SourceUnavailable,
    SourceUnreadable,
)
from pipeline.fetch.address import Target, check_url
from pipeline.fetch.answer import Answer, retry_after
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.sites import HOUR, MAX_BYTES, Rules, Sites, parse_robots
from pipeline.read.charset import decode

_TRANSIENT: Final = frozenset((502, 503, 504))
_BUSY: Final = frozenset((429, 503))
"""Answers whose `Retry-After` speaks for the whole site."""
_RETRYABLE: Final = (httpx2.ConnectError, httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)


class Exchange:
    """Asks web addresses within limits. Every request of a fetcher, for robots.txt too, goes through here."""

    def __init__(self, client: httpx2.AsyncClient, limits: FetchLimits, clock: Callable[[], float]) -> None:
        self._client = client
        self._limits = limits
        self._clock = clock
        self._sites = Sites(overall=limits.overall, per_host=limits.per_host)

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
            if not answer.location:
                return answer
            target = self._next(url, answer)
            headers = {}
        raise SourceUnavailable(
            f"{url} redirects more than {self._limits.max_redirects} times.", source=url, hint="Use another source."
        )

    def _next(self, url: str, answer: Answer) -> Target:
        try:
            return check_url(str(answer.target.url.join(answer.location)), self._limits)
        except (httpx2.InvalidURL, UnicodeError, ValueError) as e:
            raise SourceUnavailable(
                f"{url} redirects to an invalid address ({e}).", source=url, hint="Use another source."
            ) from e
        except AddressRefused as e:
            raise AddressRefused(
                f"{url} redirects to where nothing is fetched: {e.what}", source=url, hint=e.hint
            ) from e

    async def _hop(self, url: str, target: Target, headers: Mapping[str, str]) -> Answer:
        """Return the answer of one address, unless its site asked to be left alone for longer than is waited here."""
        site = self._sites.of(target.origin)
        silence = max(site.quiet_until - self._clock(), 0.0)
        if silence > self._limits.step_seconds:
            raise SourceBlocked(
                f"{url} is not asked now: {target.host} asked to be left alone for another {silence:.0f} s.",
                source=url,
                hint=f"Try again in {silence:.0f} s, or use another source.",
            )
        await anyio.sleep(silence)
        try:
            answer = await self._twice(url, target, headers)
        except _RETRYABLE as e:
            raise _failure(url, target, e) from e
        asked = retry_after(answer.headers, now=self._clock())
        if answer.status in _BUSY and asked:
            site.quiet_until = self._clock() + min(asked, HOUR)
        return answer

    async def _twice(self, url: str, target: Target, headers: Mapping[str, str]) -> Answer:
        wait = 0.0
        if self._limits.retry:
            try:
                answer = await self._once(url, target, headers)
            except _RETRYABLE as e:
                if _is_certificate(e):
                    raise
            else:
                asked = retry_after(answer.headers, now=self._clock())
                wait = asked or 0.0
                helps = answer.status in _TRANSIENT or (answer.status == 429 and asked is not None)
                if not helps or wait > self._limits.step_seconds:
                    return answer
            await anyio.sleep(wait + random.uniform(0.1, 0.5))  # many clients must not come back at once
        return await self._once(url, target, headers)

    async def _once(self, url: str, target: Target, headers: Mapping[str, str], max_bytes: int = 0) -> Answer:
        """Ask once; `max_bytes` above 0 replaces both caps."""
        limits = self._limits
        try:
            async with (
                self._sites.place(target.host),
                self._client.stream("GET", target.url, headers=dict(headers)) as response,
            ):
                body = b""
                if response.is_success:
                    caps = max_bytes or limits.max_bytes, max_bytes or limits.max_unpacked
                    body = await read_body(response, url=url, max_bytes=caps[0], max_unpacked=caps[1])
                else:  # a body that nobody needs, read so that its connection can serve the next request
                    with anyio.move_on_after(0.3), suppress(httpx2.HTTPError):
                        async for _ in response.aiter_raw():
                            pass
                return Answer(target, response.status_code, response.headers, body)
        except _RETRYABLE:
            raise
        except SourceError as e:
            raise type(e)(e.what, source=url, hint=e.hint) from e
        except httpx2.TimeoutException as e:
            raise SourceTimeout(f"{url} did not answer in time.", source=url, hint="Try later.") from e
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, httpcore2.ProtocolError) as e:
            raise _failure(url, target, e) from e

    async def _check_robots(self, url: str, target: Target) -> None:
        """Refuse a page whose site asks programs to leave it alone, or whose robots.txt could not be had."""
        site = self._sites.of(target.origin)
        async with site.asking:
            if self._clock() >= site.rules_until:
                site.rules = await self._fetch_robots(target)
                # A file that could not be had is looked for again after a minute.
                site.rules_until = self._clock() + (HOUR if site.rules.reachable else HOUR / 60)
        if site.rules.allows(target.url.raw_path.decode("ascii", "replace")):
            return
        why = "disallows it for programs" if site.rules.reachable else "cannot be read at the moment, so nothing may be"
        raise AddressRefused(
            f"{url} is not fetched: the site's robots.txt {why}.",
            source=url,
            hint="Tell the user, who may open it; an operator can switch this rule off.",
        )

    async def _fetch_robots(self, target: Target) -> Rules:
        """Return a site's rules: none for 4xx (RFC 9309 §2.3.1.3), unreachable for 5xx, 429 and silence (§2.3.1.4).

        Where the site itself cannot be reached or may not be asked, that error is raised: the page would fail alike.
        """
        place = Target(target.url.copy_with(raw_path=b"/robots.txt"), target.host, target.port)
        with anyio.move_on_after(self._limits.step_seconds):
            for _ in range(self._limits.max_redirects + 1):
                try:
                    answer = await self._once(str(place.url), place, {}, MAX_BYTES)
                except _RETRYABLE as e:
                    raise _failure(str(target.url), target, e) from e
                if answer.location:
                    place = self._next(str(target.url), answer)
                elif answer.status >= 500 or answer.status == 429:
                    break
                else:
                    return parse_robots(decode(answer.body).text)
        return Rules(reachable=False)


async def read_body(response: httpx2.Response, *, url: str, max_bytes: int, max_unpacked: int) -> bytes:
    """Return the unpacked body of a response that was opened as a stream.

    Args:
        response: Nothing was read of it.
        url: For messages.
        max_bytes: Cap on the wire; a `Content-Length` above it is refused unread.
        max_unpacked: Cap after decompression.
    """

    def too_large(what: str) -> SourceTooLarge:
        hint = "Ask for a smaller part of it (another page, an API, a section)."
        return SourceTooLarge(f"{url} {what}.", source=url, hint=hint)

    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:15]) > max_bytes:
        raise too_large(f"has {int(length[:15]):,} bytes, over the cap of {max_bytes:,}")
    body = bytearray()
    since = time.monotonic()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if response.num_bytes_downloaded > max_bytes:
                raise too_large(f"sent more than {max_bytes:,} bytes")
            if len(body) > max_unpacked:
                raise too_large(f"unpacks to more than {max_unpacked:,} bytes")
            # What has arrived already is read without a look at the event loop; 64 kB in chunks of a byte take 0.3 s.
            if time.monotonic() - since > sys.getswitchinterval():
                await anyio.lowlevel.checkpoint()
                since = time.monotonic()
    except SourceTooLarge:
        body.clear()  # the error keeps this frame alive for as long as someone holds it
        raise
    except httpx2.DecodingError as e:
        body.clear()
        raise SourceUnreadable(
            f"{url} cannot be unpacked: its compression is damaged ({e}).", source=url, hint="Try again later."
        ) from e
    return bytes(body)


def _is_certificate(error: BaseException | None) -> bool:
    for _ in range(6):  # causes of causes; they may go in a circle
        if error is None or isinstance(error, ssl.SSLCertVerificationError):
            break
        error = error.__cause__ or error.__context__
    return isinstance(error, ssl.SSLCertVerificationError)


def _failure(url: str, target: Target, error: Exception) -> SourceUnavailable:
    if _is_certificate(error):
        what, hint = f"{url}: the certificate of {target.host} is not valid.", "Use another source."
    elif isinstance(error, httpx2.ConnectError):
        what = f"{url}: no connection to {target.host} port {target.port} ({error or 'refused'})."
        hint = "Check the address, or try later."
    else:
        what = f"{url}: the connection to {target.host} broke ({error or type(error).__name__})."
        hint = "Try again later."
    return SourceUnavailable(what, source=url, hint=hint)
