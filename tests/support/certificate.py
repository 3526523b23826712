"""A self-signed certificate, for servers on loopback that use TLS; tests that need one skip
without cryptography."""

import datetime
from pathlib import Path

import pytest

x509 = pytest.importorskip(
    "cryptography.x509", reason="certificates for the test are made with cryptography"
)
hashes = pytest.importorskip("cryptography.hazmat.primitives.hashes")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
ec = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")


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
