"""A mix of the five tools for minutes: does memory stay flat, and what does each tool
take?

    python -m bench.soak                       10 minutes, 4 callers, over HTTP, with a
    search engine on loopback
    python -m bench.soak --check               2 minutes; exits 1 where memory grows or a call ends with nothing
    python -m bench.soak --replicas 2          behind HAProxy with one cache server
    python -m bench.soak --engine-hangs        the search engine takes connections and says nothing for the middle third
    python -m bench.soak --profile             the top ten of a flame graph (py-spy)

Every question is new to the models, every page known after the first round. Memory is
that of the server and all below it, by its median in the second and in the last third
of the time: the first third fills caches that have bounds. Calls that are reported to
come again in N s come again. Not for: kills of replicas (`bench/load.py`), nor how good
answers are."""

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.load import (
    Ask,
    Load,
    Questions,
    how,
    megabytes,
    over_http,
    p95,
    serving,
    token,
)
from bench.mcp_served import LIBRARY, Served
from tests.support.balanced import balanced
from tests.support.cache_server import cache_server

MINUTES: Final = 10.0
QUICK_MINUTES: Final = 2.0
SECONDS: Final = 25.0
"""Deadline of a call."""
EACH: Final = 5.0
"""Seconds between two looks at memory."""
GROWTH_BAR: Final = 1.05
"""Median memory of the last third of the time against that of the second; the quick
form, whose caches are still being filled, is held to that of `QUICK_GROWTH_BAR`."""
QUICK_GROWTH_BAR: Final = 1.15
TOKENS: Final = 600
TOP: Final = 10


class Soak:
    """What the callers were given, by tool."""

    def __init__(self, ask: Ask, pages: list[str]) -> None:
        """Ask by `ask`, of `pages`."""
        self._ask = ask
        self._pages = pages
        self._questions = Questions()
        self._lock = threading.Lock()
        self._number = 0
        self.took: dict[str, list[float]] = defaultdict(list)
        self.ends: dict[str, Counter[str]] = defaultdict(Counter)
        self.reported: list[str] = []
        """What calls said that ended with nothing."""

    def call(self, caller: int) -> None:
        """Make the next call of the mix."""
        with self._lock:
            number, question = self._number, next(self._questions)
            self._number += 1
        page = self._pages[number % len(self._pages)]
        of_page = {"sources": [page], "question": question, "max_tokens": TOKENS}
        mix: tuple[tuple[str, dict[str, Any]], ...] = (
            ("research", {"question": question, "max_tokens": TOKENS}),
            ("extract_relevant", of_page),
            ("search_web", {"question": question}),
            ("fetch_and_prune_html", of_page),
            ("raptor_query", of_page),
        )
        tool, arguments = mix[number % len(mix)]
        began = time.perf_counter()
        answer = self._ask(caller, tool, arguments)
        end, wait = how(answer)
        with self._lock:
            self.took[tool].append(time.perf_counter() - began)
            self.ends[tool][end] += 1
            self.reported += [f"{tool}: {answer}"[:300]] if end == "nothing" else []
        time.sleep(wait)

    def table(self) -> str:
        """Return a row for each tool."""
        lines = [f"{'':22}{'calls':>7}{'p50':>8}{'p95':>8}{'p99':>8}  ended"]
        rows = [
            (tool, took, self.ends[tool]) for tool, took in sorted(self.took.items())
        ]
        rows.append(
            (
                "all",
                [one for _, took, _ in rows for one in took],
                sum(self.ends.values(), Counter()),
            )
        )
        for tool, took, ends in rows:
            p99 = sorted(took)[math.ceil(0.99 * len(took)) - 1]
            ended = ", ".join(f"{count} {end}" for end, count in ends.most_common())
            lines.append(
                f"{tool:22}{len(took):7}{statistics.median(took):8.2f}{p95(took):8.2f}{p99:8.2f}  "
                f"{ended}"
            )
        return "\n".join(lines)


