"""How the code is written: syntax nodes, branches, tuned constants, names, and the
rooms that a call enters.

    python -m bench.house                a table of all, by top folder, and what is over its bar
    python -m bench.house --tests        test files that import past a door of a room
    python -m bench.house --functions    every function over `BRANCHES` branches
    python -m bench.house --check        exit code 1, naming each bar that falls short

`nodes` are those of `ast.walk`, annotations included; `nodes a line` is over all lines,
as a reader scrolls them. `branches` of a function counts if, for, while, except, case,
comprehensions and each further operand of `and` and `or`; functions inside it count for
themselves. `constants` are names in capitals at the top of a module or class that are
bound to a number. Not for: style (ruff) or arrows between folders (import-linter)."""

import argparse
import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDERS: Final = (
    "cli",
    "server",
    "tools",
    "pipeline",
    "readers",
    "extras",
    "models",
    "prompts",
    "cache",
    "papers",
)
NODES: Final = 320_000
"""Most syntax nodes of the product."""
CORE_NODES: Final = 245_000
"""Most syntax nodes of the product without `extras/` and `papers/`."""
DENSITY: Final = 6.5
"""Most nodes a line."""
BRANCHES: Final = 15
"""Branches beyond which a function is listed."""
MOST_BRANCHES: Final = 20
"""Branches beyond which a function fails the check."""
P95: Final = 10
"""Most branches of 95 in 100 functions."""
CONSTANTS: Final = 3.0
"""Most numbers with a name, over 1,000 lines."""
_ALONE: Final = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.match_case,
    ast.comprehension,
)
_ENTERED: Final = """
import sys, tempfile
from pathlib import Path
import anyio
from mcp import Client
from server.app import build_server
from server.settings import read_settings

async def main(folder):
    Path(folder, "note.txt").write_text("The ferry to Arnvik costs 9 crowns.", "utf-8")
    settings = read_settings({"folders": folder, "search": "folder", "cache": folder + "/.c"}, {})
    async with Client(build_server(settings)) as client:
        await client.call_tool("research", {"question": "What does the ferry cost?"})

with tempfile.TemporaryDirectory() as folder:
    anyio.run(main, folder)
print("\\n".join(sorted(name for name in sys.modules if name.partition(".")[0] in FOLDERS)))
"""


