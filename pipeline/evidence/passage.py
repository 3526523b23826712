"""The words of a passage: sentences joined as they stand on the page, rows of one table below its header.

A row by itself names its columns (`River: Volga; Length: 3530 km`); rows that follow each other stand as on the page
below their header row, which takes about half the tokens. Not for: choosing sentences (`assemble.py`).
"""

from collections.abc import Sequence
from typing import Final

from pipeline.documents import Document, Sentence
from pipeline.text.frame import one_line

GAP: Final = "…"
"""Stands where units between two others are left out."""


def passage_text(document: Document, run: Sequence[Sentence]) -> str:
    """Return the words of sentences in order: a block's on one line, each further block on a new one."""
    lines: list[str] = []
    above = ""
    for place, sentence in enumerate(run):
        header = _header(document, sentence)
        told = _row_below_header(document, sentence)
        if told and header != above and place + 1 < len(run) and _header(document, run[place + 1]) == header:
            while lines and _is_part(lines[-1], header):
                lines.pop()
            lines.append(header)
            above = header
        if told and header == above:
            lines.append(told)
            continue
        above = one_line(sentence.text)
        apart = bool(place) and sentence.number > run[place - 1].number + 1
        words = f"{GAP} {above}" if apart else above
        if place and run[place - 1].block == sentence.block:
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return "\n".join(lines)


def _is_part(line: str, header: str) -> bool:
    """Whether a line is one of several header rows, all of which `header` has in one."""
    return " | " in line and all(cell.strip() in header for cell in line.split(" | "))


def _row_below_header(document: Document, sentence: Sentence) -> str:
    """Return a table's row as it stands below its header; empty for what is none, or is longer that way."""
    if not _header(document, sentence):
        return ""
    told = one_line(document.text[sentence.start : sentence.end])
    return told if len(told) < len(sentence.text) else ""


def _header(document: Document, sentence: Sentence) -> str:
    """Return the header row above a whole row, its cells parted by bars; empty where there is none."""
    block = document.blocks[sentence.block]
    whole = (sentence.start, sentence.end) == (block.start, block.end)
    return one_line(block.header) if whole else ""
