"""The arguments of a call, before a tool sees them: what is unknown is refused, what is meant is understood.

The SDK answers an unknown tool with a tool error and drops unknown arguments silently; small models send null for
"default" and one string for a list of one. The bounds of each argument are in its type; here they are put into words.
"""

import re
import reprlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, Tool
from pydantic import ValidationError

Json = dict[str, object]
_MEANT: Final = {
    "query": "question",
    "request": "question",
    "q": "question",
    "prompt": "question",
    "urls": "sources",
    "url": "sources",
    "source": "sources",
    "page": "sources",
    "pages": "sources",
    "limit": "max_results",
    "top_k": "max_results",
}
"""Names that models guess or that tools had before 0.1, and the argument that they mean."""

_WANTED: Final = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "string_type": "a text",
    "list_type": "a list of texts",
    "string_too_short": "a text of {min_length} letter or more",
    "string_too_long": "a text of {max_length} letters at most",
    "too_short": "a list of {min_length} or more",
    "too_long": "a list of {max_length} at most",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} at most",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "of the form {pattern}",
}
"""What an argument has to be, by pydantic's name for what is wrong with it."""


class CheckArguments:
    """Middleware over `tools/call`; `list_tools` tells which tools there are, with their schemas."""

    def __init__(self, list_tools: Callable[[], Awaitable[Sequence[Tool]]]) -> None:
        self._list_tools = list_tools

    async def __call__(self, ctx: ServerRequestContext[object], call_next: CallNext) -> HandlerResult:
        """Refuse or mend the arguments of a call; raise `MCPError` (-32602) for a tool that does not exist."""
        if ctx.method != "tools/call" or ctx.params is None:
            return await call_next(ctx)
        name = ctx.params.get("name")
        schemas = {tool.name: tool.input_schema for tool in await self._list_tools()}
        schema = schemas.get(name) if isinstance(name, str) else None
        if schema is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool {name!r}; the tools are {', '.join(schemas)}.")
        given = ctx.params.get("arguments") or {}
        known = schema.get("properties")
        if not isinstance(given, Mapping) or not isinstance(known, Mapping):
            return await call_next(ctx)
        given = {_argument(name, known, given): value for name, value in given.items()}
        for argument in given:
            if argument not in known:
                text = f"{name} has no argument {argument!r}{_nearest(argument, known)}."
                return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
        mended = _mended(given, known, schema.get("required"))
        return await call_next(replace(ctx, params={**ctx.params, "arguments": mended}))


def explained(error: ValidationError, tool: str, schema: Mapping[str, object]) -> str:
    """Return a sentence for each argument that is wrong, with its value and what it has to be; then the right call."""
    sentences = []
    for wrong in error.errors(include_url=False):
        name = ".".join(map(str, wrong["loc"]))
        if wrong["type"] == "missing":
            sentences.append(f"{name} is missing.")
            continue
        said = _WANTED.get(wrong["type"], "")
        wanted = said.format(**wrong.get("ctx", {})) if said else re.sub("^[A-Z][a-z]+ should be ", "", wrong["msg"])
        sentences.append(f"{name} is {reprlib.repr(wrong['input'])}; it has to be {wanted}.")
    return f"{' '.join(sentences)} Call {_call(tool, schema)}."


def _call(tool: str, schema: Mapping[str, object]) -> str:
    """Return the shortest call of a tool that is right, as models write it."""
    known, needed = schema.get("properties"), schema.get("required")
    if not isinstance(known, Mapping) or not isinstance(needed, list):
        return f"{tool}()"
    lists = {name for name, kind in known.items() if isinstance(kind, Mapping) and kind.get("type") == "array"}
    given = (f'{name}=["https://…"]' if name in lists else f'{name}="…"' for name in needed)
    return f"{tool}({', '.join(given)})"


def _argument(name: str, known: Mapping[str, object], given: Mapping[str, object]) -> str:
    """Return the argument that a name means: its own, or a usual other name of one that is not given."""
    meant = _MEANT.get(name.lower(), name)
    return name if name in known or meant not in known or meant in given else meant


def _mended(given: Mapping[str, object], known: Mapping[str, object], required: object) -> Json:
    """Leave out nulls where there is a default, and make a list of a single value where a list is wanted."""
    needed = required if isinstance(required, list) else []
    mended: Json = {}
    for name, value in given.items():
        wanted = known[name]
        if value is None and name not in needed:
            continue
        lists = isinstance(wanted, Mapping) and wanted.get("type") == "array"
        mended[name] = [value] if lists and isinstance(value, str) and not value.lstrip().startswith("[") else value
    return mended


def _nearest(argument: str, known: Mapping[str, object]) -> str:
    """Say which argument was probably meant, and which there are."""
    meant = get_close_matches(argument.lower(), list(known), n=1)
    did = f"; did you mean {meant[0]!r}? Its" if meant else "; its"
    return f"{did} arguments are {', '.join(sorted(known))}"
