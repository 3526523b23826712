"""RTF to HTML: headings, paragraphs, items and tables, recognized by the lines that
striprtf returns.

What that library drops or cannot see is rewritten before: notes follow the text, under
the numbers that are at their places, as do comments, text boxes, heads and feet of
pages; hidden text is left out. Not for: styles, pictures, equations, lettering and
lists to choose from, which are counted as unread."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from striprtf.striprtf import rtf_to_text

from readers.converted import (
    DAMAGED,
    LEAST_SIZE,
    SLOW_LETTERS,
    Converted,
    Unreadable,
    escape,
    html_table,
    shows_hidden,
    whole_page,
)
from readers.html.colours import WHITE, Rgb, is_faint
from readers.ledger import Kind, Ledger
from readers.office.package import LEAST_WIDTH, hidden_notes

_HEADING_SIGN: Final = "\ue001"
"""For private use: put into RTF where a heading begins, found again in its text."""
_RTF_TOKEN: Final = re.compile(
    r"\\([a-zA-Z]+)(-?\d{1,9})? ?|\\'[\da-fA-F]{2}|\\[^a-zA-Z]|[{}]|[^\\{}]+", re.DOTALL
)
_UNREAD: Final[dict[str, Kind]] = {
    "pict": "image",
    "mmath": "equation",
    "moMath": "equation",
    "ffl": "form field",
    "gtextUNICODE": "diagram",
    "objdata": "embedded object",
}
"""What is not read, and said; a diagram is lettering."""
_MOST_GROUPS: Final = 1_000
"""Groups in each other; real files have some twenty."""
_OLD_COPIES: Final = frozenset({"shprslt", "nonshppict"})
"""Shapes and pictures for old readers, which are there twice."""
_MOVED: Final = frozenset(
    {"footnote", "annotation", "shptxt", "dptxbxtext"}
    | {f"{name}{side}" for name in ("header", "footer") for side in ("", *"lrf")}
)
"""Destinations that striprtf drops."""
_INSTEAD: Final = {
    "pntext": "\\listtext ",
    "upr": "",
    "outlinelevel": f"\\u{ord(_HEADING_SIGN)}?",
}
"""What is written for words that striprtf drops with what follows: the number of an item,
a text in two encodings; and where a heading begins."""
_LOOKS: Final = {
    **dict.fromkeys(("v", "deleted", "intbl"), 1),
    **dict.fromkeys(("fs", "charscalex", "cf"), 0),
    **dict.fromkeys(("highlight", "cb", "chcbpat", "cbpat"), 0),
}
"""Words that say how text looks, with their values where none is written."""


@dataclass(slots=True)
class _Group:
    """A group whose end was not met yet."""

    look: dict[str, int]
    name: str = ""
    """Its destination, if that is one of ours."""
    texts: list[str] = field(default_factory=lambda: ["{"])


class _Rewriting:
    """Rewrites RTF token by token for striprtf."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.colours = _colours(text)
        self.is_shaded = "\\clcbpat" in text
        self.ledger = Ledger()
        self.hidden: list[str] = []
        """Text that no reader sees."""
        self.notes: dict[str, None] = {}
        """What follows the text, each once."""
        self.numbered = 0
        self.groups = [_Group({}, texts=[])]

    def rtf(self) -> str:
        """Return the file without hidden text, what is beside the text at its end; a
        group that is never closed goes to the end.

        Raises `Unreadable` for more than `_MOST_GROUPS` groups in each other."""
        for token in _RTF_TOKEN.finditer(self.text):
            written = token[0]
            group = self.groups[-1]
            if written == "{":
                self.groups.append(_Group(group.look))
                if len(self.groups) > _MOST_GROUPS:
                    raise Unreadable("it is RTF of too many groups in each other")
            elif written == "}" and len(self.groups) > 1:
                self.groups.pop()
                self.groups[-1].texts.append(self._closed(group))
            elif token[1]:
                self._word(group, token)
            elif self._is_unseen(group.look):
                self.hidden.append("x" if written[0] == "\\" else written)
            else:
                if written in _UNREAD:
                    self.ledger.hold(_UNREAD[written])
                group.texts.append(written)
        text = "".join(piece for group in self.groups for piece in group.texts)
        closing = text.rfind("}")
        notes = "".join(f"\\par {note}" for note in self.notes)
        return f"{text[:closing]}{notes}\\par {text[closing:]}" if notes else text

    def _word(self, group: _Group, token: re.Match[str]) -> None:
        """Take a control word; a group that begins with a destination of ours is kept
        without that word."""
        name, number = token[1], int(token[2]) if token[2] else None
        if name in _MOVED:
            group.name, group.texts = name, ["{"]
            return
        if name in _OLD_COPIES:
            group.look = group.look | {"copy": 1}
        elif name in _LOOKS:
            group.look = group.look | {name: _LOOKS[name] if number is None else number}
        elif name in {"plain", "pard"}:
            stays = (
                {"copy", "intbl"} if name == "plain" else {"copy", *_LOOKS} - {"intbl"}
            )
            group.look = {key: group.look[key] for key in group.look if key in stays}
        elif name in _UNREAD and not group.look.get("copy"):
            self.ledger.hold(_UNREAD[name])
        if name == "u" and self._is_unseen(group.look):
            self.hidden.append("x")
        else:
            group.texts.append(_INSTEAD.get(name, token[0]))

    def _closed(self, group: _Group) -> str:
        """Return what a group becomes; an empty group, so that a control word before it
        ends there, where it moves to the end or is left out."""
        content = "".join([*group.texts, "}"])
        if group.look.get("copy"):
            return "{}"
        if group.name == "footnote":
            self.numbered += 1
            self.notes[f"[{self.numbered}] {content}"] = None
            return f"{{}}[{self.numbered}] "
        if group.name:
            before = "Comment: " if group.name == "annotation" else ""
            self.notes[before + content] = None
        return "{}" if group.name else content

    def _is_unseen(self, look: dict[str, int]) -> bool:
        if look.get("deleted") or shows_hidden():
            return bool(look.get("deleted"))
        if (
            look.get("v")
            or look.get("fs", 24) < 2 * LEAST_SIZE  # in half points
            or look.get("charscalex", 100) < LEAST_WIDTH
        ):
            return True
        ink = self._colour(look.get("cf", 0))
        # The ground of a shaded cell is not known.
        if ink is None or (self.is_shaded and look.get("intbl")):
            return False
        grounds = ("highlight", "cb", "chcbpat", "cbpat")
        number = next((look[name] for name in grounds if look.get(name)), 0)
        ground = self._colour(number) if number else WHITE
        return ground is not None and is_faint(ink, ground)

    def _colour(self, number: int) -> Rgb | None:
        return self.colours[number] if 0 < number < len(self.colours) else None