def main() -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="the quick form; exit code 1 where a bar falls short",
    )
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--callers", type=int, default=4)
    parser.add_argument(
        "--replicas", type=int, default=0, help="so many servers behind HAProxy"
    )
    parser.add_argument(
        "--engine-hangs", action="store_true", help="for the middle third of the time"
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="what the server's threads were doing (py-spy)",
    )
    wanted = parser.parse_args()
    seconds = 60 * (wanted.minutes or (QUICK_MINUTES if wanted.check else MINUTES))
    with _servers(wanted.replicas, wanted.callers) as (pids, ask, pages, hangs):
        soak = Soak(ask, pages)
        profile = _profile(pids[0], seconds) if wanted.profile else None
        memory, load = _run(
            soak, pids, seconds, wanted.callers, hangs if wanted.engine_hangs else None
        )
        print(soak.table())
        print(
            f"{sum(map(len, soak.took.values())) / seconds:.2f} calls a second, {load.cpu():.0f} "
            f"processor seconds"
        )
    print(
        "MB a minute: "
        + " ".join(f"{used:.0f}" for used in memory[:: max(1, int(60 / EACH))])
    )
    if profile is not None:
        _write_lines(profile)
    third = len(memory) // 3
    second, last = (
        statistics.median(memory[third : 2 * third]),
        statistics.median(memory[2 * third :]),
    )
    print(
        f"median memory {second:.0f} MB in the second third, {last:.0f} MB in the last "
        f"({last / second:.3f} x)"
    )
    bar = QUICK_GROWTH_BAR if seconds < 60 * MINUTES else GROWTH_BAR
    missed = [f"memory grew {last / second:.3f} x > {bar}"] * (last > bar * second)
    missed += [f"a call ended with nothing: {reported}" for reported in soak.reported]
    for line in missed:
        print(f"BAR MISSED: {line}")
    print("all bars hold" if not missed else f"{len(missed)} bars missed")
    return 1 if missed and wanted.check else 0


def _run(
    soak: Soak,
    pids: list[int],
    seconds: float,
    callers: int,
    hangs: threading.Event | None,
) -> tuple[list[float], Load]:
    """Let the callers ask for `seconds`; return memory every `EACH` seconds, and what
    was used of the machine."""
    ends = time.perf_counter() + seconds
    load = Load(pids[0])

    def ask_on(caller: int) -> None:
        while time.perf_counter() < ends:
            soak.call(caller)

    threads = [
        threading.Thread(target=ask_on, args=(caller,)) for caller in range(callers)
    ]
    for thread in threads:
        thread.start()
    memory: list[float] = []
    while (left := ends - time.perf_counter()) > 0:
        memory.append(sum(map(megabytes, pids)))
        if hangs is not None:
            (hangs.set if seconds / 3 < left < 2 * seconds / 3 else hangs.clear)()
        time.sleep(min(EACH, left))
    for thread in threads:
        thread.join()
    return memory, load


@contextmanager
def _servers(
    replicas: int, callers: int
) -> Iterator[tuple[list[int], Ask, list[str], threading.Event]]:
    """Run the servers; yields their processes, how they are asked, pages, and what
    makes the engine hang."""
    hangs = threading.Event()
    if not replicas:
        with serving("HTTP", SECONDS, hangs) as (server, ask, found):
            yield [server.pid], ask, _pages(found), hangs
        return
    tokens = ",".join(map(token, range(callers)))
    with (
        tempfile.TemporaryDirectory() as name,
        cache_server(Path(name) / "shared") as shared,
    ):
        given = {
            "cache_url": f"{shared.url}?private=true",
            "http_tokens": tokens,
            "seconds": str(SECONDS),
        }
        with balanced(Path(name), count=replicas, **given) as made:
            ask = over_http(
                Served(made.processes[0], 0, made.balancer, Path(name), 0.0)
            )
            yield (
                [process.pid for process in made.processes],
                ask,
                [str(LIBRARY / one) for one in _names()],
                hangs,
            )


def _names() -> list[str]:
    return sorted(path.name for path in LIBRARY.glob("*.html"))[::4]


def _pages(found: str) -> list[str]:
    return [f"{found}/{name}" for name in _names()]


def _profile(pid: int, seconds: float) -> tuple["subprocess.Popen[bytes]", Path]:
    place = Path(tempfile.mkdtemp()) / "stacks"
    py_spy = str(Path(sys.executable).with_name("py-spy"))
    command = [
        py_spy,
        "record",
        "-r",
        "50",
        "-f",
        "raw",
        "-o",
        str(place),
        "-d",
        str(int(seconds)),
        "-p",
        str(pid),
    ]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet), place  # noqa: S603  our own profiler


def _write_lines(profile: tuple["subprocess.Popen[bytes]", Path]) -> None:
    """Print the functions of ours that most samples of working threads were in, callees
    counted."""
    process, place = profile
    process.wait()
    inside: Counter[str] = Counter()
    whole = 0
    for line in place.read_text(encoding="utf-8").splitlines():
        stack, _, samples = line.rpartition(" ")
        frames = [frame.rpartition(":")[0] for frame in stack.split(";")]
        if any(
            word in frames[-1]
            for word in ("wait (", "get (queue", "select (", "WorkerThread.run")
        ):
            continue
        whole += int(samples)
        ours = {
            frame
            for frame in frames
            if any(
                f"({top}/" in frame for top in ("pipeline", "models", "tools", "cache")
            )
        }
        inside.update(dict.fromkeys(ours, int(samples)))
    print(f"{whole} samples at work; of them in")
    for frame, often in inside.most_common(TOP):
        print(f"  {often / max(whole, 1):.2f}  {frame}")


if __name__ == "__main__":
    sys.exit(main())
