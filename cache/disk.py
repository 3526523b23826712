"""The form of one cache entry on disk: JSON or raw bytes in a checked envelope, and never pickle.

diskcache pickles whatever it does not know and unpickles what it finds (CVE-2025-69872: who can write the folder runs
code in our process). `PlainDisk` takes and gives bytes only, and refuses every row of another form. Not for: opening,
expiry rules or repair (`cache/store.py`, `cache/repair.py`).
"""

import math
import re
import sqlite3
import struct
import zlib
from typing import Final, Literal

import diskcache
from diskcache.core import MODE_BINARY, MODE_RAW

Kind = Literal[b"J", b"B"]
"""What an envelope holds: JSON text or raw bytes."""

_HEAD: Final = struct.Struct("<cId")
"""Kind, CRC-32 of key and payload, moment of expiry (seconds since the epoch, infinite for none)."""
_FILENAME: Final = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val\Z")
"""The only names that diskcache gives to value files; anything else in a row could point out of the folder."""


class RefusedRow(Exception):
    """A row has a form that this cache never writes: a pickle, a foreign file name, a damaged envelope."""


def seal(key: str, payload: bytes, *, kind: Kind, expires_at: float = math.inf) -> bytes:
    """Return `payload` in its envelope for the row named `key`."""
    return _HEAD.pack(kind, _checksum(key, payload), expires_at) + payload


def unseal(key: str, blob: bytes, *, kind: Kind, now: float) -> bytes | None:
    """Return the payload of an envelope, or None when it has expired or is of the other kind.

    Raises:
        RefusedRow: The envelope is damaged, or belongs to another key.
    """
    if len(blob) < _HEAD.size:
        raise RefusedRow(f"{len(blob)} bytes are no envelope")
    found, checksum, expires_at = _HEAD.unpack_from(blob)
    payload = blob[_HEAD.size :]
    if checksum != _checksum(key, payload):
        raise RefusedRow("checksum differs")
    return payload if found == kind and now < expires_at else None


def _checksum(key: str, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(key.encode("utf-8", "surrogatepass")))


class PlainDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache is published without types
    """diskcache's serialiser without serialisation: text keys, bytes values, in a row or in a file of their own."""

    def put(self, key: object) -> tuple[str, bool]:
        """Return the key for the database; only text is a key."""
        if not isinstance(key, str):
            raise TypeError(f"cache keys are text, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return the key of a row.

        Raises:
            RefusedRow: The key is not plain text; diskcache would unpickle it.
        """
        if not raw or not isinstance(key, str):
            raise RefusedRow("the key of a row is not plain text")
        return key

    def store(
        self, value: object, read: object, key: object = diskcache.core.UNKNOWN
    ) -> tuple[int, int, str | None, memoryview | None]:
        """Return the columns size, mode, file name and value for `value`; only bytes are a value."""
        if read or not isinstance(value, bytes):
            raise TypeError(f"cache values are bytes, not {type(value).__name__}")
        size, mode, filename, column = super().store(value, False, key=key)
        return size, mode, filename, column

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        """Return the bytes of a row.

        Raises:
            RefusedRow: The row is of a form that `store` never writes; nothing of it was read.
            OSError: The value's file is gone; diskcache takes that for a miss.
        """
        if read:
            raise TypeError("cache values are not read as files")
        if mode == MODE_RAW and isinstance(value, bytes | sqlite3.Binary):
            return bytes(value)
        if mode == MODE_BINARY and isinstance(filename, str) and _FILENAME.match(filename):
            found = super().fetch(MODE_BINARY, filename, None, False)
            return bytes(found)
        raise RefusedRow(f"a row of mode {mode!r} with a {type(value).__name__} is none of ours")

    def remove(self, file_path: object) -> None:
        """Delete a value's file, if the name is one that this cache gives."""
        if isinstance(file_path, str) and _FILENAME.match(file_path):
            super().remove(file_path)
