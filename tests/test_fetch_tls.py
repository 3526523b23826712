"""HTTPS through the pinned connection: the name in the URL is the name that the certificate is checked for."""

import asyncio
import datetime
import ssl
from pathlib import Path

import pytest

from errors import SourceUnavailable
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from tests.test_fetch_server import Reply, Site, failure_of

x509 = pytest.importorskip("cryptography.x509", reason="certificates for the test are made with cryptography")
hashes = pytest.importorskip("cryptography.hazmat.primitives.hashes")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
ec = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")

LIMITS = FetchLimits(allow_loopback=True, respect_robots=False, total_seconds=5.0)


def make_certificate(folder: Path, host: str) -> Path:
    """Write a self-signed certificate for `host` with its key; return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(made.public_bytes(pem) + secret)
    return file


async def to_loopback(_host: str, _port: int) -> list[str]:
    """Resolve every name to loopback."""
    return ["127.0.0.1"]


@pytest.mark.anyio
async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address(tmp_path: Path) -> None:
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
        assert type(error) is SourceUnavailable
        assert "certificate" in error.what
    assert site.paths == ["/p"]
