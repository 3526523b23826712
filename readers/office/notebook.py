"""Jupyter notebooks to HTML: text, programs and what they printed, each cell a section
with its number.

Not for: drawings, widgets, errors' colours, notebooks of the third form (before 2015), which are
read as their values.
"""

import json
import re
from typing import Any

from cancellation import check_cancelled
from readers.converted import MAX_ITEMS, Converted, escape, placed, whole_page
from readers.data.records import json_to_html
from readers.text.markdown import markdown_to_body
from readers.text.markup import fragment_to_html


def ipynb_to_html(text: str) -> Converted | None:
    """Return a notebook as HTML; other JSON as its values; None if it is not JSON.
    Malformed cells are passed over, and those after `MAX_ITEMS` named as unread."""
    try:
        book = _object(json.loads(text))
    except (ValueError, RecursionError):
        return None
    cells = book.get("cells")
    if not isinstance(cells, list):
        return json_to_html(text)
    about = _object(book.get("metadata"))
    language_name = str(_object(about.get("language_info")).get("name", ""))
    language = re.sub(r"\W", "", language_name)
    title = str(about.get("title", ""))
    sections = []
    for number, cell in enumerate(cells[:MAX_ITEMS], start=1):
        check_cancelled()
        if html := _cell(_object(cell), language):
            sections.append(placed(html, f"cell={number}"))
    is_cut = len(cells) > MAX_ITEMS
    unread = f"what follows its first {MAX_ITEMS} cells" if is_cut else ""
    return Converted(whole_page("\n".join(sections), title=title), title, unread=unread)


def _object(value: object) -> dict[str, Any]:
    """Return a value that is an object of JSON, {} for any other."""
    return value if isinstance(value, dict) else {}


def _cell(cell: dict[str, Any], language: str) -> str:
    source = _joined(cell.get("source"))
    if cell.get("cell_type") == "markdown":
        return markdown_to_body(source)
    listing = escape(source)
    if cell.get("cell_type") == "code":
        listing = f'<code class="language-{language}">{listing}</code>'
    outputs = cell.get("outputs")
    blocks = [f"<pre>{listing}</pre>" if source.strip() else ""]
    blocks += map(_output, outputs if isinstance(outputs, list) else [])
    return "\n".join(filter(None, blocks))


def _output(value: object) -> str:
    """Return what a program printed, a table as a table; "" for an image alone."""
    output = _object(value)
    data = _object(output.get("data"))
    html = _joined(data.get("text/html"))
    if "<table" in html:
        return fragment_to_html(html)
    if "text/markdown" in data:
        return markdown_to_body(_joined(data["text/markdown"]))
    traceback = output.get("traceback")
    frames = traceback if isinstance(traceback, list) else []
    texts = (
        _joined(data.get("text/plain")),
        _joined(output.get("text")),
        "\n".join(map(str, frames)),
    )
    text = next(filter(None, texts), "")
    text = re.sub(r"\x1b\[[\d;]*m", "", text)
    return f"<pre>{escape(text)}</pre>" if text.strip() else ""


def _joined(value: object) -> str:
    """Return a text that may be a list of lines, "" for anything else."""
    lines = value if isinstance(value, list) else [value]
    return "".join(line for line in lines if isinstance(line, str))
