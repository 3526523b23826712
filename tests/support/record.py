"""What CI asks of pytest beyond running tests: what a first run proved, and that a second one skips
nothing.

A plugin of pytest (`tests/conftest.py`). CI runs the suite without any extra first, and writes down
how it went (`--record=FILE`: one word, for pytest takes a file after a blank for a test). With
every extra installed it then completes that run (`--complete=FILE`) by what extras can change. A
test runs again unless it passed before and

- nothing in its file was skipped, for such a file meets an extra or a program that CI installs in
between, and
- it looked for no module in vain that is there now. Our code asks whether an extra is there when it
needs it (`extra.py`). Packages of others try to import what they can do without. The finder at the
end of `sys.meta_path` sees each of these. What fixtures look for counts for their whole file.

A process that a test starts is not seen. It runs the code that other tests run here. Servers,
commands and converters with every extra are started by files that run again whole, since one of
their tests needs an extra (`test_stdio.py`, `test_operations.py`, `test_install.py`,
`test_scans.py`). What modules look for when they are first imported counts for none: of what extras
bring that is rapidocr, for the endings of images that a folder lists.

All this holds while the extras leave the versions of all that the first run met as they are; else
all is run again. The version of Python is one of these, to its patch release. (CI's first run is in
a clone, with the system's Python.) With `--no-skips` a skipped test is a failure unless `tests/skips.toml` names
it with its reason.
"""

import sys
import tomllib
from collections.abc import Generator, Iterable
from importlib.metadata import distributions
from pathlib import Path
from typing import Final, TypeVar

import pytest

from extra import is_there

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
SKIPS: Final = Path(__file__).resolve().parents[1] / "skips.toml"
PROVED: Final = pytest.StashKey["set[str]"]()
"""Tests that a second run leaves out."""
INSTALLERS: Final = frozenset(("pip", "setuptools"))
"""What an environment begins with (setuptools before Python 3.12). No test meets them, and extras
bring newer ones."""
LOOKED: Final = "looked for in vain"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("winnow")
    group.addoption(
        "--record",
        type=Path,
        help="add to FILE what passed, what was skipped, and the versions it met",
    )
    group.addoption("--complete", type=Path, help="leave out what the run recorded in FILE proved")
    group.addoption(
        "--no-skips",
        action="store_true",
        help="a skip is a failure unless the file of --skips names it",
    )
    group.addoption(
        "--skips", type=Path, default=SKIPS, help="names tests that may be skipped, with reasons"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read what an earlier run proved, and begin a record of this one."""
    earlier: Path | None = config.getoption("--complete")
    if earlier is not None and not earlier.is_file():
        raise pytest.UsageError(
            f"--complete={earlier} is not there: run `make test` first, which writes it"
        )
    if earlier is not None:
        config.stash[PROVED] = proved(earlier.read_text(encoding="utf-8").splitlines(), _versions())
    file = config.getoption("--record")
    if file is None:
        return
    config.pluginmanager.register(_Lookups(), "lookups")
    if not hasattr(config, "workerinput"):
        file.parent.mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(_Recorder(file), "record")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what need not run again."""
    known = config.stash.get(PROVED, set())
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (left_out if item.nodeid in known else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a test into a failure where skips are."""
    report = yield
    return _judged(report, item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn the skip of a whole module into a failure where skips are."""
    report = yield
    return _judged(report, collector.config)


def proved(record: Iterable[str], versions: Iterable[str]) -> set[str]:
    """Return the tests that passed, which nothing that was installed since can change.

    Nothing is proved where a package that the recorded run met has another version now, or is gone.
    """
    lines: dict[str, set[str]] = {
        "version": set(),
        "passed": set(),
        "skipped": set(),
        "looked": set(),
    }
    for line in record:
        kind, _, what = line.partition("\t")
        lines[kind].add(what)
    if lines["version"] - set(versions):
        return set()

    looked = [what.split("\t") for what in lines["looked"]]
    new = {module for module in {module for module, _ in looked} if is_there(module)}
    meeting = {name for module, name in looked if module in new}
    touched = {_file(name) for name in lines["skipped"]}
    return {
        name
        for name in lines["passed"]
        if not {name, _file(name)} & meeting and _file(name) not in touched
    }


class _Lookups:
    """Notes which modules each step of a test looked for in vain."""

    def __init__(self) -> None:
        self._modules: set[str] = set()
        sys.meta_path.append(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Note a module that no finder before this one has found, and find it neither."""
        self._modules.add(name)

    def pytest_runtest_logstart(self) -> None:
        """Forget what modules looked for when they were imported."""
        self._modules.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the report say it to the process that writes the record."""
        report = yield
        report.user_properties.append((LOOKED, sorted(self._modules)))
        self._modules.clear()
        return report

    def pytest_unconfigure(self) -> None:
        """Look no longer."""
        sys.meta_path.remove(self)


class _Recorder:
    """Adds a line to a file for each package met, each test that passed or was skipped, and what it
    looked for."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._add(*(f"version\t{version}" for version in sorted(_versions())))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test ended."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._add(f"skipped\t{report.nodeid}")
        elif report.when == "call" and not report.failed:
            self._add(f"passed\t{report.nodeid}")
        who = report.nodeid if report.when == "call" else _file(report.nodeid)
        looked = dict(report.user_properties).get(LOOKED)
        if isinstance(looked, list):
            self._add(*(f"looked\t{module}\t{who}" for module in looked))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that was skipped."""
        if report.skipped:
            self._add(f"skipped\t{report.nodeid}")

    def _add(self, *lines: str) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)


def _judged(report: Report, config: pytest.Config) -> Report:
    allowed: Path = config.getoption("--skips")
    if not config.getoption("--no-skips") or not report.skipped or hasattr(report, "wasxfail"):
        return report
    why = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    listed = tomllib.loads(allowed.read_text(encoding="utf-8")).get("skip", [])
    if not any(
        report.nodeid.startswith(entry["test"]) and entry["says"] in why for entry in listed
    ):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, and {allowed.name} does not name it: {why}"
    return report


def _file(name: str) -> str:
    return name.partition("::")[0]


def _versions() -> set[str]:
    found = {each.metadata["Name"]: each.version for each in distributions()}
    python = "Python=={}.{}.{}".format(*sys.version_info)
    return {
        python,
        *(f"{name}=={version}" for name, version in found.items() if name not in INSTALLERS),
    }
