"""What a body is: its media type from the first bytes, the `Content-Type` header and the name, in that order.

Binary data never passes as text, whatever the header says: an image would be 100,000 tokens of noise. Not for: the
encoding of text (`pipeline/read/charset.py`).
"""

import io
import posixpath
import re
import zipfile
from typing import Final

from pipeline.read.charset import unmarked_utf16
from pipeline.read.converted import DAMAGED

HTML: Final = "text/html"
PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_OOXML: Final = "application/vnd.openxmlformats-officedocument"
PPTX: Final = f"{_OOXML}.presentationml.presentation"
XLSX: Final = f"{_OOXML}.spreadsheetml.sheet"
ODF: Final = frozenset(f"application/vnd.oasis.opendocument.{kind}" for kind in ("text", "spreadsheet", "presentation"))
EPUB: Final = "application/epub+zip"
RTF: Final = "application/rtf"
MAIL: Final = "message/rfc822"
MBOX: Final = "application/mbox"
NOTEBOOK: Final = "application/x-ipynb+json"
SUBTITLES: Final = "text/vtt"
MARKDOWN: Final = "text/markdown"
JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
FEED: Final = "application/feed+xml"
XML: Final = "application/xml"
CSV: Final = "text/csv"
PLAIN: Final = "text/plain"
GZIP: Final = "application/gzip"
SOURCE: Final = "text/x-source"

PAGED: Final = frozenset({PDF, "image/png", "image/jpeg", "image/tiff", "image/webp"})
"""What has pages that are images or may be."""
HEAVY: Final = frozenset({*PAGED, DOCX, PPTX, XLSX, EPUB, RTF, MBOX, *ODF})
"""What is converted in a process of its own, whatever its size."""
OLE: Final = "application/x-ole-storage"
_PARTS: Final = {"word/document.xml": DOCX, "ppt/presentation.xml": PPTX, "xl/workbook.xml": XLSX}
"""By a part that only they have."""
_OLD: Final = {
    "EncryptedPackage": "an Office file with a password: save a copy without one",
    "WordDocument": "a Word file of the old form: save it as .docx",
    "PowerPoint Document": "a presentation of the old form: save it as .pptx",
    "Workbook": "a workbook of the old form: save it as .xlsx or .csv",
    "Book": "a workbook of the old form: save it as .xlsx or .csv",
    "__substg1.0_": "a message of Outlook's form: save it as .eml or text",
}
"""What files of Microsoft's older container hold, and what to do with them."""

# Signatures at the start of a file, and what to call it.
_MAGIC: Final = (
    (b"\x89PNG\r\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    *((start, "image/tiff") for start in (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x1f\x8b", GZIP),
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
    (b"{\\rtf", RTF),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"GGUF", "application/x-gguf"),
)
SOURCES: Final = {
    **dict.fromkeys((".py", ".pyi"), "python"), **dict.fromkeys((".js", ".mjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".tsx"), "typescript"), **dict.fromkeys((".c", ".h"), "c"), ".cs": "csharp",
    **dict.fromkeys((".cc", ".cpp", ".hpp"), "cpp"), ".kt": "kotlin", ".rs": "rust", ".rb": "ruby", ".sh": "bash",
    ".ps1": "powershell", ".jl": "julia", **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".ini", ".cfg"), "ini"),
    **{f".{name}": name for name in ("java", "scala", "go", "php", "swift", "lua", "r", "sql", "css", "proto", "toml")},
}  # fmt: skip
"""Endings of programs and settings, and how highlighters name the language."""
_BY_NAME: Final = {
    **dict.fromkeys((".md", ".markdown", ".mdown"), MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".json", ".geojson", ".jsonld"), JSON),
    ".ipynb": NOTEBOOK,
    **dict.fromkeys((".vtt", ".srt"), SUBTITLES),
    ".eml": MAIL,
    **dict.fromkeys((".mbox", ".mbx"), MBOX),
    **dict.fromkeys((".jsonl", ".ndjson"), JSON_LINES),
    **dict.fromkeys((".rss", ".atom"), FEED),
    **dict.fromkeys((".csv", ".tsv"), CSV),
    **dict.fromkeys(SOURCES, SOURCE),
    ".xml": XML,
    ".pdf": PDF,
    ".docx": DOCX,
}
_TAGS: Final = rb"!doctype\s+html|html|head|body|title|meta|script|style|div|p|h[1-6]|table|article|main|section|br|a"
_HTML_START: Final = re.compile(rb"(?:\s|<!--.{0,2000}?-->|<\?xml[^>]{0,200}>)*<(?:" + _TAGS + rb")[\s/>]", re.I | re.S)
_STARTS: Final = (
    (re.compile(rb"WEBVTT|\s*\d+[ \t]*\r?\n(?:\d\d:){2}\d\d,\d{3} --> "), SUBTITLES),
    (re.compile(rb"From [^\n]{1,200}\n[A-Za-z][\w-]*:\s"), MBOX),
    # Fields of a head, one of which only mail has.
    (re.compile(rb"(?ims)(?=.{0,1000}?^(?:message-id|mime-version|received):)[a-z][\w-]*:[^\n]*\n[a-z \t]"), MAIL),
)
"""How texts begin that are not markup."""
_FEED_START: Final = re.compile(rb"<(?:rss|feed|rdf:RDF)[\s>]")
_UNSAID: Final = {"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown"}
_KNOWN: Final = {
    **dict.fromkeys((HTML, "application/xhtml+xml"), HTML),
    **dict.fromkeys(("application/rss+xml", "application/atom+xml", "application/rdf+xml", FEED), FEED),
    **dict.fromkeys((XML, "text/xml"), XML),
    **dict.fromkeys((JSON, "text/json"), JSON),
    **dict.fromkeys((JSON_LINES, "application/jsonl", "application/json-seq"), JSON_LINES),
    **dict.fromkeys((MARKDOWN, "text/x-markdown"), MARKDOWN),
    **dict.fromkeys((CSV, "text/tab-separated-values"), CSV),
    **dict.fromkeys((SUBTITLES, "application/x-subrip", "text/srt"), SUBTITLES),
    **{kind: kind for kind in (MAIL, MBOX, NOTEBOOK)},
    **dict.fromkeys(("application/javascript", "application/x-javascript", "application/x-sh"), PLAIN),
    **dict.fromkeys(("application/x-yaml", "application/yaml", "application/toml", "application/sql"), PLAIN),
    **dict.fromkeys(("application/x-tex", PLAIN), PLAIN),
}


