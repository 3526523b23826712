"""The pipe between the server and a model's process: messages, and the loop that the
process runs.

A message is a JSON header and bytes, each with its length in front. The loop keeps
every call that came in before the engine next, so that an engine may compute several at
once. The process ends when its stdin does, so it never outlives the server, and when
nothing was asked for a while. Not for: starting processes (`models/worker.py`), or what
an engine computes."""

import json
import os
import queue
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final, Literal, NoReturn, Protocol

from errors import ContextExceeded, ModelError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]  # the one use looks for it

MESSAGE_HEADER: Final = struct.Struct("!II")
EXIT_IDLE: Final = 75
"""Status of a process that ended because nothing was asked of it."""
EXIT_FULL: Final = 71
"""Status of a process that had no memory left."""
_LOST: Final = (
    "error return without exception set",
    "returned NULL without setting an exception",
)
"""What CPython says of an import that had no memory left: the MemoryError itself is
lost."""
_OUT_OF_MEMORY: Final = (
    b"MemoryError: no memory is left within the limit of this process.\n"
)
"""Its last words, made while there is memory."""

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: named JSON values and raw bytes."""

    fields: Fields
    blob: bytes = b""

    def packed(self, call: int) -> bytes:
        """Return the bytes that go over the pipe, marked with the number of their
        call."""
        return self.head(call) + self.blob

    def head(self, call: int) -> bytes:
        """Return those of them that come before the raw ones."""
        text = json.dumps({**self.fields, "call": call}).encode()
        return MESSAGE_HEADER.pack(len(text), len(self.blob)) + text


def refusal(error: ModelError) -> Frame:
    """Return the answer that a call gets whose request failed."""
    return Frame(
        {
            "error": error.what,
            "hint": error.hint,
            "over_context": isinstance(error, ContextExceeded),
        }
    )


def accepted(frame: Frame) -> Frame:
    """Return `frame` if it is an answer; raise the error of a `refusal`."""
    if "error" not in frame.fields:
        return frame
    kind = ContextExceeded if frame.fields["over_context"] else ModelError
    raise kind(str(frame.fields["error"]), hint=str(frame.fields["hint"]))


@dataclass(slots=True)
class Counters:
    """What an engine has computed since its process began."""

    calls: int = 0
    tokens: int = 0
    calls_a_batch: int = 0
    """Most calls that one batch held."""
    guessed: int = 0
    """Tokens of answers that were guessed ahead, and right."""


class Engine(Protocol):
    """What a process computes: it takes calls in, and answers them in any order."""

    facts: Fields
    """What was loaded and where to: device, layers, reason."""
    counters: Counters

    @property
    def busy(self) -> bool:
        """Whether a call waits for `step`."""
        ...

    def accept(self, call: int, frame: Frame) -> None:
        """Take a request in; the `ModelError` that says why it cannot be served is its
        answer."""
        ...

    def drop(self, call: int) -> None:
        """Forget a call; unknown numbers are passed over."""
        ...

    def step(self) -> list[tuple[int, Frame]]:
        """Compute for a fraction of a second and return the calls that are done with
        their answers."""
        ...


Load = Callable[[set[int]], Engine]
"""Makes the engine at the first call; the set holds the numbers of cancelled calls, and
grows while `step` runs."""


def memory_of(process: int | Literal["self"]) -> tuple[int, int]:
    """Return the bytes of address space, and of memory, that a process has; zeros if
    unknown."""
    try:
        mapped, resident, *_ = (
            Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
        )
    except OSError:
        return 0, 0
    return int(mapped) * os.sysconf("SC_PAGE_SIZE"), int(resident) * os.sysconf(
        "SC_PAGE_SIZE"
    )


def serve(load: Load, *, idle_seconds: float, memory_bytes: int | None) -> None:
    """Answer requests from stdin until it ends, or until none came for `idle_seconds`;
    the process's main loop.

    Claims the two pipes for the protocol: afterwards file descriptor 1 is the log and 0
    is empty, so that nothing native can write between two frames. `memory_bytes` bounds
    the address space beyond what the process has now. A `ModelError` is the answer to
    its call; any other error ends the process, as a crash would. Returns never."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    with suppress(
        OSError
    ):  # where Linux lets us, its out-of-memory killer takes this process before the server
        Path("/proc/self/oom_score_adj").write_text("800")
    inbox: queue.SimpleQueue[tuple[int, Frame]] = queue.SimpleQueue()
    cancelled: set[int] = set()
    if memory_bytes is not None and resource is not None:
        bound = (
            memory_bytes + memory_of("self")[0]
        )  # numpy's threads take some on each of many cores
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    listener = threading.Thread(
        target=_listen_or_end, args=(requests, inbox, cancelled), daemon=True
    )
    try:
        listener.start()
    except RuntimeError:  # no memory for its stack
        _end_full()
    try:
        _answer(load, inbox, cancelled, answers, idle_seconds)
    except MemoryError:  # of loading, computing, or sending what was computed
        _end_full()
    except (SystemError, SyntaxError) as error:
        # The compiler of a module that is imported calls a lack of memory bad syntax.
        lost = isinstance(error, SyntaxError) or any(
            text in str(error) for text in _LOST
        )
        if memory_bytes is None or not lost:
            raise
        _end_full()


