"""AsciiDoc source (documentation of Git and others) to HTML: titles, blocks, lists,
terms, tables; markup goes.

Attributes, comments and conditions of the source are dropped; what other files would
include is not here. Not for: other plain text (`pipeline/read/plain.py`), Markdown (`pipeline/read/text.py`)."""

import re
from collections.abc import Sequence
from typing import Final

from pipeline.document.converted import Converted, escape, html_table, whole_page
from pipeline.work import check_cancelled

_SIGNED_CHARACTERS: Final = 20_000
"""Characters of a text in which signs of AsciiDoc are looked for."""
_FEWEST_SIGNS: Final = 3
"""Signs of AsciiDoc, besides a title, that make a text AsciiDoc."""
_ASCIIDOC_SIGN: Final = re.compile(
    r"^\[(?:verse|source|listing|quote|caption=|options=|cols=|\[|[A-Z]+\]|\[).*\]$"
    r"|^:[\w-]+:(?: .*)?$|^(?:ifdef|ifndef|endif|include)::\S*\[.*\]$|linkgit:\S+\[\w*\]"
    r"|^\S[^\n]*::\n(?=\S|[ \t]+\S)|^={2,5} \S|^\|===$|^(?:xref|image|link):\S+\[",
    re.MULTILINE,
)
_TITLE_LINE: Final = re.compile(r"(={1,6}) +(\S.*)")
_UNDERLINED: Final = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
"""Levels of titles by the mark below them."""
_UNDERLINE_SLACK: Final = 3
"""Characters by which a title and the line below it may differ in length."""
_BLOCK_FENCE: Final = re.compile(
    r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|\|===|```\w*)"
)
_ATTRIBUTE_LINE: Final = re.compile(
    r"\[[^\]]*\]\]?|:!?[\w-]+!?:(?: .*)?|//.*|(?:ifn?def|endif|ifeval|include)::\S*\[.*\]"
)
_CAPTION: Final = re.compile(r"\.([^\s.].*)")
_CAPTION_ATTRIBUTE: Final = re.compile(r'\[caption="([^"]*)"\]')
_LIST_ITEM: Final = re.compile(r"\s*(\*{1,5}|-|\.{1,5}|\d{1,3}\.|[a-z]\.) +(\S.*)")
_DEFINED_TERM: Final = re.compile(r"\s*(\S.*?)(?:::+|;;)(?: +(\S.*))?")
_ADMONITION: Final = re.compile(r"(NOTE|TIP|WARNING|CAUTION|IMPORTANT): ")
_INLINE_MACROS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"linkgit:([\w.-]+)\[(\w+)\]"), r"\1(\2)"),
    (re.compile(r"footnote:\[([^\]]*)\]"), r" (\1)"),
    (re.compile(r"<<[^,>]+,\s*([^>]+)>>"), r"\1"),
    (re.compile(r"<<([^>]+)>>"), r"\1"),
    (re.compile(r"(?:link|xref|mailto):+[^\s\[]+\[([^\]]+)\]"), r"\1"),
    (re.compile(r"(https?://[^\s\[]+)\[([^\]]+)\]"), r"\2 (\1)"),
    (re.compile(r"\{(?:asterisk)\}"), "*"),
    (re.compile(r"\{(?:tilde)\}"), "~"),
    (re.compile(r"\{(?:caret)\}"), "^"),
    (re.compile(r"\{(?:plus)\}"), "+"),
    (re.compile(r"(?<![\w`])`([^`\n]+)`(?!\w)"), r"\1"),
    (re.compile(r"(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<![\w'])'(\S(?:[^'\n]*\S)?)'(?!\w)"), r"\1"),
    (re.compile(r"(?<![\w_])_(\S(?:[^_\n]*\S)?)_(?!\w)"), r"\1"),
)
_BLOCK_DEPTH: Final = 12
"""Blocks and lists inside each other that are read as such."""


def is_asciidoc(text: str) -> bool:
    """Whether a text is AsciiDoc source: it begins with a title, and has several signs
    of it in its first `_SIGNED_CHARACTERS` characters."""
    lines = [
        line
        for line in text[:_SIGNED_CHARACTERS].splitlines()
        if line.strip() and not _ATTRIBUTE_LINE.fullmatch(line.strip())
    ]
    titled = bool(lines) and (
        _TITLE_LINE.fullmatch(lines[0]) is not None or _level(lines, 0) > 0
    )
    return (
        titled
        and len(_ASCIIDOC_SIGN.findall(text[:_SIGNED_CHARACTERS])) >= _FEWEST_SIGNS
    )


def asciidoc_to_html(text: str) -> Converted:
    """Return AsciiDoc source as HTML.

    Raises `Stopped`: the call was cancelled (in a worker thread only).
    """
    return Converted(whole_page(_BlockWriter(text.expandtabs().splitlines()).written()))


def _level(lines: Sequence[str], number: int) -> int:
    """Return the level of the title of two lines that begins at a line, 0 for none: a
    title and its underline differ by at most `_UNDERLINE_SLACK` in length."""
    if number + 1 >= len(lines):
        return 0
    title, below = lines[number].rstrip(), lines[number + 1].rstrip()
    marks = set(below)
    if (
        len(marks) != 1
        or not title
        or not title[0].isalnum()
        or abs(len(title) - len(below)) > _UNDERLINE_SLACK
    ):
        return 0
    return _UNDERLINED.get(marks.pop(), 0) if len(below) > 1 else 0


def _plain(text: str) -> str:
    """Return text without the marks of its markup, escaped for HTML."""
    for pattern, kept in _INLINE_MACROS:
        text = pattern.sub(kept, text)
    return escape(text.removesuffix(" +"))


class _BlockWriter:
    """Writes the blocks of some lines as HTML, one after the other."""

    def __init__(self, lines: Sequence[str], depth: int = 0) -> None:
        self._lines = lines
        self._at = 0
        self._depth = depth

    def written(self) -> str:
        """Return all blocks as HTML."""
        parts: list[str] = []
        while self._at < len(self._lines):
            check_cancelled()
            parts.append(self._block())
        return "\n".join(filter(None, parts))

    def _block(self) -> str:  # noqa: PLR0911  one return a kind of block
        """Return the block that begins at the present line, and go to the line after
        it.

        "" for an empty line, and for lines that show nothing. Each call goes on by a
        line at least."""
        line = self._lines[self._at].rstrip()
        # 1. Non-text
        if not line or line == "+" or _ATTRIBUTE_LINE.fullmatch(line):
            self._at += 1
            return ""
        # 2. Titles
        if level := _level(self._lines, self._at):
            self._at += 2
            return f"<h{level}>{_plain(line)}</h{level}>"
        if title := _TITLE_LINE.fullmatch(line):
            self._at += 1
            return f"<h{len(title[1])}>{_plain(title[2])}</h{len(title[1])}>"
        if caption := _CAPTION.fullmatch(line):
            self._at += 1
            return f"<p><b>{self._kind_of_block()}{_plain(caption[1])}</b></p>"
        # 3. Blocks between delimiters, lists, text
        if fence := _BLOCK_FENCE.fullmatch(line):
            return self._fenced(fence[1])
        if _LIST_ITEM.fullmatch(line):
            return self._items()
        if _DEFINED_TERM.fullmatch(line):
            return self._terms()
        if line[0].isspace():
            return self._literal()
        return f"<p>{self._paragraph()}</p>"

    def _kind_of_block(self) -> str:
        """Return what the line below a caption puts before it, such as `Rule: `."""
        below = self._lines[self._at].strip() if self._at < len(self._lines) else ""
        said = _CAPTION_ATTRIBUTE.fullmatch(below)
        return escape(said[1]) if said else ""

    def _fenced(self, fence: str) -> str:
        """Return the block up to the next line like the present one; to the end of the
        text if there is none. Comments are dropped."""
        closing = "```" if fence.startswith("```") else fence
        start = stop = self._at + 1
        while stop < len(self._lines) and self._lines[stop].rstrip() != closing:
            stop += 1
        inside = self._lines[start:stop]
        self._at = stop + 1
        if fence.startswith("//"):
            return ""
        if fence == "|===":
            return self._table(inside)
        if fence[0] in "=*_" or fence == "--":
            tag = "blockquote" if fence[0] == "_" else "div"
            return f"<{tag}>{self._inner(inside)}</{tag}>"
        return f"<pre>{escape(chr(10).join(inside))}</pre>"

    def _inner(self, lines: Sequence[str]) -> str:
        if self._depth >= _BLOCK_DEPTH:
            return f"<pre>{escape(chr(10).join(lines))}</pre>"
        return _BlockWriter(lines, self._depth + 1).written()

    def _table(self, lines: Sequence[str]) -> str:
        """Return a table whose rows are single lines, or groups of lines with a cell
        each.

        Text before the first stroke of a line is dropped; one row alone has no
        header."""
        rows: list[list[str]] = [[]]
        for line in map(str.strip, lines):
            if not line:
                rows.append([])
            cells = [cell.strip() for cell in line.split("|")[1:]]
            if len(cells) > 1 and rows[-1]:
                rows.append([])
            rows[-1] += cells
        said = [row for row in rows if row]
        return html_table(said, header=len(said) > 1)

    def _literal(self) -> str:
        start = self._at
        while self._at < len(self._lines) and self._lines[self._at].strip():
            self._at += 1
        return f"<pre>{escape(chr(10).join(self._lines[start : self._at]))}</pre>"

    def _paragraph(self) -> str:
        """Return the text up to the next empty line, or the next thing that is none."""
        start = self._at
        self._at += 1
        while self._at < len(self._lines) and not self._ends_text():
            self._at += 1
        text = " ".join(line.strip() for line in self._lines[start : self._at])
        return _plain(_ADMONITION.sub(lambda found: f"{found[1].capitalize()}: ", text))

    def _ends_text(self) -> bool:
        line = self._lines[self._at].rstrip()
        if (
            not line
            or line == "+"
            or _BLOCK_FENCE.fullmatch(line)
            or _level(self._lines, self._at)
        ):
            return True
        return bool(
            _LIST_ITEM.fullmatch(line)
            or _DEFINED_TERM.fullmatch(line)
            or _ATTRIBUTE_LINE.fullmatch(line)
        )

    def _attached(self) -> str:
        """Return the blocks that a line with only a plus attaches to an item."""
        parts: list[str] = []
        while self._at < len(self._lines) and self._lines[self._at].rstrip() == "+":
            self._at += 1
            while self._at < len(self._lines) and _ATTRIBUTE_LINE.fullmatch(
                self._lines[self._at].rstrip()
            ):
                self._at += 1
            if self._at < len(self._lines) and self._lines[self._at].strip():
                parts.append(self._block())
        return "".join(parts)

    def _skip_empty(self, wanted: re.Pattern[str]) -> bool:
        """Go over empty lines to a line of `wanted`; stay where there is none."""
        ahead = self._at
        while ahead < len(self._lines) and not self._lines[ahead].strip():
            ahead += 1
        if ahead < len(self._lines) and wanted.fullmatch(self._lines[ahead].rstrip()):
            self._at = ahead
            return True
        return False

    def _items(self) -> str:
        """Return a list; items with another mark begin a list inside the item above.

        Beyond `_BLOCK_DEPTH` levels the line is a paragraph."""
        found = _LIST_ITEM.fullmatch(self._lines[self._at].rstrip())
        mark = _mark(found[1]) if found else ""
        parts: list[str] = []
        while found and _mark(found[1]) == mark and self._depth < _BLOCK_DEPTH:
            text = self._first_line(found[2])
            parts.append(f"<li>{text}{self._attached()}{self._nested(mark)}</li>")
            found = (
                _LIST_ITEM.fullmatch(self._lines[self._at].rstrip())
                if self._skip_empty(_LIST_ITEM)
                else None
            )
        if not parts:
            return f"<p>{self._paragraph()}</p>"
        tag = "ul" if mark[0] in "*-" else "ol"
        return f"<{tag}>{''.join(parts)}</{tag}>"

    def _nested(self, mark: str) -> str:
        """Return the list inside an item: deeper marks of the same kind, or another
        kind right below it; "" for neither, or beyond `_BLOCK_DEPTH`."""
        if self._at >= len(self._lines) or not (
            found := _LIST_ITEM.fullmatch(self._lines[self._at].rstrip())
        ):
            return ""
        other = _mark(found[1])
        deeper = other != mark and (other[0] != mark[0] or len(other) > len(mark))
        if not deeper or len(other) < len(mark) or self._depth >= _BLOCK_DEPTH:
            return ""
        self._depth += 1
        inside = self._items()
        self._depth -= 1
        return inside

    def _first_line(self, text: str) -> str:
        """Return the text of an item that begins with `text` on the present line."""
        start = self._at
        self._at += 1
        while self._at < len(self._lines) and not self._ends_text():
            self._at += 1
        return _plain(
            " ".join([text, *map(str.strip, self._lines[start + 1 : self._at])])
        )

    def _terms(self) -> str:
        """Return terms with their descriptions."""
        parts: list[str] = []
        while self._skip_empty(_DEFINED_TERM):
            found = _DEFINED_TERM.fullmatch(self._lines[self._at].rstrip())
            if found is None:
                break
            parts.append(f"<dt>{_plain(found[1])}</dt>")
            self._at += 1
            parts.append(
                f"<dd>{self._description(found[2] or '')}{self._attached()}</dd>"
            )
        return f"<dl>{''.join(parts).replace('<dd></dd>', '')}</dl>"

    def _description(self, text: str) -> str:
        """Return what is said of a term: text on its line or below it, and lists right
        below that."""
        while (
            not text
            and self._at < len(self._lines)
            and not self._lines[self._at].strip()
        ):
            self._at += 1
        if self._at >= len(self._lines) or (text and not self._lines[self._at].strip()):
            return _plain(text)
        line = self._lines[self._at].rstrip()
        if _BLOCK_FENCE.fullmatch(line) or (_LIST_ITEM.fullmatch(line) and not text):
            return _plain(text) + self._block()
        if self._ends_text():
            return _plain(text)
        return f"{_plain(text)} {self._paragraph()}".strip()


def _mark(mark: str) -> str:
    """Return the mark of an item, all numbers as one."""
    return "1." if mark[0].isdecimal() else "a." if mark[0].isalpha() else mark
