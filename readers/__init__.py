"""Readers: the bytes of a file or page in, a page of HTML and its document out.

A library of its own, which imports no other room (`README.md`)."""

from typing import TYPE_CHECKING

from seams import later

if TYPE_CHECKING:  # `readers.format` is imported at every start, the readers are not
    from readers.page import Document


def read(data: bytes, *, name: str = "", content_type: str = "") -> "Document":
    """Return what a file of this name, or a body of this `Content-Type`, says: blocks
    in reading order; its `page` has the HTML, title, notes and what was not read.

    Raises `errors.SourceUnreadable` with the reason, for a file whose reader fails as
    well; `errors.NeedsBrowser` for a page that is empty until its scripts run."""
    document: Document = later("readers.convert", "read_bytes")(
        data, name=name, content_type=content_type
    )
    return document
