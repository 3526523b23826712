"""Many callers at once: what each gets before its deadline, and what the server is like
afterwards.

`python -m bench.load` starts our server as a process on each transport, with the sample
library as folder and a search engine on loopback. It lets 1, 2, 4, 16 and 64 callers
ask `research` without a pause; every question is new to the models, every page known
after the warm-up. A caller that is asked to retry in N s waits that long. `--check` is
the quick form, over HTTP and with a shorter deadline: a minute; it exits 1 when a bar
falls short. What other processes took of the machine is measured beside it (`ours`, the
rest), and bars of time are held against seconds times that. With `--replicas N`,
HAProxy has N servers that share one cache server. One of them is killed every few
seconds and started again. A call may be asked twice, and its answer must be the one
that the question had before; then the cache server is gone for `--away S` seconds.
`--fair N` lets one caller ask N times alone, then while another caller has 64 calls.
Not for: how good answers are (`bench/run.py`)."""

import argparse
import http.client
import json
import math
import os
import queue
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from bench.loopback import listening
from bench.mcp_served import ABOUT, LIBRARY, ROOT, Served, hello, say, served, tree
from tests.support.balanced import balanced
from tests.support.cache_server import cache_server

CALLERS: Final = (1, 2, 4, 16, 64)
ON_STDIO: Final = (1, 4, 16)
"""One client has the pipe; 16 calls at once is more than an agent sends."""
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
FAIR_BAR: Final = 2.0
"""p95 of a caller's calls beside another one's 64, against p95 of its calls alone."""
GREEDY: Final = 64
FAIR_SECONDS: Final = 100.0
"""Deadline of these calls, so that none is cut short on a machine that others use."""
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
GIVE_UP: Final = SECONDS + 20
CORES: Final = os.cpu_count() or 1
ENGINE_HITS: Final = 10
KILLED_CALLERS: Final = 4
KILLED_QUESTIONS: Final = 8
"""Of replicas that are killed: callers at once, and different questions, each asked
again and again of three tools."""
SHOWN: Final = 3
"""Calls lost, and answers that differ, of which it is printed how."""
SHOWN_LETTERS: Final = 300

Answer = dict[str, Any]
Ask = Callable[[int, str, dict[str, Any]], Answer | None]
"""By caller, tool and arguments; None, or no `result`, when nothing came before
`GIVE_UP`."""


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

    def line(self, transport: str) -> str:
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
        return f"{transport:6}{self.callers:>8}{kept}{times}{self.slowest:>9.1f}{rates}"

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
    parser.add_argument(
        "--seconds",
        type=float,
        default=0,
        help="how long callers begin calls (60, quick form 9)",
    )
    parser.add_argument("--transport", choices=("HTTP", "stdio"), help="only this one")
    parser.add_argument("--callers", type=int, nargs="+", help="only so many callers")
    parser.add_argument(
        "--fair",
        type=int,
        default=0,
        help="so many calls of one caller alone and beside another's 64",
    )
    parser.add_argument(
        "--replicas",
        type=int,
        default=0,
        help="so many servers behind HAProxy, killed in turn",
    )
    parser.add_argument("--calls", type=int, default=20_000, help="calls to replicas")
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="end the calls to replicas earlier",
    )
    parser.add_argument(
        "--every",
        type=float,
        default=20.0,
        help="seconds between two kills of a replica",
    )
    parser.add_argument(
        "--away", type=float, default=30.0, help="seconds that the cache server is gone"
    )
    args = parser.parse_args()
    if args.replicas:
        sys.exit(
            _killed_in_turn(
                args.replicas, args.calls, 60 * args.minutes, args.every, args.away
            )
        )
    seconds = args.seconds or (9.0 if args.check else 60.0)
    deadline = QUICK_SECONDS if args.check else SECONDS
    if args.fair:
        sys.exit(1 if _fairness(args.fair) and args.check else 0)
    print(
        f"research for {seconds:.0f} s by so many callers; deadline {deadline:.0f} s; seconds of "
        f"answers"
    )
    heads = ("answered", "partial", "refused", "nothing")
    print(f"{'':6}{'callers':>8}" + "".join(f"{head:>10}" for head in heads), end="")
    print(
        f"{'p50':>8}{'p95':>8}{'slowest':>9}{'answers/s':>10}{'CPU s':>8}{'light p95':>10}{'ours':>6}"
    )
    failed: list[str] = []
    for transport in (
        [args.transport]
        if args.transport
        else ["HTTP"]
        if args.check
        else ["HTTP", "stdio"]
    ):
        numbers = args.callers or (CALLERS if transport == "HTTP" else ON_STDIO)
        failed += _measure(transport, numbers, seconds, deadline)
    for line in failed:
        print(f"BAR MISSED: {line}")
    print("all bars hold" if not failed else f"{len(failed)} bars missed")
    sys.exit(1 if failed and args.check else 0)