def _end_full() -> NoReturn:
    """End the process, whose caller finds the reason in its last words; that takes no
    memory."""
    os.write(2, _OUT_OF_MEMORY)
    os._exit(EXIT_FULL)


def _answer(
    load: Load,
    inbox: "queue.SimpleQueue[tuple[int, Frame]]",
    cancelled: set[int],
    answers: IO[bytes],
    idle_seconds: float,
) -> NoReturn:
    """Answer what is in the queue, computing meanwhile; without calls for
    `idle_seconds` the process ends."""

    def send(call: int, frame: Frame) -> None:
        answers.write(frame.head(call))
        answers.write(frame.blob)
        answers.flush()

    engine: Engine | None = None
    while True:
        working = engine is not None and engine.busy
        try:
            call, frame = inbox.get(
                block=not working, timeout=None if working else idle_seconds
            )
        except queue.Empty:
            if not working or engine is None:
                os._exit(EXIT_IDLE)
            for done, answer in engine.step():
                send(done, answer)
            continue
        doing = frame.fields["do"]
        if doing == "cancel":
            if engine is not None:
                engine.drop(call)
            cancelled.discard(call)
            send(call, Frame({"cancelled": True}))
            continue
        try:
            if engine is None:
                engine = load(cancelled)
                send(
                    0, Frame({"facts": engine.facts})
                )  # unasked: no call has this number
            if doing == "count":
                send(call, Frame(asdict(engine.counters)))
            else:
                engine.accept(call, frame)
                engine.counters.calls += 1
        except ModelError as error:
            send(call, refusal(error))


def _listen_or_end(
    requests: IO[bytes],
    inbox: "queue.SimpleQueue[tuple[int, Frame]]",
    cancelled: set[int],
) -> None:
    """Listen; a request that memory has no room for ends the process, or its caller
    would wait until it gives up."""
    try:
        _listen(requests, inbox, cancelled)
    except MemoryError:
        _end_full()


def _listen(
    requests: IO[bytes],
    inbox: "queue.SimpleQueue[tuple[int, Frame]]",
    cancelled: set[int],
) -> None:
    """Read requests into the queue until the pipe ends, which ends the process.

    A cancelled call is queued, too, and added to `cancelled` at once. Raises
    `ValueError` for a message that is not JSON."""
    while True:
        head = requests.read(MESSAGE_HEADER.size)
        if len(head) < MESSAGE_HEADER.size:
            # The parent closed its side or is gone; native code may be running, so no orderly end.
            os._exit(0)
        text, blob = MESSAGE_HEADER.unpack(head)
        fields = json.loads(requests.read(text))
        call = fields.pop("call")
        if fields.get("do") == "cancel":
            cancelled.add(call)
        inbox.put((call, Frame(fields, requests.read(blob))))
