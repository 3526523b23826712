"""The part of the attack set that asks for pages: addresses inside in every spelling,
names that change, pages and search results that lead inside, and what is meant for one
server given to another.

Not for: words of pages (`bench/attack_words.py`), files (`bench/attack_files.py`).
"""

import contextlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
from mcp import Client

from bench.loopback import Answer, serving
from errors import SourceError, WinnowError
from extra import lacking
from pipeline.fetch.address import check_url, checked_addresses
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.connect import pinned_client
from pipeline.fetch.cookies import Cookies, Jar
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.render import Browser
from server.app import build_server
from server.clients import service_client
from server.settings import read_settings
from tests.support.inward import FORMS, TARGETS, both

INNER: Final = (
    *(
        "127.0.0.1",
        "10.1.2.3",
        "172.16.5.4",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104  an address to refuse
    ),
    *(
        "::1",
        "::ffff:10.0.0.1",
        "fd00::1",
        "fe80::1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "224.0.0.1",
        "168.63.129.16",
    ),
)


def _hosts(rng: random.Random, address: str) -> list[str]:
    """Spellings of an address."""
    if ":" in address:
        return [f"[{address}]", f"[{address.upper()}]"]
    octets = list(map(int, address.split(".")))
    number = int.from_bytes(bytes(octets))
    forms = [
        address,
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(hex(one) for one in octets),
        f"{address}.",
    ]
    forms += [
        ".".join(f"0{one:o}" for one in octets),
        f"{octets[0]}.{number % 2**24}",
        f"[::ffff:{address}]",
    ]
    wide = "".join(chr(0xFF10 + int(one)) if one.isdigit() else "。" for one in address)
    return [
        *forms,
        wide,
        f"user@{address}",
        f"{address}%00.example",
        f"x.example@{address}",
        rng.choice(forms),
    ]


def urls(rng: random.Random, count: int) -> Iterator[str]:
    """Addresses inside, in every spelling: refused before a connection, by form or by
    what they resolve to."""
    limits = FetchLimits()
    for _ in range(count):
        address = rng.choice(INNER)
        host = rng.choice(_hosts(rng, address))
        scheme = rng.choice(("http", "https", "HTTP", "hTTp"))
        port = rng.choice(("", ":80", ":8080", ":443"))
        url = f"{scheme}://{host}{port}{rng.choice(('/', '/a?b', '', '/%2e%2e/'))}"
        yield "" if _is_refused(url, address, limits) else url


def _is_refused(url: str, address: str, limits: FetchLimits) -> bool:
    async def resolve(_host: str, _port: int) -> list[str]:
        return [address]

    async def checked() -> None:
        target = check_url(url, limits)
        await checked_addresses(target.host, target.port, limits, resolve)

    try:
        anyio.run(checked)
    except SourceError:
        return True
    return False


def rebinding(rng: random.Random, count: int) -> Iterator[str]:
    """A public page's own site, whose name leads inside later: asked at the page's
    address alone."""
    inside = FetchLimits(allow_loopback=True)
    for _ in range(count):
        public = f"{rng.choice((1, 8, 93, 151))}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"

        async def asked(public: str = public) -> str:
            async with pinned_client(public, inside, None) as client:
                backend = client._transport._pool._network_backend  # type: ignore[attr-defined]  # where it would connect
                found = await checked_addresses(
                    "a.example", 80, backend._limits, backend._resolve
                )
                with contextlib.suppress(WinnowError):
                    found += await checked_addresses(
                        rng.choice(INNER), 80, backend._limits, backend._resolve
                    )
                return "" if found == [public] else f"{public}: {found}"

        yield anyio.run(asked)


def led(rng: random.Random, count: int) -> Iterator[str]:
    """Pages of a public address that lead inside, where an operator opened it."""
    tries = [(form, target) for target in TARGETS for form in FORMS]

    async def tried() -> list[str]:
        async with both() as sites:
            return [
                f"{form} to {target}" if await sites.led(form, target) else ""
                for form, target in rng.sample(tries, min(count, len(tries)))
            ]

    yield from anyio.run(tried)


