"""Documents that are archives of XML parts: opened with bounds on their number, size and elements.

The bounds hold before anything is parsed, so that a zip bomb or XML bomb costs the reading of its table of contents.
Not for: what the parts of a format mean (`docx.py`, `slides.py`, `sheets.py`, `opendocument.py`, `epub.py`).
"""

import io
import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote
from xml.parsers.expat import ExpatError

from lxml import etree

from pipeline.read.converted import DAMAGED, MAX_ITEMS, MAX_UNPACKED, Unreadable, person
from pipeline.read.text import child_text, has_own_entities, local_name, parse_xml

MAX_TAGS: Final = 600_000
"""Of a part that is held as a tree, which then takes up to 70 MB; of what is shown, fewer become a page's elements."""
_TEXTS: Final = (".xml", ".rels", ".opf", ".ncx", ".html", ".htm", ".xhtml", ".css")
_DAMAGED: Final = (*DAMAGED, zipfile.BadZipFile, ExpatError, etree.LxmlError)


class Package:
    """The parts of an open file."""

    def __init__(self, archive: zipfile.ZipFile, what: str) -> None:
        """Take an archive whose parts are of a sound number and size; `what` is how messages call the file."""
        self._archive = archive
        self.names = [part.filename for part in archive.infolist() if part.filename.lower().endswith(_TEXTS)]
        if len(self.names) > MAX_ITEMS:
            raise Unreadable(f"it is {what} of {len(self.names):,} parts, over the cap of {MAX_ITEMS:,}")
        unpacked = sum(archive.getinfo(name).file_size for name in self.names)
        if unpacked > MAX_UNPACKED:
            raise Unreadable(f"it is {what} that unpacks to {unpacked:,} bytes, over the cap of {MAX_UNPACKED:,}")
        for name in self.names:
            if name.endswith((".xml", ".rels", ".opf")) and has_own_entities(archive.read(name)):
                raise Unreadable(f"it is {what} with XML entities of its own, as only attacks have them")
        self.what = what

    def read(self, name: str) -> bytes:
        """Return a part's bytes, none for one that is not there or not text."""
        return self._archive.read(name) if name in self.names else b""

    def tree(self, name: str) -> etree._Element | None:
        """Return the root of an XML part, None for one that is not there."""
        body = self.bounded(name)
        return parse_xml(body) if body else None

    def bounded(self, name: str) -> bytes:
        """Return a part as `read` does, if it has no more than `MAX_TAGS` tags."""
        body = self.read(name)
        if body.count(b"<") > MAX_TAGS:
            raise Unreadable(f"it is {self.what} of more than {MAX_TAGS:,} tags: split it, or save it as CSV or text")
        return body

    def about(self) -> tuple[str, str]:
        """Return title and author of an Office file; its dates are those of a template."""
        core = self.tree("docProps/core.xml")
        if core is None:
            return "", ""
        app = self.tree("docProps/app.xml")
        tools = child_text(core, "description") + (child_text(app, "application") if app is not None else "")
        return child_text(core, "title"), person(child_text(core, "creator"), tools)

    def targets(self, part: str) -> dict[str, tuple[str, str]]:
        """Return what a part of an Office file refers to, by id: the last word of the type, and the other's name."""
        folder, name = posixpath.split(part)
        root = self.tree(f"{folder}/_rels/{name}.rels")
        found: dict[str, tuple[str, str]] = {}
        for link in root if root is not None else ():
            if local_name(link) == "relationship" and link.get("TargetMode") != "External":
                kind = link.get("Type", "").rpartition("/")[2]
                found[link.get("Id", "")] = (kind, resolved(folder, link.get("Target", "")))
        return found


def resolved(folder: str, target: str) -> str:
    """Return the name of a part that another one in `folder` refers to."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(path.lstrip("/") if path.startswith("/") else posixpath.join(folder, path))


@contextmanager
def open_package(body: bytes, what: str) -> Iterator[Package]:
    """Open a file of `body`; raises `Unreadable` where that, or anything done with it inside, finds it damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            yield Package(archive, what)
    except _DAMAGED as e:
        if "encrypted" in str(e):
            raise Unreadable(f"it is {what} with a password: save a copy without one") from e
        raise Unreadable(f"it is {what} that is damaged ({type(e).__name__})") from e
