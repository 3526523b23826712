"""What a body is: its media type, and the encoding of its text.

The media type is determined by the first bytes, the `Content-Type` header and the name,
in that order. Binary data never passes as text, whatever the header says: an image
would be 100,000 tokens of noise. The encoding is decided as browsers do (WHATWG
Encoding), then by detection: byte order mark, UTF-16 by its zero bytes, `Content-Type`
header, `<meta>` or XML declaration, valid UTF-8, detection. A label that the bytes
contradict is passed over, since wrong labels are common and mojibake reads worse than a
guess. Linear in the length of the body."""

import codecs
import functools
import io
import logging
import mimetypes
import posixpath
import re
import unicodedata
import zipfile
from collections.abc import Mapping
from typing import Final, NamedTuple

import webencodings

from readers.converted import DAMAGED
from readers.format import (
    CSV,
    FEED,
    HTML,
    JSON,
    MARKDOWN,
    PDF,
    PLAIN,
    SOURCE,
    XML,
    format_of,
    formats,
)

_UNREAD_SIGNATURES: Final = {
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"\x00\x00\x01\x00": "image/x-icon",
    b"\x1f\x8b": "application/gzip",
    b"BZh": "application/x-bzip2",
    b"\xfd7zXZ\x00": "application/x-xz",
    b"(\xb5/\xfd": "application/zstd",
    b"7z\xbc\xaf'\x1c": "application/x-7z-compressed",
    b"Rar!\x1a\x07": "application/x-rar",
    b"\x7fELF": "application/x-elf",
    b"MZ\x90\x00": "application/x-msdownload",
    b"\x00asm": "application/wasm",
    b"SQLite format 3\x00": "application/x-sqlite3",
    b"RIFF": "audio/wav",
    b"OggS": "audio/ogg",
    b"ID3": "audio/mpeg",
    b"fLaC": "audio/flac",
    b"wOFF": "font/woff",
    b"wOF2": "font/woff2",
    b"\x1aE\xdf\xa3": "video/webm",
    b"GGUF": "application/x-gguf",
}
"""First bytes of files of no format that is read, and what to call them."""
SOURCE_LANGUAGES: Final = {
    **dict.fromkeys((".py", ".pyi"), "python"), **dict.fromkeys((".js", ".mjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".tsx"), "typescript"), **dict.fromkeys((".c", ".h"), "c"), ".cs": "csharp",
    **dict.fromkeys((".cc", ".cpp", ".hpp"), "cpp"), ".kt": "kotlin", ".rs": "rust", ".rb": "ruby", ".sh": "bash",
    ".ps1": "powershell", ".jl": "julia", **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".ini", ".cfg"), "ini"),
    **{f".{name}": name for name in ("java", "scala", "go", "php", "swift", "lua", "r", "sql", "css", "proto", "toml")},
}  # fmt: skip
"""Endings of programs and settings, and how highlighters name the language."""
_CONTROLS: Final = bytes(
    byte for byte in range(32) if byte not in (0, *range(8, 14), 27)
)
"""Bytes that text does not have; backspace and escape are in what consoles write, zero
is looked at by itself."""
_NOISE: Final = 0.01
"""Share of a text's first kilobyte that may be such bytes."""
_ZEROS: Final = 0.05
"""Share of it that may be zero bytes where all else is text."""
_BYTES: Final = "application/octet-stream"
_HTML_START: Final = re.compile(
    rb"(?:\s|<!--.{0,2000}?-->|<\?xml[^>]{0,200}>)*<(?:!doctype\s+html|html|head|body|title|meta"
    rb"|script|style|div|p|h[1-6]|table|article|main|section|br|a)[\s/>]",
    re.I | re.S,
)
_PAGE_START: Final = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)*(?:<!doctype\s+html|<html)[\s>]", re.I | re.S
)
"""How pages begin, and no text in Markdown does."""
_MARKUP_BYTES: Final = re.compile(rb"<|&(?:[a-zA-Z]{2,8}|#x?[0-9a-fA-F]{1,6});")
"""What may begin a tag, or an entity: a text without any is not HTML, whatever its
type."""
_DATA_START: Final = re.compile(rb"\s*(?:\{\s*(?:\"|\})|\[\s*[\[{\"\d])")


@functools.cache
def _by_ending() -> Mapping[str, str]:
    """Return the types that endings of names claim."""
    return {
        **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
        **dict.fromkeys(SOURCE_LANGUAGES, SOURCE),
        **{
            ending: file_format.types[0]
            for file_format in formats()
            if not file_format.binary
            for ending in file_format.endings
        },
    }


