"""Ways to the web through another machine: HTTP proxies (CONNECT) and SOCKS5, each
asked for a tunnel to a target.

What goes through the tunnel (TLS, HTTP) is the same as without one, so the proxy sees
host and port of a page and never its text. By default the proxy is given the address
that the guard checked, and resolves nothing. Given names (`Proxy.resolves`, for
networks whose own name server knows no public names), their addresses are unknown here:
the guard checks only the form of names, and the proxy itself must block private
networks. Not for: proxies that read pages on their way; the environment's `HTTP_PROXY`,
which is never read.
"""

import base64
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import httpcore2

from errors import SourceUnavailable, UsageError

_PORTS: Final = {"http": 3128, "https": 443, "socks5": 1080, "socks5h": 1080}
_PASSING_STATUS: Final = frozenset((500, 502, 503, 504))
"""Status codes of proxies for an unreachable site; retried like a refused
connection."""
_SOCKS_REPLIES: Final = (
    *(
        "",
        "general failure",
        "not allowed by its rules",
        "network unreachable",
        "host unreachable",
    ),
    *(
        "connection refused",
        "time to live expired",
        "command not supported",
        "address type not supported",
    ),
)
_SOCKS_PASSING: Final = frozenset((1, 3, 4, 5, 6))
_PROXY_HINT: Final = (
    "An operator can correct WINNOW_PROXY; another page may be reachable."
)


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy. Shown and logged without its user name and password."""

    scheme: str
    """http, https (TLS to the proxy) or socks5."""
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

    It is given names where the word `resolves` follows, which `socks5h` means too.
    Raises `UsageError`, whose message repeats nothing that could be a password."""
    hint = (
        "Use http://host:port, https://host:port or socks5://host:port, with "
        "user:password@ if it requires login, and the word resolves after it if the "
        "proxy alone can resolve names."
    )
    address, _, word = text.strip().partition(" ")
    if word.strip() not in ("", "resolves"):
        raise UsageError("The proxy's address is followed by other words.", hint=hint)
    resolves = bool(word)
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError as e:
        # `from None`: the parser's own message repeats what it was given.
        raise UsageError("The proxy's address is malformed.", hint=hint) from (
            e if "@" not in text else None
        )
    if parts.scheme not in _PORTS:
        # A longer one, or one with other signs, may be a password.
        is_word = parts.scheme.isalnum() and len(parts.scheme) < 12
        shown = parts.scheme if is_word else ""
        raise UsageError(f"The proxy's scheme {shown!r} is not supported.", hint=hint)
    further = parts.path.removeprefix("/"), parts.query, parts.fragment
    if not host or port == 0 or any(further):
        raise UsageError(
            "The proxy's address must be a scheme, a host and a port, and nothing else.",
            hint=hint,
        )
    user, password = _login(parts)
    port = port or _PORTS[parts.scheme]
    if parts.scheme == "socks5h":
        return Proxy("socks5", host, port, user, password, resolves=True)
    return Proxy(parts.scheme, host, port, user, password, resolves)


def _login(parts: SplitResult) -> tuple[str, str]:
    """Return user name and password of a proxy's address, both empty without; raises
    `UsageError` for one that SOCKS5 or HTTP cannot send."""
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    longest = max(len(user.encode()), len(password.encode()))
    if longest > 255 or ":" in user:  # one byte holds the length in SOCKS5
        raise UsageError(
            "The proxy's user name or password is longer than 255 bytes, "
            "or the user name contains a colon."
        )
    return user, password


async def open_tunnel(
    stream: httpcore2.AsyncNetworkStream,
    proxy: Proxy,
    host: str,
    port: int,
    *,
    seconds: float,
) -> None:
    """Have `proxy`, to which `stream` is open, connect it to `host`; what is written
    after that goes to the host.

    Raises `SourceUnavailable` where it refuses the tunnel or us, so that asking again
    would not help, `httpcore2.ConnectError` where the target is away by its word, or it
    broke off. Each step of it may take `seconds`."""
    try:
        speak = _socks if proxy.scheme == "socks5" else _connect
        await speak(stream, proxy, host, port, seconds)
    except httpcore2.ConnectError:
        raise
    except (httpcore2.NetworkError, httpcore2.TimeoutException) as e:
        raise httpcore2.ConnectError(f"the proxy {proxy} closed the connection") from e


