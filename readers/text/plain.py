"""Plain text to HTML: paragraphs, headings, lists, tables and listings, recognized by
their lines; programs as listings.

A line stays a line unless it was only broken to fit a width. A block (lines between two
empty ones) is recognized by all of its lines. Not for: Markdown, CSV, JSON (`markup.py`).
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Final

from cancellation import check_cancelled
from readers.converted import Converted, escape, html_table, whole_page
from readers.html.blocks import CODE_LINES
from readers.page import TITLE_CHARACTERS

_CODE_LINE: Final = re.compile(
    r" {4,}\S|\t+\S|.*[{};]\s*$|.*\)\s*$|.*:\s*$|\w+ = |[$#>]+ \S"
)
"""A line that may be of a program or of a console."""
_STARTS_CODE: Final = re.compile(r" {4,}\S|\t+\S|#!|.*[{};]\s*$|.*\):\s*$")
"""A line with which a listing begins."""
_PROMPT: Final = re.compile(r"\s*(?:\$|>>>) ?\S")
"""What a console writes before a command."""
_RULE: Final = re.compile(r"(?=.*(?:--|==|~~|\+-))[\s|+:=~-]+")
_COLUMN_GAP: Final = re.compile(r"\s*\|\s*|\s*\t\s*|\s{2,}")
_BULLET: Final = re.compile(r"\s{0,8}(?:[-*•·–]|\(?(\d{1,3})[.)])\s+(\S.*)")
_NUMBERED_HEADING: Final = re.compile(
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[IVX]{1,5}\.|Chapter \S+|Section \S+|Appendix \S+)\s+[^\W\d_].*"
)
_WIDTHS: Final = range(50, 201)
"""Characters of the longest line where text was broken to fit a width."""
_FILLED_LINE: Final = 0.7
"""Share of the longest line from which a line was broken to fit the width; words are
shorter than the rest."""
_PUNCTUATION: Final = ".,;:!?'\"()[]“”‘’«»"
_NAMED_FILES: Final = 5
_PROSE_LINE_WORDS: Final = 7
"""Words a line from which indented lines are text."""


def plain_to_html(text: str) -> Converted:
    """Return plain text as HTML that says what its blocks are; an empty text gives an
    empty page."""
    blocks = [
        list(lines)
        for is_text, lines in groupby(
            text.splitlines(), key=lambda line: line.strip() != ""
        )
        if is_text
    ]
    html_blocks: list[str] = []
    for number, lines in enumerate(blocks):
        if number % 1000 == 0:
            check_cancelled()
        if _is_heading(lines, is_final=number == len(blocks) - 1):
            html_blocks.append(f"<h2>{escape(lines.pop(0).strip())}</h2>")
        if not all(map(_RULE.fullmatch, lines)):
            html_blocks.append(_block_to_html(lines))
    return Converted(whole_page("\n".join(html_blocks)))


_TEX_COMMENT: Final = re.compile(r"^[ \t]*%.*\n?|[ \t]+%.*")
_TEX_LISTING: Final = re.compile(
    r"^[ \t]*\\(?:(begin)|end)\{(?:verbatim|lstlisting|minted)\*?\}"
)
_TEX_FILE: Final = re.compile(
    r"\\(?:input|include|subfile)\b(?:\s*\{([^{}\n]{1,200})\})?"
)


def tex_to_html(text: str) -> Converted:
    """Return LaTeX as plain text without comments, which no reader of the print sees; a
    note counts them. Files that it includes count as unread, the first ones by name."""
    text, notes = without_comments(text, _TEX_COMMENT, _TEX_LISTING)
    page = plain_to_html(text)
    files = _TEX_FILE.findall(text)
    names = ", ".join(dict.fromkeys(filter(None, files[:_NAMED_FILES])))
    unread = f"included files: {len(files)} ({names or 'without names'})"
    return replace(page, notes=notes, unread=unread if files else "")


def without_comments(
    text: str, comment: re.Pattern[str], listing: re.Pattern[str]
) -> tuple[str, tuple[str, ...]]:
    """Return a text without the comments in its lines, and a note that counts them; in
    listings, whose first line `listing` matches with a group, nothing is one."""
    lines, comments, is_listing = list[str](), 0, False
    for line in text.splitlines(keepends=True):
        if edge := listing.match(line):
            is_listing = edge[1] is not None
        kept, found = (line, 0) if edge or is_listing else comment.subn("", line)
        lines.append(kept)
        comments += found
    return "".join(lines), (f"comments left out: {comments}",) * (comments > 0)


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


def _is_heading(lines: Sequence[str], *, is_final: bool) -> bool:
    """Whether a block begins with a heading: a title of its own, or one that is
    underlined or above lines that are set in."""
    title = lines[0].strip()
    if len(title) > TITLE_CHARACTERS:
        return False
    if len(lines) > 1:
        is_underlined = (
            len(lines) == 2 and not is_final and _RULE.fullmatch(lines[1]) is not None
        )
        return is_underlined or (title.isupper() and lines[1][0].isspace())
    in_capitals = title.isupper() and sum(map(str.isalpha, title)) > 2
    is_title = in_capitals or _NUMBERED_HEADING.fullmatch(title) is not None
    return is_title and not is_final and title[-1] not in ".!?,;:"


def _block_to_html(lines: list[str]) -> str:
    """Return the lines between two empty ones as what they are; what is nothing else
    becomes paragraphs."""
    forms = (_items(lines), _table(lines), _listing(lines))
    paragraphs = "\n".join(f"<p>{escape(line)}</p>" for line in _unbroken(lines))
    return next(filter(None, forms), paragraphs)


# Each form returns HTML, empty for lines that are something else.


def _items(lines: Sequence[str]) -> str:
    """Return a list; a line without a mark goes on with the item before it. Of the
    numbers the first counts."""
    start = _BULLET.match(lines[0])
    if start is None:
        return ""
    items: list[list[str]] = []
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet:
            items.append([bullet[2].strip()])
        else:
            items[-1].append(line.strip())
    tag = f'ol start="{int(start[1])}"' if start[1] else "ul"
    listed = "".join(f"<li>{escape(' '.join(item))}</li>" for item in items)
    return f"<{tag}>{listed}</{tag[:2]}>"


def _table(lines: Sequence[str]) -> str:
    """Return lines of equally many columns as a table; the line above a rule is its
    header."""
    rows = [
        _COLUMN_GAP.split(line.strip().strip("|").strip())
        for line in lines
        if not _RULE.fullmatch(line)
    ]
    width = len(rows[0]) if rows else 0
    if len(rows) < 2 or any(len(row) != width for row in rows) or width == 1:
        return ""
    # Two columns of long cells are sentences with a double blank between them.
    if width == 2 and sum(len(cell) for row in rows for cell in row) > 50 * len(rows):
        return ""
    return html_table(rows, header=len(rows) < len(lines))


def _listing(lines: Sequence[str]) -> str:
    """Return lines that are code, or have their words in columns, as they are set."""
    code = sum(_CODE_LINE.match(line) is not None for line in lines)
    apart = sum(
        "   " in line.strip() or "\t" in line.strip() or bool(_RULE.fullmatch(line))
        for line in lines
    )
    words = sum(len(line.split()) for line in lines)
    is_prose = words >= _PROSE_LINE_WORDS * len(lines)
    is_code = _STARTS_CODE.match(lines[0]) and 2 * code > len(lines) and not is_prose
    is_set = 2 * apart > len(lines) >= 2
    if not (is_code or is_set or _PROMPT.match(lines[0])):
        return ""
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _unbroken(lines: Sequence[str]) -> list[str]:
    """Return lines, those that were only broken to fit a width joined again: the ones
    that go on in a small letter below a full line, and in a mail quote it as often."""
    longest = max(len(line.rstrip()) for line in lines)
    joined = [[lines[0].strip()]]
    for before, line in pairwise(lines):
        was_full = longest in _WIDTHS and len(before.rstrip()) >= _FILLED_LINE * longest
        goes_on = was_full or (longest in _WIDTHS and line.lstrip()[0].islower())
        # A date, an address or the rights of a file begin a record.
        signs = re.sub(r"[^\W\d_]", "", line.split()[0].strip(_PUNCTUATION))
        words = line.strip().lstrip("> ")
        if goes_on and len(signs) < 2 and quotes(line) == quotes(before):
            joined[-1].append(words)
        elif words:
            joined.append([line.strip()])
    return [" ".join(pieces) for pieces in joined]


def quotes(line: str) -> int:
    """Return how often a mail quotes what a line says: once for each `>` before it."""
    text = line.strip()
    return text.count(">", 0, len(text) - len(text.lstrip("> ")))
