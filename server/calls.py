"""Tool calls: admission control, argument repair, request ids, call log.

If all calls ran at once, all could miss their deadlines. So a call needs a slot: it
waits in a queue that is fair by caller, with progress messages, or is refused as busy
with a retry time. Light tools have a lane of their own with priority; a call that uses
more than `LIGHT` processor seconds moves to the heavy lane.

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
from bisect import insort
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final, Literal

import anyio
import anyio.lowlevel
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, Tool
from pydantic import ValidationError

from errors import Busy
from models.shares import MOST_CORES, sharing, usable_cores
from pipeline.work import STEP_SHARE, Call

Outcome = Literal["answered", "refused", "failed", "cancelled", "crashed"]
"""Outcomes: full or partial answer, busy, caller's error, canceled, internal error."""
REQUEST_ID_HEADER: Final = "x-request-id"
"""Header with the id of a request, from a load balancer or from us."""
_ID: Final = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_STANDARD: Final = frozenset((*vars(logging.makeLogRecord({})), "color_message"))
"""Fields that a log line has by other names, or not: uvicorn's message with colors."""

_request: ContextVar[str] = ContextVar("winnow_request", default="")
_log: Final = logging.getLogger("winnow.calls")


@dataclass(slots=True)
class Ended:
    """A finished tool call."""

    tool: str
    outcome: Outcome = "cancelled"
    seconds: float = 0.0
    tokens: int = 0
    """Tokens of the text content."""
    providers: list[tuple[str, str]] = field(default_factory=list)
    """Status of each search provider that was asked."""
    unread: int = 0
    """Sources that could not be read."""

    def read(self, data: dict[str, Any] | None) -> None:
        """Set the fields that the result of the call reports.

        Without `data` the call counts as answered, with 0 tokens.
        """
        fields = data or {}
        self.outcome = "refused" if fields.get("error") == "busy" else "answered"
        self.tokens = int(fields.get("tokens", 0))
        self.unread = len(fields.get("failures", []))
        for line in fields.get("providers", []):
            provider, _, status = str(line).partition(": ")
            self.providers.append((provider, status.partition(" ")[0]))


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


def request_id(asked: str = "") -> str:
    """Return the request's id: the given one if it is short and plain, else a new
    one."""
    return asked if _ID.fullmatch(asked) else uuid.uuid4().hex


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
"""Argument names that models guess or that were used before 0.1, and today's names."""

_WANTED: Final = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "string_type": "a text",
    "list_type": "a list of strings",
    "string_too_short": "a string of at least {min_length} characters",
    "string_too_long": "a string of at most {max_length} characters",
    "too_short": "a list of at least {min_length} items",
    "too_long": "a list of at most {max_length} items",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "of the form {pattern}",
}
"""Pydantic error type to the requirement in words."""


class CheckArguments:
    """Middleware for `tools/call`; `list_tools` returns the tools with their
    schemas."""

    def __init__(self, list_tools: Callable[[], Awaitable[Sequence[Tool]]]) -> None:
        self._list_tools = list_tools

    async def __call__(
        self, ctx: ServerRequestContext[object], call_next: CallNext
    ) -> HandlerResult:
        """Repair a call's arguments, or return an error result for one that the tool
        does not have; raise `MCPError` (-32602) for an unknown tool.

        Wrong values and missing arguments pass; the tool refuses them.
        """
        if ctx.method != "tools/call" or ctx.params is None:
            return await call_next(ctx)
        name = ctx.params.get("name")
        schemas = {tool.name: tool.input_schema for tool in await self._list_tools()}
        schema = schemas.get(name) if isinstance(name, str) else None
        if schema is None:
            raise MCPError(
                INVALID_PARAMS,
                f"Unknown tool {name!r}; the tools are {', '.join(schemas)}.",
            )
        given = ctx.params.get("arguments") or {}
        known = schema.get("properties")
        if not isinstance(given, Mapping) or not isinstance(known, Mapping):
            return await call_next(ctx)
        given = {_argument(name, known, given): value for name, value in given.items()}
        for argument in given:
            if argument not in known:
                text = (
                    f"{name} has no argument {argument!r}{_nearest(argument, known)}."
                )
                return CallToolResult(
                    content=[TextContent(type="text", text=text)], is_error=True
                )
        mended = _mended(given, known, schema.get("required"))
        return await call_next(replace(ctx, params={**ctx.params, "arguments": mended}))


