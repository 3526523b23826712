"""HTTP clients for configured services: model servers, SearXNG, search APIs, an issuer
of tokens.

Only requests to the web use the proxy of the environment. Services on this machine or
in its network are reached directly, since their requests contain private text. Not for:
pages (`pipeline/fetch/connect.py`).
"""

import urllib.request
from ipaddress import ip_address

import httpx2

from errors import AddressRefused
from pipeline.fetch.address import (
    Resolver,
    check_name,
    is_inner,
    literal,
    system_resolver,
)
from pipeline.fetch.connect import trusted
from pipeline.fetch.limits import FetchLimits


def service_client(
    seconds: float = 5.0, *, resolve: Resolver = system_resolver
) -> httpx2.AsyncClient:
    """Return a client with a timeout of `seconds`, without redirects or netrc
    passwords."""
    return httpx2.AsyncClient(
        transport=_ByPlace(resolve), timeout=seconds, trust_env=False
    )


class _ByPlace(httpx2.AsyncBaseTransport):
    """Transport that uses the environment's proxy for the web only."""

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve
        self._direct = httpx2.AsyncHTTPTransport(verify=trusted("services"))
        self._proxied: dict[str, httpx2.AsyncHTTPTransport] = {}
        self._inside: dict[str, bool] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request, without proxy to a host that is inside or that the
        environment excepts."""
        host = request.url.host
        proxies = urllib.request.getproxies()
        proxy = proxies.get(request.url.scheme) or proxies.get("all") or ""
        if (
            not proxy
            or urllib.request.proxy_bypass(host)
            or await self._is_inside(host, request.url.port or 80)
        ):
            return await self._direct.handle_async_request(request)
        if proxy not in self._proxied:
            address = proxy if "://" in proxy else f"http://{proxy}"
            self._proxied[proxy] = httpx2.AsyncHTTPTransport(
                verify=trusted("proxies"), proxy=address
            )
        return await self._proxied[proxy].handle_async_request(request)

    async def aclose(self) -> None:
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()

    async def _is_inside(self, host: str, port: int) -> bool:
        """Return whether a host is this machine or in its network, by address, name or
        DNS."""
        if host not in self._inside:
            self._inside[host] = await self._looked_up(host.strip("[]"), port)
        return self._inside[host]

    async def _looked_up(self, host: str, port: int) -> bool:
        try:
            check_name(host)
            texts = [host] if literal(host) else await self._resolve(host, port)
        except AddressRefused:
            return True
        except (OSError, UnicodeError):
            return False  # with many proxies no public name resolves
        return any(
            is_inner(ip_address(text.partition("%")[0]), FetchLimits())
            for text in texts
        )