def media_type(body: bytes, *, content_type: str = "", name: str = "") -> str:
    """Return the media type of `body`, that of no text as it is called; of `name` only the ending is read."""
    start = body[:1024]
    said = content_type.partition(";")[0].strip().lower()
    binary = _binary_type(body, start, said)
    if binary:
        return binary
    # A site's list of pages for models is Markdown, whatever its ending (llmstxt.org).
    by_name = MARKDOWN if name.endswith("/llms.txt") else _BY_NAME.get(posixpath.splitext(name)[1].lower(), "")
    if said in _UNSAID:
        said = by_name if by_name and by_name not in {PDF, DOCX} else _guessed(start)
    return _text_type(said, by_name, start)


def holds_text(kind: str) -> bool:
    """Return whether a media type from `media_type` is one that becomes HTML."""
    texts = {HTML, MARKDOWN, JSON, JSON_LINES, FEED, XML, CSV, PLAIN, SOURCE, MAIL, NOTEBOOK, SUBTITLES}
    return kind in HEAVY or kind in texts


def told_old(body: bytes) -> str:
    """Return what a file of Microsoft's older container is, and what to do with it."""
    found = (told for name, told in _OLD.items() if name.encode("utf-16-le") in body)
    return next(found, "a file of Microsoft's older container: save it in a newer form")


def language_of(name: str) -> str:
    """Return the language of a program by its name's ending."""
    return SOURCES[posixpath.splitext(name)[1].lower()]


def _binary_type(body: bytes, start: bytes, said: str) -> str:
    """Return the type of a body that is no text, empty for text."""
    if b"%PDF-" in start and (start.lstrip().startswith(b"%PDF-") or said == PDF):
        return PDF
    signed = _signed_type(body, start)
    if signed or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return signed
    if b"\x00" in start and unmarked_utf16(body):
        return ""
    control = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in start)
    if b"\x00" in start or control * 2 > len(start):
        return said if said and not said.startswith("text/") and said not in _UNSAID else "application/octet-stream"
    return ""


def _signed_type(body: bytes, start: bytes) -> str:
    """Return the type that a signature in the first bytes names, empty without one."""
    if start.startswith(b"PK\x03\x04"):
        return _zip_type(body)
    if start.startswith(b"RIFF") and start[8:12] in {b"WEBP", b"WAVE", b"AVI "}:
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(start[8:12], "video/x-msvideo")
    if start[4:8] == b"ftyp":
        return "video/mp4"
    words = all(byte > 31 or byte in b"\t\n\f\r" for byte in start)
    # Text may begin with the letters of a short signature.
    return next((kind for magic, kind in _MAGIC if start.startswith(magic) and not (words and len(magic) < 4)), "")


def _zip_type(body: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            # A part says what it is, in OpenDocument and EPUB.
            named = archive.NameToInfo.get("mimetype")
            said = archive.read(named).decode("ascii", "replace").strip() if named and named.file_size <= 100 else ""
            said = EPUB if not said and "META-INF/container.xml" in archive.NameToInfo else said
            office = (kind for part, kind in _PARTS.items() if part in archive.NameToInfo)
            return said if said in ODF or said == EPUB else next(office, "application/zip")
    except (*DAMAGED, zipfile.BadZipFile):
        return "application/zip"


def _guessed(start: bytes) -> str:
    text = start.removeprefix(b"\xef\xbb\xbf")
    named = next((kind for begins, kind in _STARTS if begins.match(text)), "")
    if named:
        return named
    if _FEED_START.search(text) and text.lstrip().startswith(b"<"):
        return FEED
    if _HTML_START.match(text):
        return HTML
    if text.lstrip().startswith(b"<?xml"):
        return XML
    return JSON if text.lstrip()[:1] in {b"{", b"["} else PLAIN


def _text_type(said: str, by_name: str, start: bytes) -> str:
    """Return the one of our types that a type said by a server or a name stands for; unknown types as they are."""
    kind = _KNOWN.get(said, "")
    if not kind and said.endswith("+json"):
        kind = JSON
    elif not kind and said.endswith("+xml"):
        kind = XML
    elif not kind and said.startswith("text/"):
        kind = PLAIN
    if kind == PLAIN and by_name in {MARKDOWN, JSON, JSON_LINES, CSV, SOURCE, MAIL, MBOX, NOTEBOOK, SUBTITLES}:
        return by_name
    if kind == JSON and by_name == NOTEBOOK:
        return NOTEBOOK
    if kind in {HTML, XML}:
        guess = _guessed(start)
        return guess if guess == FEED or (kind == XML and guess == HTML) else kind
    return kind or said
