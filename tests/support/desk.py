"""Chromium, axe and hosts for tests of the desk; the desk itself is the command, in a process of
its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.extension import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID

from server.app import build_server
from server.settings import read_settings
from tests.support import LIBRARY, ROOT
from tests.support.extras import need
from tools.common.view import VIEW_URI

SANDBOX_PAGE: Final = (Path(__file__).parent / "desk_sandbox.html").read_text(encoding="utf-8")
NODE: Final = ROOT / ".venv" / "desk" / "node_modules"
"""Where `make desk` puts axe and the official host side of MCP Apps."""
APPS: Final = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
HOST_PAGE: Final = (Path(__file__).parent / "desk_host.html").read_text(encoding="utf-8")
POLICY: Final = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'self' "
    "'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'none'\">"
)
"""What the specification has hosts put over an app that asks for no network."""


@contextmanager
def browsing() -> Iterator[Any]:
    """Yield a Chromium that is installed, driven by Playwright; skip where either is missing."""
    need("browser")
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  an extra

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def desk_served(cache: Path, *settings: str, library: Path = LIBRARY) -> Iterator[str]:
    """Yield the address that `winnow desk` prints, for a person whose home is beside the cache
    folder."""
    given = [
        part for pair in (f"cache={cache}", "search=folder", *settings) for part in ("--set", pair)
    ]
    command = [
        sys.executable,
        "-m",
        "server",
        "desk",
        "--no-browser",
        "--folder",
        str(library),
        *given,
    ]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("WINNOW")
    }
    home = home_beside(cache)
    environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+/", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def home_beside(cache: Path) -> Path:
    """Return the home of the person whose desk has its cache at `cache`."""
    home = cache.with_name(f"{cache.name}-home")
    home.mkdir(exist_ok=True)
    return home


def violations(page: Any) -> list[str]:
    """Return what axe finds on a page; skip where it is not installed."""
    script = NODE / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("axe-core is not installed (make desk)")
    page.evaluate(script.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => "
        "n.html).slice(0, 3)))"
    )
    return list(found)


@dataclass
class Host:
    """A client that shows the desk in a frame of a page."""

    page: Any
    """Playwright's page around it; `log` there has what the app sent."""
    app: Any
    """Playwright's locator of what is in the frame."""
    call: Callable[[str, dict[str, Any]], dict[str, Any]]
    """Calls a tool of the server after it."""

    def report(self, method: str, params: object) -> None:
        """Send a notification to the app."""
        self.page.evaluate("([method, params]) => notify(method, params)", [method, params])

    def sent(self, method: str) -> list[dict[str, Any]]:
        """Return the messages of one kind that the app sent, in order."""
        return [message for message in self.page.evaluate("log") if message.get("method") == method]


@contextmanager
def hosted(
    browser: Any, cache: Path, *, tool: str = "research", at: str = "", declared: bool = True
) -> Iterator[Host]:
    """Yield a host that has the desk from a server of ours, whose tools and resources it passes on.

    With `at`, the host is the page at that address, which has the app in a frame within a frame. If
    not `declared`, the server is not reported that the host shows apps, as the basic host of the
    ext-apps project does not show it.
    """
    given = {"folders": str(LIBRARY), "cache": str(cache), "search": "folder", "seconds": "100"}
    settings = read_settings(given, {})
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            Client(build_server(settings), extensions=[APPS] * declared)
        ) as client,
    ):

        def call(name: str, arguments: dict[str, Any], meta: Any = None) -> dict[str, Any]:
            return _plain(portal.call(partial(client.call_tool, name, arguments, meta=meta)))

        def relay(method: str, params: dict[str, Any]) -> dict[str, Any]:
            if method == "tools/call":
                return call(params["name"], params["arguments"], params.get("_meta"))
            return _plain(portal.call(client.read_resource, params["uri"]))

        html = _plain(portal.call(client.read_resource, VIEW_URI))["contents"][0]["text"]
        page = browser.new_page()
        page.set_default_timeout(110_000)  # milliseconds: two cores shared with other tests
        page.expose_function("relay", relay)
        if at:
            page.goto(at)
        else:
            page.set_content(HOST_PAGE)
        page.evaluate(
            "([html, tool]) => begin(html, tool)",
            [html.replace("<head>", f"<head>{POLICY}", 1), tool],
        )
        page.wait_for_function("log.some(m => m.method === 'ui/notifications/initialized')")
        try:
            app = page.frame_locator("iframe")
            yield Host(page, app.frame_locator("iframe") if at else app, call)
        finally:
            page.close()


def _plain(result: Any) -> dict[str, Any]:
    return dict(json.loads(result.model_dump_json(by_alias=True, exclude_none=True)))
