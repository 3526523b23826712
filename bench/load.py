"""Many callers at once over HTTP: what each gets before its deadline, and the server's memory afterwards.

`python -m bench.load` starts our server as a process with a search engine on loopback and lets 1, 2, 4, 16 and 64
callers ask `research` without a pause; every question is new to the models, every page known after the warm-up. A
caller that is asked to retry in N s waits that long. `--check` is the quick form: a minute; it exits 1 when a bar falls
short. What other processes took of the machine is measured beside it (`ours`, the rest), and bars of time are held
against seconds times that. Not for: how good answers are (`bench/run.py`), replicas and fairness
(`tests/test_replicas.py`, `tests/test_pressure.py`)."""

import argparse
import http.client
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from bench.loopback import Answer, searched, serving
from bench.mcp_served import (
    LIBRARY,
    ROOT,
    Served,
    answer_of,
    send,
    served,
    tree,
)

CALLERS: Final = (1, 2, 4, 16, 64)
SECONDS: Final = 25.0
QUICK_SECONDS: Final = 10.0
"""The server's own deadline of a call, as it is set; in the quick form the last answers
come sooner."""
OVER_BAR: Final = 2.0
"""Seconds after the deadline by which every call has an answer, a part of one, or a
refusal."""
LIGHT_BAR: Final = 1.0
"""p95 of a page from the cache, in seconds, beside 16 callers of research."""
THROUGHPUT_BAR: Final = 0.9
"""Answers a second with 16 callers against those with 2."""
MEMORY_BAR: Final = 1.5
"""Megabytes after 64 callers against those at rest, when one caller has been
answered."""
TOKENS: Final = 1000
WARM: Final = 6
FOREIGN: Final = "Wann legt die erste Fähre in Brindle Quay ab?"
"""Loads the second embedder (150 MB), which any caller's question may need."""
QUIET: Final = 3.0
"""Seconds without a call before memory is read: the server collects garbage at quiet
moments."""
PAUSE: Final = 0.3
CORES: Final = os.cpu_count() or 1
ENGINE_HITS: Final = 10

Json = dict[str, Any]
Ask = Callable[[int, str, Json], Json | None]
"""By caller, tool and arguments; None, or no `result`, when nothing came before
`bench.mcp_served.WITHIN`."""


@dataclass(slots=True)
class Phase:
    """What some callers at once were given."""

    callers: int
    seconds: float = 0.0
    """From the first call to the last answer."""
    cpu: float = 0.0
    """Processor seconds of the server."""
    ours: float = 1.0
    """Part of the machine that no other process took."""
    ends: dict[str, list[float]] = field(
        default_factory=lambda: {
            "answered": [],
            "partial": [],
            "refused": [],
            "nothing": [],
        }
    )
    """Seconds of each call by how it ended."""
    light: list[float] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """What calls were reported that ended with nothing."""

    @property
    def useful(self) -> float:
        """Answers a second, whole or in part."""
        return (len(self.ends["answered"]) + len(self.ends["partial"])) / max(
            self.seconds, 0.001
        )

    def line(self) -> str:
        """Return a row of the table."""
        reported = [*self.ends["answered"], *self.ends["partial"]]
        kept = "".join(f"{len(times):>10}" for times in self.ends.values())
        times = (
            f"{statistics.median(reported):>8.1f}{p95(reported):>8.1f}"
            if reported
            else f"{'–':>8}{'–':>8}"
        )
        cpu = self.cpu / len(reported) if reported else math.nan
        light = f"{p95(self.light):>10.2f}" if self.light else f"{'–':>10}"
        rates = f"{self.useful:>10.2f}{cpu:>8.2f}{light}{self.ours:>6.2f}"
        return f"{self.callers:>10}{kept}{times}{self.slowest:>9.1f}{rates}"

    @property
    def slowest(self) -> float:
        """Seconds of the longest call."""
        return max(
            (seconds for ends in self.ends.values() for seconds in ends), default=0.0
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="the quick form; exit 1 when a bar falls short",
    )
    args = parser.parse_args()
    seconds = 9.0 if args.check else 60.0
    deadline = QUICK_SECONDS if args.check else SECONDS
    print(
        f"research for {seconds:.0f} s by so many callers; deadline {deadline:.0f} s; seconds of "
        f"answers"
    )
    heads = ("callers", "answered", "partial", "refused", "nothing")
    print("".join(f"{head:>10}" for head in heads), end="")
    print(
        f"{'p50':>8}{'p95':>8}{'slowest':>9}{'answers/s':>10}{'CPU s':>8}{'light p95':>10}{'ours':>6}"
    )
    failed = _measure(seconds, deadline)
    for line in failed:
        print(f"BAR MISSED: {line}")
    sys.exit(1 if failed and args.check else 0)


