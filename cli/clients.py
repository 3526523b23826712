"""Where each MCP client keeps its configuration, and how an entry for Winnow is put in and taken out (notes/mcp §5.1).

Only the entry of Winnow is touched; everything else in a file stays as it is. Not for: asking the person
(`cli/install.py`).
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platformdirs import user_config_path

from errors import UsageError

Json = dict[str, object]
NAME: Final = "winnow"
BEFORE: Final = ".before-winnow"
"""Ending of the copy that is kept of a file before its first change."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that configuration lies in."""

    home: Path
    applications: Path
    """Where desktop programs keep their settings: `~/.config`, `~/Library/Application Support` or `%APPDATA%`."""
    project: Path


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    user: str
    """Path of the file for all of a person's projects, below `home:` or `applications:`; empty where there is none."""
    project: str = ""
    """Path of the file of one project, below its folder; empty where there is none."""
    key: str = "mcpServers"
    after: str = "Restart it to load Winnow."


CLIENTS: Final = {
    "claude-desktop": Client(
        "applications:Claude/claude_desktop_config.json", after="Quit it wholly and start it again."
    ),
    "claude-code": Client("home:.claude.json", ".mcp.json", after="It is there in the next session; /mcp shows it."),
    "cursor": Client("home:.cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": Client("applications:Code/User/mcp.json", ".vscode/mcp.json", key="servers"),
    "copilot": Client("home:.copilot/mcp-config.json", ".mcp.json"),
    "windsurf": Client("home:.codeium/windsurf/mcp_config.json"),
    "gemini": Client("home:.gemini/settings.json", ".gemini/settings.json"),
    "lmstudio": Client("home:.lmstudio/mcp.json"),
}


def file_of(name: str, scope: str, places: Places) -> Path:
    """Return the configuration file of a client.

    Raises:
        UsageError: The client has no file of that scope.
    """
    client = CLIENTS[name]
    if scope == "project":
        if not client.project:
            raise UsageError(f"{name} has no configuration for one project.", hint="Leave out --scope project.")
        return places.project / client.project
    place, _, path = client.user.partition(":")
    return (places.home if place == "home" else places.applications) / path


def read_config(path: Path) -> Json:
    """Return the configuration, empty where there is no file.

    Raises:
        UsageError: The file is no JSON object, such as one with comments: rewriting it would lose them.
    """
    if not path.exists():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig") or "{}")
    except (ValueError, OSError) as error:
        raise UsageError(
            f"{path} cannot be read as JSON ({error}), so it was left alone.",
            hint="Mend it, or run the command with --dry-run and put the entry in by hand.",
        ) from error
    if not isinstance(config, dict):
        raise UsageError(f"{path} holds no JSON object.", hint="Mend it, or put the entry in by hand.")
    return config


def with_entry(config: Json, key: str, entry: Json) -> Json:
    """Return the configuration with Winnow's entry in it, in place of an earlier one."""
    return {**config, key: {**_servers(config, key), NAME: entry}}


def without_entry(config: Json, key: str, earlier: Json) -> Json:
    """Return the configuration as if Winnow had never been put in; `earlier` is the file before its first change."""
    servers = dict(_servers(config, key))
    servers.pop(NAME, None)
    former = _servers(earlier, key).get(NAME)
    if former is not None:
        servers[NAME] = former
    if not servers and key not in earlier:
        return {name: value for name, value in config.items() if name != key}
    return {**config, key: servers}


def entry_in(config: Json, key: str) -> Mapping[str, object] | None:
    """Return Winnow's entry in a configuration, None where there is none."""
    entry = _servers(config, key).get(NAME)
    return entry if isinstance(entry, Mapping) else None


def places_here() -> Places:
    """Return the places of the person who runs this process."""
    return Places(Path.home(), user_config_path(appname=None, roaming=True), Path.cwd())


def _servers(config: Json, key: str) -> Mapping[str, object]:
    servers = config.get(key, {})
    if not isinstance(servers, Mapping):
        raise UsageError(f"The key {key!r} of the configuration holds no servers.", hint="Mend the file by hand.")
    return servers


def shown(config: Json) -> str:
    """Return the text of a configuration file; empty for an empty one."""
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n" if config else ""


def write_config(path: Path, config: Json) -> None:
    """Write the configuration whole or not at all; the file as it was before the first change is kept beside it.

    Raises:
        UsageError: The place cannot be written.
    """
    kept = path.with_name(path.name + BEFORE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            kept.write_bytes(path.read_bytes() if path.exists() else b"")
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(shown(config), encoding="utf-8")
        if path.exists():
            fresh.chmod(path.stat().st_mode)
        os.replace(fresh, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", hint="Check who owns it.") from error


def restore_config(path: Path, config: Json) -> None:
    """Write a configuration without Winnow; a file that Winnow made and that is empty again goes.

    Raises:
        UsageError: The place cannot be written.
    """
    kept = path.with_name(path.name + BEFORE)
    made_by_us = kept.exists() and not kept.read_bytes()
    write_config(path, config)
    if made_by_us and not config:
        path.unlink()
    kept.unlink(missing_ok=True)


def earlier_config(path: Path) -> Json:
    """Return the configuration as it was before Winnow's first change, empty where nothing is known of it."""
    return read_config(path.with_name(path.name + BEFORE))
