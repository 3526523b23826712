"""From bytes to text: which encoding a page is in, decided as browsers do (WHATWG Encoding), then by detection.

The order is: byte order mark, UTF-16 by its zero bytes, `Content-Type` header, `<meta>` or XML declaration, valid
UTF-8, detection. A label that the bytes contradict is passed over, since wrong labels are common and mojibake reads
worse than a guess. Linear in the length of the body. Not for: media types (`pipeline/read/sniff.py`).
"""

import codecs
import logging
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

_SINGLE_BYTE: Final = (
    *(f"cp{n}" for n in (866, 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258)),
    *(f"iso8859_{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    *("koi8_r", "koi8_u", "mac_roman", "mac_cyrillic"),
)
_MANY_BYTE: Final = (
    "utf_8",
    "cp932",
    "euc_jp",
    "iso2022_jp",
    "gb18030",
    "big5hkscs",
    "cp949",
    "utf_16_le",
    "utf_16_be",
)
_ALLOWED: Final = {codecs.lookup(name).name: name for name in (*_SINGLE_BYTE, *_MANY_BYTE)}
"""Codecs that the web uses; labels such as `utf-7` or `unicode_escape` would let a page say what its bytes do not."""

# Labels that mean another codec on the web than in Python: the web reads the vendor's superset.
_ALIASES: Final = {
    **dict.fromkeys(
        ("ascii", "us-ascii", "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "l1"), "cp1252"
    ),
    **dict.fromkeys(("x-user-defined", "ansi_x3.4-1968", "cp819", "ibm819", "x-cp1252"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "iso8859-9", "iso_8859-9", "latin5", "l5", "x-cp1254"), "cp1254"),
    **dict.fromkeys(("iso-8859-11", "iso8859-11", "tis-620", "dos-874", "windows-874"), "cp874"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "ms932"), "cp932"),
    **dict.fromkeys(("gb2312", "gb_2312", "gb_2312-80", "gbk", "x-gbk", "chinese", "csgb2312", "iso-ir-58"), "gb18030"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "ks_c_5601-1989", "ksc5601", "ksc_5601", "korean"), "cp949"),
    **dict.fromkeys(("windows-949", "cseuckr", "uhc"), "cp949"),
    **dict.fromkeys(("big5", "big5-hkscs", "cn-big5", "x-x-big5", "csbig5"), "big5hkscs"),
    **dict.fromkeys(("x-euc-jp", "cseucpkdfmtjapanese"), "euc_jp"),
    **dict.fromkeys(("utf-16", "unicode", "ucs-2", "utf-16le"), "utf_16_le"),
    **dict.fromkeys(("unicode-1-1-utf-8", "x-unicode20utf8", "unicode11utf8"), "utf_8"),
    **dict.fromkeys(("iso-8859-8-i", "logical", "visual"), "iso8859_8"),
    **dict.fromkeys(("macintosh", "mac", "x-mac-roman"), "mac_roman"),
    **dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian"), "mac_cyrillic"),
    **dict.fromkeys(("x-cp1250",), "cp1250"),
    **dict.fromkeys(("x-cp1251", "win-1251"), "cp1251"),
    **dict.fromkeys(("koi8-ru", "koi"), "koi8_u"),
}
_DETECTED: Final = [
    *("utf_8", "cp1252", "cp1251", "cp932", "euc_jp", "gb18030", "big5hkscs", "cp949", "koi8_r", "cp1250", "cp1253"),
    *("cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "iso8859_5", "cp866"),
]
_LATIN: Final = {"cp1250", "cp1254", "cp1257", "cp1258"}
_META_BYTES: Final = 8192
"""Where a declaration is looked for. Browsers stop at 1024; pages with long comments in front are not rare."""
_SAMPLE_BYTES: Final = 16_384
"""Text for detection; more makes it slower, not better."""
_WIDE_BYTES: Final = 2048
_WIDE_LEAST: Final = 32
"""Bytes; what is shorter tells nothing."""
_READABLE: Final = 0.9
"""Share of assigned letters, signs and blanks in text; noise read as UTF-16 has 0.75."""
_BLANKS: Final = 0.01
"""Share of blanks, line ends, tags and full stops, which tables of numbers do not have."""
_BROKEN_SHARE: Final = 0.002
"""Share of characters that may be undecodable before a label counts as wrong: a real page has a broken byte or two."""

_META: Final = re.compile(
    rb"<meta\b[^>]{0,400}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE
)
_XML: Final = re.compile(rb"\A\s{0,9}<\?xml\b[^>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9_.:-]{2,40})")
_HEADER: Final = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_TAG: Final = re.compile(rb"<[^<>]{0,4000}>")

logging.getLogger("charset_normalizer").setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, and how it was read."""

    text: str
    charset: str
    """Python's name of the codec."""
    note: str = ""
    """What a reader should know: a label that was passed over, characters that were lost."""


def codec_of(label: str) -> str | None:
    """Return the codec for a label as pages and headers give it, None for one that the web does not know."""
    name = label.strip().strip("\"'").lower()
    if name in _ALIASES:
        return _ALIASES[name]
    try:
        return _ALLOWED.get(codecs.lookup(name.replace("windows-", "cp")).name)
    except (LookupError, ValueError):
        return None


def decode(body: bytes, *, content_type: str = "") -> Decoded:
    """Return the text of `body`.

    Args:
        body: The bytes, unpacked.
        content_type: The `Content-Type` header; only its charset is read.
    """
    marked = _byte_order_mark(body)
    if marked is not None:
        codec, skip = marked
        return Decoded(body[skip:].decode(codec, "replace"), codec)
    wide = unmarked_utf16(body)
    if wide:  # whatever a label says: no other encoding of the web has zero bytes
        return Decoded(body.decode(wide, "replace"), wide)
    passed_over = ""
    for codec in _declared(body, content_type):
        text = _read_as(body, codec)
        if text is not None:
            return Decoded(text, codec, passed_over) if codec != "cp1252" else _latin_or_utf8(body, text, passed_over)
        passed_over = passed_over or f"labelled {codec}, which its bytes are not"
    if b"\x1b$" in body:  # seven bits a byte, so that it would pass for UTF-8
        japanese = _read_as(body, "iso2022_jp")
        if japanese is not None:
            return Decoded(japanese, "iso2022_jp", passed_over)
    try:
        return Decoded(body.decode("utf-8"), "utf_8", passed_over)
    except UnicodeDecodeError:
        return _detected(body, passed_over)


def _byte_order_mark(body: bytes) -> tuple[str, int] | None:
    if body.startswith(codecs.BOM_UTF8):
        return "utf_8", 3
    if body.startswith(codecs.BOM_UTF16_LE):
        return "utf_16_le", 2
    if body.startswith(codecs.BOM_UTF16_BE):
        return "utf_16_be", 2
    return None


def unmarked_utf16(body: bytes) -> str:
    """Return the codec of UTF-16 text without a byte order mark, empty for anything else.

    Told by the zero halves of blanks, digits and tags, which stand in even places or in odd ones, and by what the start
    then reads as: a table of small numbers has such zeros too, and no words.
    """
    start = body[:_WIDE_BYTES]
    even, odd = start[::2].count(0), start[1::2].count(0)
    if len(start) < _WIDE_LEAST:
        return ""
    if max(even, odd) * 25 < len(start) // 2 or min(even, odd) * 20 > max(even, odd):
        return ""
    codec = "utf_16_le" if odd > even else "utf_16_be"
    text = start[: len(start) // 2 * 2].decode(codec, "replace")
    readable = sum(letter in "\t\n\r" or unicodedata.category(letter)[0] in "LMNPSZ" for letter in text)
    blanks = sum(letter in " \t\n\r<。、，" for letter in text)
    return codec if readable >= _READABLE * len(text) > 1 and blanks >= _BLANKS * len(text) else ""


def _declared(body: bytes, content_type: str) -> list[str]:
    """Return the codecs that header and body name, in that order, each once."""
    labels = [m.group(1) for m in [_HEADER.search(content_type)] if m]
    start = body[:_META_BYTES]
    inside = [m.group(1).decode("ascii") for m in (_META.search(start), _XML.search(start)) if m]
    codecs_inside = [codec_of(label) for label in inside]
    # A declaration that could be read byte by byte cannot stand in UTF-16 text (WHATWG, "change the encoding").
    found = [codec_of(label) for label in labels] + [
        "utf_8" if codec in {"utf_16_le", "utf_16_be"} else codec for codec in codecs_inside
    ]
    return [codec for codec in dict.fromkeys(found) if codec is not None]


def _read_as(body: bytes, codec: str) -> str | None:
    """Return the text of `body` in `codec`, or None when too much of it is not in that codec."""
    try:
        text = body.decode(codec)
    except UnicodeDecodeError:
        text = body.decode(codec, "replace")
        if text.count("�") > max(2, _BROKEN_SHARE * len(text)):
            return None
    if codec.startswith("utf_16") and text.count("<") == 0 and body.count(b"<") > 1:
        return None  # 8-bit text that a header calls UTF-16 decodes without an error, into nothing
    return text


def _latin_or_utf8(body: bytes, text: str, note: str) -> Decoded:
    """Return UTF-8 where the bytes are valid UTF-8: Latin-1 is the label that servers give unasked."""
    if body.isascii():
        return Decoded(text, "cp1252", note)
    try:
        return Decoded(body.decode("utf-8"), "utf_8", note)
    except UnicodeDecodeError:
        return Decoded(text, "cp1252", note)


def _detected(body: bytes, note: str) -> Decoded:
    """Return the text in the codec that detection finds likeliest on a sample of the words."""
    broken_utf8 = _read_as(body, "utf_8")
    if broken_utf8 is not None:
        return Decoded(broken_utf8, "utf_8", note or "some bytes are not valid UTF-8")
    codec = _likeliest(_words(body))
    text = body.decode(codec, "replace")
    return Decoded(text, codec, "; ".join(filter(None, (note, f"no valid label: {codec} was guessed"))))


def _likeliest(sample: bytes) -> str:
    from charset_normalizer import from_bytes  # noqa: PLC0415  for pages without a right label only

    found = from_bytes(sample, cp_isolation=_DETECTED, enable_fallback=False, preemptive_behaviour=False)
    ranked = {match.encoding: match for match in found if match.encoding in _DETECTED}
    first = next(iter(ranked.values()), None)
    western = ranked.get("cp1252")
    if first is None:
        return "cp1252"
    if western is not None and first.encoding in _LATIN:
        # Latin codecs differ in a few letters; without a clear sign the commonest is the best guess.
        equal = western.chaos <= first.chaos + 0.01 and western.coherence >= first.coherence - 0.01
        return "cp1252" if equal else first.encoding
    return first.encoding


def _words(body: bytes) -> bytes:
    """Return up to `_SAMPLE_BYTES` of the texts between tags that are not plain ASCII, each once."""
    kept: dict[bytes, None] = {}
    size = 0
    for piece in _TAG.split(body[: 40 * _SAMPLE_BYTES]):
        if not piece.isascii():
            text = piece[:_SAMPLE_BYTES].strip()
            size += 0 if text in kept else len(text)
            kept[text] = None
            if size > _SAMPLE_BYTES:
                break
    return b"\n".join(kept)
