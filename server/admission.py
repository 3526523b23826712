"""Which calls of tools run: at most so many at once, the others in a queue that is fair by caller, or refused at once.

All calls that begin together end together, and with enough of them all end at the deadline with nothing. So a call
needs a place. Where none is free it waits, and is told how many stand before it; where its place would come too late
it is refused with the seconds after which to come again. Tools that seldom use much have places of their own, which the
others give way to, and change them for one of the others once they used more than `LIGHT` processor seconds. Not for:
the time limit around a call (`server/toolbox.py`), or requests a minute (`server/http.py`).
"""

import math
from bisect import insort
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import anyio
import anyio.lowlevel

from errors import Busy
from models.pipe import MOST_CORES, usable_cores
from models.shares import sharing
from pipeline.work import STEP_SHARE, Call

PLACES_A_CORE: Final = 2
"""Calls that run at once for each core: one computes while another waits for the network."""
LIGHT_PLACES: Final = 4
"""Light calls for each other one: they wait for the network or end soon. Six pages of two seconds asked for at once
take 2.1 s with 16 places on two cores, 4.2 s with 4."""
LIGHT: Final = 0.25
"""Processor seconds of its threads, without those of models, up to which a call is light. A page from the cache takes
.03, a search whose pages are at hand .2, research over such pages .4 to .5."""
FIRST_GUESS: Final = 2.0
"""Seconds that a call is expected to hold its place before one of its tool was seen to end."""
WAY: Final = 1.0
"""Seconds from its beginning on in which a light call has the processor to itself, save for pieces of work that run,
and most that any other call gives way in all. It needs the interpreter's lock some thirty times, each time for as long
as the thread that holds it may wait for a processor: p95 of a page from the cache beside 16 callers of research .2 s,
without this 3 s (2 cores, 20 other processes). Giving way for five seconds, 16 callers of all five tools left half of
the machine idle: 4.9 answers a second, with one second 6.8."""
MOST_AGAIN: Final = 60.0
"""Longest time to come again that is told: callers who come earlier would push the others' further and further."""
LEARNT: Final = 0.2
"""Weight of the last call in what the next one of its tool is expected to take."""

Tell = Callable[[float, str], Awaitable[None]]
"""Takes the part of its time that a call has waited, and what it waits for; passes on what does not come too fast."""


@dataclass(eq=False, slots=True)
class _Turn:
    """One call in a lane: it waits until `begun`."""

    caller: str
    start: float
    """When it would begin if every caller had the lane for itself by turns: the queue's order (start-time fair
    queueing, Goyal et al. 1996)."""
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
    async def place(self, caller: str, cost: float, *, patience: float, tell: Tell) -> AsyncIterator[None]:
        """Hold a place for the `cost` of a call in seconds, waited for `patience` seconds at most.

        The `caller` decides whose turn it is, and is told (`tell`) how many calls stand before this one. Raises `Busy`
        where the place would come too late, or did not come.
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
        while (last := max((turn.since for turn in self._running), default=-WAY) + WAY) > anyio.current_time():
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
        """Return the refusal; those who are refused together are asked to come again one after the other."""
        now = anyio.current_time()
        self._promised = min(max(self._promised, now + over) + turn.cost / self._places, now + MOST_AGAIN)
        seconds = math.ceil(self._promised - now)
        return Busy(f"{len(self._running)} calls run and {len(self._queue) - 1} wait.", seconds=seconds)

    def _fill(self) -> None:
        while (turn := self._next()) is not None:
            self._queue.remove(turn)
            turn.begun, turn.since = True, anyio.current_time()
            self._running.add(turn)
            self._start = max(self._start, turn.start)
            waiting = {one.caller for one in self._queue}
            self._ends = {who: end for who, end in self._ends.items() if end > self._start or who in waiting}
            self._notify()

    def _next(self) -> _Turn | None:
        """Return the call that may begin: the first, or where all places are taken that of a caller who has none.

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
    async def call(self, tool: str, caller: str, *, light: bool, seconds: float, tell: Tell) -> AsyncIterator[None]:
        """Run a call of `tool` in a place of its own; raise `Busy` where it cannot begin in time.

        The queue is fair by `caller`; `light` calls seldom use much. It has to answer within `seconds`, waiting
        included, of which `tell` says how many calls stand before this one.
        """
        if self._closed:
            raise Busy("this server is being stopped; another one may answer.", seconds=1)
        ends = anyio.current_time() + seconds
        cost = self._seconds.get(tool, FIRST_GUESS)
        async with AsyncExitStack() as place, AsyncExitStack() as first:
            lane = self._light if light else self._whole
            patience = STEP_SHARE * seconds
            await first.enter_async_context(lane.place(caller, cost, patience=patience, tell=tell))
            began = anyio.current_time()
            moving = anyio.Lock()
            way = WAY
            refused: list[Busy] = []

            async def go_on(call: Call) -> None:
                """Have a light call that turned out not to be one change its place, and one that is not give way."""
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
                            await place.enter_async_context(self._whole.place(caller, cost, patience=left, tell=tell))
                        except Busy as error:
                            # Not raised here: whatever step comes next would take it for a failure of its own.
                            refused.append(error)
                            work.cancel()
                            await anyio.lowlevel.checkpoint()
                        call.light = False

            with anyio.CancelScope() as work, sharing(caller), Call(ends, light=light, go_on=go_on).running():
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