@functools.cache
def _our_type(declared_type: str) -> str:
    """Return the one of our types that a server's type means, empty for an unknown
    one."""
    for file_format in formats():
        if not file_format.binary and declared_type in (
            file_format.types[0],
            *file_format.also,
        ):
            return file_format.types[0]
    if declared_type in {HTML, "application/xhtml+xml"}:
        return HTML
    if declared_type.endswith("+json"):
        return JSON
    if declared_type.endswith("+xml"):
        return XML
    return PLAIN if declared_type.startswith("text/") else ""


def media_type(body: bytes, *, content_type: str = "", name: str = "") -> str:
    """Return the media type of `body`, that of no text as it is called; of `name` only
    the ending is read.

    What the bytes show counts before headers and names. Binary of no known kind is
    `application/octet-stream`, text of none plain."""
    start = body[:1024]
    declared_type = content_type.partition(";")[0].strip().lower()
    ending = posixpath.splitext(name)[1].lower()
    if binary := _binary_type(body, start, PDF if ending == ".pdf" else declared_type):
        return binary
    # A site's list of pages for models is Markdown, whatever its ending (llmstxt.org).
    by_name = MARKDOWN if name.endswith("/llms.txt") else _by_ending().get(ending, "")
    text = start.replace(b"\x00", b"")  # of UTF-16, or strayed into a text
    guess, kind = _guessed(text), _our_type(declared_type)
    if not kind:
        kind = by_name or guess
    if kind == HTML and declared_type:
        is_data = _DATA_START.match(text) and body.rstrip().endswith((b"}", b"]"))
        if is_data:
            return JSON
        if not _MARKUP_BYTES.search(body):
            return guess if guess != PLAIN else by_name or PLAIN
    if _PAGE_START.match(text) or (kind == CSV and guess == HTML):
        return FEED if guess == FEED else HTML
    if _says_more(by_name, kind):
        return by_name
    return guess if kind in {HTML, XML} and guess in {FEED, HTML} else kind


def _says_more(by_name: str, kind: str) -> bool:
    """Whether the type that a name claims is a finer one than the `kind` that is
    said."""
    name_format = format_of(by_name)
    if kind == PLAIN and by_name == SOURCE:
        return True
    return name_format is not None and (
        name_format.form_of == kind
        or (kind == PLAIN and name_format.indexed != "markup")
    )


def holds_text(kind: str) -> bool:
    """Return whether a media type from `media_type` is one that becomes HTML."""
    return kind in {HTML, PLAIN, SOURCE} or format_of(kind) is not None


def looks_like_text(start: bytes) -> bool:
    """Return whether a file of unknown ending that begins with `start`, at most a
    kilobyte, is text."""
    if _binary_type(start, start, ""):
        return False
    marked = start.startswith((b"\xff\xfe", b"\xfe\xff")) or unmarked_utf16(start) != ""
    return marked or len(start.translate(None, _CONTROLS)) >= (1 - _NOISE) * len(start)


def language_of(name: str) -> str:
    """Return the language of a program by its name's ending."""
    return SOURCE_LANGUAGES[posixpath.splitext(name)[1].lower()]


def _binary_type(body: bytes, start: bytes, declared_type: str) -> str:
    """Return the type of a binary body, or "" for text; of one that is not known what a
    server says, or `_BYTES`."""
    # Readers of PDF forgive what is before it: a mark of bytes' order, an HTTP head.
    begins = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"%PDF-")
    ends = declared_type == PDF or (b"endobj" in body and b"%%EOF" in body[-1024:])
    if begins or (b"%PDF-" in start and ends):
        return PDF
    signed = _signed_type(body, start)
    if signed or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return signed
    if b"\x00" in start and (unmarked_utf16(body) or _has_stray_zeros(start)):
        return ""
    control = len(start) - len(start.translate(None, _CONTROLS))
    if b"\x00" not in start and control * 2 <= len(start):
        return ""
    # A server's own type may be prose, so that only known ones are repeated.
    is_known = mimetypes.guess_extension(declared_type) is not None
    return (
        declared_type if is_known and not declared_type.startswith("text/") else _BYTES
    )


def _has_stray_zeros(start: bytes) -> bool:
    """Whether zero bytes are few among text: a log that was cut by a crash, a field of
    fixed width."""
    zeros = start.count(0)
    text = start.translate(None, b"\x00")
    if zeros > 1 + _ZEROS * len(start) or text.translate(None, _CONTROLS) != text:
        return False
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end >= len(text) - 3  # a letter that the first kilobyte cuts
    return True


