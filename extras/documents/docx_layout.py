"""Lists and tables of a Word file as HTML: items that follow each other, cells that go on below.

Not for: which number an item has (`docx_styles.py`).
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

from lxml import etree

from extras.documents.docx_looks import W
from extras.documents.docx_styles import Number
from pipeline.document.converted import escape

CONTINUED: Final = "continued"
"""Attribute of a table whose first rows were read as another."""
MARK: Final = f"<!--{CONTINUED}-->"
"""Before the HTML of such a table; text of the file has no such signs."""


@dataclass(slots=True)
class DocxCell:
    """A cell, its content as HTML."""

    inner: str
    width: int = 1
    """Columns; 0 for one that belongs to the cell above."""
    height: int = 1
    goes_on: bool = False

    def html(self, tag: str) -> str:
        """Return the cell as an element `tag`."""
        wide = f' colspan="{self.width}"' if self.width > 1 else ""
        high = f' rowspan="{self.height}"' if self.height > 1 else ""
        return f"<{tag}{wide}{high}>{self.inner}</{tag}>"


@dataclass(slots=True)
class DocxRow:
    """A row of a table."""

    before: int
    """Columns that are left free."""
    is_head: bool
    cells: list[DocxCell]

    def html(self) -> str:
        """Return the row as an element, cells that belong to the row above left out."""
        tag = "th" if self.is_head else "td"
        free = f"<{tag}></{tag}>" * min(self.before, 63)
        return f"<tr>{free}{''.join(cell.html(tag) for cell in self.cells if cell.width)}</tr>"


def table_html(rows: list[DocxRow]) -> str:
    """Return rows as a table, empty where no row has a cell; cells that go on below
    become one, if they are as wide as the one above. Changes the cells."""
    open_cells: dict[int, DocxCell] = {}
    for row in rows:
        column = row.before
        for cell in row.cells:
            above = open_cells.get(column)
            width = cell.width
            if cell.goes_on and above is not None and above.width == width:
                above.height += 1
                cell.width = 0
            else:
                open_cells[column] = cell
            column += width
    written = "\n".join(row.html() for row in rows if row.cells)
    return f"<table>\n{written}\n</table>" if written else ""


def lists_html(items: list[tuple[Number, str]], *, in_cell: bool) -> Iterator[str]:
    """Yield items as lists: bullets, several numbers that HTML counts; others as
    paragraphs with their number. A number alone, or one out of sequence, is such a
    paragraph.

    A table's cell is read as one text, in which each number is written out.
    """
    at = 0
    while at < len(items):
        number, text = items[at]
        kind = _kind(number.text)
        end = at + 1
        while (
            kind is not None
            and end < len(items)
            and _follows(items[end - 1][0], items[end][0], kind)
        ):
            end += 1
        if kind is None or (kind and (end == at + 1 or in_cell)):
            yield f"<p>{escape(number.text)} {text}</p>"
            end = at + 1
        else:
            inner = "".join(f"<li>{one}</li>" for _, one in items[at:end])
            yield (
                f"<ul>{inner}</ul>"
                if not number.text
                else f'<ol start="{number.text[:-1]}">{inner}</ol>'
            )
        at = end


def _kind(number: str) -> str | None:
    """Return `1` for a number that a list of HTML writes as well, `` for a bullet, None for
    others."""
    if not number:
        return ""
    return "1" if re.fullmatch(r"\d{1,6}\.", number) else None


def _follows(before: Number, number: Number, kind: str) -> bool:
    if _kind(number.text) != kind:
        return False
    return not kind or int(number.text[:-1]) == int(before.text[:-1]) + 1


def sliced(last: etree._Element) -> etree._Element:
    """Return a copy of a table that is still parsed up to its child `last`, and let it go on without
    these."""
    table = last.getparent()
    end = table.index(last) + 1
    done = table[:end]
    copy = deepcopy(table)
    del copy[end:]
    for child in done:
        child.clear()
        table.remove(child)
    table.set(CONTINUED, "1")
    return copy


def rejoined(html: str) -> str:
    """Return HTML in which the slices of a table are one table again."""
    return html.replace(f"</table>\n{MARK}<table>\n", "").replace(MARK, "")


def is_drop_cap(paragraph: etree._Element) -> bool:
    """Whether a paragraph is a large first letter in a frame of its own, before the paragraph that
    it begins."""
    frame = paragraph.find(f"{W}pPr/{W}framePr")
    return frame is not None and frame.get(f"{W}dropCap", "none") != "none"
