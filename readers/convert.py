"""From the bytes of one source to a `Page`: the steps that web pages and local files
share.

CPU work without a network; call it with `pipeline.work.in_thread`. Not for: getting the
bytes (`pipeline/fetch/client.py`, `pipeline/fetch/files.py`)."""

import hashlib
import logging
import posixpath
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cancellation import check_cancelled
from errors import (
    BrokenExtra,
    MissingExtra,
    NeedsBrowser,
    SourceError,
    SourceUnreadable,
)
from readers import sniff
from readers.converted import (
    ALL_PAGES,
    MAX_UNPACKED,
    MOST_HIDDEN,
    MOSTLY_HIDDEN,
    Converted,
    Span,
    Unreadable,
    showing_hidden,
    unpacking,
    unplaced,
    without_extra,
)
from readers.format import HTML, SOURCE, Format, format_of, is_paged
from readers.html.document import read_document
from readers.html.scripts import NeedsScripts, look_at
from readers.html.xhtml import is_xhtml, xhtml_to_html
from readers.page import Document, Page
from readers.sniff import decode
from readers.text import plain
from readers.text.markup import legible_text
from readers.tree import count_words
from readers.unpack import PACKED, is_packed, unpacked

if TYPE_CHECKING:
    from readers.pdf.pdf_reading import PdfReading

_log: Final = logging.getLogger("winnow.read")
_BROWSER_HINT: Final = (
    "Look for another page with the same text, or for the site's API or feed; an operator can "
    "have such pages "
    "rendered: the extra browser (winnow doctor) and WINNOW_BROWSER=auto."
)
PAGELESS: Final = (
    "only PDF files and images have pages that can be requested; "
    "this is the whole document"
)
_TEXT_HINT: Final = (
    "Look for a version of it as a web page, PDF with text, Word or text file."
)


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of a source, and what came with them."""

    body: bytes
    """Unpacked."""
    url: str
    """What was asked for."""
    final_url: str
    """Where it was found."""
    content_type: str = ""
    """The `Content-Type` header, empty for files."""
    name: str = ""
    """File name or path of the URL, for its ending."""
    fetched_at: str = ""
    """ISO 8601 UTC time."""
    address: str = ""
    """Where its server was connected to; empty for files, and behind a proxy."""
    language: str = ""
    """What the server says, for documents that do not say it themselves."""
    notes: tuple[str, ...] = ()
    rendered: bool = False
    spoken: str = ""
    """HTML of the transcript of a web page's video or sound."""
    unread: str = ""
    """What of it could not be fetched."""
    span: Span = ALL_PAGES
    """Pages wanted of a PDF; of other documents all is read."""
    most: int = MAX_UNPACKED
    """Bytes that it may have unpacked."""


def kind_of(raw: Raw) -> str:
    """Return the media type of `raw`, by its bytes first."""
    return sniff.media_type(raw.body, content_type=raw.content_type, name=raw.name)


def unreadable(raw: Raw, why: object) -> SourceUnreadable:
    """Return the error that says why `raw` cannot be read as text."""
    hint = why.hint if isinstance(why, Unreadable) else ""
    return SourceUnreadable(
        f"{raw.url} cannot be read as text: {why}.",
        source=raw.url,
        hint=hint or _TEXT_HINT,
    )


def to_page(raw: Raw, *, pdf: "PdfReading | None" = None) -> Page:
    """Return `raw` as a page of HTML; `pdf` is a PDF that was read piece by piece
    already.

    Raises `NeedsBrowser` for a page that is empty until its scripts run,
    `SourceUnreadable` for what is binary, encrypted, scanned or empty, or takes more
    memory than there is."""
    try:
        with unpacking(raw.most):
            return _to_page(raw, pdf)
    except MemoryError as e:
        raise SourceUnreadable(
            f"{raw.url} could not be converted: it needs more memory than is "
            f"available.",
            source=raw.url,
            hint="Split it, or save it as text.",
        ) from e


def read_bytes(data: bytes, *, name: str, content_type: str) -> Document:
    """Return the document of a file; `readers.read` says what of."""
    return read_document(to_page(Raw(data, name, name, content_type, name=name)))


def _to_page(raw: Raw, pdf: "PdfReading | None") -> Page:
    # 1. something must be there
    if not raw.body.strip(b"\x00\t\n\f\r "):
        raise SourceUnreadable(
            f"{raw.url} is empty: there is no text to read.",
            source=raw.url,
            hint="Leave it out, or give another source.",
        )
    # 2. what it is
    if _is_packed_text(raw):
        raw = _unpacked(raw)
    kind = kind_of(raw)
    if not sniff.holds_text(kind):
        raise unreadable(raw, f"it is {kind}")
    # 3. as HTML
    as_html = _made(raw, kind, pdf)
    check_cancelled()
    # 4. as a page
    return Page(
        url=raw.url,
        final_url=raw.final_url,
        title=as_html.title,
        html=as_html.html,
        media_type=kind,
        language=as_html.language or raw.language,
        fetched_at=raw.fetched_at,
        content_hash=content_hash(as_html.html + as_html.tables),
        author=as_html.author,
        published=as_html.published,
        notes=(
            *raw.notes,
            *([] if raw.span == ALL_PAGES or is_paged(kind) else [PAGELESS]),
            *as_html.notes,
        ),
        unread="; ".join(
            filter(None, (raw.unread, as_html.unread, as_html.ledger.unread))
        ),
        tables_whole=bool(as_html.tables)
        or (not as_html.unread and as_html.ledger.leaves_tables_whole),
        trust=as_html.trust,
        hidden=as_html.hidden,
        tables=as_html.tables,
        rest=f"{raw.final_url.partition('#')[0]}#pages={as_html.rest}"
        if as_html.rest
        else "",
    )


