"""How the server starts and ends on each transport: first answer, tool list, memory,
every end, every cancel.

`python -m bench.mcp_ends` prints the tables; `python -m bench.mcp --check` holds the
same bars. A long call runs when an end comes: a tree over the sample library, embedded
by a GGUF model in a process of its own where the extra `llama` and the small weights
are there. Not for: how good answers are (`bench/mcp.py`)."""

import argparse
import http.client
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from bench.mcp_served import (
    LIBRARY,
    ROOT,
    Served,
    alive,
    ask,
    has_answered,
    hello,
    say,
    send,
    served,
    served_by_parent,
    spent,
    tree,
    waited_first,
)
from cache.store import open_stores
from pipeline.text.tokens import count_tokens

WEIGHTS: Final = ROOT.parent / "shared" / "models" / "all-minilm-l6-v2-f16.gguf"
TRANSPORTS: Final = ("stdio", "HTTP")
FIRST_BAR: Final = 1.0
LIST_BAR: Final = 0.005
IDLE_BAR: Final = 120.0
"""Megabytes, once everything is open and nothing was asked."""
TOKENS_BAR: Final = 1_300
"""Of the list of tools as it is sent: every client pays for it in every
conversation."""
END_BAR: Final = 1.0
DRAIN_BAR: Final = 28.0
"""Over HTTP SIGTERM lets the running call be answered: its deadline and what
`extras/http/` adds."""
CANCEL_BAR: Final = 0.5
QUIET: Final = 0.1
"""Seconds of a look at whether a server still works."""
WORKS: Final = 0.01
"""Seconds of running, or waiting to run, in such a look from which on it does; one that
rests takes 1 ms."""
INTO: Final = 0.7
"""Seconds into a call at which its end comes."""
POLL: Final = 0.005
LONG: Final[dict[str, Any]] = {
    "name": "raptor_query",
    "arguments": {
        "question": "What changed at the harbour?",
        "sources": [str(LIBRARY)],
    },
}
SHORT: Final[dict[str, Any]] = {
    "name": "extract_relevant",
    "arguments": {
        "question": "When does the first ferry leave?",
        "sources": [str(LIBRARY / "ferry-timetable.html")],
    },
}


@dataclass(frozen=True, slots=True)
class Ended:
    """One cell of the table."""

    seconds: float
    code: str
    left: int
    """Processes below the server that outlived it."""
    whole: bool
    """Whether every entry of the cache reads back."""
    workers: int
    """Processes below the server when the end came."""

    def worse(self, bar: float) -> bool:
        """Whether this end falls short of what the issue wants."""
        return (
            self.seconds > bar
            or self.left > 0
            or not self.whole
            or "NO MORE" in self.code
        )

    def cell(self) -> str:
        """Return the cell as text."""
        cache = "cache whole" if self.whole else "CACHE DAMAGED"
        return (
            f"{self.seconds:.2f} s, {self.code}, {self.left} of {self.workers} children left, "
            f"{cache}"
        )


