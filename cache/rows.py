"""One row of the cache: JSON or raw bytes in a checked envelope, and never pickle; with what both
backends report.

Not for: where rows lie (`cache/folder.py`, `cache/redis.py`), or values and expiry
(`cache/store.py`).
"""

import hashlib
import math
import os
import struct
import zlib
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Kind = Literal[b"J", b"B"]
"""What an envelope holds: JSON text or raw bytes."""
Verdict = Literal["whole", "expired", "damaged"]
LOT: Final = 500
"""Rows that one query or one round trip covers."""

_HEAD: Final = struct.Struct("<IcQd")
"""CRC-32 of the key and of all that follows, kind, bytes of payload, moment of expiry (infinite for
none)."""
_CRC: Final = struct.Struct("<I")
_NONCE: Final = 12
"""Random bytes of each locked value."""


class RefusedRow(Exception):
    """A row has a form that this cache never writes: a pickle, a foreign file name, a damaged
    envelope."""


class CacheTrouble(Exception):
    """One operation failed (a full disk, a lock, damage that was mended); the next may succeed.

    A backend that cannot be used at all raises `errors.CacheError` instead.
    """


class CacheBusy(CacheTrouble):
    """Another process held the database for as long as is waited for it."""


class Held(NamedTuple):
    """How much a backend holds."""

    entries: int
    bytes: int
    partial: bool = False
    """Whether there is more than was counted."""


@dataclass(frozen=True, slots=True)
class CacheCheck:
    """What a look at every entry found; all but the whole ones were removed."""

    whole: int = 0
    damaged: int = 0
    """Wrong checksum, foreign form, or a value whose file is gone."""
    expired: int = 0
    """Past their time, or of an older schema."""
    orphans: int = 0
    """Value files that no entry names, left by killed writers."""
    note: str = ""
    """What else happened, such as a database that was set aside."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One value with its name and its time, outside any store."""

    name: str
    """The key, or `#` and its digest where it is long."""
    form: Kind
    expires_at: float
    """Seconds since the epoch; infinite for none."""
    payload: bytes


def seal(
    key: str, payload: bytes, *, kind: Kind, expires_at: float = math.inf
) -> bytes:
    """Return `payload` in its envelope for the row named `key`; `expires_at` in seconds since the
    epoch."""
    head = _HEAD.pack(0, kind, len(payload), expires_at)
    return b"".join(
        (_CRC.pack(_checksum(key, head, payload)), head[_CRC.size :], payload)
    )


def unseal(key: str, blob: bytes, *, kind: Kind, now: float) -> bytes | None:
    """Return the payload of an envelope, or None when it has expired or is of the other kind.

    Raises `RefusedRow`: the envelope is damaged, or belongs to another key.
    """
    found, expires_at, payload = opened(key, blob)
    return payload if found == kind and now < expires_at else None


class Cipher:
    """Values that only who has the secret can read: AES-256-GCM, each bound to its row's name."""

    def __init__(self, secret: str) -> None:
        """Make the key of `secret` with scrypt, in about 50 ms."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  for who sets a secret

        key = hashlib.scrypt(
            secret.encode(), salt=b"winnow cache", n=2**14, r=8, p=1, dklen=32
        )
        self.name: Final = hashlib.blake2b(key, digest_size=4).hexdigest()
        """Tells keys apart and gives none away."""
        self._aead = AESGCM(key)

    def lock(self, row: str, payload: bytes) -> bytes:
        """Return what is kept in place of `payload`."""
        nonce = os.urandom(_NONCE)
        return nonce + self._aead.encrypt(
            nonce, payload, row.encode("utf-8", "surrogatepass")
        )

    def open(self, row: str, kept: bytes) -> bytes:
        """Return the payload; raises `RefusedRow` for one that this key has not locked under this
        name."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  as said above

        try:
            return self._aead.decrypt(
                kept[:_NONCE], kept[_NONCE:], row.encode("utf-8", "surrogatepass")
            )
        except (InvalidTag, ValueError) as error:
            raise RefusedRow("it was not locked with this key") from error


def judge(key: str, blob: bytes, *, now: float) -> Verdict:
    """Return whether an envelope of either kind is whole, whole but expired, or damaged."""
    try:
        _, expires_at, _ = opened(key, blob)
    except RefusedRow:
        return "damaged"
    return "whole" if now < expires_at else "expired"


def opened(key: str, blob: bytes) -> tuple[Kind, float, bytes]:
    """Return kind, moment of expiry and payload of a whole envelope; raises `RefusedRow` for any
    other."""
    if len(blob) < _HEAD.size:
        raise RefusedRow("it is no envelope of this cache")
    checksum, kind, length, expires_at = _HEAD.unpack_from(blob)
    payload = blob[_HEAD.size :]
    if length != len(payload) or checksum != _checksum(
        key, blob[: _HEAD.size], payload
    ):
        raise RefusedRow("checksum differs")
    if kind not in (b"J", b"B"):
        raise RefusedRow("its form is none of ours")
    return kind, expires_at, payload


def _checksum(key: str, head: bytes, payload: bytes) -> int:
    named = zlib.crc32(
        head[_CRC.size :], zlib.crc32(key.encode("utf-8", "surrogatepass"))
    )
    return zlib.crc32(payload, named)
