"""A call before and behind its answer: its arguments as they are meant, which request it belongs to, how it ended.

The SDK answers an unknown tool with a tool error and drops unknown arguments silently; small models send null for
"default" and one string for a list of one. The bounds of each argument are in its type; here they are put into words.
No word that was asked, read or answered is in what the log tells. Not for: figures over many calls
(`server/metrics.py`), or spans within one (`pipeline/work.py`).
"""

import json
import logging
import re
import reprlib
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final, Literal

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, Tool
from pydantic import ValidationError

Outcome = Literal["answered", "refused", "failed", "cancelled", "crashed"]
"""An answer, whole or in part; Busy; an error that the caller can act on; the caller has left; a fault of ours."""
HEADER: Final = "x-request-id"
"""By which a balancer in front of us names a request, and we in the answer."""
_ID: Final = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({})))

_request: ContextVar[str] = ContextVar("winnow_request", default="")
_log: Final = logging.getLogger("winnow.calls")


@dataclass(slots=True)
class Ended:
    """One call of a tool that has ended."""

    tool: str
    outcome: Outcome = "cancelled"
    seconds: float = 0.0
    tokens: int = 0
    """Of the text part."""
    providers: list[tuple[str, str]] = field(default_factory=list)
    """Each provider of search that was asked, with its status."""
    unread: int = 0
    """Sources that could not be read."""

    def read(self, data: dict[str, Any] | None) -> None:
        """Take from a structured answer what it tells of itself."""
        told = data or {}
        self.outcome = "refused" if told.get("error") == "busy" else "answered"
        self.tokens = int(told.get("tokens", 0))
        self.unread = len(told.get("failures", []))
        for line in told.get("providers", []):
            provider, _, status = str(line).partition(": ")
            self.providers.append((provider, status.partition(" ")[0]))


Observer = Callable[[Ended], None]


def log_call(call: Ended) -> None:
    """Write a line of the log at level INFO."""
    facts = {"tool": call.tool, "outcome": call.outcome, "seconds": round(call.seconds, 3), "tokens": call.tokens}
    _log.info("%s %s after %.3f s", call.tool, call.outcome, call.seconds, extra=facts)


@contextmanager
def observed(tool: str, request: str, observers: Sequence[Observer]) -> Iterator[Ended]:
    """Have what is logged within name the `request`, and tell `observers` when the call has ended."""
    before = _request.set(request)
    call, began = Ended(tool), time.monotonic()
    try:
        yield call
    finally:
        call.seconds = time.monotonic() - began
        for observe in observers:
            observe(call)
        _request.reset(before)


def request_id(asked: str = "") -> str:
    """Return the name of a request: the one that it came with where that is short and plain, else a fresh one."""
    return asked if _ID.fullmatch(asked) else uuid.uuid4().hex


def name_request(record: logging.LogRecord) -> bool:
    """Write into a record which request it belongs to (a filter that lets everything pass)."""
    record.request = _request.get()
    return True


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request, and what else a record was given."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        line: dict[str, object] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {
            name: value for name, value in vars(record).items() if name not in _STANDARD and value not in ("", None)
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


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
