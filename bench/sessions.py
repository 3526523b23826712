"""Sessions of research: their size, and what a follow-up saves.

`python -m bench.sessions` starts our server as a process on stdio, with a search engine and pages on loopback. All
pages must be revalidated (`no-cache`), so that only the session can spare a request. It asks pairs of questions on the
sample library, the second as a follow-up and by itself. `--check` is the quick form; it exits 1 when a bar falls short.
`kill_runs` kills a session's server in the middle of its questions (`tests/test_sessions.py`). Not for: how good
answers are (`bench/run.py`)."""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from bench.load import processor
from bench.loopback import Answer, searched, serving
from bench.mcp_served import ABOUT, LIBRARY, Served, hello, say, served
from cache.store import Stores, open_stores
from pipeline.fetch.handles import find_answer
from pipeline.session.session import SESSION_SCHEME
from tools.common.ending import RESULT

KILLS: Final = 10
MOMENTS: Final = 16
"""Requests and messages of a question, about; a kill that is drawn later comes with the
answer."""
HITS: Final = 8
WARM: Final = "/warm"
"""A page that no search finds, to load the models by."""
BYTES_BAR: Final = 20_000
"""Of a session, for each question in it."""
SAVED_BAR: Final = 0.5
"""Most requests of a follow-up, as a share of those of the same question by itself."""
BARE: Final = {
    "embedder": "none",
    "reader": "none",
    "reranker": "none",
    "generator": "none",
}
HARBOURS: Final = (
    "Skell",
    "Brindle",
    "Kaldwick",
    "Ostery",
    "Pell",
    "Hollin",
    "Gavril",
    "Orvane",
    "Quox",
    "Piran",
)
PAIRS: Final = (
    (
        "When does the first ferry leave on Sundays?",
        "What does a bicycle cost on the ferry?",
    ),
    ("How deep is Lake Orvane?", "Which rivers flow into Lake Orvane?"),
    (
        "How long may I park for free at the harbour?",
        "What does the harbour car park cost in summer?",
    ),
    (
        "Why was the last Sunday boat cut?",
        "How many passengers did the Sunday boats carry?",
    ),
)
Json = dict[str, Any]


@dataclass
class Web:
    """A search engine and pages on loopback, and what was asked of them."""

    pages: dict[str, bytes]
    port: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """Requests by path; all searches count as `/search`."""
    tick: Callable[[], None] = lambda: None
    """Called at every request."""

    def url(self, path: str) -> str:
        """Return the address of a page."""
        return f"http://127.0.0.1:{self.port}{path}"

    def answer(self, path: str) -> Answer:
        """Answer a request, once it is counted."""
        parts = urlsplit(path)
        self.asked[parts.path] += 1
        self.tick()
        if parts.path == "/search":
            pages = {name: body for name, body in self.pages.items() if name != WARM}
            query = parse_qs(parts.query).get("q", [""])[0]
            return searched(pages, self.url(""), query, HITS)
        fresh = {"Cache-Control": "no-cache"}
        return Answer(self.pages.get(parts.path, b""), headers=fresh)


@contextmanager
def serve(pages: dict[str, bytes]) -> Iterator[Web]:
    """Serve pages by path, and an engine that finds them by their words."""
    web = Web(pages)
    with serving(web.answer) as web.port:
        yield web


def ask(
    server: Served,
    question: str,
    session: str = "",
    tick: Callable[[], None] = lambda: None,
    **other: Any,
) -> Json:
    """Ask research, or the tool that `other` names; return the structured result,
    nothing where the server was killed.

    `tick` is called at every message.
    """
    tool = other.pop("tool", "research")
    arguments = {
        "question": question,
        "max_tokens": 1000,
        **({"session": session} if session else {}),
        **other,
    }
    params = {
        "name": tool,
        "arguments": arguments,
        "_meta": {**ABOUT, "progressToken": question},
    }
    say(
        server,
        {"jsonrpc": "2.0", "id": question, "method": "tools/call", "params": params},
    )
    assert server.process.stdout is not None
    for line in server.process.stdout:
        tick()
        message: Json = json.loads(line)
        if message.get("id") == question:
            if message["result"].get("isError"):
                raise RuntimeError(str(message["result"]["content"])[:500])
            found: Json = message["result"]["_meta"][RESULT]
            return found
    return {}


def kill_runs(
    cache: Path, *, seed: int, url: str = "", kills: int = KILLS
) -> list[str]:
    """Kill one session's server `kills` times, each in the middle of a question; return
    what was asked for twice.

    Every question is asked again by the next process, with the handle. What the cache
    had when the process ended may not be asked for then, nor may a search that any page
    had followed."""
    moments = random.Random(seed)
    found: list[str] = []
    handle, read = "", 0
    with serve(_harbours()) as web:
        settings = {
            **BARE,
            "searxng": web.url(""),
            "robots": "0",
            "folders": " ",
            "cache_url": url,
        }
        for number in range(kills + 1):
            with served(
                "stdio",
                cache,
                **{name: value for name, value in settings.items() if value},
            ) as server:
                hello(server, "server/discover")
                if number:
                    stored, before = _stored(cache, url, web), web.asked.copy()
                    answer = ask(server, _question(number - 1), handle)
                    # Pages are asked for once the search is cached.
                    again = [
                        path
                        for path in [*stored, *["/search"] * (read > 0)]
                        if web.asked[path] > before[path]
                    ]
                    found += [f"question {number}: {path}" for path in again]
                    if answer["session"] != handle or not answer["passages"]:
                        found.append(
                            f"question {number}: the session was not gone on with"
                        )
                if number < kills:
                    before = web.asked.copy()
                    handle = _killed(
                        server,
                        cache,
                        url,
                        web,
                        _question(number),
                        handle,
                        moments.randint(1, MOMENTS),
                    )
                    read = (web.asked - before).total() - (web.asked - before)[
                        "/search"
                    ]
    return found


