"""MCP clients that Winnow can be added to: their configuration files.

Read at every start, for the help of the command. Not for: changing a file
(`install.py`).
"""

from pathlib import Path
from typing import Final, NamedTuple

from platformdirs import user_config_path

from errors import UsageError


class Client(NamedTuple):
    """One MCP client whose configuration is a JSON file."""

    user: str
    """Path of the user's configuration file: from `~`, or below the desktop programs'
    settings folder (`~/.config`, `~/Library/Application Support` or `%APPDATA%`)."""
    project: str = ""
    """Path of the project's configuration file, below its folder; "" if unsupported."""
    key: str = "mcpServers"


CLIENTS: Final = {
    "claude-desktop": Client("Claude/claude_desktop_config.json"),
    "claude-code": Client("~/.claude.json", ".mcp.json"),
    "cursor": Client("~/.cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": Client("Code/User/mcp.json", ".vscode/mcp.json", "servers"),
    "windsurf": Client("~/.codeium/windsurf/mcp_config.json"),
    "gemini": Client("~/.gemini/settings.json", ".gemini/settings.json"),
    "lmstudio": Client("~/.lmstudio/mcp.json"),
}
OTHER: Final = "other"
"""Any other client: its entry is printed."""


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
