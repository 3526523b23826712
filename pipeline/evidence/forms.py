"""Lines of a page as compact HTML, Markdown or plain text.

HTML has no attributes, and every closing tag: common converters to Markdown read a
table whose cells are left open as one cell. A cell's markup costs six tokens there and
one in Markdown, which is GFM: tables with a delimiter row, fences longer than any
inside, items indented under those they are nested in. Not for: which lines there are
(`render.py`)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

from pipeline.evidence.show import GAP
from pipeline.text.frame import inert, one_line

Form = Literal["html", "markdown", "text"]
LineKind = Literal["heading", "paragraph", "item", "definition", "code", "table", "gap"]
_TICKS: Final = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class ListItem:
    """The list item of a line."""

    path: str
    """Path of its `li`."""
    ordered: bool
    number: int
    form: str = "1"
    """`type` of its list in HTML."""
    mark: str = ""
    """Its number as a reader sees it."""

    @property
    def list(self) -> str:
        """Path of its list."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Line:
    """One line, listing or table."""

    kind: LineKind
    text: str = ""
    level: int = 1
    """Of a heading, 1..6."""
    places: tuple[ListItem, ...] = ()
    """The items around it, outermost first; the last is its own for an item."""
    header: tuple[str, ...] = ()
    """Column headers of a table, empty for none."""
    rows: tuple[tuple[str, ...], ...] = ()
    language: str = ""
    """Of a listing, where the page names it."""


def write(lines: Sequence[Line], form: Form) -> str:
    """Return the lines in a form."""
    if form == "html":
        return _html(lines)
    if form == "markdown":
        return _indented(lines, _markdown_line, apart="\n\n")
    return _indented(lines, _text_line, apart="\n")


# HTML


def _html(lines: Sequence[Line]) -> str:
    out: list[str] = []
    opened: list[ListItem] = []
    defining = False
    for line in lines:
        if line.kind == "item":
            _open_item(out, opened, line)
        else:
            _close_lists(out, opened, line)
        if defining and line.kind != "definition":
            out.append("</dl>")
        if line.kind == "definition" and not defining:
            out.append("<dl>")
        defining = line.kind == "definition"
        out.append(_element(line))
    if defining:
        out.append("</dl>")
    while opened:
        _close_list(out, opened)
    return "".join(out)


def _close_list(out: list[str], opened: list[ListItem]) -> None:
    out.append("</li></ol>" if opened.pop().ordered else "</li></ul>")


def _open_item(out: list[str], opened: list[ListItem], line: Line) -> None:
    """Close other lists, open the item's list if needed, and begin the item."""
    own = line.places[-1]
    while (
        opened
        and opened[-1].list != own.list
        and not own.path.startswith(f"{opened[-1].path}/")
    ):
        _close_list(out, opened)
    following = 1
    if opened and opened[-1].list == own.list:
        following = opened.pop().number + 1
        out.append("</li>")
    else:
        form = f" type={own.form}" if own.form != "1" else ""
        out.append(f"<ol{form}>" if own.ordered else "<ul>")
    out.append(
        f"<li value={own.number}>"
        if own.ordered and own.number != following
        else "<li>"
    )
    opened.append(own)


def _close_lists(out: list[str], opened: list[ListItem], line: Line) -> None:
    inside = {item.path for item in line.places}
    while opened and opened[-1].path not in inside:
        _close_list(out, opened)


def _element(line: Line) -> str:
    text = escape(line.text, quote=False)
    if line.kind == "item":
        return text
    if line.kind == "heading":
        return f"<h{line.level}>{text}</h{line.level}>"
    if line.kind == "code":
        return f"<pre>{text}</pre>"
    if line.kind == "table":
        return _html_table(line)
    if line.kind == "definition":
        term, _, rest = text.partition(": ")
        return f"<dt>{term}</dt><dd>{rest}</dd>"
    return f"<p>{text or GAP}</p>"


def _html_table(line: Line) -> str:
    rows = [_cells(line.header, "th")] if line.header else []
    return (
        f"<table>{''.join([*rows, *(_cells(row, 'td') for row in line.rows)])}</table>"
    )


def _cells(row: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell, quote=False)}</{tag}>' for cell in row)}</tr>"


def _pipes(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(" | ".join(row) for row in rows)


# Markdown and text


def _indented(lines: Sequence[Line], one: Callable[[Line], str], *, apart: str) -> str:
    """Return the lines, indented by the marks of the shown items around them."""
    out: list[str] = []
    opened: list[tuple[ListItem, int]] = []
    last, begins = "", False
    for line in lines:
        around = {
            item.path
            for item in (line.places[:-1] if line.kind == "item" else line.places)
        }
        while opened and opened[-1][0].path not in around:
            opened.pop()
        indent = " " * sum(width for _, width in opened)
        mark = ""
        if line.kind == "item":
            own = line.places[-1]
            mark = f"{own.mark} " if own.ordered else "- "
            opened.append((own, len(mark)))
        text = mark + one(line)
        if indent:
            text = "\n".join(indent + row if row else row for row in text.split("\n"))
        if begins:  # a listing directly after its item's number
            text = text.lstrip()
        elif out:
            out.append("\n" if line.kind == "item" and last == "item" else apart)
        out.append(text)
        last, begins = line.kind, line.kind == "item" and not line.text
    return "".join(out)


def _markdown_line(line: Line) -> str:
    if line.kind == "heading":
        return f"{'#' * line.level} {inert(line.text)}"
    if line.kind == "code":
        fence = "`" * (
            max((len(run) for run in _TICKS.findall(line.text)), default=2) + 1
        )
        return f"{fence}{line.language}\n{line.text}\n{fence}"
    if line.kind == "table":
        # GFM knows no table without a head; an empty one costs tokens and says nothing.
        first, *rows = [line.header, *line.rows] if line.header else line.rows
        width = max(len(row) for row in (first, *rows))
        head = (*first, *[""] * (width - len(first)))
        return "\n".join(
            [
                _gfm_row(head),
                "|".join("-" * width) if width > 1 else "|-|",
                *map(_gfm_row, rows),
            ]
        )
    return inert(line.text) or ("" if line.kind == "item" else GAP)


def _gfm_row(cells: Sequence[str]) -> str:
    """Return a row; the pipes at its ends are left out where GFM does not need them."""
    row = " | ".join(inert(cell).replace("|", "\\|") for cell in cells)
    return row if len(cells) > 1 and cells[0] and cells[-1] else f"| {row} |"


def _text_line(line: Line) -> str:
    if line.kind == "table":
        return inert(_pipes([line.header, *line.rows] if line.header else line.rows))
    return inert(line.text) or ("" if line.kind == "item" else GAP)


def rows_as(form: Form, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows below the names of their columns, in a form."""
    cleaned = tuple(tuple(map(one_line, row)) for row in rows)
    header = tuple(map(one_line, columns))
    return write([Line("table", header=header, rows=cleaned)], form)