def main() -> None:
    """Print both tables; with `--check`, exit 1 when a bar falls short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="exit 1 when a bar falls short"
    )
    failed = [*starts(5), *ends(worker=True)]
    for line in failed:
        print(f"BAR MISSED: {line}")
    sys.exit(1 if failed and parser.parse_args().check else 0)


def starts(runs: int) -> list[str]:
    """Print how the server starts, best of `runs`; return the bars that fall short."""
    heads = ("first answer s", "CPU s", "tools/list ms", "idle MB")
    print(f"{f'start, best of {runs}':32}" + "".join(f"{head:>16}" for head in heads))
    failed = []
    for transport, method in (
        ("stdio", "initialize"),
        ("stdio", "server/discover"),
        ("HTTP", "server/discover"),
    ):
        seen = [_start(transport, method) for _ in range(runs)]
        first, cpu, listed, megabytes, tokens = (
            min(column) for column in zip(*seen, strict=True)
        )
        print(
            f"{f'{transport} {method}':32}{first:>16.2f}{cpu:>16.2f}{listed * 1000:>16.1f}{megabytes:>16.0f}"
        )
        named = f"{transport} {method}"
        failed += [f"{named}: first answer {first:.2f} s > {FIRST_BAR} s"] * (
            first > FIRST_BAR
        )
        failed += [
            f"{named}: tools/list {listed * 1000:.1f} ms > {LIST_BAR * 1000:.0f} ms"
        ] * (listed > LIST_BAR)
        failed += [f"{named}: {megabytes:.0f} MB idle > {IDLE_BAR:.0f} MB"] * (
            megabytes > IDLE_BAR
        )
    failed += [f"tool list of {tokens:.0f} tokens > {TOKENS_BAR}"] * (
        tokens > TOKENS_BAR
    )
    print(
        f"tool list: {tokens:,.0f} tokens by our counter. First answers without the time waited "
        f"for a processor."
    )
    return failed


def _start(transport: str, method: str) -> tuple[float, float, float, float, float]:
    """Return seconds and CPU seconds to the first answer, of a tool list, megabytes
    idle, tokens of the list."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served(transport, Path(folder)) as server,
    ):
        hello(server, method)
        first = time.perf_counter() - server.began - waited_first(server.pid)
        cpu, _ = spent([server.pid])
        _until_idle(server)
        times = []
        for number in range(2, 12):
            began = time.perf_counter()
            answer = ask(server, number, "tools/list", {})
            times.append(time.perf_counter() - began)
        status = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")
        megabytes = int(status.split("VmRSS:")[1].split()[0]) / 1000
        tokens = count_tokens(
            json.dumps(
                answer["result"]["tools"], separators=(",", ":"), ensure_ascii=False
            )
        )
        return first, cpu, min(times), megabytes, tokens


def ends(*, worker: bool) -> list[str]:
    """Print what every end and every cancel comes to in the middle of a call; return
    the bars that fall short.

    Args:
        worker: Embed by a model in a process of its own, where the extra and the
    weights are there."""
    own = worker and WEIGHTS.is_file() and find_spec("llama_cpp") is not None
    settings = {"embedder": f"llama:{WEIGHTS}"} if own else {}
    print(
        f"\nends in the middle of a call, {'a model process alive' if own else 'no model process'}"
    )
    print(f"{'':20}{'stdio':58}HTTP")
    failed = []
    for row, (bar, makers) in ROWS.items():
        cells = []
        for transport in TRANSPORTS:
            if transport not in makers:
                cells.append("–")
                continue
            seen = makers[transport](settings)
            if seen.worse(bar):  # once more: the machine may have been busy
                seen = makers[transport](settings)
            cells.append(seen.cell())
            failed += [f"{row} on {transport}: {seen.cell()}"] * seen.worse(bar)
        print(f"{row:20}{cells[0]:58}{cells[1]}")
    return failed


def _in_call(
    server: Served, wanted: dict[str, Any]
) -> http.client.HTTPConnection | None:
    """Bring a server into the middle of a call; with a model process where it has
    one."""
    hello(server, "server/discover")
    ask(server, 2, "tools/call", SHORT)
    connection = send(server, 3, "tools/call", wanted)
    time.sleep(INTO)
    return connection


def _ending(
    transport: str, end: Callable[[Served], None]
) -> Callable[[dict[str, str]], Ended]:
    def cell(settings: dict[str, str]) -> Ended:
        with tempfile.TemporaryDirectory() as folder:
            start = (
                served_by_parent(Path(folder), **settings)
                if end is _kill_parent
                else None
            )
            with start or served(transport, Path(folder), **settings) as server:
                calling = _in_call(
                    server, LONG
                )  # held: a connection that is closed cancels its call
                below = tree(server.pid)[1:]
                done = not server.port and has_answered(server)
                began = time.perf_counter()
                end(server)
                while alive(server.pid) and time.perf_counter() < began + DRAIN_BAR:
                    time.sleep(POLL)
                seconds = time.perf_counter() - began
                left = _outlive(below)
                code = (
                    "exit unseen"
                    if end is _kill_parent
                    else f"exit {server.process.wait(1)}"
                )
                code = f"{code} (the call was done)" if done else code
                if calling is not None:
                    calling.close()
            return Ended(seconds, code, left, _whole(Path(folder)), len(below))

    return cell


def _outlive(pids: list[int]) -> int:
    """Return how many of these processes are there a moment later, the moment in which
    their pipes close."""
    until = time.perf_counter() + 0.3
    while any(map(alive, pids)) and time.perf_counter() < until:
        time.sleep(POLL)
    return sum(map(alive, pids))


