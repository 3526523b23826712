"""Plain text to HTML: paragraphs, headings, lists, tables, `key: value`, logs and code,
recognized by their lines.

A line stays a line unless it was only broken to fit a width. A block (lines between two
empty ones) is recognized by all of its lines; one odd line does not change it. Not
for: Markdown, CSV, JSON (`text.py`).
"""

import re
from collections.abc import Sequence
from itertools import chain, groupby, pairwise
from typing import Final

from pipeline.document.converted import Converted, escape, html_table, whole_page
from pipeline.html.blocks import CODE_LINES
from pipeline.work import check_cancelled

_INDENTED_LINE: Final = re.compile(r" {4,}\S|\t+\S")
_CODE_LINE: Final = re.compile(
    r".*[{};]\s*$|\s*(?:(?:async )?def \w+\(|class \w+\s*[(:{]|import [\w.{]+$|from [\w.]+ import|#include\s*<"
    r"|function\s*\w*\(|(?:var|const|let) \w+ ?=|(?:if|for|while|else|elif|try|with)\b.*:\s*$|[\w.]+\(.*\)$"
    r"|\w+ = |[$#] \w)"
)
"""A line of a program or of a console."""
_UNDERLINE: Final = re.compile(r"(?:=|-|~){3,}\s*")
_RULE: Final = re.compile(r"(?=.*(?:--|==|\+-))[\s|+:=-]+")
_NONBLANK: Final = re.compile(r"\S+")
_COLUMN_GAP: Final = re.compile(r"\s*\|\s*|\s*\t\s*|\s{2,}")
_LABEL_AND_VALUE: Final = re.compile(r"([^\W\d_][^:.!?]{0,38}[^\s:.!?]):\s+(\S.*)")
_LOGGED: Final = re.compile(
    r"\[?(?:\d{4}-\d\d-\d\d|\d\d[:/]\d\d[:/]\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:)"
    r"|\W?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b"
)
_PROMPT: Final = re.compile(
    r"\s*(?:\$|>>>|\w+@[\w.:~/-]+[$#]|[A-Z]:\\[^>]{0,80}>|PS [^>]{1,80}>) ?\S"
)
"""What a console writes before a command."""
_BULLET: Final = re.compile(r"\s{0,8}(?:[-*•·–]|o(?=\s{2})|\(?(\d{1,3})[.)])\s+(\S.*)")
_OPTION_LINE: Final = re.compile(r"\s*--?\w")
_OUTLINED: Final = re.compile(r"\s*\d{1,3}(?:\.\d{1,3})*\.?\s+\S")
_FIELD_LINE: Final = re.compile(r"[A-Z][\w-]*:\s")
_NUMBERED_HEADING: Final = re.compile(
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[IVX]{1,5}\.|Chapter \S+|Section \S+|Appendix \S+)\s+[^\W\d_].*"
)
_LONGEST_TITLE: Final = 80
_PUNCTUATION: Final = ".,;:!?'\"()[]“”‘’«»"
"""Signs of prose around a word."""
_FILLED_LINE: Final = 0.7
"""Share of the longest line from which a line was broken to fit the width; words are
shorter than the rest."""
_NARROWEST_WIDTH: Final = 50
"""Characters of the narrowest width to which text is broken."""
_PROSE_LINE_WORDS: Final = 7
"""Words a line from which indented lines are text."""
_NARROW_CHARACTERS: Final = 30
"""Characters of the narrowest text whose lines go on with a small letter; those of a
list are shorter."""
_NAME_WORDS: Final = 4
"""Of a column at most."""
_CENTRED: Final = 12
"""Minimum leading spaces of a centered line."""
_FILLED_TABLE: Final = 0.8
"""Share of the cells of a table that hold something."""


def plain_to_html(text: str) -> Converted:
    """Return plain text as HTML that says what its blocks are; an empty text gives an
    empty page."""
    html_blocks: list[str] = []
    blocks = [
        list(lines)
        for is_text, lines in groupby(
            text.splitlines(), key=lambda line: line.strip() != ""
        )
        if is_text
    ]
    for number, lines in enumerate(blocks):
        if number % 1000 == 0:
            check_cancelled()
        if (
            len(lines) > 1
            and lines[0].isupper()
            and _is_title(lines[0])
            and lines[1][0].isspace()
        ):
            html_blocks.append(f"<h2>{escape(lines.pop(0).strip())}</h2>")
        html_blocks.append(_block(lines, is_last=number == len(blocks) - 1))
    return Converted(whole_page("\n".join(html_blocks)))


def indent_of(line: str) -> int:
    """Return the blanks before the first letter of a line."""
    return len(line) - len(line.lstrip())


