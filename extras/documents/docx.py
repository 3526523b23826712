"""DOCX to HTML: what a reader of the file sees, each thing once, and what the file holds besides.

Results of fields, equations, text boxes, charts, headers and footers, numbers of clauses are
written; notes and comments follow the block that refers to them. Hidden and long deleted text is
left out and counted. Not for: older `.doc` files, which their type refuses.
"""

from functools import partial
from typing import Final

from lxml import etree

from extras.documents.docx_layout import rejoined
from extras.documents.docx_looks import W, read_looks
from extras.documents.docx_styles import read_styles
from extras.documents.docx_walk import Walk, count_words
from extras.documents.package import open_package
from pipeline.document.converted import Converted, Unreadable, whole_page
from pipeline.work import check_cancelled

_FILE_DEPTH: Final = 2
"""Word files inside of Word files that are read."""


def docx_to_html(body: bytes, *, depth: int = 0) -> Converted:
    """Return a DOCX file as HTML; raises `Unreadable` for one that is damaged, too large unpacked,
    or without text.

    `depth` counts the Word files around it.
    """
    with open_package(body, "a Word file") as package:
        main = package.main("word/document.xml")
        title, author = package.about()
        kinds: dict[str, list[str]] = {}
        for kind, name in package.targets(main).values():
            kinds.setdefault(kind, []).append(name)
        check_cancelled()

        def part(kind: str) -> etree._Element | None:
            usual = {"styles": "word/styles.xml"}.get(kind, "")
            return package.tree(next(iter(kinds.get(kind, [])), usual))

        styles = part("styles")
        looks = read_looks(styles, part("theme"))
        walk = Walk(
            package,
            main,
            read_styles(styles, part("numbering")),
            looks,
            partial(_inner, depth=depth + 1),
        )
        for kind in ("footnotes", "endnotes"):
            notes = part(kind)
            for note in notes if notes is not None else ():
                if note.get(f"{W}type", "normal") == "normal":
                    walk.notes[kind, note.get(f"{W}id", "")] = note
        comments = part("comments")
        walk.comments = {
            one.get(f"{W}id", ""): one
            for one in (comments if comments is not None else ())
        }
        walk.ledger.hold(
            "footnote", sum(map(bool, map(count_words, walk.notes.values())))
        )
        walk.ledger.hold(
            "comment", sum(map(bool, map(count_words, walk.comments.values())))
        )
        above = _margins(walk, kinds.get("header", []))
        walk.begin(main)
        blocks = [
            *above,
            *walk.body(),
            *walk.rest(),
            *_margins(walk, kinds.get("footer", [])),
        ]
    walk.ledger.give("word", walk.words)
    inner = rejoined("\n".join(blocks))
    if not inner.strip():
        damaged = " that is damaged" if package.damaged else " without text"
        lacking = f": {walk.ledger.unread}" if walk.ledger.unread else ""
        raise Unreadable(f"it is a Word file{damaged}{lacking}")
    made = whole_page(inner, title=title)
    return Converted(
        *(made, title, "", author, "", _said(walk), package.unread),
        hidden=walk.seen.words,
        ledger=walk.ledger,
    )


def _inner(body: bytes, *, depth: int) -> Converted:
    if depth > _FILE_DEPTH:
        raise Unreadable("it is too deep inside of other Word files")
    return docx_to_html(body, depth=depth)


def _margins(walk: Walk, parts: list[str]) -> list[str]:
    """Return what headers or footers say, each text once; parts that are missing are
    left out. Moves `walk` to these parts."""
    walk.in_margin = True
    found: dict[str, None] = {}
    for name in dict.fromkeys(parts):
        root = walk.package.tree(name)
        if root is not None:
            walk.begin(name)
            found |= dict.fromkeys(walk.whole(root))
    walk.in_margin = False
    return list(found)


def _said(walk: Walk) -> tuple[str, ...]:
    notes = []
    if walk.seen.words:
        notes.append(f"Word: hidden words removed: {walk.seen.words}")
    if walk.inserted or walk.deleted:
        changed = f"{walk.inserted} words are inserted, {walk.deleted} deleted"
        notes.append(f"Word: tracked changes are shown as accepted: {changed}")
    return tuple(notes)