def _killed(
    server: Served,
    cache: Path,
    url: str,
    web: Web,
    question: str,
    handle: str,
    moment: int,
) -> str:
    """Ask and kill the server at a moment; return the session's handle, as the command
    line lists it."""
    lock = threading.Lock()
    left = moment

    def tick() -> None:
        nonlocal left
        with lock:
            left -= 1
            if left == 0:
                os.kill(server.pid, signal.SIGKILL)

    web.tick = tick
    ask(server, question, handle, tick)
    web.tick = lambda: None
    if left > 0:
        os.kill(server.pid, signal.SIGKILL)
    server.process.wait()
    stores = _open(cache, url)
    try:
        # One that is killed before anything was written has begun nothing.
        return handle or next(iter(_handles(stores)), "")
    finally:
        stores.close()


def _handles(stores: Stores) -> list[str]:
    """Return the handles of the sessions in a cache."""
    names = (key.removeprefix("session:") for key in stores.sessions.keys("session:"))
    return [f"{SESSION_SCHEME}{name}" for name in names]


def _stored(cache: Path, url: str, web: Web) -> list[str]:
    """Return the paths that the cache had an answer of when the server was killed."""
    stores = _open(cache, url)
    try:
        pages = [
            path
            for path in web.pages
            if find_answer(stores.pages, web.url(path)) is not None
        ]
    finally:
        stores.close()
    return pages


def _open(cache: Path, url: str) -> Stores:
    return open_stores(cache, size_limit=10**9, clock=time.time, url=url)


def _question(number: int) -> str:
    return f"How many boats moor in the harbour of {HARBOURS[number]}?"


def _harbours() -> dict[str, bytes]:
    """Return four pages for each harbour; each question finds four more pages than the
    one before."""
    pages = {}
    for number, name in enumerate(HARBOURS):
        for place, kind in enumerate(("guide", "news", "history", "prices")):
            reported = (
                f"In the harbour of {name} moor {100 + number} boats, says the {kind} of "
                f"{2000 + place}."
            )
            body = (
                f"<title>{name}, "
                f"{kind}</title><h1>{name}</h1><p>{reported}</p><p>{'The sea is calm here. ' * 40}</p>"
            )
            pages[f"/{name.lower()}-{kind}"] = body.encode()
    return pages


@dataclass(frozen=True)
class Cost:
    """What a question took."""

    seconds: float
    """Of the processor."""
    requests: int


def follow_up(first: str, second: str) -> tuple[Cost, Cost, int]:
    """Return what `second` takes after `first` in one session, and by itself; and the
    bytes of the session."""
    pages = {
        f"/{path.name}": path.read_bytes()
        for path in sorted(LIBRARY.iterdir())
        if path.suffix == ".html"
    }
    with serve({WARM: b"<p>The kettle boils.</p>", **pages}) as web:
        (after, size), (alone, _) = _cost(web, [first, second]), _cost(web, [second])
    return after, alone, size


def _cost(web: Web, questions: list[str]) -> tuple[Cost, int]:
    """Ask questions in one session, the models being loaded; return what the last one
    took, and the session's bytes."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served(
            "stdio", Path(folder), searxng=web.url(""), robots="0", folders=" "
        ) as server,
    ):
        hello(server, "server/discover")
        ask(
            server,
            "What does the kettle do?",
            tool="extract_relevant",
            sources=[web.url(WARM)],
        )
        handle = ""
        for question in questions:
            before, asked = processor(server.pid), web.asked.total()
            handle = ask(server, question, handle)["session"]
            cost = Cost(processor(server.pid) - before, web.asked.total() - asked)
        stores = _open(Path(folder), "")
        kept = stores.sessions.get_json(
            f"session:{handle.removeprefix(SESSION_SCHEME)}"
        )
        stores.close()
    return cost, len(json.dumps(kept, ensure_ascii=False).encode())


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="the quick form; exit 1 when a bar falls short",
    )
    args = parser.parse_args()
    failed: list[str] = []
    print("| follow-up | CPU | by itself | requests | by itself | bytes |")
    print("|---|---|---|---|---|---|")
    costs = []
    for first, second in PAIRS[: 2 if args.check else None]:
        after, alone, size = follow_up(first, second)
        costs.append((after, alone))
        print(
            f"| {second} | {after.seconds:.1f} s | {alone.seconds:.1f} s | "
            f"{after.requests} | {alone.requests} | {size:,} |"
        )
        if size > 2 * BYTES_BAR:
            failed.append(
                f"{size} bytes of a session with two questions > {2 * BYTES_BAR}"
            )
    requests = [sum(pair[place].requests for pair in costs) for place in (0, 1)]
    if requests[0] > SAVED_BAR * requests[1]:
        failed.append(
            f"follow-ups sent {requests[0]} of {requests[1]} requests, over {SAVED_BAR:.0%}"
        )
    for line in failed:
        print(f"BAR MISSED: {line}")
    sys.exit(1 if failed and args.check else 0)


if __name__ == "__main__":
    main()
