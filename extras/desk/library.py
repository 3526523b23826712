"""Start page data of the desk: search providers, folders with documents, example
questions.

Titles and headings are read from the beginning of text files; other files are not
converted. Not for: searching folders (`pipeline/search/folder`).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

from errors import WinnowError
from pipeline.sources.gather import files_in
from pipeline.text.frame import one_line
from server.settings import Settings
from server.wiring import searched

LISTED_DOCUMENTS: Final = 200
"""Maximum listed documents of a folder."""
HEADING_BYTES: Final = 100_000
"""Bytes of a file that are searched for headings."""
TO_TRY: Final = 3
_PAGE_ENDINGS: Final = frozenset({".html", ".htm", ".xhtml"})
_NOTE_ENDINGS: Final = frozenset({".md", ".markdown", ".txt"})
_QUESTION: Final = re.compile(
    r"(?:who|what|when|where|which|why|how|can|do|does|is|are|may|wer|was|wann|wo|wie|warum|kann|darf)"
    r" (?:\S+ ){2,14}\S+\?",
    re.IGNORECASE,
)
"""A heading that is a complete question, not just `Why?`."""
_ABOUT_IT: Final = re.compile(
    r"\b(?:this|these|diese[rsmn]?) (?:page|article|site|seite|artikel)\b",
    re.IGNORECASE,
)
_SITE_SUFFIX: Final = re.compile(r"\s+(?:[|–—•·]|-)\s+.*")
"""Site name after a page's own title."""
_HEADING_CHARACTERS: Final = 60
"""Maximum characters of a title and of a heading in an example question."""


def describe_library(settings: Settings) -> dict[str, object]:
    """Return as JSON: search providers, folders with documents, errors, example
    questions."""
    who = searched(settings)
    folders = [_folder(root, settings.folders) for root in settings.folders]
    found = [document for folder in folders for document in folder["documents"]]
    asked = _to_try(sorted(found, key=lambda one: -len(one["headings"])))
    listed = [
        {
            **one,
            "documents": [
                {"name": document["name"], "title": document["title"]}
                for document in one["documents"]
            ],
        }
        for one in folders
    ]
    return {
        "web": list(who.web),
        "folders": listed,
        "warnings": [
            f"{name}: {warning}" for name, warning in settings.warnings().items()
        ],
        "questions": asked,
    }


def _to_try(documents: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Return example questions: headings that are questions, then one heading per
    document, at most `TO_TRY` in all."""
    asking: list[tuple[int, str, str]] = []
    naming: list[tuple[int, str, str]] = []
    for document in documents:
        title = _SITE_SUFFIX.sub("", document["title"])
        own = [
            one
            for one in document["headings"]
            if _QUESTION.fullmatch(one) and not _ABOUT_IT.search(one)
        ]
        asking += [(place, title, heading) for place, heading in enumerate(own)]
        naming += [
            (place, title, heading)
            for place, heading in enumerate(filter(_names, document["headings"]))
        ]
    # Round robin over documents.
    asked = [
        {"title": title, "heading": heading, "asks": "?"}
        for _, title, heading in sorted(asking)
    ]
    named = [
        {"title": title, "heading": heading, "asks": ""}
        for place, title, heading in naming
        if place == 0
        and len(title) <= _HEADING_CHARACTERS
        and heading.casefold() not in title.casefold()
    ]
    return [*asked, *named][:TO_TRY]


def _names(heading: str) -> bool:
    """Return whether a heading has enough words to be asked about."""
    return (
        len(heading.split()) > 1
        and len(heading) <= _HEADING_CHARACTERS
        and heading[0].isalnum()
        and heading[-1].isalnum()
    )


def _folder(root: Path, roots: Sequence[Path]) -> dict[str, Any]:
    try:
        folder, files = (
            (root.parent, [root]) if root.is_file() else files_in(str(root), roots)[:2]
        )
    except WinnowError:  # deleted meanwhile; the doctor reports it
        folder, files = root, []
    documents = [_document(path, folder) for path in files[:LISTED_DOCUMENTS]]
    return {"path": str(root), "count": len(files), "documents": documents}


def _document(path: Path, folder: Path) -> dict[str, Any]:
    title, *headings = [*_headings(path), path.stem]
    return {
        "name": path.relative_to(folder).as_posix(),
        "title": title,
        "headings": headings[:-1],
    }


def _headings(path: Path) -> Iterator[str]:
    """Yield title and headings from the first `HEADING_BYTES` bytes of an HTML or text
    file; nothing for other and unreadable files."""
    kind = path.suffix.lower()
    if kind not in _PAGE_ENDINGS | _NOTE_ENDINGS:
        return
    try:
        with path.open("rb") as file:
            text = file.read(HEADING_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    if kind in _NOTE_ENDINGS:
        yield from (
            one_line(found)
            for found in re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)
        )
        return
    for node in LexborHTMLParser(text).css(
        "title, h1, h2, h3, dt, summary, button[aria-expanded]"
    ):
        if heading := one_line(node.text()):
            yield heading