def _signed_type(body: bytes, start: bytes) -> str:
    if start.startswith(b"PK\x03\x04"):
        return _zip_type(body)
    if start[8:12] == b"WEBP":
        return "image/webp"
    if start[4:8] == b"ftyp":
        return "video/mp4"
    words = all(byte > 31 or byte in b"\t\n\f\r" for byte in start)
    for signatures in (
        *(file_format.magic for file_format in formats()),
        _UNREAD_SIGNATURES,
    ):
        for magic, kind in signatures.items():
            # Text may begin with the letters of a short signature.
            if start.startswith(magic) and not (words and len(magic) < 4):
                return kind
    return ""


def _zip_type(body: bytes) -> str:
    """Return the type of an archive: the one that it names itself (OpenDocument, EPUB),
    else by its parts."""
    binary = [file_format for file_format in formats() if file_format.binary]
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            entry = archive.NameToInfo.get("mimetype")
            if entry is not None and entry.file_size <= 100:
                declared_type = archive.read(entry).decode("ascii", "replace").strip()
                if any(declared_type in file_format.types for file_format in binary):
                    return declared_type
            for file_format in binary:
                if any(
                    name.startswith(file_format.parts) for name in archive.namelist()
                ):
                    return file_format.types[0]
            listed = archive.NameToInfo.get("[Content_Types].xml")
            if listed is not None and listed.file_size <= 1_000_000:
                listing = archive.read(listed)
                for file_format in binary:  # an Office file's main part has any name
                    if f"{file_format.types[0]}.main+xml".encode() in listing:
                        return file_format.types[0]
    except (*DAMAGED, zipfile.BadZipFile):
        pass
    return "application/zip"


def _guessed(text: bytes) -> str:
    text = text.removeprefix(b"\xef\xbb\xbf")
    for file_format in formats():
        if file_format.begins is not None and file_format.begins.match(text):
            return file_format.types[0]
    if _HTML_START.match(text):
        return HTML
    if text.lstrip().startswith(b"<?xml"):
        return XML
    return JSON if text.lstrip()[:1] in {b"{", b"["} else PLAIN


# Encodings

