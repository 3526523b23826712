"""From an answer to a page, by way of a browser where one is set and the page needs it.

The browser itself has no network: what a page in it asks for is answered here by our own guarded connections, every hop
checked as the first (`pipeline/fetch/address.py`). A page reaches other sites only at public addresses: what an
operator allows beyond those (loopback, private networks) holds for the page's own origin alone. Not for: how a browser
is driven (`pipeline/fetch/browser.py`), nor how bytes are read (`pipeline/read/convert.py`).
"""

import importlib.util
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio
import httpx2

from errors import (
    AddressRefused,
    MissingExtra,
    NeedsBrowser,
    SourceError,
    SourceTooLarge,
    SourceUnreadable,
    UsageError,
)
from pipeline.documents import Page
from pipeline.fetch.address import Target, check_url
from pipeline.fetch.answer import Answer
from pipeline.fetch.exchange import read_body
from pipeline.fetch.limits import FetchLimits
from pipeline.read.convert import Raw, to_page
from pipeline.read.shell import MAY_NEED_BROWSER, NEEDS_BROWSER
from pipeline.work import in_thread

RENDERED: Final = "the page was rendered by a browser, its scripts run"
UNSETTLED: Final = "the page was still at work when its time in the browser was up"
_BROWSERS: Final = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
_AS_GET: Final = frozenset((301, 302, 303))
"""Redirects after which a POST goes on as a GET, as browsers do."""
_METHODS: Final = frozenset(("GET", "HEAD", "POST"))
_KINDS: Final = frozenset(("document", "script", "stylesheet", "xhr", "fetch"))
"""What a page's text can depend on; images, media, fonts, pings, manifests and sockets are refused unasked."""
# Sent on as the page's scripts set them; cookies and whatever describes the connection are ours or nobody's.
_DROPPED: Final = frozenset(
    ("host", "content-length", "cookie", "connection", "user-agent", "accept-encoding", "transfer-encoding", "upgrade")
)
_DROPPED_STARTS: Final = (":", "sec-", "proxy-", "if-", "x-forwarded-")
_RETURNED: Final = frozenset(("content-type", "content-security-policy", "content-language"))


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """What one page may cost in the browser."""

    seconds: float = 8.0
    """From the start of the browser to the page's HTML. Starting takes about 1.2 s."""
    last_seconds: float = 1.0
    """Of these, kept for writing out what is there at the end."""
    quiet_seconds: float = 0.4
    """Without new text and without a request under way, after which a page is done; an empty page gets three times as
    many."""
    requests: int = 150
    """A news page asks for 40 to 120 scripts, styles and data; what comes after these is refused."""
    bytes: int = 20_000_000
    """Of all answers together, unpacked."""
    post: int = 100_000
    """Bytes that the page may send in one request."""
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
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Given:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    """By lower-case names."""
    body: bytes


Answers = Callable[[Wanted], Awaitable[Given | None]]
"""Answers a request of the page; None where it is refused or cannot be had."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as it stood when it was quiet, or when its time was up."""

    html: str
    url: str
    """Where it stood then: scripts may have led to another page of the same site."""
    settled: bool
    """False when the page was still at work."""
    left_for: str = ""
    """Where its scripts lead, empty for a page that stays."""


@dataclass(frozen=True, slots=True)
class Browser:
    """A Chromium to start for each page, and what a page may cost in it."""

    executable: Path
    caps: RenderLimits = RenderLimits()


def find_browser(setting: str) -> Path | None:
    """Return the Chromium that `setting` means: a path, `auto` to look for one, or `none`.

    Raises:
        MissingExtra: Playwright is not installed.
        UsageError: There is no such file, or none was found.
    """
    wanted = setting.strip()
    if wanted.lower() in {"", "none"}:
        return None
    if importlib.util.find_spec("playwright") is None:
        raise MissingExtra("playwright", extra="browser", needed_for=f"WINNOW_BROWSER={wanted}")
    if wanted.lower() != "auto":
        path = Path(wanted).expanduser()
        if not path.is_file():
            raise UsageError(
                f"WINNOW_BROWSER is {wanted!r}, where there is no file.",
                hint="Give the path of Chromium or Chrome, `auto` to look for one, or `none`.",
            )
        return path
    for name in _BROWSERS:
        if (found := shutil.which(name)) is not None:
            return Path(found)
    raise UsageError(
        "WINNOW_BROWSER is 'auto', but no Chromium was found.",
        hint="Install one (apt-get install chromium, or Chrome), or name its path.",
    )


