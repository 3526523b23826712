"""Manual pages saved as text (`man rsync > rsync.txt`) to HTML, by their indentation.

Sections and subsections become headings, terms with their indented descriptions
definition lists, marked items lists, the synopsis and other indented non-prose
listings. Lines are joined, words that were broken too. Not for: other plain text
(`pipeline/read/plain.py`), or the source of manual pages."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Final

from pipeline.document.converted import Converted, escape, whole_page
from pipeline.read.plain import indent_of
from pipeline.work import check_cancelled

_PAGE_HEADER: Final = re.compile(r"(\S+\(\d\w*\)).*\S.*\s(\S+\(\d\w*\))\s*")
"""The first line: name, title, name once more."""
_NAME_SECTION: Final = re.compile(
    r"[^\W\d_]+\n {3,8}\S+(?:, \S+)* [-–—] .+\n(?: {3,8}\S.*\n)*\n+[^\W\d_]+\n {3,8}\S"
)
"""A page without its first line: name and what it is about under one title, then the
synopsis."""
_OVERSTRUCK: Final = re.compile(r".\x08")
"""How terminals without fonts print bold and underlined."""
_WIDE_BLANK: Final = re.compile(r"(?<=\S)\s{2,}(?=\S)")
_CODE_SIGNS: Final = re.compile(r"[{};=]|^\s*[$#%]\s|\(\)")
_MANUAL_BULLET: Final = re.compile(
    r"(?:[o*•·+–-]|\(?(\d{1,3}|[a-z])[.)])(?:\s+(?=\S)|$)"
)
_TAGGED_LINE: Final = re.compile(r"(-[^\s,]{5,6}) (?=\S)|(\S(?:.*?\S)?)\s{2,}(?=\S)")
"""A term with its description on one line."""
_MANUAL_TERM: Final = re.compile(r"-|[^\s.]+$|[^.]{1,60}$")
_SUBSECTION: Final = 4
"""Blanks in front of a subsection's title at most; text has more."""
_DEEP: Final = 24
"""Levels of lists in lists that are read as such."""
_TITLE_WIDTH: Final = 90
"""Characters of the title with what the page is about."""
_PROSE_WORDS: Final = 6
"""Words from which an indented line is text and no listing."""
_PAGE_COLUMNS: Final = 60
"""Columns that the longest line of text reaches: pages are 78 or more wide."""
_COLUMN_SLACK: Final = 10
"""Columns that a line of text may be shorter than the longest beside it, besides the
word that did not fit."""
_MOSTLY: Final = 0.8
"""Share of lines whose description begins in one column."""
_ALIGNED: Final = 2
"""Lines with their second part in one column from which they are terms with
descriptions."""
_TAB_STOPS: Final = frozenset({7, 8})
"""Column at which descriptions begin after a short term, in both formatters."""
_TERM_GAP: Final = 5
"""Minimum spaces between term and description on one line, if the term is not an
option."""


def is_manual(text: str) -> bool:
    """Whether a text is a formatted manual page: its first line names it on both sides,
    sections are at the left margin."""
    first = _OVERSTRUCK.sub("", text[:2_000].lstrip().partition("\n")[0])
    header = _PAGE_HEADER.fullmatch(first)
    if header is not None:
        return header[1].casefold() == header[2].casefold()
    return _NAME_SECTION.match(text[:2_000].lstrip("\n")) is not None


def manual_to_html(text: str) -> Converted:
    """Return a manual page as HTML; any other text than one for which `is_manual` is
    true may raise `IndexError`."""
    name, body = _name_and_body(text)
    starts = [
        number for number, line in enumerate(body) if line and not line[0].isspace()
    ]
    cuts = [*(starts or [0]), len(body)]

    parts: list[str] = []
    for index, (start, stop) in enumerate(pairwise(cuts)):
        check_cancelled()
        inner = body[start + 1 : stop]
        parts.append(f"<h2>{escape(body[start])}</h2>")
        parts.append(
            _synopsis(inner, name)
            if index == 1 and _is_synopsis(inner, name)
            else _section(inner)
        )

    about = _joined(body[cuts[0] + 1 : cuts[1]])
    said = re.split(r"\s[-–—]+\s", about, maxsplit=1)[-1]
    title = f"{name} – {said}" if said and len(said) < _TITLE_WIDTH else name
    return Converted(
        whole_page(f"<h1>{escape(title)}</h1>\n" + "\n".join(parts), title=title), title
    )


