"""From bytes to text: which encoding a page is in, decided as browsers do (WHATWG Encoding), then by detection.

The order is: byte order mark, UTF-16 by its zero bytes, `Content-Type` header, `<meta>` or XML declaration, valid
UTF-8, detection. A label that the bytes contradict is passed over, since wrong labels are common and mojibake reads
worse than a guess. Linear in the length of the body. Not for: media types (`pipeline/read/sniff.py`).
"""

import codecs
import logging
import re
import unicodedata
from typing import Final, NamedTuple

_DETECTED: Final = (
    *("utf_8", "cp1252", "cp1251", "cp932", "euc_jp", "gb18030", "big5hkscs", "cp949", "koi8_r", "cp1250", "cp1253"),
    *("cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "iso8859_5", "cp866"),
)
_ALLOWED: Final = frozenset(
    codecs.lookup(name).name
    for name in (
        *_DETECTED,
        *(f"iso8859_{n}" for n in (2, 3, 4, 6, 7, 8, 10, 13, 14, 15, 16)),
        *("koi8_u", "mac_roman", "mac_cyrillic", "iso2022_jp", "utf_16_le", "utf_16_be"),
    )
)
"""Codecs that the web uses; labels such as `utf-7` or `unicode_escape` would let a page say what its bytes do not."""
_READ_AS: Final = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    "iso8859-9": "cp1254",
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    "shift_jis": "cp932",
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
"""By Python's name: codecs in whose place the web reads a vendor's superset."""
_WEB_LABELS: Final = {
    "x-user-defined": "cp1252",
    "dos-874": "cp874",
    "windows-31j": "cp932",
    **dict.fromkeys(("gb_2312", "gb_2312-80", "csgb2312"), "gb18030"),
    **dict.fromkeys(("ks_c_5601-1989", "ksc_5601", "cseuckr"), "cp949"),
    "cn-big5": "big5hkscs",
    "cseucpkdfmtjapanese": "euc_jp",
    **dict.fromkeys(("unicode", "ucs-2"), "utf_16_le"),
    **dict.fromkeys(("unicode-1-1-utf-8", "x-unicode20utf8", "unicode11utf8"), "utf_8"),
    **dict.fromkeys(("iso-8859-8-i", "logical", "visual"), "iso8859_8"),
    "mac": "mac_roman",
    "x-mac-ukrainian": "mac_cyrillic",
    "win-1251": "cp1251",
    **dict.fromkeys(("koi8-ru", "koi"), "koi8_u"),
}
"""Labels of the Encoding standard that Python does not know."""
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LATIN: Final = {"cp1250", "cp1254", "cp1257", "cp1258"}
_LOOKED_AT: Final = 16_384
"""Bytes in which declarations, zeros and words for detection are looked for. Browsers stop at 1024 for declarations;
pages with long comments in front are not rare. More words make detection slower, not better."""
_BROKEN_SHARE: Final = 0.002
"""Share of characters that may be undecodable before a label counts as wrong: a real page has a broken byte or two."""

_META: Final = re.compile(
    rb"<meta\b[^>]{0,400}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE
)
_XML: Final = re.compile(rb"\A\s{0,9}<\?xml\b[^>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9_.:-]{2,40})")
_HEADER: Final = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_TAG: Final = re.compile(rb"<[^<>]{0,4000}>")

logging.getLogger("charset_normalizer").setLevel(logging.WARNING)


class Decoded(NamedTuple):
    """Text, and how it was read."""

    text: str
    note: str = ""
    """What a reader should know: a label that was passed over, characters that were lost."""


def codec_of(label: str) -> str | None:
    """Return the codec for a label as pages and headers give it, None for one that the web does not know."""
    name = label.strip().strip("\"'").lower()
    name = _WEB_LABELS.get(name) or name.replace("windows-", "cp").replace("x-", "")
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    found = _READ_AS.get(found, found)
    return found if found in _ALLOWED else None


def decode(body: bytes, *, content_type: str = "") -> Decoded:
    """Return the text of `body`; of the header `content_type` only the charset is read."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(codec, "replace"))
    wide = unmarked_utf16(body)
    if wide:  # whatever a label says: no other encoding of the web has zero bytes
        return Decoded(body.decode(wide, "replace"))
    note = ""
    for codec in _declared(body, content_type):
        text = _read_as(body, codec)
        if text is not None:
            # Latin-1 is the label that servers give unasked.
            return Decoded((_read_strictly(body) if codec == "cp1252" else None) or text, note)
        note = note or f"labelled {codec}, which its bytes are not"
    # ISO-2022-JP has seven bits a byte, so that it would pass for UTF-8.
    text = (_read_as(body, "iso2022_jp") if b"\x1b$" in body else None) or _read_strictly(body)
    if text is not None:
        return Decoded(text, note)
    text = _read_as(body, "utf-8")
    if text is not None:
        return Decoded(text, note or "some bytes are not valid UTF-8")
    codec = _likeliest(_words(body))
    guessed = f"no valid label: {codec} was guessed"
    return Decoded(body.decode(codec, "replace"), f"{note}; {guessed}" if note else guessed)


def unmarked_utf16(body: bytes) -> str:
    """Return the codec of UTF-16 text without a byte order mark, empty for anything else.

    The zero halves of blanks, digits and tags stand in even places or in odd ones. A table of small numbers has such
    zeros too, but control characters, or no blanks, among what it then reads as.
    """
    start = body[: min(len(body), _LOOKED_AT) // 2 * 2]
    even, odd = start[::2].count(0), start[1::2].count(0)
    if min(even, odd) * 20 > max(even, odd) or max(even, odd) * 25 < len(start) // 2:
        return ""
    codec = "utf-16-le" if odd > even else "utf-16-be"
    text = start.decode(codec, "replace")
    blanks = sum(letter in " \t\n\r<。、，" for letter in text)
    noise = sum(unicodedata.category(letter) in {"Cc", "Cn", "Cs"} and not letter.isspace() for letter in text)
    return codec if blanks and noise <= _BROKEN_SHARE * len(text) else ""


def _declared(body: bytes, content_type: str) -> list[str]:
    """Return the codecs that header and body name, in that order, each once."""
    header = _HEADER.search(content_type)
    start = body[:_LOOKED_AT]
    inside = [codec_of(found.group(1).decode("ascii")) for found in (_META.search(start), _XML.search(start)) if found]
    # A declaration that could be read byte by byte cannot stand in UTF-16 text (WHATWG, "change the encoding").
    inside = ["utf-8" if codec in {"utf-16-le", "utf-16-be"} else codec for codec in inside]
    return [codec for codec in dict.fromkeys([codec_of(header.group(1)) if header else None, *inside]) if codec]


def _read_strictly(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _read_as(body: bytes, codec: str) -> str | None:
    """Return the text of `body` in `codec`, or None when too much of it is not in that codec."""
    try:
        text = body.decode(codec)
    except UnicodeDecodeError:
        text = body.decode(codec, "replace")
        if text.count("�") > max(2, _BROKEN_SHARE * len(text)):
            return None
    if codec.startswith("utf-16") and text.count("<") == 0 and body.count(b"<") > 1:
        return None  # 8-bit text that a header calls UTF-16 decodes without an error, into nothing
    return text


def _likeliest(sample: bytes) -> str:
    from charset_normalizer import from_bytes  # noqa: PLC0415  for pages without a right label only

    found = from_bytes(sample, cp_isolation=list(_DETECTED), enable_fallback=False, preemptive_behaviour=False)
    ranked = {match.encoding: match for match in found if match.encoding in _DETECTED}
    first = next(iter(ranked.values()), None)
    western = ranked.get("cp1252")
    if first is None:
        return "cp1252"
    # Latin codecs differ in a few letters; without a clear sign the commonest is the best guess.
    near = western is not None and western.chaos <= first.chaos + 0.01 and western.coherence >= first.coherence - 0.01
    return "cp1252" if near and first.encoding in _LATIN else first.encoding


def _words(body: bytes) -> bytes:
    """Return up to `_LOOKED_AT` bytes of the texts between tags that are not plain ASCII, each once."""
    kept: dict[bytes, None] = {}
    size = 0
    for piece in _TAG.split(body[: 40 * _LOOKED_AT]):
        if not piece.isascii():
            text = piece[:_LOOKED_AT].strip()
            size += 0 if text in kept else len(text)
            kept[text] = None
            if size > _LOOKED_AT:
                break
    return b"\n".join(kept)
