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
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pipeline.document.converted import DAMAGED
from pipeline.read.format import (
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

OLE: Final = "application/x-ole-storage"
_TYPES: Final = "[Content_Types].xml"
_MOST_TYPES: Final = 1_000_000
"""Bytes of the list of types."""
_OLD_STREAMS: Final = {
    "EncryptedPackage": "an Office file with a password: save a copy without one",
    "WordDocument": "a Word file of the old form: save it as .docx",
    "PowerPoint Document": "a presentation of the old form: save it as .pptx",
    "Workbook": "a workbook of the old form: save it as .xlsx or .csv",
    "Book": "a workbook of the old form: save it as .xlsx or .csv",
    "__substg1.0_": "a message of Outlook's form: save it as .eml or text",
}
"""What files of Microsoft's older container hold, and what to do with them."""

# Signatures at the start of a file of no format that is read, and what to call it.
_UNREAD_IMAGES: Final = (
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"(\xb5/\xfd", "application/zstd"),
    (b"7z\xbc\xaf'\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/x-rar"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ\x90\x00", "application/x-msdownload"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/x-sqlite3"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"GGUF", "application/x-gguf"),
)
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
"""Share of a text's first kilobyte that may be zeros or such bytes."""
_ZEROS: Final = 0.05
"""Share of it that may be zero bytes where all else is text."""
_BYTES: Final = "application/octet-stream"
_TAGS: Final = rb"!doctype\s+html|html|head|body|title|meta|script|style|div|p|h[1-6]|table|article|main|section|br|a"
_HTML_START: Final = re.compile(
    rb"(?:\s|<!--.{0,2000}?-->|<\?xml[^>]{0,200}>)*<(?:" + _TAGS + rb")[\s/>]",
    re.I | re.S,
)
_UNSAID_TYPES: Final = {
    "",
    _BYTES,
    "binary/octet-stream",
    "application/unknown",
    "unknown/unknown",
}
_PLAIN_TYPES: Final = (
    *("application/javascript", "application/x-javascript", "application/x-sh"),
    *("application/x-yaml", "application/yaml", "application/toml", "application/sql"),
    *("application/x-tex", PLAIN),
)
"""Types of texts that are read as they are."""
_OTHERS: Final = (
    *("image/avif", "image/heic", "video/mp4", "application/vnd.rar"),
    *("application/java-archive", "font/otf"),
)
"""Types beside those of Python's table."""


class _Known(NamedTuple):
    """What the formats say of bytes, names and types, put together for looking things
    up."""

    magic: Sequence[tuple[bytes, str]]
    """First bytes, and the type they mean."""
    by_ending: Mapping[str, str]
    """The type that a name's ending claims."""
    by_type: Mapping[str, str]
    """The type of ours that a server's type means."""
    nameable: frozenset[str]
    """Types as messages may show them: a server's own may be prose, so that only known
    ones are repeated."""
    begins: Sequence[tuple[re.Pattern[bytes], str]]
    """How texts begin that are not markup, and feeds."""
    by_part: Mapping[str, str]
    """Types of ZIP archives by a part that only they have."""
    archives: frozenset[str]
    """Types that an archive may name itself."""
    programs: Mapping[bytes, str]
    """Types of Office's archives by the program in the type of the main part, whose
    name may be any (Word for the web writes `word/document2.xml`)."""
    main: re.Pattern[bytes]
    """Finds that program in the list of types."""


@functools.cache
def _known() -> _Known:
    every = formats()
    magic = [
        *(
            (start, kind)
            for file_format in every
            for start, kind in file_format.magic.items()
        ),
        *_UNREAD_IMAGES,
    ]
    programs = {
        name.encode(): file_format.types[0]
        for file_format in every
        for name in file_format.programs
    }
    texts = [file_format for file_format in every if not file_format.binary]
    return _Known(
        magic=magic,
        by_ending={
            **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
            **dict.fromkeys(SOURCE_LANGUAGES, SOURCE),
            **{
                ending: file_format.types[0]
                for file_format in texts
                for ending in file_format.endings
            },
        },
        by_type={
            **dict.fromkeys((HTML, "application/xhtml+xml"), HTML),
            **dict.fromkeys(_PLAIN_TYPES, PLAIN),
            **{
                kind: file_format.types[0]
                for file_format in texts
                for kind in (file_format.types[0], *file_format.also)
            },
        },
        nameable=frozenset(
            (
                *mimetypes.MimeTypes(()).types_map[True].values(),
                *(kind for _, kind in magic),
                *_OTHERS,
            )
        )
        - {_BYTES},
        begins=[
            (file_format.begins, file_format.types[0])
            for file_format in every
            if file_format.begins is not None
        ],
        by_part={
            part_name: file_format.types[0]
            for file_format in every
            for part_name in file_format.parts
        },
        archives=frozenset(
            kind
            for file_format in every
            if file_format.binary
            for kind in file_format.types
        ),
        programs=programs,
        main=re.compile(
            rb"\.(?:ms-)?(" + b"|".join(programs) + rb")[\w.-]*\.main\+xml"
        ),
    )


