"""Pages as a browser shows them once their scripts have run: Playwright on a Chromium that is installed already.

Needs the extra `browser`; imported when the first page is rendered. A page's scripts are a stranger's program, so the
browser has no network: its only proxy is a port on which nothing answers and every name is unknown to it. Each request
that Playwright sees is answered by `pipeline/fetch/render.py` or refused; what it does not see (sockets, WebRTC,
prefetches) finds no way out. One browser process a page, with an empty profile, ended with the page. Not for: deciding
which pages need this, nor logging in, clicking or taking pictures.
"""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, CDPSession, Error, Page, Route, async_playwright

from errors import SourceTimeout, SourceUnavailable
from pipeline.fetch.render import Answers, Browser, Given, Rendered, Wanted
from pipeline.work import in_thread

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
"""With a proxy that nobody answers: no connection, no datagram and no look-up leaves the browser."""
_NO_SOCKETS: Final = """for (const name of
  ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport', 'SharedWorker']) delete globalThis[name];"""
_CLOSE_SECONDS: Final = 3.0
_WORLD: Final = "winnow"
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
  for (const element of document.querySelectorAll('script:not([type="application/ld+json"]), noscript'))
    element.remove();
  return document.documentElement.outerHTML.slice(0, CAP);
})()"""


async def show(browser: Browser, page: Given, url: str, answers: Answers) -> Rendered:
    """Return a page after its scripts have run.

    Args:
        browser: What to start, and what the page may cost.
        page: The page as it was fetched; its address is answered with this, so that it is not asked for twice.
        url: Where it was found.
        answers: Answers what it asks for.

    Raises:
        SourceTimeout: Its scripts left no moment in which it could be read.
        SourceUnavailable: The browser does not start, or died.
    """
    caps = browser.caps
    failure: Error | None = None
    with anyio.move_on_after(caps.seconds):
        ends = anyio.current_time() + caps.seconds - caps.last_seconds
        try:
            async with _started(browser.executable) as context, anyio.create_task_group() as group:
                try:
                    return await _visit(context, _Desk(page, url, answers, group), browser, ends)
                except Error as e:
                    failure = e  # leaving the group with it would wrap it
                finally:
                    group.cancel_scope.cancel()
        except Error as e:
            failure = e
    if failure is None:
        raise SourceTimeout(
            f"{url} was not rendered after {caps.seconds:g} s: its scripts do not end.",
            source=url,
            hint="Use another source.",
        )
    reason = str(failure).strip().split("\n")[0][:200]
    raise SourceUnavailable(
        f"The browser {browser.executable} could not render {url}: {reason}.",
        source=url,
        hint="Check that it starts (winnow doctor), or set WINNOW_BROWSER=none.",
    ) from failure


async def _visit(context: BrowserContext, desk: "_Desk", browser: Browser, ends: float) -> Rendered:
    # 1. every request comes to us
    await context.route("**/*", desk.take)
    await context.add_init_script(_NO_SOCKETS)
    tab = await context.new_page()
    context.on("page", desk.turn_away)
    session = await context.new_cdp_session(tab)
    # 2. the page, until it is quiet
    with anyio.move_on_at(ends):
        await tab.goto(desk.url, wait_until="commit")
    settled = await _settle(session, desk, ends, browser.caps.quiet_seconds)
    # 3. what it shows
    place = await _evaluate(session, "location.href")
    html = await _evaluate(session, _WRITE.replace("CAP", str(browser.caps.html)))
    return Rendered(
        html if isinstance(html, str) else "",
        place if isinstance(place, str) and place.startswith(("http://", "https://")) else desk.url,
        settled,
        desk.left_for,
    )


class _Desk:
    """Where the page's requests arrive; each is answered by a task of the page's group."""

    def __init__(self, page: Given, url: str, answers: Answers, group: TaskGroup) -> None:
        self._page = page
        self.url = url.split("#", maxsplit=1)[0]
        self._answers = answers
        self._group = group
        self.under_way = 0
        self.left_for = ""
        """Where the page's scripts lead."""
        self._served = 0

    def take(self, route: Route) -> None:
        """Start answering a request; called by Playwright."""
        self._group.start_soon(self._answer, route)

    def turn_away(self, popup: Page) -> None:
        """Close a window that the page opens; called by Playwright."""
        self._group.start_soon(_ended, popup.close)

    async def _answer(self, route: Route) -> None:
        self.under_way += 1
        try:
            given = await self._given(route)
            if given is None and route.request.is_navigation_request():
                await route.fulfill(status=204)  # the page stays where it is; an abort would show an error page
            elif given is None:
                await route.abort("blockedbyclient")
            else:
                await route.fulfill(status=given.status, headers=dict(given.headers), body=given.body)
        except Error:
            pass  # the page has gone on without waiting for this answer
        finally:
            self.under_way -= 1

    async def _given(self, route: Route) -> Given | None:
        request = route.request
        if request.is_navigation_request():
            if request.frame.parent_frame is not None:
                return None  # what stands in a frame is not part of the page's own HTML
            if request.url.split("#")[0] == self.url and request.method == "GET":
                self._served += 1
                return self._page if self._served <= 3 else None  # a page that reloads itself for ever
            self.left_for = request.url[:300]
        return await self._answers(
            Wanted(request.url, request.method, request.resource_type, request.headers, request.post_data_buffer or b"")
        )


