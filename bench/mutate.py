"""Changes the product one place at a time and says which changes no test notices.

    python -m bench mutate --lot 60                  draws places by a seed of its own, which it prints
    python -m bench mutate --lot 60 --seed 7 --only pipeline/evidence
    python -m bench mutate --map                     first: notes which tests run which functions (a run of `make test`)

Each change is made in a clone of the last commit, and the test files that run the changed
function are run until one fails (noted by `--map`); without that file those that import the
module, or what imports it, which misses tests at the doors. `killed`: a test fails.
`survived`: none does. `suspect`: it survived and moves a bound by one or a limit of size or
time, which may change nothing that can be seen; someone looks at it. A lot that is to count
is drawn by a new seed: tests that were written for known mutants prove little. Exit code 1 with
`--check` where fewer than `LEAST` of those not suspect are killed."""

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import grimp
import pytest

from bench.house import FOLDERS

ROOT: Final = Path(__file__).resolve().parents[1]
COVERS: Final = ROOT / "build" / "covers.json"
LEAST: Final = 0.9
"""Share of mutants that tests must notice."""
FILES: Final = 8
"""Test files that a mutant is tried on, those that run least else first."""
SECONDS: Final = 900
"""Of all tests of one mutant; one that hangs is killed by its time."""
_OTHER: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_SIGNS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
_BOUNDS: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one place."""

    file: str
    line: int
    function: str
    start: int
    end: int
    """Characters of the file that are replaced."""
    text: str
    what: str
    suspect: bool
    """Whether it may change nothing that can be seen."""


def product() -> list[Path]:
    """Return the files of the product but the papers' forms, which no ordinary call enters."""
    rooms = [folder for folder in FOLDERS if folder != "papers"]
    return sorted(path for folder in rooms for path in (ROOT / folder).rglob("*.py"))


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every change of a file's functions that is tried."""
    source = path.read_text("utf-8")
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def place(line: int, column: int) -> int:
        text = source[starts[line - 1] : starts[line] - 1].encode()
        return starts[line - 1] + len(text[:column].decode())

    def made(
        node: ast.expr | ast.stmt, text: str, what: str, *, suspect: bool = False
    ) -> Mutant:
        start = place(node.lineno, node.col_offset)
        end = place(node.end_lineno or node.lineno, node.end_col_offset or 0)
        name = str(path.relative_to(ROOT))
        return Mutant(name, node.lineno, owner.name, start, end, text, what, suspect)

    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, functions)
    ]
    for owner in found:
        inner = {
            id(node)
            for one in ast.walk(owner)
            if one is not owner and isinstance(one, functions)
            for node in ast.walk(one)
        }
        for node in ast.walk(ast.Module(owner.body, [])):
            if id(node) in inner:
                continue
            yield from changes(node, made)


