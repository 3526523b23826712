"""Equations of Office files (OMML, ECMA-376 part 1, 22.1) as linear text: `(a + b)/2`, `x_1^2`,
`√(x + 1)`.

Not for: MathML of web pages (`pipeline/html/values.py`).
"""

import re
from collections.abc import Callable
from typing import Final

from lxml import etree

MATH: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
TEXT: Final = f"{MATH}t"
_EQUATION_TEXTS: Final = frozenset(
    {TEXT, "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}t"}
)
EQUATION: Final = f"{MATH}oMath"
_OPERAND: Final = re.compile(r"[^\W_]+|[^\w\s]")
"""What needs no brackets as one operand: a word, a number, a sign."""


def equation_text(element: etree._Element) -> str:
    """Return the equation in an element on one line."""
    return " ".join(_written(element).split())


def _written(element: etree._Element) -> str:
    if element.tag in _EQUATION_TEXTS:
        return element.text or ""
    name = str(element.tag).removeprefix(MATH)
    if name.endswith("Pr"):
        return ""
    write = _WRITERS.get(name)
    return write(element) if write is not None else _children(element)


def _children(element: etree._Element) -> str:
    return "".join(_written(child) for child in element if isinstance(child.tag, str))


def _part(element: etree._Element, name: str) -> str:
    return "".join(map(_written, element.iterchildren(f"{MATH}{name}"))).strip()


def _operand(element: etree._Element, name: str) -> str:
    """Return a part, in brackets where it is more than one term."""
    text = _part(element, name)
    return text if _OPERAND.fullmatch(text) or not text else f"({text})"


def _sign(element: etree._Element, properties: str, name: str, usual: str) -> str:
    """Return a character that the properties of an element name; one without value is left out."""
    found = element.find(f"{MATH}{properties}/{MATH}{name}")
    return usual if found is None else found.get(f"{MATH}val", "")


def _scripts(element: etree._Element) -> str:
    below, above = _operand(element, "sub"), _operand(element, "sup")
    return f"_{below}" * bool(below) + f"^{above}" * bool(above)


def _large(element: etree._Element) -> str:
    """Return a sum, product or integral with its bounds."""
    return f"{_sign(element, 'naryPr', 'chr', '∫')}{_scripts(element)} {_part(element, 'e')} "


def _bracketed(element: etree._Element) -> str:
    between = _sign(element, "dPr", "sepChr", "|")
    inner = between.join(
        _written(one).strip() for one in element.iterchildren(f"{MATH}e")
    )
    return f"{_sign(element, 'dPr', 'begChr', '(')}{inner}{_sign(element, 'dPr', 'endChr', ')')}"


def _matrix(element: etree._Element) -> str:
    rows = (", ".join(map(_written, row)) for row in element.iterchildren(f"{MATH}mr"))
    return f"[{'; '.join(rows)}]"


def _array(element: etree._Element) -> str:
    return "; ".join(map(_written, element.iterchildren(f"{MATH}e")))


_WRITERS: Final[dict[str, Callable[[etree._Element], str]]] = {
    "f": lambda one: f"{_operand(one, 'num')}/{_operand(one, 'den')} ",
    "rad": lambda one: f"{_part(one, 'deg')}√{_operand(one, 'e')}",
    "acc": lambda one: f"{_part(one, 'e')}{_sign(one, 'accPr', 'chr', chr(0x302))}",
    "limLow": lambda one: f"{_part(one, 'e')}_{_operand(one, 'lim')} ",
    "limUpp": lambda one: f"{_part(one, 'e')}^{_operand(one, 'lim')} ",
    "func": lambda one: f"{_part(one, 'fName')} {_part(one, 'e')}",
    "sPre": lambda one: f"{_scripts(one)}{_part(one, 'e')}",
    **dict.fromkeys(
        ("sSub", "sSup", "sSubSup"), lambda one: f"{_operand(one, 'e')}{_scripts(one)}"
    ),
    "nary": _large,
    "d": _bracketed,
    "m": _matrix,
    "eqArr": _array,
}
