"""Equations of Office files (OMML, ECMA-376 part 1, 22.1) as linear text: `(a + b)/2`, `x_1^2`,
`√(x + 1)`.

Not for: MathML of web pages (`readers/html/values.py`).
"""

import re
from collections import defaultdict
from typing import Final

from lxml import etree

MATH: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
TEXT: Final = f"{MATH}t"
_EQUATION_TEXTS: Final = frozenset(
    {TEXT, "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}t"}
)
EQUATION: Final = f"{MATH}oMath"
_FORMS: Final = {
    "f": "{(num)}/{(den)} ",
    "rad": "{deg}√{(e)}",
    "sSub": "{(e)}{_sub}",
    "sSup": "{(e)}{^sup}",
    "sSubSup": "{(e)}{_sub}{^sup}",
    "sPre": "{_sub}{^sup}{e}",
    "limLow": "{e}{_lim} ",
    "limUpp": "{e}{^lim} ",
    "nary": "{chr}{_sub}{^sup} {e} ",
    "acc": "{e}{chr}",
    "func": "{fName} {e}",
    "d": "{begChr}{e}{endChr}",
    "m": "[{mr}]",
    "mr": "{e}; ",
}
"""How an element is written with its parts: in brackets where it is more than one
operand, `_` and `^` before what is below and above."""


def equation_text(element: etree._Element) -> str:
    """Return the equation in an element on one line."""
    return " ".join(_written(element).split())


def _written(element: etree._Element) -> str:
    if element.tag in _EQUATION_TEXTS:
        return element.text or ""
    children = list(element.iterchildren(tag=etree.Element))
    name = str(element.tag).removeprefix(MATH)
    if name.endswith("Pr") or name not in _FORMS:
        return "".join(map(_written, children)) if not name.endswith("Pr") else ""
    pieces: dict[str, list[str]] = defaultdict(list)
    usual = {"begChr": "(", "endChr": ")", "chr": "\u0302" if name == "acc" else "∫"}
    for child in children:
        pieces[str(child.tag).removeprefix(MATH)].append(_written(child).strip())
        if str(child.tag).endswith("Pr"):
            for character in child.iterchildren(*(f"{MATH}{key}" for key in usual)):
                usual[str(character.tag).removeprefix(MATH)] = character.get(
                    f"{MATH}val", ""
                )
    texts = {**usual, **{key: ", ".join(values) for key, values in pieces.items()}}

    def piece(match: re.Match[str]) -> str:
        text = texts.get(match["name"], "")
        # A word, a number, a sign needs no brackets.
        is_operand = match["mark"] and re.fullmatch(r"[^\W_]*|[^\w\s]", text) is None
        before = match["mark"].strip("(") if text else ""
        return f"{before}({text})" if is_operand else f"{before}{text}"

    return re.sub(r"\{(?P<mark>[(_^]?)(?P<name>\w+)\)?\}", piece, _FORMS[name])