async def _connect(
    stream: httpcore2.AsyncNetworkStream,
    proxy: Proxy,
    host: str,
    port: int,
    seconds: float,
) -> None:
    """Send HTTP's CONNECT (RFC 9110 §9.3.6) and wait for the answer.

    Raises `SourceUnavailable` where the proxy refuses, `httpcore2.ConnectError` where
    it does not answer, answers with more than 16 kB, or says that the target is away
    (500, 502, 503, 504)."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.user or proxy.password:
        token = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode(
            "ascii"
        )
        lines.append(f"Proxy-Authorization: Basic {token}")
    await stream.write("\r\n".join([*lines, "", ""]).encode("ascii"), seconds)
    head = await _head(stream, proxy, seconds)
    status = _status(head)
    if 200 <= status < 300 and head.endswith(b"\r\n\r\n"):
        return
    if status in _PASSING_STATUS:
        raise httpcore2.ConnectError(
            f"the proxy {proxy} answered {status} for {host} port {port}"
        )
    why = str(status) if status else "its response is not HTTP"
    if status == 407:
        why = "it rejected the user name or password (407)"
    elif status in {403, 405} and port != 443:
        why = f"{status}; many proxies tunnel to port 443 only, so an https address may work"
    raise _unwilling(proxy, host, port, why)


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


def _status(head: bytes) -> int:
    """Return the status code of an answer, 0 for what is not HTTP."""
    version, _, rest = head.partition(b" ")
    code = rest[:3]
    return int(code) if version.startswith(b"HTTP/1.") and code.isdigit() else 0


async def _socks(
    stream: httpcore2.AsyncNetworkStream,
    proxy: Proxy,
    host: str,
    port: int,
    seconds: float,
) -> None:
    """Send SOCKS5's CONNECT (RFC 1928), with a user name and password where `proxy` has
    them (RFC 1929), and wait for the answer.

    Raises `SourceUnavailable` where the proxy refuses, `httpcore2.ConnectError` where
    it breaks off or says that the target is away."""
    with_password = bool(proxy.user or proxy.password)
    await stream.write(
        b"\x05\x02\x00\x02" if with_password else b"\x05\x01\x00", seconds
    )
    version, method = await _exactly(stream, proxy, 2, seconds)
    if version != 5 or method not in ({0, 2} if with_password else {0}):
        why = (
            "it asks for a user name and password"
            if version == 5
            else "its response is not SOCKS5"
        )
        raise _unwilling(proxy, host, port, why)
    if method == 2:
        user, password = proxy.user.encode(), proxy.password.encode()
        await stream.write(
            bytes((1, len(user))) + user + bytes((len(password),)) + password, seconds
        )
        if (await _exactly(stream, proxy, 2, seconds))[1] != 0:
            raise _unwilling(
                proxy, host, port, "it asks for another user name or password"
            )
    await stream.write(
        b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2, "big"), seconds
    )
    _, reply, _, kind = await _exactly(stream, proxy, 4, seconds)
    if reply != 0:
        raise _socks_failure(proxy, host, port, reply)
    # The proxy's own address, which is not needed.
    length = {1: 4, 4: 16}.get(kind) or (await _exactly(stream, proxy, 1, seconds))[0]
    await _exactly(stream, proxy, length + 2, seconds)


def _socks_failure(proxy: Proxy, host: str, port: int, reply: int) -> Exception:
    """Return the error for a reply code of SOCKS5 (RFC 1928 §6) other than 0."""
    known = reply < len(_SOCKS_REPLIES)
    what = _SOCKS_REPLIES[reply] if known else f"reply {reply}"
    if reply in _SOCKS_PASSING:
        return httpcore2.ConnectError(f"the proxy {proxy} says: {what}")
    return _unwilling(proxy, host, port, what)


def _socks_address(host: str) -> bytes:
    """Return a host as SOCKS5 addresses it: an IP address, or a name of at most 255
    bytes."""
    try:
        address = ip_address(host)
    except ValueError:
        name = host.encode("ascii")[:255]
        return bytes((3, len(name))) + name
    return bytes((1 if address.version == 4 else 4,)) + address.packed


async def _exactly(
    stream: httpcore2.AsyncNetworkStream, proxy: Proxy, count: int, seconds: float
) -> bytes:
    """Return the next `count` bytes of the proxy; `httpcore2.ConnectError` if it closes
    the connection before."""
    got = b""
    while len(got) < count:
        piece = await stream.read(count - len(got), seconds)
        if not piece:
            raise httpcore2.ConnectError(f"the proxy {proxy} closed the connection")
        got += piece
    return got


def _unwilling(proxy: Proxy, host: str, port: int, why: str) -> SourceUnavailable:
    return SourceUnavailable(
        f"The proxy {proxy} does not connect to {host} port {port}: {why}.",
        source=host,
        hint=_PROXY_HINT,
    )
