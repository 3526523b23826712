"""Documents that are archives of XML parts: opened with bounds on their number, size
and elements.

The bounds hold before anything is parsed, so that a zip bomb or XML bomb costs the
reading of its table of contents. Not for: what the parts of a format mean (`docx.py`,
`slides.py`, `workbook.py`, `opendocument.py`, `epub.py`)."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote
from xml.parsers.expat import ExpatError

from lxml import etree

from readers.converted import (
    DAMAGED,
    MAX_ITEMS,
    Unreadable,
    most_unpacked,
    person,
    raising_the_cap,
)
from readers.text.markup import XML_OPTIONS, child_text, has_own_entities, local_name

MAX_PART_TAGS: Final = 600_000
"""Of a part that is held as a tree, which then takes up to 70 MB; of what is shown,
fewer become a page's elements."""
ON: Final = frozenset({"1", "true", "on"})
"""How Office files write that a switch is on."""
CHUNK: Final = 1 << 18
"""Bytes of XML that are parsed at a time, some 1,000 paragraphs."""
MOST_BASED: Final = 20
"""Styles in a chain of those that are based on another."""
LEAST_WIDTH: Final = 10
"""Per cent of its usual width below which type cannot be read; condensed type has
80."""
_TEXT_PARTS: Final = (
    *(".xml", ".rels", ".opf", ".ncx", ".html", ".htm", ".xhtml", ".css"),
    *(".svg", ".vml", ".mht", ".txt", ".rtf"),
)
_STRICT: Final = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
"""Beginning of the namespaces of Office files in the strict form, whose elements are
those of the usual form."""
_DAMAGED: Final = (*DAMAGED, zipfile.BadZipFile, ExpatError, etree.LxmlError)


class Package:
    """The parts of an open file."""

    def __init__(
        self, archive: zipfile.ZipFile, label: str, texts: tuple[str, ...]
    ) -> None:
        """Take an archive whose parts of text, of the endings `texts`, are of a sound
        number and size; `label` is how messages call the file.

        Raises `Unreadable` for more or larger ones, and where one declares XML entities
        of its own."""
        self._archive = archive
        self.names = [
            source.filename
            for source in archive.infolist()
            if source.filename.lower().endswith(texts)
        ]
        if len(self.names) > MAX_ITEMS:
            raise Unreadable(
                f"it is {label} of {len(self.names):,} parts, over the cap of {MAX_ITEMS:,}"
            )
        unpacked = sum(archive.getinfo(name).file_size for name in self.names)
        if unpacked > most_unpacked():
            reason = (
                f"it is {label} that unpacks to {unpacked:,} bytes, over the cap of "
                f"{most_unpacked():,}"
            )
            raise Unreadable(reason, hint=raising_the_cap(unpacked))
        for name in self.names:
            if name.endswith((".xml", ".rels", ".opf")) and has_own_entities(
                archive.read(name)
            ):
                raise Unreadable(
                    f"it is {label} that defines XML entities of its own, refused as a possible attack"
                )
        self.label = label
        self._as_written = {name.lower(): name for name in self.names}
        self.damaged: list[str] = []
        """Parts whose XML is read up to a place where it breaks off."""

    def read(self, name: str) -> bytes:
        """Return a part's bytes, none for one that is not there or not text; names
        count in any case."""
        written = self._as_written.get(name.lower(), "")
        body = self._archive.read(written) if written else b""
        return (
            _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", body)
            if b"purl.oclc.org/ooxml" in body
            else body
        )

    def tree(self, name: str) -> etree._Element | None:
        """Return the root of an XML part; None for one that is missing, is not XML, or
        declares entities of its own. One that breaks off is read up to there, and noted
        as damaged.

        Raises `Unreadable` for more than `MAX_PART_TAGS` tags."""
        body = self.read(name)
        if body.count(b"<") > MAX_PART_TAGS:
            raise Unreadable(
                f"it is {self.label} with more than {MAX_PART_TAGS:,} XML "
                "elements: split it, or save it as CSV or text"
            )
        if not body or has_own_entities(body):
            return None
        parser = etree.XMLParser(**XML_OPTIONS, remove_pis=True, remove_comments=True)
        root: etree._Element | None = etree.fromstring(body, parser)
        self.note_damage(name, parser.error_log)
        return root

    def note_damage(self, name: str, errors: etree._ListErrorLog) -> None:
        """Keep the name of a part whose XML breaks off; what is only odd about it costs
        no text."""
        if (
            any(error.level_name == "FATAL" for error in errors)
            and name not in self.damaged
        ):
            self.damaged.append(name)

    @property
    def unread(self) -> str:
        """What damage of the parts hides, empty for sound ones."""
        # The file's author chose the names of its parts.
        number = len(self.damaged)
        return (
            f"what follows a damaged place in {number} of its parts" if number else ""
        )

    def main(self, usual: str) -> str:
        """Return the name of the part that an Office file begins with, `usual` where it
        names none."""
        kinds = self.targets("")
        main_parts = (
            name
            for kind, name in kinds.values()
            if kind == "officeDocument" and self.read(name)
        )
        return next(main_parts, usual)

    def about(self) -> tuple[str, str]:
        """Return title and author of an Office file; its dates are those of a template.

        "" for what it does not say."""
        core = self.tree("docProps/core.xml")
        if core is None:
            return "", ""
        app = self.tree("docProps/app.xml")
        tools = child_text(core, "description") + (
            child_text(app, "application") if app is not None else ""
        )
        return child_text(core, "title"), person(child_text(core, "creator"), tools)

    def roots(
        self, links: Mapping[str, tuple[str, str]], kind: str
    ) -> Iterator[etree._Element]:
        """Yield the parts of a kind among what a part refers to, missing ones left
        out."""
        for value, name in links.values():
            root = self.tree(name) if value == kind else None
            if root is not None:
                yield root

    def targets(
        self, source: str, *, outside: bool = False
    ) -> dict[str, tuple[str, str]]:
        """Return what a part of an Office file refers to, by id: the last word of the
        type, and the other's name.

        `outside` asks for addresses outside of the file, as they are written; the part
        "" is the file itself. Nothing for a part that refers to nothing or is
        missing."""
        folder, name = posixpath.split(source)
        root = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
        references: dict[str, tuple[str, str]] = {}
        for link in root if root is not None else ():
            if (
                local_name(link) == "relationship"
                and (link.get("TargetMode") == "External") == outside
            ):
                kind, target = (
                    link.get("Type", "").rpartition("/")[2],
                    link.get("Target", ""),
                )
                references[link.get("Id", "")] = (
                    kind,
                    target if outside else resolved(folder, target),
                )
        return references


