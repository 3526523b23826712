"""Calling one tool from the command line, through an MCP client connected in this process.

Not for: parsing the line (`cli/command.py`).
"""

import sys
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from cli.output import FAILED, NO_ANSWER, OK, drawn_progress, print_json
from server.app import build_server
from server.settings import Settings


async def call_tool(settings: Settings, tool: str, arguments: dict[str, Any], as_json: bool, quiet: bool) -> int:
    """Call `tool`, print its answer on stdout, and return the exit code."""
    async with Client(build_server(settings)) as client:
        with drawn_progress(quiet=quiet) as draw:
            result = await client.call_tool(tool, arguments, progress_callback=draw)
    text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
    if result.is_error:
        print(f"winnow: {text.removeprefix(f'Error executing tool {tool}: ')}", file=sys.stderr)
        return FAILED
    if as_json:
        print_json({"text": text, **(result.structured_content or {})})
    else:
        print(text)
    return OK if _has_answer(result) else NO_ANSWER


def _has_answer(result: CallToolResult) -> bool:
    data = result.structured_content or {}
    found = (data.get(key) for key in ("passages", "hits", "pages") if key in data)
    return bool(next(found, True))