def _name_and_body(text: str) -> tuple[str, list[str]]:
    """Return what a manual page is about, and its lines without those at both ends that
    repeat name and date."""
    lines = [
        line.rstrip().expandtabs()
        for line in _OVERSTRUCK.sub("", text).strip().splitlines()
    ]
    if not _PAGE_HEADER.fullmatch(lines[0]):
        return lines[1].split()[0].rstrip(","), lines
    name = lines[0].split()[0]
    ends = len(lines) > 2 and lines[-1][:1].strip()
    return name, lines[1:-1] if ends else lines[1:]


def _is_synopsis(lines: Sequence[str], name: str) -> bool:
    """Whether a section begins with how a program or a function is called."""
    first = next(iter(_blocks(lines)), [])
    return (
        bool(first)
        and indent_of(first[0]) > _SUBSECTION
        and (_is_call(first, name) or not _is_prose(first))
    )


def _is_call(lines: Sequence[str], name: str) -> bool:
    return lines[0].split()[0].casefold() == name.partition("(")[0].casefold()


def _synopsis(lines: Sequence[str], name: str) -> str:
    """Return the section that says how a program is called: code, but for what is
    prose."""
    parts: list[str] = []
    for prose, blocks in groupby(
        _blocks(lines), key=lambda block: _is_prose(block) and not _is_call(block, name)
    ):
        if prose:
            parts += [f"<p>{escape(_joined(block))}</p>" for block in blocks]
        else:
            parts.append(
                _listing([line for block in blocks for line in (*block, "")][:-1])
            )
    return "\n".join(parts)


def _section(lines: Sequence[str]) -> str:
    """Return the text of a section with the titles of its subsections."""
    parts: list[str] = []
    inner: list[str] = []
    for number, line in enumerate(lines):
        above = lines[number - 1] if number else ""
        if (
            line
            and indent_of(line) <= _SUBSECTION
            and (not above or indent_of(above) <= _SUBSECTION)
        ):
            parts += [_body(inner), f"<h3>{escape(line.strip())}</h3>"]
            inner = []
        else:
            inner.append(line)
    return "\n".join(filter(None, [*parts, _body(inner)]))


def _body(lines: Sequence[str], depth: int = 0) -> str:
    """Return lines as paragraphs, lists, definitions and listings, each with what is
    indented below it; "" if all lines are blank."""
    if not any(lines):
        return ""
    left = min(indent_of(line) for line in lines if line)
    parts: list[tuple[str, str]] = []
    index = 0
    while index < len(lines):
        if not lines[index]:
            index += 1
            continue
        opens = not index or not lines[index - 1]
        if opens and (column := _column(lines, index, left)):
            stop = next(
                (n for n in range(index, len(lines)) if not lines[n]), len(lines)
            )
            parts.append(("dl", _aligned(lines[index:stop], column)))
            index = stop
            continue
        stop = _end(lines, index, left)
        parts.append(
            _piece(lines[index:stop], left, depth, after=parts[-1][0] if parts else "")
        )
        index = stop
    return _wrapped(parts)


def _column(lines: Sequence[str], start: int, left: int) -> int:
    """Return where the descriptions begin of lines that have term and description each,
    0 for other lines."""
    stop = next(
        (number for number in range(start, len(lines)) if not lines[number]), len(lines)
    )
    at_left = [line for line in lines[start:stop] if indent_of(line) == left]
    ends = Counter(
        found.end() for line in at_left if (found := _WIDE_BLANK.search(line))
    )
    if not ends or len(at_left) < _ALIGNED:
        return 0
    column, count = ends.most_common(1)[0]
    others = {indent_of(line) for line in lines[start:stop]} - {left, column}
    return (
        column
        if count >= _ALIGNED and count >= _MOSTLY * len(at_left) and not others
        else 0
    )


