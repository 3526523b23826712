"""The version, from the installed distribution or, in a checkout, from pyproject.toml."""

import tomllib
from importlib import metadata
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "winnow-mcp"


def _version() -> str:
    project = Path(__file__).parent.parent / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    return metadata.version(DISTRIBUTION)


VERSION: Final = _version()
