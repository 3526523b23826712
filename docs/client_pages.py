"""The section of each client in docs/clients.md, made from what `winnow install` knows."""

import json
from typing import Final

from docs.buttons import ENTRY, links
from extras.install.clients import CLIENTS

TITLES: Final = {
    "claude-desktop": "Claude Desktop",
    "claude-code": "Claude Code",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "windsurf": "Windsurf",
    "gemini": "Gemini CLI",
    "lmstudio": "LM Studio",
}
SYSTEMS: Final = {
    "Linux": "~/.config",
    "macOS": "~/Library/Application Support",
    "Windows": "%APPDATA%",
}
"""Where desktop programs keep their settings."""


def client_sections() -> str:
    """Return a section for each client: command, files, entry, button."""
    return "\n\n".join(_section(name) for name in CLIENTS)


def _section(name: str) -> str:
    client = CLIENTS[name]
    entry = json.dumps({client.key: {"winnow": ENTRY}})
    lines = [
        f"## {TITLES[name]}",
        "",
        f"`winnow install {name} --folder DIR`; `--undo` takes the entry away.",
        "",
    ]
    if client.user.startswith("~"):
        lines.append(f"- File: `{client.user}`")
    else:
        lines += [
            f"- {system}: `{place}/{client.user}`" for system, place in SYSTEMS.items()
        ]
    if client.project:
        lines.append(f"- Of a project (`--scope project`): `{client.project}`")
    lines.append(f"- By hand, from the first release on: `{entry}`")
    if TITLES[name] in links():
        lines.append(f"- [Add it with one click]({links()[TITLES[name]]})")
    return "\n".join(lines)