def explained(error: ValidationError, tool: str, schema: Mapping[str, object]) -> str:
    """Return a sentence for each wrong argument: value and requirement; then an example
    call."""
    sentences = []
    for wrong in error.errors(include_url=False):
        name = ".".join(map(str, wrong["loc"]))
        if wrong["type"] == "missing":
            sentences.append(f"{name} is missing.")
            continue
        said = _WANTED.get(wrong["type"], "")
        wanted = (
            said.format(**wrong.get("ctx", {}))
            if said
            else re.sub("^[A-Z][a-z]+ should be ", "", wrong["msg"])
        )
        sentences.append(
            f"{name} is {reprlib.repr(wrong['input'])}; it must be {wanted}."
        )
    return f"{' '.join(sentences)} Call {_call(tool, schema)}."


def _call(tool: str, schema: Mapping[str, object]) -> str:
    """Return the shortest valid call of a tool, as models write it."""
    known, needed = schema.get("properties"), schema.get("required")
    if not isinstance(known, Mapping) or not isinstance(needed, list):
        return f"{tool}()"
    lists = {
        name
        for name, kind in known.items()
        if isinstance(kind, Mapping) and kind.get("type") == "array"
    }
    given = (
        f'{name}=["https://…"]' if name in lists else f'{name}="…"' for name in needed
    )
    return f"{tool}({', '.join(given)})"


def _argument(
    name: str, known: Mapping[str, object], given: Mapping[str, object]
) -> str:
    """Return the argument that a name refers to: itself, or the argument of which it is
    an alias."""
    meant = _MEANT.get(name.lower(), name)
    return name if name in known or meant not in known or meant in given else meant


def _mended(
    given: Mapping[str, object], known: Mapping[str, object], required: object
) -> Json:
    """Drop nulls where a default exists; wrap a single value where a list is expected.

    A text that begins with `[` stays a text: it may be a list in JSON.
    """
    needed = required if isinstance(required, list) else []
    mended: Json = {}
    for name, value in given.items():
        wanted = known[name]
        if value is None and name not in needed:
            continue
        lists = isinstance(wanted, Mapping) and wanted.get("type") == "array"
        mended[name] = (
            [value]
            if lists and isinstance(value, str) and not value.lstrip().startswith("[")
            else value
        )
    return mended


def _nearest(argument: str, known: Mapping[str, object]) -> str:
    """Return the likely intended argument and the list of arguments."""
    meant = get_close_matches(argument.lower(), list(known), n=1)
    did = f"; did you mean {meant[0]!r}? Its" if meant else "; its"
    return f"{did} arguments are {', '.join(sorted(known))}"


# Admission control

PLACES_A_CORE: Final = 2
"""Heavy calls per core: one computes while another waits for the network."""
LIGHT_PLACES: Final = 4
"""Light calls per heavy call: they are short or wait for the network."""
LIGHT: Final = 0.25
"""Maximum processor seconds of a light call, models excluded (cached page: .03)."""
FIRST_GUESS: Final = 2.0
"""Expected seconds of a call before any call of its tool has finished."""
WAY: Final = 1.0
"""Seconds for which a new light call has priority over heavy calls, and most seconds
that a heavy call waits in all (docs/log.md, 2026-11-27)."""
MOST_AGAIN: Final = 60.0
"""Longest retry time in seconds; callers that retry earlier would delay the others."""
LEARNT: Final = 0.2
"""Weight of the last call in the moving average of a tool's duration."""

