"""Pages that only a browser can render, with a real Chromium: their text arrives, and they reach
nothing else."""

import asyncio
import contextlib
import importlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path

import anyio
import pytest

from cache.store import open_stores
from errors import AddressRefused, NeedsBrowser, UsageError
from pipeline.fetch.client import Fetcher, open_fetcher
from pipeline.fetch.connect import pinned_client
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.proxy import parse_proxy
from pipeline.fetch.render import RENDERED, UNSETTLED, Browser, find_browser
from readers.html.document import read_document
from tests.support import ROOT, Connect, text_of
from tests.support import Site as Threaded
from tests.support.extras import need
from tests.support.proxy import open_proxy
from tests.support.web_site import WORDS, Asked, Reply, open_site, serving

pytestmark = pytest.mark.slow

LOCAL = FetchLimits(allow_loopback=True, respect_robots=False)
SECONDS = 20.0
"""Longer than in use: two cores shared with other tests start a browser in 1 to 6 s."""
SHELL = '<!doctype html><title>Boats</title><div id="root"></div>'
FILL = "document.getElementById('root').innerHTML = "


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Return an installed Chromium."""
    need("browser")
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    return Path(found)


@asynccontextmanager
async def rendering(
    chromium: Path, *, limits: FetchLimits = LOCAL, seconds: float = SECONDS, **caps: int
) -> AsyncIterator[Fetcher]:
    async with open_fetcher(
        limits, pages=None, browser=Browser(chromium, seconds, **caps)
    ) as fetcher:
        yield fetcher


def script(code: str) -> Reply:
    return Reply(code.encode(), kind="text/javascript")


def shell(code: str) -> Reply:
    return Reply(f"{SHELL}<script>{code}</script>".encode())


@dataclass
class Trap:
    """A port that must stay unasked: connections and datagrams are counted."""

    port: int = 0
    reached: list[str] = field(default_factory=list)
    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    """Set from the tenth on."""

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.port}"

    def note(self, how: str) -> None:
        """Count one."""
        self.reached.append(how)
        if len(self.reached) >= 10:
            self.sprung.set()


@asynccontextmanager
async def open_trap() -> AsyncIterator[Trap]:
    trap = Trap()

    async def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        trap.note("tcp")
        writer.close()

    class Datagrams(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            trap.note(f"udp {data[:20]!r} {addr}")

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    trap.port = server.sockets[0].getsockname()[1]
    udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        Datagrams, local_addr=("127.0.0.1", trap.port)
    )
    try:
        yield trap
    finally:
        udp.close()
        server.close()


def browsers_of(parent: int) -> list[int]:
    """Return the processes of browsers that a process, or one that is gone, has left: reported by
    their profile's place."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes()
                home = (entry / "environ").read_bytes()
                if (
                    b"--host-resolver-rules" in line
                    and f"winnow-browser-{parent}-".encode() in home
                ):
                    found.append(int(entry.name))
    return found


async def gone(parent: int, *, seconds: float = 10.0) -> bool:
    """Return whether a process's browsers end within `seconds`."""
    with anyio.move_on_after(seconds):
        while left := browsers_of(parent):
            with contextlib.suppress(ProcessLookupError), os.fdopen(os.pidfd_open(left[0])) as ends:
                await anyio.wait_readable(ends)
        return True
    return False


@pytest.mark.anyio
async def test_a_page_that_scripts_fill_arrives_with_its_text(chromium: Path) -> None:
    code = (
        f"fetch('/data.json').then(r => r.json()).then(d => {{ {FILL} '<h1>' + d.title + "
        f"'</h1><p>' + d.text }})"
    )
    routes = {
        "/p": Reply(f'{SHELL}<script src="/app.js"></script>'.encode()),
        "/app.js": script(code),
        "/data.json": Reply(
            f'{{"title": "Ferry 12", "text": "{WORDS}"}}'.encode(), kind="application/json"
        ),
    }
    async with open_site(routes) as site, rendering(chromium) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert "<h1>Ferry 12</h1>" in page.html
    assert WORDS.strip() in page.html
    assert page.title == "Boats"
    assert RENDERED in page.notes
    assert site.paths == ["/p", "/app.js", "/data.json"]
    assert all(asked.headers["user-agent"].startswith("Winnow (") for asked in site.asked)


