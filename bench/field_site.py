"""The HTTP traits of the field cases, on loopback: redirects, cut bodies, odd types, a
SearXNG with a password.

Not for: which of them are read rightly (`bench/field.py`).
"""

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Final

from bench.loopback import listening

USER: Final = "user"
PASSWORD: Final = "pw"  # noqa: S105  of a server on loopback that this module is
DRIPS: Final = 40
"""Bytes that come after the page, one in half a second: more than any deadline of a
page has time for."""
_HTML: Final = "text/html; charset=utf-8"
_PROSE: Final = (
    "<p>The harbour of Arnvik lies on the western shore and has been used by boats for 400 "
    "years.</p>"
    "<p>Its gate is kept by Ilse Marin, who lets boats in from six in the morning until dusk.</p>"
)


def page(body: str, head: str = "<title>Harbour guide</title>") -> bytes:
    """Return an HTML page with a body."""
    return f"<!doctype html><html><head>{head}</head><body><main>{body}</main></body></html>".encode()


def _keyed(key: str) -> bytes:
    return page(f"<h1>Arnvik</h1>{_PROSE}<p>The key number is {key}.</p>")


_SECTIONS: Final = "".join(
    f'<h2 id="sec{n}">Section {n}: basin {n}</h2>'
    f"<p>Basin {n} is dredged in week {n + 10}. "
    f"{'Its floor is clay over gravel and silts. ' * 9}</p>"
    for n in range(1, 13)
)
_PAGES: Final[Mapping[str, tuple[str, bytes]]] = {
    "/base": (
        _HTML,
        page(
            f'<h1>Files</h1>{_PROSE}<p><a href="files/plan.pdf">The plan of the works</a></p>',
            '<base href="/other/"><title>Files</title>',
        ),
    ),
    "/metarefresh": (
        _HTML,
        page("", '<meta http-equiv="refresh" content="0; url=/landing">'),
    ),
    "/mrdocs": (
        _HTML,
        page(
            '<noscript>Redirecting to <a href="/landing">the '
            "docs</a></noscript><script>go()</script>",
            '<title>Redirecting</title><meta http-equiv="refresh" content="1; url=landing">'
            '<script>window.location.replace("landing")</script>',
        ),
    ),
    "/landing": (_HTML, _keyed("K-landing")),
    "/xhtml": (
        "application/xhtml+xml",
        b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/>'
        b'<script src="a.js"/><style/></head><body><p>The key number is K-xhtml.</p></body></html>',
    ),
    "/challenge200": (
        _HTML,
        page(
            "<h1>Just a moment…</h1><p>Checking that the site connection is secure.</p>"
            "<script>window._cf_chl_opt={cType:'managed'}</script>"
            '<form id="challenge-form" action="/?__cf_chl_f_tk=1" method="POST"></form>',
            "<title>Just a moment...</title>",
        ),
    ),
    "/frag": (_HTML, page(f"<h1>All basins</h1>{_SECTIONS}")),
    "/csvct": ("application/vnd.ms-excel", b"ship,fee\r\nTern,12\r\nGull,19\r\n"),
    "/tariff-inner.html": (_HTML, page("<p>A night costs 31 crowns.</p>")),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer by path; what is not known is 404."""
        path = self.path.partition("?")[0]
        special = _SPECIAL.get("/" + path.split("/")[1])
        # Anyone who asked may leave at its deadline.
        with suppress(ConnectionError):
            if special is not None:
                special(self)
            elif path in _PAGES:
                self.reply(200, _PAGES[path][1], {"Content-Type": _PAGES[path][0]})
            else:
                self.reply(404, b"", {})

    def reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output to the table."""


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


def _begin_chunks(handler: _Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", _HTML)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()


def _cut(handler: _Handler) -> None:
    """Send the whole page, and hang up before the last chunk's mark."""
    _begin_chunks(handler)
    handler.wfile.write(_chunk(_keyed("K-cut")))
    handler.close_connection = True


def _drip(handler: _Handler) -> None:
    _begin_chunks(handler)
    handler.wfile.write(_chunk(_keyed("K-drip").partition(b"</main>")[0]))
    for _ in range(DRIPS):
        handler.wfile.flush()
        time.sleep(0.5)
        handler.wfile.write(_chunk(b" "))
    handler.close_connection = True


def _cookie_wall(handler: _Handler) -> None:
    """Send back anyone who has no cookie yet, with one; `/ckchain/2` has two such
    hops."""
    cookies = handler.headers.get("Cookie", "")
    path = handler.path
    if f"seen{path.count('/')}=1" in cookies:
        left = int(path.rpartition("/")[2]) if path.count("/") > 1 else 1
        if left > 1 and "again=1" not in cookies:
            cookie = {"Location": path, "Set-Cookie": "again=1; Path=/"}
            return handler.reply(302, b"", cookie)
        return handler.reply(200, _keyed("K-cookie"), {"Content-Type": _HTML})
    cookie = {"Location": path, "Set-Cookie": f"seen{path.count('/')}=1; Path=/"}
    return handler.reply(302, b"", cookie)


def _searxng(handler: _Handler) -> None:
    """Answer as SearXNG does, to requests with the password alone."""
    wanted = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    if handler.headers.get("Authorization") != f"Basic {wanted}":
        return handler.reply(401, b"", {"WWW-Authenticate": 'Basic realm="search"'})
    hit = {
        "url": "https://example.org/arnvik",
        "title": "Arnvik",
        "content": "The harbour of Arnvik.",
    }
    body = json.dumps(
        {"query": "arnvik", "results": [hit], "number_of_results": 1}
    ).encode()
    return handler.reply(200, body, {"Content-Type": "application/json"})


_SPECIAL: Final[Mapping[str, Callable[[_Handler], None]]] = {
    "/chunkcut": _cut,
    "/drip": _drip,
    "/cookiewall": _cookie_wall,
    "/ckchain": _cookie_wall,
    "/search": _searxng,
}


@contextmanager
def field_site() -> Iterator[int]:
    """Serve the traits while the context is open; yield the port."""
    with listening(_Handler) as port:
        yield port
