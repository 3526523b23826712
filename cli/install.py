"""`winnow install CLIENT`: put Winnow into a client's configuration, after showing what would change; and undo it.

Only the entry of Winnow is touched; everything else in a file stays as it is.
"""

import argparse
import difflib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import reduce
from pathlib import Path
from typing import Final

from platformdirs import user_config_path

from cli.output import OK, USAGE
from errors import UsageError
from server.settings import Settings

Json = dict[str, object]
HERE: Final = Path(__file__).resolve().parents[1]
INSTALLED: Final = HERE.name == "_app"
"""Whether this is a wheel; else a checkout."""
NAME: Final = "winnow"
BEFORE: Final = ".before-winnow"
"""Ending of the copy that is kept of a file before its first change."""


_USUAL: Final = {"type": "stdio", "command": "$command", "args": "$arguments", "env": "$environment"}
_OPENCODE: Final = {"type": "local", "command": "$line", "environment": "$environment", "enabled": True}
_ZED: Final = {"source": "custom", "command": "$command", "args": "$arguments", "env": "$environment"}
_CODEX: Final = {"command": "$command", "args": "$arguments", "env": "$environment"}


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    user: str
    """Path of the file for all of a person's projects: from `~`, or below the folder where desktop programs keep their
    settings (`~/.config`, `~/Library/Application Support` or `%APPDATA%`)."""
    project: str = ""
    """Path of the file of one project, below its folder; empty where there is none."""
    key: str = "mcpServers"
    after: str = "Restart it to load Winnow."
    entry: Mapping[str, object] = field(default_factory=lambda: _USUAL)
    """What a server's entry holds; a text that begins with $ stands for what `_entry` fills in."""


