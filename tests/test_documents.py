"""The documents say what the code does: generated parts, links, commands, settings, folders."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command import main
from server.settings import SETTINGS_TABLE
from tests.support.commands import run_command

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    ROOT / name
    for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")
]
DOCUMENTS += sorted(
    page for folder in (".", "clients", "models") for page in (ROOT / "docs" / folder).glob("*.md")
)
DATED = ("CHANGELOG.md", "log.md")
"""What these say was true on its day."""
TODAY = [path for path in DOCUMENTS if path.name not in DATED]
EXAMPLES = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""Commands after `$ `, each with its answer below it."""
LISTINGS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a document."""
    text = re.sub(
        r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> Iterator[tuple[str, str, list[str]]]:
    """Each command of ours in a document: where, its sub-command, and its options."""
    for document in TODAY:
        text = document.read_text(encoding="utf-8")
        lines = [
            line.partition("  #")[0]
            for listing in LISTINGS.findall(text)
            for line in listing.splitlines()
        ]
        for line in [*lines, *re.findall(r"`(winnow [a-z][^`]*)`", text)]:
            found = re.match(r"(?:winnow|\.venv/bin/python -m server) ([a-z]+)(.*)", line)
            if found:
                yield (
                    f"{document.name}: {line}",
                    found[1],
                    re.findall(r"(?<=\s)--[a-z-]+", found[2]),
                )


def examples() -> list[tuple[str, str]]:
    """Each command of the documents that has its answer below it, with that."""
    blocks = [
        block for path in TODAY for block in EXAMPLES.findall(path.read_text(encoding="utf-8"))
    ]
    return [
        (command.strip(), answer)
        for block in blocks
        for command, _, answer in (
            part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        )
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "answer"), examples(), ids=lambda text: text[:40])
def test_an_example_answers_as_the_document_says(
    cache_folder: Path, tmp_path: Path, command: str, answer: str
) -> None:
    name, *arguments = shlex.split(command)
    assert name == "winnow"
    # A loaded machine may be slower than a call's usual limit.
    environment = {**os.environ, "WINNOW_CACHE": str(cache_folder), "WINNOW_SECONDS": "120"}
    environment["XDG_CONFIG_HOME"] = str(tmp_path)  # its list of folders is empty
    done = run_command(*arguments, "--quiet", environment=environment, seconds=300)
    assert done.returncode == 0, done.stderr
    pieces = (re.escape(" ".join(piece.split())) for piece in answer.split("…"))
    pattern = r"\s*.*?\s*".join(pieces)
    assert re.match(pattern, " ".join(done.stdout.split())), done.stdout


def test_the_parts_that_are_made_from_the_code_are_as_the_code_is() -> None:
    build = [sys.executable, "-m", "docs.build", "--check"]
    ran = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_link_within_the_documents_leads_somewhere() -> None:
    broken = []
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            led = document if not path else document.parent / path
            if "://" not in target and not (
                led.exists() and (not anchor or anchor in anchors(led))
            ):
                broken.append(f"{document.name}: {target}")
    assert broken == []


@pytest.mark.parametrize(
    ("overview", "folder"), [("clients", "clients"), ("local-models", "models")]
)
def test_an_overview_and_the_site_lead_to_every_page_below_it(overview: str, folder: str) -> None:
    pages = {f"{folder}/{page.name}" for page in (ROOT / "docs" / folder).glob("*.md")}
    links = re.findall(
        r"\]\(([^)\s#]+)", (ROOT / f"docs/{overview}.md").read_text(encoding="utf-8")
    )
    site = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert len(pages) > 6
    assert (pages - set(links), pages - set(site)) == (set(), set())


def test_every_command_in_the_documents_is_one_of_ours_and_takes_its_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    helps: dict[str, str] = {}
    wrong = []
    for where, name, options in commands():
        if name not in helps:
            with pytest.raises(SystemExit) as left:
                main([name, "--help"])
            helps[name] = capsys.readouterr().out if left.value.code == 0 else ""
        known = set(re.findall(r"--[a-z-]+", helps[name]))
        if not helps[name] or not known.issuperset(options):
            wrong.append(where)
    assert len(helps) > 8
    assert wrong == []


def test_every_setting_is_in_the_documents_and_no_other() -> None:
    names = {f"WINNOW_{setting.name.upper()}" for setting in SETTINGS_TABLE}
    table = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [name for name in sorted(names) if f"| `{name}` |" not in table] == []
    named = {
        name
        for path in TODAY
        for name in re.findall(r"WINNOW_[A-Z0-9_]+", path.read_text(encoding="utf-8"))
    }
    assert named - names == set()


def test_every_module_and_folder_that_the_documents_name_exists() -> None:
    folders = "server|cli|tools|pipeline|models|prompts|cache|tests|bench|examples|docs"
    named = {
        (path.name, name)
        for path in TODAY
        for name in re.findall(rf"`((?:{folders})/[\w/.-]*)`", path.read_text(encoding="utf-8"))
    }
    named |= {
        (path.name, f"{name.replace('.', '/')}.py")
        for path in TODAY
        for name in re.findall(
            r"python -m ((?:bench|docs|examples)\.[a-z_]+)", path.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 20
    assert [pair for pair in sorted(named) if not (ROOT / pair[1]).exists()] == []


def test_the_map_for_agents_has_every_folder_and_stays_short() -> None:
    agents = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    command = ["git", "ls-files"]  # git is on every developer's path
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    folders = {
        name.partition("/")[0]
        for name in listed.stdout.splitlines()
        if "/" in name and name[0] != "."
    }
    folders |= {
        f"pipeline/{path.parent.name}" for path in (ROOT / "pipeline").glob("*/__init__.py")
    }
    assert {folder for folder in folders if f"`{folder}/`" not in agents} == set()
    assert len(agents.encode()) < 8_000


def test_the_readme_is_a_front_door() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