def _colours(text: str) -> list[Rgb | None]:
    """Return the colours of a file by their numbers, None for the usual one."""
    table = re.search(r"\{\\colortbl([^{}]*)\}", text)
    colours: list[Rgb | None] = []
    for entry in table[1].split(";") if table else ():
        values = re.findall(r"\\(red|green|blue)(\d{1,3})", entry)
        rgb = {name: int(value) / 255 for name, value in values}
        red, green, blue = (rgb.get(name, 0.0) for name in ("red", "green", "blue"))
        colours.append((red, green, blue) if rgb else None)
    return colours


def rtf_to_html(text: str) -> Converted:
    """Return RTF as HTML; raises `Unreadable` for one that is damaged, too long, or
    without text.

    Pictures and hidden words are left out; a note says how many words."""
    text = re.sub(
        r"(?<=\s)[0-9a-fA-F\s]{2000,}", "", text
    )  # pictures are letters in RTF
    if len(text) > SLOW_LETTERS:
        raise Unreadable(
            f"it is RTF of over {SLOW_LETTERS:,} characters: save it as .docx or text"
        )
    rewriting = _Rewriting(text)
    text = rewriting.rtf()
    # A power, a letter or a mark that is raised in a group of its own.
    text = re.sub(r"\{\\super\s+([+−-]?\w{1,4})\}", r"^\1", text)
    # A pattern of striprtf for links reads to the end of a line from each field: one line for each
    # keeps that linear.
    text = text.replace("{\\field", "\n{\\field")
    try:
        output = rtf_to_text(text, errors="replace")  # type: ignore[no-untyped-call]  # published without types
    except DAMAGED as e:
        raise Unreadable(f"it is a damaged RTF file ({type(e).__name__})") from e
    lines = [
        line.strip()
        for line in re.sub(r"\s*\n\|", "|", output).splitlines()
        if line.strip()
    ]
    if not lines:
        raise Unreadable("it is RTF without text")
    hidden = len("".join(rewriting.hidden).split())
    notes = hidden_notes("RTF", {"words": hidden})
    html = whole_page("\n".join(_blocks(lines)))
    return Converted(html, notes=notes, hidden=hidden, ledger=rewriting.ledger)


def _blocks(lines: list[str]) -> Iterator[str]:
    """Yield lines as paragraphs, those of as many cells that follow each other as a
    table."""
    for columns, group in groupby(lines, key=lambda line: line.strip("|").count("|")):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in group]
        if columns and len(rows) > 1:
            yield html_table(rows, header=True)
        else:
            yield from (_block(" | ".join(row)) for row in rows)


def _block(line: str) -> str:
    tag = "h2" if line.startswith(_HEADING_SIGN) else "p"
    return f"<{tag}>{escape(line.strip(_HEADING_SIGN))}</{tag}>"
