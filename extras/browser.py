"""Pages as a browser shows them once their scripts have run: Playwright on a Chromium
that is installed already.

Needs the extra `browser`; imported when the first page is rendered. A page's scripts
are a stranger's program, so the browser has no network: its only proxy is a port on
which nothing answers and every name is unknown to it. Each request that Playwright sees
is answered by our own guarded connections or refused; what it does not see (sockets,
WebRTC, prefetches) finds no way out. Every hop is checked as the first
(`pipeline/fetch/address.py`), and a page reaches other sites at public addresses only,
its own site at the address alone that it came from: a page of a public address reaches
nothing inside, whatever its name is later; what an operator allows there holds for
pages that came from there. One browser process a page, with an empty profile, ended
with the page. Not for: deciding which pages need this (`pipeline/fetch/render.py`), nor
logging in, clicking or taking pictures."""

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Final

import anyio
import httpx2
from anyio.abc import TaskGroup
from playwright.async_api import (
    BrowserContext,
    CDPSession,
    Error,
    Page,
    Request,
    Route,
    async_playwright,
)

from errors import AddressRefused, SourceError, SourceTimeout, SourceTooLarge
from pipeline.fetch.address import Target, check_url
from pipeline.fetch.body import read_body
from pipeline.fetch.exchange import ServerAnswer
from pipeline.fetch.render import RENDERED, UNSETTLED, Browser, Renderer, Show
from readers.convert import Raw

FLAGS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-remote-fonts",
    "--dns-prefetch-disable",
    "--no-pings",
    "--proxy-bypass-list=<-loopback>",  # loopback too goes to the proxy, where nothing answers
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--js-flags=--max-old-space-size=512",
)
"""Browser options with a dead proxy, so that no connection, datagram or DNS lookup
leaves the browser."""
_NO_SOCKETS: Final = """for (const name of
  ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport', 'SharedWorker']) delete globalThis[name];"""
_HOME: Final = "winnow-browser-"
"""Begins the name of a browser's folder; the server's process number follows."""
# In a world of its own, where the page's scripts cannot replace what these words mean.
_LOOK: Final = "document.body ? document.body.innerText.trim().length : 0"
_WRITE: Final = """(() => {
  const hosts = [];
  const look = root => {
    for (const element of root.querySelectorAll('*'))
      if (element.shadowRoot && hosts.length < 2000) { hosts.push(element); look(element.shadowRoot); }
  };
  look(document);
  for (const host of hosts.reverse()) {
    const box = document.createElement('div');
    box.append(...host.shadowRoot.childNodes);
    host.prepend(box);
  }
  // Rules of linked sheets and those that scripts set say what is hidden; another site's cannot be read.
  for (const sheet of [...document.styleSheets, ...document.adoptedStyleSheets]) {
    const style = document.createElement('style');
    let rules = [];
    try { rules = [...sheet.cssRules].map(rule => rule.cssText); } catch { continue; }
    const text = rules.join('\\n').replaceAll('</', '<\\\\/').slice(0, 500000);
    style.textContent = sheet.media.length ? `@media ${sheet.media.mediaText} {${text}}` : text;
    if (sheet.ownerNode) sheet.ownerNode.replaceWith(style); else document.head.append(style);
  }
  for (const element of document.querySelectorAll('script:not([type="application/ld+json"]), noscript'))
    element.remove();
  return document.documentElement.outerHTML.slice(0, CAP);
})()"""
_AS_GET: Final = frozenset((301, 302, 303))
"""Redirects after which a POST goes on as a GET, as browsers do."""
_LOADED_KINDS: Final = frozenset(("document", "script", "stylesheet", "xhr", "fetch"))
"""What a page's text can depend on; images, media, fonts, pings, manifests and sockets
are refused unasked."""
# Headers set by the page's scripts are passed on; cookies and connection headers are
# ours or none.
_DROPPED_HEADERS: Final = frozenset(
    (
        "host",
        "content-length",
        "cookie",
        "connection",
        "user-agent",
        "accept-encoding",
        "transfer-encoding",
        "upgrade",
    )
)
_DROPPED_STARTS: Final = (":", "sec-", "proxy-", "if-", "x-forwarded-")
_RETURNED: Final = frozenset(
    ("content-type", "content-security-policy", "content-language")
)


def driver() -> Show:
    """Return the function that shows pages."""
    return show