def _aligned(lines: Sequence[str], column: int) -> str:
    """Return lines of terms and descriptions, see `_column`."""
    parts: list[str] = []
    for line in lines:
        cut = (
            column
            if not line[:column].strip() or line[column - 2 : column].isspace()
            else len(line)
        )
        term, text = line[:cut].strip(), escape(_joined([line[cut:]]))
        parts.append(f"<dt>{escape(term)}" if term else " ")
        waits = bool(term) or (len(parts) > 1 and parts[-2].startswith("<dt>"))
        parts.append(f"<dd>{text}" if text and waits else text)
    return "".join(parts)


def _end(lines: Sequence[str], start: int, left: int) -> int:
    """Return where a piece ends that begins at `start`: the next line at the left that
    is not of its paragraph."""
    stop = start + 1
    marked = (
        indent_of(lines[start]) > left
        or _MANUAL_BULLET.match(lines[start].strip())
        or _tag(lines[start : start + 2])
    )
    if not marked:
        stop = _paragraph_end(lines, start, left)
        # An indented line directly below makes the line above it a term.
        if stop == len(lines) or not lines[stop] or indent_of(lines[stop]) == left:
            return stop
    while stop < len(lines) and (not lines[stop] or indent_of(lines[stop]) > left):
        stop += 1
    return stop


def _paragraph_end(lines: Sequence[str], start: int, left: int) -> int:
    """Return where lines at the left end that follow each other; options are one
    paragraph."""
    stop = start + 1
    options = lines[start].strip().startswith("-")
    while stop < len(lines) and lines[stop] and indent_of(lines[stop]) == left:
        goes_on = options and lines[stop].strip().startswith("-")
        if not goes_on and _starts(lines, stop):
            break
        stop += 1
    return stop


def _starts(lines: Sequence[str], index: int) -> bool:
    """Whether a line begins something of its own although no empty line is above it."""
    line = lines[index].strip()
    deeper = index + 1 < len(lines) and indent_of(lines[index + 1]) > indent_of(
        lines[index]
    )
    tagged = line.startswith("-") and _tag(lines[index : index + 2]) is not None
    return (
        bool(_MANUAL_BULLET.match(line))
        or tagged
        or (deeper and _MANUAL_TERM.match(line) is not None)
    )


def _tag(lines: Sequence[str]) -> re.Match[str] | None:
    """Return the term in front of its description on the first of two lines; the second
    says whether it goes on; None where there is none."""
    found = _TAGGED_LINE.match(lines[0].strip())
    if found is None:
        return None
    # Lines that are set to both margins have wide blanks as well.
    after = "".join(lines[1:2])
    beside = indent_of(after) == indent_of(lines[0]) and not after.strip().startswith(
        "-"
    )
    if (found[1] or found[2]).startswith("-"):
        return None if after and beside else found
    goes_on = after and indent_of(after) != indent_of(lines[0]) + len(found[0])
    at_stop = len(found[0]) in _TAB_STOPS or len(found[0]) - len(found[2]) >= _TERM_GAP
    return found if at_stop and not goes_on else None


def _piece(
    lines: Sequence[str], left: int, depth: int, *, after: str
) -> tuple[str, str]:
    """Return what the lines up to the next piece are, and their HTML.

    Beyond `_DEEP` levels it is one paragraph."""
    first = lines[0]
    if depth > _DEEP:
        return "p", f"<p>{escape(_joined(lines))}</p>"
    if indent_of(first) > left:
        return "p", _listing(lines) if _is_code(lines) else _body(lines, depth + 1)
    if mark := _MANUAL_BULLET.match(first.strip()):
        return ("ol" if mark[1] else "ul"), _item(
            first.strip()[mark.end() :], lines[1:], depth
        )
    return _term(lines, left, depth, after=after)


