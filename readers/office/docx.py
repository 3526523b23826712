"""DOCX to HTML: what a reader of the file sees, each thing once, and what the file holds besides.

Results of fields, equations, text boxes, charts, headers and footers, numbers of clauses are
written; notes and comments follow the block that refers to them. Hidden and long deleted text is
left out and counted. Not for: older `.doc` files, which their type refuses.
"""

from lxml import etree

from cancellation import check_cancelled
from readers.converted import MAX_CELLS, Converted, Unreadable, whole_page
from readers.office.docx_looks import Seen
from readers.office.docx_styles import Styles, W
from readers.office.docx_walk import Walk, count_words
from readers.office.package import (
    Package,
    all_of,
    hidden_notes,
    open_package,
)
from readers.office.sheet_html import UNREAD_CELLS


def docx_to_html(body: bytes) -> Converted:
    """Return a DOCX file as HTML; raises `Unreadable` for one that is damaged, too large
    unpacked, or without text."""
    with open_package(body, "a Word file") as package:
        main_part = package.main("word/document.xml")
        title, author = package.about()
        kinds: dict[str, list[str]] = {}
        for kind, name in package.targets(main_part).values():
            kinds.setdefault(kind, []).append(name)
        check_cancelled()
        walk = _walk(package, kinds)
        headers = _margins(walk, kinds.get("header", []))
        blocks = [*headers, *walk.body(main_part)]
        blocks += _margins(walk, kinds.get("footer", []))
    html = "\n".join(blocks).replace("</ul>\n<ul>", "")
    if not html.strip():
        damaged = " that is damaged" if package.damaged else " without text"
        lacking = f": {walk.ledger.unread}" if walk.ledger.unread else ""
        raise Unreadable(f"it is a Word file{damaged}{lacking}")
    cut = UNREAD_CELLS if walk.cells > MAX_CELLS else ""
    return Converted(
        whole_page(html, title=title),
        title,
        author=author,
        notes=_notes(walk),
        unread="; ".join(filter(None, (cut, package.unread))),
        hidden=walk.seen.words,
        ledger=walk.ledger,
    )


def _walk(package: Package, kinds: dict[str, list[str]]) -> Walk:

    def tree(kind: str, usual: str = "") -> etree._Element | None:
        return package.tree(next(iter(kinds.get(kind, [])), usual))

    main_part = tree("styles", "word/styles.xml")
    styles = Styles(main_part, tree("numbering"))
    walk = Walk(package, styles, Seen(styles, main_part))
    for kind in ("footnotes", "endnotes"):
        for note in all_of(tree(kind), f"{W}footnote", f"{W}endnote"):
            if note.get(f"{W}type", "normal") == "normal" and count_words(note):
                walk.notes[kind, note.get(f"{W}id", "")] = note
    for comment in all_of(tree("comments"), f"{W}comment"):
        if count_words(comment):
            walk.comments[comment.get(f"{W}id", "")] = comment
    walk.ledger.hold("footnote", len(walk.notes))
    walk.ledger.hold("comment", len(walk.comments))
    return walk


def _margins(walk: Walk, names: list[str]) -> list[str]:
    """Return what headers or footers say, each text once; parts that are missing are
    left out. Moves `walk` to these parts."""
    walk.in_margin = True
    blocks: dict[str, None] = {}
    for name in dict.fromkeys(names):
        root = walk.package.tree(name)
        if root is not None:
            walk.begin(name)
            blocks |= dict.fromkeys(walk.blocks(walk.seen.without_unseen(root)))
    walk.in_margin = False
    return list(blocks)


def _notes(walk: Walk) -> tuple[str, ...]:
    notes = [*hidden_notes("Word", {"words": walk.seen.words})]
    if walk.inserted or walk.deleted:
        changed = f"{walk.inserted} words are inserted, {walk.deleted} deleted"
        notes.append(f"Word: tracked changes are shown as accepted: {changed}")
    return tuple(notes)
