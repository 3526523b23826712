"""The version, of a checkout from its pyproject.toml, else of the installed
distribution; 15 ms to import."""

import tomllib
from importlib import metadata
from pathlib import Path
from typing import Final


def _version() -> str:
    project = Path(__file__).parent.parent / "pyproject.toml"
    if project.is_file():
        return str(
            tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
        )
    return metadata.version("winnow-mcp")


VERSION: Final = _version()