class Killed:
    """Calls to replicas that were killed in turn, by how they ended."""

    def __init__(self, ask: Ask) -> None:
        """Learn the answers by asking each question until two in turn are alike."""
        self._ask = ask
        pages = [str(path) for path in sorted(LIBRARY.glob("*.html"))]
        texts = Questions().texts[:KILLED_QUESTIONS]
        self._calls = [("search_web", {"question": text}) for text in texts]
        self._calls += [
            (tool, {"sources": [page], "question": text, "max_tokens": TOKENS})
            for tool in ("fetch_and_prune_html", "extract_relevant")
            for page, text in zip(pages, texts, strict=False)
        ]
        self._right = [
            _settled(partial(self._answer, 0, number))
            for number in range(len(self._calls))
        ]
        self.asked = self.again = self.kills = 0
        self._reported = threading.local()
        self.lost: list[str] = []
        """Neither the call nor its one repetition was answered."""
        self.other: list[str] = []
        """Answered otherwise than before."""

    def run(self, calls: int, ends: float) -> None:
        """Ask so many times, until `ends` at the latest."""

        def call(number: int) -> None:
            if time.perf_counter() > ends:
                return
            self.asked += 1
            for found in (
                self._answer(number % KILLED_CALLERS, number) for _ in range(2)
            ):
                if found is not None:
                    right = self._right[number % len(self._calls)]
                    if found != right:
                        self.other.append(
                            "\n".join(
                                unified_diff(
                                    right.splitlines(),
                                    found.splitlines(),
                                    n=0,
                                    lineterm="",
                                )
                            )
                        )
                    return
                self.again += 1
            self.lost.append(
                f"{self._calls[number % len(self._calls)][0]}: {self._reported.failure}"
            )

        with ThreadPoolExecutor(KILLED_CALLERS) as pool:
            list(pool.map(call, range(calls)))

    def reported(self) -> str:
        """Return what came out."""
        counts = (
            f"{len(self.lost)} lost, {len(self.other)} answered otherwise, {self.again} "
            f"failures that cost a retry"
        )
        return f"{self.asked} calls, {counts}"

    def _answer(self, caller: int, number: int) -> str | None:
        """Return the text of an answer but for the marks of its frames, which are drawn
        by lot; None for a failure."""
        answer = self._ask(caller, *self._calls[number % len(self._calls)])
        result = (answer or {}).get("result", {})
        if result.get("isError") or not result:
            self._reported.failure = json.dumps(answer)[:SHOWN_LETTERS]
            return None
        return re.sub(
            r"«/?[0-9]+»",
            "«»",
            "\n".join(part.get("text", "") for part in result["content"]),
        )


def _killed_in_turn(
    replicas: int, calls: int, seconds: float, every: float, away: float
) -> bool:
    """Call replicas while they are killed in turn, then while the cache server is gone;
    return whether some failed."""
    tokens = ",".join(token(caller) for caller in range(KILLED_CALLERS))
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
            killed, over = Killed(ask), threading.Event()

            def kill() -> None:
                for number in cycle(range(replicas)):
                    # The last one is back before the next one is killed: no balancer answers
                    # without replicas.
                    while not _is_ready(made.of(number - 1)) and not over.is_set():
                        over.wait(PAUSE)
                    if over.wait(every):
                        return
                    made.kill(number)
                    made.start(number)
                    killed.kills += 1

            killer = threading.Thread(target=kill)
            killer.start()
            killed.run(calls, time.perf_counter() + seconds)
            over.set()
            killer.join()
            gone = Killed(ask)
            shared.stop()
            gone.run(calls, time.perf_counter() + away)
            shared.start()
            gone.run(KILLED_QUESTIONS, math.inf)
    print(f"{replicas} replicas, {killed.kills} killed: {killed.reported()}")
    print(
        f"{replicas} replicas, the cache server away for {away:.0f} s and back: {gone.reported()}"
    )
    for reported in (
        *killed.lost[:SHOWN],
        *gone.lost[:SHOWN],
        *(killed.other + gone.other)[:SHOWN],
    ):
        print(reported)
    return bool(killed.lost or killed.other or gone.lost or gone.other or gone.again)


