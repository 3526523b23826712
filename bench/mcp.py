"""How the server starts on each transport: first answer, tool list, memory.

    python -m bench.mcp            the table, best of five starts
    python -m bench.mcp --check    best of two; exit code 1 when a bar falls short
    python -m bench.mcp --tools    only the list of tools, as a test pins it

Not for: how it ends (`tests/test_stdio.py`, `tests/test_http.py`), how good answers are
(`bench/run.py`)."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.mcp_served import Served, ask, hello, served, spent, tree, waited_first
from pipeline.text.tokens import count_tokens
from server.toolbox import listing

FIRST_BAR: Final = 1.0
LIST_BAR: Final = 0.005
IDLE_BAR: Final = 120.0
"""Megabytes, once everything is open and nothing was asked."""
TOKENS_BAR: Final = 1_300
"""Of the list of tools as it is sent: every client pays for it in every
conversation."""
IDLE_SECONDS: Final = 5.0
"""Longest wait for a server that was just started to rest."""
QUIET: Final = 0.1
"""Seconds of a look at whether a server still works."""
WORKS: Final = 0.01
"""Seconds of running, or waiting to run, in such a look from which on it does; one that
rests takes 1 ms."""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="the quick form; exit 1 when a bar falls short",
    )
    parser.add_argument(
        "--tools", action="store_true", help="only print the list of tools"
    )
    args = parser.parse_args()
    if args.tools:
        print(json.dumps(listing(), indent=1, ensure_ascii=False))
        return
    failed = starts(2 if args.check else 5)
    for line in failed:
        print(f"BAR MISSED: {line}")
    sys.exit(1 if failed and args.check else 0)


def starts(runs: int) -> list[str]:
    """Print how the server starts, best of `runs`; return the bars that fall short."""
    print(f"| start, best of {runs} | first answer | CPU | tools/list | idle |")
    print("|---|---|---|---|---|")
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
            f"| {transport} `{method}` | {first:.2f} s | {cpu:.2f} s | "
            f"{listed * 1000:.1f} ms | {megabytes:.0f} MB |"
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
        f"tool list: {tokens:,.0f} tokens. First answers without the time waited for a processor."
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


def _until_idle(server: Served) -> None:
    """Wait until everything is open that the server opens by itself."""
    time.sleep(1.0)
    until = time.perf_counter() + IDLE_SECONDS
    while time.perf_counter() < until:
        pids = tree(server.pid)
        before = sum(spent(pids))
        time.sleep(QUIET)
        if tree(server.pid) == pids and sum(spent(pids)) - before < WORKS:
            break


if __name__ == "__main__":
    main()
