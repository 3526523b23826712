"""The wheel: what is in it, and that it runs where nothing else of ours is."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from bench.house import FOLDERS
from tests.support import LIBRARY, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as a user's `pip install .` does, through the sdist."""
    out = tmp_path_factory.mktemp("dist")
    if importlib.util.find_spec("build") is None:
        pytest.skip("the package `build` is not installed")
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


def test_a_foreign_environment_gains_one_name_and_every_file_of_ours(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {"winnow"}
    ours = {
        f"winnow/_app/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } - {
        # Recipes and rows of the papers are for a checkout, which has benchmarks and data.
        f"winnow/_app/{path.relative_to(ROOT).as_posix()}"
        for path in [
            *(ROOT / "papers").glob("[!_]*.*"),
            ROOT / "papers/__main__.py",
            *(ROOT / "papers/recipes").rglob("*"),
        ]
    }
    carried = {name for name in names if name.startswith("winnow/_app/")}
    assert carried == ours | {
        f"winnow/_app/{name}.py" for name in ("errors", "extra", "seams", "cancellation")
    }
    assert any(name.endswith("NOTICE") for name in names)
    assert wheel.stat().st_size <= 70_000_000


def test_the_installed_command_answers_from_a_foreign_folder(wheel: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True
    )
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    zipfile.ZipFile(wheel).extractall(site)
    # The dependencies are those of this environment: what is tested is our wheel, not the
    # registry's.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("WINNOW", "PYTHON"))}
    run = subprocess.run(
        [python, "-c", "import winnow; winnow.main()", "research", "When does the first ferry "
        "leave on Sundays?",
         "--folder", str(LIBRARY), "--set", f"cache={tmp_path / 'kept'}"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "[1] file://" in run.stdout
    (tmp_path / "tide.html").write_text("<h1>Tide</h1><p>High at six.</p>", encoding="utf-8")
    alone = subprocess.run(
        [python, "-m", "winnow.readers", "tide.html"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert alone.stdout == "# Tide\n\nHigh at six.\n", alone.stderr
    generic = subprocess.run(
        [python, "-c", "import importlib.util as u; print([n for n in ('tools','server','cache') "
        "if u.find_spec(n)])"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert generic.stdout.strip() == "[]"
