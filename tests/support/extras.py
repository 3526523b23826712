"""Which tests need which extra: skipped where it is not installed, failing where it is installed
and broken.

A plugin of pytest (`tests/conftest.py`). The command lists the extras, or the test files that meet
one of them, for `make fresh`:

    python -m tests.support.extras [flag]
"""

import importlib
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import pytest

from extra import PACKAGES, lacking

P = ParamSpec("P")
R = TypeVar("R")
TESTS: Final = Path(__file__).resolve().parents[1]
LLAMA: Final = (pytest.mark.slow, pytest.mark.needs("llama"))
"""Of tests that start a GGUF model in a process of its own."""


def needs_llama(test: Callable[P, R]) -> Callable[P, R]:
    """Mark one test with `LLAMA`."""
    for mark in LLAMA:
        test = mark(test)
    return test


def need(extra: str) -> Any:
    """Skip the running test, or the module that is collected, where an extra is not installed.

    Every package of the extra is imported, so that one that is installed and broken is a failure
    and no skip. Returned is the first of them.
    """
    if package := lacking(extra):
        pytest.skip(
            f"the extra {extra} is not installed (package {package})", allow_module_level=True
        )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of a package about its own parts, as `pytest.importorskip` does
        first, *_ = [importlib.import_module(module) for module in PACKAGES[extra]]
    return first


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark `needs` known."""
    config.addinivalue_line("markers", "needs(extra): skipped where an extra is not installed")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Look for the extras that a test is marked with."""
    for mark in item.iter_markers("needs"):
        need(mark.args[0])


def files_for(extra: str) -> list[Path]:
    """Return the test files that name an extra, or that import a module of `tests/support` which
    does."""
    marks = r"|\bLLAMA\b|\bneeds_llama\b" if extra == "llama" else ""
    naming = re.compile(rf"\bneeds?\(\"{extra}\"\){marks}")
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))}
    naming_files = [
        path
        for path, text in texts.items()
        if naming.search(text) and path != Path(__file__).resolve()
    ]
    shared = "|".join(path.stem for path in naming_files if path.parent.name == "support")
    importing = re.compile(rf"from tests\.support\.(?:{shared}) import") if shared else None
    found = [
        path
        for path, text in texts.items()
        if path in naming_files or (importing and importing.search(text))
    ]
    return [path for path in found if path.name.startswith("test_")]


if __name__ == "__main__":
    names = (
        PACKAGES
        if len(sys.argv) == 1
        else [path.relative_to(TESTS.parent) for path in files_for(sys.argv[1])]
    )
    print(*names, sep="\n")
