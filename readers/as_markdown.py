"""A document as Markdown, every block in reading order.

Not for: answers of tools, which show a choice of blocks with their places
(`pipeline/evidence/render.py`)."""

import re
from collections.abc import Iterator
from itertools import groupby

from readers.page import Block, Document, table_of

_LEVEL = re.compile(r"\d$")


def to_markdown(document: Document) -> str:
    """Return the whole document: its title, its text, and last what was not read."""
    title, unread = document.page.title, document.page.unread
    pieces = [f"# {title}"] if title and not _shows(document, title) else []
    for run, members in groupby(document.blocks, _run):
        blocks = [*members]
        if run == "item":
            pieces.append("\n".join(map(_prose, blocks)))
        else:
            pieces += ["\n".join(_rows(blocks))] if run else map(_prose, blocks)
    pieces += [f"*Not read: {unread}*"] if unread else []
    return "\n\n".join(filter(None, pieces)) + "\n"


def _shows(document: Document, title: str) -> bool:
    return any(
        block.kind == "heading" and block.text == title for block in document.blocks
    )


def _run(block: Block) -> str:
    """Return what a block shares with those that it is written together with: its
    table, or that it is an item; "" for a block by itself."""
    if block.kind == "row":
        return table_of(block)
    return "item" if block.kind == "item" else ""


def _prose(block: Block) -> str:
    if block.kind == "heading":
        level = _LEVEL.search(block.path.rpartition("/")[2])
        return f"{'#' * int(level[0] if level else 2)} {block.text}"
    if block.kind == "item":
        mark = block.ordinal.mark if block.ordinal else "-"
        return f"{mark} {block.text}"
    return f"```\n{block.text}\n```" if block.kind == "code" else block.text


def _rows(rows: list[Block]) -> Iterator[str]:
    """Yield the lines of a table; its first row is the header."""
    for number, row in enumerate(rows):
        cells = (" ".join(cell.replace("|", r"\|").split()) for cell in row.cells)
        yield f"| {' | '.join(cells)} |"
        if not number:
            yield "|" + " --- |" * len(row.cells)
