"""The buttons that add Winnow to a client with one click; `python -m docs.build` writes them into
README.md.

Each is an address with the entry of the client's configuration in it. They run
`uvx winnow-mcp`, so they work from the first release on.
"""

import base64
import json
from typing import Final
from urllib.parse import quote, urlencode

NAME: Final = "winnow"
ENTRY: Final = {"command": "uvx", "args": ["winnow-mcp"]}
"""The entry of a client's configuration: the newest release, over stdio."""
BADGE: Final = "https://img.shields.io/badge"


def buttons() -> str:
    """Return the row of buttons as Markdown."""
    return " ".join(
        f"[![Add to {client}]({BADGE}/{quote(client)}-add-1f4d3a)]({address})"
        for client, address in links().items()
    )


def links() -> dict[str, str]:
    """Return the address that adds Winnow to each client that has one."""
    text = json.dumps(ENTRY, separators=(",", ":"))
    encoded = base64.b64encode(text.encode()).decode()
    return {
        "Cursor": f"https://cursor.com/install-mcp?{urlencode({'name': NAME, 'config': encoded})}",
        "VS Code": "https://vscode.dev/redirect/mcp/install?"
        + urlencode({"name": NAME, "config": text}, quote_via=quote),
        "LM Studio": f"https://lmstudio.ai/install-mcp?{urlencode({'name': NAME, 'config': encoded})}",
    }
