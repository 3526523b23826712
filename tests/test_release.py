"""What a release is made of, and what strangers' programs read of this repository: workflows,
manifests of registries and clients, buttons, skills, forms. `make manifests` and `make plugins`
ask the programs themselves."""

import base64
import hashlib
import json
import re
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a package of their own
from docs.build import skills_of_the_plugin
from docs.buttons import ENTRY, buttons, links
from docs.picture import DEMO, MAX_TOKENS, QUESTION, SECONDS, SOURCE, marked, picture, run_winnow
from docs.release import (
    left_out,
    release_notes,
    stated_versions,
    tracked,
    with_hash,
    write_bundle,
    write_catalog,
)
from docs.shell import shell_files

from cli.command import command_line
from server.app import TOOL_NAMES
from server.settings import SETTINGS_TABLE
from tests.support import ROOT
from tests.support.tokens import count_tokens

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted(
    set((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"}
)
SKILLS = sorted((ROOT / "skills").glob("*/SKILL.md"))
SETTINGS = {f"WINNOW_{setting.name.upper()}" for setting in SETTINGS_TABLE}
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
MOST_LINES = 60
"""Lines of a skill, which is in the context of every conversation that uses it."""


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def data(name: str) -> Any:
    return json.loads(read(name)) if name.endswith("json") else yaml.safe_load(read(name))


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job.get("steps", [])]


# Workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_an_action_is_named_by_its_hash_and_the_version_that_people_know(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if (used := re.search(r"uses: (\S+)(.*)", line)) and not used[1].startswith("./"):
            assert PINNED.fullmatch(used[1]), line
            assert re.match(r" # (v\d+\.\d+\.\d+\b|zizmor: ignore)", used[2]), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_may_do_what_it_says_and_nothing_else_and_ends(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for name, job in jobs(path).items():
        assert job.get("permissions"), name
        assert "uses" in job or job["timeout-minutes"] <= 120, name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_words_of_strangers_get_into_a_shell_and_no_secret_is_kept(path: Path) -> None:
    for step in steps(path):
        assert "${{" not in step.get("run", ""), step
    secrets = set(re.findall(r"secrets\.(\w+)", path.read_text(encoding="utf-8")))
    assert secrets <= {"GITHUB_TOKEN"}


def test_a_make_target_or_module_that_a_workflow_runs_exists() -> None:
    targets = set(re.findall(r"^([\w-]+)(?: [\w-]+)*:", read("Makefile"), re.MULTILINE))
    for path in WORKFLOWS:
        for step in steps(path):
            for line in step.get("run", "").splitlines():
                if line.startswith("make "):
                    words = [word for word in line.split()[1:] if "=" not in word]
                    assert {word for word in words if word[0] not in '-"'} <= targets, line
                for module in re.findall(r"python -m (docs\.\w+)", line):
                    assert (ROOT / f"{module.replace('.', '/')}.py").exists(), line


def test_every_system_and_python_that_the_package_names_is_tried() -> None:
    tried = jobs(ROOT / ".github/workflows/ci.yml")
    pythons = {
        line.rpartition(" ")[2]
        for line in tomllib.loads(read("pyproject.toml"))["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    }
    for job in ("quick", "windows"):
        assert set(tried[job]["strategy"]["matrix"]["python"]) == pythons
    systems = jobs(ROOT / ".github/workflows/release.yml")["try"]["strategy"]["matrix"]["os"]
    assert systems == ["ubuntu-latest", "macos-latest", "windows-latest"]


def test_nothing_is_published_before_it_was_tried_and_the_registry_comes_last() -> None:
    release = jobs(ROOT / ".github/workflows/release.yml")
    assert release["try"]["needs"] == "build"
    assert release["publish"]["needs"] == release["image"]["needs"] == "try"
    assert set(release["announce"]["needs"]) == {"publish", "image"}
    assert release["registry"]["needs"] == "announce"
    for name in ("build", "try", "publish"):
        assert "packages" not in release[name]["permissions"]
        assert "contents" not in release[name]["permissions"] or (
            release[name]["permissions"]["contents"] == "read"
        )
    push = next(step for step in release["image"]["steps"] if step.get("id") == "push")
    assert push["with"]["sbom"] is True
    assert push["with"]["provenance"] == "mode=max"


# What is built


def test_every_file_states_one_version_and_the_changelog_has_its_notes() -> None:
    stated = stated_versions()
    assert len(stated) >= 14
    assert set(stated.values()) == {stated["pyproject.toml"]}
    notes = release_notes(read("CHANGELOG.md"), stated["pyproject.toml"])
    assert 0 < len(notes.splitlines()) <= 40  # GitHub's page of a release is read in a minute
    assert "\n## " not in notes


def test_a_version_without_notes_stops_the_release() -> None:
    with pytest.raises(SystemExit, match=r"no section 9\.9\.9"):
        release_notes("# Changelog\n\n## 1.0.0\n\n- words\n", "9.9.9")
    between = "## 1.1.0 (2027-01-01)\n\n- new\n\n## 1.0.0\n\n- old\n"
    assert release_notes(between, "1.1.0") == "- new\n"
    assert release_notes(between, "1.0.0") == "- old\n"


def test_the_bundle_has_what_it_starts_with_and_the_same_files_give_the_same_hash(
    tmp_path: Path,
) -> None:
    needed = data("manifest.json")
    names = [name for name in tracked() if not name.endswith((".onnx", ".npz", ".bin", ".png"))]
    names.append(needed["icon"])
    first, second = (write_bundle(tmp_path / name, names) for name in ("a.mcpb", "b.mcpb"))
    assert first.read_bytes() == second.read_bytes()
    held = set(zipfile.ZipFile(first).namelist())
    assert {
        "manifest.json",
        "pyproject.toml",
        needed["server"]["entry_point"],
        needed["icon"],
    } <= held
    assert not {name.split("/")[0] for name in held} & {"tests", "bench", ".github", "docs"}
    entry = with_hash(data("server.json"), hashlib.sha256(first.read_bytes()).hexdigest())
    hashed = [one["registryType"] for one in entry["packages"] if "fileSha256" in one]
    assert hashed == ["mcpb"]
    assert re.fullmatch("[0-9a-f]{64}", entry["packages"][-1]["fileSha256"])


@pytest.mark.parametrize(
    ("name", "lines", "out"),
    [
        ("tests/test_a.py", ["tests/"], True),
        ("a/tests/b.py", ["tests/"], True),
        ("tests.py", ["tests/"], False),
        ("Makefile", ["Makefile"], True),
        ("server/app.py", ["tests/", "Makefile"], False),
    ],
)
def test_a_line_of_mcpbignore_names_a_file_or_a_folder(
    name: str, lines: list[str], out: bool
) -> None:
    assert left_out(name, lines) is out


# Registries and clients


def test_server_json_has_package_image_and_bundle_with_settings_that_exist() -> None:
    listing = data("server.json")
    assert [one["registryType"] for one in listing["packages"]] == ["pypi", "oci", "mcpb"]
    assert len(listing["description"]) <= 100
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", listing["name"])
    for package in listing["packages"]:
        assert package["transport"] == {"type": "stdio"}
        named = {one["name"] for one in package.get("environmentVariables", [])}
        assert named <= SETTINGS
        secret = {
            one["name"] for one in package.get("environmentVariables", []) if one.get("isSecret")
        }
        assert secret == named & {"WINNOW_KEYS"}
    image = read("Dockerfile")
    assert f'io.modelcontextprotocol.server.name="{listing["name"]}"' in image
    assert image.rstrip().endswith('CMD ["serve"]')
    compose = data("deploy/compose.yaml")["services"]["winnow"]
    assert compose["command"][:2] == ["serve", "--http"]
    assert "/healthz" in compose["healthcheck"]["test"][-1]


def test_the_bundle_has_an_icon_a_privacy_policy_and_fields_that_are_used() -> None:
    manifest = data("manifest.json")
    icon = (ROOT / manifest["icon"]).read_bytes()
    assert icon[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(icon[16:20]) == int.from_bytes(icon[20:24]) == 512
    assert [urlsplit(link).path.rpartition("/")[2] for link in manifest["privacy_policies"]] == [
        "PRIVACY.md"
    ]
    assert (ROOT / "PRIVACY.md").is_file()
    environment = manifest["server"]["mcp_config"]["env"]
    used = set(re.findall(r"\$\{user_config\.(\w+)\}", " ".join(environment.values())))
    assert used == set(manifest["user_config"])
    assert manifest["user_config"]["keys"]["sensitive"] is True
    assert [tool["name"] for tool in manifest["tools"]] == list(TOOL_NAMES)


def test_directories_of_servers_start_the_command_that_is_published() -> None:
    scripts = tomllib.loads(read("pyproject.toml"))["project"]["scripts"]
    assert "winnow-mcp" in scripts
    smithery = data("smithery.yaml")["startCommand"]
    assert smithery["type"] == "stdio"
    function = smithery["commandFunction"]
    assert '"uvx"' in function
    assert '"winnow-mcp"' in function
    assert set(re.findall(r"(WINNOW_\w+):", function)) <= SETTINGS
    assert set(re.findall(r"config\.(\w+)", function)) == set(
        smithery["configSchema"]["properties"]
    )
    docker = data("deploy/docker-catalog/server.yaml")
    asked = set(re.findall(r"\{\{winnow\.(\w+)\}\}", read("deploy/docker-catalog/server.yaml")))
    assert asked == set(docker["config"]["parameters"]["properties"])
    given = docker["config"]["env"] + docker["config"]["secrets"]
    assert {one["env" if "env" in one else "name"] for one in given} <= SETTINGS
    assert data("glama.json")["maintainers"]


def test_dockers_entry_names_its_commit_and_every_argument_says_what_it_is(tmp_path: Path) -> None:
    write_catalog(tmp_path)
    entry = yaml.safe_load((tmp_path / "docker-server.yaml").read_text(encoding="utf-8"))
    assert re.fullmatch(r"[0-9a-f]{40}", entry["source"]["commit"])
    tools = json.loads((tmp_path / "docker-tools.json").read_text(encoding="utf-8"))
    assert {tool["name"] for tool in tools} == set(TOOL_NAMES)
    assert all(one["desc"] for tool in tools for one in tool["arguments"])


@pytest.mark.parametrize("client", list(links()))
def test_a_button_decodes_to_the_entry_that_starts_winnow(client: str) -> None:
    address = urlsplit(links()[client])
    fields = {
        name: values[0] for name, values in parse_qs(address.query, strict_parsing=True).items()
    }
    assert address.scheme == "https"  # GitHub takes out links of other schemes
    assert fields["name"] == "winnow"
    text = fields["config"]
    assert json.loads(text if text.startswith("{") else base64.b64decode(text)) == ENTRY
    assert links()[client] in read("README.md")
    assert buttons() in read("README.md")


# Skills and plug-ins


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: path.parent.name)
def test_a_skill_is_short_and_names_tools_and_arguments_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    fields = yaml.safe_load(head)
    assert fields["name"] == path.parent.name
    assert 40 <= len(fields["description"]) <= 1024
    assert len(text.splitlines()) <= MOST_LINES
    tools = {tool["name"]: tool for tool in json.loads(read("server/tools_list.json"))}
    named = set(re.findall(r"`(\w+_\w+|research)`", body)) & (
        set(tools) | {word for word in re.findall(r"`(\w+_\w+)`", body) if word != "max_tokens"}
    )
    assert named
    assert named <= set(tools)
    arguments = {name for tool in tools.values() for name in tool["inputSchema"]["properties"]}
    assert set(re.findall(r"`(\w+)=", body)) <= arguments


def test_the_four_skills_are_packed_in_the_plug_in_as_they_are_written() -> None:
    assert [path.parent.name for path in SKILLS] == [
        "ask-my-folder",
        "check-my-draft",
        "read-one-site",
        "research",
    ]
    for copy, text in skills_of_the_plugin().items():
        assert copy.read_text(encoding="utf-8") == text
    assert len(list((ROOT / "plugin/skills").rglob("*.md"))) == len(SKILLS)


def test_every_plug_in_starts_the_published_command_and_every_marketplace_finds_it() -> None:
    for name in ("plugin/.mcp.json", "plugin/mcp.json", "gemini-extension.json"):
        server = data(name)["mcpServers"]["winnow"]
        assert (server["command"], server["args"][0]) == ("uvx", "winnow-mcp")
    for name in (".claude-plugin", ".cursor-plugin"):
        (entry,) = data(f"{name}/marketplace.json")["plugins"]
        assert (ROOT / entry["source"] / name / "plugin.json").is_file()
        assert data(f"plugin/{name}/plugin.json")["name"] == entry["name"] == "winnow"
    (entry,) = data(".agents/plugins/marketplace.json")["plugins"]
    folder = ROOT / entry["source"]["path"]
    codex = json.loads((folder / ".codex-plugin/plugin.json").read_text(encoding="utf-8"))
    assert (folder / codex["skills"]).is_dir()
    assert (folder / codex["mcpServers"]).is_file()
    assert (ROOT / data("gemini-extension.json")["contextFileName"]).is_file()


# Shells


def completed(*words: str) -> list[str]:
    script = (
        f". {ROOT / 'deploy/shell/winnow.bash'}; COMP_WORDS=({' '.join(words)}); "
        f"COMP_CWORD={len(words) - 1}; _winnow; echo ${{COMPREPLY[@]}}"
    )
    bash = ["bash", "--noprofile", "--norc", "-c", script]
    done = subprocess.run(bash, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["winnow", "unin"], {"uninstall"}),
        (["winnow", "install", "curs"], {"cursor"}),
        (["winnow", "doctor", "--rep"], {"--report"}),
        (["winnow", "cache", "cl"], {"clear"}),
        (["winnow", "research", "--max-t"], {"--max-tokens"}),
        (["winnow", "nothing", "x"], set()),
    ],
)
def test_a_shell_completes_commands_their_options_and_their_words(
    words: list[str], offered: set[str]
) -> None:
    assert set(completed(*words)) == offered


def test_every_command_is_in_the_man_page_and_in_each_completion() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in shell_files()}
    assert files == {path.name: text for path, text in shell_files().items()}
    _, names = command_line()
    for name in names:
        assert f".SS winnow {name}\n" in files["winnow.1"]
        assert f"    {name}) words=" in files["winnow.bash"]
        assert f"    '{name}:" in files["_winnow"]
        assert f"-a {name} -d" in files["winnow.fish"]
    shared = tomllib.loads(read("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {Path(name).name for name in shared["shared-data"]} == set(files)


# Pictures


@pytest.mark.slow
def test_the_readmes_figure_is_the_count_of_what_its_example_prints() -> None:
    data = json.loads(run_winnow(f'extract "{QUESTION}" {SOURCE} --max-tokens {MAX_TOKENS} --json'))
    license = count_tokens(read(SOURCE))
    assert 0 < data["tokens"] <= int(MAX_TOKENS)
    said = f"That answer has at most {MAX_TOKENS} tokens, the license {license:,}"
    assert said in read("README.md")
    drawn = picture(data, read(SOURCE))
    assert "<mark>Trademarks. This License does not grant permission" in drawn


def test_a_picture_marks_the_words_of_a_link_and_no_others() -> None:
    link = "#:~:text=begins%20here,ends%20there"
    text = "Before. It begins\n  here and ends there. After <b>."
    shown, at = marked(text, link)
    assert shown == "Before. It <mark>begins\n  here and ends there</mark>. After &lt;b&gt;."
    assert at == len("Before. It ")
    with pytest.raises(ValueError, match="No words"):
        marked("other words", link)


def test_the_demo_is_a_cast_of_ninety_seconds_with_what_the_commands_print() -> None:
    head, *events = map(json.loads, read("docs/demo.cast").splitlines())
    assert head["version"] == 2
    times = [event[0] for event in events]
    assert times == sorted(times)
    assert 60 <= times[-1] <= SECONDS
    shown = "".join(event[2] for event in events)
    for command, _ in DEMO:
        assert command in shown
    assert "does not grant permission to use the trade names" in shown


# The repository's own pages


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_the_fields_that_github_needs(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    assert all(field["attributes"]["label"] for field in form["body"])


def test_forms_about_faults_ask_for_the_report_that_holds_nothing_private() -> None:
    for name in ("bug", "wrong-answer"):
        assert "`winnow doctor --report`" in read(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert "winnow doctor --report" in read(".github/pull_request_template.md")


def test_addresses_of_this_repository_in_its_files_lead_to_files_that_are_there() -> None:
    linked = re.compile(r"github\.com/winnow-mcp/winnow/blob/main/([\w./-]+)")
    raw = re.compile(r"raw\.githubusercontent\.com/winnow-mcp/winnow/main/([\w./-]+)")
    for name in tracked():
        if name.endswith((".md", ".json", ".yml", ".yaml", ".toml", ".txt")):
            text = (ROOT / name).read_text(encoding="utf-8", errors="ignore")
            for target in linked.findall(text) + raw.findall(text):
                assert (ROOT / target.rstrip(".")).exists(), (name, target)


def test_pages_that_a_public_project_has_are_there() -> None:
    citation = data("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "authors", "license", "message"} <= set(citation)
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "docs/roadmap.md"):
        assert (ROOT / name).is_file()
    assert read("llms.txt").startswith("# Winnow\n\n> ")
    assert "pip show" not in read("SECURITY.md") or "winnow --version" in read("SECURITY.md")