_SCRIPTS: Final = (
    "fetch(TO)",
    "fetch(TO, {mode: 'no-cors', credentials: 'include'})",
    "fetch(TO, {method: 'POST', body: 'x'})",
    "{ const x = new XMLHttpRequest(); x.open('GET', TO); x.send() }",
    "navigator.sendBeacon(TO, 'x')",
    "new WebSocket(TO.replace('http', 'ws'))",
    "new EventSource(TO)",
    "new Image().src = TO",
    "import(TO)",
    "document.body.append(Object.assign(document.createElement('script'), {src: TO}))",
    "document.body.append(Object.assign(document.createElement('iframe'), {src: TO}))",
    "location = TO",
    "open(TO)",
    "new Worker(URL.createObjectURL(new Blob([`fetch('${TO}')`])))",
    "new SharedWorker(URL.createObjectURL(new Blob([`fetch('${TO}')`])))",
    "navigator.serviceWorker.register(TO)",
    "new RTCPeerConnection({iceServers: [{urls: TO.replace('http://', 'stun:')}]})"
    ".createOffer({offerToReceiveAudio: 1})",
    "new WebTransport(TO.replace('http:', 'https:'))",
    "{ const a = Object.assign(document.createElement('a'), {href: '#', ping: TO}); document.body.append(a);"
    " a.click() }",
    *(
        f"document.body.insertAdjacentHTML('beforeend', `{markup}`)"
        for markup in (
            "<link rel=stylesheet href=${TO}><style>@import url(${TO});"
            "@font-face{font-family:x;src:url(${TO})} p{font-family:x;background:url(${TO})}</style><p>x",
            "<link rel=preload as=fetch href=${TO}><link rel=prefetch href=${TO}><link rel=icon href=${TO}>"
            "<link rel=preconnect href=${TO}><link rel=modulepreload href=${TO}><link rel=manifest href=${TO}>",
            "<video src=${TO} poster=${TO} autoplay></video><audio src=${TO} autoplay></audio>"
            "<embed src=${TO}><object data=${TO}></object><input type=image src=${TO}>",
            "<img srcset='${TO} 1x'><picture><source srcset=${TO}><img></picture><table background=${TO}>",
            "<svg><image href=${TO} /><use href='${TO}#a'/><feImage href=${TO} /><script href=${TO} /></svg>",
            "<iframe srcdoc='<img src=${TO}>'></iframe><iframe src='data:text/html,<img src=${TO}>'></iframe>",
            "<meta http-equiv=refresh content='0;url=${TO}'>",
        )
    ),
    "{ const f = Object.assign(document.createElement('form'), {action: TO}); document.body.append(f); f.submit() }",
    "document.head.append(Object.assign(document.createElement('script'), {type: 'speculationrules',"
    " textContent: JSON.stringify({prerender: [{source: 'list', urls: [TO]}]})}))",
    "history.pushState({}, '', '/x'); fetch(new Request(TO, {keepalive: true}))",
)
"""What a page's script may try; `TO` is an address inside."""