def _is_ready(url: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _settled(ask: Callable[[], str | None]) -> str:
    """Return an answer that came twice in turn."""
    until = time.perf_counter() + 4 * SECONDS
    last = None
    while (found := ask()) is None or found != last:
        last = found
        if time.perf_counter() > until:
            raise SystemExit("the replicas never answered alike")
        time.sleep(PAUSE)
    return found


def _fairness(calls: int) -> list[str]:
    """Return the tools of which a caller's p95 rises beyond the bar while another one
    has `GREEDY` calls."""
    with serving("HTTP", FAIR_SECONDS) as (server, ask, found):
        questions = Questions()
        for _ in range(WARM):
            ask(0, "research", {"question": next(questions), "max_tokens": TOKENS})
        page = [f"{found}/lake-orvane.html"]
        asked: dict[str, Callable[[], dict[str, Any]]] = {
            "extract_relevant": lambda: {
                "sources": page,
                "question": next(questions),
                "max_tokens": TOKENS,
            },
            "research": lambda: {"question": next(questions), "max_tokens": TOKENS},
        }
        return [
            tool
            for tool, made in asked.items()
            if not _is_fair(server, ask, tool, made, calls)
        ]


def _is_fair(
    server: Served, ask: Ask, tool: str, made: Callable[[], dict[str, Any]], calls: int
) -> bool:
    """Measure one tool, print what came out and return whether it keeps the bar."""
    theirs: list[str] = []
    over = threading.Event()

    def greedy() -> None:
        while not over.is_set():
            end, wait = how(ask(0, tool, made()))
            theirs.append(end)
            over.wait(wait)

    def mine() -> list[float]:
        load, took = Load(server.pid), []
        for _ in range(calls):
            began = time.perf_counter()
            end, _ = how(ask(1, tool, made()))
            took.append(
                time.perf_counter() - began
                if end in ("answered", "partial")
                else math.inf
            )
        ours = load.ours()
        return [seconds * ours for seconds in took]

    alone = mine()
    threads = [threading.Thread(target=greedy) for _ in range(GREEDY)]
    for thread in threads:
        thread.start()
    among = mine()
    over.set()
    for thread in threads:
        thread.join()
    times = p95(among) / p95(alone)
    reported = ", ".join(f"{theirs.count(end)} {end}" for end in sorted(set(theirs)))
    print(
        f"{tool}, {calls} calls alone and beside {GREEDY}: p50 {statistics.median(alone):.2f} -> "
        f"{statistics.median(among):.2f}, p95 {p95(alone):.2f} -> {p95(among):.2f} s ({times:.1f} "
        f"x); "
        f"the other's calls: {reported}",
        flush=True,
    )
    return times <= FAIR_BAR


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


@contextmanager
def serving(
    transport: str, deadline: float, hangs: threading.Event | None = None
) -> Iterator[tuple[Served, Ask, str]]:
    """Run a server after a search engine of loopback; yields it, how it is asked, and
    the engine's address.

    The engine says nothing while `hangs` is set.
    """
    names = ",".join(token(caller) for caller in range(max(CALLERS) + 1))
    given = {"http_tokens": names} if transport == "HTTP" else {}
    with tempfile.TemporaryDirectory() as cache, _site(hangs) as site:
        found = f"http://127.0.0.1:{site}"
        with served(
            transport,
            Path(cache),
            searxng=found,
            robots="0",
            seconds=str(deadline),
            **given,
        ) as server:
            yield (
                server,
                over_http(server) if transport == "HTTP" else _over_stdio(server),
                found,
            )


def _measure(
    transport: str, numbers: Sequence[int], seconds: float, deadline: float
) -> list[str]:
    with serving(transport, deadline) as (server, ask, found):
        questions = Questions()
        for question in (FOREIGN, *(next(questions) for _ in range(WARM))):
            ask(0, "research", {"question": question, "max_tokens": TOKENS})
        time.sleep(QUIET)
        rest = megabytes(server.pid)
        phases = {}
        for callers in numbers:
            phases[callers] = phase = _phase(
                server, ask, callers, seconds, questions, f"{found}/lake-orvane.html"
            )
            print(phase.line(transport), flush=True)
        time.sleep(QUIET)
        after = megabytes(server.pid)
    print(
        f"{transport}: {rest:.0f} MB at rest, {after:.0f} MB after {max(phases)} callers"
    )
    return _short(transport, phases, rest, after, deadline)


def _short(
    transport: str, phases: dict[int, Phase], rest: float, after: float, deadline: float
) -> list[str]:
    """Return the bars that fall short."""
    failed = []
    for callers, phase in phases.items():
        named = f"{transport}, {callers} callers"
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
        failed.append(
            f"{transport}: p95 of a page from the cache {light:.2f} s > {LIGHT_BAR} s"
        )
    if {2, 16} <= set(phases):
        few, many = (
            phases[callers].useful / phases[callers].ours for callers in (2, 16)
        )
        if many < THROUGHPUT_BAR * few:
            failed.append(
                f"{transport}: {many:.2f} answers/s at 16, {few:.2f} at 2 callers, < "
                f"{THROUGHPUT_BAR} x"
            )
    if after > MEMORY_BAR * rest:
        failed.append(
            f"{transport}: {after:.0f} MB after {max(phases)} callers > {MEMORY_BAR} x "
            f"{rest:.0f} MB"
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


def how(answer: Answer | None) -> tuple[str, float]:
    """Return how a call ended, and the seconds until its caller should come again."""
    result: dict[str, Any] = (answer or {}).get("result", {})
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

    def ask(caller: int, tool: str, arguments: dict[str, Any]) -> Answer | None:
        try:
            return _post(
                server, caller, "tools/call", {"name": tool, "arguments": arguments}
            )
        except (OSError, http.client.HTTPException, ValueError) as error:
            return {"failed": f"{error!r} {getattr(error, 'doc', '')}"}

    return ask


def _post(server: Served, caller: int, method: str, params: dict[str, Any]) -> Answer:
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Authorization": f"Bearer {token(caller)}",
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=GIVE_UP)
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**params, "_meta": ABOUT},
    }
    connection.request("POST", "/mcp", json.dumps(message), headers)
    body = connection.getresponse().read().decode()
    connection.close()
    lines = [
        line.removeprefix("data:").strip()
        for line in body.splitlines()
        if line.startswith("data:")
    ]
    found: Answer = json.loads(lines[-1] if lines else body)
    return found


