"""Writing a selection of content units as compact HTML, Markdown or plain text.

Kept units stand in document order under their headings, rows under their header row, items under their lead-in, each
written once; gaps are marked by an ellipsis line. Not for: choosing (`prune.py`), HTML of whole trees (`tree.to_html`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final, Literal

from pipeline.documents import Block, Document

Form = Literal["html", "markdown", "text"]
GAP: Final = "…"
_ITEM: Final = re.compile(r"/(ul|ol|menu|dir)\d*/li(\d*)")


IMPRINT: Final = -1
"""Stands for a block's index where the page's author and date are meant."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A unit, or a part of it, that was chosen."""

    block: int
    """Index into `Document.blocks`."""
    start: int = 0
    """Code point offsets into `Block.text`."""
    end: int = -1
    """-1 for the end of the text."""


def render(document: Document, kept: Sequence[Kept], form: Form) -> str:
    """Return the chosen units in the form asked for."""
    return _Writer(document, form).write(kept)


def imprint(document: Document) -> str:
    """Return who wrote a page and when, as the page says of itself; empty where it does not."""
    page = document.page
    parts = [
        f"By {' '.join(page.author.split())}" if page.author else "",
        page.published and f"published {page.published}",
    ]
    return ", ".join(part for part in parts if part)


def headings_above(blocks: Sequence[Block]) -> list[tuple[int, ...]]:
    """Return for each block the indices of the heading blocks above it, outermost first."""
    latest: dict[tuple[str, ...], int] = {}
    above: list[tuple[int, ...]] = []
    known: dict[tuple[str, ...], tuple[int, ...]] = {}
    for number, block in enumerate(blocks):
        path = block.heading_path
        chain = known.get(path)
        if chain is None:
            chain = tuple(latest[path[:k]] for k in range(1, len(path) + 1) if path[:k] in latest)
            known[path] = chain
        above.append(chain)
        if block.kind == "heading":
            own = (*path, block.text)
            latest[own] = number
            known = {}
    return above


def table_of(block: Block) -> str:
    """Return the path of the table that a row stands in."""
    return block.path.rpartition("/")[0].removesuffix("/thead")


def header_of(block: Block) -> str:
    """Return the header row above a row as `a | b | c`, empty where there is none."""
    last = block.lead.rpartition("\n")[2]
    return last[2:-2] if block.kind == "row" and last.startswith("| ") else ""


def is_header_row(block: Block, following: Block | None) -> bool:
    """Whether a row is the header row that the next row names in its lead."""
    return (
        block.kind == "row"
        and following is not None
        and following.kind == "row"
        and bool(header := header_of(following))
        and not header_of(block)
        and header == " | ".join(block.cells)
    )