def _close_stdin(server: Served) -> None:
    assert server.process.stdin is not None
    server.process.stdin.close()


def _terminate(server: Served) -> None:
    os.kill(server.pid, signal.SIGTERM)


def _interrupt(server: Served) -> None:
    os.kill(server.pid, signal.SIGINT)


def _kill_parent(server: Served) -> None:
    server.process.kill()


def _cancelling(transport: str, *, network: bool) -> Callable[[dict[str, str]], Ended]:
    def cell(settings: dict[str, str]) -> Ended:
        with (
            tempfile.TemporaryDirectory() as folder,
            _slow_site() as site,
            served(transport, Path(folder), **settings) as server,
        ):
            wanted = (
                {"name": "fetch_and_prune_html", "arguments": {"sources": [site.url]}}
                if network
                else LONG
            )
            connection = _in_call(server, wanted)
            began = time.perf_counter()
            if connection is not None and connection.sock is not None:
                connection.sock.shutdown(socket.SHUT_RDWR)
            else:
                say(
                    server,
                    {
                        "jsonrpc": "2.0",
                        "method": "notifications/cancelled",
                        "params": {"requestId": 3},
                    },
                )
            seconds = site.left_after(began) if network else _quiet_after(server, began)
            answer = ask(server, 4, "tools/list", {})
            code = "serves on" if answer["result"]["tools"] else "SERVES NO MORE"
            below = tree(server.pid)[1:]
        return Ended(seconds, code, 0, _whole(Path(folder)), len(below))

    return cell


def _quiet_after(server: Served, began: float) -> float:
    """Return how long after `began` the server and all below it stopped to run and to
    wait for a processor."""
    until = began + 10 * CANCEL_BAR
    while (now := time.perf_counter()) < until:
        pids = tree(server.pid)
        before = sum(spent(pids))
        time.sleep(QUIET)
        if tree(server.pid) == pids and sum(spent(pids)) - before < WORKS:
            break
    return now - began


def _until_idle(server: Served) -> None:
    """Wait until everything is open that the server opens by itself."""
    time.sleep(1.0)
    _quiet_after(server, time.perf_counter())


def _whole(cache: Path) -> bool:
    stores = open_stores(cache, size_limit=1_000_000_000)
    try:
        return not any(stats.trouble for stats in stores.stats().values())
    finally:
        stores.close()


class _SlowSite:
    """A page on loopback that never comes, and the moment when the asker left."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/slow"
        self._left: list[float] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                asker, _ = self._listening.accept()
            except OSError:  # closed
                return
            with asker:
                if b"robots.txt" in asker.recv(65536):
                    asker.sendall(
                        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    )
                    continue
                while asker.recv(65536):
                    pass
                self._left.append(time.perf_counter())

    def left_after(self, began: float) -> float:
        """Wait until the asker has left and return how long after `began` it did."""
        until = began + 10 * CANCEL_BAR
        while not self._left and time.perf_counter() < until:
            time.sleep(POLL)
        return (self._left[0] if self._left else time.perf_counter()) - began

    def close(self) -> None:
        """Listen no more."""
        self._listening.close()


@contextmanager
def _slow_site() -> Iterator[_SlowSite]:
    site = _SlowSite()
    try:
        yield site
    finally:
        site.close()


ROWS: Final[dict[str, tuple[float, dict[str, Callable[[dict[str, str]], Ended]]]]] = {
    "EOF on stdin": (END_BAR, {"stdio": _ending("stdio", _close_stdin)}),
    "SIGTERM": (END_BAR, {"stdio": _ending("stdio", _terminate)}),
    "SIGTERM, drained": (DRAIN_BAR, {"HTTP": _ending("HTTP", _terminate)}),
    "SIGINT": (END_BAR, {each: _ending(each, _interrupt) for each in TRANSPORTS}),
    "parent killed": (END_BAR, {"stdio": _ending("stdio", _kill_parent)}),
    "cancel, computing": (
        CANCEL_BAR,
        {each: _cancelling(each, network=False) for each in TRANSPORTS},
    ),
    "cancel, network": (
        CANCEL_BAR,
        {each: _cancelling(each, network=True) for each in TRANSPORTS},
    ),
}
"""Each end with its bar. A client that leaves is EOF on stdio, and on HTTP how a call
is cancelled."""

if __name__ == "__main__":
    main()
