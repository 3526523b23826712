"""Tool calls: admission control, argument repair, request ids, call log.

If all calls ran at once, all could miss their deadlines. So a call needs a place: it
waits, fair by caller, with progress messages, or is refused as busy with the seconds to
wait.

The SDK answers an unknown tool with a tool error and drops unknown arguments silently;
small models send null for "default" and one string for a list of one. The bounds of
each argument are in its type; here they become messages. The log never contains
questions, sources or answers. Not for: the time limit around a call
(`server/toolbox.py`), requests a minute (`extras/http/gate.py`), figures over many calls
(`extras/http/metrics.py`), or spans within one (`pipeline/work.py`).
"""

import json
import logging
import math
import re
import reprlib
import time
import uuid
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, Tool
from pydantic import ValidationError

from errors import Busy
from models.shares import MOST_CORES, sharing, usable_cores
from pipeline.work import STEP_SHARE, Call
from server.settings import did_you_mean

Outcome = Literal["answered", "refused", "failed", "cancelled", "crashed"]
"""Outcomes: full or partial answer, busy, caller's error, canceled, internal error."""
REQUEST_ID_HEADER: Final = "x-request-id"
"""Header with the id of a request, from a load balancer or from us."""
_ID: Final = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_STANDARD: Final = frozenset((*vars(logging.makeLogRecord({})), "color_message"))
"""Fields that a log line has by other names, or not: uvicorn's message with colors."""

_request: ContextVar[str] = ContextVar("winnow_request", default="")
local_caller: ContextVar[str] = ContextVar("winnow_local_caller", default="")
"""The caller whose messages this task reads, where it is a local client of several."""
_log: Final = logging.getLogger("winnow.calls")


@dataclass(slots=True)
class Ended:
    """A finished tool call."""

    tool: str
    outcome: Outcome = "cancelled"
    seconds: float = 0.0
    tokens: int = 0
    """Tokens of the text content."""
    unread: int = 0
    """Sources that could not be read."""

    def read(self, data: Mapping[str, Any]) -> None:
        """Set the fields that the result of the call reports."""
        self.outcome = "refused" if data.get("error") == "busy" else "answered"
        self.tokens = int(data.get("tokens", 0))
        self.unread = len(data.get("failures", []))


Observer = Callable[[Ended], None]


def log_call(call: Ended) -> None:
    """Log a finished call at level INFO."""
    facts = {
        "tool": call.tool,
        "outcome": call.outcome,
        "seconds": round(call.seconds, 3),
        "tokens": call.tokens,
    }
    _log.info("%s %s after %.3f s", call.tool, call.outcome, call.seconds, extra=facts)


@contextmanager
def observed(tool: str, request: str, observers: Sequence[Observer]) -> Iterator[Ended]:
    """Tag log records within with the `request` id; call `observers` at the end."""
    before = _request.set(request)
    call, began = Ended(tool), time.monotonic()
    try:
        yield call
    finally:
        call.seconds = time.monotonic() - began
        for observe in observers:
            observe(call)
        _request.reset(before)


def request_id(proposed: str = "") -> str:
    """Return the request's id: the given one if it is short and plain, else a new
    one."""
    return proposed if _ID.fullmatch(proposed) else uuid.uuid4().hex


