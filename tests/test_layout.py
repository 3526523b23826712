"""The house stays in order: names, sizes, who reads the environment, files for installers."""

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from bench.house import FOLDERS
from server.app import TOOL_NAMES
from server.settings import SETTINGS_TABLE

ROOT = Path(__file__).resolve().parents[1]
ROOTS = ("errors.py", "extra.py", "seams.py", "cancellation.py")


def modules() -> list[Path]:
    found = [
        path for folder in (*FOLDERS, "winnow", "bench") for path in (ROOT / folder).rglob("*.py")
    ]
    roots = [ROOT / name for name in ROOTS]
    return [
        path for path in found if path.name != "__init__.py" or path.parent.name == "winnow"
    ] + roots


def tracked() -> list[Path]:
    command = ["git", "ls-files"]  # git is on every developer's path
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_installed_distribution_owns_a_name_of_ours() -> None:
    owners = importlib.metadata.packages_distributions()
    assert {
        name: owners[name]
        for name in (*FOLDERS, "errors", "extra", "seams", "cancellation")
        if name in owners
    } == {}


def test_only_the_settings_look_into_the_environment() -> None:
    # A process that is started gets the environment passed on whole; that is not a reading.
    reading = re.compile(r"os\.environ(?!\W*(?:,|\}))|os\.getenv")
    readers = [
        str(path.relative_to(ROOT))
        for path in modules()
        if reading.search(path.read_text(encoding="utf-8")) and path.parent.name != "bench"
    ]
    # The other is what a client starts, which imports nothing and passes the settings on.
    assert set(readers) == {"server/daemon/place.py", "server/settings.py"}


def test_errors_stand_below_everything_and_import_nothing_of_ours() -> None:
    tree = ast.parse((ROOT / "errors.py").read_text(encoding="utf-8"))
    plain = [
        one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names
    ]
    named = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in (*plain, *named)} <= sys.stdlib_module_names


def test_a_tool_file_has_one_public_function_named_like_it() -> None:
    for path in (ROOT / "tools").glob("*.py"):
        if path.name in ("__init__.py", "context.py", "tool.py"):
            continue
        functions = [
            node.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
        ]
        assert functions == [path.stem]


def test_no_files_import_each_other_in_a_circle_not_even_for_types() -> None:
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in modules()}
    left = {name: imported(path) & {*names} - {name} for name, path in names.items()}
    while free := {name for name, needed in left.items() if not needed}:
        left = {name: needed - free for name, needed in left.items() if name not in free}
    assert left == {}


def imported(path: Path) -> set[str]:
    """The modules that a file may import, as they are written."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return found


def test_mcp_json_starts_the_server_of_this_checkout() -> None:
    entry = json.loads((ROOT / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]["winnow"]
    assert entry["args"] == ["-m", "server"]
    assert entry["command"].startswith(".venv/")


def test_every_file_for_installers_states_the_same_version_and_settings_that_exist() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    bundle = json.loads((ROOT / "manifest.json").read_text(encoding="utf-8"))
    listing = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    assert bundle["version"] == listing["version"] == listing["packages"][0]["version"] == version
    known = {f"WINNOW_{setting.name.upper()}" for setting in SETTINGS_TABLE} | {"PYTHONUNBUFFERED"}
    assert set(bundle["server"]["mcp_config"]["env"]) <= known
    assert {
        variable["name"] for variable in listing["packages"][0]["environmentVariables"]
    } <= known
    assert [tool["name"] for tool in bundle["tools"]] == list(TOOL_NAMES)
    assert f"mcp-name: {listing['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_wheel_is_shown_to_carry_every_folder() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    # Of the papers not the recipes and the rows: they need a checkout.
    assert {name.partition("/")[0] for name in carried} == {*FOLDERS, *ROOTS}


def test_possessive_groups_give_up_where_their_round_began() -> None:
    """`re` of Python before 3.11.5 goes on amid a round of `(?:…)*+` that failed. A last alternative
    that never matches takes it back to where the round began: `(?:…|(?!))*+`."""
    group = re.compile(r"(?<!\|\(\?!\))\)(?:[*+?]|\{\d*,?\d*\})\+(?!,)")
    assert [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in modules()
        if path.parts[len(ROOT.parts)] not in {"bench", "tests"}
        for line in path.read_text(encoding="utf-8").splitlines()
        if group.search(line)
    ] == []


def test_no_tracked_file_names_a_registry_or_this_machine() -> None:
    # Written as classes so that this file does not name what it looks for.
    forbidden = re.compile(r"py[p]i\.org|python[h]osted\.org|registry\.[n]pmjs|/w[o]rk/|/r[o]ot/")
    hits = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.stat().st_size < 1_000_000
        and forbidden.search(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert hits == []


CLOCKS = re.compile(
    r"\btime\.(?:monotonic|perf_counter|process_time|thread_time|sleep|time_ns)\b|\btime\.time\(|"
    r"\b(?:anyio|asyncio)\.(?:sleep\((?!0\))|current_time)|\bget_(?:running|event)_loop\(\)\.time"
)
"""What reads a clock or sleeps; to hand `time.time` to what is tested does neither."""
MOST_NAME = 80
WITH_CLOCKS = {
    "tests/support/waiting.py": "the one home of waits for other processes and sockets",
    "tests/support/quick.py": "`make times` measures which tests are slow; no test asserts it",
}


def test_no_test_reads_a_clock_or_sleeps() -> None:
    reading = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if CLOCKS.search(path.read_text(encoding="utf-8"))
    }
    assert reading - {"tests/test_layout.py"} == set(WITH_CLOCKS)


def test_names_of_tests_are_at_most_80_characters() -> None:
    names = [
        name
        for path in (ROOT / "tests").glob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    ]
    assert [name for name in names if len(name) > MOST_NAME] == []


DOORS = {"readers", "readers.page", "models.protocols", "cache.store"}
"""Doors of rooms; tools, server, cli and seams are doors whole."""
MOST_INNER = 107
"""Test files that import inner modules, each of which breaks when one moves. It may only fall."""


def test_no_more_test_files_import_inner_modules_than_did() -> None:
    rooms = {"pipeline", "models", "cache", "extras", "prompts", "papers", "readers"}
    inner = [
        path.name
        for path in (ROOT / "tests").glob("test_*.py")
        if any(
            name.partition(".")[0] in rooms and name not in DOORS
            for name in re.findall(
                r"^(?:from|import) ([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE
            )
        )
    ]
    assert len(inner) <= MOST_INNER
