"""Bodies of answers, read within their caps: whole, or as far as they came.

httpx2 unpacks gzip, deflate, brotli and zstd in pieces of at most 1 MiB, so that a bomb is noticed
at the cap and not at its end. Not for: what asks (`pipeline/fetch/exchange.py`), nor what a body is
(`readers/sniff.py`).
"""

import math
import sys
import time
from typing import Final

import anyio
import anyio.lowlevel
import httpx2

from errors import SourceTooLarge, SourceUnreadable
from readers.converted import raising_the_cap

BROKEN: Final = "the connection broke there"
LATE: Final = "the rest was not there in time"
_TO_READ: Final = 1.0
"""Seconds kept for reading what came of a late body, or less:"""
_SHARE_TO_READ: Final = 0.1
"""of the time that there was for it."""
_BROKEN_STREAM: Final = (
    httpx2.RemoteProtocolError,
    httpx2.ReadError,
    httpx2.ReadTimeout,
)


async def read_as_far(
    response: httpx2.Response, *, url: str, max_bytes: int
) -> tuple[bytes, str]:
    """Return a body as `read_body` does, or what came of it before it broke, could not
    be unpacked, or the call's time was nearly up; and why the rest is missing, empty for a
    whole one.

    Raises, where nothing came, the error of the connection
    (`httpx2.RemoteProtocolError`, `ReadError`, `ReadTimeout`) or `SourceUnreadable`;
    and `SourceTooLarge` for a body over a bound."""
    body = bytearray()
    seconds = anyio.current_effective_deadline() - anyio.current_time()
    cut = ""
    # Minus infinity is that of a call that was given up: it ends at the next wait.
    with anyio.move_on_after(
        seconds - min(_TO_READ, _SHARE_TO_READ * seconds)
        if 0 < seconds < math.inf
        else None
    ) as scope:
        try:
            await _read(response, body, url=url, max_bytes=max_bytes)
            cut = BROKEN if body and _lacks_its_end(response) else ""
        except (*_BROKEN_STREAM, SourceUnreadable) as error:
            if not body:
                raise
            is_damaged = isinstance(error, SourceUnreadable)
            cut = "the compression of the rest is damaged" if is_damaged else BROKEN
    return bytes(body), LATE if scope.cancelled_caught else cut


async def read_body(response: httpx2.Response, *, url: str, max_bytes: int) -> bytes:
    """Return the unpacked body of a response that was opened as a stream; `url` is for
    messages.

    It has at most `max_bytes` over the wire (a `Content-Length` above is refused unread)
    and after unpacking. Raises `SourceTooLarge` beyond that, `SourceUnreadable` where it
    cannot be unpacked, and httpx2's error where the connection breaks."""
    body = bytearray()
    await _read(response, body, url=url, max_bytes=max_bytes)
    return bytes(body)


def _lacks_its_end(response: httpx2.Response) -> bool:
    """Whether a body packed as gzip or deflate ended before its stream did, where the
    connection's end is its end.

    httpx2 unpacks what there is of it and says nothing. False for any other packing."""
    packing = getattr(response._get_content_decoder(), "decompressor", None)
    stream = getattr(packing, "decompressor", None)
    return getattr(stream, "eof", True) is False


async def _read(
    response: httpx2.Response,
    body: bytearray,
    *,
    url: str,
    max_bytes: int,
) -> None:
    """Read into `body`, which keeps what came where this raises, but is emptied for a
    body that is too large."""

    def too_large(problem: str, size: int) -> SourceTooLarge:
        body.clear()  # the error keeps this frame alive for as long as someone holds it
        return SourceTooLarge(
            f"{url} {problem}.", source=url, hint=raising_the_cap(size)
        )

    length = response.headers.get("content-length", "")
    if length.isdecimal() and (size := int(length[:15])) > max_bytes:
        raise too_large(f"has {size:,} bytes, over the cap of {max_bytes:,}", size)
    since = time.monotonic()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if max(response.num_bytes_downloaded, len(body)) > max_bytes:
                raise too_large(f"has more than {max_bytes:,} bytes", 2 * max_bytes)
            # What has arrived already is read without a look at the event loop; 64 kB in chunks of
            # a byte take 0.3 s.
            if time.monotonic() - since > sys.getswitchinterval():
                await anyio.lowlevel.checkpoint()
                since = time.monotonic()
    except httpx2.DecodingError as e:
        message = f"{url} cannot be unpacked: its compression is damaged."
        raise SourceUnreadable(message, source=url, hint="Try again later.") from e