@pytest.mark.anyio
async def test_text_in_shadow_roots_modules_redirects_posts_and_late_timers_arrives(
    chromium: Path,
) -> None:
    code = f"""
      import {{ word }} from '/moved.js';
      customElements.define('x-card', class extends HTMLElement {{
        connectedCallback() {{ this.attachShadow({{mode: 'open'}}).innerHTML = '<p>In the shadow: ' + word + '</p>'; }}
      }});
      {FILL} '<x-card></x-card>';
      const json = {{'Content-Type': 'application/json'}};
      const post = await fetch('/graphql', {{method: 'POST', body: '{{}}', headers: json}});
      const answer = await post.text();
      setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<p>Late: ' + answer + '</p>'), 300);"""
    routes = {
        "/p": Reply(f'{SHELL}<script type="module">{code}</script>'.encode()),
        "/moved.js": Reply(b"", 302, {"Location": "/word.js"}),
        "/word.js": script("export const word = 'harbour'"),
        "/graphql": Reply(b"ferry at nine"),
    }
    async with open_site(routes) as site, rendering(chromium) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert "In the shadow: harbour" in page.html
    assert "Late: ferry at nine" in page.html


ESCAPES = """
  const go = f => { try { const r = f(); if (r && r.catch) r.catch(() => 0); } catch (e) {} };
  const T = 'TRAP';
  go(() => fetch(T + '/fetch')); go(() => fetch(T + '/no-cors', {mode: 'no-cors'}));
  go(() => fetch(T + '/keep', {method: 'POST', keepalive: true, mode: 'no-cors', body: 'x'}));
  go(() => navigator.sendBeacon(T + '/beacon', 'x'));
  go(() => { const x = new XMLHttpRequest(); x.open('GET', T + '/xhr'); x.send(); });
  go(() => { const x = new XMLHttpRequest(); x.open('GET', T + '/sync', false); x.send(); });
  go(() => { new Image().src = T + '/image'; });
  go(() => new WebSocket(T.replace('http', 'ws') + '/socket'));
  go(() => new EventSource(T + '/events'));
  go(() => { const v = document.createElement('video'); v.src = T + '/video'; v.load(); });
  const blob = code => URL.createObjectURL(new Blob([code]));
  go(() => new Worker(blob(`fetch('${T}/worker'); new WebSocket('${T.replace('http', 'ws')}')`)));
  go(() => new Worker(blob(`importScripts('${T}/import')`)));
  go(() => new SharedWorker(blob(`fetch('${T}/shared')`)));
  go(() => navigator.serviceWorker.register('/sw.js'));
  go(() => import(T + '/module.js'));
  go(() => new WebTransport(T.replace('http', 'https') + '/transport'));
  go(() => { const f = document.createElement('iframe'); document.body.append(f);
    const R = f.contentWindow.RTCPeerConnection || window.RTCPeerConnection;
    const p = new R({iceServers: [{urls: T.replace('http://', 'stun:')}]});
    p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o)); });
  go(() => window.open(T + '/popup'));
  go(() => fetch('/away')); go(() => fetch('/away-to-metadata'));
  for (const rel of ['prefetch', 'preload', 'modulepreload', 'preconnect', 'dns-prefetch', 'prerender', 'stylesheet',
      'icon', 'manifest']) {
    const l = document.createElement('link'); l.rel = rel; l.as = 'script'; l.href = T + '/link-' + rel;
    document.head.append(l);
  }
  const rules = document.createElement('script'); rules.type = 'speculationrules';
  rules.textContent = JSON.stringify({prefetch: [{urls: [T + '/rules']}], prerender: [{urls: [T + '/prerules']}]});
  document.head.append(rules);
  const port = T.split(':')[2];
  for (const bad of [T + '/frame', 'file:///etc/hostname', 'http://169.254.169.254/latest/', 'http://[::1]:' + port,
      'http://localhost:' + port, 'http://2130706433:' + port, 'view-source:' + T]) {
    const f = document.createElement('iframe'); f.src = bad; document.body.append(f);
    go(() => fetch(bad).then(r => r.text()).then(t => document.body.append('STOLEN ' + t)));
  }
  document.body.insertAdjacentHTML('beforeend', `<a id=ping href="#x" ping="${T}/ping">x</a>
    <form id=form action="${T}/form" method=post target=hidden></form><iframe name=hidden></iframe>
    <object data="${T}/object"></object><embed src="${T}/embed"><style>@import url(${T}/css);
    @font-face {font-family: q; src: url(${T}/font)} p {font-family: q; background: url(${T}/background)}</style>`);
  go(() => document.getElementById('ping').click()); go(() => document.getElementById('form').submit());
"""