def part_of(links: Mapping[str, tuple[str, str]], kind: str) -> str:
    """Return the name of the first part of a kind among what a part refers to, "" for
    none."""
    return next((name for value, name in links.values() if value == kind), "")


def all_of(root: etree._Element | None, *tags: str) -> Iterator[etree._Element]:
    """Return the elements of some tags in a part, none where the part is missing."""
    return iter(()) if root is None else root.iter(*tags)


def whole_number(value: str, usual: int = 0, *, digits: int) -> int:
    """Return the number that a file says, `usual` for what is not one, or is one of more
    than `digits` digits."""
    return int(value) if value.isdecimal() and len(value) <= digits else usual


def resolved(folder: str, target: str) -> str:
    """Return the name of a part that another one in `folder` refers to."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(
        path.lstrip("/") if path.startswith("/") else posixpath.join(folder, path)
    )


def cell_html(tag: str, html: str, width: int, height: int) -> str:
    """Return a cell of a table that covers some columns and rows."""
    wide = f' colspan="{width}"' if width > 1 else ""
    high = f' rowspan="{height}"' if height > 1 else ""
    return f"<{tag}{wide}{high}>{html}</{tag}>"


def hidden_notes(label: str, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return what of a file was left out as hidden, by the numbers of each kind."""
    return tuple(
        f"{label}: hidden {kind} removed: {number}"
        for kind, number in counts.items()
        if number
    )


@contextmanager
def open_package(
    body: bytes, label: str, *, texts: tuple[str, ...] = _TEXT_PARTS
) -> Iterator[Package]:
    """Open a file of `body`, whose parts of text end in one of `texts`; raises
    `Unreadable` where that, or anything done with it inside, finds it damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            yield Package(archive, label, texts)
    except _DAMAGED as e:
        if "encrypted" in str(e):
            raise Unreadable(
                f"it is {label} with a password: save a copy without one"
            ) from e
        raise Unreadable(f"it is {label} that is damaged ({type(e).__name__})") from e