TESTS: Final = 60
"""Most test files that import past the doors."""
DOORS: Final = (
    *("cache", "cache.store", "cli.command", "models", "models.protocols"),
    *("readers", "readers.page", "server.app", "server.settings", "server.version"),
    *("tools.common.ending", "tools.common.tool", "tools.common.view"),
)
"""Modules of rooms by which tests may ask: what a person or program calls, and what it gets."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function, and how many ways lead through it."""

    place: str
    name: str
    branches: int


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the product."""

    path: Path
    lines: int
    nodes: int
    functions: tuple[Function, ...]
    classes: tuple[str, ...]
    constants: int


def modules() -> list[Module]:
    """Return every file of the product, in order of its path."""
    paths = [
        path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    return [
        read_module(path)
        for path in [
            *paths,
            *(
                ROOT / f"{name}.py"
                for name in ("errors", "extra", "seams", "cancellation")
            ),
        ]
    ]


def read_module(path: Path) -> Module:
    """Return the figures of one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    place = path.relative_to(ROOT).as_posix()
    functions = [
        Function(place, node.name, branches(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return Module(
        path=path,
        lines=len(text.splitlines()),
        nodes=sum(1 for _ in ast.walk(tree)),
        functions=tuple(functions),
        classes=tuple(classes),
        constants=sum(map(_is_number, tree.body)),
    )


def branches(function: ast.AST) -> int:
    """Return how many branches a function has, without those of functions inside it."""
    return sum(
        len(node.values) - 1
        if isinstance(node, ast.BoolOp)
        else isinstance(node, _ALONE)
        for node in _own(function)
    )


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function that belong to no function inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _own(child)


def _is_number(node: ast.stmt) -> bool:
    """Whether a statement names a number in capitals."""
    targets: list[ast.expr]
    if isinstance(node, ast.AnnAssign):
        targets, value = [node.target], node.value
    elif isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    else:
        return False
    named = all(
        isinstance(target, ast.Name) and target.id.isupper() for target in targets
    )
    return named and value is not None and _is_sum(value)


def _is_sum(value: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    if isinstance(value, ast.BinOp):
        return _is_sum(value.left) and _is_sum(value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_sum(value.operand)
    if isinstance(value, ast.Tuple):
        return bool(value.elts) and all(map(_is_sum, value.elts))
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def defined_twice(found: Iterable[Module]) -> list[str]:
    """Return the names of classes that several modules define."""
    counts = Counter(name for module in found for name in set(module.classes))
    return sorted(name for name, count in counts.items() if count > 1)


def rooms_entered() -> Counter[str]:
    """Return of each room how many of its modules a first call of `research`
    imports."""
    code = f"FOLDERS = {FOLDERS!r}\n{_ENTERED}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(  # noqa: S603  this program, with another text
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    return Counter(".".join(name.split(".")[:2]) for name in done.stdout.split())


def core_of(found: Iterable[Module]) -> list[Module]:
    """Return the files outside `extras/` and `papers/`."""
    beside = (ROOT / "extras", ROOT / "papers")
    return [one for one in found if not any(map(one.path.is_relative_to, beside))]


def shortfalls(found: list[Module]) -> list[str]:
    """Return a line for each bar that falls short."""
    core = sum(one.nodes for one in core_of(found))
    nodes, lines = sum(one.nodes for one in found), sum(one.lines for one in found)
    counts = [function.branches for one in found for function in one.functions]
    p95, over = float(np.percentile(counts, 95)), sum(n > MOST_BRANCHES for n in counts)
    named = 1_000 * sum(one.constants for one in found) / lines
    twice = defined_twice(found)
    bars = [
        (core > CORE_NODES, f"nodes of the core {core:,} (bar {CORE_NODES:,})"),
        (nodes > NODES, f"nodes {nodes:,} (bar {NODES:,})"),
        (nodes > DENSITY * lines, f"nodes a line {nodes / lines:.2f} (bar {DENSITY})"),
        (p95 > P95, f"branches p95 {p95:.0f} (bar {P95})"),
        (over > 0, f"functions over {MOST_BRANCHES} branches: {over} (bar 0)"),
        (
            named > CONSTANTS,
            f"constants over 1,000 lines {named:.1f} (bar {CONSTANTS})",
        ),
        (
            len(inner := inner_tests()) > TESTS,
            f"test files that import past a door: {len(inner)} (bar {TESTS})",
        ),
        (
            bool(twice),
            f"class names defined twice: {len(twice)} (bar 0): {', '.join(twice)}",
        ),
    ]
    return [line for short, line in bars if short]


def inner_tests() -> dict[str, list[str]]:
    """Return the test files that import modules of rooms past their doors, with these."""
    by_file = {}
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        imports = {
            node.module or ""
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        rooms = {name for name in imports if name.partition(".")[0] in FOLDERS}
        if rooms.difference(DOORS):
            by_file[path.name] = sorted(rooms.difference(DOORS))
    return by_file


def show(found: list[Module]) -> None:
    """Print the figures of each top folder, of the core and of all."""
    print("folder      files   lines    nodes  a line  branches p95  max  constants")
    groups = {
        folder: [m for m in found if m.path.is_relative_to(ROOT / folder)]
        for folder in FOLDERS
    }
    for name, group in [*groups.items(), ("core", core_of(found)), ("all", found)]:
        nodes, lines = sum(one.nodes for one in group), sum(one.lines for one in group)
        counts = [function.branches for one in group for function in one.functions] or [
            0
        ]
        constants = sum(one.constants for one in group)
        print(
            f"{name:10} {len(group):6} {lines:7,} {nodes:8,} {nodes / max(lines, 1):7.2f}"
            f" {np.percentile(counts, 95):13.0f} {max(counts):4} {constants:10}"
        )
    print(f"class names defined twice: {len(defined_twice(found))}")
    rooms = rooms_entered()
    listed = ", ".join(f"{room} {count}" for room, count in sorted(rooms.items()))
    print(
        f"a first research imports {rooms.total()} modules of {len(rooms)} rooms: {listed}"
    )


def main() -> None:
    """Print the figures; with `--check` end with 1 where one falls short."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument(
        "--functions", action="store_true", help="list functions with many branches"
    )
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 where a bar falls short"
    )
    parser.add_argument(
        "--tests", action="store_true", help="list test files that import past a door"
    )
    options = parser.parse_args()
    if options.tests:
        for name, imported in inner_tests().items():
            print(f"{name:40} {' '.join(imported)}")
        return
    found = modules()
    if options.functions:
        every = (function for module in found for function in module.functions)
        for one in sorted(every, key=lambda one: -one.branches):
            if one.branches > BRANCHES:
                print(f"{one.branches:4} {one.place}:{one.name}")
        return
    show(found)
    short = shortfalls(found)
    print("\n".join(short))
    sys.exit(1 if short and options.check else 0)


if __name__ == "__main__":
    main()
