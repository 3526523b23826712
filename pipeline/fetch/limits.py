"""What fetching may cost and whom it may ask: one value that settings fill and every step reads.

Not for: the rules themselves (`pipeline/fetch/address.py`, `pipeline/fetch/exchange.py`).
"""

from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network

from pipeline.fetch.cookies import Cookies
from pipeline.fetch.page_source import Plan, known_sites
from pipeline.fetch.proxy import Proxy
from readers.converted import MAX_UNPACKED


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Caps, deadlines and permissions of one fetcher."""

    max_bytes: int = MAX_UNPACKED
    """Of a body, on the wire and after decompression."""
    total_seconds: float = 12.0
    """From the call to the last byte received: waiting for a place, redirects, robots.txt and the
    retry included."""
    step_seconds: float = 4.0
    """For one connection, for robots.txt, for a wait that a busy server asks for, and for another
    process of ours that fetches the same page."""
    max_redirects: int = 20
    """As many as browsers follow: logins and publishers lead through a dozen addresses."""
    per_host: int = 6
    """Requests to one host at a time, and idle connections kept to one site; browsers use six."""
    overall: int = 16
    allow_loopback: bool = False
    """Whether 127.0.0.0/8 and ::1 may be asked: for tests, and for services on one's own
    machine."""
    allowed_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Private networks that may be asked; metadata addresses stay refused."""
    nat64: tuple[IPv6Network, ...] = ()
    """Prefixes of the network's IPv4 translator (RFC 6052), 64:ff9b::/96 or its own: an address in
    one is judged by the IPv4 address that it carries. None by default, and 64:ff9b::/96 is then
    refused like any IPv4 inside IPv6."""
    cookies: Cookies | None = None
    """One person's, sent for pages by their own rules; the store of pages must then be that
    person's too."""
    proxy: Proxy | None = None
    """Through which public addresses are asked; loopback and `allowed_networks` are asked
    directly."""
    respect_robots: bool = True
    retry: bool = True
    """Whether a failed connection, 502, 503 or 504 is tried once more."""
    retry_pause: tuple[float, float] = (0.1, 0.5)
    """Seconds before that, drawn between these two: many clients must not come back at once."""
    sites: tuple[Plan, ...] = field(default_factory=known_sites)
    """Sites that are read through their API."""
    fresh_seconds: float = 600.0
    """How long a page without a word about its age is served from the cache unasked."""
    was_led: bool = False
    """Whether what an operator allows is closed because a page from outside leads there."""

    def public_only(self) -> "FetchLimits":
        """Return these limits without what an operator allows beyond public addresses: itself where
        that is nothing."""
        if not (self.allow_loopback or self.allowed_networks):
            return self
        return replace(self, allow_loopback=False, allowed_networks=(), was_led=True)
