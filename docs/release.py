"""Build, and try, what a release is made of; `.github/workflows/release.yml` runs this for a tag.

    python -m docs.release --dry-run             everything in a temporary folder; nothing is published
    python -m docs.release --tag v1.0.0 --out dist
    python -m docs.release --try dist            install, ask and remove what is in a folder

Prints each step, and each file with its SHA-256. Needs the package `build` (and pipx or uv,
which are tried where they are installed), git, and nothing of Winnow's own. Not for:
publishing, which the workflow does without secrets.
"""

import argparse
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SAID: Final = re.compile(r"^## (\d+\.\d+\.\d+)\b.*$", re.MULTILINE)
"""The heading of a version in CHANGELOG.md."""
SECONDS: Final = 300
"""For one answer of a server that was just installed; the first call loads models."""
QUESTION: Final = "When does the first ferry leave on Sundays?"
REVISION: Final = "2025-11-25"
"""Of the protocol, in the trial."""


def main() -> None:
    """Build into a folder or try what is there; exit with 1, naming what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--dry-run", action="store_true", help="build and try in a temporary folder"
    )
    parser.add_argument("--tag", help="the version must be this tag's")
    parser.add_argument("--out", type=Path, help="folder to write to")
    parser.add_argument(
        "--try",
        dest="tried",
        type=Path,
        help="folder whose package and bundle are tried",
    )
    args = parser.parse_args()
    if args.tried:
        try_files(args.tried)
        return
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder, "dist")
        build(out, tag=args.tag)
        if args.dry_run:
            try_files(out)
            step(
                "would be published by the workflow",
                "package index, image, release, MCP registry",
            )


def build(out: Path, *, tag: str | None = None) -> None:
    """Write package, source, bundle, server.json, Docker's entry, notes and SHA256SUMS to `out`; exit
    where the files of the checkout disagree about the version."""
    version = agreed_version()
    if tag and tag != f"v{version}":
        sys.exit(f"The tag is {tag}, and the files say {version}.")
    step("version", version)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    notes = release_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    (out / "notes.md").write_text(notes, encoding="utf-8")
    step("notes", f"{len(notes.splitlines())} lines of CHANGELOG.md")
    run([sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)])
    made = write_bundle(out / f"winnow-{version}.mcpb", tracked())
    listing = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    entry = with_hash(listing, hash_of(made))
    (out / "server.json").write_text(
        json.dumps(entry, indent=2) + "\n", encoding="utf-8"
    )
    write_catalog(out)
    files = sorted(path for path in out.iterdir() if path.is_file())
    sums = "".join(f"{hash_of(path)}  {path.name}\n" for path in files)
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    for path in files:
        step(path.name, f"{path.stat().st_size:,} bytes, sha256 {hash_of(path)}")


def agreed_version() -> str:
    """Return the version that every file states; exit with those that state another."""
    stated = stated_versions()
    version = stated["pyproject.toml"]
    if others := {name: said for name, said in stated.items() if said != version}:
        sys.exit(f"pyproject.toml says {version}; others say {others}.")
    return version


def stated_versions() -> dict[str, str]:
    """Return what each file says that the version is."""

    def data(name: str) -> Any:
        return json.loads((ROOT / name).read_text(encoding="utf-8"))

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listing = data("server.json")
    chart = (ROOT / "deploy/helm/Chart.yaml").read_text(encoding="utf-8")
    values = (ROOT / "deploy/helm/values.yaml").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest = SAID.search((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    image = next(one for one in listing["packages"] if one["registryType"] == "oci")
    bundle = next(one for one in listing["packages"] if one["registryType"] == "mcpb")
    plugins = {
        str(path.relative_to(ROOT)): json.loads(path.read_text("utf-8"))["version"]
        for path in plugin_files()
    }
    return {
        "pyproject.toml": project["project"]["version"],
        "server.json": listing["version"],
        "server.json: package": listing["packages"][0]["version"],
        "server.json: image": image["identifier"].rpartition(":")[2],
        "server.json: bundle": bundle["identifier"]
        .rpartition("winnow-")[2]
        .removesuffix(".mcpb"),
        "manifest.json": data("manifest.json")["version"],
        "Chart.yaml": field(chart, "version"),
        "Chart.yaml: app": field(chart, "appVersion"),
        "values.yaml": field(values, "tag"),
        "CITATION.cff": field(citation, "version"),
        "CHANGELOG.md": newest[1] if newest else "",
        **plugins,
    }


def plugin_files() -> list[Path]:
    """Return the manifests of plug-ins, each with a version."""
    return [
        ROOT / "gemini-extension.json",
        *sorted((ROOT / "plugin").glob(".*-plugin/plugin.json")),
    ]


def field(text: str, name: str) -> str:
    """Return a field of a YAML file without quotes; "" if it has none."""
    found = re.search(rf"^\s*{name}: *\"?([^\"\s]+)", text, re.MULTILINE)
    return found[1] if found else ""


def release_notes(changelog: str, version: str) -> str:
    """Return the section of a version, without its heading; exit where there is none."""
    headings = list(SAID.finditer(changelog))
    for number, heading in enumerate(headings):
        if heading[1] == version:
            following = headings[number + 1 :]
            end = following[0].start() if following else len(changelog)
            return changelog[heading.end() : end].strip() + "\n"
    sys.exit(f"CHANGELOG.md has no section {version}.")


def tracked() -> list[str]:
    """Return the names of the files that git keeps."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def write_bundle(path: Path, names: Iterable[str]) -> Path:
    """Write the bundle for desktop clients: the files that .mcpbignore does not name, with one
    date, so that the same files give the same hash."""
    ignored = (ROOT / ".mcpbignore").read_text(encoding="utf-8").split()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in sorted(names):
            if not left_out(name, ignored):
                entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                entry.external_attr = 0o644 << 16
                bundle.writestr(entry, (ROOT / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return path


def left_out(name: str, ignored: Sequence[str]) -> bool:
    """Whether a line of .mcpbignore names a file or a folder above it."""
    folders = name.split("/")[:-1]
    return any(
        any(fnmatch.fnmatch(folder, line[:-1]) for folder in folders)
        if line.endswith("/")
        else fnmatch.fnmatch(name, line)
        for line in ignored
    )


def with_hash(listing: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """Return server.json with the hash of the bundle, which clients compare."""
    packages = [
        {**one, "fileSha256": digest} if one["registryType"] == "mcpb" else one
        for one in listing["packages"]
    ]
    return {**listing, "packages": packages}


def write_catalog(out: Path) -> None:
    """Write the entry for Docker's catalogue, which names the commit and has the list of tools."""
    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.check_output(head, cwd=ROOT, text=True).strip()
    entry = (ROOT / "deploy/docker-catalog/server.yaml").read_text(encoding="utf-8")
    source = "source:\n"
    (out / "docker-server.yaml").write_text(
        entry.replace(source, f"{source}  commit: {commit}\n"), encoding="utf-8"
    )
    listed = json.loads((ROOT / "server/tools_list.json").read_text(encoding="utf-8"))
    tools = [
        {
            "name": tool["name"],
            "description": tool["description"],
            "arguments": [
                {
                    "name": name,
                    "type": field.get("type", "string"),
                    "desc": field["description"],
                }
                for name, field in tool["inputSchema"]["properties"].items()
            ],
        }
        for tool in listed
    ]
    (out / "docker-tools.json").write_text(
        json.dumps(tools, indent=2) + "\n", encoding="utf-8"
    )


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def try_files(folder: Path) -> None:
    """Try each file of a folder that people start Winnow from; exit where something fails or is left."""
    (wheel,) = folder.glob("*.whl")
    (source,) = folder.glob("*.tar.gz")
    (bundle,) = folder.glob("*.mcpb")
    for name in INSTALLERS:
        if name != "pip" and not importable(name):
            step(name, "is not installed here")
            continue
        try_package(name, wheel)
        if name != "pip":  # what pip does with a source is what both others do
            try_package(name, source)
    if importable("uv"):
        try_bundle(bundle)


def try_package(name: str, package: Path) -> None:
    """Install a package with one installer into a folder of its own; call its five tools over stdio;
    remove it; exit where something fails or is left."""
    what = f"{name}, {'wheel' if package.suffix == '.whl' else 'source'}"
    with tempfile.TemporaryDirectory() as there:
        place = Path(there)
        script, remove, environment = INSTALLERS[name](package.resolve(), place)
        version = run([str(script), "--version"], environment).strip()
        step(what, f"{version} is installed")
        step(what, f"tools that answered: {', '.join(ask_tools([str(script)]))}")
        run(remove, environment)
        left = sorted(
            str(path.relative_to(place))
            for path in place.rglob("*winnow*")
            if path.suffix != ".lock"  # pipx keeps one for each name
        )
        if script.exists() or left:
            sys.exit(f"{what} left {left[:5]}.")
        step(what, "removed, and nothing is left")


def try_bundle(bundle: Path) -> None:
    """Unpack a bundle and start it by its own manifest, as Claude Desktop does; call its five tools."""
    with tempfile.TemporaryDirectory() as there:
        with zipfile.ZipFile(bundle) as packed:
            packed.extractall(there)
        manifest = json.loads(Path(there, "manifest.json").read_text(encoding="utf-8"))
        start = manifest["server"]["mcp_config"]
        arguments = [part.replace("${__dirname}", there) for part in start["args"]]
        uv = [sys.executable, "-m", start["command"]]
        # Built and installed before the first call, whose answer is waited for.
        run([*uv, "sync", "--quiet", "--directory", there, "--no-dev"])
        answered = ", ".join(ask_tools([*uv, *arguments]))
    step("uv, bundle", f"tools that answered: {answered}")


def importable(name: str) -> bool:
    """Whether this Python has a module of that name."""
    return (
        subprocess.run(
            [sys.executable, "-m", name, "--version"], capture_output=True, check=False
        ).returncode
        == 0
    )


Installed = tuple[Path, list[str], dict[str, str]]
"""The script, the command that removes it, and the environment of both."""


def by_pip(wheel: Path, place: Path) -> Installed:
    """Install into an environment of its own."""
    venv.create(place / "env", with_pip=True)
    python = scripts(place / "env") / f"python{SUFFIX}"
    run(
        [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            str(wheel),
        ]
    )
    remove = [str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "winnow-mcp"]
    return scripts(place / "env") / f"winnow-mcp{SUFFIX}", remove, {}


def by_pipx(wheel: Path, place: Path) -> Installed:
    """Install as `pipx install` does for a person, into folders of the trial."""
    environment = {
        "PIPX_HOME": str(place / "home"),
        "PIPX_BIN_DIR": str(place / "bin"),
        "PIPX_MAN_DIR": str(place / "man"),
        "PIPX_SHARED_LIBS": str(place / "shared"),
    }
    pipx = [sys.executable, "-m", "pipx"]
    run(
        [*pipx, "install", "--quiet", "--python", sys.executable, str(wheel)],
        environment,
    )
    return (
        place / "bin" / f"winnow-mcp{SUFFIX}",
        [*pipx, "uninstall", "winnow-mcp"],
        environment,
    )


def by_uv(wheel: Path, place: Path) -> Installed:
    """Install as `uv tool install` does, into folders of the trial."""
    environment = {
        "UV_TOOL_DIR": str(place / "tools"),
        "UV_TOOL_BIN_DIR": str(place / "bin"),
    }
    uv = [sys.executable, "-m", "uv", "tool"]
    run(
        [*uv, "install", "--quiet", "--python", sys.executable, str(wheel)], environment
    )
    return (
        place / "bin" / f"winnow-mcp{SUFFIX}",
        [*uv, "uninstall", "winnow-mcp"],
        environment,
    )


INSTALLERS: Final = {"pip": by_pip, "pipx": by_pipx, "uv": by_uv}
SUFFIX: Final = ".exe" if os.name == "nt" else ""


def scripts(environment: Path) -> Path:
    """Return the folder of the commands of an environment."""
    return environment / ("Scripts" if os.name == "nt" else "bin")


def ask_tools(command: Sequence[str]) -> list[str]:
    """Start a server as clients do, in a folder with one document, and call every tool; return
    their names. Exits where one fails."""
    with tempfile.TemporaryDirectory() as home:
        return _ask_tools(command, Path(home))


def _ask_tools(command: Sequence[str], home: Path) -> list[str]:
    (home / "boats.md").write_text(
        "# Boats\n\nOn Sundays the first ferry leaves at 09:15 from the harbour of Skellmouth.\n",
        encoding="utf-8",
    )
    page = str(home / "boats.md")
    calls: dict[str, dict[str, object]] = {
        "research": {"question": QUESTION},
        "search_web": {"question": QUESTION},
        "fetch_and_prune_html": {"sources": [page], "question": QUESTION},
        "extract_relevant": {"sources": [page], "question": QUESTION},
        "raptor_query": {"sources": [page], "question": QUESTION},
    }
    settings = {
        "WINNOW_FOLDERS": str(home),
        "WINNOW_SEARCH": "folder",
        "WINNOW_CACHE": str(home / "cache"),
    }
    with subprocess.Popen(
        command,
        cwd=home,
        env=plain(settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        hello = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "release", "version": "1"},
        }
        say(process.stdin, {"id": 0, "method": "initialize", "params": hello})
        answer_to(process.stdout, 0)
        say(process.stdin, {"method": "notifications/initialized"})
        for number, (tool, arguments) in enumerate(calls.items(), start=1):
            say(
                process.stdin,
                {
                    "id": number,
                    "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments},
                },
            )
            result = answer_to(process.stdout, number).get("result", {})
            text = " ".join(part.get("text", "") for part in result.get("content", []))
            if result.get("isError") or "boats.md" not in text:
                sys.exit(f"{tool} answered {text[:300]!r}.")
        process.stdin.close()
        process.wait(SECONDS)
    return list(calls)


def say(stream: IO[str], message: Mapping[str, object]) -> None:
    """Send one message of JSON-RPC."""
    stream.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    stream.flush()


def answer_to(stream: IO[str], number: int) -> dict[str, Any]:
    """Return the answer to a request; exit where the server ends before."""
    for line in stream:
        message: dict[str, Any] = json.loads(line)
        if message.get("id") == number and "method" not in message:
            return message
    sys.exit(f"The server ended before it answered request {number}.")


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a command without settings of ours and return what it prints; exit with its errors."""
    done = subprocess.run(
        command,
        env=plain(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def plain(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without settings of Winnow and paths of Python, and with `more`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WINNOW_", "PYTHONPATH"))
    }
    return {**kept, **more}


def step(name: str, what: str) -> None:
    """Print a line of the log."""
    print(f"{name}: {what}", flush=True)


if __name__ == "__main__":
    main()