def rendered(rng: random.Random, count: int) -> Iterator[str]:
    """Pages whose scripts ask for what is inside, in a real Chromium; nothing where
    there is none, or the extra `browser` is missing."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    tries = [(script, target) for target in TARGETS[:2] for script in _SCRIPTS]
    if chromium is None or lacking("browser"):
        return

    async def tried() -> list[str]:
        async with both(Browser(Path(chromium))) as sites:
            return [
                f"{script} to {target}" if await sites.scripted(script, target) else ""
                for script, target in rng.sample(tries, min(count, len(tries)))
            ]

    yield from anyio.run(tried)


def _rows(rng: random.Random, port: int, secret: Path) -> list[dict[str, object]]:
    """Return hits that lead where no one may go, or are not hits."""
    address = rng.choice(("127.0.0.1", "10.1.2.3", "169.254.169.254"))
    spelled = [host for host in _hosts(rng, address) if rng.random() < 0.5]
    places = [f"http://{host}:{port}/admin" for host in spelled]
    places += [
        secret.as_uri(),
        str(secret),
        f"file://localhost{secret}",
        "javascript:alert(1)",
    ]
    places += [
        "data:text/html,PWNED",
        f"ftp://127.0.0.1:{port}/admin",
        f"//127.0.0.1:{port}/admin",
    ]
    places += [
        "winnow://status",
        "site:http://127.0.0.1/",
        "http://[::1]/admin",
        "http://" + "h" * 9000,
    ]
    titles: tuple[object, ...] = (
        "Harbour light",
        "x" * 100_000,
        {"a": []},
        None,
        7,
        ["\ud800"],
    )
    return [
        {"title": rng.choice(titles), "url": place, "content": rng.choice(titles)}
        for place in rng.sample(places, 8)
    ]


def searched(rng: random.Random, count: int) -> Iterator[str]:
    """Answers of a search service that lead inside, to files, or that are none at
    all."""
    asked: list[str] = []
    said: list[bytes] = []

    def answer(path: str) -> Answer:
        if path.startswith("/search"):
            return Answer(said[0], "application/json")
        asked.append(path)
        return Answer(b"<p>The harbour light was built in PWNED.</p>")

    async def tried(folder: Path) -> list[str]:
        found: list[str] = []
        secret = folder / "secret.md"
        secret.write_text("The harbour light was built in PWNED.")
        with serving(answer) as port:
            given = {
                "searxng": f"http://127.0.0.1:{port}",
                "cache": str(folder / "cache"),
            }
            settings = read_settings({**given, "embedder": "none", "seconds": "20"}, {})
            async with Client(build_server(settings)) as client:
                for number in range(count):
                    rows = _rows(rng, port, secret)
                    whole = json.dumps({"results": rows}).encode()
                    said[:] = [rng.choice((whole, whole, whole, *_broken(whole)))]
                    asked.clear()
                    tool = rng.choice(("search_web", "research"))
                    result = await client.call_tool(
                        tool, {"question": f"harbour light {number}"}
                    )
                    text = "".join(getattr(part, "text", "") for part in result.content)
                    bad = f"asked {asked}" if asked else "PWNED" * ("PWNED." in text)
                    found.append(bad or "a traceback" * ("Traceback" in text))
        return found

    with tempfile.TemporaryDirectory() as place:
        yield from anyio.run(tried, Path(place))


def _broken(whole: bytes) -> tuple[bytes, ...]:
    deep = b'{"results": ' + b"[" * 200_000
    return (
        whole[:-20],
        b"[]",
        b"<html>",
        deep,
        b"\xff\xfe",
        b'{"results": {"a": 1}}',
        b"null",
    )


_PROXIES: Final = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY")
_COOKIES: Final = (
    "# Netscape HTTP Cookie File\n.bank.example\tTRUE\t/\tTRUE\t4000000000\tsid\tPWNED\n"
    "only.example\tFALSE\t/in\tFALSE\t4000000000\tone\tPWNED\n"
    "127.0.0.1\tFALSE\t/\tTRUE\t4000000000\tsid\tPWNED\n"
)
_STRANGE: Final = (
    "https://bank.example.evil.example/",
    "https://evilbank.example/",
    "http://bank.example/",
    "https://bank.example@evil.example/",
    "https://evil.example/?bank.example",
    "https://example/",
    "http://only.example/",
    "http://only.example/inner",
    "http://a.only.example/in",
    "http://127.0.0.1/",
    "https://a.127.0.0.1/",
    "https://bank.example./",
    "https://bank.exampl/",
    "https://xn--bank-.example/",
    "https://evil.example/bank.example/",
    "http://www.bank.example/",
)
"""Addresses to which none of the cookies above belongs."""


def personal(rng: random.Random, count: int) -> Iterator[str]:
    """What is a person's or meant for this machine, given to a proxy or another server:
    proxies and passwords of the environment, cookies."""
    with tempfile.TemporaryDirectory() as place:
        jar, netrc = Path(place, "cookies.txt"), Path(place, "netrc")
        jar.write_text(_COOKIES)
        jar.chmod(0o600)
        netrc.write_text("machine 127.0.0.1 login anna password PWNED\n")
        cookies = Cookies(jar)
        for number in range(count):
            match number % 3:
                case 0:
                    url = _STRANGE[(number // 3) % len(_STRANGE)]
                    sent = Jar(cookies).headers(url)
                    yield f"cookies for {url}" if sent else ""
                case 1:
                    yield anyio.run(_by_proxy, rng.choice(_PROXIES))
                case _:
                    yield anyio.run(_by_netrc, netrc)


async def _by_proxy(name: str) -> str:
    taken: list[str] = []

    def middle(path: str) -> Answer:
        taken.append(path)
        return Answer(b"PWNED")

    with serving(middle) as port, serving(lambda _: Answer(b"ours")) as own:
        before = os.environ.get(name)
        os.environ[name] = f"http://127.0.0.1:{port}"
        try:
            async with service_client() as client:
                said = await client.get(f"http://127.0.0.1:{own}/v1/embeddings")
        finally:
            os.environ.pop(name) if before is None else os.environ.__setitem__(
                name, before
            )
    return f"{name} took {taken}" if taken or said.content != b"ours" else ""


async def _by_netrc(path: Path) -> str:
    before = os.environ.get("NETRC")
    os.environ["NETRC"] = str(path)
    heads: list[str] = []

    async def keep(reader: anyio.abc.SocketStream) -> None:
        heads.append((await reader.receive()).decode())
        await reader.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
        )
        await reader.aclose()

    try:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  a socket's, no query
            async with anyio.create_task_group() as group:
                group.start_soon(listener.serve, keep)
                limits = FetchLimits(
                    allow_loopback=True, retry=False, respect_robots=False
                )
                async with (
                    open_fetcher(limits, pages=None) as fetcher,
                    service_client() as client,
                ):
                    with contextlib.suppress(SourceError):
                        await fetcher.fetch(f"http://127.0.0.1:{port}/")
                    await client.get(f"http://127.0.0.1:{port}/")
                group.cancel_scope.cancel()
    finally:
        os.environ.pop("NETRC") if before is None else os.environ.__setitem__(
            "NETRC", before
        )
    return (
        "a password of the environment was sent"
        if "uthorization" in "".join(heads)
        else ""
    )
