"""A format, a provider, a backend, a tool and a subcommand of one file each, as
`docs/extending.md` shows them: put into the folders of a checkout, or brought by another
package."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client, StdioServerParameters

from bench.house import FOLDERS as OURS
from tests.support import LIBRARY, ROOT, Site, text_of

pytestmark = pytest.mark.slow
FOLDERS: Final = {
    "formats": "readers/formats",
    "providers": "pipeline/search/providers",
    "backends": "models/backends",
    "tools": "tools",
    "commands": "cli/commands",
    "exports": "extras/exports",
}
OBJECTS: Final = {
    "formats": "FORMAT",
    "providers": "PROVIDER",
    "backends": "BACKEND",
    "tools": "TOOL",
    "commands": "COMMAND",
    "exports": "EXPORT",
}
CARDS: Final = """BEGIN:VCARD
VERSION:4.0
FN:Ilse Marwood
ORG:Skellmouth Lighthouse
TEL;TYPE=work:+44 20 7946 0958
END:VCARD
"""


def examples(site: Site) -> dict[tuple[str, str], str]:
    """The files that the document shows, by seam and name, with the wiki on loopback."""
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    found = re.findall(r"<!-- (\w+)/(\w+) -->\n```python\n(.*?)```", text, re.DOTALL)
    address = site.url("").rstrip("/")
    return {
        (seam, name): code.replace("https://wiki.example.org", address)
        for seam, name, code in found
    }


@dataclass(frozen=True)
class Extended:
    """A Winnow that has the examples."""

    checkout: Path
    environment: dict[str, str]
    site: Site
    cards: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        return subprocess.run(
            [sys.executable, "-m", "server", *arguments],
            cwd=self.checkout,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def checkout(folder: Path) -> Path:
    """Return a copy of the product; the models that it carries are linked."""
    for name in OURS:
        ignore = shutil.ignore_patterns("__pycache__", "embedded")
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    (folder / "models" / "embedded").symlink_to(ROOT / "models" / "embedded")
    for name in ("errors.py", "extra.py", "seams.py", "cancellation.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def package(folder: Path, codes: dict[tuple[str, str], str]) -> Path:
    """Return a folder in which a package with entry points is installed."""
    info = folder / "acme_winnow-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "acme_winnow").mkdir()
    (folder / "acme_winnow" / "__init__.py").write_text("")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-winnow\nVersion: 1.0\n")
    lines: list[str] = []
    for (seam, name), code in codes.items():
        (folder / "acme_winnow" / f"{name}.py").write_text(code, encoding="utf-8")
        lines += [f"[winnow.{seam}]", f"{name} = acme_winnow.{name}:{OBJECTS[seam]}"]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture(
    scope="module", params=["files", pytest.param("package", marks=pytest.mark.nightly)]
)
def extended(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[Path]:
    """The folders of an extended Winnow; its examples are written once a test knows its site."""
    folder = tmp_path_factory.mktemp(request.param)
    root = checkout(folder / "checkout") if request.param == "files" else ROOT
    cards = folder / "cards"
    cards.mkdir()
    (cards / "people.vcf").write_text(CARDS)
    return folder, root, cards


@pytest.fixture
def winnow(extended: Sequence[Path], site: Site) -> Extended:
    folder, root, cards = extended
    codes = examples(site)
    assert {seam for seam, _ in codes} == {*FOLDERS}
    environment = {**os.environ, "WINNOW_CACHE": str(folder / "cache"), "WINNOW_SEARCH": "none"}
    if root == ROOT:
        other = folder / "site-packages"
        shutil.rmtree(other, ignore_errors=True)
        environment["PYTHONPATH"] = str(package(other, codes))
    else:
        for (seam, name), code in codes.items():
            (root / FOLDERS[seam] / f"{name}.py").write_text(code, encoding="utf-8")
    return Extended(root, environment, site, cards)


def test_a_new_format_is_found_in_a_folder_and_cited(winnow: Extended) -> None:
    ran = winnow.run(
        "research",
        "What is the telephone number of Ilse Marwood?",
        *("--folder", str(winnow.cards), "--set", "search=folder", "-q"),
    )
    assert ran.returncode == 0, ran.stderr
    assert "tel: +44 20 7946 0958" in ran.stdout  # in the words of the format, not of the file
    assert "people.vcf" in ran.stdout


def test_a_new_provider_has_its_key_as_a_setting_and_is_searched(winnow: Extended) -> None:
    page = winnow.site.put("/lamp", "<title>Lamp</title><p>The lamp was lit in 1898.</p>")
    hit = {"title": "The lamp of Skellmouth", "url": page, "excerpt": "It was lit in 1898."}
    winnow.site.put("/api/search", json.dumps({"hits": [hit]}), kind="application/json")
    asking = ("search", "When was the lamp lit?", "--set", "search=wikifarm", "-q")
    keyless = winnow.run(*asking)
    assert keyless.returncode == 2
    assert "WINNOW_KEYS=wikifarm" in keyless.stderr
    ran = winnow.run(*asking, "--set", "keys=wikifarm=k", "--set", "networks=loopback")
    assert ran.returncode == 0, ran.stderr
    assert "The lamp of Skellmouth" in ran.stdout
    assert any(path.startswith("/api/search?q=") for path in winnow.site.asked)


def test_a_new_backend_gives_a_role_its_model(winnow: Extended) -> None:
    wrong = winnow.run("models", "--set", "reranker=overlap:many")
    assert wrong.returncode == 2
    assert "Use overlap:4." in wrong.stderr
    unknown = winnow.run("models", "--set", "reranker=overlapped:4")
    assert "overlap:LETTERS" in unknown.stderr
    ran = winnow.run(
        "search",
        "Ilse Marwood's telephone number",
        *("--folder", str(winnow.cards), "--set", "search=folder", "--json", "-q"),
        *("--set", "reranker=overlap:4"),
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["hits"][0]["made_by"] == "rerank"


@pytest.mark.anyio
async def test_a_new_tool_is_a_command_and_is_listed_advised_and_called(winnow: Extended) -> None:
    ran = winnow.run("count", str(winnow.cards / "people.vcf"), "-q")
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^\d+ words: .*people\.vcf$", ran.stdout, re.MULTILINE)
    environment = {**winnow.environment, "WINNOW_FOLDERS": str(winnow.cards)}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "server"], env=environment, cwd=winnow.checkout
    )
    async with Client(server) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert [*listed][-1] == "count_words"
        assert listed["count_words"].input_schema["required"] == ["sources"]
        assert "count_words" in (client.instructions or "")
        called = await client.call_tool(
            "count_words", {"sources": [str(winnow.cards / "people.vcf")]}
        )
    assert " words: " in text_of(called)


def test_a_new_subcommand_is_listed_with_its_options_and_run(winnow: Extended) -> None:
    ran = winnow.run("roots", "--folder", str(winnow.cards), "--count", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"folders": 1}
    unknown = winnow.run("root")
    assert "Did you mean roots?" in unknown.stderr


@pytest.mark.nightly
def test_a_new_form_of_export_is_written_and_an_unknown_one_names_those_there_are(
    winnow: Extended,
) -> None:
    question = "What is the telephone number of Ilse Marwood?"
    folder = ("--folder", str(winnow.cards), "--set", "search=folder", "-q", "--json")
    session = json.loads(winnow.run("research", question, *folder).stdout)["session"]
    ran = winnow.run("sessions", "export", session, "--format", "questions")
    assert ran.stdout.endswith(f": {question}\n")
    unknown = winnow.run("sessions", "export", session, "--format", "poem")
    assert unknown.returncode == 2
    assert "questions" in unknown.stderr


def test_what_cannot_be_loaded_is_left_out_and_the_doctor_says_why(
    tmp_path: Path, site: Site
) -> None:
    codes = examples(site)
    codes["formats", "vcard"] = "import no_such_package\n"
    other = package(tmp_path / "site-packages", codes)
    environment = {
        **os.environ,
        "PYTHONPATH": str(other),
        "WINNOW_CACHE": str(tmp_path / "cache"),
        "WINNOW_SEARCH": "none",
    }
    ran = Extended(ROOT, environment, site, tmp_path).run("doctor")
    assert ran.returncode == 1
    assert "winnow.formats: vcard" in ran.stdout
    assert "no_such_package" in ran.stdout
    assert "count_words" not in ran.stdout


ALONE: Final = """
import json
import sys

