"""Address guard: prevents requests into internal networks (SSRF).

A URL is checked by its form, a name by every address that it resolves to, and the
connection then goes to an address that was checked (`pipeline/fetch/connect.py`):
between check and connection nothing is resolved again. Not for: robots.txt, which is a
courtesy and not a guard."""

import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2

from errors import AddressRefused, SourceError, narrow
from pipeline.fetch.limits import FetchLimits

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Takes a host name and a port; returns addresses in the order to be tried, or raises
`OSError` for an unknown name."""

# Beyond what `ipaddress` calls global, by registry: carrier NAT, protocol assignments,
# documentation, benchmarks, multicast and reserved space; and all of IPv6 but 2000::/3, less the
# ranges there that carry an IPv4 address inside (6to4, Teredo) or are set aside. Names are shown to
# the caller.
_REFUSED_NETWORKS: Final[tuple[tuple[str, IPv4Network | IPv6Network], ...]] = tuple(
    (kind, ip_network(network))
    for kind, networks in (
        ("loopback", "127.0.0.0/8 ::1/128"),
        ("unspecified", "0.0.0.0/8 ::/128"),
        ("private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7"),
        ("link-local", "169.254.0.0/16 fe80::/10"),
        ("carrier-grade NAT", "100.64.0.0/10"),
        ("multicast", "224.0.0.0/4 ff00::/8"),
        (
            "IPv4 inside IPv6",
            "::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 2002::/16 2001::/32 ::/96",
        ),
        (
            "reserved",
            "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24",
        ),
        (
            "reserved",
            "240.0.0.0/4 100::/64 2001::/23 2001:db8::/32 3fff::/20 5f00::/16 fec0::/10",
        ),
    )
    for network in networks.split()
)
_GLOBAL_IPV6: Final = ip_network("2000::/3")
_METADATA_ADDRESSES: Final = frozenset(
    (
        *map(IPv4Address, ("169.254.169.254", "169.254.170.2", "100.100.100.200")),
        *map(IPv4Address, ("192.0.0.192", "168.63.129.16")),
        *map(IPv6Address, ("fd00:ec2::254", "fd20:ce::254")),
    )
)
"""Services of clouds that hand out credentials; refused whatever else is allowed (one
has a public address)."""
_LOOPBACK_NAMES: Final = frozenset(
    ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")
)
_LONGEST_SCHEME: Final = 12
"""Characters of a scheme in messages."""
WEB_PORTS: Final = frozenset((80, 443))
"""The only ones that are asked of those below 1024, which belong to other protocols."""
BLOCKED_PORTS: Final = frozenset(
    (
        *(1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 3306, 3659, 4045, 4190),
        *(5060, 5061, 5432, 6000, 6379, 6566, *range(6665, 6670), 6679, 6697, 9042),
        *(10080, 11211, 27017),
    )
)
"""Further ports of other protocols, where an HTTP request could be taken for a command:
those that the Fetch standard blocks, and databases with line protocols (Redis,
Memcached, Docker and others), which internal networks are full of."""
_INNER_ENDINGS: Final = (
    ".local .internal .intranet .private .corp .home .lan .localdomain .home.arpa "
    ".consul .svc .onion .test .invalid .example"
)
"""Endings of names that mean something only inside a network (RFC 6761, 6762, 8375;
ICANN's `internal`; customs)."""
_HINT_PRIVATE: Final = (
    "Only public web addresses are fetched; an operator can allow "
    "a network with WINNOW_NETWORKS, this machine with "
    "WINNOW_NETWORKS=loopback."
)
_HINT_LED: Final = (
    "A public page or search result leads to this internal address; "
    "fetch the address itself if intended."
)


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that passed the check of its form."""

    url: httpx2.URL
    """Without fragment."""
    host: str
    """As it will be resolved: lower case, ASCII, without brackets."""
    port: int

    @property
    def origin(self) -> str:
        """Scheme, host and port in one."""
        return f"{self.url.scheme}://{self.host}:{self.port}"


def check_url(url: str, limits: FetchLimits) -> Target:
    """Return the parts of a web address; names are not resolved yet.

    Raises `AddressRefused`: a malformed address, one of more than 8192 characters,
    another scheme, a user name, a blocked port, or a host that is not a public name or
    address and that `limits` do not allow."""
    parsed = _parse(url)
    scheme = parsed.scheme.lower()
    if scheme not in {"http", "https"}:
        why = (
            f"its scheme {scheme[:_LONGEST_SCHEME]!r} is not http or https"
            if scheme
            else "it has no scheme"
        )
        raise _refused(url, why, "Use an http or https address.")
    if parsed.userinfo:
        raise _refused(
            url,
            "it carries a user name or password",
            "Remove the user name and password before the @.",
        )
    host = parsed.raw_host.decode("ascii", "replace").strip("[]").lower()
    if not host:
        raise _refused(
            url,
            "it names no host",
            "Give the whole address, such as https://example.org/page.",
        )
    port = (
        parsed.port if parsed.port is not None else (443 if scheme == "https" else 80)
    )
    is_web = port in WEB_PORTS or 1024 <= port < 65536
    if port in BLOCKED_PORTS or not is_web:
        raise _refused(
            url, f"the port {port} belongs to another protocol", "Use a web port."
        )
    _check_host(url, host, limits)
    return Target(parsed.copy_with(fragment=None), host, port)


def _parse(url: str) -> httpx2.URL:
    if len(url) > 8192:
        raise _refused(
            f"{url[:80]}…", "it is longer than 8192 characters", "Shorten it."
        )
    if any(character <= " " or character in "\x7f\\" for character in url.strip()):
        raise _refused(
            url,
            "it holds blanks, control characters or backslashes",
            "Percent-encode them.",
        )
    try:
        return httpx2.URL(url.strip())
    except (httpx2.InvalidURL, UnicodeError, ValueError) as e:
        raise _refused(url, "it is not a valid URL", "Check the address.") from e


def _check_host(url: str, host: str, limits: FetchLimits) -> None:
    """Raise `AddressRefused` for hosts that are numbers in disguise, and for what names
    this machine unless `limits` allow it.

    A name that must be resolved passes."""
    name = host.rstrip(".")
    address = literal(name)
    if address is not None:
        reason = refusal(address, limits)
        if reason:
            raise _refused(
                url, f"{name} is not a public address ({reason})", _hint(limits)
            )
        return
    if ":" in host or "%" in host or not name:
        raise _refused(url, "its host is not a valid name", "Check the address.")
    ending = name.rpartition(".")[2]
    if ending.isdecimal() or ending.startswith("0x"):
        # The system's resolver reads 2130706433, 0x7f.1 and 0177.0.0.1 as addresses; no real name
        # ends in a number.
        why = f"{narrow(name)!r} is an address in an unusual spelling"
        raise _refused(url, why, "Write it as four decimal numbers.")
    if (
        name in _LOOPBACK_NAMES or name.endswith(".localhost")
    ) and not limits.allow_loopback:
        raise _refused(url, f"{narrow(name)} is this machine", _hint(limits))


def check_name(host: str) -> None:
    """Refuse a name that can only lead inside a network: the check left where a proxy
    resolves names.

    Raises `AddressRefused`: it has no dot, or an ending that the public name system
    does not have. An IP address passes."""
    name = host.rstrip(".").lower()
    if literal(name) is None and (
        "." not in name or name.endswith(tuple(_INNER_ENDINGS.split()))
    ):
        raise AddressRefused(
            f"{narrow(host)} is not a public name.", source=host, hint=_HINT_PRIVATE
        )


def literal(name: str) -> Address | None:
    """Return the address that a host is written as, None for a name."""
    try:
        return ip_address(name)
    except ValueError:
        return None


def refusal(address: Address, limits: FetchLimits) -> str:
    """Return what kind of forbidden address this is, empty for one that may be asked.

    Cloud metadata is refused whatever `limits` allow."""
    bare = ip_address(address.packed)  # without a zone (`fe80::1%eth0`)
    if bare in _METADATA_ADDRESSES:
        return "cloud metadata"
    prefix = next((prefix for prefix in limits.nat64 if bare in prefix), None)
    if prefix is not None and isinstance(bare, IPv6Address):
        embedded = translated(bare, prefix)
        reason = refusal(embedded, limits)
        return f"{embedded} through the NAT64 translator: {reason}" if reason else ""
    opened = limits.allowed_networks
    if limits.allow_loopback:
        opened = (*opened, *(network for _, network in _REFUSED_NETWORKS[:2]))
    if any(bare in network for network in opened):
        return ""
    return _refused_kind(bare)


def _refused_kind(address: IPv4Address | IPv6Address) -> str:
    """Return what the refused network of an address is for, "" where none has it."""
    outside = address.version == 6 and address not in _GLOBAL_IPV6
    return next(
        (kind for kind, network in _REFUSED_NETWORKS if address in network),
        "reserved" if outside else "",
    )


def translated(address: IPv6Address, prefix: IPv6Network) -> IPv4Address:
    """Return the IPv4 address that a translator with `prefix` reads in `address` (RFC
    6052 §2.2)."""
    # Octet 8 is skipped: it is not part of the embedded address.
    octets = [index for index in range(prefix.prefixlen // 8, 16) if index != 8][:4]
    return IPv4Address(bytes(address.packed[index] for index in octets))


def is_inner(address: Address, limits: FetchLimits) -> bool:
    """Return whether an address is allowed as an exception only: loopback, or a network
    that an operator allowed."""
    return refusal(address, limits.public_only()) != ""


def names_inside(url: str) -> bool:
    """Return whether an address names a host on this machine or in its network by its
    form: a private number, a name without a dot, or one that only a network has.

    A malformed address, or one without a host, counts as inside."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
        check_name(host)
    except (AddressRefused, ValueError):
        return True
    written = literal(host)
    return written is not None and is_inner(written, FetchLimits())


_lookups: Final = threading.BoundedSemaphore(2 * FetchLimits().overall)
"""Threads that may wait for the system's resolver; a hanging name server holds one each
until the system gives up."""


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Return the system's addresses for `host`; a canceled call abandons its thread.

    Raises `OSError`: the name does not exist, or as many lookups as are allowed hang
    already. It waits as long as the system's resolver does."""
    return await anyio.to_thread.run_sync(
        _look_up, host, port, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
    )


def _look_up(host: str, port: int) -> list[str]:
    # Taken and given back by the thread itself: a caller that leaves does not end the lookup.
    if not _lookups.acquire(blocking=False):
        raise OSError("too many other lookups are waiting for the name server")
    try:
        answers = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
    finally:
        _lookups.release()
    return [str(sockaddr[0]) for *_, sockaddr in answers]


async def checked_addresses(
    host: str, port: int, limits: FetchLimits, resolve: Resolver
) -> list[str]:
    """Return the addresses of `host`, all of which may be asked.

    One forbidden address refuses the name (`AddressRefused`): an answer that mixes
    public and private ones is how rebinding looks. Raises `SourceError` where the
    name does not resolve or has no address."""
    written = literal(host.rstrip("."))
    try:
        texts = (
            [str(written)] if written is not None else list(await resolve(host, port))
        )
        addresses = list(
            dict.fromkeys(ip_address(text.partition("%")[0]) for text in texts)
        )
    except (OSError, UnicodeError, ValueError) as e:
        raise SourceError(
            f"The name {narrow(host)!r} cannot be resolved: {_why(e)}.",
            source=host,
            hint="Check the spelling, or try later.",
        ) from e
    if not addresses:
        raise SourceError(
            f"The name {narrow(host)!r} has no address.",
            source=host,
            hint="Check the spelling.",
        )
    for address in addresses:
        reason = refusal(address, limits)
        if reason:
            raise AddressRefused(
                f"{narrow(host)} resolves to {address}, which is not a public address "
                f"({reason}).",
                source=host,
                hint=_hint(limits),
            )
    return [str(address) for address in addresses]


def _why(error: Exception) -> str:
    """Return why a name did not resolve; Python's message for an invalid name would
    repeat it."""
    return str(error) if isinstance(error, OSError) else "it is not a valid name"


def _hint(limits: FetchLimits) -> str:
    return _HINT_LED if limits.was_led else _HINT_PRIVATE


def _refused(url: str, why: str, hint: str) -> AddressRefused:
    return AddressRefused(f"{url} is not fetched: {why}.", source=url, hint=hint)
