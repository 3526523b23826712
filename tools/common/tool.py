"""What an MCP tool is: the seam by which Winnow offers one more.

Each module of `tools/` binds one `Tool` to `TOOL`, and other wheels add theirs by entry points of
the group `winnow.tools`. What runs it (`server/toolbox.py`), its command (`cli/command.py`), the
instructions of the server and the list of tools (`server/offered.py`) follow from here. Not for:
what a call takes from its context, and how an answer ends (`context.py`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import CallToolResult

from seams import Seam


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its function, and what clients, models and people are told of it."""

    function: Callable[..., Awaitable[CallToolResult]]
    """Its arguments are the tool's schema, its docstring the description, its name the tool's; it
    takes `ctx`, a `tools.common.context.ToolContext`, as well."""
    title: str
    command: str
    """Name of its command."""
    help: str
    """What its command does, for a person."""
    by_place: tuple[str, ...] = ()
    """Arguments that a person gives by their place; those that are required where this is empty."""
    advice: str = ""
    """What the server's instructions say of it to a model, in whole sentences."""
    place: int = 100
    """Its place in the instructions and among the commands, the lowest first."""
    heavy: bool = False
    """Whether every call uses much; what the others use shows when they run."""

    @property
    def name(self) -> str:
        """What clients call it."""
        return self.function.__name__

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of it without importing it."""
        return {
            "command": self.command,
            "help": self.help,
            "by_place": list(self.by_place),
            "advice": self.advice,
            "place": self.place,
        }


OURS: Final = "winnow"
"""Member of a listed tool that has what clients are not told: its `facts`."""
SEAM: Final = Seam(("tools",), "TOOL", "winnow.tools", Tool)
