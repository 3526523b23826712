"""One row of `papers/__main__.py`: what a paper describes, and a check that runs it here.

Not for: the checks themselves (`bench/papers_*.py`).
"""

import ast
import inspect
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from bench.remembering import Remembering
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from pipeline.reading.relevance import Blend, Reader

State = Literal[
    "as printed",
    "differs",
    "configured",
    "ours",
    "cannot be had",
]
"""What each means is at the top of `docs/papers.md` (`papers/__main__.py`)."""


class Outcome(NamedTuple):
    """What a check found."""

    state: State
    said: str
    """The figure; why, where it is not as printed."""
    is_lacking: bool = False
    """Whether it cannot be had in this environment alone, which lacks a package or data."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What checks run with."""

    embedder: Embedder
    reader: Reader


Check = Callable[[Bench], Awaitable[Outcome]]


class Row(NamedTuple):
    """A row of the table."""

    number: int
    title: str
    where: str
    """File or folder that does it, from the project's root; "" where none does."""
    check: Check


ROOT: Final = Path(__file__).resolve().parents[1]
ROWS: Final[dict[int, Row]] = {}


def row(number: int, title: str, where: str) -> Callable[[Check], Check]:
    """Return a decorator that puts a check into the table, with what does it; that must
    be there, and the check must assert something, unless it says `cannot`."""
    if not (ROOT / where).exists():
        raise AssertionError(f"Row {number} names {where}, which is not there.")

    def kept(check: Check) -> Check:
        if number in ROWS:
            raise AssertionError(f"Row {number} has two checks.")
        body = [*ast.walk(ast.parse(textwrap.dedent(inspect.getsource(check))))]
        is_absent = any(
            isinstance(node, ast.Name) and node.id == cannot.__name__ for node in body
        )
        if not is_absent and not any(isinstance(node, ast.Assert) for node in body):
            raise AssertionError(f"The check of row {number} asserts nothing.")
        ROWS[number] = Row(number, title, where, check)
        return check

    return kept


def as_printed(said: str) -> Outcome:
    """Return that it is as printed."""
    return Outcome("as printed", said)


def ours(said: str) -> Outcome:
    """Return that no section of a paper has it."""
    return Outcome("ours", said)


def differs(said: str) -> Outcome:
    """Return that it is otherwise, why, and the figure."""
    return Outcome("differs", said)


def configured(said: str) -> Outcome:
    """Return that a configuration says it, and nothing was made by it here."""
    return Outcome("configured", said)


def cannot(said: str) -> Outcome:
    """Return that it is not to be had here, and why."""
    return Outcome("cannot be had", said)


def lacks(said: str) -> Outcome:
    """Return that it is not to be had in this environment, and what that lacks."""
    return Outcome("cannot be had", f"here: {said}", is_lacking=True)


def opened() -> Bench:
    """Return what checks run with: the built-in embedder."""
    embedder = Remembering(OnnxEmbedder())
    return Bench(embedder, Blend(embedder))
