"""The pipe between the server and a process of native code: messages, and the loop that
the process runs.

A message is a JSON header and bytes, each with its length in front. The process answers
one request after the other; a request to cancel the one that runs comes between. The
process ends when its stdin does, so it never outlives the server, and when nothing was
asked for a while. Not for: starting processes (`models/worker.py`), or what they
compute."""

import json
import os
import queue
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, NoReturn

from errors import ContextExceeded, ModelError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]  # the one use looks for it

MESSAGE_HEADER: Final = struct.Struct("!II")
CANCEL: Final = "cancel"
"""What is done by a message that cancels the running request; it has no answer."""
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

    def head(self) -> bytes:
        """Return what goes over the pipe before the raw bytes."""
        text = json.dumps(self.fields).encode()
        return MESSAGE_HEADER.pack(len(text), len(self.blob)) + text


def refusal(error: ModelError) -> Frame:
    """Return the answer to a request that failed."""
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


class Cancelled(Exception):
    """The caller gave the request up."""


IsCancelled = Callable[[], bool]
Answer = Callable[[Frame, IsCancelled], Frame]
"""Computes the answer to a request. It asks now and then whether the request is
cancelled, and then raises `Cancelled`; the `ModelError` that says why a request cannot
be served is its answer."""


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


def serve(
    load: Callable[[], Answer], *, idle_seconds: float, memory_bytes: int | None
) -> NoReturn:
    """Answer requests from stdin until it ends, or until none came for `idle_seconds`
    after the last; the process's main loop. `load` is called at the first request.

    Claims the two pipes for the protocol: afterwards file descriptor 1 is the log and 0
    is empty, so that nothing native can write between two frames. `memory_bytes` bounds
    the address space beyond what the process has now. An error other than `ModelError`
    ends the process, as a crash would."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    with suppress(
        OSError
    ):  # where Linux lets us, its out-of-memory killer takes this process before the server
        Path("/proc/self/oom_score_adj").write_text("800")
    inbox = _Inbox(requests)
    if memory_bytes is not None and resource is not None:
        bound = (
            memory_bytes + memory_of("self")[0]
        )  # numpy's threads take some on each of many cores
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    try:
        threading.Thread(target=inbox.fill, daemon=True).start()
    except RuntimeError:  # no memory for its stack
        _end_full()
    try:
        _answer(load, inbox, answers, idle_seconds)
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
    load: Callable[[], Answer], inbox: "_Inbox", answers: IO[bytes], idle_seconds: float
) -> NoReturn:
    """Answer each request; without one for `idle_seconds` the process ends."""
    compute: Answer | None = None
    while True:
        try:
            request = inbox.requests.get(
                timeout=None if compute is None else idle_seconds
            )
        except queue.Empty:
            os._exit(EXIT_IDLE)
        try:
            compute = compute or load()
            answer = compute(request, inbox.cancelled.is_set)
        except ModelError as error:
            answer = refusal(error)
        except Cancelled:
            answer = Frame({})
        answers.write(answer.head())
        answers.write(answer.blob)
        answers.flush()


class _Inbox:
    """The requests that came in, and whether the last one was cancelled."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.requests: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self.cancelled = threading.Event()
        self._pipe = pipe

    def fill(self) -> None:
        """Read messages until the pipe ends, which ends the process; so does one that
        memory has no room for, or its caller would wait until it gives up.

        Raises `ValueError` for a message that is not JSON."""
        try:
            while True:
                self._read()
        except MemoryError:
            _end_full()

    def _read(self) -> None:
        head = self._pipe.read(MESSAGE_HEADER.size)
        if len(head) < MESSAGE_HEADER.size:
            # The parent closed its side or is gone; native code may be running, so no orderly end.
            os._exit(0)
        text, blob = MESSAGE_HEADER.unpack(head)
        frame = Frame(json.loads(self._pipe.read(text)), self._pipe.read(blob))
        if frame.fields["do"] == CANCEL:
            self.cancelled.set()
            return
        self.cancelled.clear()
        self.requests.put(frame)
