"""RTF to HTML: headings, paragraphs, items and tables, recognized by the lines that
striprtf returns.

Notes follow the text, under the numbers that are at their places, as do comments, text
boxes, heads and feet of pages. Hidden text is left out. Not for: styles, pictures,
equations, lettering and lists to choose from, which are counted as unread."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Final

from striprtf.striprtf import rtf_to_text

from extras.documents.rtf_looks import without_unseen
from pipeline.document.converted import (
    DAMAGED,
    SLOW_LETTERS,
    Converted,
    Unreadable,
    escape,
    html_table,
    whole_page,
)
from pipeline.document.ledger import Kind, Ledger

_PICTURE: Final = re.compile(r"(?<=\s)[0-9a-fA-F\s]{2000,}")
_PICT: Final = re.compile(
    r"(?<!\\nonshppict)(?<!\\nonshppict\{)\\pict(?![a-z])(?:\s|\\[a-z]+-?\d*){0,40}"
)
"""A picture with its properties; one for old readers is there twice."""
_LARGE_IMAGE_TWIPS2: Final = 15 * 567**2
"""Square twips, 15 cm²: a picture of less is a logo or an icon."""
_HEADING_SIGN: Final = "\ue001"
"""For private use: put into RTF where a heading begins, found again in its text."""
_LEVEL: Final = re.compile(r"\\outlinelevel\d")
_BULLET_SIGN: Final = re.compile(r"[•·–▪◦\uf0b7]\s+")
_NUMBERED_ITEM: Final = re.compile(
    r"(\(?(?:\d{1,3}(?:\.\d{1,3}){0,3}|[A-Za-z]|[ivxlcIVXLC]{1,6})[.)])\t+"
)
"""The number of an item as its reader sees it."""
_CELL_END: Final = re.compile(r"\s*\n\|")


_FOOTNOTE: Final = re.compile(
    r"(?:\{\\super\s*\\chftn\s*\}\s*)?\{(?:\\\*\s*)?\\footnote(?![a-z])"
)
_NOTE_MARK: Final = re.compile(r"\{?(?:\\super\s*)?\\chftn\b\s*\}?")
_COMMENT: Final = re.compile(r"\{\\\*\s*\\annotation(?![a-z])")
_TEXT_BOX: Final = re.compile(r"\{\\(?:shptxt|dptxbxtext)(?![a-z])")
_SHAPE_RESULT: Final = re.compile(r"\{\\shprslt(?![a-z])")
"""A shape for old readers, which is there twice."""
_UNICODE: Final = re.compile(r"\{\\upr(?![a-z])")
_UNICODE_TEXT: Final = re.compile(r"\{\\\*\s*\\ud(?![a-z])")
_SUPER: Final = re.compile(r"\{\\super\s+([+−-]?\w{1,4})\}")
"""A power, a letter or a mark that is raised in a group of its own."""
_UNREAD: Final[Mapping[Kind, re.Pattern[str]]] = {
    "equation": re.compile(r"\\m(?:math|oMath)(?![a-zA-Z])"),
    "form field": re.compile(r"\\ffl(?![a-z])"),
    "diagram": re.compile(r"\{\\sn gtextUNICODE\}"),
}
"""What is not read, and said; a diagram is lettering."""
_MARGIN: Final = re.compile(r"\{\\(?:header|footer)[lrf]?(?![a-z])")
_CONTROL: Final = re.compile(r"\{\\\*[^{}]*\}|\\[a-z]+-?\d* ?")
_PARAGRAPH: Final = re.compile(r"\\par(?![a-z]) ?")
_PAGE_HEAD_WORDS: Final = 4
"""Words beside the page's number, its field's name among them, of a head that says no
more."""
_RTF_OBJECT: Final = re.compile(r"\\objdata(?![a-z])")
_BRACE: Final = re.compile(r"\\[{}\\]|[{}]")


def _without(text: str, opening: re.Pattern[str], instead: Callable[[str], str]) -> str:
    """Return RTF with what `instead` makes of the inside of each group that `opening`
    begins; from a group that is never closed on, the text stays as it is."""
    kept, at = list[str](), 0
    while found := opening.search(text, at):
        depth, end = 1, len(text)
        for brace in _BRACE.finditer(text, found.end()):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if not depth:
                end = brace.end()
                break
        if depth:
            break  # a file that is cut within a group
        # An empty group, so that a control word before it ends there.
        kept += [text[at : found.start()], "{}", instead(text[found.end() : end - 1])]
        at = end
    return "".join([*kept, text[at:]])


def _notes_at_end(text: str) -> str:
    """Return RTF with each note replaced by a number, and the notes, comments, text
    boxes, page headers and footers (which the library drops) after the text.

    Of all but notes those without a letter are dropped, and page numbers; equal ones
    come once."""
    notes: dict[str, None] = {}

    def noted(inner: str) -> str:
        number = sum(one.startswith("[") for one in notes) + 1
        notes[f"[{number}] {_NOTE_MARK.sub('', inner)}"] = None
        return f"[{number}] "

    def moved(inner: str, name: str = "") -> str:
        if any(map(str.isalpha, _CONTROL.sub("", inner))):
            notes[name + inner] = None
        return ""

    def margin(inner: str) -> str:
        words = _CONTROL.sub("", inner).split()
        return (
            "" if " PAGE" in inner and len(words) <= _PAGE_HEAD_WORDS else moved(inner)
        )

    text = _without(text, _SHAPE_RESULT, lambda _: "")
    text = _without(text, _FOOTNOTE, noted)
    text = _without(text, _COMMENT, partial(moved, name="Comment: "))
    text = _without(text, _TEXT_BOX, moved)
    text = _without(text, _MARGIN, margin)
    last = text.rfind("}")
    if not notes or last < 0:
        return text
    lines = [f"\\par {_PARAGRAPH.sub(' ', one)}" for one in notes]
    return "".join([text[:last], *lines, "\\par ", text[last:]])


def _in_unicode(group: str) -> str:
    """Return what is there in two encodings in that of more letters."""
    encoded = _UNICODE_TEXT.search(group)
    return f"{{{group[encoded.end() :]}" if encoded else f"{{{group}}}"


def rtf_to_html(text: str) -> Converted:
    """Return RTF as HTML; raises `Unreadable` for one that is damaged, too long, or
    without text.

    Pictures and hidden words are left out; a note says how many words."""
    ledger = Ledger()
    ledger.hold("image", sum(map(_is_large, _PICT.finditer(text))))
    text = _PICTURE.sub("", text)  # pictures are letters in RTF
    if len(text) > SLOW_LETTERS:
        raise Unreadable(
            f"it is RTF of over {SLOW_LETTERS:,} characters: save it as .docx or text"
        )
    text, hidden = without_unseen(text)
    ledger.hold("embedded object", len(_RTF_OBJECT.findall(text)))
    text = text.replace("\\pntext", "\\listtext")
    for kind, pattern in _UNREAD.items():
        ledger.hold(kind, len(pattern.findall(text)))
    text = _without(text, _UNICODE, _in_unicode)
    text = _SUPER.sub(r"^\1", _notes_at_end(text))
    text = _LEVEL.sub(lambda _: f"\\u{ord(_HEADING_SIGN)}?", text)
    # A pattern of striprtf for links reads to the end of a line from each field: one line for each
    # keeps that linear.
    text = text.replace("{\\field", "\n{\\field")
    try:
        plain = rtf_to_text(text, errors="replace")  # type: ignore[no-untyped-call]  # published without types
    except DAMAGED as e:
        raise Unreadable(f"it is a damaged RTF file ({type(e).__name__})") from e
    lines = [
        line.strip() for line in _CELL_END.sub("|", plain).splitlines() if line.strip()
    ]
    if not lines:
        raise Unreadable("it is RTF without text")
    notes = (f"RTF: hidden words removed: {hidden}",) if hidden else ()
    return Converted(
        whole_page("\n".join(_parts(lines))), notes=notes, hidden=hidden, ledger=ledger
    )


def _parts(lines: list[str]) -> Iterator[str]:
    """Yield lines as paragraphs, those of as many cells that follow each other as a
    table."""
    for columns, group in groupby(lines, key=lambda line: line.strip("|").count("|")):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in group]
        if columns and len(rows) > 1:
            yield html_table(rows, header=True)
        else:
            yield from (_block(" | ".join(row)) for row in rows)


def _is_large(picture: re.Match[str]) -> bool:
    """Return whether a picture is as large as one that shows something, by the size at
    which it is printed; True where that is missing."""
    sizes = [
        int(found[1])
        for side in "wh"
        if (found := re.search(rf"\\pic{side}goal(\d{{1,6}})", picture[0]))
    ]
    return len(sizes) < 2 or sizes[0] * sizes[1] >= _LARGE_IMAGE_TWIPS2


def _block(line: str) -> str:
    if line.startswith(_HEADING_SIGN):
        return f"<h2>{escape(line.strip(_HEADING_SIGN))}</h2>"
    if number := _NUMBERED_ITEM.match(line):
        return f"<p>{escape(number[1])} {escape(line[number.end() :])}</p>"
    if item := _BULLET_SIGN.match(line):
        return f"<ul><li>{escape(line[item.end() :])}</li></ul>"
    return f"<p>{escape(line)}</p>"
