"""The form of one cache entry on disk: JSON or raw bytes in a checked envelope, and never pickle.

diskcache pickles whatever it does not know and unpickles what it finds (CVE-2025-69872: who can write the folder runs
code in our process). `PlainDisk` takes and gives bytes only, and refuses every row of another form. Not for: opening,
expiry rules or repair (`cache/store.py`, `cache/repair.py`).
"""

import contextlib
import math
import os
import re
import sqlite3
import struct
import zlib
from typing import Final, Literal

import diskcache
from diskcache.core import MODE_BINARY, MODE_RAW

Kind = Literal[b"J", b"B"]
"""What an envelope holds: JSON text or raw bytes."""
Verdict = Literal["whole", "expired", "damaged"]

_HEAD: Final = struct.Struct("<IcQd")
"""CRC-32 of all that follows and of the key, kind, bytes of payload, moment of expiry (infinite for none)."""
_CRC: Final = struct.Struct("<I")
HEAD_BYTES: Final = _HEAD.size
_FILENAME: Final = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val\Z")
"""The only names that diskcache gives to value files; anything else in a row could point out of the folder."""


class RefusedRow(Exception):
    """A row has a form that this cache never writes: a pickle, a foreign file name, a damaged envelope."""


class ValueGone(Exception):
    """The file of a value is not there: the row was just replaced, or the file was deleted by hand."""


def seal(key: str, payload: bytes, *, kind: Kind, expires_at: float = math.inf) -> bytes:
    """Return `payload` in its envelope for the row named `key`."""
    head = _HEAD.pack(0, kind, len(payload), expires_at)
    return b"".join((_CRC.pack(_checksum(key, head, payload)), head[_CRC.size :], payload))


def unseal(key: str, blob: bytes, *, kind: Kind, now: float) -> bytes | None:
    """Return the payload of an envelope, or None when it has expired or is of the other kind.

    Raises:
        RefusedRow: The envelope is damaged, or belongs to another key.
    """
    if len(blob) < _HEAD.size:
        raise RefusedRow(f"{len(blob)} bytes are no envelope")
    checksum, found, length, expires_at = _HEAD.unpack_from(blob)
    payload = blob[_HEAD.size :]
    if length != len(payload) or checksum != _checksum(key, blob[: _HEAD.size], payload):
        raise RefusedRow("checksum differs")
    return payload if found == kind and now < expires_at else None


def judge(key: str, blob: bytes, *, now: float) -> Verdict:
    """Return whether an envelope of either kind is whole, whole but expired, or damaged."""
    try:
        found = unseal(key, blob, kind=b"J", now=-math.inf) is None
        if found and unseal(key, blob, kind=b"B", now=-math.inf) is None:
            return "damaged"
    except RefusedRow:
        return "damaged"
    return "whole" if now < expiry(blob[:HEAD_BYTES], len(blob)) else "expired"


def expiry(head: bytes, size: int) -> float:
    """Return the moment of expiry that the first `HEAD_BYTES` of an envelope of `size` bytes name; 0 if they cannot."""
    if len(head) < _HEAD.size:
        return 0.0
    _, _, length, expires_at = _HEAD.unpack(head)
    return float(expires_at) if length + _HEAD.size == size else 0.0


def _checksum(key: str, head: bytes, payload: bytes) -> int:
    named = zlib.crc32(head[_CRC.size :], zlib.crc32(key.encode("utf-8", "surrogatepass")))
    return zlib.crc32(payload, named)


def is_value_name(name: object) -> bool:
    """Return whether `name` is one that this cache gives to value files, relative to its folder."""
    return isinstance(name, str) and _FILENAME.match(name) is not None


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

    def _write(self, full_path: str, iterator: object, mode: str, encoding: str | None = None) -> object:
        """Write a value's file, or leave nothing of it: half a value on a full disk would only fill it further."""
        try:
            return super()._write(full_path, iterator, mode, encoding)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(full_path)
            raise

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        """Return the bytes of a row.

        Raises:
            RefusedRow: The row is of a form that `store` never writes; nothing of it was read.
            ValueGone: The value's file is gone; diskcache would take that for a miss.
        """
        if read:
            raise TypeError("cache values are not read as files")
        if mode == MODE_RAW and isinstance(value, bytes | sqlite3.Binary):
            return bytes(value)
        if mode == MODE_BINARY and is_value_name(filename):
            try:
                return bytes(super().fetch(MODE_BINARY, filename, None, False))
            except FileNotFoundError as e:
                raise ValueGone("the file of its value is gone") from e
        raise RefusedRow(f"a row of mode {mode!r} with a {type(value).__name__} is none of ours")

    def remove(self, file_path: object) -> None:
        """Delete a value's file, if the name is one that this cache gives."""
        if is_value_name(file_path):
            super().remove(file_path)