async def _settle(session: CDPSession, desk: _Desk, ends: float, seconds: float) -> bool:
    """Wait for `seconds` without new text and without a request under way; False when time is up before."""
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
    """Return the value of an expression over the page's document, None while a navigation is replacing it."""
    try:
        tree = await session.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]["id"]
        world = await session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": _WORLD})
        found = await session.send(
            "Runtime.evaluate",
            {"expression": expression, "contextId": world["executionContextId"], "returnByValue": True},
        )
    except Error:
        return None
    value: object = found["result"].get("value")
    return value


@asynccontextmanager
async def _started(executable: Path) -> AsyncIterator[BrowserContext]:
    """Start a browser without a network and yield an empty profile in it; both are gone afterwards."""
    await in_thread(_sweep)
    async with AsyncExitStack() as stack:
        home = stack.enter_context(
            tempfile.TemporaryDirectory(prefix=f"{_HOME}{os.getpid()}-", ignore_cleanup_errors=True)
        )
        # Bound and never listened on: while we hold it, nobody can answer there.
        dead = stack.enter_context(socket.socket())
        dead.bind(("127.0.0.1", 0))
        driver = await async_playwright().start()
        stack.push_async_callback(_ended, driver.stop)
        browser = await driver.chromium.launch(
            executable_path=executable,
            headless=True,
            # Chromium's sandbox does not work for root; for everybody else it stays on.
            chromium_sandbox=sys.platform == "win32" or os.geteuid() != 0,
            args=[*FLAGS, f"--proxy-server=http://127.0.0.1:{dead.getsockname()[1]}"],
            env={"HOME": home, "TMPDIR": home},
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        stack.push_async_callback(_ended, browser.close)
        context = await browser.new_context(
            service_workers="block", accept_downloads=False, permissions=[], locale="en-US", timezone_id="UTC"
        )
        yield context


def _sweep() -> None:
    """Remove the folders of browsers whose server was killed before it could."""
    for path in Path(tempfile.gettempdir()).glob(f"{_HOME}*-*"):
        number = path.name.removeprefix(_HOME).partition("-")[0]
        if number.isdecimal() and not _runs(int(number)) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)  # those of other users stay


def _runs(process: int) -> bool:
    if sys.platform == "win32":
        return True  # there, asking would end the process
    with suppress(PermissionError, OverflowError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
    return True


async def _ended(close: Callable[[], Awaitable[None]]) -> None:
    """Close within a bound, on cancellation too; what then still runs dies with Playwright's driver."""
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(Error):  # it may be gone already
        await close()
