"""The pipe between the server and a process of native code: messages, and the loop that
the process runs.

A message is a JSON header and bytes, each with its length in front. The process answers
one request after the other; a request to cancel the one that runs comes between. The
process ends when its stdin does, so it never outlives the server. Not for: starting
processes (`models/worker.py`), or what they compute."""

import json
import mmap
import os
import queue
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, NoReturn

from errors import ContextExceeded, ModelError

if sys.platform != "win32":  # which has no such limits
    import resource

MESSAGE_HEADER: Final = struct.Struct("!II")
CANCEL: Final = "cancel"
"""What is done by a message that cancels the running request; it has no answer."""

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: named JSON values and raw bytes."""

    fields: Fields
    blob: bytes = b""

    def packed(self) -> bytes:
        """Return what goes over the pipe."""
        text = json.dumps(self.fields).encode()
        return MESSAGE_HEADER.pack(len(text), len(self.blob)) + text + self.blob


def accepted(frame: Frame) -> Frame:
    """Return `frame` if it is an answer; raise the `ModelError` that it holds else."""
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
    return int(mapped) * mmap.PAGESIZE, int(resident) * mmap.PAGESIZE


def serve(load: Callable[[], Answer], *, memory_bytes: int | None) -> NoReturn:
    """Answer requests from stdin until it ends; the process's main loop. `load` is
    called at the first request.

    Claims the two pipes for the protocol: afterwards file descriptor 1 is the log and 0
    is empty, so that nothing native can write between two frames. `memory_bytes` bounds
    the address space beyond what the process has now. An error other than `ModelError`
    ends the process, as a crash would."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    with suppress(OSError):
        # Linux's out-of-memory killer takes this process before the server.
        Path("/proc/self/oom_score_adj").write_bytes(b"800")
    mapped, _ = memory_of("self")  # macOS says nothing, and refuses a bound below it
    if sys.platform != "win32" and memory_bytes is not None and mapped:
        # numpy's threads take some on each of many cores
        bound = memory_bytes + mapped
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    inbox: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    cancelled = threading.Event()
    reader = threading.Thread(
        target=_within_memory, args=(_read, requests, inbox, cancelled), daemon=True
    )
    _within_memory(_answer, load, inbox, cancelled, answers, reader)
    os._exit(0)


def _within_memory(step: Callable[..., None], *arguments: object) -> None:
    """Run one of the two loops; a lack of memory ends the process, whose caller finds
    the reason in its last words. Writing them takes no memory.

    CPython loses some a MemoryError: an import then raises SystemError, its compiler
    SyntaxError, and a thread without a stack RuntimeError."""
    try:
        step(*arguments)
    except (MemoryError, SystemError, SyntaxError, RuntimeError) as error:
        started = "can't start new thread" in str(error)
        if isinstance(error, RuntimeError) and not started:
            raise
        os.write(
            2, b"MemoryError: no memory is left within the limit of this process.\n"
        )
        os._exit(71)


def _read(
    requests: IO[bytes], inbox: "queue.SimpleQueue[Frame]", cancelled: threading.Event
) -> None:
    """Read messages until the pipe ends, which ends the process: native code may be
    running, so no orderly end. Raises `ValueError` for a message that is not JSON."""
    while len(head := requests.read(MESSAGE_HEADER.size)) == MESSAGE_HEADER.size:
        text, blob = MESSAGE_HEADER.unpack(head)
        frame = Frame(json.loads(requests.read(text)), requests.read(blob))
        if frame.fields["do"] == CANCEL:
            cancelled.set()
        else:
            cancelled.clear()
            inbox.put(frame)
    os._exit(0)


def _answer(
    load: Callable[[], Answer],
    inbox: "queue.SimpleQueue[Frame]",
    cancelled: threading.Event,
    answers: IO[bytes],
    reader: threading.Thread,
) -> None:
    reader.start()
    compute: Answer | None = None
    while True:
        request = inbox.get()
        try:
            compute = compute or load()
            answer = compute(request, cancelled.is_set)
        except ModelError as error:
            over = isinstance(error, ContextExceeded)
            fields = {"error": error.what, "hint": error.hint, "over_context": over}
            answer = Frame(fields)
        except Cancelled:
            answer = Frame({})
        answers.write(answer.packed())
        answers.flush()