async def show(raw: Raw, renderer: Renderer) -> tuple[Raw, str]:
    """Return a page after its scripts have run, and where they lead, which is empty for
    a page that stays.

    The page's own address is answered with `raw`, so that it is not asked for twice.
    Raises `SourceTimeout` where its scripts leave no moment in which it can be read,
    `SourceError` where the browser does not start, or dies."""
    browser = renderer.browser
    failure: Error | None = None
    desk: _RequestQueue | None = None
    with anyio.move_on_after(browser.seconds):
        ends = anyio.current_time() + browser.seconds - browser.last_seconds
        try:
            async with (
                _started(browser) as context,
                renderer.pinned(raw.address)
                if raw.address
                else nullcontext(renderer.open_web) as client,
                anyio.create_task_group() as group,
            ):
                desk = _RequestQueue(raw, renderer, client, group)
                try:
                    return await _visit(context, desk, ends)
                except Error as e:
                    failure = e  # leaving the group with it would wrap it
                finally:
                    desk.is_open = False
                    group.cancel_scope.cancel()
        except Error as e:
            failure = e
        finally:
            if desk is not None:
                desk.end()
    if failure is None:
        raise SourceTimeout(
            f"{raw.final_url} was not rendered after {browser.seconds:g} s: its scripts did not finish.",
            source=raw.final_url,
            hint="Use another source.",
        )
    reason = str(failure).strip().split("\n")[0][:200]
    raise SourceError(
        f"The browser {browser.executable} could not render {raw.final_url}: {reason}.",
        source=raw.final_url,
        hint="Check that it starts (winnow doctor), or set WINNOW_BROWSER=none.",
    ) from failure


async def _visit(
    context: BrowserContext, desk: "_RequestQueue", ends: float
) -> tuple[Raw, str]:
    # 1. every request comes to us
    await context.route("**/*", desk.take)
    await context.add_init_script(_NO_SOCKETS)
    tab = await context.new_page()
    context.on("page", desk.turn_away)
    session = await context.new_cdp_session(tab)
    # 2. the page, until it is quiet
    with anyio.move_on_at(ends):
        await tab.goto(desk.url, wait_until="commit")
    settled = await _settle(session, desk, ends, desk.browser.quiet_seconds)
    # 3. what it shows, and where: scripts may have led to another page of the same site
    location = await _evaluate(session, "location.href")
    html = await _evaluate(session, _WRITE.replace("CAP", str(desk.browser.html)))
    rendered = replace(
        desk.raw,
        body=html.encode() if isinstance(html, str) else b"",
        final_url=location
        if isinstance(location, str) and location.startswith(("http://", "https://"))
        else desk.url,
        content_type="text/html; charset=utf-8",
        notes=(*desk.raw.notes, RENDERED, *(() if settled else (UNSETTLED,))),
        rendered=True,
    )
    return rendered, desk.left_for


class _RequestQueue:
    """Where the page's requests arrive, each answered by a task of the page's group,
    until its caps are used up."""

    def __init__(
        self, raw: Raw, renderer: Renderer, client: httpx2.AsyncClient, group: TaskGroup
    ) -> None:
        self.raw = raw
        self._client = client
        self.is_open = True
        """False after the end, when Playwright may still report requests."""
        self.url = raw.final_url.split("#", maxsplit=1)[0]
        self.browser = renderer.browser
        self._renderer = renderer
        self._limits = renderer.limits
        self._target = check_url(self.url, self._limits)
        self._group = group
        self._gate = anyio.Semaphore(self._limits.per_host)
        self.under_way = 0
        self._waiting: set[asyncio.Task[object]] = set()
        """Tasks of Playwright, one a request."""
        self.left_for = ""
        """Where the page's scripts lead."""
        self._served = 0
        self._asked = 0
        self._bytes = 0

    def take(self, route: Route) -> None:
        if waiting := asyncio.current_task():
            self._waiting.add(waiting)
        if self.is_open:
            self._group.start_soon(self._answer, route)

    def end(self) -> None:
        """End the tasks of Playwright that wait for an answer, which they would do for
        ever."""
        for waiting in self._waiting:
            waiting.cancel()

    def turn_away(self, popup: Page) -> None:
        """Close a window that the page opens; called by Playwright."""
        if self.is_open:
            self._group.start_soon(_ended, popup.close, self.browser.close_seconds)

    async def _answer(self, route: Route) -> None:
        self.under_way += 1
        try:
            answer = await self._given(route.request)
            if answer is not None:
                await route.fulfill(
                    status=answer.status, headers=dict(answer.headers), body=answer.body
                )
            elif route.request.is_navigation_request():
                await route.fulfill(
                    status=204
                )  # the page stays where it is; an abort would show an error page
            else:
                await route.abort("blockedbyclient")
        except Error:
            pass  # the page has gone on without waiting for this answer
        finally:
            self.under_way -= 1

    async def _given(self, request: Request) -> ServerAnswer | None:
        """Return the answer to one request, None where it is refused, over a cap, or
        cannot be had.

        A page that loads itself again gets its own HTML three times at most."""
        if request.is_navigation_request():
            if request.frame.parent_frame is not None:
                return None  # the content of a frame is not part of the page's own HTML
            if request.url.split("#")[0] == self.url and request.method == "GET":
                self._served += 1
                headers = {"content-type": self.raw.content_type or "text/html"}
                if self._served > 3:
                    return None  # a page that reloads itself for ever
                return ServerAnswer(self._target, 200, headers, self.raw.body)
            self.left_for = request.url[:300]
        self._asked += 1
        content = request.post_data_buffer or b""
        if not self._allows(request, content):
            return None
        try:
            async with self._gate:
                return await self._follow(request, content)
        except (
            SourceError,
            httpx2.HTTPError,
            httpx2.InvalidURL,
            httpx2.StreamError,
            UnicodeError,
            ValueError,
        ):
            return None

    def _allows(self, request: Request, content: bytes) -> bool:
        return (
            request.resource_type in _LOADED_KINDS
            and request.method in {"GET", "HEAD", "POST"}
            and self._asked <= self.browser.requests
            and self._bytes < self.browser.bytes
            and len(content) <= self.browser.post
        )

    async def _follow(self, request: Request, content: bytes) -> ServerAnswer:
        """Ask hop by hop; raises `SourceError` for what is refused, over a cap or
        redirected too often, and httpx2's errors as they are."""
        url, method = request.url, request.method
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _DROPPED_HEADERS
            and not name.lower().startswith(_DROPPED_STARTS)
        }
        for _ in range(self._limits.max_redirects + 1):
            target, client = self._checked(url, method, request.resource_type)
            async with client.stream(
                method, target.url, headers=headers, content=content or None
            ) as response:
                answer = ServerAnswer(
                    target, response.status_code, response.headers, b""
                )
                if not answer.location:
                    returned = {
                        name: value
                        for name, value in response.headers.items()
                        if name in _RETURNED or name.startswith("access-control-")
                    }
                    return replace(
                        answer, headers=returned, body=await self._read(response, url)
                    )
            if answer.status in _AS_GET:
                method, content = "GET" if method == "POST" else method, b""
            url = str(target.url.join(answer.location))
        raise AddressRefused(f"{request.url} redirects too often.", source=request.url)

    def _checked(
        self, url: str, method: str, kind: str
    ) -> tuple[Target, httpx2.AsyncClient]:
        target = check_url(url, self._limits)
        if target.origin == self._target.origin:
            return target, self._client
        # What another site shows must not be cited as this page; nor is anything sent to another
        # site.
        if method == "POST" or kind == "document":
            raise AddressRefused(
                f"{url} was not loaded: it is on another site than the page.",
                source=url,
            )
        return check_url(url, self._limits.public_only()), self._renderer.open_web

    async def _read(self, response: httpx2.Response, url: str) -> bytes:
        cap = max(self.browser.bytes - self._bytes, 0)
        try:
            body = await read_body(response, url=url, max_bytes=cap)
        except SourceTooLarge:
            self._bytes = self.browser.bytes  # it was read up to the cap
            raise
        self._bytes += len(body)
        return body