import anyio
from mcp import Client

from server.app import build_server
from server.settings import read_settings


async def main(folder, cache):
    page = folder + "/ferry-winter-cuts.html"
    given = {"folders": folder, "search": "folder", "cache": cache}
    async with Client(build_server(read_settings(given, {}))) as client:
        for tool, arguments in [
            ("research", {"question": "How many passengers did a crossing carry last winter?"}),
            ("extract_relevant", {"sources": [page], "draft": "> We carried seven passengers a crossing last winter"}),
        ]:
            result = await client.call_tool(tool, arguments)
            print(json.dumps([result.is_error, result.content[0].text], ensure_ascii=False))


anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.nightly
def test_the_core_answers_without_anything_in_extras(tmp_path: Path) -> None:
    root = checkout(tmp_path / "checkout")
    for path in (root / "extras").rglob("*.py"):
        if path.name != "__init__.py":
            path.unlink()
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(LIBRARY / "ferry-winter-cuts.html", folder)
    asking = [sys.executable, "-c", ALONE, str(folder), str(tmp_path / "cache")]

    def answers(cwd: Path) -> list[list[Any]]:
        ran = subprocess.run(
            asking, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0, ran.stderr
        marks = re.compile(r"(?:«/?|session/|Session: )[0-9a-f]+")  # new in each answer
        return [json.loads(marks.sub("", line)) for line in ran.stdout.splitlines()]

    found, draft = answers(root)
    whole_found, whole_draft = answers(ROOT)
    assert not found[0]
    assert found[1] == whole_found[1]
    assert "seven passengers a crossing" in found[1]
    assert draft[0]
    assert "Drafts cannot be checked here" in draft[1]
    assert not whole_draft[0]