@pytest.mark.anyio
async def test_no_road_out_of_a_page_reaches_a_refused_address(chromium: Path) -> None:
    async with open_trap() as trap:
        code = ESCAPES.replace("TRAP", trap.url) + f"{FILL} '<p>{WORDS}</p>'"
        routes = {
            "/p": shell(code),
            "/away": Reply(b"", 302, {"Location": f"{trap.url}/redirected"}),
            "/away-to-metadata": Reply(b"", 302, {"Location": "http://169.254.169.254/latest/"}),
            "/sw.js": script(f"fetch('{trap.url}/sw')"),
        }
        async with open_site(routes) as site, rendering(chromium) as fetcher:
            page = await fetcher.fetch(site.url("/p"))
        assert trap.reached == []
    assert WORDS.strip() in page.html
    assert "STOLEN" not in page.html
    assert {"/away", "/away-to-metadata"} <= set(site.paths)
    assert "/sw.js" not in site.paths


@pytest.mark.anyio
@pytest.mark.parametrize("caged", [False, True], ids=["no cage", "flags alone"])
async def test_the_trap_works_and_the_flags_alone_keep_the_browser_from_it(
    chromium: Path, caged: bool
) -> None:
    """A control: the same page in a plain browser does reach the trap; with our flags it does not,
    routes or none."""
    api = importlib.import_module("playwright.async_api")
    async with open_trap() as trap, api.async_playwright() as driver:
        with socket.socket() as dead:
            dead.bind(("127.0.0.1", 0))
            from extras.browser import FLAGS  # noqa: PLC0415  needs the extra

            proxy = (
                [*FLAGS, f"--proxy-server=http://127.0.0.1:{dead.getsockname()[1]}"]
                if caged
                else []
            )
            browser = await driver.chromium.launch(
                executable_path=chromium, chromium_sandbox=os.geteuid() != 0, args=proxy
            )
            tab = await browser.new_page()
            await tab.set_content(
                f"<div id=root></div><script>{ESCAPES.replace('TRAP', trap.url)}</script>"
            )
            with anyio.move_on_after(10 if not caged else 2):
                await trap.sprung.wait()
            await browser.close()
        assert (len(trap.reached) >= 10) != caged
        assert not (caged and trap.reached)


@pytest.mark.anyio
async def test_a_page_that_goes_elsewhere_takes_the_browser_nowhere(chromium: Path) -> None:
    async with open_trap() as trap:
        # Computed, for an address that is written out is followed without a browser.
        routes = {
            "/p": shell(f"location.replace('{trap.url}' + '/gone')"),
            "/r": shell("location.replace('/' + 'away')"),
            "/f": shell("location = 'file://' + '/etc/passwd'"),
            "/away": Reply(b"", 302, {"Location": f"{trap.url}/gone"}),
        }
        async with open_site(routes) as site, rendering(chromium) as fetcher:
            for path in ("/p", "/r", "/f"):
                with pytest.raises(NeedsBrowser, match="no text even after") as caught:
                    await fetcher.fetch(site.url(path))
                assert "root:" not in str(caught.value)
        assert trap.reached == []