def name_request(record: logging.LogRecord) -> bool:
    """Add the request id to a log record (a filter that passes everything)."""
    record.request = _request.get()
    return True


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request, and extra
    fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line of JSON; empty fields are left out, and other
        values than JSON's are written as text."""
        line: dict[str, object] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {
            name: value
            for name, value in vars(record).items()
            if name not in _STANDARD and value not in ("", None)
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


_MEANT: Final = {
    "query": "question",
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
"""Argument names that models guess, and today's names."""


async def check_arguments(
    list_tools: Callable[[], Awaitable[Sequence[Tool]]],
    ctx: ServerRequestContext[object],
    call_next: CallNext,
) -> HandlerResult:
    """Repair the arguments of a `tools/call`, or return an error result for one that the
    tool does not have; raise `MCPError` (-32602) for an unknown tool.

    `list_tools` returns the tools with their schemas. Wrong values and missing
    arguments pass; the tool refuses them.
    """
    if ctx.method != "tools/call" or ctx.params is None:
        return await call_next(ctx)
    name = ctx.params.get("name")
    schemas = {tool.name: tool.input_schema for tool in await list_tools()}
    schema = schemas.get(name) if isinstance(name, str) else None
    if schema is None:
        raise MCPError(
            INVALID_PARAMS,
            f"Unknown tool {name!r}; the tools are {', '.join(schemas)}.",
        )
    sent = ctx.params.get("arguments") or {}
    fields = schema.get("properties")
    if not isinstance(sent, Mapping) or not isinstance(fields, Mapping):
        return await call_next(ctx)
    needed = schema.get("required") or []
    arguments: dict[str, object] = {}
    for argument, value in sent.items():
        meant = _MEANT.get(argument.lower(), argument)
        field = argument if argument in fields or meant in sent else meant
        if field not in fields:
            nearest, names = did_you_mean(argument, fields), ", ".join(sorted(fields))
            text = f"{name} has no argument {argument!r}.{nearest} Its arguments are {names}."
            content = TextContent(type="text", text=text)
            return CallToolResult(content=[content], is_error=True)
        if value is not None or field in needed:
            arguments[str(field)] = _as_list(value, fields[field])
    return await call_next(replace(ctx, params={**ctx.params, "arguments": arguments}))


def _as_list(value: object, schema: object) -> object:
    """Return a single text as a list of one where a list is expected; one that begins
    with `[` may be a list in JSON."""
    is_list = isinstance(schema, Mapping) and schema.get("type") == "array"
    is_single = isinstance(value, str) and not value.lstrip().startswith("[")
    return [value] if is_list and is_single else value


def explained(error: ValidationError, tool: str, schema: Mapping[str, object]) -> str:
    """Return a sentence for each wrong argument: value and requirement; then an example
    call."""
    sentences = []
    for fault in error.errors(include_url=False):
        name = ".".join(map(str, fault["loc"]))
        if fault["type"] == "missing":
            sentences.append(f"{name} is missing.")
            continue
        sentences.append(f"{name} is {reprlib.repr(fault['input'])}: {fault['msg']}.")
    needed = schema.get("required")
    example = ", ".join(
        f'{name}=["URL or file"]' if name == "sources" else f'{name}="…"'
        for name in (needed if isinstance(needed, list) else ())
    )
    return f"{' '.join(sentences)} Call {tool}({example})."


# Admission control

PLACES_A_CORE: Final = 2
"""Heavy calls per core: one computes while another waits for the network."""
LIGHT_PLACES: Final = 4
"""Light calls per heavy call: they are short or wait for the network."""
FIRST_GUESS: Final = 2.0
"""Expected seconds of a call before any has finished."""
LONGEST_RETRY: Final = 60.0
"""Longest retry time in seconds; callers that retry earlier would delay the others."""
REPORT_SECONDS: Final = 2.0
"""Seconds between two progress messages of a call that waits."""

Report = Callable[[float, str], Awaitable[None]]
"""Progress callback: fraction of the time waited, and the reason; rate-limited."""


class Limiter:
    """Places for calls of one kind: who has the fewest running begins next, and who has
    none begins though all places are taken, so that no caller waits for another's calls
    only."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._running: Counter[str] = Counter()
        """Calls of each caller."""
        self._waiting: dict[anyio.Event, str] = {}
        """In order of arrival: what begins a waiting call, and its caller."""
        self._seconds = FIRST_GUESS
        """Moving average of a call's duration."""
        self._promised = 0.0
        """Time by which refused callers were asked to retry."""

    @asynccontextmanager
    async def place(
        self, caller: str, *, patience: float, report: Report
    ) -> AsyncIterator[None]:
        """Hold a place; wait for it at most `patience` seconds, and `report` the number
        of calls before. Raises `Busy` if none comes in time."""
        begun = anyio.Event()
        self._waiting[begun] = caller
        try:
            self._fill()
            await self._wait(begun, patience, report)
            began = anyio.current_time()
            yield
            self._seconds += 0.2 * (anyio.current_time() - began - self._seconds)
        finally:
            if self._waiting.pop(begun, None) is None:
                self._running[caller] -= 1
            self._fill()

    def standing(self) -> tuple[int, int]:
        """Return the numbers of running and waiting calls."""
        return self._running.total(), len(self._waiting)

    async def _wait(self, begun: anyio.Event, patience: float, report: Report) -> None:
        arrived = anyio.current_time()
        while not begun.is_set():
            waited = anyio.current_time() - arrived
            before = list(self._waiting).index(begun)
            ahead = before + self._running.total() / 2
            expected = ahead * self._seconds / self._places
            if waited + expected > patience:
                raise self._busy(waited + expected - patience)
            about = math.ceil(expected)
            await report(
                waited / patience, f"waiting: {before} calls before, {about} s"
            )
            with anyio.move_on_after(REPORT_SECONDS):
                await begun.wait()

    def _busy(self, over: float) -> Busy:
        """Return the refusal; callers refused at the same time get staggered retry
        times, at most `LONGEST_RETRY` seconds away."""
        now = anyio.current_time()
        after = max(self._promised, now + over) + self._seconds / self._places
        self._promised = min(after, now + LONGEST_RETRY)
        running, waiting = self.standing()
        return Busy(
            f"{running} calls are running and {waiting - 1} are waiting.",
            seconds=math.ceil(self._promised - now),
        )

    def _fill(self) -> None:
        """Begin the waiting calls for which there is a place."""
        while self._waiting:
            begun, caller = min(
                self._waiting.items(), key=lambda turn: self._running[turn[1]]
            )
            is_first = self._running[caller] == 0
            if self._running.total() >= self._places + is_first:
                break
            del self._waiting[begun]
            self._running[caller] += 1
            begun.set()
        self._running += Counter()  # drops callers without a running call


class Admission:
    """Admission control for tool calls."""

    def __init__(self, places: int | None = None) -> None:
        """Allow `places` heavy calls, by default from the number of cores."""
        places = places or PLACES_A_CORE * min(usable_cores(), MOST_CORES)
        self._limiters = {
            "heavy": Limiter(places),
            "light": Limiter(LIGHT_PLACES * places),
        }
        self._closed = False

    @asynccontextmanager
    async def call(
        self, caller: str, *, light: bool, seconds: float, report: Report
    ) -> AsyncIterator[None]:
        """Run a call in a place; raise `Busy` if it cannot begin in time, and at once
        after `close`.

        `light` calls are short. The call has `seconds` including the wait.
        """
        if self._closed:
            raise Busy(
                "this server is shutting down; another replica may answer.", seconds=1
            )
        ends = anyio.current_time() + seconds
        limiter = self._limiters["light" if light else "heavy"]
        async with limiter.place(caller, patience=STEP_SHARE * seconds, report=report):
            with sharing(caller), Call(ends, light=light).running():
                yield

    def standing(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of running and waiting calls of each kind."""
        return {kind: limiter.standing() for kind, limiter in self._limiters.items()}

    def close(self) -> None:
        """Refuse new calls; running and waiting calls finish."""
        self._closed = True
