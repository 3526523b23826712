"""The list of numbers in docs/constants.md, made from the code.

Rooms that a question about a page or a folder enters; of each number that a module names:
its value, and the docstring below it, which has the unit and what it does. Not for: sets,
patterns and words, and numbers of file formats."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
ROOMS: Final = (
    "tools/common",
    "pipeline",
    "pipeline/question",
    "pipeline/search",
    "pipeline/sources",
    "pipeline/fetch",
    "readers/html",
    "pipeline/document",
    "pipeline/text",
    "pipeline/reading",
    "pipeline/evidence",
)
"""In the order in which a question meets them."""


class Number(NamedTuple):
    """A number that a module names."""

    name: str
    value: str
    """As the code writes it."""
    meaning: str
    """The docstring below it, on one line."""


def numbers(module: Path) -> Iterator[Number]:
    """Yield the numbers that a module names, in its order."""
    body = ast.parse(module.read_text(encoding="utf-8")).body
    for statement, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case _:
                continue
        if not _is_number(value):
            continue
        meaning = ""
        if isinstance(following, ast.Expr) and isinstance(
            following.value, ast.Constant
        ):
            meaning = " ".join(str(following.value.value).split())
        yield Number(name, ast.unparse(value), meaning)


def tables() -> str:
    """Return the numbers of each room as a table, with a heading."""
    return "\n\n".join(_of_room(room) for room in ROOMS)


def _of_room(room: str) -> str:
    rows = [
        f"| `{number.name}` | {number.value} | {number.meaning.replace('|', '&#124;')} | {path.name} |"
        for path in sorted((ROOT / room).glob("*.py"))
        for number in numbers(path)
    ]
    return "\n".join(
        [
            f"## {room}",
            "",
            "| name | value | what it does | file |",
            "|---|---|---|---|",
            *rows,
        ]
    )


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    return (
        isinstance(value, ast.Constant)
        and isinstance(value.value, int | float)
        and not isinstance(value.value, bool)
    )