class Load:
    """What servers use of the machine from here on."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._began, self._server = time.perf_counter(), sum(map(processor, pids))
        self._client, self._whole = time.process_time(), _machine()

    def seconds(self) -> float:
        """Return the seconds by the clock."""
        return time.perf_counter() - self._began

    def cpu(self) -> float:
        """Return the processor seconds of the servers."""
        return sum(map(processor, self._pids)) - self._server

    def ours(self) -> float:
        """Return the part of the machine that no other process took."""
        others = (
            _machine() - self._whole - self.cpu() - (time.process_time() - self._client)
        )
        return min(1.0, max(1 / CORES / 100, 1 - others / (CORES * self.seconds())))


def _measure(seconds: float, deadline: float) -> list[str]:
    names = ",".join(token(caller) for caller in range(max(CALLERS) + 1))
    with tempfile.TemporaryDirectory() as cache, _site() as site:
        found = f"http://127.0.0.1:{site}"
        with served(
            "HTTP",
            Path(cache),
            searxng=found,
            robots="0",
            seconds=str(deadline),
            http_tokens=names,
        ) as server:
            ask, questions = over_http(server), Questions()
            for question in (FOREIGN, *(next(questions) for _ in range(WARM))):
                ask(0, "research", {"question": question, "max_tokens": TOKENS})
            time.sleep(QUIET)
            rest = megabytes(server.pid)
            phases = {}
            for callers in CALLERS:
                phases[callers] = phase = _phase(
                    server,
                    ask,
                    callers,
                    seconds,
                    questions,
                    f"{found}/lake-orvane.html",
                )
                print(phase.line(), flush=True)
            time.sleep(QUIET)
            after = megabytes(server.pid)
    print(f"{rest:.0f} MB at rest, {after:.0f} MB after {max(phases)} callers")
    return _short(phases, rest, after, deadline)


def _short(
    phases: dict[int, Phase], rest: float, after: float, deadline: float
) -> list[str]:
    """Return the bars that fall short."""
    failed = []
    for callers, phase in phases.items():
        named = f"{callers} callers"
        if phase.ends["nothing"]:
            failed.append(
                f"{named}: {len(phase.ends['nothing'])} calls ended with nothing "
                f"({phase.words[0][:160]})"
            )
        over = (phase.slowest - deadline) * phase.ours
        if over > OVER_BAR:
            failed.append(
                f"{named}: a call ended {over:.1f} s after its deadline > {OVER_BAR} s"
            )
    if 16 in phases and (light := p95(phases[16].light) * phases[16].ours) > LIGHT_BAR:
        failed.append(f"p95 of a page from the cache {light:.2f} s > {LIGHT_BAR} s")
    if {2, 16} <= set(phases):
        few, many = (
            phases[callers].useful / phases[callers].ours for callers in (2, 16)
        )
        if many < THROUGHPUT_BAR * few:
            failed.append(
                f"{many:.2f} answers/s at 16, {few:.2f} at 2 callers, < "
                f"{THROUGHPUT_BAR} x"
            )
    if after > MEMORY_BAR * rest:
        failed.append(
            f"{after:.0f} MB after {max(phases)} callers > {MEMORY_BAR} x {rest:.0f} MB"
        )
    return failed


def _phase(
    server: Served,
    ask: Ask,
    callers: int,
    seconds: float,
    questions: "Questions",
    page: str,
) -> Phase:
    """Let `callers` ask for `seconds` and wait for the last answer; beside 16 of them
    one reads a page it has."""
    phase = Phase(callers)
    lock = threading.Lock()
    began = time.perf_counter()
    load = Load(server.pid)

    def research(caller: int) -> None:
        while time.perf_counter() - began < seconds:
            asked = time.perf_counter()
            arguments = {"question": next(questions), "max_tokens": TOKENS}
            answer = ask(caller, "research", arguments)
            end, wait = how(answer)
            with lock:
                phase.ends[end].append(time.perf_counter() - asked)
                phase.words += [json.dumps(answer)] if end == "nothing" else []
            time.sleep(min(wait, max(0.0, seconds - (time.perf_counter() - began))))

    def light() -> None:
        arguments = {
            "sources": [page],
            "question": "How deep is Lake Orvane?",
            "max_tokens": TOKENS,
        }
        while time.perf_counter() - began < seconds:
            asked = time.perf_counter()
            end, _ = how(ask(max(CALLERS), "fetch_and_prune_html", arguments))
            phase.light.append(
                time.perf_counter() - asked if end == "answered" else math.inf
            )
            time.sleep(PAUSE)

    threads = [
        threading.Thread(target=research, args=(caller,)) for caller in range(callers)
    ]
    threads += [threading.Thread(target=light)] * (callers == 16)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    phase.seconds, phase.cpu, phase.ours = load.seconds(), load.cpu(), load.ours()
    return phase


def how(answer: Json | None) -> tuple[str, float]:
    """Return how a call ended, and the seconds until its caller should come again."""
    result: Json = (answer or {}).get("result", {})
    data = (result.get("_meta") or {}).get("winnow/result") or {}
    if result.get("isError"):
        return (
            ("refused", float(data["retry_after"]))
            if data.get("error") == "busy"
            else ("nothing", 0.0)
        )
    if not data:
        return "nothing", 0.0
    again = any(set(one["arguments"]) == {"session"} for one in data.get("next", []))
    return "partial" if again else "answered", 0.0


class Questions:
    """The library's questions without end, none twice; safe to ask from many
    threads."""

    def __init__(self) -> None:
        rows = map(
            json.loads,
            (ROOT / "examples" / "questions.jsonl")
            .read_text(encoding="utf-8")
            .splitlines(),
        )
        self.texts = [row["question"] for row in rows if row["split"] == "dev"]
        self._number = count()

    def __next__(self) -> str:
        """Return the next; repeats differ in their last sign, so that no model has read
        them."""
        times, place = divmod(next(self._number), len(self.texts))
        return f"{self.texts[place]}{'?' * times}"


def token(caller: int) -> str:
    """Return what a caller is known by."""
    return f"caller-{caller}"


def over_http(server: Served) -> Ask:
    """Return how a server on HTTP is asked, when it answers."""
    until = time.perf_counter() + SECONDS
    while True:
        try:
            _post(server, 0, "server/discover", {})
            break
        except (OSError, ValueError):  # the second: a balancer that has no replica yet
            if time.perf_counter() > until:
                raise
            time.sleep(0.05)

    def ask(caller: int, tool: str, arguments: Json) -> Json | None:
        try:
            return _post(
                server, caller, "tools/call", {"name": tool, "arguments": arguments}
            )
        except (OSError, http.client.HTTPException, ValueError) as error:
            return {"failed": f"{error!r} {getattr(error, 'doc', '')}"}

    return ask


def _post(server: Served, caller: int, method: str, params: Json) -> Json:
    known = {"Authorization": f"Bearer {token(caller)}"}
    return answer_of(server, send(server, 1, method, params, known), 1)


@contextmanager
def _site() -> Iterator[int]:
    """Serve the library on loopback, and a search engine in front of it; yields the port."""
    pages = {f"/{path.name}": path.read_bytes() for path in LIBRARY.glob("*.html")}

    def answer(path: str) -> Answer:
        parts = urlsplit(path)
        if parts.path != "/search":
            return Answer(pages.get(parts.path, b""))
        query = parse_qs(parts.query).get("q", [""])[0]
        return searched(pages, f"http://127.0.0.1:{port}", query, ENGINE_HITS)

    with serving(answer) as port:
        yield port


def megabytes(pid: int) -> float:
    """Resident memory of a process and all below it."""
    reported = (
        Path(f"/proc/{one}/status").read_text(encoding="utf-8") for one in tree(pid)
    )
    return sum(int(status.split("VmRSS:")[1].split()[0]) for status in reported) / 1000


def processor(pid: int) -> float:
    """Processor seconds of a process and all below it, threads that have ended
    included."""
    ticks = 0
    for one in tree(pid):
        stat = (
            Path(f"/proc/{one}/stat")
            .read_text(encoding="utf-8")
            .rpartition(")")[2]
            .split()
        )
        ticks += sum(
            map(int, stat[11:15])
        )  # of itself, and of children that were waited for
    return ticks / os.sysconf("SC_CLK_TCK")


def _machine() -> float:
    """Processor seconds of all processes of this machine since it started."""
    user, nice, system, _idle, _waiting, *interrupts = (
        Path("/proc/stat").read_text(encoding="utf-8").split()[1:9]
    )
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


def p95(times: Sequence[float]) -> float:
    """Return the time that 95 % of `times` do not exceed."""
    return (
        sorted(times)[min(len(times) - 1, math.ceil(0.95 * len(times)) - 1)]
        if times
        else math.nan
    )


if __name__ == "__main__":
    main()