_DETECTED: Final = (
    *(
        "utf_8",
        "cp1252",
        "cp1251",
        "cp932",
        "euc_jp",
        "gb18030",
        "big5hkscs",
        "cp949",
        "koi8_r",
        "cp1250",
        "cp1253",
    ),
    *("cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "iso8859_5", "cp866"),
)
_READ_AS: Final = {
    "shift_jis": "cp932",
    "gbk": "gb18030",
    "euc-kr": "cp949",
    "big5": "big5hkscs",
}
"""By the web's name: codecs in whose place it reads a vendor's superset."""
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LATIN_CODECS: Final = {"cp1250", "cp1254", "cp1257", "cp1258"}
_SNIFFED_BYTES: Final = 16_384
"""Bytes in which declarations, zeros and words for detection are looked for. Browsers
stop at 1024 for declarations; pages with long comments in front are not rare. More
words make detection slower, not better."""
_BROKEN_SHARE: Final = 0.002
"""Share of characters that may be undecodable before a label counts as wrong: a real
page has a broken byte or two."""

_META: Final = re.compile(
    rb"<meta\b[^>]{0,400}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([A-Za-z0-9_.:-]{2,40})",
    re.IGNORECASE,
)
_XML: Final = re.compile(
    rb"\A\s{0,9}<\?xml\b[^>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9_.:-]{2,40})"
)
_CHARSET: Final = re.compile(
    r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE
)
_TAG_BYTES: Final = re.compile(rb"<[^<>]{0,4000}>")

logging.getLogger("charset_normalizer").setLevel(logging.WARNING)


class Decoded(NamedTuple):
    """Text, and how it was read."""

    text: str
    note: str = ""
    """What a reader should know: a label that was passed over, characters that were
    lost."""


def codec_of(label: str) -> str | None:
    """Return the codec for a label as pages and headers give it; None for an unknown
    one, or one that the web does not use."""
    encoding = webencodings.lookup(label.strip("\"' \t"))
    if encoding is None or encoding.name in {"x-user-defined", "replacement"}:
        return None
    return _READ_AS.get(encoding.name) or str(encoding.codec_info.name)


def _as_labelled(body: bytes, content_type: str) -> tuple[str | None, str]:
    """Return the text of `body` by a label, None where the bytes contradict all of
    them; and which the first was that they contradict."""
    note = ""
    for codec in _declared(body, content_type):
        text = _read_as(body, codec)
        if text is not None:
            # Latin-1 is the label that servers give unasked.
            unicode = _read_strictly(body) if codec == "cp1252" else None
            return unicode or text, note
        note = note or f"labelled {codec}, which its bytes are not"
    return None, note


def decode(body: bytes, *, content_type: str = "") -> Decoded:
    """Return the text of `body`; of the header `content_type` only the charset is read.

    Never fails: a label that the bytes contradict is passed over, and bytes that fit no
    codec become U+FFFD. `note` says what is doubtful, "" if nothing is."""
    for byte_order_mark, codec in _BYTE_ORDER_MARKS:
        if body.startswith(byte_order_mark):
            return Decoded(body[len(byte_order_mark) :].decode(codec, "replace"))
    wide = unmarked_utf16(body)
    if wide:  # whatever a label says: no other encoding of the web has zero bytes
        return Decoded(body.decode(wide, "replace"))
    text, note = _as_labelled(body, content_type)
    if text is not None:
        return Decoded(text, note)
    # ISO-2022-JP has seven bits a byte, so that it would pass for UTF-8.
    text = (
        _read_as(body, "iso2022_jp") if b"\x1b$" in body else None
    ) or _read_strictly(body)
    if text is not None:
        return Decoded(text, note)
    text = _read_as(body, "utf-8")
    if text is not None:
        return Decoded(text, note or "some bytes are not valid UTF-8")
    codec = _likeliest(_words(body))
    guessed = f"no valid label: {codec} was guessed"
    return Decoded(
        body.decode(codec, "replace"), f"{note}; {guessed}" if note else guessed
    )


def unmarked_utf16(body: bytes) -> str:
    """Return the codec of UTF-16 text without a byte order mark, empty for anything
    else.

    The zero bytes of spaces, digits and tags are at even or at odd offsets. A
    table of small numbers has such zeros too, but control characters, or no blanks,
    among what it then reads as."""
    start = body[: min(len(body), _SNIFFED_BYTES) // 2 * 2]
    if _has_stray_zeros(start):
        return ""
    even, odd = start[::2].count(0), start[1::2].count(0)
    if min(even, odd) * 20 > max(even, odd) or max(even, odd) * 25 < len(start) // 2:
        return ""
    codec = "utf-16-le" if odd > even else "utf-16-be"
    text = start.decode(codec, "replace")
    blanks = sum(letter in " \t\n\r<。、，" for letter in text)
    noise = sum(
        unicodedata.category(letter) in {"Cc", "Cn", "Cs"} and not letter.isspace()
        for letter in text
    )
    return codec if blanks and noise <= _BROKEN_SHARE * len(text) else ""


def _declared(body: bytes, content_type: str) -> list[str]:
    """Return the codecs that header and body name, in that order, each once; unknown
    ones are left out, and UTF-16 in the body means UTF-8."""
    header = _CHARSET.search(content_type)
    start = body[:_SNIFFED_BYTES]
    inside = [
        codec_of(match.group(1).decode("ascii"))
        for match in (_META.search(start), _XML.search(start))
        if match
    ]
    # A declaration that could be read byte by byte cannot be in UTF-16 text (WHATWG,
    # "change the encoding").
    inside = [
        "utf-8" if codec in {"utf-16-le", "utf-16-be"} else codec for codec in inside
    ]
    return [
        codec
        for codec in dict.fromkeys(
            [codec_of(header.group(1)) if header else None, *inside]
        )
        if codec
    ]


def _read_strictly(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _read_as(body: bytes, codec: str) -> str | None:
    """Return the text of `body` in `codec`, or None when too much of it is not in that
    codec."""
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

    matches = from_bytes(
        sample,
        cp_isolation=list(_DETECTED),
        enable_fallback=False,
        preemptive_behaviour=False,
    )
    ranked = {match.encoding: match for match in matches if match.encoding in _DETECTED}
    likeliest = next(iter(ranked.values()), None)
    western = ranked.get("cp1252")
    if likeliest is None:
        return "cp1252"
    # Latin codecs differ in a few letters; without a clear sign the commonest is the best guess.
    is_close = (
        western is not None
        and western.chaos <= likeliest.chaos + 0.01
        and western.coherence >= likeliest.coherence - 0.01
    )
    return (
        "cp1252"
        if is_close and likeliest.encoding in _LATIN_CODECS
        else likeliest.encoding
    )


def _words(body: bytes) -> bytes:
    """Return up to `_SNIFFED_BYTES` bytes of the texts between tags that are not plain
    ASCII, each once."""
    texts: dict[bytes, None] = {}
    size = 0
    for piece in _TAG_BYTES.split(body[: 40 * _SNIFFED_BYTES]):
        if not piece.isascii():
            text = piece[:_SNIFFED_BYTES].strip()
            size += 0 if text in texts else len(text)
            texts[text] = None
            if size > _SNIFFED_BYTES:
                break
    return b"\n".join(texts)