def _over_stdio(server: Served) -> Ask:
    hello(server, "server/discover")
    waiting: dict[int, queue.SimpleQueue[Answer]] = {}
    numbers = count(10)
    writing = threading.Lock()

    def listen() -> None:
        assert server.process.stdout is not None
        for line in server.process.stdout:
            message: Answer = json.loads(line)
            if message.get("id") in waiting:
                waiting[message["id"]].put(message)

    def ask(caller: int, tool: str, arguments: dict[str, Any]) -> Answer | None:
        number = next(numbers)
        answers = waiting[number] = queue.SimpleQueue()
        params = {"name": tool, "arguments": arguments, "_meta": ABOUT}
        with writing:
            say(
                server,
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": params,
                },
            )
        try:
            return answers.get(timeout=GIVE_UP)
        except queue.Empty:
            return None

    threading.Thread(target=listen, daemon=True).start()
    return ask


@contextmanager
def _site(hangs: threading.Event | None) -> Iterator[int]:
    """Serve the library on loopback, and a search engine in front of it as SearXNG
    would; yields the port."""
    files = [path for path in sorted(LIBRARY.iterdir()) if path.suffix == ".html"]
    pages = {path.name: path.read_bytes() for path in files}
    words = {
        name: set(body.decode("utf-8", "replace").lower().split())
        for name, body in pages.items()
    }

    def hits(query: str) -> bytes:
        asked = set(query.lower().split())
        best = sorted(pages, key=lambda name: (-len(asked & words[name]), name))[
            :ENGINE_HITS
        ]
        rows = [
            {"title": name, "url": f"http://127.0.0.1:{port}/{name}", "content": query}
            for name in best
        ]
        return json.dumps(
            {"query": query, "results": rows, "unresponsive_engines": []}
        ).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            searched = parts.path == "/search"
            while searched and hangs is not None and hangs.is_set():
                time.sleep(PAUSE)
            name = parts.path.lstrip("/")
            body = (
                hits(parse_qs(parts.query).get("q", [""])[0])
                if searched
                else pages.get(name, b"not here")
            )
            self.send_response(200 if searched or name in pages else 404)
            self.send_header(
                "Content-Type",
                "application/json" if searched else "text/html; charset=utf-8",
            )
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with listening(Handler) as port:
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