async def _settle(
    session: CDPSession, desk: _RequestQueue, ends: float, seconds: float
) -> bool:
    """Wait for `seconds` (three times as long for a page without text) without new text
    and without a request under way; False when time is up before."""
    before: object = None
    since = anyio.current_time()
    with anyio.move_on_at(ends):
        while True:
            letters = await _evaluate(session, _LOOK)
            if letters != before or desk.under_way:
                before, since = letters, anyio.current_time()
            if anyio.current_time() - since >= (seconds if letters else 3 * seconds):
                return True
            await anyio.sleep(seconds / 4)
    return False


async def _evaluate(session: CDPSession, expression: str) -> object:
    """Return the value of an expression over the page's document, None while a
    navigation is replacing it."""
    try:
        tree = await session.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]["id"]
        world = await session.send(
            "Page.createIsolatedWorld", {"frameId": frame, "worldName": "winnow"}
        )
        result = await session.send(
            "Runtime.evaluate",
            {
                "expression": expression,
                "contextId": world["executionContextId"],
                "returnByValue": True,
            },
        )
    except Error:
        return None
    value: object = result["result"].get("value")
    return value


@asynccontextmanager
async def _started(settings: Browser) -> AsyncIterator[BrowserContext]:
    """Start a browser without a network and yield an empty profile in it; both are gone
    afterwards.

    Raises Playwright's `Error` where the browser does not start."""
    async with AsyncExitStack() as stack:
        home = stack.enter_context(
            tempfile.TemporaryDirectory(
                prefix=f"{_HOME}{os.getpid()}-", ignore_cleanup_errors=True
            )
        )
        # Bound and never listened on: no process can answer there meanwhile.
        dead = stack.enter_context(socket.socket())
        dead.bind(("127.0.0.1", 0))
        driver = await async_playwright().start()
        stack.push_async_callback(_ended, driver.stop, settings.close_seconds)
        browser = await driver.chromium.launch(
            executable_path=settings.executable,
            headless=True,
            # Chromium's sandbox does not work for root; for everybody else it stays on.
            chromium_sandbox=sys.platform == "win32" or os.geteuid() != 0,
            args=[*FLAGS, f"--proxy-server=http://127.0.0.1:{dead.getsockname()[1]}"],
            env={"HOME": home, "TMPDIR": home},
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        stack.push_async_callback(_ended, browser.close, settings.close_seconds)
        context = await browser.new_context(
            service_workers="block",
            accept_downloads=False,
            permissions=[],
            locale="en-US",
            timezone_id="UTC",
        )
        yield context


async def _ended(close: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Close within a bound, on cancellation too; what then still runs dies with
    Playwright's driver.

    Playwright's errors are dropped."""
    with (
        anyio.move_on_after(seconds, shield=True),
        suppress(Error),
    ):  # it may be gone already
        await close()
