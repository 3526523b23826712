"""Text for content drawn without text (formulas, checkboxes, ratings, meters, marks in
cells), and languages of listings.

A label is read only where it says a value that a person sees (`4.6 out of 5`, a tick in
a cell), since labels can hide text; a formula's TeX only if it matches its drawing. Not
for: images, which carry their text by `alt` (`clean.py`), or raised and lowered text
(`tree.py`)."""

import re
from typing import Final

from selectolax.lexbor import LexborNode

from readers.page import TITLE_CHARACTERS
from readers.tree import LABEL_WORDS, MAX_DEPTH, TEXT_NODE, count_words

_TEX_SLACK: Final = 12
"""Letters and digits that TeX may have beyond those drawn: columns of an array,
sizes."""
_COMMAND: Final = re.compile(
    r"\\(?:begin|end|operatorname|mathrm|color|textcolor)\s*\*?\{[^}]*\}|\\[A-Za-z]+"
)
_DISPLAY: Final = re.compile(r"\{\s*\\(?:displaystyle|textstyle)\s*(.*)\}", re.DOTALL)
_RATED: Final = re.compile(
    r"\d.*(?:out of|/|%|stars?\b|rat(?:ed|ing))|(?:rat(?:ed|ing)|score)\D*\d",
    re.IGNORECASE,
)
DESCRIBED_WORDS: Final = 3
"""Words from which what an image or drawing is said to show is more than a button's or
icon's name (`Enlarge`)."""
_CELLS: Final = frozenset({"td", "th"})
_DATE_VALUE: Final = re.compile(r"\d{4}-\d\d[\dT:+.Z -]{0,24}")
_LANGUAGE_CLASS: Final = re.compile(
    r"\b(?:lang(?:uage)?-|brush:\s*|highlight-source-)(?!none|plain|text)([\w+#]+)"
)
"""How highlighters name the language of a listing."""
_LANGUAGE_LEVELS: Final = 2
"""Elements around a listing that may name its language: a box, and one for its
buttons."""


def text_of_media(
    current: LexborNode, name: str, attributes: dict[str, str | None], parent: str
) -> str:
    """Return the replacement text of an element whose own text is not read, or "".

    A box that is not ticked and can be, and one without text after it give ""."""
    if name == "math":
        return formula(current, attributes)
    if name == "input":
        return _tick_of(current, attributes, parent)
    return _label(current, attributes, parent)


def _tick_of(box: LexborNode, attributes: dict[str, str | None], parent: str) -> str:
    """Return the sign of a checkbox whose text is one of the two nodes after it."""
    sibling = box.next
    if (
        attributes.get("type") != "checkbox"
        or parent not in {"dd", "label", "li", "p", "td"}
        or sibling is None
    ):
        return ""
    if not sibling.text(deep=True).strip():
        sibling = sibling.next
    if sibling is None or not sibling.text(deep=True).strip():
        return ""
    if "checked" in attributes:
        return "[x]"
    return "[ ]" if "disabled" in attributes else ""


def said_by(
    current: LexborNode, name: str, attributes: dict[str, str | None], parent: str
) -> str:
    """Return what an element without text says by its attributes, empty for none.

    A date counts only in the form of `_DATE_VALUE`."""
    if "aria-label" in attributes and (
        label := _label(current, attributes, parent if parent in _CELLS else "")
    ):
        return "" if current.text(deep=True).strip() else label
    if current.first_child is not None:
        return ""
    if name == "time":
        date = (attributes.get("datetime") or "").strip()
        return date if _DATE_VALUE.fullmatch(date) else ""
    return ""


def title_of(svg: LexborNode, attributes: dict[str, str | None]) -> str:
    """Return what a drawing is said to show, where it is more than an icon's name; as
    little seen as an image's."""
    words = attributes.get("aria-label") or next(
        (node.text(deep=True) for node in svg.css("title")), ""
    )
    return words if count_words(words) >= DESCRIBED_WORDS else ""


def _title_in(svg: LexborNode, parent: str) -> str:
    """Return the title of a drawing in a cell or figure."""
    title = svg.css_first("title") if parent in _CELLS or parent == "figure" else None
    return title.text(deep=True) if title is not None else ""