def _made(raw: Raw, kind: str, pdf: "PdfReading | None") -> Converted:
    """Return `raw` as HTML; raises `NeedsBrowser` and `SourceUnreadable` as `to_page`
    does."""
    try:
        return pdf.converted() if pdf is not None else _convert(raw, kind)
    except NeedsScripts as e:
        raise NeedsBrowser(
            f"{raw.url} cannot be read as text: {e}.",
            source=raw.url,
            hint=_BROWSER_HINT,
        ) from e
    except Unreadable as e:
        raise unreadable(raw, e) from e


def _is_packed_text(raw: Raw) -> bool:
    """Whether a body is packed, and a source by its name or its type's, not an
    archive."""
    return is_packed(raw.body) and (
        posixpath.splitext(raw.name)[1].lower() in PACKED
        or raw.content_type.lower().startswith("text/")
    )


def _unpacked(raw: Raw) -> Raw:
    """Return `raw` with what its packed file holds; raises `SourceUnreadable` for one
    that is damaged, cut or too large. Only a file named as packed loses its content
    type."""
    try:
        body = unpacked(raw.body, max_bytes=raw.most)
    except Unreadable as e:
        raise unreadable(raw, e) from e
    stem, ending = posixpath.splitext(raw.name)
    if ending.lower() in PACKED:
        return replace(raw, body=body, content_type="", name=stem)
    # A server that packs a text without saying so has said what the text is.
    return replace(raw, body=body)


def content_hash(html: str) -> str:
    """Return 32 hex digits that name `html`."""
    return hashlib.blake2b(
        html.encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()


def converted(raw: Raw) -> Converted:
    """Return a file inside another, such as an attachment, as HTML.

    Raises `Unreadable` for what holds no text, is damaged, or needs its scripts to
    run."""
    kind = kind_of(raw)
    if not sniff.holds_text(kind):
        raise Unreadable(f"it is {kind}")
    try:
        return _convert(raw, kind)
    except NeedsScripts as e:
        raise Unreadable(str(e)) from e


def _convert(raw: Raw, kind: str) -> Converted:
    """Return a body of one of our types as HTML; of a text whose reader fails on it the
    legible text, with a note.

    Raises `Unreadable` or `NeedsScripts` as the format does, and `Unreadable` for
    another file whose reader fails: whatever a reader did not foresee is a fault of
    this source, never of the call."""
    try:
        return _by_format(raw, kind)
    except (NeedsScripts, Unreadable, SourceError, MemoryError):
        raise
    except (MissingExtra, BrokenExtra) as error:
        raise Unreadable(f"it is {kind}: {without_extra(error)}") from error
    except Exception as error:
        _log.exception("the reader of %s failed", kind)
        if kind.startswith("text/") or kind.endswith(("xml", "json")):
            text = decode(raw.body, content_type=raw.content_type).text
            return legible_text(text)
        raise Unreadable(
            f"it is damaged, or of a form that Winnow cannot read "
            f"({type(error).__name__} in the reader of {kind})"
        ) from error


def _by_format(raw: Raw, kind: str) -> Converted:
    """Return a body as its format's reader makes it; what is not what it claims to be is
    read as plain text.

    Zero bytes of a text are dropped; a doubtful encoding is a note."""
    file_format = format_of(kind)
    if file_format is not None and file_format.paged:
        return _all_pages(raw, file_format)
    as_html: Converted | None = None
    if file_format is not None and file_format.reads == "bytes":
        as_html = _judged(raw.body, file_format)
    if as_html is not None:
        return as_html
    decoded = decode(raw.body, content_type=raw.content_type)
    as_html = _text_to_html(raw, kind, decoded.text.replace("\x00", ""), file_format)
    return (
        replace(as_html, notes=(f"encoding: {decoded.note}", *as_html.notes))
        if decoded.note
        else as_html
    )


def _judged(body: bytes | str, file_format: Format) -> Converted | None:
    """Return a file as its reader makes it; where more words, and many, would be left out
    for their looks than are shown, with all of them and a note: looks that we misread lose
    no file. What is hidden by the program's own means (rows, sheets, slides) stays out."""
    as_html: Converted | None = None
    error: Unreadable | None = None
    try:
        as_html = file_format.to_html(body)
    except Unreadable as e:
        error = e
    if error is None and (as_html is None or as_html.hidden <= MOST_HIDDEN):
        return as_html
    with showing_hidden():
        try:
            whole: Converted = file_format.to_html(body)
        except Unreadable as e:
            raise error or e from e
    shown = count_words(as_html.html) if as_html else 0
    if count_words(whole.html) - shown > max(MOST_HIDDEN, shown):
        return replace(whole, notes=(MOSTLY_HIDDEN, *whole.notes))
    if error is not None:
        raise error
    return as_html


def _text_to_html(
    raw: Raw, kind: str, text: str, file_format: Format | None
) -> Converted:
    if kind == HTML:
        if is_xhtml(raw.content_type, raw.name, text):
            text = xhtml_to_html(text)
        return look_at(unplaced(text) + raw.spoken, rendered=raw.rendered)
    if kind == SOURCE:
        return plain.source_to_html(text, sniff.language_of(raw.name))
    is_text = file_format is not None and file_format.reads == "text"
    as_html = (
        _judged(text, file_format) if file_format is not None and is_text else None
    )
    return as_html or plain.plain_to_html(text)


def _all_pages(raw: Raw, paged: Format) -> Converted:
    """Return the pages wanted of a PDF or an image, as far as they are read in its
    time."""
    reading = paged.to_html(raw.body, raw.span)
    reading.read()
    as_html: Converted = reading.converted()
    return as_html
