"""MCP tools: the plug-in point for another tool.

Each module of `tools/` binds one `Tool` to `TOOL`, and other wheels add theirs by entry
points of the group `winnow.tools`. What runs it (`server/toolbox.py`), its command
(`cli/command.py`), the instructions of the server and the list of tools
(`server/offered.py`) follow from here. Not for: what a call takes from its context, and
how an answer ends (`context.py`)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import CallToolResult

from seams import Seam


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its function, and its descriptions for clients, models and people."""

    function: Callable[..., Awaitable[CallToolResult]]
    """Its arguments are the tool's schema, its docstring the description, its name the
    tool's; it takes `ctx`, a `tools.common.context.ToolContext`, as well."""
    title: str
    command: str
    """Name of its command."""
    help: str
    """Help text of its command."""
    by_place: tuple[str, ...] = ()
    """Positional arguments of its command; empty: the required ones."""
    advice: str = ""
    """Sentences about it in the server instructions, for models."""
    place: int = 100
    """Its position in the instructions and commands, lowest first."""
    heavy: bool = False
    """Whether its calls use the heavy lane from the start."""

    @property
    def name(self) -> str:
        """Its name for clients."""
        return self.function.__name__

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that are stored in the list of tools."""
        return {
            "command": self.command,
            "help": self.help,
            "by_place": list(self.by_place),
            "advice": self.advice,
            "place": self.place,
        }


OURS: Final = "winnow"
"""Key of a listed tool's `facts`, which clients do not get."""
SEAM: Final = Seam(("tools",), "TOOL", "winnow.tools", Tool)
