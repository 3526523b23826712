"""The MCP application: settings, wiring, transports, tools with what stands around a call, resources, prompts."""

import tomllib
from importlib import metadata
from pathlib import Path
from typing import Final


def _version() -> str:
    """Return the version of a checkout from its pyproject.toml, else of the installed distribution."""
    project = Path(__file__).parent.parent / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    return metadata.version("winnow-mcp")


VERSION: Final = _version()
