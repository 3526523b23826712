"""An extra whose package is not there is named; one that is there and cannot be imported says why,
also to CI."""

import os
import shutil
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import pytest

from extra import PACKAGES
from tests.support import LIBRARY, ROOT, Site
from tests.support.hostile_files import ole

pytestmark = pytest.mark.slow

TWO = ("-n", "2", "--dist", "worksteal")
"""Options of a run in two processes, as the Makefile has them."""
CAUSE = "libwhole.so.7: undefined symbol"
BROUGHT_BY_OTHERS = {"llama": ["jinja2"], "flag": ["torch", "huggingface_hub"]}
"""Packages that an extra's own requirements bring with them."""
LONG = LIBRARY / "orvane-flood-report.html"
QUESTION = "When does the first ferry leave?"
SHELL = '<!doctype html><title>Boats</title><div id="root"></div><script src="app.js"></script>'
COMMANDS = {
    "models": ("models", "pull", "someone/tiny/tiny.gguf"),
    "flag": ("research", QUESTION, "--set", "embedder=flag:{folder}"),
    "redis": ("cache", "path", "--set", "cache_url=redis://127.0.0.1:9/0"),
    "metrics": ("serve", "--http", "--port", "0", "--set", "http=metrics=127.0.0.1:9"),
    "ddgs": ("search", QUESTION, "--set", "search=ddgs"),
    "papers": (
        "raptor",
        QUESTION,
        str(LONG),
        "--mode",
        "collapsed",
        "--set",
        "papers=clustering=umap",
    ),
    "ocr": ("extract", QUESTION, "{folder}/scan.png", "--folder", "{folder}"),
    "office-legacy": ("extract", QUESTION, "{folder}/old.xls", "--folder", "{folder}"),
    "parquet": ("extract", QUESTION, "{folder}/fares.parquet", "--folder", "{folder}"),
    "browser": ("fetch", "{site}", "--set", "browser=/bin/true", "--set", "networks=loopback"),
    "llama": ("research", QUESTION, "--set", "embedder=llama:{folder}/model.gguf"),
}
"""A command that meets each extra."""
FORMATS = {"ocr", "office-legacy", "parquet"}
"""Extras that read files."""


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A folder with a model of each kind, as far as it is looked at before its extra, an
    image and a workbook of the old form."""
    (tmp_path / "config.json").write_text('{"hidden_size": 64}')
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    (tmp_path / "scan.png").write_bytes(white_png(400, 300))
    (tmp_path / "old.xls").write_bytes(ole("Workbook"))
    (tmp_path / "fares.parquet").write_bytes(b"PAR1 and more PAR1")
    return tmp_path


def white_png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        whole = name + data
        return len(data).to_bytes(4, "big") + whole + zlib.crc32(whole).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x00\x00\x00\x00"
    rows = zlib.compress((b"\x00" + b"\xff" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def without(folder: Path, *extras: str) -> Path:
    """Return a folder that hides the packages of extras from an interpreter that has it on its
    path."""
    folder.mkdir()
    names = [name for extra in extras for name in PACKAGES[extra]]
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.modules |= dict.fromkeys({names!r})\n"
    )
    return folder


def broken(folder: Path, extra: str) -> Path:
    """Return a folder with packages of an extra that cannot be imported."""
    for module in PACKAGES[extra]:
        package = folder.joinpath(*module.split("."))
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text(f"raise ImportError({CAUSE!r})\n")
    return folder


def run(folder: Path, path: Path, extra: str, url: str) -> str:
    """Return what the command of an extra says on stderr, with `path` before all packages."""
    words = [word.format(folder=folder, site=url) for word in COMMANDS[extra]]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("WINNOW_")
    }
    environment |= {
        "WINNOW_CACHE": str(folder / "cache"),
        "WINNOW_SEARCH": "folder",
        "WINNOW_FOLDERS": str(LIBRARY),
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(path), str(ROOT)])
    command = [sys.executable, "-m", "server", *words]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    # A model that fails costs its own scores alone
    assert done.returncode != 0 or "words alone decided" in done.stdout, done.stdout
    return done.stdout + done.stderr


@pytest.mark.parametrize("extra", COMMANDS)
def test_an_extra_that_is_not_installed_is_named_with_what_installs_it(
    filled: Path, site: Site, extra: str
) -> None:
    said = run(filled, without(filled / "path", extra), extra, site.put("/boats", SHELL))
    command = f"make -C {ROOT} extras EXTRAS={extra}"
    # A caller may not be the operator: no folder of the server is named.
    wanted, other = command, f"the extra {extra} (winnow doctor)"
    if extra in FORMATS:
        wanted, other = other, command
    assert wanted in said
    assert other not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("extra", COMMANDS)
def test_an_extra_that_cannot_be_imported_says_why_and_not_that_it_is_missing(
    filled: Path, site: Site, extra: str, request: pytest.FixtureRequest
) -> None:
    if extra == "llama":  # its process begins once the header of a real file was read
        shared: Path = request.getfixturevalue("shared")
        shutil.copy(
            shared / "models" / "stories260K" / "stories260K-f32.gguf", filled / "model.gguf"
        )
    said = run(filled, broken(filled / "path", extra), extra, site.put("/boats", SHELL))
    assert CAUSE in said
    assert "not installed" not in said


def test_every_extra_of_the_project_is_known_with_its_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(PACKAGES) == set(project["optional-dependencies"])
    for extra, packages in PACKAGES.items():
        required = " ".join(project["optional-dependencies"][extra])
        assert [
            name for name in packages.values() if name not in required
        ] == BROUGHT_BY_OTHERS.get(extra, [])


def pytest_run(folder: Path, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the test files of a folder as CI does, with `path` before all packages."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)])}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    names = (
        "tests.support.collect",
        "tests.support.extras",
        "tests.support.quick",
        "tests.support.record",
        "xdist.plugin",
        "no:cacheprovider",
    )
    plugins = [f"-p{name}" for name in names]
    command = [sys.executable, "-m", "pytest", *plugins, *arguments, str(folder)]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    """Tests that need an extra in each of the three ways, for each extra."""
    folder = tmp_path / "asking"
    folder.mkdir()
    begin = "import pytest\nfrom tests.support.extras import need\n"
    for extra in PACKAGES:
        (folder / f"test_{extra}_module.py").write_text(
            f"{begin}need({extra!r})\ndef test_it(): pass\n"
        )
        ways = (
            f"def test_call(): need({extra!r})\n@pytest.mark.needs({extra!r})\ndef "
            f"test_mark(): pass\n"
        )
        (folder / f"test_{extra}.py").write_text(begin + ways)
    return folder


def test_each_extra_whose_import_fails_turns_a_run_red(asking: Path, tmp_path: Path) -> None:
    for extra in PACKAGES:
        broken(tmp_path / "broken", extra)
    run = pytest_run(asking, tmp_path / "broken", "--continue-on-collection-errors", "-rA")
    assert f"{len(PACKAGES)} failed, {2 * len(PACKAGES)} errors" in run.stdout
    assert run.stdout.count(f"E   ImportError: {CAUSE}") == 3 * len(PACKAGES)


def test_a_missing_extra_skips_its_tests_by_name_and_is_red_with_no_skips(
    asking: Path, tmp_path: Path
) -> None:
    away = without(tmp_path / "away", *PACKAGES)
    skipped = pytest_run(asking, away, "-rs")
    assert f"{3 * len(PACKAGES)} skipped" in skipped.stdout
    assert all(f"the extra {extra} is not installed" in skipped.stdout for extra in PACKAGES)
    refused = pytest_run(asking, away, "--no-skips", "--continue-on-collection-errors")
    assert f"{len(PACKAGES)} failed, {2 * len(PACKAGES)} errors" in refused.stdout
    assert "skips.toml does not name it" in refused.stdout


def test_the_tests_of_flag_are_red_where_its_import_fails(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(broken(tmp_path, "flag"))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "tests/test_models_flag.py",
        "-k",
        "terminal",
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert CAUSE in done.stdout


def test_a_skip_that_is_named_with_its_words_is_not_refused(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import pytest\ndef test_it(): pytest.skip('no disk to fill')\ndef test_other(): pass\n"
    )
    skips = tmp_path / "skips.toml"
    for says, status in (("no disk", 0), ("no network", 1)):
        skips.write_text(
            f'[[skip]]\ntest = "test_one.py::test_it"\nsays = "{says}"\nwhy = "no root"\n'
        )
        assert (
            pytest_run(tmp_path, tmp_path, "--no-skips", "--skips", str(skips)).returncode == status
        )


def test_a_second_run_leaves_out_what_the_first_proved_unless_a_package_has_changed(
    tmp_path: Path,
) -> None:
    tests, record = tmp_path / "test_one.py", tmp_path / "record.tsv"
    tests.write_text(
        "def test_it(): pass\ndef test_other(): pass\ndef test_failing(): assert False\n"
    )
    assert pytest_run(tmp_path, tmp_path, "--record", str(record)).returncode == 1
    second = pytest_run(tmp_path, tmp_path, "--complete", str(record))
    assert "1 failed, 2 deselected" in second.stdout
    text = record.read_text()
    assert not any(f"version\t{name}==" in text for name in ("pip", "setuptools"))
    for package in ("pytest", "Python"):
        record.write_text(text.replace(f"version\t{package}==", f"version\t{package}==0."))
        again = pytest_run(tmp_path, tmp_path, "--complete", str(record))
        assert "1 failed, 2 passed" in again.stdout


@pytest.mark.parametrize("processes", [(), TWO], ids=["one process", "two"])
def test_what_looked_in_vain_for_what_is_there_now_is_run_again(
    tmp_path: Path, processes: tuple[str, ...]
) -> None:
    """A test by itself; its whole file where a fixture looked, which the next tests may have been
    given."""
    look = "from importlib.util import find_spec\nimport pytest\n"
    (tmp_path / "test_call.py").write_text(
        f"{look}def test_met(): assert find_spec('never_there') is None\n"
        "def test_looked(): find_spec('newcomer')\n"
        "def test_caught():\n    try: import newcomer.inner\n    except ImportError: pass\n"
        "def test_other(): pass\n"
    )
    (tmp_path / "test_fixture.py").write_text(
        f"{look}@pytest.fixture(scope='module')\ndef made(): return find_spec('newcomer')\n"
        "def test_first(made): pass\ndef test_second(made): pass\n"
    )
    record, now = tmp_path / "record.tsv", tmp_path / "now"
    assert "6 passed" in pytest_run(tmp_path, tmp_path, f"--record={record}", *processes).stdout
    assert "6 deselected" in pytest_run(tmp_path, tmp_path, f"--complete={record}", "-v").stdout
    (now / "newcomer").mkdir(parents=True)
    (now / "newcomer" / "__init__.py").touch()
    second = pytest_run(tmp_path, now, f"--complete={record}", "-v").stdout
    assert "4 passed, 2 deselected" in second
    assert "test_met" not in second
    assert "test_other" not in second


def test_a_file_of_which_a_test_was_skipped_is_run_again_whole(tmp_path: Path) -> None:
    record = tmp_path / "record.tsv"
    slow = "import pytest\npytestmark = pytest.mark.slow\ndef test_slow(): pass\n"
    (tmp_path / "test_one.py").write_text(f"{slow}def test_skipped(): pytest.skip('not here')\n")
    (tmp_path / "test_two.py").write_text(
        f"{slow}pytest.skip('none of it', allow_module_level=True)\n"
    )
    assert pytest_run(tmp_path, tmp_path, "--record", str(record)).returncode == 0
    assert "1 passed, 2 skipped" in pytest_run(tmp_path, tmp_path, "--complete", str(record)).stdout


def test_two_processes_record_each_test_once_and_leave_out_what_was_proved(
    tmp_path: Path,
) -> None:
    slow = "import pytest\npytestmark = pytest.mark.slow\n"
    (tmp_path / "test_one.py").write_text(
        f"{slow}def test_slow(): pass\ndef test_bad(): assert False\n"
    )
    (tmp_path / "test_two.py").write_text(
        f"{slow}def test_slow(): pass\ndef test_skipped(): pytest.skip('not here')\n"
    )
    (tmp_path / "test_three.py").write_text(
        f"{slow}pytest.skip('none of it', allow_module_level=True)\n"
    )
    record = tmp_path / "record.tsv"
    assert pytest_run(tmp_path, tmp_path, f"--record={record}", *TWO).returncode == 1
    lines = record.read_text().splitlines()
    assert sorted(line for line in lines if line.startswith(("passed", "skipped"))) == [
        "passed\ttest_one.py::test_slow",
        "passed\ttest_two.py::test_slow",
        "skipped\ttest_three.py",
        "skipped\ttest_two.py::test_skipped",
    ]
    assert len(lines) == len(set(lines))
    again = pytest_run(
        tmp_path,
        tmp_path,
        f"--complete={record}",
        "--no-skips",
        "--continue-on-collection-errors",
        *TWO,
    )
    assert "2 failed, 1 passed" in again.stdout
    assert "1 error" in again.stdout
    assert "test_three.py was skipped" in again.stdout


def test_a_run_without_slow_tests_imports_no_file_that_is_slow_as_a_whole(tmp_path: Path) -> None:
    """Those that are slow in part are imported: the rest of them runs."""
    for number, marks in enumerate(
        ("pytest.mark.slow", "[pytest.mark.anyio, pytest.mark.slow]", "[\n  pytest.mark.slow,\n]")
    ):
        text = f"import pytest\npytestmark = {marks}\nraise RuntimeError('imported')\n"
        (tmp_path / f"test_whole_{number}.py").write_text(text)
    (tmp_path / "test_part.py").write_text(
        "import pytest\n@pytest.mark.slow\ndef test_slow(): pass\ndef test_fast(): pass\n"
    )
    assert "1 passed, 1 deselected" in pytest_run(tmp_path, tmp_path, "-m", "not slow").stdout
    assert "3 errors" in pytest_run(tmp_path, tmp_path).stdout


def test_the_table_of_slow_tests_names_none_that_is_marked_where_it_is(tmp_path: Path) -> None:
    work = "    sum(range(30_000_000))\n"
    (tmp_path / "test_two.py").write_text(
        f"import pytest\ndef test_long():\n{work}def test_short(): pass\n"
        f"@pytest.mark.slow\ndef test_marked():\n{work}"
    )
    table = tmp_path / "slow.tsv"
    assert "3 passed" in pytest_run(tmp_path, tmp_path, f"--times={table}").stdout
    [row] = table.read_text(encoding="utf-8").splitlines()
    assert row.endswith("\ttest_two.py::test_long")
