"""Plain text to HTML: paragraphs, headings, lists, tables, `key: value`, logs and code told apart by their lines.

A line stays a line unless it was only broken to fit a width. What is told apart is told by all lines of a block, the
lines between two empty ones; one odd line makes nothing of the others. Not for: Markdown, CSV, JSON (`text.py`).
"""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Final

from pipeline.read.converted import Converted, escape, html_table, whole_page
from pipeline.work import check_cancelled

_INDENTED: Final = re.compile(r" {4,}\S|\t+\S")
_CODE: Final = re.compile(
    r".*[{};]\s*$|\s*(?:(?:async )?def \w+\(|class \w+\s*[(:{]|import [\w.{]+$|from [\w.]+ import|#include\s*<"
    r"|function\s*\w*\(|(?:var|const|let) \w+ ?=|(?:if|for|while|else|elif|try|with)\b.*:\s*$|[\w.]+\(.*\)$"
    r"|\w+ = |[$#] \w)"
)
"""A line of a program or of a console."""
_UNDERLINE: Final = re.compile(r"(?:=|-|~){3,}\s*")
_RULE: Final = re.compile(r"(?=.*(?:--|==))[\s|+:=-]+")
_GAP: Final = re.compile(r"\s*\|\s*|\s*\t\s*|\s{2,}")
_PAIR: Final = re.compile(r"([^\W\d_][^:.!?]{0,38}[^\s:.!?]):\s+(\S.*)")
_LOGGED: Final = re.compile(
    r"\[?(?:\d{4}-\d\d-\d\d|\d\d[:/]\d\d[:/]\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:)"
    r"|\W?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b"
)
_BULLET: Final = re.compile(r"\s{0,8}(?:[-*•·–]|\(?(\d{1,3})[.)])\s+(\S.*)")
_NUMBERED: Final = re.compile(
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[IVX]{1,5}\.|Chapter \S+|Section \S+|Appendix \S+)\s+[^\W\d_].*"
)
_LONGEST_TITLE: Final = 80
_FILLED: Final = 0.7
"""Share of the longest line from which a line was broken to fit the width; words are shorter than the rest."""
_WIDTH: Final = 50
"""Characters of the narrowest width to which text is broken."""
_PROSE: Final = 7
"""Words a line from which indented lines are text."""
_LEAST: Final = 2
"""Lines and columns of a table or list."""


def plain_to_html(text: str) -> Converted:
    """Return plain text as HTML that says what its blocks are."""
    parts: list[str] = []
    blocks = [
        list(lines) for is_text, lines in groupby(text.splitlines(), key=lambda line: line.strip() != "") if is_text
    ]
    for number, lines in enumerate(blocks):
        if number % 1000 == 0:
            check_cancelled()
        parts.append(_block(lines, is_last=number == len(blocks) - 1))
    return Converted(whole_page("\n".join(parts)))


def _block(lines: list[str], *, is_last: bool) -> str:  # noqa: PLR0911  one return a kind
    """Return the lines between two empty ones as what they are."""
    if len(lines) == _LEAST and _UNDERLINE.fullmatch(lines[1]) and len(lines[0]) <= 120:
        return f"<h2>{escape(lines[0].strip())}</h2>"
    if len(lines) == 1 and not is_last and _is_title(lines[0].strip()):
        return f"<h2>{escape(lines[0].strip())}</h2>"
    if all(map(_INDENTED.match, lines)) and not _is_prose(lines) and not all(map(_BULLET.match, lines)):
        return _listing(lines)
    if rows := _table(lines):
        return rows
    if len(lines) >= _LEAST and all(pairs := [_PAIR.fullmatch(line.strip()) for line in lines]):
        return "<dl>" + "".join(f"<dt>{escape(pair[1])}<dd>{escape(pair[2])}" for pair in pairs if pair) + "</dl>"
    if len(lines) >= _LEAST and all(map(_LOGGED.match, lines)):
        return "\n".join(f"<p>{escape(line.strip())}</p>" for line in lines)
    if _BULLET.match(lines[0]):
        return _items(lines)
    drawn = sum("   " in line.strip() or "\t" in line.strip() for line in lines)
    like_code = 0 if _is_prose(lines) else sum(bool(_CODE.match(line) or _INDENTED.match(line)) for line in lines)
    if 2 * like_code > len(lines) or (2 * drawn > len(lines) >= _LEAST):
        return _listing(lines)
    return "\n".join(f"<p>{escape(line)}</p>" for line in _unbroken(lines))


def _is_prose(lines: Sequence[str]) -> bool:
    """Whether lines are full of words, as indented text is and a program is not."""
    return sum(len(line.split()) for line in lines) >= _PROSE * len(lines) and not any(map(_CODE.match, lines))


def _listing(lines: Sequence[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _is_title(line: str) -> bool:
    """Whether a line of its own is a heading: in capitals, or numbered, and no sentence."""
    if len(line) > _LONGEST_TITLE or line[-1] in ".!?,;:":
        return False
    in_capitals = line.isupper() and sum(map(str.isalpha, line)) > _LEAST
    return in_capitals or _NUMBERED.fullmatch(line) is not None


def _table(lines: Sequence[str]) -> str:
    """Return lines of equally many columns as a table, empty for others; the line above a rule is its header."""
    rows: list[list[str]] = []
    heads = 0
    for number, line in enumerate(lines):
        if _RULE.fullmatch(line):
            heads = heads or (1 if len(rows) == 1 and number > 0 else 0)
        else:
            rows.append([cell.strip() for cell in _GAP.split(line.strip().strip("|").strip())])
    width = len(rows[0]) if rows else 0
    if len(rows) < _LEAST or width < _LEAST or any(len(row) != width for row in rows):
        return ""
    # Two columns of long cells are sentences with a double blank between them.
    if width == _LEAST and not heads and sum(len(cell) for row in rows for cell in row) > _WIDTH * len(rows):
        return ""
    return html_table(rows, header=heads > 0)


def _items(lines: Sequence[str]) -> str:
    """Return a list; a line without a mark goes on with the item before it."""
    items: list[str] = []
    first = ""
    for line in lines:
        mark = _BULLET.match(line)
        if mark:
            first = first or mark[1] or ""
            items.append(mark[2].strip())
        else:
            items[-1] += " " + line.strip()
    tag, start = ("ol", f' start="{int(first)}"' if int(first) != 1 else "") if first else ("ul", "")
    return f"<{tag}{start}>" + "".join(f"<li>{escape(item)}</li>" for item in items) + f"</{tag}>"


def _unbroken(lines: Sequence[str]) -> list[str]:
    """Return lines, those that were only broken to fit a width joined again."""
    longest = max(len(line.rstrip()) for line in lines)
    joined = [lines[0].strip()]
    for before, line in pairwise(lines):
        text = line.strip()
        was_full = _WIDTH <= longest <= 4 * _WIDTH and len(before.rstrip()) >= _FILLED * longest
        if text[0].islower() or was_full:
            joined[-1] += " " + text
        else:
            joined.append(text)
    return joined
