"""What fetching may cost and whom it may ask: one value that settings fill and every step reads.

Not for: the rules themselves (`pipeline/fetch/address.py`, `pipeline/fetch/exchange.py`).
"""

from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from pipeline.fetch.handles import KEEP_SECONDS
from pipeline.fetch.proxy import Proxy

USER_AGENT: Final = "Winnow/0.1 (+https://github.com/winnow-mcp/winnow)"

# Ports of other protocols, where an HTTP request could be taken for a command (the Fetch standard keeps such a list):
# mail, file transfer, remote shells, directories, name and print services, chat; then stores that speak in lines
# (Redis, Memcached, databases, Docker), which the standard leaves out and internal networks are full of.
_OTHER_PROTOCOLS: Final = (
    *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109),
    *(110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530),
    *(531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190),
    *(5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
)
_STORES: Final = (1433, 1521, 2375, 2376, 2379, 3306, 5432, 6379, 9042, 11211, 27017)
BLOCKED_PORTS: Final = frozenset((*_OTHER_PROTOCOLS, *_STORES))


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Caps, deadlines and permissions of one fetcher."""

    max_bytes: int = 15_000_000
    """Of a body on the wire."""
    max_unpacked: int = 30_000_000
    """Of a body after decompression."""
    total_seconds: float = 12.0
    """From the call to the last byte received: waiting for a place, redirects, robots.txt and the retry included."""
    step_seconds: float = 4.0
    """For one connection, for robots.txt, and for a wait that a busy server asks for."""
    max_redirects: int = 5
    per_host: int = 6
    """Requests to one host and port at a time, and connections kept to it; browsers use six."""
    overall: int = 16
    """Requests at a time."""
    allow_loopback: bool = False
    """Whether 127.0.0.0/8 and ::1 may be asked: for tests, and for services on one's own machine."""
    allowed_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Private networks that may be asked; metadata addresses stay refused."""
    nat64: tuple[IPv6Network, ...] = ()
    """Prefixes of the network's IPv4 translator (RFC 6052), 64:ff9b::/96 or its own: an address in one is judged by the
    IPv4 address that it carries. None by default, and 64:ff9b::/96 is then refused like any IPv4 inside IPv6."""
    proxy: Proxy | None = None
    """Through which public addresses are asked; loopback and `allowed_networks` are asked directly."""
    respect_robots: bool = True
    user_agent: str = USER_AGENT
    blocked_ports: frozenset[int] = BLOCKED_PORTS
    retry: bool = True
    """Whether a failed connection, 502, 503 or 504 is tried once more."""
    fresh_seconds: float = 600.0
    """How long a page without a word about its age is served from the cache unasked."""
    keep_seconds: float = KEEP_SECONDS
    """How long a page stays in the cache, to be revalidated or named by its handle."""

    def public_only(self) -> "FetchLimits":
        """Return these limits without what an operator allows beyond public addresses."""
        return replace(self, allow_loopback=False, allowed_networks=())