@pytest.mark.anyio
async def test_a_page_that_leads_to_another_of_its_site_is_cited_from_there(chromium: Path) -> None:
    routes = {
        "/p": shell("location.replace('/' + 'moved')"),  # without a browser it is not followed
        "/moved": Reply(b"", 302, {"Location": "/q"}),
    }
    routes["/q"] = shell(f"{FILL} '<p>{WORDS}</p>'; history.pushState(0, '', '/boats?id=7')")
    async with open_site(routes) as site, rendering(chromium) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert WORDS.strip() in page.html
    assert (page.url, page.final_url) == (site.url("/p"), site.url("/boats?id=7"))


@pytest.mark.anyio
@pytest.mark.parametrize(
    "code",
    [
        "for (;;);",
        "setInterval(() => { for (const end = Date.now() + 900; Date.now() < end;); }, 1)",
    ],
    ids=["never ends", "busy for ever"],
)
async def test_scripts_without_end_are_left_at_the_deadline_and_no_process_stays(
    chromium: Path, code: str
) -> None:
    async with open_site({"/p": shell(code)}) as site, rendering(chromium, seconds=6.0) as fetcher:
        with pytest.raises(NeedsBrowser, match=r"6 s|no text"):
            await fetcher.fetch(site.url("/p"))
    assert await gone(os.getpid())


@pytest.mark.anyio
async def test_a_page_that_never_rests_gives_what_it_shows_by_then(chromium: Path) -> None:
    code = f"{FILL} '<p>{WORDS}</p>'; setInterval(() => document.body.append(' tick'), 30)"
    async with open_site({"/p": shell(code)}) as site, rendering(chromium, seconds=15.0) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert WORDS.strip() in page.html
    assert UNSETTLED in page.notes


@pytest.mark.anyio
async def test_requests_and_bytes_of_a_page_are_capped(chromium: Path) -> None:
    code = f"""{FILL} '<p>{WORDS}</p>'; for (let n = 0; n < 300; n++) fetch('/n').catch(() => 0)"""
    routes = {"/p": shell(code), "/n": Reply(b"x" * 10_000)}
    async with open_site(routes) as site, rendering(chromium, requests=40) as fetcher:
        await fetcher.fetch(site.url("/p"))
    assert site.paths.count("/n") == 40
    async with open_site(routes) as site, rendering(chromium, bytes=35_000) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert site.paths.count("/n") < 12
    assert WORDS.strip() in page.html


@pytest.mark.anyio
async def test_a_cancelled_rendering_leaves_no_process_and_the_next_one_works(
    chromium: Path,
) -> None:
    routes = {"/p": shell("for (;;);"), "/q": shell(f"{FILL} '<p>{WORDS}</p>'")}
    async with open_site(routes) as site, rendering(chromium) as fetcher:
        with anyio.move_on_after(3.0):
            await fetcher.fetch(site.url("/p"))
        assert await gone(os.getpid())
        assert WORDS.strip() in (await fetcher.fetch(site.url("/q"))).html
    assert await gone(os.getpid())


