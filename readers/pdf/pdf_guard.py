"""What of a PDF may be given to PDFium, which has no limits of its own: neither for a
stream's size nor for forms.

A look at all streams without knowing the file's structure finds what is out of the
common. Only such files are then followed page by page (`readers/pdf/pdf_follow.py`).
Not for: reading pages (`readers/pdf/pdf_page.py`)."""

import math
import re
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cancellation import check_cancelled
from readers.pdf.pdf_limits import DRAWS, MOST_CONTENT, MOST_FORMS, MOST_SHOWN, SHOWS

if TYPE_CHECKING:
    from readers.pdf.pdf_follow import FollowedFile

_COMMON_BYTES: Final = 2_000_000
"""Bytes up to which a stream is not worth a further look."""
_COMMON_TOTAL: Final = 200_000_000
"""Maximum unpacked bytes of all streams of a file (a second of unpacking)."""
_DICTIONARY_BYTES: Final = 1_500
"""Bytes before a stream in which its dictionary is looked for."""
_STREAM: Final = re.compile(rb"stream\r?\n")
_FILTER: Final = re.compile(rb"/Filter\s*(\[[^\]]*\]|/\w+)")
_NOT_TEXT: Final = re.compile(
    rb"/Image\b|/Length1\b|/FontFile|/Metadata\b|/ICCBased|/Type1C|/OpenType|/CIDFontType0C"
)


class Guard:
    """Says of each page whether it may be loaded."""

    def __init__(self, body: bytes) -> None:
        """Look at a file. Raises `Unreadable` for an uncommon one that is damaged, or
        whose structure alone unpacks to too much."""
        self._followed: FollowedFile | None = None
        if _is_uncommon(body):
            from readers.pdf import pdf_follow  # noqa: PLC0415  pypdf takes .1 s to import

            self._followed = pdf_follow.FollowedFile(body)

    def lets_pass(self, number: int) -> bool:
        """Return whether a page, 1-based, draws no more than PDFium can be given."""
        return self._followed is None or self._followed.lets_pass(number)


def _is_uncommon(body: bytes) -> bool:
    """Return whether a file is encrypted or holds what common files do not: large
    streams, forms in forms, filters that hide sizes."""
    if re.search(rb"/Encrypt\b", body):
        return True
    total, chain, draws, longest = 0, 1, 0, 0
    for head, start in _streams(body):
        check_cancelled()
        filters = _FILTER.search(head)
        kind = filters[1] if filters is not None else b""
        if b"LZW" in kind or b"RunLength" in kind or kind.count(b"/") > 1:
            return True
        data = (
            _unpacked(body, start) if b"Fl" in kind else body[start : _end(body, start)]
        )
        total += len(data)
        text_operators = (
            sum(1 for _ in SHOWS.finditer(data)) if len(data) > MOST_SHOWN else 0
        )
        if (
            len(data) > _COMMON_BYTES
            or total > _COMMON_TOTAL
            or text_operators > MOST_SHOWN / 10
        ):
            return True
        drawn = len(DRAWS.findall(data))
        draws = max(draws, drawn)
        if b"/Form" in head:
            chain *= 1 + drawn
            longest = max(
                longest,
                len(data),
                (MOST_CONTENT // MOST_SHOWN) * len(SHOWS.findall(data)),
            )
    return math.log2(chain) > math.log2(MOST_FORMS) or draws * longest > MOST_CONTENT


def _streams(body: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the dictionary of each stream that may hold contents, and where its data
    begin."""
    for match in _STREAM.finditer(body):
        before = body[max(0, match.start() - _DICTIONARY_BYTES) : match.start()]
        dictionary_start = before.rfind(b"obj")
        if before.endswith(b"end") or dictionary_start < 0:
            continue
        head = before[dictionary_start:]
        if not _NOT_TEXT.search(head):
            yield head, match.end()


def _end(body: bytes, start: int) -> int:
    offset = body.find(b"endstream", start)
    return offset if offset >= 0 else len(body)


def _unpacked(body: bytes, start: int) -> bytes:
    """Return what a stream unpacks to, as far as `_COMMON_BYTES` and a byte more; empty for a
    damaged one."""
    try:
        return zlib.decompressobj().decompress(
            body[start : _end(body, start)], _COMMON_BYTES + 1
        )
    except zlib.error:
        return b""
