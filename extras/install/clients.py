"""MCP clients that Winnow can be added to: their configuration files and the form of a
server's entry in them.

Read at every start, for the help of the command. Not for: changing a file
(`install.py`).
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from platformdirs import user_config_path

from errors import UsageError
from server.settings import did_you_mean

ENTRY_NAME: Final = "winnow"
"""Name of our entry."""
_USUAL_ENTRY: Final = {
    "type": "stdio",
    "command": "$command",
    "args": "$arguments",
    "env": "$environment",
}
_OPENCODE: Final = {
    "type": "local",
    "command": "$line",
    "environment": "$environment",
    "enabled": True,
}
_ZED: Final = {
    "source": "custom",
    "command": "$command",
    "args": "$arguments",
    "env": "$environment",
}
_CODEX: Final = {"command": "$command", "args": "$arguments", "env": "$environment"}
_GOOSE: Final = {
    "enabled": True,
    "type": "stdio",
    "name": ENTRY_NAME,
    "description": "The web and your own documents as small, cited evidence.",
    "cmd": "$command",
    "args": "$arguments",
    "envs": "$environment",
    "timeout": 300,
}


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    user: str
    """Path of the user's configuration file: from `~`, or below the desktop programs'
    settings folder (`~/.config`, `~/Library/Application Support` or `%APPDATA%`)."""
    project: str = ""
    """Path of the project's configuration file, below its folder; "" if unsupported."""
    key: str = "mcpServers"
    after: str = "Restart it to load Winnow."
    entry: Mapping[str, object] = field(default_factory=lambda: _USUAL_ENTRY)
    """Template of a server's entry; `_entry` replaces texts that begin with $."""


CLIENTS: Final = {
    "claude-desktop": Client(
        "Claude/claude_desktop_config.json",
        after="Quit Claude Desktop completely and start it again.",
    ),
    "claude-code": Client(
        "~/.claude.json",
        ".mcp.json",
        after="It is available in the next session; /mcp shows it.",
    ),
    "cursor": Client("~/.cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": Client("Code/User/mcp.json", ".vscode/mcp.json", key="servers"),
    "copilot": Client(
        "~/.copilot/mcp-config.json",
        ".mcp.json",
        entry={**_USUAL_ENTRY, "tools": ["*"]},
    ),
    "windsurf": Client("~/.codeium/windsurf/mcp_config.json"),
    "gemini": Client("~/.gemini/settings.json", ".gemini/settings.json"),
    "lmstudio": Client("~/.lmstudio/mcp.json"),
    "codex": Client(
        "~/.codex/config.toml", ".codex/config.toml", key="mcp_servers", entry=_CODEX
    ),
    "opencode": Client(
        "~/.config/opencode/opencode.json", "opencode.json", key="mcp", entry=_OPENCODE
    ),
    "zed": Client(
        "~/.config/zed/settings.json",
        ".zed/settings.json",
        key="context_servers",
        entry=_ZED,
    ),
    "cline": Client(
        "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    ),
    "goose": Client(
        "Block/goose/config/config.yaml"
        if sys.platform == "win32"
        else "~/.config/goose/config.yaml",
        key="extensions",
        entry=_GOOSE,
    ),
    "continue": Client(
        "~/.continue/mcpServers/winnow.json", ".continue/mcpServers/winnow.json"
    ),
}


def client_name(text: str) -> str:
    """Return a valid client name; raises `ArgumentTypeError` with the closest one."""
    if text not in CLIENTS:
        hint = did_you_mean(text, CLIENTS) or f" Use one of {', '.join(CLIENTS)}."
        raise argparse.ArgumentTypeError(f"unknown client {text!r}.{hint}")
    return text


def file_of(name: str, scope: str) -> Path:
    """Return the configuration file of a client, for the person (`user`) or the folder
    (`project`) of this process.

    Raises `UsageError` for a client without project configuration. The file need not
    exist.
    """
    client = CLIENTS[name]
    if scope == "project":
        if not client.project:
            raise UsageError(
                f"{name} has no per-project configuration.",
                hint="Leave out --scope project.",
            )
        return Path.cwd() / client.project
    return user_config_path(appname=None, roaming=True) / Path(client.user).expanduser()