@contextmanager
def rendering_process(chromium: Path, url: str, cache: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of its own that renders `url`."""
    arguments = [sys.executable, "-m", "server", "fetch", url]
    given = {
        "WINNOW_BROWSER": str(chromium),
        "WINNOW_NETWORKS": "loopback",
        "WINNOW_WEB": "named",
        "WINNOW_CACHE": str(cache),
    }
    with subprocess.Popen(
        arguments,
        cwd=ROOT,
        env={**os.environ, **given},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.anyio
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_server_that_is_ended_leaves_no_browser(
    chromium: Path, tmp_path: Path, how: signal.Signals
) -> None:
    runs = asyncio.Event()

    def reported(_asked: Asked) -> Reply:
        runs.set()
        return Reply(b"1")

    endless = "r = new XMLHttpRequest(); r.open('GET', '/runs', false); r.send(); for (;;);"
    async with open_site({"/p": shell(endless), "/runs": reported, "/empty": shell("1")}) as site:
        with rendering_process(chromium, site.url("/p"), tmp_path) as process:
            with anyio.fail_after(30):
                await runs.wait()
            assert browsers_of(process.pid)
            process.send_signal(how)
            assert await gone(process.pid)
            process.wait()


@pytest.mark.anyio
async def test_a_rendered_page_is_kept_and_asked_for_once(chromium: Path, tmp_path: Path) -> None:
    routes = {"/p": shell(f"{FILL} '<p>{WORDS}</p>'")}
    stores = open_stores(tmp_path, size_limit=50_000_000, clock=time.time)
    async with (
        open_site(routes) as site,
        open_fetcher(LOCAL, pages=stores.pages, browser=Browser(chromium, SECONDS)) as fetcher,
    ):
        first = await fetcher.fetch(site.url("/p"))
        assert await fetcher.fetch(site.url("/p")) == first
    assert site.paths == ["/p"]
    stores.close()


@pytest.mark.anyio
async def test_a_tool_answers_from_a_page_that_scripts_fill(
    chromium: Path, connect: Connect, site: Threaded
) -> None:
    text = "The ferry to Pell Island leaves the north pier at nine every morning."
    url = site.put("/ferry", f"{SHELL}<script>{FILL} '<h1>Ferry</h1><p>{text}</p>'</script>")
    settings = {"networks": "loopback", "embedder": "none", "browser": str(chromium)}
    async with connect(**settings) as client:
        result = await client.call_tool(
            "fetch_and_prune_html", {"sources": [url], "question": "When does the ferry leave?"}
        )
    assert "at nine every morning" in text_of(result)


@pytest.mark.anyio
async def test_what_sheets_hide_that_only_the_browser_fetched_or_scripts_set_is_not_read(
    chromium: Path,
) -> None:
    hidden = "".join(f"<p class={name}>The ferry leaves at {name} PWNED.</p>" for name in "abdef")
    fill = f"""{FILL} '{hidden}<p class=c>The ferry leaves at nine.</p>';
        document.getElementById('s').sheet.insertRule('.d {{ visibility: hidden }}');
        const sheet = new CSSStyleSheet(); sheet.replaceSync('.e {{ opacity: 0 }}');
        document.adoptedStyleSheets = [sheet];"""
    links = "<link rel=stylesheet href=/s.css><link rel=stylesheet media=print href=/p.css>"
    own = "<style id=s></style><style media=screen>.f { display: none }</style>"
    pages = {
        "/s.css": Reply(
            b".a { display: none } .b { color: white } .c::after { content: '</style>' }",
            kind="text/css",
        ),
        "/p.css": Reply(b".c { display: none }", kind="text/css"),
        "/ferry": Reply(f"{SHELL}{links}{own}<script>{fill}</script>".encode()),
    }
    async with (
        open_site(pages) as site,
        rendering(chromium, seconds=60.0) as fetcher,
    ):
        text = read_document(await fetcher.fetch(site.url("/ferry"))).text
    assert "The ferry leaves at nine." in text
    assert "PWNED" not in text


@pytest.mark.anyio
async def test_a_browser_that_does_not_start_is_said_with_what_to_do(tmp_path: Path) -> None:
    need("browser")
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\necho no display >&2\nexit 1\n")
    broken.chmod(0o755)
    async with (
        open_site({"/p": shell(f"{FILL} {list(WORDS)}.join('')")}) as site,
        rendering(broken) as fetcher,
    ):
        with pytest.raises(NeedsBrowser, match="could not render") as caught:
            await fetcher.fetch(site.url("/p"))
    assert "WINNOW_BROWSER" in caught.value.hint


@pytest.mark.anyio
async def test_without_a_browser_a_shell_says_what_it_shows_and_how_to_have_it_rendered() -> None:
    async with open_site({"/p": shell("1")}) as site, open_fetcher(LOCAL, pages=None) as fetcher:
        with pytest.raises(NeedsBrowser, match="needs JavaScript") as caught:
            await fetcher.fetch(site.url("/p"))
    assert "it shows nothing" in caught.value.what
    assert "extra browser (winnow doctor)" in caught.value.hint
    assert "WINNOW_BROWSER=auto" in caught.value.hint


def test_a_browser_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    assert find_browser("none") is None
    need("browser")
    with pytest.raises(UsageError, match="does not exist"):
        find_browser(str(tmp_path / "chromium"))


INSIDE = """
  const go = f => { try { const r = f(); if (r && r.catch) r.catch(() => 0); } catch (e) {} };
  const out = text => fetch('/exfil?' + text);
  const put = (tag, facts) => document.head.append(Object.assign(document.createElement(tag), facts));
  const read = path => go(() => fetch(path).then(r => r.text()).then(out));
  read('/admin/fetch');
  read('/moved');
  go(() => fetch('/admin/post', {method: 'POST', body: 'x'}).then(r => r.text()).then(out));
  go(() => { const x = new XMLHttpRequest(); x.open('GET', '/admin/xhr');
    x.onload = () => out(x.responseText); x.send(); });
  go(() => import('/admin/module.js'));
  go(() => put('script', {src: '/admin/script.js'}));
  go(() => put('link', {rel: 'stylesheet', href: '/admin/s.css'}));
  for (let n = 0; n < 8; n++) setTimeout(() => read('/admin/late' + n), 90 * n);
  setTimeout(() => { location.href = '/admin/page'; }, 900);
  document.getElementById('root').innerHTML = '<p>Boats leave at nine every morning of the year.</p>';"""
"""Ways of a page's scripts to read what its own site has."""


@pytest.mark.anyio
@pytest.mark.parametrize("turns", [1, 2, 4], ids=["second", "third", "fifth"])
@pytest.mark.parametrize("came_from", ["a proxy", "this machine"])
async def test_a_page_whose_name_later_leads_elsewhere_reads_nothing_there(
    chromium: Path, turns: int, came_from: str
) -> None:
    """DNS rebinding: the name is public, or one address of this machine, at first, and then a
    private site's."""
    first = "93.184.215.14" if came_from == "a proxy" else "127.0.0.1"
    asked = 0

    async def resolve(_host: str, _port: int) -> list[str]:
        nonlocal asked
        asked += 1
        return [first] if asked <= turns else ["127.0.0.2"]

    moved = Reply(b"", 302, {"Location": "/admin/moved"})
    secrets = {
        f"/admin/{name}": Reply(b"SECRET")
        for name in ("fetch", "post", "xhr", "page", "moved", "late0")
    }
    async with (
        open_site({"/p": shell(INSIDE), "/moved": moved}) as site,
        open_site(secrets) as shown,
        open_proxy(site) as middle,
        serving(shown.serve, host="127.0.0.2", port=site.port),
    ):
        proxied = replace(LOCAL, proxy=parse_proxy(f"http://127.0.0.1:{middle.port}"))
        limits = proxied if came_from == "a proxy" else LOCAL
        async with open_fetcher(
            limits, pages=None, resolve=resolve, browser=Browser(chromium, SECONDS)
        ) as fetcher:
            page = await fetcher.fetch(f"http://boats.winnow-site.org:{site.port}/p")
    assert RENDERED in page.notes
    assert shown.asked == []
    assert not any("SECRET" in path for path in site.paths)
    assert (
        came_from == "a proxy" or "/admin/fetch" in site.paths
    )  # pinned to where it came from, it asks there


@pytest.mark.anyio
@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f::1", "8.8.8.8", "1.1.1.1", "151.101.1.69"]
)
async def test_the_site_of_a_public_page_is_asked_at_that_address_whatever_is_open_inside(
    address: str,
) -> None:
    inside = tuple(map(ip_network, ("10.0.0.0/8", "192.168.0.0/16")))
    async with open_site({"/p": Reply()}) as site, open_proxy(site) as middle:
        proxy = parse_proxy(f"http://127.0.0.1:{middle.port}")
        limits = FetchLimits(allow_loopback=True, allowed_networks=inside, proxy=proxy)
        async with pinned_client(address, limits, None) as client:
            for host in ("boats.winnow-site.org", "localhost", "intranet.winnow-site.org"):
                assert (await client.get(f"http://{host}/p")).status_code == 200
            for target in (
                "http://127.0.0.1/",
                "http://10.1.2.3/",
                "http://[::1]/",
                "http://192.168.1.1/",
            ):
                with pytest.raises(AddressRefused):
                    await client.get(target)
    assert {place.rpartition(":")[0].strip("[]") for place in middle.asked} == {address}
