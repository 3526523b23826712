"""Connections that go where the guard looked: a name is resolved once, checked, and the
checked address is dialled.

Through a proxy too (`pipeline/fetch/proxy.py`): it is asked for a tunnel to the checked
address. httpx2 keeps thinking in names, so that `Host`, TLS names and the pools of open
connections stay right. Not for: which addresses are allowed
(`pipeline/fetch/address.py`), nor how many requests may go at once
(`pipeline/fetch/exchange.py`)."""

import functools
import ssl
from collections.abc import Iterable, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import Final, Literal

import anyio
import httpcore2
import httpx2

from pipeline.fetch import USER_AGENT
from pipeline.fetch.address import (
    Resolver,
    check_name,
    checked_addresses,
    is_inner,
    literal,
)
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.proxy import Proxy, open_tunnel

_ACCEPT: Final = (
    "text/html,application/xhtml+xml,application/pdf;q=0.9,text/markdown;q=0.9,text/plain;q=0.8,"
    "application/json;q=0.8,application/xml;q=0.8,*/*;q=0.5"
)
_NEXT_SECONDS: Final = 0.25
"""After which the next address is tried beside the ones that have not answered (RFC
8305 §5 names 0.25 s)."""


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
        """Return a stream to the first address of `host` that answers; the other
        arguments, `timeout` too, have no effect.

        Raises `AddressRefused` for a name that resolves to a forbidden address, or is
        none that a proxy may be given, `SourceError` where it does not resolve or
        the proxy refuses, `httpcore2.ConnectError` without an answer."""
        limits, proxy = self._limits, self._limits.proxy
        if proxy is not None and proxy.resolves and literal(host) is None:
            check_name(host)
            return await self._through(proxy, [host], port)
        addresses = await checked_addresses(host, port, limits, self._resolve)
        if proxy is None:
            return await self._dial(addresses, port)
        inside = [
            address for address in addresses if is_inner(ip_address(address), limits)
        ]
        if inside:
            return await self._dial(inside, port)
        return await self._through(proxy, addresses[: limits.per_host], port)

    async def _through(
        self, proxy: Proxy, hosts: Sequence[str], port: int
    ) -> httpcore2.AsyncNetworkStream:
        """Return a tunnel to the first of `hosts` that the proxy reaches: it may know
        one address family only.

        Raises `httpcore2.ConnectError` of the last attempt, and `SourceError` at
        once where the proxy refuses."""
        for host in hosts[:-1]:
            try:
                return await self._tunnel(proxy, host, port)
            except httpcore2.ConnectError:
                continue
        return await self._tunnel(proxy, hosts[-1], port)

    async def _tunnel(
        self, proxy: Proxy, host: str, port: int
    ) -> httpcore2.AsyncNetworkStream:
        """Return a stream to `host` by way of `proxy`, whose own address is configured
        and not checked.

        Raises `httpcore2.ConnectError` where the proxy does not answer, and what
        `open_tunnel` raises."""
        seconds = self._limits.step_seconds
        try:
            places = (
                [proxy.host]
                if literal(proxy.host)
                else await self._resolve(proxy.host, proxy.port)
            )
            stream = await self._dial(places, proxy.port)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout, OSError) as e:
            raise httpcore2.ConnectError(f"the proxy {proxy} does not answer") from e
        try:
            if proxy.scheme == "https":
                stream = await stream.start_tls(
                    proxy.tls or trusted("proxies"), proxy.host, seconds
                )
            await open_tunnel(stream, proxy, host, port, seconds=seconds)
        except BaseException:  # cancellation too: whatever ends this, the stream is closed, and the cause goes on
            await _close([stream])
            raise
        return stream

    async def _dial(
        self, addresses: Sequence[str], port: int
    ) -> httpcore2.AsyncNetworkStream:
        """Return the first connection among `addresses`, each tried a moment after the
        one before (RFC 8305 §5).

        Raises `httpcore2.ConnectError` or `ConnectTimeout`: none answers, or none in
        time. No more than `per_host` addresses are tried."""
        won: list[httpcore2.AsyncNetworkStream] = []
        failures: list[Exception] = []

        async def attempt(address: str, ended: anyio.Event) -> None:
            try:
                won.append(
                    await self._tcp.connect_tcp(
                        address, port, self._limits.step_seconds
                    )
                )
                attempts.cancel_scope.cancel()
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as e:
                failures.append(e)
            ended.set()

        try:
            async with anyio.create_task_group() as attempts:
                # A name may have thousands: no more are tried than may be asked at once.
                for address in addresses[: self._limits.per_host]:
                    ended = anyio.Event()
                    attempts.start_soon(attempt, address, ended)
                    with anyio.move_on_after(_NEXT_SECONDS):
                        await ended.wait()
        except BaseException:  # cancellation too: connections already won are closed, and the cause goes on
            await _close(won)
            raise
        await _close(won[1:])
        if won:
            return won[0]
        raise (
            failures[0] if failures else httpcore2.ConnectError("no address was tried")
        )


@functools.cache
def trusted(whom: Literal["pages", "proxies", "services"]) -> ssl.SSLContext:
    """Return the context that trusts the machine's authorities, one for each of the
    three in this process.

    Reading the authorities takes 25 ms of the processor. Each has its own, since a
    client writes the protocols that it offers (ALPN) into its context when it connects.
    """
    return httpx2.create_ssl_context()


def pinned_client(
    address: str, limits: FetchLimits, tls: ssl.SSLContext | None
) -> httpx2.AsyncClient:
    """Return a client for the site that a page came from, which it reaches at that
    page's `address` alone.

    Whatever the site's name is now: a page of a public address reaches nothing inside
    (DNS rebinding). Raises `ValueError` where that is not an IP address."""

    async def resolve(_host: str, _port: int) -> list[str]:
        return [address]

    inside = is_inner(ip_address(address), limits)
    return open_client(limits if inside else limits.public_only(), resolve, tls)


def open_client(
    limits: FetchLimits, resolve: Resolver, tls: ssl.SSLContext | None
) -> httpx2.AsyncClient:
    """Return a client that follows no redirect, keeps no cookie, reads no proxy or
    password from the environment."""
    context = trusted("pages") if tls is None else tls
    transport = httpx2.AsyncHTTPTransport(verify=context)
    # It has no argument for who opens its connections. Far more are kept than may be in use, or a
    # crawl over many sites would open one for each page; but the pool looks at each twice a
    # request, so not at any number of them.
    transport._pool = httpcore2.AsyncConnectionPool(
        ssl_context=context,
        max_connections=4 * limits.overall,
        keepalive_expiry=limits.total_seconds,
        http2=True,
        network_backend=GuardedBackend(limits, resolve),
    )
    return httpx2.AsyncClient(
        transport=transport,
        headers={
            "User-Agent": USER_AGENT,
            "Accept": _ACCEPT,
            "Accept-Language": "en;q=0.9, *;q=0.5",
        },
        timeout=httpx2.Timeout(limits.total_seconds),
        follow_redirects=False,
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )


async def _close(streams: Sequence[httpcore2.AsyncNetworkStream]) -> None:
    with anyio.CancelScope(shield=True):
        for stream in streams:
            await stream.aclose()
