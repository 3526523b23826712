"""What a page in the browser asks for, answered by our own guarded connections: the browser itself has no network.

Every hop is checked as the first (`pipeline/fetch/address.py`). A page reaches other sites only at public addresses:
what an operator allows beyond those (loopback, private networks) holds for the page's own origin alone. Not for: the
page itself (`pipeline/fetch/client.py` fetched it), nor driving the browser (`pipeline/fetch/browser.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import anyio
import httpx2

from errors import AddressRefused, SourceError, SourceTooLarge
from pipeline.fetch.address import Target, check_url
from pipeline.fetch.body import read_body
from pipeline.fetch.limits import FetchLimits

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_AS_GET: Final = frozenset((301, 302, 303))
"""Redirects after which a POST goes on as a GET, as browsers do."""
_METHODS: Final = frozenset(("GET", "HEAD", "POST"))
_LONGEST_POST: Final = 100_000
_KINDS: Final = frozenset(("document", "script", "stylesheet", "xhr", "fetch"))
"""What a page's text can depend on; images, media, fonts, pings, manifests and sockets are refused unasked."""
# Sent on as the page's scripts set them; cookies and whatever describes the connection are ours or nobody's.
_DROPPED: Final = frozenset(
    ("host", "content-length", "cookie", "connection", "user-agent", "accept-encoding", "transfer-encoding", "upgrade")
)
_DROPPED_STARTS: Final = ("sec-", "proxy-", "if-", "x-forwarded-")
_RETURNED: Final = ("content-type", "content-security-policy", "content-language")
_RETURNED_START: Final = "access-control-"
_AT_ONCE: Final = 6


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """What one page may cost in the browser."""

    seconds: float = 8.0
    """From the start of the browser to the page's HTML. Starting takes about 1.2 s."""
    requests: int = 150
    """A news page asks for 40 to 120 scripts, styles and data; what comes after these is refused."""
    bytes: int = 20_000_000
    """Of all answers together, unpacked."""
    html: int = 5_000_000
    """Characters of the page as it stands at the end."""
    at_once: int = 2
    """Browsers at a time; each takes 150 to 300 MB."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request of the page."""

    url: str
    method: str
    kind: str
    """The browser's word for it: document, script, xhr, image, …"""
    headers: Mapping[str, str]
    """By lower-case names."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Given:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Subresources:
    """Answers the requests of one page until its caps are used up."""

    def __init__(
        self,
        page: str,
        *,
        open_web: httpx2.AsyncClient,
        own: httpx2.AsyncClient,
        limits: FetchLimits,
        caps: RenderLimits,
    ) -> None:
        """Take the page's address and two clients.

        Args:
            page: Address of the page, as it was found.
            open_web: Reaches public addresses only.
            own: Reaches what the page itself was fetched with; used for its own origin.
            limits: Those of `own`.
            caps: Of the page.
        """
        self._origin = _origin(check_url(page, limits))
        self._open_web = open_web
        self._own = own
        self._limits = limits
        self._strict = public_only(limits)
        self._caps = caps
        self._bytes = 0
        self._gate = anyio.Semaphore(_AT_ONCE)
        self.asked = 0
        """Requests that the page made, refused ones included."""
        self.refused = 0

    async def answer(self, wanted: Wanted) -> Given | None:
        """Return the answer to one request, None where it is refused or cannot be had."""
        self.asked += 1
        if (
            wanted.kind not in _KINDS
            or wanted.method not in _METHODS
            or self.asked > self._caps.requests
            or self._bytes >= self._caps.bytes
            or len(wanted.body) > _LONGEST_POST
        ):
            self.refused += 1
            return None
        try:
            async with self._gate:
                return await self._follow(wanted)
        except (SourceError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError, ValueError):
            self.refused += 1
            return None

    async def _follow(self, wanted: Wanted) -> Given:
        """Ask hop by hop.

        Raises:
            SourceError: Refused, or over a cap.
        """
        url, method, body = wanted.url, wanted.method, wanted.body
        for _ in range(self._limits.max_redirects + 1):
            target, client = self._checked(url, method, wanted.kind)
            headers = _sent(wanted.headers)
            async with client.stream(method, target.url, headers=headers, content=body or None) as response:
                location = response.headers.get("location", "")
                if response.status_code not in _REDIRECTS or not location:
                    content = await self._read(response, wanted.url)
                    return Given(response.status_code, _returned(response.headers), content)
                if response.status_code in _AS_GET:
                    method, body = "GET" if method == "POST" else method, b""
                url = str(target.url.join(location))
        raise AddressRefused(f"{wanted.url} redirects too often.", source=wanted.url)

    def _checked(self, url: str, method: str, kind: str) -> tuple[Target, httpx2.AsyncClient]:
        own = _origin(check_url(url, self._limits)) == self._origin
        # What another site shows must not be cited as this page; nor is anything sent to another site.
        if not own and (method == "POST" or kind == "document"):
            raise AddressRefused(f"{url} is another site than the page's.", source=url)
        return check_url(url, self._limits if own else self._strict), self._own if own else self._open_web

    async def _read(self, response: httpx2.Response, url: str) -> bytes:
        left = max(self._caps.bytes - self._bytes, 0)
        try:
            body = await read_body(response, url=url, max_bytes=left, max_unpacked=left)
        except SourceTooLarge:
            self._bytes = self._caps.bytes  # it was read up to the cap
            raise
        self._bytes += len(body)
        return body


def public_only(limits: FetchLimits) -> FetchLimits:
    """Return `limits` without what an operator allows beyond public addresses."""
    return replace(limits, allow_loopback=False, allowed_networks=())


def _origin(target: Target) -> tuple[str, str, int]:
    return target.url.scheme, target.host, target.port


def _sent(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in _DROPPED and not name.lower().startswith((":", *_DROPPED_STARTS))
    }


def _returned(headers: httpx2.Headers) -> dict[str, str]:
    return {
        name.lower(): value
        for name, value in headers.items()
        if name.lower() in _RETURNED or name.lower().startswith(_RETURNED_START)
    }
