"""One row of the cache: JSON or raw bytes in a checked envelope, and never pickle;
types that both backends report.

Not for: storage (`cache/folder.py`, `cache/server.py`), or values and expiry
(`cache/store.py`).
"""

import hashlib
import math
import os
import struct
import zlib
from typing import Final, Literal, NamedTuple

Kind = Literal[b"J", b"B"]
"""Kind of the payload: JSON text or raw bytes."""
LOT: Final = 500
"""Rows per query or round trip."""

_ROW_HEADER: Final = struct.Struct("<IcQd")
"""CRC-32 of key and rest, kind, payload length, expiry time (infinite: none)."""
_CRC: Final = struct.Struct("<I")
_NONCE: Final = 12
"""Random bytes of each locked value."""


class RefusedRow(Exception):
    """A row is invalid: pickled, with a foreign file name, or a damaged envelope."""


class CacheTrouble(Exception):
    """One operation failed (full disk, repaired damage); the next may succeed.

    A backend that cannot be used at all raises `errors.CacheError` instead.
    """


class StoreStats(NamedTuple):
    """Content of a store, and its last failure."""

    entries: int
    """Rows, including expired ones that are not yet evicted."""
    bytes: int
    """Bytes stored; on disk the index included."""
    partial: bool = False
    """Whether there is more than was counted."""
    trouble: str = ""
    """Why the store is not used, or the last operation that failed."""
    note: str = ""
    """Events for status reports, such as a damaged database that was recreated."""


def seal(
    key: str, payload: bytes, *, kind: Kind, expires_at: float = math.inf
) -> bytes:
    """Return `payload` in its envelope for the row named `key`; `expires_at` in seconds
    since the epoch."""
    head = _ROW_HEADER.pack(0, kind, len(payload), expires_at)
    return b"".join(
        (_CRC.pack(_checksum(key, head, payload)), head[_CRC.size :], payload)
    )


def unseal(key: str, blob: bytes, *, kind: Kind, now: float) -> bytes | None:
    """Return the payload of an envelope; None if expired or of the other kind.

    Raises `RefusedRow`: the envelope is damaged, or belongs to another key.
    """
    present, expires_at, payload = opened(key, blob)
    return payload if present == kind and now < expires_at else None


class Cipher:
    """Encryption of values: AES-256-GCM, with the row's name as associated data."""

    def __init__(self, secret: str) -> None:
        """Derive the key from `secret` with scrypt (about 50 ms)."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  for who sets a secret

        key = hashlib.scrypt(
            secret.encode(), salt=b"winnow cache", n=2**14, r=8, p=1, dklen=32
        )
        self.name: Final = hashlib.blake2b(key, digest_size=4).hexdigest()
        """Id of the key, which does not reveal it."""
        self._aead = AESGCM(key)

    def lock(self, row: str, payload: bytes) -> bytes:
        """Return `payload` encrypted."""
        nonce = os.urandom(_NONCE)
        return nonce + self._aead.encrypt(
            nonce, payload, row.encode("utf-8", "surrogatepass")
        )

    def open(self, row: str, locked: bytes) -> bytes:
        """Return the decrypted payload; raises `RefusedRow` for another key or row
        name, and for damaged bytes."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  as said above

        try:
            return self._aead.decrypt(
                locked[:_NONCE], locked[_NONCE:], row.encode("utf-8", "surrogatepass")
            )
        except (InvalidTag, ValueError) as error:
            raise RefusedRow("it was encrypted with another key") from error


def opened(key: str, blob: bytes) -> tuple[Kind, float, bytes]:
    """Return kind, expiry time and payload of a valid envelope; raises `RefusedRow` for
    another row's, a damaged or an unknown one.

    An expired envelope is valid here.
    """
    if len(blob) < _ROW_HEADER.size:
        raise RefusedRow("it does not have the format of an entry of this cache")
    checksum, kind, length, expires_at = _ROW_HEADER.unpack_from(blob)
    payload = blob[_ROW_HEADER.size :]
    if length != len(payload) or checksum != _checksum(
        key, blob[: _ROW_HEADER.size], payload
    ):
        raise RefusedRow("checksum differs")
    if kind not in (b"J", b"B"):
        raise RefusedRow("its format is unknown")
    return kind, expires_at, payload


def _checksum(key: str, head: bytes, payload: bytes) -> int:
    start = zlib.crc32(
        head[_CRC.size :], zlib.crc32(key.encode("utf-8", "surrogatepass"))
    )
    return zlib.crc32(payload, start)
