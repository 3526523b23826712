"""Pages of a public address that lead a reader inside, by every way that is followed by itself.

The public web is a proxy on loopback, through which every name is asked for; inside is a site on
127.0.0.1, which is open as an operator opens it. Not for: what scripts of a page ask for
(`tests/test_fetch_browser.py`).
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from errors import SourceError
from pipeline.fetch.address import literal
from pipeline.fetch.client import Fetcher, open_fetcher
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.proxy import parse_proxy
from pipeline.fetch.render import Browser
from tests.support.proxy import open_proxy
from tests.support.web_site import WORDS, Reply, Site, open_site

PUBLIC: Final = "93.184.216.34"
HOST: Final = "boats.winnow-site.org"
INNER_NAME: Final = "intranet.winnow-site.org"
"""Resolves to loopback."""
TARGETS: Final = ("127.0.0.1", "localhost", INNER_NAME, "127.9.9.9")
"""Hosts at which the inner site is found. An answer that mixes addresses is refused anyone who
leads there."""


def _moved(to: str, status: int = 302) -> Reply:
    return Reply(b"", status, {"Location": to})


def _page(inside: str = "", head: str = "") -> Reply:
    return Reply(f"<html><head>{head}</head><body><p>{WORDS}</p>{inside}</body></html>".encode())


Form = Callable[[str], Mapping[str, Reply]]
"""Takes an address inside; returns what the public site answers, the page `/p` first."""


def _by_status(code: int) -> Form:
    return lambda to: {"/p": _moved(to, code)}


FORMS: Final[Mapping[str, Form]] = {
    **{f"status {code}": _by_status(code) for code in (301, 302, 303, 307, 308)},
    "a second step": lambda to: {"/p": _moved("/q"), "/q": _moved(to)},
    "a step to another name": lambda to: {
        "/p": _moved("http://other.winnow-site.org:{port}/q"),
        "/q": _moved(to),
    },
    "a header that refreshes": lambda to: {"/p": Reply(b"", headers={"Refresh": f"0; url={to}"})},
    "a page that refreshes": lambda to: {
        "/p": Reply(f"<meta http-equiv=refresh content='0; url={to}'>".encode())
    },
    "a refresh after a step": lambda to: {
        "/p": _moved("/q"),
        "/q": Reply(f"<meta http-equiv=refresh content='1;{to}'>".encode()),
    },
    "a frame that is sent on": lambda to: {
        "/p": _page("<iframe src=/f></iframe>"),
        "/f": _moved(to),
    },
    "an object that is sent on": lambda to: {
        "/p": _page("<object data=/f></object>"),
        "/f": _moved(to),
    },
    "a frame": lambda to: {"/p": _page(f"<iframe src='{to}'></iframe>")},
    "a frame by the base": lambda to: {
        "/p": _page("<iframe src=secret></iframe>", f"<base href='{to}'>")
    },
    "a frame after a step": lambda to: {
        "/p": _moved("/q"),
        "/q": _page("<frameset><frame src=/f></frameset>"),
        "/f": _moved(to, 307),
    },
    "captions": lambda to: {
        "/p": _page(f"<video controls><track kind=captions src='{to}'></video>")
    },
    "captions that are sent on": lambda to: {
        "/p": _page("<video controls><track kind=captions src=/t></video>"),
        "/t": _moved(to),
    },
    "robots.txt that is sent on": lambda to: {"/p": _page(), "/robots.txt": _moved(to)},
    "a twin in Markdown": lambda to: {
        "/p": _page(head="<link rel=alternate type=text/markdown href=/t.md>"),
        "/t.md": _moved(to),
    },
    "a twin elsewhere": lambda to: {
        "/p": _page(head=f"<link rel=alternate type=text/markdown href='{to}'>")
    },
    "a twin that a header names": lambda to: {
        "/p": Reply(
            f"<p>{WORDS}</p>".encode(),
            headers={"Link": f'<{to}>; rel="alternate"; type="text/markdown"'},
        )
    },
    "a script that leads elsewhere": lambda to: {
        "/p": Reply(f"<script>location.href = '{to}'</script>".encode())
    },
    "a script that replaces": lambda to: {
        "/p": Reply(f'<script>window.location.replace("{to}")</script>'.encode())
    },
    "a refresh without scripts": lambda to: {
        "/p": Reply(f"<noscript><meta http-equiv=refresh content='0;url={to}'></noscript>".encode())
    },
    "the page itself elsewhere": lambda to: {
        "/p": _page(head=f"<link rel=canonical href='{to}'><link rel=amphtml href='{to}'>")
    },
    "a paper as PDF": lambda to: {"/p": _page(head=f"<meta name=citation_pdf_url content='{to}'>")},
    "a frame within a frame's own text": lambda to: {
        "/p": _page(f'<iframe srcdoc="<iframe src={to}></iframe>"></iframe>')
    },
    "a frame that waits": lambda to: {
        "/p": _page(f"<iframe loading=lazy data-src='{to}' src='about:blank'></iframe>")
    },
    "a site's own list for programs": lambda to: {
        "/p": _page(),
        "/llms.txt": _moved(to),
        "/sitemap.xml": _moved(to),
        "/feed": _moved(to),
    },
}


@dataclass(frozen=True, slots=True)
class Both:
    """A public site, one inside, and who reads them."""

    public: Site
    inner: Site
    fetcher: Fetcher

    def inside(self, host: str = "127.0.0.1", path: str = "/secret") -> str:
        """Return an address inside."""
        return self.inner.url(path, host=host)

    async def led(self, form: str, target: str) -> Sequence[str]:
        """Read the page of a form that leads to a host inside; return what was asked for there."""
        self.inner.asked.clear()
        self.public.routes.clear()
        for path, reply in FORMS[form](self.inside(target)).items():
            to = reply.headers.get("Location", "").replace("{port}", str(self.public.port))
            self.public.routes[path] = Reply(
                reply.body, reply.status, {**reply.headers, **({"Location": to} if to else {})}
            )
        with suppress(SourceError):
            # A host for each, since a site's rules are kept.
            name = f"{crc32(f'{form} {target}'.encode())}.{HOST}"
            await self.fetcher.fetch(self.public.url("/p", host=name))
        return [one.path for one in self.inner.asked]

    async def scripted(self, script: str, target: str) -> Sequence[str]:
        """Read a page whose script asks for `TO`, a host inside; return what was asked for
        there."""
        self.inner.asked.clear()
        self.public.routes.clear()
        body = f"<div id=a></div><script>const TO = '{self.inside(target)}'; {script}</script>"
        self.public.routes["/p"] = Reply(f"<html><body>{body}</body></html>".encode())
        with suppress(SourceError):
            name = f"{crc32(f'{script} {target}'.encode())}.{HOST}"
            await self.fetcher.fetch(self.public.url("/p", host=name))
        return [one.path for one in self.inner.asked]


async def _resolve(host: str, _port: int) -> list[str]:
    return [host if literal(host) else "127.0.0.1" if host in TARGETS else PUBLIC]


@asynccontextmanager
async def both(browser: Browser | None = None) -> AsyncIterator[Both]:
    """Open a public site, an inner one and a fetcher to which loopback is open."""
    said = Reply(f"<p>{WORDS} The inner code is 4711.</p>".encode())
    async with (
        open_site({}) as public,
        open_site({"/secret": said}, host="0.0.0.0") as inner,  # noqa: S104  all of 127.0.0.0/8
        open_proxy(public) as middle,
    ):
        limits = FetchLimits(
            allow_loopback=True,
            retry=False,
            proxy=parse_proxy(f"http://127.0.0.1:{middle.port}"),
        )
        async with open_fetcher(limits, pages=None, resolve=_resolve, browser=browser) as fetcher:
            yield Both(public, inner, fetcher)
