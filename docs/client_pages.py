"""What `winnow install` knows of each client, for docs/clients.md and the pages in docs/clients/."""

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


def client_rows() -> list[tuple[str, str]]:
    """Return a link to the page of each client, and its name for `winnow install`."""
    return [(f"[{TITLES[name]}](clients/{name}.md)", f"`{name}`") for name in CLIENTS]


def client_entry(name: str) -> str:
    """Return how a client gets its entry: command, files, entry by hand, button."""
    client = CLIENTS[name]
    entry = json.dumps({client.key: {"winnow": ENTRY}})
    lines = ["```sh", f"winnow install {name} --folder ~/Documents", "```", ""]
    if client.user.startswith("~"):
        lines.append(f"- File: `{client.user}`")
    else:
        lines += [
            f"- File on {system}: `{place}/{client.user}`"
            for system, place in SYSTEMS.items()
        ]
    if client.project:
        lines.append(f"- Of a project (`--scope project`): `{client.project}`")
    lines += [
        f"- By hand: the entry that `winnow install {name} --dry-run` shows; from the "
        f"first release on `{entry}`"
    ]
    if TITLES[name] in links():
        lines.append(f"- [Add it with one click]({links()[TITLES[name]]})")
    lines.append(
        "- [If it does not list Winnow](../clients.md#if-a-client-does-not-list-winnow)"
    )
    return "\n".join(lines)
