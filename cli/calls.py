"""Calling one tool from the command line, through an MCP client connected in this process.

Not for: parsing the line (`cli/command.py`).
"""

import json
import shutil
import sys
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any, Final

from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, TextContent
from tqdm import tqdm

from server.app import build_server
from server.settings import Settings

NO_ANSWER: Final = 3


async def call_tool(settings: Settings, tool: str, arguments: dict[str, Any], as_json: bool, quiet: bool) -> int:
    """Call `tool`, print its answer on stdout, and return the exit code (0, 1 or 3)."""
    async with Client(build_server(settings)) as client:
        with progress_bar(shown=not quiet and sys.stderr.isatty()) as bar:
            result = await client.call_tool(tool, arguments, progress_callback=_progress(bar))
    text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
    if result.is_error:
        print(f"winnow: {text.removeprefix(f'Error executing tool {tool}: ')}", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps({"text": text, **(result.structured_content or {})}, ensure_ascii=False, indent=2))
    else:
        print(text)
    return 0 if _has_answer(result) else NO_ANSWER


def _has_answer(result: CallToolResult) -> bool:
    data = result.structured_content or {}
    found = (data.get(key) for key in ("passages", "hits", "pages") if key in data)
    return bool(next(found, True))


def progress_bar(*, shown: bool) -> "AbstractContextManager[tqdm[Any] | None]":
    """Return a bar on stderr that is cleared at its end; None within where it is not to be shown."""
    if not shown:
        return nullcontext()
    # A terminal that does not tell its size counts as one of 80 by 24; tqdm would draw nothing there.
    size = shutil.get_terminal_size()
    bar = tqdm(
        total=10, file=sys.stderr, leave=False, ncols=min(100, size.columns), nrows=size.lines,
        bar_format="{bar:20} {desc}",
    )  # fmt: skip
    return closing(bar)


def _progress(bar: "tqdm[Any] | None") -> ProgressFnT:
    async def show(progress: float, total: float | None, message: str | None) -> None:
        if bar is not None:
            bar.total = total or max(progress, 1)
            bar.n = progress
            bar.set_description_str((message or "")[:80])

    return show