class Renderer:
    """What rendering takes: a browser, and connections for what pages ask for."""

    def __init__(
        self, browser: Browser, *, own: httpx2.AsyncClient, open_web: httpx2.AsyncClient, limits: FetchLimits
    ) -> None:
        """Start nothing yet; `own`, with its `limits`, is for a page's origin, `open_web` reaches public addresses."""
        self.browser = browser
        self.own = own
        self.open_web = open_web
        self.limits = limits
        self._places = anyio.Semaphore(browser.caps.at_once)

    async def page(self, raw: Raw) -> Page:
        """Return `raw` as it shows itself once its scripts have run.

        Raises:
            SourceError: The browser failed, or the page shows nothing even then.
        """
        first = Given(200, {"content-type": raw.content_type or "text/html"}, raw.body)
        show = await in_thread(_import_browser)
        async with self._places:
            made = await show(self.browser, first, raw.final_url, Subresources(raw.final_url, self).answer)
        notes = (RENDERED,) if made.settled else (RENDERED, UNSETTLED)
        shown = replace(
            raw,
            body=made.html.encode(),
            final_url=made.url,
            content_type="text/html; charset=utf-8",
            notes=(*raw.notes, *notes),
            rendered=True,
        )
        try:
            return await in_thread(to_page, shown)
        except SourceError as e:
            if not made.left_for:
                raise
            raise SourceUnreadable(
                f"{e.what} Its scripts lead to {made.left_for}.", source=raw.url, hint=f"Fetch {made.left_for} itself."
            ) from e


def _import_browser() -> Callable[[Browser, Given, str, Answers], Awaitable[Rendered]]:
    from pipeline.fetch.browser import show  # noqa: PLC0415  an extra, and 0.25 s

    return show


async def page_of(raw: Raw, renderer: Renderer | None) -> Page:
    """Return `raw` as a page; a page that only a browser can fill is rendered where one is set.

    Raises:
        NeedsBrowser: The page is empty until its scripts run, and no browser is set or it failed.
        SourceUnreadable: It holds no text at all.
    """
    if renderer is None:
        return await in_thread(to_page, raw)
    plain: Page | None = None
    with suppress(NeedsBrowser):
        plain = await in_thread(to_page, raw)
    if plain is not None and not {MAY_NEED_BROWSER, NEEDS_BROWSER}.intersection(plain.notes):
        return plain
    try:
        return await renderer.page(raw)
    except SourceError as failure:
        if plain is not None:
            return replace(plain, notes=(*plain.notes, f"rendering failed: {failure.what}"))
        raise NeedsBrowser(
            f"{raw.url} is empty until its scripts run, and rendering it failed: {failure.what}",
            source=raw.url,
            hint=failure.hint,
        ) from failure


class Subresources:
    """Answers the requests of one page in the browser until its caps are used up."""

    def __init__(self, page: str, renderer: Renderer) -> None:
        """Take the page's address, as it was found, and the connections."""
        self._limits = renderer.limits
        self._origin = check_url(page, self._limits).origin
        self._renderer = renderer
        self._caps = renderer.browser.caps
        self._bytes = 0
        self._gate = anyio.Semaphore(self._limits.per_host)
        self._asked = 0
        """Requests that the page made, refused ones included."""

    async def answer(self, wanted: Wanted) -> Given | None:
        """Return the answer to one request, None where it is refused or cannot be had."""
        self._asked += 1
        allowed = (
            wanted.kind in _KINDS
            and wanted.method in _METHODS
            and self._asked <= self._caps.requests
            and self._bytes < self._caps.bytes
            and len(wanted.body) <= self._caps.post
        )
        try:
            if allowed:
                async with self._gate:
                    return await self._follow(wanted)
        except (SourceError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError, ValueError):
            pass  # the page is told no more than that it cannot be had
        return None

    async def _follow(self, wanted: Wanted) -> Given:
        """Ask hop by hop; raises `SourceError` for what is refused or over a cap."""
        url, method, content = wanted.url, wanted.method, wanted.body
        headers = {
            name: value
            for name, value in wanted.headers.items()
            if name.lower() not in _DROPPED and not name.lower().startswith(_DROPPED_STARTS)
        }
        for _ in range(self._limits.max_redirects + 1):
            target, client = self._checked(url, method, wanted.kind)
            async with client.stream(method, target.url, headers=headers, content=content or None) as response:
                answer = Answer(target, response.status_code, response.headers, b"")
                if not answer.location:
                    return Given(answer.status, _returned(answer.headers), await self._read(response, wanted.url))
            if answer.status in _AS_GET:
                method, content = "GET" if method == "POST" else method, b""
            url = str(target.url.join(answer.location))
        raise AddressRefused(f"{wanted.url} redirects too often.", source=wanted.url)

    def _checked(self, url: str, method: str, kind: str) -> tuple[Target, httpx2.AsyncClient]:
        target = check_url(url, self._limits)
        if target.origin == self._origin:
            return target, self._renderer.own
        # What another site shows must not be cited as this page; nor is anything sent to another site.
        if method == "POST" or kind == "document":
            raise AddressRefused(f"{url} is another site than the page's.", source=url)
        return check_url(url, self._limits.public_only()), self._renderer.open_web

    async def _read(self, response: httpx2.Response, url: str) -> bytes:
        left = max(self._caps.bytes - self._bytes, 0)
        try:
            body = await read_body(response, url=url, max_bytes=left, max_unpacked=left)
        except SourceTooLarge:
            self._bytes = self._caps.bytes  # it was read up to the cap
            raise
        self._bytes += len(body)
        return body


def _returned(headers: Mapping[str, str]) -> dict[str, str]:
    lowered = {name.lower(): value for name, value in headers.items()}
    return {n: value for n, value in lowered.items() if n in _RETURNED or n.startswith("access-control-")}
