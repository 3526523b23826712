"""RTF to HTML: headings, paragraphs, items and tables, told apart by the lines that striprtf makes of a file.

Hidden text is left out. Not for: styles, pictures, notes at the foot of a page.
"""

import re
from itertools import groupby
from typing import Final

from striprtf.striprtf import rtf_to_text

from pipeline.read.converted import DAMAGED, SLOW_LETTERS, Converted, Unreadable, escape, html_table, whole_page

_PICTURE: Final = re.compile(r"(?<=\s)[0-9a-fA-F\s]{2000,}")
_HEADING: Final = "\ue001"
"""For private use: put into RTF where a heading begins, found again in its text."""
_LEVEL: Final = re.compile(r"\\outlinelevel\d")
_HIDDEN: Final = re.compile(r"\\v(?=[ \\])")
_ITEM: Final = re.compile(r"[•·–▪◦\uf0b7]\s+|\d{1,3}[.)]\t")
_CELL_END: Final = re.compile(r"\s*\n\|")


def rtf_to_html(text: str) -> Converted:
    """Return RTF as HTML; raises `Unreadable` for one that is damaged, too long, or without text."""
    text = _PICTURE.sub("", text)  # pictures are letters in RTF
    if len(text) > SLOW_LETTERS:
        raise Unreadable(f"it is RTF of over {SLOW_LETTERS:,} characters: save it as .docx or text")
    text = _LEVEL.sub(lambda _: f"\\u{ord(_HEADING)}?", text)
    # What a reader does not know behind `\*` it passes over to the end of the group, and so hidden words.
    text = _HIDDEN.sub(r"\\*\\v", text)
    # A pattern of striprtf for links reads to the end of a line from each field: one line for each keeps that linear.
    text = text.replace("{\\field", "\n{\\field")
    try:
        plain = rtf_to_text(text, errors="replace")  # type: ignore[no-untyped-call]  # published without types
    except DAMAGED as e:
        raise Unreadable(f"it is RTF that is damaged ({type(e).__name__})") from e
    lines = [line.strip() for line in _CELL_END.sub("|", plain).splitlines() if line.strip()]
    if not lines:
        raise Unreadable("it is RTF without text")
    parts = []
    for columns, group in groupby(lines, key=lambda line: line.strip("|").count("|")):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in group]
        parts += (
            [html_table(rows, header=True)] if columns and len(rows) > 1 else [_block(" | ".join(row)) for row in rows]
        )
    return Converted(whole_page("\n".join(parts)))


def _block(line: str) -> str:
    if line.startswith(_HEADING):
        return f"<h2>{escape(line.strip(_HEADING))}</h2>"
    if item := _ITEM.match(line):
        return f"<ul><li>{escape(line[item.end() :])}</li></ul>"
    return f"<p>{escape(line)}</p>"
