"""Ways to the web through another machine: HTTP proxies, asked by CONNECT for a tunnel
to a target.

What goes through the tunnel (TLS, HTTP) is the same as without one, so the proxy sees
host and port of a page and never its text. By default the proxy is given the address
that the guard checked, and resolves nothing. Given names (`Proxy.resolves`, for
networks whose own name server knows no public names), their addresses are unknown here:
the guard checks only the form of names, and the proxy itself must block private
networks. Not for: SOCKS, proxies that read pages on their way, and the environment's
`HTTP_PROXY`, which is never read.
"""

import base64
import re
import ssl
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

import httpcore2

from errors import SourceError, UsageError

_PORTS: Final = {"http": 3128, "https": 443}
_PASSING_STATUS: Final = frozenset((500, 502, 503, 504))
"""Status codes of proxies for an unreachable site; retried like a refused
connection."""
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.\d (\d{3})\b")


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy. Shown and logged without its user name and password."""

    scheme: str
    """http, or https (TLS to the proxy)."""
    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    resolves: bool = False
    """Whether it is given names instead of checked addresses."""
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)
    """Which certificates an https proxy may show; None for the system's."""

    def __str__(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_proxy(text: str) -> Proxy:
    """Return the proxy that a setting such as `http://user:password@proxy.example:3128`
    names (percent-encoded).

    It is given names where the word `resolves` follows. Raises `UsageError`, whose
    message repeats nothing that could be a password."""
    address, _, word = text.strip().partition(" ")
    try:
        split = urlsplit(address)
        host, port = split.hostname, split.port
        path = f"{split.path.removeprefix('/')}{split.query}{split.fragment}"
        is_form = split.scheme in _PORTS and port != 0 and not path
        user, password = unquote(split.username or ""), unquote(split.password or "")
    except ValueError:
        host, is_form, user = None, False, ""
    if not host or not is_form or word.strip() not in {"", "resolves"} or ":" in user:
        # `from None`: the parser's own message repeats what it was given.
        raise UsageError(
            "The proxy's address is malformed.",
            hint="Use http://host:port or https://host:port, with user:password@ if it "
            "requires login, and the word resolves after it if the proxy alone can "
            "resolve names.",
        ) from None
    port = port or _PORTS[split.scheme]
    return Proxy(split.scheme, host, port, user, password, bool(word))


async def open_tunnel(
    stream: httpcore2.AsyncNetworkStream,
    proxy: Proxy,
    host: str,
    port: int,
    *,
    seconds: float,
) -> None:
    """Have `proxy`, to which `stream` is open, connect it to `host` (CONNECT, RFC 9110
    §9.3.6); what is written after that goes to the host.

    Raises `SourceError` where it refuses the tunnel or us, so that asking again
    would not help, `httpcore2.ConnectError` where the target is away by its word, or it
    broke off, or answers with more than 16 kB. Each step of it may take `seconds`."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.user or proxy.password:
        login = base64.b64encode(f"{proxy.user}:{proxy.password}".encode())
        lines.append(f"Proxy-Authorization: Basic {login.decode('ascii')}")
    try:
        await stream.write("\r\n".join([*lines, "", ""]).encode("ascii"), seconds)
        head = await _head(stream, proxy, seconds)
    except (httpcore2.NetworkError, httpcore2.TimeoutException) as e:
        raise httpcore2.ConnectError(f"the proxy {proxy} did not answer CONNECT") from e
    line = _STATUS_LINE.match(head)
    status = int(line[1]) if line is not None else 0
    if 200 <= status < 300 and head.endswith(b"\r\n\r\n"):
        return
    if status in _PASSING_STATUS:
        raise httpcore2.ConnectError(
            f"the proxy {proxy} answered {status} for {host} port {port}"
        )
    why = str(status) if status else "its response is not HTTP"
    if status == 407:
        why = "it rejected the user name or password (407)"
    raise SourceError(
        f"The proxy {proxy} does not connect to {host} port {port}: {why}.",
        source=host,
        hint="An operator can correct WINNOW_PROXY; another page may be reachable.",
    )


async def _head(
    stream: httpcore2.AsyncNetworkStream, proxy: Proxy, seconds: float
) -> bytes:
    """Return what the proxy sends up to the blank line that ends its head."""
    head = bytearray()
    while b"\r\n\r\n" not in head:
        piece = await stream.read(4096, seconds)
        head += piece
        if not piece or len(head) > 16_384:  # a proxy sends no more
            raise httpcore2.ConnectError(f"the proxy {proxy} did not answer CONNECT")
    return bytes(head)
