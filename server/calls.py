"""Calls of tools: which may run now, their arguments as they are meant, which request each belongs
to, how it ended.

All calls that begin together end together, and with enough of them all end at the deadline with
nothing. So a call needs a place. Where none is free it waits, and is told how many stand before it,
in a queue that is fair by caller; where its place would come too late it is refused with the
seconds after which to come again. Tools that seldom use much have places of their own, which the
others give way to, and change them for one of the others once they used more than `LIGHT` processor
seconds.

The SDK answers an unknown tool with a tool error and drops unknown arguments silently; small models
send null for "default" and one string for a list of one. The bounds of each argument are in its
type; here they are put into words. No word that was asked, read or answered is in what the log
tells. Not for: the time limit around a call (`server/toolbox.py`), requests a minute
(`server/http.py`), figures over many calls (`server/metrics.py`), or spans within one
(`pipeline/work.py`).
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
"""An answer, whole or in part; Busy; an error that the caller can act on; the caller has left; a
fault of ours."""
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
        """Take from the result of an answer what it tells of itself."""
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
    facts = {
        "tool": call.tool,
        "outcome": call.outcome,
        "seconds": round(call.seconds, 3),
        "tokens": call.tokens,
    }
    _log.info("%s %s after %.3f s", call.tool, call.outcome, call.seconds, extra=facts)


@contextmanager
def observed(tool: str, request: str, observers: Sequence[Observer]) -> Iterator[Ended]:
    """Have what is logged within name the `request`, and tell `observers` when the call has
    ended."""
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
    """Return the name of a request: the one that it came with where that is short and plain, else a
    fresh one."""
    return asked if _ID.fullmatch(asked) else uuid.uuid4().hex


def name_request(record: logging.LogRecord) -> bool:
    """Write into a record which request it belongs to (a filter that lets everything pass)."""
    record.request = _request.get()
    return True


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request, and what else a record was
    given."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
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
    """Middleware over `tools/call`; `list_tools` tells which tools there are, with their
    schemas."""

    def __init__(self, list_tools: Callable[[], Awaitable[Sequence[Tool]]]) -> None:
        self._list_tools = list_tools

    async def __call__(
        self, ctx: ServerRequestContext[object], call_next: CallNext
    ) -> HandlerResult:
        """Refuse or mend the arguments of a call; raise `MCPError` (-32602) for a tool that does
        not exist."""
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
    """Return a sentence for each argument that is wrong, with its value and what it has to be; then
    the right call."""
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
            f"{name} is {reprlib.repr(wrong['input'])}; it has to be {wanted}."
        )
    return f"{' '.join(sentences)} Call {_call(tool, schema)}."


def _call(tool: str, schema: Mapping[str, object]) -> str:
    """Return the shortest call of a tool that is right, as models write it."""
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
    """Return the argument that a name means: its own, or a usual other name of one that is not
    given."""
    meant = _MEANT.get(name.lower(), name)
    return name if name in known or meant not in known or meant in given else meant


def _mended(
    given: Mapping[str, object], known: Mapping[str, object], required: object
) -> Json:
    """Leave out nulls where there is a default, and make a list of a single value where a list is
    wanted."""
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
    """Say which argument was probably meant, and which there are."""
    meant = get_close_matches(argument.lower(), list(known), n=1)
    did = f"; did you mean {meant[0]!r}? Its" if meant else "; its"
    return f"{did} arguments are {', '.join(sorted(known))}"


# Which calls run

PLACES_A_CORE: Final = 2
"""Calls that run at once for each core: one computes while another waits for the network."""
LIGHT_PLACES: Final = 4
"""Light calls for each other one: they wait for the network or end soon. Six pages of two seconds
asked for at once take 2.1 s with 16 places on two cores, 4.2 s with 4."""
LIGHT: Final = 0.25
"""Processor seconds of its threads, without those of models, up to which a call is light. A page
from the cache takes .03, a search whose pages are at hand .2, research over such pages .4 to .5."""
FIRST_GUESS: Final = 2.0
"""Seconds that a call is expected to hold its place before one of its tool was seen to end."""
WAY: Final = 1.0
"""Seconds from its beginning on in which a light call has the processor to itself, save for pieces
of work that run, and most that any other call gives way in all. It needs the interpreter's lock
some thirty times, each time for as long as the thread that holds it may wait for a processor: p95
of a page from the cache beside 16 callers of research .2 s, without this 3 s (2 cores, 20 other
processes). Giving way for five seconds, 16 callers of all five tools left a third of the machine
idle: 5.8 answers a second, with one second 6.5."""
MOST_AGAIN: Final = 60.0
"""Longest time to come again that is told: callers who come earlier would push the others' further
and further."""
LEARNT: Final = 0.2
"""Weight of the last call in what the next one of its tool is expected to take."""

Tell = Callable[[float, str], Awaitable[None]]
"""Takes the part of its time that a call has waited, and what it waits for; passes on what does not
come too fast."""


@dataclass(eq=False, slots=True)
class _Turn:
    """One call in a lane: it waits until `begun`."""

    caller: str
    start: float
    """When it would begin if every caller had the lane for itself by turns: the queue's order
    (start-time fair queueing, Goyal et al. 1996)."""
    cost: float
    begun: bool = False
    since: float = 0.0


class Lane:
    """Places for calls of one kind, and the queue before them."""

    def __init__(self, places: int) -> None:
        """Open a lane with so many places."""
        self._places = places
        self._running: set[_Turn] = set()
        self._queue: list[_Turn] = []
        self._changed = anyio.Event()
        self._start = 0.0
        """Start of the call that began last."""
        self._ends: dict[str, float] = {}
        """Caller to the end of its last call, where that lies ahead of `_start`."""
        self._promised = 0.0
        """Time up to which refused callers were asked to come again."""

    @asynccontextmanager
    async def place(
        self, caller: str, cost: float, *, patience: float, tell: Tell
    ) -> AsyncIterator[None]:
        """Hold a place for the `cost` of a call in seconds, waited for `patience` seconds at most.

        The `caller` decides whose turn it is, and is told (`tell`) how many calls stand before this
        one. Raises `Busy` where the place would come too late, or did not come.
        """
        start = max(self._start, self._ends.get(caller, 0.0))
        turn = _Turn(caller, start, cost)
        self._ends[caller] = start + cost
        insort(self._queue, turn, key=lambda one: one.start)
        try:
            self._fill()
            await self._wait(turn, patience, tell)
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
        """Return how many calls run, and how many wait."""
        return len(self._running), len(self._queue)

    async def quiet(self) -> None:
        """Wait until no call of the lane runs that began less than `WAY` ago."""
        while (
            last := max((turn.since for turn in self._running), default=-WAY) + WAY
        ) > anyio.current_time():
            changed = self._changed
            with anyio.move_on_at(last):
                await changed.wait()

    async def _wait(self, turn: _Turn, patience: float, tell: Tell) -> None:
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
                await tell(waited, f"waiting: {before} calls before, about {about} s")
                if changed is self._changed:
                    await changed.wait()
        if not turn.begun:
            raise self._busy(turn, self._expected(turn))

    def _expected(self, turn: _Turn) -> float:
        """Return the seconds after which a call that waits is expected to begin."""
        if turn.begun:
            return 0.0
        before = sum(one.cost for one in self._queue[: self._queue.index(turn)])
        return (before + sum(one.cost for one in self._running) / 2) / self._places

    def _busy(self, turn: _Turn, over: float) -> Busy:
        """Return the refusal; those who are refused together are asked to come again one after the
        other."""
        now = anyio.current_time()
        self._promised = min(
            max(self._promised, now + over) + turn.cost / self._places, now + MOST_AGAIN
        )
        seconds = math.ceil(self._promised - now)
        return Busy(
            f"{len(self._running)} calls run and {len(self._queue) - 1} wait.",
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
        """Return the call that may begin: the first, or where all places are taken that of a caller
        who has none.

        So one more than there are places may run: a caller does not wait for another one's calls.
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
    """Lets calls of tools run."""

    def __init__(self, places: int | None = None) -> None:
        """Open the lanes; `places` of each, by default as many as the processor bears."""
        places = places or PLACES_A_CORE * min(usable_cores(), MOST_CORES)
        self._whole = Lane(places)
        self._light = Lane(LIGHT_PLACES * places)
        self._seconds: dict[str, float] = {}
        """Tool to the seconds that a call of it holds its place."""
        self._closed = False

    @asynccontextmanager
    async def call(
        self, tool: str, caller: str, *, light: bool, seconds: float, tell: Tell
    ) -> AsyncIterator[None]:
        """Run a call of `tool` in a place of its own; raise `Busy` where it cannot begin in time.

        The queue is fair by `caller`; `light` calls seldom use much. It has to answer within
        `seconds`, waiting included, of which `tell` says how many calls stand before this one.
        """
        if self._closed:
            raise Busy(
                "this server is being stopped; another one may answer.", seconds=1
            )
        ends = anyio.current_time() + seconds
        cost = self._seconds.get(tool, FIRST_GUESS)
        async with AsyncExitStack() as place, AsyncExitStack() as first:
            lane = self._light if light else self._whole
            patience = STEP_SHARE * seconds
            await first.enter_async_context(
                lane.place(caller, cost, patience=patience, tell=tell)
            )
            began = anyio.current_time()
            moving = anyio.Lock()
            way = WAY
            refused: list[Busy] = []

            async def go_on(call: Call) -> None:
                """Have a light call that turned out not to be one change its place, and one that is
                not give way."""
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
                            await place.enter_async_context(
                                self._whole.place(
                                    caller, cost, patience=left, tell=tell
                                )
                            )
                        except Busy as error:
                            # Not raised here: whatever step comes next would take it for a failure
                            # of its own.
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
        """Return how many calls run and how many wait in each lane."""
        return {"whole": self._whole.standing(), "light": self._light.standing()}

    def close(self) -> None:
        """Refuse whoever comes; who runs or waits is answered."""
        self._closed = True
