"""Files that are packed as one stream (gzip, bzip2, xz): unpacked within bounds of size
and ratio.

Not for: archives of many files (`readers/office/package.py` opens those that are documents).
"""

import bz2
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Final, Protocol

from cancellation import check_cancelled
from readers.converted import (
    DAMAGED,
    MAX_UNPACKED,
    Unreadable,
    raising_the_cap,
)

PACKED: Final = frozenset({".gz", ".bz2", ".xz"})
"""Endings of files that are one packed file."""
MOST_RATIO: Final = 1_000
"""Unpacked bytes for each packed one: what gzip can reach; bzip2 and xz make a thousand
times more of bombs."""
_UNBOUNDED: Final = 1_000_000
"""Unpacked bytes up to which the compression ratio is not checked."""
_BYTES_AT_A_TIME: Final = 65_536
"""Packed bytes given to a library at a time, between which a call can be cancelled."""
_NO_PADDING: Final = re.compile(rb"[^\x00]")
_MEMORY: Final = 100_000_000
"""Bytes that xz may take for its window."""


class _Unpacking(Protocol):
    """What the three libraries have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


_BY_MAGIC: Final[tuple[tuple[bytes, str, Callable[[], _Unpacking]], ...]] = (
    (b"\x1f\x8b", "gzip", lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)),
    (b"BZh", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", "xz", lambda: lzma.LZMADecompressor(memlimit=_MEMORY)),
)


def is_packed(body: bytes) -> bool:
    """Return whether bytes begin as a packed file does."""
    return any(body.startswith(magic) for magic, _, _ in _BY_MAGIC)


def beginning(body: bytes, max_bytes: int) -> bytes:
    """Return the first `max_bytes` bytes of what the beginning of a packed file holds; none
    where it is damaged or not packed."""
    for magic, _, decompressor in _BY_MAGIC:
        if body.startswith(magic):
            try:
                return decompressor().decompress(body, max_bytes)
            except (*DAMAGED, lzma.LZMAError):
                return b""
    return b""


def unpacked(body: bytes, *, max_bytes: int = MAX_UNPACKED) -> bytes:
    """Return what a packed file holds, all its streams; raises `Unreadable` for one
    that is damaged, cut, or unpacks to more than `max_bytes` or `MOST_RATIO` times its size.

    A small file may unpack to `_UNBOUNDED` bytes in any case. Padding after the last
    stream is dropped. A file that is not packed raises `StopIteration`."""
    _, description, decompressor = next(
        row for row in _BY_MAGIC if body.startswith(row[0])
    )
    allowed = min(max_bytes, max(_UNBOUNDED, MOST_RATIO * len(body)))
    pieces, size, start = list[bytes](), 0, 0
    while start < len(body):
        stream = decompressor()
        offset = start
        try:
            while offset < len(body) and not stream.eof:
                check_cancelled()
                piece = body[offset : offset + _BYTES_AT_A_TIME]
                offset += len(piece)
                size += _append(stream, piece, pieces, allowed + 1 - size)
                if size > allowed:
                    reason = f"it is {description} that unpacks to more than {allowed:,} bytes"
                    raise Unreadable(
                        reason,
                        hint=raising_the_cap(2 * allowed)
                        if allowed == max_bytes
                        else "",
                    )
        except (*DAMAGED, lzma.LZMAError) as error:
            if (
                pieces
                and offset - start <= _BYTES_AT_A_TIME
                and not stream.eof
                and size
                and start
            ):
                break  # padding after the last stream, as on tapes
            raise Unreadable(
                f"it is damaged {description} ({type(error).__name__})"
            ) from error
        if not stream.eof:
            raise Unreadable(
                f"it is {description} that is truncated: its end is missing"
            )
        # The data after a stream is found by offset: copying would be quadratic
        padded = _NO_PADDING.search(body, offset - len(stream.unused_data))
        start = padded.start() if padded else len(body)
    return b"".join(pieces)


def _append(
    stream: _Unpacking, piece: bytes, pieces: list[bytes], max_bytes: int
) -> int:
    """Add at most `max_bytes` bytes that a stream gives for a piece, and return how many."""
    got = 0
    pending = piece
    while got < max_bytes:
        chunk = stream.decompress(pending, max_bytes - got)
        got += len(chunk)
        pieces.append(chunk)
        pending = getattr(stream, "unconsumed_tail", b"")
        if stream.eof or not (pending or chunk):
            break
        if not pending and getattr(stream, "needs_input", True):
            break
    return got