def source_to_html(text: str, language: str) -> Converted:
    """Return a program as listings of at most `CODE_LINES` lines under their numbers,
    and the enclosing definition, if above."""
    lines = text.replace("\r\n", "\n").rstrip().split("\n")
    listings: list[str] = []
    start, enclosing_definition = 0, ""
    while start < len(lines):
        check_cancelled()
        stop = min(len(lines), start + CODE_LINES)
        if stop < len(lines):
            stop = max(
                range(start + CODE_LINES // 2, stop + 1),
                key=lambda number: _is_joint(lines, number),
            )
        inside = (
            f" · {enclosing_definition}"
            if enclosing_definition and lines[start][:1].isspace()
            else ""
        )
        listings.append(f"<h2>Lines {start + 1}-{stop}{escape(inside)}</h2>")
        listings.append(
            f"<pre><code "
            f'class="language-{language}">{escape(chr(10).join(lines[start:stop]))}</code></pre>'
        )
        enclosing_definition = next(
            (line for line in reversed(lines[start:stop]) if line[:1].isidentifier()),
            enclosing_definition,
        )
        start = stop
    return Converted(whole_page("\n".join(listings)))


def _is_joint(lines: Sequence[str], number: int) -> tuple[bool, int, int]:
    """Order lines by how well a program is cut above them: below an empty line, at the
    least indented, late."""
    line = lines[number].lstrip()
    return (
        line != "" and not lines[number - 1].strip(),
        len(line) - len(lines[number]),
        number,
    )


def _block(lines: list[str], *, is_last: bool) -> str:
    """Return the lines between two empty ones as what they are.

    What is nothing else becomes paragraphs."""
    heading = _heading(lines, is_last=is_last)
    if heading:
        return heading
    forms = (_prompted, _option, _indented, _table, _pairs, _records, _items, _drawn)
    block_html = next(filter(None, (form(lines) for form in forms)), "")
    return block_html or "\n".join(
        f"<p>{escape(line)}</p>" for line in _unbroken(lines)
    )


# Each form returns HTML, empty for lines that are something else.


def _heading(lines: Sequence[str], *, is_last: bool) -> str:
    title_line = lines[0].strip()
    underlined = (
        len(lines) == 2 and _UNDERLINE.fullmatch(lines[1]) and len(lines[0]) <= 120
    )
    if not underlined:
        if len(lines) > 1 or is_last:
            return ""
        centred = indent_of(lines[0]) >= _CENTRED and not _CODE_LINE.match(lines[0])
        if not centred and not _is_title(title_line):
            return ""
    return f"<h2>{escape(title_line)}</h2>"


def _prompted(lines: Sequence[str]) -> str:
    return _listing(lines) if _PROMPT.match(lines[0]) else ""


def _option(lines: Sequence[str]) -> str:
    """An option of a command above what it does, which is set in."""
    depths = {indent_of(line) for line in lines[1:]} - {indent_of(lines[0])}
    if not _OPTION_LINE.match(lines[0]) or len(depths) != 1:
        return ""
    description = " ".join(map(str.strip, lines[1:]))
    return f"<dl><dt>{escape(lines[0].strip())}<dd>{escape(description)}</dl>"


def _indented(lines: Sequence[str]) -> str:
    set_in = all(map(_INDENTED_LINE.match, lines)) and not all(
        map(_BULLET.match, lines)
    )
    return _listing(lines) if set_in and not _is_prose(lines) else ""


def _pairs(lines: Sequence[str]) -> str:
    pairs = [_LABEL_AND_VALUE.fullmatch(line.strip()) for line in lines]
    if len(lines) < 2 or not all(pairs):
        return ""
    rows = (f"<dt>{escape(pair[1])}<dd>{escape(pair[2])}" for pair in pairs if pair)
    return f"<dl>{''.join(rows)}</dl>"


def _records(lines: Sequence[str]) -> str:
    """Return the lines of an outline, or of a log, as paragraphs; empty for other
    lines."""
    outlined = all(map(_OUTLINED.match, lines)) and any(
        "." in line.split()[0][:-1] for line in lines
    )
    logged = _LOGGED.match(lines[0]) and sum(map(bool, map(_LOGGED.match, lines))) >= 2
    if not outlined and not logged:
        return ""
    return "\n".join(f"<p>{escape(line.strip())}</p>" for line in lines)


def _drawn(lines: Sequence[str]) -> str:
    """Return lines of which most are code, or have their words in columns, as a table
    or a listing; empty for other lines."""
    apart = sum(
        "   " in line.strip() or "\t" in line.strip() or bool(_RULE.fullmatch(line))
        for line in lines
    )
    code = sum(
        bool(_CODE_LINE.match(line) or _INDENTED_LINE.match(line)) for line in lines
    )
    like_code = 2 * code > len(lines) and not _is_prose(lines)
    if like_code or 2 * apart > len(lines) >= 2:
        return _columns(lines) or _listing(lines)
    return ""


def _is_prose(lines: Sequence[str]) -> bool:
    """Whether lines are full of words, as indented text is and a program is not."""
    return sum(len(line.split()) for line in lines) >= _PROSE_LINE_WORDS * len(
        lines
    ) and not any(map(_CODE_LINE.match, lines))


def _listing(lines: Sequence[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _is_title(line: str) -> bool:
    """Whether a line of its own is a heading: in capitals, or numbered, and no
    sentence."""
    if len(line) > _LONGEST_TITLE or line[-1] in ".!?,;:":
        return False
    in_capitals = line.isupper() and sum(map(str.isalpha, line)) > 2
    return in_capitals or _NUMBERED_HEADING.fullmatch(line) is not None


def _table(lines: Sequence[str]) -> str:
    """Return lines of equally many columns as a table, empty for others; the line above
    a rule is its header."""
    rows: list[list[str]] = []
    header = False
    for line in lines:
        if not _RULE.fullmatch(line):
            cells = _COLUMN_GAP.split(line.strip().strip("|").strip())
            rows.append([cell.strip() for cell in cells])
        elif len(rows) == 1:
            header = True
    widths = set(map(len, rows))
    if len(rows) < 2 or len(widths) > 1 or widths == {1}:
        return ""
    # Two columns of long cells are sentences with a double blank between them.
    letters = sum(map(len, chain.from_iterable(rows)))
    if widths == {2} and not header and letters > _NARROWEST_WIDTH * len(rows):
        return ""
    return html_table(rows, header=header)


def _columns(lines: Sequence[str]) -> str:
    """Return lines in columns that blanks part in all of them as a table, empty for
    others; the first names each."""
    lines = [line.expandtabs() for line in lines]
    ranges = _column_ranges(lines)
    if not 2 < len(ranges) <= sum(map(len, lines)) / len(lines):
        return ""
    rows = [
        [line[start:stop].strip() for start, stop in ranges]
        for line in lines
        if not _RULE.fullmatch(line)
    ]
    filled = sum(map(bool, chain.from_iterable(rows)))
    if (
        len(rows) <= 2
        or _is_torn(rows)
        or filled < _FILLED_TABLE * (len(rows) * len(ranges))
    ):
        return ""
    return html_table(rows, header=len(rows) < len(lines))


def _column_ranges(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return where columns begin and end that blanks part in all lines, each with a
    name in the first line."""
    used = bytearray(max(map(len, lines)))
    for line in lines:
        for word in _NONBLANK.finditer(line):
            used[word.start() : word.end()] = b"x" * len(word[0])
    starts = [
        gap.end()
        for gap in re.finditer(rb"\0+|\A(?!\0)", bytes(used))
        if gap.end() < len(used)
    ]
    ends = [*starts[1:], len(used)]
    # Text below no column name continues the column before it.
    begins = [
        start
        for start, stop in zip(starts, ends, strict=True)
        if lines[0][start:stop].strip()
    ]
    return list(pairwise([*begins, len(used)]))


def _is_torn(rows: Sequence[Sequence[str]]) -> bool:
    """Whether columns cut through text: a cell has a gap, a row begins without a word,
    or a column's name is long."""
    return (
        any("   " in cell for row in rows for cell in row[:-1])
        or not all(row[0] for row in rows)
        or any(len(name.split()) > _NAME_WORDS for name in rows[0])
    )


def _items(lines: Sequence[str]) -> str:
    """Return a list; a line without a mark goes on with the item before it. Empty where
    the first line has none; of the numbers the first counts."""
    if not _BULLET.match(lines[0]):
        return ""
    items: list[str] = []
    first_number = ""
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet:
            first_number = first_number or bullet[1] or ""
            items.append(bullet[2].strip())
        else:
            items[-1] += " " + line.strip()
    tag, start = (
        ("ol", f' start="{int(first_number)}"' if int(first_number) != 1 else "")
        if first_number
        else ("ul", "")
    )
    return (
        f"<{tag}{start}>"
        + "".join(f"<li>{escape(item)}</li>" for item in items)
        + f"</{tag}>"
    )


def _is_own(before: str, line: str) -> bool:
    """Whether a line is a record as the one before it: it begins with a word of the
    same signs, or names a field."""
    words = [text.split(None, 1)[0].strip(_PUNCTUATION) for text in (before, line)]
    signs = [re.sub(r"\w", "", word) for word in words]
    same_signs = set(signs[0]) == set(signs[1]) != set()
    numbered = any(map(str.isdigit, words[1])) or len(signs[1]) >= 2
    return (same_signs and numbered) or _FIELD_LINE.match(line) is not None


def _unbroken(lines: Sequence[str]) -> list[str]:
    """Return lines, those that were only broken to fit a width joined again."""
    longest = max(len(line.rstrip()) for line in lines)
    joined = [lines[0].strip()]
    for before, line in pairwise(lines):
        text = line.strip()
        was_full = (
            _NARROWEST_WIDTH <= longest <= 4 * _NARROWEST_WIDTH
            and len(before.rstrip()) >= _FILLED_LINE * longest
        )
        if (
            (text[0].islower() and longest >= _NARROW_CHARACTERS) or was_full
        ) and not _is_own(before, text):
            joined[-1] += " " + text
        else:
            joined.append(text)
    return joined
