"""The five tools, with what stands around every call of one: errors that a model can act on, and a time limit.

Importing it imports the whole pipeline; what a client lists is in `server/tools_list.json`, made from here. Not for:
the tools themselves (`tools/`).
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

import anyio
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, ToolAnnotations
from mcp_types import Tool as ListedTool

from errors import WinnowError
from server.schemas import input_schema, output_schema
from tools.extract_relevant import extract_relevant
from tools.fetch_and_prune_html import fetch_and_prune_html
from tools.raptor_query import raptor_query
from tools.research import research
from tools.search_web import search_web

P = ParamSpec("P")
R = TypeVar("R")

GRACE: Final = 3.0
"""Seconds beyond `seconds` before a tool that did not keep its own time is stopped; 28 s in all stays under 30 s."""
ToolFunction = Callable[..., Awaitable[CallToolResult]]
_TITLES: Final[dict[ToolFunction, str]] = {
    search_web: "Search the web or your folders",
    fetch_and_prune_html: "Fetch pages and keep what answers",
    extract_relevant: "Extract the sentences that answer",
    raptor_query: "Ask long documents",
    research: "Research a question",
}


def _tool(function: ToolFunction, title: str) -> Tool:
    tool = Tool.from_function(
        _within_time(_errors_for_models(function)),
        title=title,
        annotations=ToolAnnotations(read_only_hint=True),  # the world is open by default, and each word is paid for
    )
    tool.description = " ".join(tool.description.split())
    tool.parameters = input_schema(tool.parameters)
    if tool.fn_metadata.output_schema is not None:
        tool.fn_metadata.output_schema = output_schema(tool.fn_metadata.output_schema)
    return tool


def _errors_for_models(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Let the sentences of a WinnowError reach the model; anything else stays a crash in the log."""

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await function(*args, **kwargs)
        except WinnowError as error:
            raise ToolError(str(error)) from error

    return call


def _within_time(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        seconds: float = kwargs["ctx"].request_context.lifespan_context.seconds  # type: ignore[attr-defined]  # every tool has ctx
        try:
            with anyio.fail_after(seconds + GRACE):
                return await function(*args, **kwargs)
        except TimeoutError as error:
            raise ToolError(
                f"Not ready after {seconds + GRACE:.0f} s. Repeat the call: what was fetched and embedded is cached "
                "and it goes on from there; or name fewer sources."
            ) from error

    return call


TOOLBOX: Final = {function.__name__: _tool(function, title) for function, title in _TITLES.items()}


def listing() -> list[dict[str, object]]:
    """Return the tools as `tools/list` should carry them, which `server/tools_list.json` keeps."""
    return [
        ListedTool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.parameters,
            output_schema=tool.output_schema,
            annotations=tool.annotations,
        ).model_dump(by_alias=True, exclude_none=True, mode="json")
        for tool in TOOLBOX.values()
    ]
