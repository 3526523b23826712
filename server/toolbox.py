"""The tools, and the wrapper around every call: admission, errors for models, time
limit.

Importing it imports the whole pipeline; what a client lists is in
`server/tools_list.json`, made from here. Schemas are minimal, because every client pays
for their tokens in every conversation: pydantic's titles, text bounds (still checked in
calls) and empty, false or 0 defaults are removed. There are no output schemas, since
there is no structured content (`tools/common/ending.py`). Not for: the tools themselves
(`tools/`).
"""

import functools
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from mcp_types import Tool as ListedTool
from pydantic import ValidationError

from errors import Busy, WinnowError
from server.calls import (
    REQUEST_ID_HEADER,
    Admission,
    Observer,
    explained,
    local_caller,
    observed,
    request_id,
)
from tools.common.context import owner_of, reporter
from tools.common.ending import RESULT, TOOL_KEY
from tools.common.tool import OURS, SEAM
from tools.common.tool import Tool as Offered

Schema = dict[str, object]

_log: Final = logging.getLogger("winnow.tools")
GRACE: Final = 1.5
"""Seconds after the time limit at which an overdue tool is stopped."""
ToolFunction = Callable[..., Awaitable[CallToolResult]]
_UNSAID_KEYS: Final = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "pattern"}
)


async def run_tool(
    name: str,
    arguments: dict[str, Any],
    context: Context[Any, Any],
    observers: Sequence[Observer],
) -> CallToolResult:
    """Call a tool, and call `observers` at its end.

    A refusal as busy is returned as an error result. Raises `ToolError` for errors that
    the caller can act on, `UnexpectedToolError` for others.
    """
    request = context.request_context.request
    proposed = request.headers.get(REQUEST_ID_HEADER, "") if request else ""
    with observed(name, request_id(proposed), observers) as call:
        try:
            result = await _run(name, arguments, context)
        except UnexpectedToolError as error:
            call.outcome = "crashed"
            _log.exception("%s crashed", name)
            raise ToolError(
                f"{name} ended by a fault of Winnow ({type(error.__cause__).__name__}; "
                "its log says where). Ask in other words, of fewer sources, or by "
                "another tool."
            ) from error
        except ToolError:
            call.outcome = "failed"
            raise
        meta = result.meta or {}
        call.read(meta.get(RESULT) or {})
        result.meta = {**meta, TOOL_KEY: name}
        return result


async def _run(
    name: str, arguments: dict[str, Any], context: Context[Any, Any]
) -> CallToolResult:
    tool = TOOLBOX[name]
    try:
        result: CallToolResult = await tool.run(arguments, context, convert_result=True)
    except UnexpectedToolError:
        raise
    except ToolError as error:
        cause = error.__cause__
        if isinstance(cause, ValidationError):
            raise ToolError(explained(cause, name, tool.parameters)) from cause
        raise ToolError(str(cause or error)) from cause
    return result


def listing() -> list[Schema]:
    """Return the tools for `tools/list`; saved in `server/tools_list.json`."""
    return [
        ListedTool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.parameters,
            annotations=tool.annotations,
        ).model_dump(by_alias=True, exclude_none=True, mode="json")
        | {OURS: _OFFERED[tool.name].facts}
        for tool in TOOLBOX.values()
    ]


def _tool(offered: Offered) -> Tool:
    tool = Tool.from_function(
        _for_models(offered.function, heavy=offered.heavy),
        title=offered.title,
        annotations=ToolAnnotations(
            read_only_hint=True
        ),  # openWorldHint is true by default; each word costs tokens
        structured_output=False,
    )
    tool.description = " ".join(tool.description.split())
    tool.parameters = _input_schema(tool.parameters)
    return tool


def _for_models(function: ToolFunction, *, heavy: bool) -> ToolFunction:
    """Run a call with admission and time limit; pass on the text of a WinnowError only.

    `Busy` becomes an error result with the seconds to wait; another `WinnowError`, and
    the time limit, raise `ToolError`.
    """

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> CallToolResult:
        ctx: Context[Any, Any] = kwargs["ctx"]
        seconds: float = ctx.request_context.lifespan_context.seconds
        admission: Admission = ctx.mcp_server.admission  # type: ignore[attr-defined]  # every server of ours has one
        progress = reporter(ctx)

        async def report(waited: float, what: str) -> None:
            await progress(waited, None, what)

        try:
            with anyio.fail_after(seconds + GRACE):
                async with admission.call(
                    _caller(ctx), light=not heavy, seconds=seconds, report=report
                ):
                    return await function(*args, **kwargs)
        except Busy as error:
            # Programs read the seconds from the result, models from the text.
            facts = {"error": "busy", "retry_after": error.seconds}
            return CallToolResult(
                is_error=True,
                content=[TextContent(type="text", text=str(error))],
                _meta={RESULT: facts},
            )
        except WinnowError as error:
            raise ToolError(str(error)) from error
        except TimeoutError as error:
            raise ToolError(
                "Not ready in time. Repeat the call (fetched pages and embeddings are "
                "cached, so it continues from there), or name fewer sources."
            ) from error

    return call


def _caller(ctx: Context[Any, Any]) -> str:
    """Return the caller: the token's client, else the address, else the local client."""
    request = ctx.request_context.request
    host = request.client.host if request and request.client else ""
    return owner_of(ctx) or host or local_caller.get()


def _input_schema(schema: Schema) -> Schema:
    """Return a tool's input schema without titles, text bounds and empty defaults."""
    listed: Schema = {}
    for key, value in schema.items():
        if (
            key in _UNSAID_KEYS
            or (key == "title" and isinstance(value, str))
            or (key == "default" and not value)
        ):
            continue
        if key == "properties" and isinstance(value, dict):
            listed[key] = {name: _input_schema(field) for name, field in value.items()}
        else:
            listed[key] = _input_schema(value) if isinstance(value, dict) else value
    return listed


_OFFERED: Final = {
    tool.name: tool
    for tool in sorted(SEAM.found(), key=lambda tool: (tool.place, tool.name))
}
TOOLBOX: Final = {name: _tool(tool) for name, tool in _OFFERED.items()}