def _term(
    lines: Sequence[str], left: int, depth: int, *, after: str
) -> tuple[str, str]:
    """Return a paragraph, or a term with what is indented below it, or beside it."""
    first = lines[0].strip()
    deeper = next(
        (number for number, line in enumerate(lines) if indent_of(line) > left),
        len(lines),
    )
    if tag := _tag(lines[:2]):
        column = left + tag.end() if deeper == len(lines) else indent_of(lines[deeper])
        own = " " * column + first[tag.end() :]
        return (
            "dl",
            f"<dt>{escape(tag[1] or tag[2])}<dd>{_body([own, *lines[1:]], depth + 1)}",
        )
    if deeper == len(lines):
        return "p", f"<p>{escape(_joined(lines))}</p>"
    if after != "dl" and not first.startswith("-") and _is_program(lines):
        return "p", _listing(lines)
    terms = "".join(f"<dt>{escape(line.strip())}" for line in lines[:deeper] if line)
    return "dl", f"{terms}<dd>{_body(lines[deeper:], depth + 1)}"


def _item(text: str, lines: Sequence[str], depth: int) -> str:
    """Return an item, or those inside one that has no words of its own."""
    if not text:
        inner = _body(lines, depth + 1)
        items = re.fullmatch(r"<[uo]l>\n(.*)\n</[uo]l>", inner, re.DOTALL)
        return items[1] if items else f"<li>{inner}"
    deeper = next((number for number, line in enumerate(lines) if not line), len(lines))
    own = _joined([text, *lines[:deeper]])
    return f"<li>{escape(own)}{_body(lines[deeper:], depth + 1)}"


def _wrapped(parts: Sequence[tuple[str, str]]) -> str:
    """Return pieces with the tag of their list around those that follow each other."""
    found: list[str] = []
    for kind, group in groupby(parts, key=lambda part: part[0]):
        inner = "\n".join(html for _, html in group)
        found.append(inner if kind == "p" else f"<{kind}>\n{inner}\n</{kind}>")
    return "\n".join(found)


def _blocks(lines: Sequence[str]) -> list[list[str]]:
    return [list(block) for is_text, block in groupby(lines, key=bool) if is_text]


def _is_prose(lines: Sequence[str]) -> bool:
    """Whether lines are text: full up to where the next word did not fit, or a sentence
    on a single line."""
    if len(lines) > 1:
        width = max(map(len, lines)) - _COLUMN_SLACK
        return width >= _PAGE_COLUMNS - _COLUMN_SLACK and all(
            len(line) + len(after.split(None, 1)[0]) >= width
            for line, after in pairwise(lines)
        )
    return len(lines[0].split()) >= _PROSE_WORDS and lines[0].endswith((".", ":", ";"))


def _is_code(lines: Sequence[str]) -> bool:
    """Whether indented lines are an example: no prose, no marked item, no term."""
    inside = [line for line in lines if line]
    if any(
        _MANUAL_BULLET.match(line.strip())
        or (_tag([line]) and line.strip().startswith("-"))
        for line in inside
    ):
        return False
    return not any(map(_is_prose, _blocks(lines)))


def _is_program(lines: Sequence[str]) -> bool:
    """Whether lines are an example, most of them with the signs of a program."""
    inside = [line for line in lines if line]
    signed = sum(_CODE_SIGNS.search(line) is not None for line in inside)
    return _is_code(lines) and 2 * signed > len(inside)


def _listing(lines: Sequence[str]) -> str:
    left = min(indent_of(line) for line in lines if line)
    return f"<pre>{escape(chr(10).join(line[left:] for line in lines).strip(chr(10)))}</pre>"


def _joined(lines: Sequence[str]) -> str:
    """Return lines as one, words that a hyphen of the formatter broke whole again."""
    text = " ".join(" ".join(lines).split())
    return text.replace("‐ ", "")
