"""Which text of RTF is not seen: hidden, deleted, tiny, squeezed, or in the colour of
its ground.

What is seen is written as it was. A ground that cannot be known (a shaded cell) hides
nothing. Not for: what the text is (`rtf.py`)."""

import re
from dataclasses import dataclass, replace
from typing import Final

from extras.documents.docx_looks import LEAST_WIDTH
from pipeline.document.converted import LEAST_SIZE
from pipeline.html.colours import WHITE, Rgb, is_faint

_RTF_TOKEN: Final = re.compile(
    r"\\([a-zA-Z]+)(-?\d{1,9})? ?|\\'[\da-fA-F]{2}|\\[^a-zA-Z]|[{}]|[^\\{}]+", re.DOTALL
)
_LOOK_WORDS: Final = re.compile(
    r"\\(?:v|deleted|fs[0-3]|charscalex\d|highlight\d+|ch?cb(?:pat)?\d+|cbpat\d+)(?![a-z\d])"
)
"""Without one of these, and a pale colour, nothing is hidden."""
_COLOUR_TABLE: Final = re.compile(r"\{\\colortbl([^{}]*)\}")
_COLOUR_PART: Final = re.compile(r"\\(red|green|blue)(\d{1,3})")


@dataclass(frozen=True, slots=True)
class _State:
    """How text looks within a group."""

    gone: bool = False
    deleted: bool = False
    size: int = 24
    """Half points."""
    width: int = 100
    """Per cent."""
    ink: int = 0
    """Number of a colour; 0 is the usual one."""
    ground: int = 0
    in_table: bool = False

    def under(self, word: str, number: int | None) -> "_State":  # noqa: PLR0911  one return a word
        """Return the style of text after a control word; of an unknown word the same.
        Without a number a switch is on."""
        match word:
            case "v":
                return replace(self, gone=number != 0)
            case "deleted":
                return replace(self, deleted=number != 0)
            case "fs" if number is not None:
                return replace(self, size=number)
            case "charscalex" if number is not None:
                return replace(self, width=number)
            case "cf":
                return replace(self, ink=number or 0)
            case "highlight" | "cb" | "chcbpat" | "cbpat":
                return replace(self, ground=number or 0)
            case "plain":
                return _State(in_table=self.in_table)
            case "intbl" | "pard":
                return replace(self, in_table=word == "intbl")
        return self


def without_unseen(text: str) -> tuple[str, int]:
    """Return RTF without the text that no reader sees, and the number of its words.

    Hidden letters that are written as numbers count as one word together."""
    colours, shaded = _colours(text), "\\clcbpat" in text
    if not _may_hide(text, colours):
        return text, 0
    state, above, kept, words, delimiter = _State(), list[_State](), list[str](), 0, 0
    letters = 0  # that are written as their numbers
    for token in _RTF_TOKEN.finditer(text):
        said = token[0]
        if said == "{":
            above.append(state)
        elif said == "}":
            state = above.pop() if above else _State()
        elif token[1]:
            state = state.under(token[1], int(token[2]) if token[2] else None)
            if token[1] == "u" and _is_unseen(state, colours, shaded=shaded):
                delimiter = 1
                letters += 1
                continue
        elif _is_unseen(state, colours, shaded=shaded):
            words += _words(said, delimiter)
            delimiter = 0
            continue
        kept.append(said)
    return "".join(kept), words + bool(letters)


def _may_hide(text: str, colours: list[Rgb | None]) -> bool:
    """Whether a file has a pale colour, or a control word that may hide text."""
    pale = any(colour and is_faint(colour, WHITE) for colour in colours)
    return pale or _LOOK_WORDS.search(text) is not None


def _words(text: str, start: int) -> int:
    """Return how many words a text has from `start` on, 0 for a sign that is written as
    a control."""
    return 0 if text[0] == "\\" else len(text[start:].split())


def _is_unseen(state: _State, colours: list[Rgb | None], *, shaded: bool) -> bool:
    if (
        state.gone
        or state.deleted
        or state.size < 2 * LEAST_SIZE
        or state.width < LEAST_WIDTH
    ):
        return True
    ink = colours[state.ink] if 0 < state.ink < len(colours) else None
    if ink is None or (shaded and state.in_table):
        return False
    ground = colours[state.ground] if 0 < state.ground < len(colours) else WHITE
    return ground is not None and is_faint(ink, ground)


def _colours(text: str) -> list[Rgb | None]:
    """Return the colours of a file by their numbers, None for the usual one; empty
    where it has no table of colours."""
    table = _COLOUR_TABLE.search(text)
    found: list[Rgb | None] = []
    for entry in table[1].split(";") if table else ():
        parts = {name: int(value) / 255 for name, value in _COLOUR_PART.findall(entry)}
        found.append(
            (parts.get("red", 0.0), parts.get("green", 0.0), parts.get("blue", 0.0))
            if parts
            else None
        )
    return found
