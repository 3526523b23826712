"""Markdown, JSON and CSV to HTML that a person could read.

Not for: plain text (`plain.py`), XML (`xml.py`), nor finding out which of these a text is (`sniff.py`).
"""

import csv
import io
import json
import re
from itertools import islice
from typing import Final

from markdown_it import MarkdownIt

from pipeline.html.tree import MAX_DEPTH
from pipeline.read.converted import MAX_ITEMS, Converted, day_in, escape, html_table, whole_page
from pipeline.read.plain import plain_to_html
from pipeline.work import check_cancelled

_MAX_MARKDOWN: Final = 5_000_000
"""Characters; markdown-it needs about 1 s a million."""
_FRONT_MATTER: Final = re.compile(r"\A---\r?\n(.{0,4000}?)\r?\n---\r?\n", re.DOTALL)
_DATE_LINE: Final = re.compile(r"^(?:date|published|created):\s*[\"']?(\d{4}-\d{2}-\d{2})", re.MULTILINE)
_TITLE_LINE: Final = re.compile(r"title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)

_markdown: Final = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def markdown_to_html(text: str) -> Converted:
    """Return Markdown as HTML; HTML inside it is shown as text, never taken as markup."""
    title = published = ""
    front = _FRONT_MATTER.match(text)
    if front:
        named = _TITLE_LINE.search(front.group(1))
        title = named.group(1) if named else ""
        dated = _DATE_LINE.search(front.group(1))
        published = day_in(dated.group(1)) if dated else ""
        text = text[front.end() :]
    if len(text) > _MAX_MARKDOWN:
        plain = plain_to_html(text)
        return Converted(
            plain.html, title, published=published, notes=("Markdown over 5 million characters, read as plain text",)
        )
    check_cancelled()
    inner = _markdown.render(text)
    heading = re.search(r"<h1>(.{1,300}?)</h1>", inner)
    headline = re.sub(r"<[^>]*>", "", heading.group(1)) if heading else ""
    return Converted(whole_page(inner, title=title), title or headline, published=published)


def json_to_html(text: str) -> Converted | None:
    """Return a JSON document, or one JSON value a line, as nested lists of `name: value`; None for no JSON."""
    value: object
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            value = [json.loads(line) for line in lines[:MAX_ITEMS]]
        except (ValueError, RecursionError):
            return None
    writer = _JsonWriter()
    writer.write(value)
    names = [value.get(key) for key in ("title", "name", "headline")] if isinstance(value, dict) else []
    title = next((name for name in names if isinstance(name, str)), "")
    unread = f"what follows its first {MAX_ITEMS} values" if writer.cut else ""
    return Converted(whole_page("".join(writer.parts), title=title), title, unread=unread)


class _JsonWriter:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.count = 0
        self.cut = False

    def write(self, value: object, depth: int = 0) -> None:
        self.count += 1
        if self.count % 500 == 0:
            check_cancelled()
        if self.count > MAX_ITEMS or 2 * depth > MAX_DEPTH:  # a level is a list and its item
            self.cut = True
        elif isinstance(value, dict | list):
            self.parts.append("<ul>")
            for name, inner in value.items() if isinstance(value, dict) else (("", inner) for inner in value):
                if self.cut:
                    break
                self.parts.append(f"<li>{escape(name)}: " if name else "<li>")
                self.write(inner, depth + 1)
                self.parts.append("</li>\n")
            self.parts.append("</ul>\n")
        else:
            self.parts.append(escape(value if isinstance(value, str) else json.dumps(value)))


def csv_to_html(text: str) -> Converted:
    """Return a table, its first row as the header; the separator is the likeliest of comma, tab and semicolon."""
    separator = max(",\t;", key=text.partition("\n")[0].count)
    try:
        rows = list(islice(csv.reader(io.StringIO(text), delimiter=separator), MAX_ITEMS + 1))
    except csv.Error:
        return plain_to_html(text)
    unread = f"what follows its first {MAX_ITEMS} rows" if len(rows) > MAX_ITEMS else ""
    return Converted(whole_page(html_table(rows[:MAX_ITEMS], header=True)), unread=unread)