CLIENTS: Final = {
    "claude-desktop": Client("Claude/claude_desktop_config.json", after="Quit it wholly and start it again."),
    "claude-code": Client("~/.claude.json", ".mcp.json", after="It is there in the next session; /mcp shows it."),
    "cursor": Client("~/.cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": Client("Code/User/mcp.json", ".vscode/mcp.json", key="servers"),
    "copilot": Client("~/.copilot/mcp-config.json", ".mcp.json", entry={**_USUAL, "tools": ["*"]}),
    "windsurf": Client("~/.codeium/windsurf/mcp_config.json"),
    "gemini": Client("~/.gemini/settings.json", ".gemini/settings.json"),
    "lmstudio": Client("~/.lmstudio/mcp.json"),
    "codex": Client("~/.codex/config.toml", ".codex/config.toml", key="mcp_servers", entry=_CODEX),
    "opencode": Client("~/.config/opencode/opencode.json", "opencode.json", key="mcp", entry=_OPENCODE),
    "zed": Client("~/.config/zed/settings.json", ".zed/settings.json", key="context_servers", entry=_ZED),
    "cline": Client("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    "continue": Client("~/.continue/mcpServers/winnow.json", ".continue/mcpServers/winnow.json"),
}


def install(args: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Change one client's configuration; return the exit code.

    Raises:
        UsageError: The file cannot be read or written.
    """
    # 1. Which file, and what is in it.
    client = CLIENTS[args.client]
    path = file_of(args.client, args.scope)
    kept = path.with_name(path.name + BEFORE)
    before = read_config(path)
    # 2. What it would be.
    if args.undo:
        after = _without_entry(before, client.key, read_config(kept))
    else:
        after = {**before, client.key: {**_servers(before, client.key), NAME: _entry(given, client)}}
    if after == before:
        print(f"{path}: nothing to change.")
        return OK
    # 3. Show it, and ask.
    old, new = _text(path), _shown(path, after, client.key)
    shown = "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), f"{path} (new)", lineterm=""))
    print(reduce(lambda text, secret: text.replace(secret, "…"), _secrets(given), shown))
    if args.dry_run:
        return OK
    if not (args.yes or _agreed(path)):
        print("Nothing was changed.", file=sys.stderr)
        return USAGE
    # 4. Write it.
    _write(path, new, kept)
    if not args.undo:
        print(f"{path}: Winnow is in. {client.after} Undo: winnow install {args.client} --undo")
        return OK
    if not after and not kept.read_bytes():
        path.unlink()  # Winnow made it, and it is empty again
    kept.unlink()
    print(f"{path}: Winnow is out.")
    return OK


def file_of(name: str, scope: str) -> Path:
    """Return the configuration file of a client, for the person (`user`) or the folder (`project`) of this process."""
    client = CLIENTS[name]
    if scope == "project":
        if not client.project:
            raise UsageError(f"{name} has no configuration for one project.", hint="Leave out --scope project.")
        return Path.cwd() / client.project
    return user_config_path(appname=None, roaming=True) / Path(client.user).expanduser()


def read_config(path: Path) -> Json:
    """Return the configuration, empty where there is no file.

    Raises:
        UsageError: The file is no JSON object or TOML, such as JSON with comments: rewriting it would lose them.
    """
    form = "TOML" if ".toml" in path.suffixes else "JSON"
    try:
        text = _text(path)
        config = tomllib.loads(text) if form == "TOML" else json.loads(text or "{}")
    except (ValueError, OSError) as error:
        raise UsageError(
            f"{path} cannot be read as {form} ({error}), so it was left alone.",
            hint="Mend it, or run the command with --dry-run and put the entry in by hand.",
        ) from error
    if not isinstance(config, dict):
        raise UsageError(f"{path} holds no JSON object.", hint="Mend it, or put the entry in by hand.")
    return config


def entry_in(config: Json, key: str) -> Mapping[str, object] | None:
    """Return Winnow's entry in a configuration, None where there is none."""
    entry = _servers(config, key).get(NAME)
    return entry if isinstance(entry, Mapping) else None


def _entry(given: Mapping[str, str], client: Client) -> Json:
    """Return the configuration entry that starts this very installation.

    With absolute paths: desktop clients have a short PATH and start servers in a folder of their own.
    """
    environment: Json = {"PYTHONUNBUFFERED": "1"}
    environment |= {f"WINNOW_{name.upper()}": value for name, value in sorted(given.items()) if value}
    command, arguments = _launcher()
    if not INSTALLED:
        environment["PYTHONPATH"] = str(HERE)
    filled = {
        "$command": command,
        "$arguments": arguments,
        "$line": [command, *arguments],
        "$environment": environment,
    }
    return {name: filled.get(value, value) if isinstance(value, str) else value for name, value in client.entry.items()}


def _secrets(given: Mapping[str, str]) -> list[str]:
    """Return the values that are never shown: those of secret settings."""
    secret = {one.name for one in fields(Settings) if not one.repr}
    return [value for name, value in given.items() if name in secret and value]


def _launcher() -> tuple[str, list[str]]:
    if not INSTALLED:
        return sys.executable, ["-m", "server"]
    # What uvx runs lies in its cache, which may be emptied: the client has to call uvx as the person did.
    from server.version import VERSION  # noqa: PLC0415  serving starts through this module, and needs no version so early

    uvx = shutil.which("uvx")
    if uvx and "archive-v0" in Path(sys.prefix).parts:
        return uvx, [f"winnow-mcp@{VERSION}", "serve"]
    script = Path(sys.executable).with_name("winnow.exe" if sys.platform == "win32" else "winnow")
    if script.exists():
        return str(script), ["serve"]
    return sys.executable, ["-c", "import winnow; winnow.main()", "serve"]


def _agreed(path: Path) -> bool:
    """Ask the person; nobody to ask means no."""
    if not sys.stdin.isatty():
        print("Nobody to ask here: add --yes to write, or --dry-run to only look.", file=sys.stderr)
        return False
    return input(f"Write this to {path}? [y/N] ").strip().lower() in ("y", "yes")


def _without_entry(config: Json, key: str, earlier: Json) -> Json:
    """Return the configuration as if Winnow had never been put in; `earlier` is the file before its first change."""
    servers = {name: server for name, server in _servers(config, key).items() if name != NAME}
    if (former := entry_in(earlier, key)) is not None:
        servers[NAME] = former
    if not servers and key not in earlier:
        return {name: value for name, value in config.items() if name != key}
    return {**config, key: servers}


def _servers(config: Json, key: str) -> Mapping[str, object]:
    servers = config.get(key, {})
    if not isinstance(servers, Mapping):
        raise UsageError(f"The key {key!r} of the configuration holds no servers.", hint="Mend the file by hand.")
    return servers


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig") if path.exists() else ""


def _shown(path: Path, config: Json, key: str) -> str:
    """Return the file's text for a configuration; of TOML only our own tables change, comments and all else stay."""
    if path.suffix != ".toml":
        return json.dumps(config, indent=2, ensure_ascii=False) + "\n" if config else ""
    tables = re.split(r"^(?=[ \t]*\[)", _text(path), flags=re.MULTILINE)
    ours = re.compile(rf"[ \t]*\[\s*{key}\s*\.\s*\"?{NAME}\"?\s*[.\]]")
    rest = "".join(table for table in tables if not ours.match(table)).rstrip("\n")
    entry = entry_in(config, key)
    parts = [part for part in (rest, _table(f"{key}.{NAME}", entry) if entry else "") if part]
    return "\n\n".join(parts) + "\n" if parts else ""


def _table(name: str, values: Mapping[str, object]) -> str:
    """Return a TOML table of texts, lists of texts and further tables; its strings are written as JSON's are."""
    inner = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    own = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if key not in inner]
    tables = [_table(f"{name}.{key}", value) for key, value in inner.items()]
    return "\n\n".join(["\n".join([f"[{name}]", *own]), *tables])


def _write(path: Path, text: str, kept: Path) -> None:
    """Write the configuration whole or not at all; the file as it was before the first change goes to `kept`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            kept.write_bytes(path.read_bytes() if path.exists() else b"")
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(text, encoding="utf-8")
        if path.exists():
            fresh.chmod(path.stat().st_mode)
        os.replace(fresh, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", hint="Check who owns it.") from error
