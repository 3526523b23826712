"""Jupyter notebooks to HTML: text, programs and what they printed, each cell a section
with its number.

Not for: drawings, widgets, errors' colours.
"""

import json
import re
from typing import Any, Final

from pipeline.document.converted import MAX_ITEMS, Converted, escape, placed, whole_page
from pipeline.read.markdown import markdown_to_body
from pipeline.read.records import json_to_html
from pipeline.read.text import fragment_to_html
from pipeline.work import check_cancelled

_ANSI_CODE: Final = re.compile(r"\x1b\[[\d;]*m")


def ipynb_to_html(text: str) -> Converted | None:
    """Return a notebook as HTML; other JSON as its values; None if it is not JSON.
    Malformed cells are passed over, and those after `MAX_ITEMS` named as unread."""
    try:
        book = _object(json.loads(text))
    except (ValueError, RecursionError):
        return None
    sheets = book.get("worksheets")
    cells = (sheets[0] if sheets else book).get("cells")
    if not isinstance(cells, list):
        return json_to_html(text)
    about = _object(book.get("metadata"))
    spoken = _object(about.get("language_info"))
    language = re.sub(r"\W", "", str(spoken.get("name", "")))
    title = str(about.get("title", ""))
    sections = []
    for number, cell in enumerate(cells[:MAX_ITEMS], start=1):
        check_cancelled()
        if isinstance(cell, dict) and (inner := _cell(cell, language)):
            sections.append(placed(inner, f"cell={number}"))
    unread = (
        f"what follows its first {MAX_ITEMS} cells" if len(cells) > MAX_ITEMS else ""
    )
    return Converted(whole_page("\n".join(sections), title=title), title, unread=unread)


def _object(value: object) -> dict[str, Any]:
    """Return a value that is an object of JSON, {} for any other."""
    return value if isinstance(value, dict) else {}


def _cell(cell: dict[str, Any], language: str) -> str:
    source = _joined(cell.get("source", cell.get("input", "")))
    if cell.get("cell_type") == "markdown":
        return markdown_to_body(source)
    if cell.get("cell_type") == "heading":  # of the third form
        return f"<h2>{escape(source)}</h2>"
    outputs = cell.get("outputs")
    shown = (
        [_output(one) for one in outputs if isinstance(one, dict)]
        if isinstance(outputs, list)
        else []
    )
    code = f'<code class="language-{language}">{escape(source)}</code>'
    listing = (
        f"<pre>{code if cell.get('cell_type') == 'code' else escape(source)}</pre>"
        if source.strip()
        else ""
    )
    return "\n".join(filter(None, [listing, *shown]))


def _output(output: dict[str, Any]) -> str:
    """Return what a program printed, a table as a table; "" for an image alone."""
    data = output.get("data") if isinstance(output.get("data"), dict) else output
    assert isinstance(data, dict)  # noqa: S101  both are, as has been looked at
    html = _joined(data.get("text/html", ""))
    if "<table" in html:
        return fragment_to_html(html)
    if "text/markdown" in data:
        return markdown_to_body(_joined(data["text/markdown"]))
    text = _joined(data.get("text/plain", output.get("text", ""))) or _joined(
        output.get("traceback", "")
    )
    text = _ANSI_CODE.sub("", text)
    return f"<pre>{escape(text)}</pre>" if text.strip() else ""


def _joined(value: object) -> str:
    """Return a text that may be a list of lines, "" for anything else."""
    return (
        "".join(map(str, value))
        if isinstance(value, list)
        else str(value)
        if isinstance(value, str)
        else ""
    )