def _label(current: LexborNode, attributes: dict[str, str | None], parent: str) -> str:
    """Return an element's label where it is a rating or measure, or the mark in a
    table's cell; "" for any other, and for a label longer than `TITLE_CHARACTERS` or
    `LABEL_WORDS`."""
    role = attributes.get("role") or ""
    label = attributes.get("aria-label") or ""
    if not label and current.tag == "svg":
        label = _title_in(current, parent)
    label = " ".join(label.split())
    if not label or len(label) > TITLE_CHARACTERS or count_words(label) > LABEL_WORDS:
        return ""
    is_drawn = role in {"img", "meter", "progressbar"} or role in {
        "",
        "none",
        "presentation",
        "graphics-symbol",
    }
    return label if is_drawn and _is_value(label, parent) else ""


def _is_value(label: str, parent: str) -> bool:
    is_title = parent == "figure" and count_words(label) >= DESCRIBED_WORDS
    return is_title or parent in _CELLS or _RATED.search(label) is not None


def language_of(current: LexborNode) -> str:
    """Return the language that highlighters name at a listing, or at a box around a
    `pre`; empty for none."""
    node: LexborNode | None = current
    for level in range(1 + _LANGUAGE_LEVELS * (current.tag == "pre")):
        names = node.attributes if node is not None else {}
        language = (
            names.get("data-language")
            or names.get("data-lang")
            or names.get("language")
            or ""
        )
        match = _LANGUAGE_CLASS.search(
            f"{names.get('class') or ''} language-{language}"
        )
        if match and not (level and match[0].startswith("lang-")):  # natural language
            return match[1].lower()
        node = node and node.parent
    return ""


def bare_tex(tex: str) -> str:
    """Return TeX on one line, without the switch to display style that MediaWiki puts
    around it."""
    tex = " ".join(tex.split())
    match = _DISPLAY.fullmatch(tex)
    return match[1].strip() if match else tex


def formula(math: LexborNode, attributes: dict[str, str | None]) -> str:
    """Return a MathML formula as the TeX that it carries, or on one line: `(a+b)/2`,
    `x_1^2`.

    TeX with far more letters than the formula shows is not believed."""
    line = _on_a_line(math, 0)
    tex_notes = [
        note.text(deep=True)
        for note in math.css("annotation")
        if "tex" in (note.attributes.get("encoding") or "")
    ]
    tex = bare_tex((tex_notes or [attributes.get("alttext") or ""])[0])
    letters = sum(map(str.isalnum, _COMMAND.sub("", tex)))
    if tex and letters <= sum(map(str.isalnum, line)) + _TEX_SLACK:
        return tex
    return " ".join(line.split())


def _on_a_line(node: LexborNode, depth: int) -> str:
    name = node.tag or ""
    if name in {"annotation", "annotation-xml", "mphantom"}:
        return ""
    if depth > MAX_DEPTH:
        return node.text(deep=True)
    pieces: list[str] = []
    child = node.first_child
    while child is not None:
        if child.tag_id == TEXT_NODE:
            text = child.text_content or ""
            pieces.append(text if name == "mtext" else text.strip())
        elif piece := _on_a_line(child, depth + 1):
            pieces.append(piece)
        child = child.next
    return _written(name, list(filter(None, pieces)))


def _written(name: str, operands: list[str]) -> str:
    """Return the parts of an element of a formula on a line."""
    if len(operands) in {2, 3} and (marks := _MATH_SCRIPTS.get(name)):
        return operands[0] + "".join(
            prefix + _group(operand)
            for prefix, operand in zip(marks, operands[1:], strict=False)
        )
    if len(operands) == 2 and name == "mfrac":
        return f"{_group(operands[0])}/{_group(operands[1])}"
    if len(operands) == 2 and name == "mroot":
        return f"{_group(operands[0])}^(1/{operands[1]})"
    content = _SPLIT_NUMBER.sub(
        r"\1 ", _MATH_SEPARATORS.get(name, _SEAM).join(operands)
    ).replace(_SEAM, "")
    return f"{_ROOT_SIGNS[name]}({content})" if name in _ROOT_SIGNS else content


_MATH_SCRIPTS: Final = {
    "msup": "^",
    "msub": "_",
    "munder": "_",
    "msubsup": "_^",
    "munderover": "_^",
}
_ROOT_SIGNS: Final = {"msqrt": "√", "mfenced": ""}
"""What is written before brackets."""
_MATH_SEPARATORS: Final = {"mtable": "; ", "mtr": " ", "mfenced": ","}
_SEAM: Final = "\0"
"""Separator of adjacent formula parts; occurs in no page (HTML §13.2.5)."""
_SPLIT_NUMBER: Final = re.compile(rf"(\d){_SEAM}(?=\d)")
"""Where two numbers meet."""


def _group(operand: str) -> str:
    return operand if len(operand) == 1 or operand.isalnum() else f"({operand})"
