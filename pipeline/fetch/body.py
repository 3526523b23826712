"""Reading a body with both its caps: bytes on the wire, and bytes after decompression.

httpx2 unpacks gzip, deflate, brotli and zstd in pieces of at most 1 MiB, so that a bomb is noticed at the cap and not
at its end. Not for: deadlines, which hold around the whole exchange (`pipeline/fetch/client.py`).
"""

import time
from typing import Final

import anyio
import anyio.lowlevel
import httpx2

from errors import SourceTooLarge, SourceUnreadable

_BREATH: Final = 0.005
"""Seconds of reading and unpacking between two looks at the event loop: what has arrived already is read without one,
and 64 kB in chunks of one byte take 0.3 s."""
_DRAINED: Final = 65_536
_DRAIN_SECONDS: Final = 0.3
_HINT: Final = "Ask for a smaller part of it (another page, an API, a section)."


async def read_body(response: httpx2.Response, *, url: str, max_bytes: int, max_unpacked: int) -> bytes:
    """Return the unpacked body.

    Args:
        response: Opened as a stream, nothing read of it.
        url: For messages.
        max_bytes: Cap on the wire; a `Content-Length` above it is refused unread.
        max_unpacked: Cap after decompression.

    Raises:
        SourceTooLarge: Over a cap.
        SourceUnreadable: Its compression is damaged.
    """
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:15]) > max_bytes:
        raise SourceTooLarge(
            f"{url} has {int(length[:15]):,} bytes, over the cap of {max_bytes:,}.", source=url, hint=_HINT
        )
    body = bytearray()
    since = time.monotonic()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if response.num_bytes_downloaded > max_bytes:
                raise SourceTooLarge(f"{url} sent more than {max_bytes:,} bytes.", source=url, hint=_HINT)
            if len(body) > max_unpacked:
                raise SourceTooLarge(f"{url} unpacks to more than {max_unpacked:,} bytes.", source=url, hint=_HINT)
            if time.monotonic() - since > _BREATH:
                await anyio.lowlevel.checkpoint()
                since = time.monotonic()
    except SourceTooLarge:
        body.clear()  # the error keeps this frame alive for as long as someone holds it
        raise
    except httpx2.DecodingError as e:
        body.clear()
        raise SourceUnreadable(
            f"{url} cannot be unpacked: its compression is damaged ({e}).", source=url, hint="Try again later."
        ) from e
    return bytes(body)


async def drain(response: httpx2.Response) -> None:
    """Read a short body that nobody needs, so that its connection can serve the next request."""
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:15]) <= _DRAINED:
        with anyio.move_on_after(_DRAIN_SECONDS):
            async for _ in response.aiter_raw():
                pass