Report = Callable[[float, str], Awaitable[None]]
"""Progress callback: fraction of the time waited, and the reason; rate-limited."""


@dataclass(eq=False, slots=True)
class _Turn:
    """A call in a lane; it waits for `begun`."""

    caller: str
    start: float
    """Virtual start time, the queue's order (start-time fair queueing, Goyal et al.
    1996)."""
    cost: float
    begun: bool = False
    since: float = 0.0


class Lane:
    """Slots for calls of one kind, and their queue."""

    def __init__(self, places: int) -> None:
        """Make a lane with `places` slots."""
        self._places = places
        self._running: set[_Turn] = set()
        self._queue: list[_Turn] = []
        self._changed = anyio.Event()
        self._start = 0.0
        """Virtual start time of the call that began last."""
        self._ends: dict[str, float] = {}
        """Caller to the virtual end of its last call, if later than `_start`."""
        self._promised = 0.0
        """Time by which refused callers were asked to retry."""

    @asynccontextmanager
    async def place(
        self, caller: str, cost: float, *, patience: float, report: Report
    ) -> AsyncIterator[None]:
        """Hold a slot for a call of `cost` expected seconds; wait at most `patience`
        seconds.

        The queue is fair by `caller`; `report` is called with the number of calls
        ahead. Raises `Busy` if no slot comes in time.
        """
        start = max(self._start, self._ends.get(caller, 0.0))
        turn = _Turn(caller, start, cost)
        self._ends[caller] = start + cost
        insort(self._queue, turn, key=lambda one: one.start)
        try:
            self._fill()
            await self._wait(turn, patience, report)
            yield
        finally:
            if turn.begun:
                self._running.remove(turn)
            else:
                self._queue.remove(turn)
                self._ends[caller] -= cost
            self._fill()
            self._notify()

    def standing(self) -> tuple[int, int]:
        """Return the numbers of running and waiting calls."""
        return len(self._running), len(self._queue)

    async def quiet(self) -> None:
        """Wait until every running call of the lane is at least `WAY` seconds old.

        Waits without limit, as long as new calls begin.
        """
        while (
            last := max((turn.since for turn in self._running), default=-WAY) + WAY
        ) > anyio.current_time():
            changed = self._changed
            with anyio.move_on_at(last):
                await changed.wait()

    async def _wait(self, turn: _Turn, patience: float, report: Report) -> None:
        came = anyio.current_time()
        expected = self._expected(turn)
        if not turn.begun and expected > patience:
            raise self._busy(turn, expected - patience)
        with anyio.move_on_after(patience):
            while not turn.begun:
                changed = self._changed
                before = self._queue.index(turn)
                about = math.ceil(self._expected(turn))
                waited = (anyio.current_time() - came) / patience
                await report(waited, f"waiting: {before} calls before, about {about} s")
                if changed is self._changed:
                    await changed.wait()
        if not turn.begun:
            raise self._busy(turn, self._expected(turn))

    def _expected(self, turn: _Turn) -> float:
        """Return the expected seconds until a waiting call begins; 0 for one that has
        begun."""
        if turn.begun:
            return 0.0
        before = sum(one.cost for one in self._queue[: self._queue.index(turn)])
        return (before + sum(one.cost for one in self._running) / 2) / self._places

    def _busy(self, turn: _Turn, over: float) -> Busy:
        """Return the refusal; callers refused at the same time get staggered retry
        times.

        They are at most `MOST_AGAIN` seconds away.
        """
        now = anyio.current_time()
        self._promised = min(
            max(self._promised, now + over) + turn.cost / self._places, now + MOST_AGAIN
        )
        seconds = math.ceil(self._promised - now)
        return Busy(
            (
                f"{len(self._running)} calls are running and "
                f"{len(self._queue) - 1} are waiting."
            ),
            seconds=seconds,
        )

    def _fill(self) -> None:
        while (turn := self._next()) is not None:
            self._queue.remove(turn)
            turn.begun, turn.since = True, anyio.current_time()
            self._running.add(turn)
            self._start = max(self._start, turn.start)
            waiting = {one.caller for one in self._queue}
            self._ends = {
                who: end
                for who, end in self._ends.items()
                if end > self._start or who in waiting
            }
            self._notify()

    def _next(self) -> _Turn | None:
        """Return the call that may begin: the first, or, if the lane is full, that of a
        caller without a slot; None if there is none.

        So one call more than there are slots may run: no caller waits for another's
        calls only.
        """
        if len(self._running) < self._places:
            return next(iter(self._queue), None)
        if len(self._running) > self._places:
            return None
        served = {one.caller for one in self._running}
        return next((one for one in self._queue if one.caller not in served), None)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Admission:
    """Admission control for tool calls."""

    def __init__(self, places: int | None = None) -> None:
        """Make the lanes with `places` slots each, by default from the number of
        cores."""
        places = places or PLACES_A_CORE * min(usable_cores(), MOST_CORES)
        self._whole = Lane(places)
        self._light = Lane(LIGHT_PLACES * places)
        self._seconds: dict[str, float] = {}
        """Tool to the average seconds of its calls."""
        self._closed = False

    @asynccontextmanager
    async def call(
        self, tool: str, caller: str, *, light: bool, seconds: float, report: Report
    ) -> AsyncIterator[None]:
        """Run a call of `tool` in a slot; raise `Busy` if it cannot begin in time.

        `Busy` comes at once after `close`, and at the end if a light call became heavy
        and gets no slot. The queue is fair by `caller`; `light` calls are short. The
        call has `seconds` including the wait; `report` is called with the number of
        calls ahead.
        """
        if self._closed:
            raise Busy(
                "this server is shutting down; another replica may answer.", seconds=1
            )
        ends = anyio.current_time() + seconds
        cost = self._seconds.get(tool, FIRST_GUESS)
        async with AsyncExitStack() as slot, AsyncExitStack() as first:
            lane = self._light if light else self._whole
            patience = STEP_SHARE * seconds
            await first.enter_async_context(
                lane.place(caller, cost, patience=patience, report=report)
            )
            began = anyio.current_time()
            moving = anyio.Lock()
            way = WAY
            refused: list[Busy] = []

            async def go_on(call: Call) -> None:
                """Move a light call that became heavy to the heavy lane; let heavy
                calls yield to light ones."""
                nonlocal way
                if call.light and call.spent <= LIGHT:
                    return
                async with moving:
                    if not call.light:
                        came = anyio.current_time()
                        with anyio.move_on_after(way):
                            await self._light.quiet()
                        way = max(0.0, way - (anyio.current_time() - came))
                    else:
                        await first.aclose()
                        left = STEP_SHARE * max(0.0, ends - anyio.current_time())
                        try:
                            await slot.enter_async_context(
                                self._whole.place(
                                    caller, cost, patience=left, report=report
                                )
                            )
                        except Busy as error:
                            # Not raised here: the next pipeline step would treat it as
                            # its own failure.
                            refused.append(error)
                            work.cancel()
                            await anyio.lowlevel.checkpoint()
                        call.light = False

            with (
                anyio.CancelScope() as work,
                sharing(caller),
                Call(ends, light=light, go_on=go_on).running(),
            ):
                yield
            if refused:
                raise refused[0]
            held = anyio.current_time() - began
            self._seconds[tool] = cost + LEARNT * (held - cost)

    def standing(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of running and waiting calls of each lane."""
        return {"whole": self._whole.standing(), "light": self._light.standing()}

    def close(self) -> None:
        """Refuse new calls; running and waiting calls finish."""
        self._closed = True
