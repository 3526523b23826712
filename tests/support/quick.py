"""Which tests `make quick` leaves out because they are slow to run: `tests/slow.tsv`, measured and
not chosen by hand.

A plugin of pytest (`tests/conftest.py`). A row names a test and the processor seconds that it took,
its processes included; each that is named is marked `slow`. `--times` writes the table again, from
a run of every test (`make times`). Tests that start a process, a browser or a model are marked
`slow` where they are.
"""

import os
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Final

import pytest

TABLE: Final = Path(__file__).resolve().parents[1] / "slow.tsv"
SLOW: Final = 0.05
"""Processor seconds from which a test is slow: the faster ones keep `make quick` below a minute on
two cores."""
MARKED: Final = pytest.StashKey[bool]()
"""Whether a test is marked `slow` where it is: the table need not name it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    help = f"write FILE again: tests of {SLOW} processor seconds and more"
    parser.getgroup("winnow").addoption("--times", type=Path, help=help)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to keep times, in the process that receives of every test."""
    file = config.getoption("--times")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Times(file), "times")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that the table names, before tests are chosen by their marks."""
    named = set(slow_tests(TABLE.read_text(encoding="utf-8").splitlines()))
    for item in items:
        item.stash[MARKED] = item.get_closest_marker("slow") is not None
        if item.nodeid in named:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Note what the test itself took, unless it is marked where it is; what its fixtures took
    is theirs, and the next test would pay for it."""
    began = _spent()
    try:
        yield
    finally:
        if not item.stash[MARKED]:
            item.user_properties.append(("processor seconds", _spent() - began))


def slow_tests(table: Iterable[str]) -> list[str]:
    """Return the tests that a table names."""
    return [name for _, _, name in (line.partition("\t") for line in table)]


def rows(times: Iterable[tuple[float, str]]) -> list[str]:
    """Return the table of those of `times` that are slow, by name, so that a new measurement
    changes few lines."""
    return [
        f"{spent:.2f}\t{name}"
        for spent, name in sorted(times, key=lambda row: row[1])
        if spent >= SLOW
    ]


class _Times:
    """Keeps the processor seconds of each test that passed, and writes the table at the end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._times: list[tuple[float, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test took."""
        spent = dict(report.user_properties).get("processor seconds")
        if report.when == "call" and report.passed and isinstance(spent, float):
            self._times.append((spent, report.nodeid))

    def pytest_sessionfinish(self) -> None:
        """Write the table."""
        self._file.write_text("".join(f"{row}\n" for row in rows(self._times)), encoding="utf-8")


def _spent() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
