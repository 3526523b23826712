"""HTTPS through the pinned connection: the name in the URL is the name that the certificate is
checked for."""

import asyncio
import ssl
from pathlib import Path

import pytest

from errors import SourceError
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from tests.support.certificate import make_certificate, to_loopback
from tests.support.web_site import Reply, Site, failure_of

LIMITS = FetchLimits(allow_loopback=True, respect_robots=False, total_seconds=30.0)


@pytest.mark.anyio
async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address(
    tmp_path: Path,
) -> None:
    file = make_certificate(tmp_path, "secure.example")
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(file)
    names: list[str | None] = []
    served.sni_callback = lambda _socket, name, _context: names.append(name)
    site = Site({"/p": Reply()})
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=served)
    port = server.sockets[0].getsockname()[1]
    trusting = ssl.create_default_context(cafile=str(file))
    async with server:
        async with open_fetcher(LIMITS, pages=None, resolve=to_loopback, tls=trusting) as fetcher:
            page = await fetcher.fetch(f"https://secure.example:{port}/p")
            other = await failure_of(fetcher, f"https://other.example:{port}/p")
        async with open_fetcher(LIMITS, pages=None, resolve=to_loopback) as fetcher:
            unknown = await failure_of(fetcher, f"https://secure.example:{port}/p")
    assert page.title == "Piran"
    assert names == ["secure.example", "other.example", "secure.example"]
    for error in (other, unknown):
        assert type(error) is SourceError
        assert "certificate" in error.what
    assert site.paths == ["/p"]
