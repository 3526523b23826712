"""RTF to HTML: headings, paragraphs, items and tables, told apart by the lines that striprtf makes
of a file.

Notes stand behind the text, under the numbers that stand at their places. Hidden text is left out.
Not for: styles, pictures.
"""

import re
from itertools import groupby
from typing import Final

from striprtf.striprtf import rtf_to_text

from pipeline.read.converted import (
    DAMAGED,
    SLOW_LETTERS,
    Converted,
    Unreadable,
    escape,
    html_table,
    whole_page,
)
from pipeline.read.ledger import Ledger
from pipeline.read.rtf_looks import without_unseen

_PICTURE: Final = re.compile(r"(?<=\s)[0-9a-fA-F\s]{2000,}")
_PICT: Final = re.compile(
    r"(?<!\\nonshppict)(?<!\\nonshppict\{)\\pict(?![a-z])(?:\s|\\[a-z]+-?\d*){0,40}"
)
"""A picture with its properties; one for old readers is there twice."""
_LARGE_IMAGE: Final = 15 * 567**2
"""Square twips, 15 cm²: a picture of less is a logo or an icon."""
_HEADING: Final = "\ue001"
"""For private use: put into RTF where a heading begins, found again in its text."""
_LEVEL: Final = re.compile(r"\\outlinelevel\d")
_ITEM: Final = re.compile(r"[•·–▪◦\uf0b7]\s+")
_NUMBERED: Final = re.compile(
    r"(\(?(?:\d{1,3}(?:\.\d{1,3}){0,3}|[A-Za-z]|[ivxlcIVXLC]{1,6})[.)])\t+"
)
"""The number of an item as its reader sees it."""
_CELL_END: Final = re.compile(r"\s*\n\|")


_NOTE: Final = re.compile(r"(?:\{\\super\s*\\chftn\s*\}\s*)?\{(?:\\\*\s*)?\\footnote(?![a-z])")
_NOTE_MARK: Final = re.compile(r"\{?(?:\\super\s*)?\\chftn\b\s*\}?")
_BRACE: Final = re.compile(r"\\[{}\\]|[{}]")
_SUPER: Final = re.compile(r"\{\\super\s+([+−-]?\w{1,4})\}")
"""A power, a letter or a mark that is raised in a group of its own."""


def _notes_behind(text: str) -> str:
    """Return RTF with a number in place of each note, and the notes behind its text."""
    kept, notes, at = list[str](), list[str](), 0
    while found := _NOTE.search(text, at):
        depth, end = 1, len(text)
        for brace in _BRACE.finditer(text, found.end()):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if not depth:
                end = brace.end()
                break
        if depth:
            break  # a file that is cut within a note
        number = len(notes) + 1
        inner = _NOTE_MARK.sub("", text[found.end() : end - 1])
        notes.append(f"\\par [{number}] {inner.replace(chr(92) + 'par ', ' ')}")
        kept += [text[at : found.start()], f"[{number}] "]
        at = end
    rest = text[at:]
    if not notes:
        return text
    last = rest.rfind("}")
    return "".join([*kept, rest[:last], *notes, "\\par ", rest[last:]])


def rtf_to_html(text: str) -> Converted:
    """Return RTF as HTML; raises `Unreadable` for one that is damaged, too long, or without
    text."""
    ledger = Ledger()
    ledger.hold("image", sum(map(_is_large, _PICT.finditer(text))))
    text = _PICTURE.sub("", text)  # pictures are letters in RTF
    if len(text) > SLOW_LETTERS:
        raise Unreadable(f"it is RTF of over {SLOW_LETTERS:,} characters: save it as .docx or text")
    text, hidden = without_unseen(text)
    text = _SUPER.sub(r"^\1", _notes_behind(text))
    text = _LEVEL.sub(lambda _: f"\\u{ord(_HEADING)}?", text)
    # A pattern of striprtf for links reads to the end of a line from each field: one line for each
    # keeps that linear.
    text = text.replace("{\\field", "\n{\\field")
    try:
        plain = rtf_to_text(text, errors="replace")  # type: ignore[no-untyped-call]  # published without types
    except DAMAGED as e:
        raise Unreadable(f"it is RTF that is damaged ({type(e).__name__})") from e
    lines = [line.strip() for line in _CELL_END.sub("|", plain).splitlines() if line.strip()]
    if not lines:
        raise Unreadable("it is RTF without text")
    parts = []
    for columns, group in groupby(lines, key=lambda line: line.strip("|").count("|")):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in group]
        parts += (
            [html_table(rows, header=True)]
            if columns and len(rows) > 1
            else [_block(" | ".join(row)) for row in rows]
        )
    notes = (f"RTF: {hidden} words that no reader sees were left out",) if hidden else ()
    return Converted(whole_page("\n".join(parts)), notes=notes, hidden=hidden, ledger=ledger)


def _is_large(picture: re.Match[str]) -> bool:
    """Whether a picture is as large as one that shows something, by the size at which it is
    printed."""
    sizes = [
        int(found[1])
        for side in "wh"
        if (found := re.search(rf"\\pic{side}goal(\d{{1,6}})", picture[0]))
    ]
    return len(sizes) < 2 or sizes[0] * sizes[1] >= _LARGE_IMAGE


def _block(line: str) -> str:
    if line.startswith(_HEADING):
        return f"<h2>{escape(line.strip(_HEADING))}</h2>"
    if number := _NUMBERED.match(line):
        return f"<p>{escape(number[1])} {escape(line[number.end() :])}</p>"
    if item := _ITEM.match(line):
        return f"<ul><li>{escape(line[item.end() :])}</li></ul>"
    return f"<p>{escape(line)}</p>"