_MARKUP_BYTES: Final = re.compile(rb"<|&(?:[a-zA-Z]{2,8}|#x?[0-9a-fA-F]{1,6});")
"""What may begin a tag, or an entity: a text without any is not HTML, whatever its
type."""
_DATA_START: Final = re.compile(rb"\s*(?:\{\s*(?:\"|\})|\[\s*[\[{\"\d])")
_PAGE_START: Final = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)*(?:<!doctype\s+html|<html)[\s>]",
    re.IGNORECASE | re.DOTALL,
)
"""How pages begin, and no text in Markdown does."""
_WORKBOOK_TYPES: Final = frozenset(
    {
        "application/vnd.ms-excel",
        "application/msexcel",
        "application/csv",
        "application/x-csv",
    }
)
"""Types that servers give CSV because of the program that opens it."""


def media_type(body: bytes, *, content_type: str = "", name: str = "") -> str:
    """Return the media type of `body`, that of no text as it is called; of `name` only
    the ending is read.

    What the bytes show counts before headers and names. Binary of no known kind is
    `application/octet-stream`, text of none plain."""
    start = body[:1024]
    declared_type = content_type.partition(";")[0].strip().lower()
    binary = _binary_type(body, start, declared_type)
    if binary:
        return binary
    # A site's list of pages for models is Markdown, whatever its ending (llmstxt.org).
    by_name = (
        MARKDOWN
        if name.endswith("/llms.txt")
        else _known().by_ending.get(posixpath.splitext(name)[1].lower(), "")
    )
    # Zeros are UTF-16's, or strayed into a text.
    if b"\x00" not in start and (
        clear := _clear_type(body, start, declared_type, by_name)
    ):
        return clear
    if declared_type in _UNSAID_TYPES:
        declared_type = by_name or _guessed(start)
    return _text_type(declared_type, by_name, start)


def _clear_type(body: bytes, start: bytes, declared_type: str, by_name: str) -> str:
    """Return the type that text shows in spite of what a server says, empty where that
    may be right."""
    text = start.removeprefix(b"\xef\xbb\xbf")
    if declared_type == HTML:
        is_data = _DATA_START.match(text) and body.rstrip().endswith((b"}", b"]"))
        return JSON if is_data else _unmarked_type(body, start, by_name)
    if declared_type in _UNSAID_TYPES or declared_type.endswith(("+xml", "/xml")):
        return ""
    if _PAGE_START.match(text):
        return HTML
    if declared_type.startswith(("image/", "audio/", "video/", "font/")) and _is_words(
        start
    ):
        guess = _guessed(start)
        return by_name if by_name and guess == PLAIN else guess
    return ""


def _unmarked_type(body: bytes, start: bytes, by_name: str) -> str:
    """Return the type of what a server calls HTML and has no markup, empty with
    markup."""
    if _MARKUP_BYTES.search(body):
        return ""
    guess = _guessed(start)
    return guess if guess != PLAIN else by_name or PLAIN


def _is_words(start: bytes) -> bool:
    """Whether the beginning of a body is UTF-8 without a sign that text does not
    have."""
    if start.translate(None, _CONTROLS + b"\x00") != start:
        return False
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end >= len(start) - 3  # a letter that the first kilobyte cuts
    return True


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


def old_format(body: bytes) -> str:
    """Return what a file of Microsoft's older container is, and what to do with it."""
    descriptions = (
        description
        for name, description in _OLD_STREAMS.items()
        if name.encode("utf-16-le") in body
    )
    return next(
        descriptions, "a file of Microsoft's older container: save it in a newer form"
    )


def language_of(name: str) -> str:
    """Return the language of a program by its name's ending."""
    return SOURCE_LANGUAGES[posixpath.splitext(name)[1].lower()]


def _is_pdf(body: bytes, start: bytes, declared_type: str) -> bool:
    """Whether a body with the sign of a PDF is one: readers forgive what is before it,
    a mark of bytes' order or an HTTP head."""
    begins = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"%PDF-")
    return (
        begins
        or declared_type == PDF
        or (b"endobj" in body and b"%%EOF" in body[-1024:])
    )


def _binary_type(body: bytes, start: bytes, declared_type: str) -> str:
    """Return the type of a binary body, or "" for text; `_BYTES` for one that is not
    known."""
    if b"%PDF-" in start[:1024] and _is_pdf(body, start, declared_type):
        return PDF
    signed = _signed_type(body, start)
    if signed or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return signed
    if b"\x00" in start and (unmarked_utf16(body) or _has_stray_zeros(start)):
        return ""
    control = len(start) - len(start.translate(None, _CONTROLS))
    if b"\x00" in start or control * 2 > len(start):
        return _unread_type(declared_type)
    return ""


