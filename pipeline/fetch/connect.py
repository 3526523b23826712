"""Connections that go where the guard looked: a name is resolved once, checked, and the checked address is dialled.

httpx2 keeps thinking in names, so that `Host`, TLS names and the pool of open connections stay right. Not for: which
addresses are allowed (`pipeline/fetch/address.py`).
"""

import ssl
from collections.abc import Iterable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpcore2
import httpx2

from pipeline.fetch.address import Resolver, checked_addresses
from pipeline.fetch.limits import FetchLimits

_ACCEPT: Final = (
    "text/html,application/xhtml+xml,application/pdf;q=0.9,text/markdown;q=0.9,text/plain;q=0.8,"
    "application/json;q=0.8,application/xml;q=0.8,*/*;q=0.5"
)
_CONNECT_SECONDS: Final = 4.0
"""For one address; a name with several tries the next after this."""
_IDLE_SECONDS: Final = 15.0


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens TCP connections to checked addresses only."""

    def __init__(self, limits: FetchLimits, resolve: Resolver) -> None:
        self._limits = limits
        self._resolve = resolve
        self._tcp = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a stream to the first address of `host` that answers.

        Raises:
            AddressRefused: The name resolves to a forbidden address.
            SourceUnavailable: The name does not resolve.
            httpcore2.ConnectError: No address answers.
        """
        addresses = await checked_addresses(host, port, self._limits, self._resolve)
        each = min(timeout or _CONNECT_SECONDS, _CONNECT_SECONDS)
        for place, address in enumerate(addresses):
            try:
                return await self._tcp.connect_tcp(address, port, each, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if place == len(addresses) - 1:
                    raise
        raise httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no web address is a socket on this machine."""
        raise httpcore2.ConnectError(f"unix socket {path} is not fetched")


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """httpx2's transport over a pool whose connections the guard opens."""

    def __init__(self, limits: FetchLimits, resolve: Resolver, context: ssl.SSLContext) -> None:
        super().__init__(verify=context)
        # httpx2 has no argument for the network backend; the pool is the one it would build, with ours.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=limits.overall,
            max_keepalive_connections=limits.overall,
            keepalive_expiry=_IDLE_SECONDS,
            http1=True,
            http2=True,
            network_backend=GuardedBackend(limits, resolve),
        )


def open_client(limits: FetchLimits, resolve: Resolver, tls: ssl.SSLContext | None) -> httpx2.AsyncClient:
    """Return a client that follows no redirect, keeps no cookie, reads no proxy or password from the environment."""
    context = httpx2.create_ssl_context() if tls is None else tls
    return httpx2.AsyncClient(
        transport=GuardedTransport(limits, resolve, context),
        headers={"User-Agent": limits.user_agent, "Accept": _ACCEPT, "Accept-Language": "en;q=0.9, *;q=0.5"},
        timeout=httpx2.Timeout(limits.total_seconds),
        follow_redirects=False,
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )
