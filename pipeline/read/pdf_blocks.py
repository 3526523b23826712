"""Lines of a PDF's page to HTML: headings by their size of type, paragraphs by their leading, code, points, tables.

Called by `pipeline/read/pdf.py`. Not for: finding the lines (there), and which of them are a table
(`pipeline/read/pdf_tables.py`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from pipeline.read.converted import escape
from pipeline.read.pdf_tables import TYPE, Line, find_tables, table_to_html
from pipeline.text.frame import LONGEST

_BULLETS: Final = frozenset("•–▪◦‣●■")
_LEADERS: Final = re.compile(r"(?:\. ?){5}")
"""The dots of a table of contents."""


def sizes_of(pages: Sequence[list[Line]]) -> tuple[dict[float, int], float]:
    """Return the sizes of type that are headings, with their levels, and the usual leading, in heights of the type."""
    sizes: Counter[float] = Counter()
    gaps: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
        for line, after in pairwise(page):
            if line.y > after.y:
                gaps[round((line.y - after.y) / (line.size or 1.0), 1)] += 1
    body = sizes.most_common(1)[0][0] if sizes else 0.0
    larger = sorted((size for size in sizes if body and size >= body * TYPE.heading), reverse=True)
    levels = {size: min(place + 2, 6) for place, size in enumerate(larger)}
    return levels, gaps.most_common(1)[0][0] if gaps else 1.2


def parts_of(page: list[Line], levels: dict[float, int], leading: float) -> Iterator[tuple[list[Line], str]]:
    """Yield the blocks and tables of a page, each as its lines and as HTML."""
    at = 0
    for begin, end, rows in [*find_tables(page), (len(page), len(page), [])]:
        yield from ((block, _block(block, levels)) for block in _blocks(page[at:begin], levels, leading))
        if rows:
            yield page[begin:end], table_to_html(rows)
        at = end


def _blocks(page: list[Line], levels: dict[float, int], leading: float) -> list[list[Line]]:
    """Return the page's lines in groups: one heading, one paragraph, one piece of code each."""
    blocks: list[list[Line]] = []
    for line in page:
        before = blocks[-1][-1] if blocks else None
        if before is not None and _joins(before, line, levels, leading):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _joins(before: Line, line: Line, levels: dict[float, int], leading: float) -> bool:
    if line.text.lstrip()[:1] in _BULLETS:
        return False
    if before.fixed != line.fixed or levels.get(before.size) != levels.get(line.size):
        return False
    step = (before.y - line.y) / (before.size or 1.0)
    return 0 <= step <= max(leading, 1.0) * TYPE.leading * (1.6 if line.fixed else 1.0)


def _block(lines: list[Line], levels: dict[float, int]) -> str:
    item = lines[0].text.lstrip()[:1] in _BULLETS
    if lines[0].fixed and not item:
        return f"<pre>{escape(chr(10).join(line.text for line in lines))}</pre>"
    text = lines[0].text.strip()
    for line in lines[1:]:
        after = line.text.strip()
        hyphen = text.endswith("-") and text[-2:-1].isalpha() and after[:1].islower()
        text = text[:-1] + after if hyphen else f"{text} {after}"
    if item:
        return f"<ul><li>{escape(text[1:].strip())}</li></ul>"
    level = levels.get(lines[0].size)
    if (
        level is not None
        and not _LEADERS.search(text)
        and len(text) <= LONGEST
        and any(letter.isalpha() for letter in text)
    ):
        return f"<h{level}>{escape(text)}</h{level}>"
    return f"<p>{escape(text)}</p>"