@dataclass(slots=True)
class _Writer:
    """Collects the lines of one page."""

    document: Document
    form: Form
    lines: list[str] = field(default_factory=list)
    printed: set[str] = field(default_factory=set)
    """Lead-ins, captions and headings that stand there already."""

    def write(self, kept: Sequence[Kept]) -> str:
        blocks = self.document.blocks
        if any(piece.block == IMPRINT for piece in kept):
            kept = [piece for piece in kept if piece.block != IMPRINT]
            line = imprint(self.document)
            self._add(line, {"html": f"<p>{escape(line, quote=False)}"})
        above = headings_above(blocks)
        spans: dict[int, list[tuple[int, int]]] = {}
        for piece in sorted(kept, key=lambda piece: (piece.block, piece.start)):
            end = piece.end if piece.end >= 0 else len(blocks[piece.block].text)
            spans.setdefault(piece.block, []).append((piece.start, end))
        wanted = sorted(set(spans) | {heading for number in spans for heading in above[number]})
        last = -1
        position = 0
        while position < len(wanted):
            number = wanted[position]
            block = blocks[number]
            if block.kind == "row" and number in spans:
                count = self._table(wanted[position:], spans)
                last = wanted[position + count - 1]
                position += count
                continue
            if block.kind != "heading" and last >= 0 and number > last + 1 and blocks[last].kind != "heading":
                self.lines.append(self._gap())
            self._block(block, spans.get(number, [(0, len(block.text))]))
            last = number
            position += 1
        return "\n".join(self.lines)

    def _gap(self) -> str:
        return f"<p>{GAP}" if self.form == "html" else GAP

    def _block(self, block: Block, spans: Sequence[tuple[int, int]]) -> None:
        text = _joined(block.text, spans)
        if block.kind == "heading":
            level = min(6, len(block.heading_path) + 1)
            self._add(
                text, {"html": f"<h{level}>{escape(text, quote=False)}</h{level}>", "markdown": f"{'#' * level} {text}"}
            )
        elif block.kind == "code":
            self._add(
                text,
                {
                    "html": f"<pre>{escape(text, quote=False)}</pre>",
                    "markdown": f"{_fence(text)}\n{text}\n{_fence(text)}",
                },
            )
        elif block.kind == "item":
            if block.lead and block.lead not in self.printed and not self._stands(block.lead):
                self.printed.add(block.lead)
                self._add(block.lead, {"html": f"<p>{escape(block.lead, quote=False)}"})
            marks = _ITEM.findall(block.path)
            sign = f"{marks[-1][1] or 1}." if marks and marks[-1][0] == "ol" else "-"
            indent = "  " * (len(marks) - 1)
            self._add(f"{indent}{sign} {text}", {"html": f"<li>{escape(text, quote=False)}"})
        elif block.kind == "definition" and ": " in text:
            term, _, rest = text.partition(": ")
            self._add(text, {"html": f"<dt>{escape(term, quote=False)}<dd>{escape(rest, quote=False)}"})
        else:
            self._add(text, {"html": f"<p>{escape(text, quote=False)}"})
        self.printed.add(block.text)

    def _stands(self, lead: str) -> bool:
        return any(line.endswith(lead) for line in self.lines[-40:])

    def _add(self, plain: str, forms: dict[str, str]) -> None:
        self.lines.append(forms.get(self.form, plain))

    def _table(self, wanted: Sequence[int], spans: dict[int, list[tuple[int, int]]]) -> int:
        """Write the rows of one table that begin `wanted`; return how many of `wanted` that took."""
        blocks = self.document.blocks
        table = table_of(blocks[wanted[0]])
        rows: list[int] = []
        for number in wanted:
            if blocks[number].kind != "row" or number not in spans or table_of(blocks[number]) != table:
                break
            rows.append(number)
        header = next((found for number in rows if (found := header_of(blocks[number]))), "")
        body = [
            n for n in rows if not (header and is_header_row(blocks[n], blocks[n + 1] if n + 1 < len(blocks) else None))
        ]
        self._leads(blocks[rows[0]], body_lead=blocks[body[0]].lead if body else "")
        if len(body) == 1 and blocks[body[0]].text != " | ".join(blocks[body[0]].cells):
            text = blocks[body[0]].text  # `header: value` is shorter than a header row for one row
            self._add(text, {"html": f"<p>{escape(text, quote=False)}"})
            return len(rows)
        if self.form == "html":
            cells = "".join(f"<th>{escape(cell, quote=False)}" for cell in header.split(" | ")) if header else ""
            lines = [f"<tr>{cells}"] if header else []
            for number in body:
                data = "".join(f"<td>{escape(cell, quote=False)}" for cell in blocks[number].cells)
                lines.append(f"<tr>{data}")
            self.lines.append("<table>" + "".join(lines) + "</table>")
            return len(rows)
        if header:
            self.lines.append(header)
            if self.form == "markdown":
                self.lines.append("|".join("-" * (header.count(" | ") + 1)))
        for number in body:
            cells_ = [cell.replace("|", "\\|") if self.form == "markdown" else cell for cell in blocks[number].cells]
            self.lines.append(
                " | ".join(cells_) if header or self.form == "text" or len(cells_) > 1 else blocks[number].text
            )
        return len(rows)

    def _leads(self, row: Block, *, body_lead: str) -> None:
        for line in (body_lead or row.lead).split("\n"):
            if line and not line.startswith("| ") and line not in self.printed:
                self.printed.add(line)
                self._add(line, {"html": f"<p>{escape(line, quote=False)}"})


def _fence(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    return "`" * (longest + 1)


def _joined(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the parts of a unit, with an ellipsis where something between them is left out."""
    parts: list[str] = []
    last = 0
    for start, end in spans:
        if start > last and text[last:start].strip():
            parts.append(GAP)
        parts.append(text[start:end].strip())
        last = end
    if text[last:].strip():
        parts.append(GAP)
    return " ".join(parts)