def _unread_type(declared_type: str) -> str:
    """Return the type that a server gives a binary body, `_BYTES` where that is not a
    known one."""
    is_known = declared_type in _known().nameable and not declared_type.startswith(
        "text/"
    )
    return declared_type if is_known else _BYTES


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
    """Return the type that a signature in the first bytes names, empty without one."""
    if start.startswith(b"PK\x03\x04"):
        return _zip_type(body)
    if start.startswith(b"RIFF") and start[8:12] in {b"WEBP", b"WAVE", b"AVI "}:
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(
            start[8:12], "video/x-msvideo"
        )
    if start[4:8] == b"ftyp":
        return "video/mp4"
    words = all(byte > 31 or byte in b"\t\n\f\r" for byte in start)
    # Text may begin with the letters of a short signature.
    return next(
        (
            kind
            for magic, kind in _known().magic
            if start.startswith(magic) and not (words and len(magic) < 4)
        ),
        "",
    )


def _zip_type(body: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            # A part says what it is, in OpenDocument and EPUB.
            type_entry = archive.NameToInfo.get("mimetype")
            declared_type = (
                archive.read(type_entry).decode("ascii", "replace").strip()
                if type_entry and type_entry.file_size <= 100
                else ""
            )
            known_types = _known()
            if declared_type in known_types.archives:
                return declared_type
            types_by_part = (
                kind
                for part_name, kind in known_types.by_part.items()
                if part_name in archive.NameToInfo
            )
            return next(types_by_part, "") or _office_type(archive) or "application/zip"
    except (*DAMAGED, zipfile.BadZipFile):
        return "application/zip"


def _office_type(archive: zipfile.ZipFile) -> str:
    """Return the type of an Office file by the type of its main part; empty for other
    archives, and for a list of types over `_MOST_TYPES` bytes."""
    listed = archive.NameToInfo.get(_TYPES)
    types = (
        archive.read(listed)
        if listed is not None and listed.file_size <= _MOST_TYPES
        else b""
    )
    match = _known().main.search(types)
    return _known().programs[match[1]] if match else ""


def _guessed(start: bytes) -> str:
    text = start.removeprefix(b"\xef\xbb\xbf")
    matched_type = next(
        (kind for begins, kind in _known().begins if begins.match(text)), ""
    )
    if matched_type:
        return matched_type
    if _HTML_START.match(text):
        return HTML
    if text.lstrip().startswith(b"<?xml"):
        return XML
    return JSON if text.lstrip()[:1] in {b"{", b"["} else PLAIN


_NARROWER: Final = {HTML: {FEED}, XML: {FEED, HTML}}
"""Which types the bytes of markup may show instead of the one that is said."""


def _text_type(declared_type: str, by_name: str, start: bytes) -> str:
    """Return our type for a server's type or a file name.

    Of an unknown one what the bytes look like, but those of pictures and sound as they
    are."""
    kind = _meant(declared_type)
    if _says_more(by_name, kind):
        return by_name
    if kind in _NARROWER:
        guess = _guessed(start)
        return guess if guess in _NARROWER[kind] else kind
    if not kind and (
        declared_type.startswith("application/")
        or declared_type not in _known().nameable
    ):
        # The bytes are text, whatever program they are said to be for: CSV as Excel's, a log as a
        # download.
        guess = _guessed(start)
        return (
            (by_name or (CSV if declared_type in _WORKBOOK_TYPES else PLAIN))
            if guess == PLAIN
            else guess
        )
    return kind or declared_type


def _meant(declared_type: str) -> str:
    """Return the one of our types that a server's type means, empty for an unknown
    one."""
    if kind := _known().by_type.get(declared_type, ""):
        return kind
    if declared_type.endswith("+json"):
        return JSON
    if declared_type.endswith("+xml"):
        return XML
    return PLAIN if declared_type.startswith("text/") else ""


def _says_more(by_name: str, kind: str) -> bool:
    """Whether the type that a name claims is a finer one than the `kind` that is
    said."""
    if kind == PLAIN and by_name == SOURCE:
        return True
    name_format = format_of(by_name)
    if name_format is None or not kind:
        return False
    return name_format.form_of == kind or (
        kind == PLAIN and name_format.indexed != "markup"
    )


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
_ALLOWED: Final = frozenset(
    codecs.lookup(name).name
    for name in (
        *_DETECTED,
        *(f"iso8859_{n}" for n in (2, 3, 4, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(
            "koi8_u",
            "mac_roman",
            "mac_cyrillic",
            "iso2022_jp",
            "utf_16_le",
            "utf_16_be",
        ),
    )
)
"""Codecs that the web uses; labels such as `utf-7` or `unicode_escape` would let a page
say what its bytes do not."""
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
    name = label.strip().strip("\"'").lower()
    name = _WEB_LABELS.get(name) or name.replace("windows-", "cp").replace("x-", "")
    try:
        codec_name = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    codec_name = _READ_AS.get(codec_name, codec_name)
    return codec_name if codec_name in _ALLOWED else None


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