def changes(node: ast.AST, made: Any) -> Iterator[Mutant]:
    """Yield the changes of one node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        kind = type(node.ops[0])
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        other = _SIGNS[_OTHER[kind]]
        yield made(
            node,
            f"({left} {other} {right})",
            f"{_SIGNS[kind]} to {other}",
            suspect=kind in _BOUNDS,
        )
    elif isinstance(node, ast.BoolOp):
        other = " or " if isinstance(node.op, ast.And) else " and "
        text = other.join(f"({ast.unparse(value)})" for value in node.values)
        yield made(node, f"({text})", f"to{other}".rstrip())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield made(node, f"bool({ast.unparse(node.operand)})", "not left out")
    elif (
        isinstance(node, ast.Constant)
        and type(node.value) is int
        and abs(node.value) < 10
    ):
        yield made(
            node, str(node.value + 1), f"{node.value} to {node.value + 1}", suspect=True
        )
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sign = "-" if isinstance(node.op, ast.Add) else "+"
        yield made(
            node,
            f"({ast.unparse(node.left)} {sign} {ast.unparse(node.right)})",
            f"to {sign}",
        )
    elif isinstance(node, ast.If | ast.IfExp):
        yield made(node.test, f"(not ({ast.unparse(node.test)}))", "condition turned")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield made(node, "pass", f"{ast.unparse(node)[:40]} left out")
    elif (
        isinstance(node, ast.Return)
        and node.value is not None
        and not isinstance(node.value, ast.Constant)
    ):
        yield made(node, "return None", "returns None")


@cache
def graph() -> grimp.ImportGraph:
    """Return who imports whom among the product and the tests."""
    packages = [
        folder for folder in FOLDERS if (ROOT / folder / "__init__.py").is_file()
    ]
    return grimp.build_graph(*packages)


def tests_of(mutant: Mutant) -> list[str]:
    """Return the test files to run for a mutant, the most particular first."""
    if COVERS.is_file():
        covers: dict[str, list[str]] = json.loads(COVERS.read_text("utf-8"))
        sizes: dict[str, int] = defaultdict(int)
        for files in covers.values():
            for file in files:
                sizes[file] += 1
        own = covers.get(f"{mutant.file}::{mutant.function}", [])
        return sorted(own, key=lambda file: sizes[file])[:FILES]
    module = mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    near, seen = {module}, set[str]()
    found: list[str] = []
    while near and len(found) < FILES // 2:
        seen |= near
        words = [f"from {name} import" for name in near] + [
            f"from {name.rpartition('.')[0]} import {name.rpartition('.')[2]}"
            for name in near
        ]
        found += [
            file
            for file, text in test_texts().items()
            if file not in found and any(word in text for word in words)
        ]
        known = [name for name in near if name in graph().modules]
        near = {
            one
            for name in known
            for one in graph().find_modules_that_directly_import(name)
        } - seen
    stem = module.rpartition(".")[2]
    return (
        found[:FILES]
        or [file for file, text in test_texts().items() if stem in text][:FILES]
    )


@cache
def test_texts() -> dict[str, str]:
    """Return the text of each test file."""
    return {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for path in sorted((ROOT / "tests").glob("test_*.py"))
    }


def tried(mutant: Mutant, clone: Path) -> str:
    """Make the change in a clone, run its tests, and take it back; return what came of
    it."""
    files = tests_of(mutant)
    if not files:
        return (
            "survived, no test runs it"
            if COVERS.is_file()
            else "left out, no import leads to its tests"
        )
    path = clone / mutant.file
    source = path.read_text("utf-8")
    changed = source[: mutant.start] + mutant.text + source[mutant.end :]
    try:
        ast.parse(changed)
    except SyntaxError:
        return "left out, no Python"
    path.write_text(changed, "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "not nightly",
    ]
    try:
        done = subprocess.run(  # noqa: S603  ours
            [*command, *files],
            cwd=clone,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "killed by its time"
    finally:
        path.write_text(source, "utf-8")
    if done.returncode == pytest.ExitCode.TESTS_FAILED or "error" in done.stdout[-400:]:
        return "killed"
    if " passed" not in done.stdout:
        return "left out, its tests need an extra"
    return "suspect" if mutant.suspect else "survived"


def cloned(folder: Path) -> Path:
    """Clone the last commit into a folder, beside `shared` where that is here."""
    clone = folder / "winnow"
    git = shutil.which("git") or "git"
    subprocess.run([git, "clone", "-q", str(ROOT), str(clone)], check=True)  # noqa: S603  ours
    (clone / ".venv").symlink_to(ROOT / ".venv")
    if (ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
    return clone


class Covering:
    """A plugin of pytest that notes which functions of the product each test file runs in
    its own process."""

    def __init__(self) -> None:
        self._files = {str(path): str(path.relative_to(ROOT)) for path in product()}
        self._seen: dict[str, set[CodeType]] = defaultdict(set)
        self._now: set[CodeType] = set()

    def _called(self, frame: FrameType, event: str, _value: object) -> None:
        if event == "call":
            self._now.add(frame.f_code)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note for the file of this test from now on."""
        self._now = self._seen[nodeid.partition("::")[0]]
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def pytest_sessionfinish(self) -> None:
        """Write the functions of the product, each with its test files."""
        sys.setprofile(None)
        covers: dict[str, list[str]] = defaultdict(list)
        for file, codes in self._seen.items():
            for code in codes:
                if code.co_filename in self._files:
                    covers[f"{self._files[code.co_filename]}::{code.co_name}"].append(
                        file
                    )
        COVERS.parent.mkdir(exist_ok=True)
        COVERS.write_text(
            json.dumps({key: sorted(set(files)) for key, files in covers.items()}),
            "utf-8",
        )


def main(words: Sequence[str] | None = None) -> int:
    """Try a lot; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="bench mutate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--lot", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0: a new one")
    parser.add_argument("--only", default="", help="files that begin so")
    parser.add_argument(
        "--map", action="store_true", help="note which tests run which functions"
    )
    parser.add_argument(
        "--check", action="store_true", help=f"exit code 1 below {LEAST}"
    )
    wanted = parser.parse_args(words)
    if wanted.map:
        return int(
            pytest.main(["-q", "-m", "not nightly", "tests"], plugins=[Covering()])
        )
    seed = wanted.seed or random.SystemRandom().randrange(1, 10**6)
    every = [
        mutant
        for path in product()
        if str(path.relative_to(ROOT)).startswith(wanted.only)
        for mutant in mutants(path)
    ]
    lot = random.Random(seed).sample(every, min(wanted.lot, len(every)))
    print(f"{len(lot)} of {len(every)} mutants, seed {seed}", flush=True)
    if not COVERS.is_file():
        print(
            "no map (--map): tests that no import leads to are not run, the share is least"
        )
    came: dict[str, int] = defaultdict(int)
    with tempfile.TemporaryDirectory() as folder:
        clone = cloned(Path(folder))
        for mutant in lot:
            outcome = tried(mutant, clone)
            came[outcome.split()[0].rstrip(",")] += 1
            print(
                f"{outcome:12} {mutant.file}:{mutant.line} {mutant.function}: {mutant.what}",
                flush=True,
            )
    judged = came["killed"] + came["survived"]
    share = came["killed"] / judged if judged else 1.0
    print(
        f"killed {came['killed']} of {judged} ({share:.2f}), suspect {came['suspect']}, bar {LEAST}"
    )
    return int(wanted.check and share < LEAST)


if __name__ == "__main__":
    sys.exit(main())
