"""The part of the attack set that breaks what a call leans on: readers, models, search
services, web servers, the cache, the disk, processes, the caller itself.

    python -m bench.attack_faults [FAULT] [--times N] [--seed N]

Each fault is injected from outside, while a server of this process answers calls by
different tools at different moments; a good page is beside what is broken. The call
must end within its time limit with an answer from the good page, or one sentence of
ours. Not for: random damage to files (`bench/mutated.py`), ends of the server itself
(`bench/attack_life.py`)."""

import argparse
import asyncio
import gzip
import json
import os
import random
import resource
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bench.mutated import damaged
from cache.store import open_stores
from server.app import build_server
from server.calls import Admission
from server.settings import read_settings
from server.toolbox import GRACE
from tests.support import ROOT
from tests.support.docx import make_docx, paragraph
from tests.support.model_server import Remote, model_server
from tests.support.pdf import make_pdf
from tests.support.unforeseen import ERRORS, boom_file, package
from tests.support.web_site import serving

SECONDS: Final = 10.0
"""Time limit of a call in these tries."""
LATE: Final = 2.5
"""Seconds over limit and grace that a busy machine may need to hand an answer over."""
AT_ONCE: Final = 8
"""Tries at the same time of faults that make calls wait."""
TIMES: Final = 100
FACT: Final = "7:45"
QUESTIONS: Final = (
    "When does the ferry to Ostholm leave?",
    "Which pier does the ferry to Ostholm leave from, and when?",
    "ferry Ostholm departure time",
    "At what time does the Ostholm ferry leave?",
)
TOOLS: Final = (
    "extract_relevant",
    "fetch_and_prune_html",
    "raptor_query",
    "research",
    "search_web",
)
READING: Final = TOOLS[:3]
_FAULT_SENTENCE: Final = "ended by a fault of Winnow"


def _page(number: int) -> bytes:
    fill = (
        f"<p>Ticket {number} costs {number % 40 + 3} crowns at the red office.</p>" * 3
    )
    return (
        f"<title>Ferry {number}</title><h1>Ferry</h1><p>The ferry to Ostholm leaves at "
        f"7:45 from pier two.</p>{fill}"
    ).encode()


Stream = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class World:
    """A server, and what it leans on."""

    place: Path
    rng: random.Random
    client: Client | None = None
    remote: Remote | None = None
    seconds: float = SECONDS
    """Time limit of a call."""
    port: int = 0
    routes: dict[str, bytes | Stream] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    @property
    def folder(self) -> Path:
        """The documents."""
        return self.place / "documents"

    @property
    def cache(self) -> Path:
        """The cache's folder."""
        return self.place / "cache"

    def url(self, path: str) -> str:
        """Return the address of a path of the site."""
        return f"http://127.0.0.1:{self.port}{path}"

    def good(self) -> Path:
        """Write a good page that no cache has, and return it."""
        number = next(self.numbers)
        path = self.folder / f"ferry{number}.html"
        path.write_bytes(_page(number))
        return path

    def put(self, answer: bytes | Stream) -> str:
        """Let a new address answer; return it."""
        path = f"/p{next(self.numbers)}"
        self.routes[path] = answer
        return self.url(path)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one request with bytes as they are, or by a function."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode("latin-1").partition("?")[0]
            answer = self.routes.get(path, _whole(b"", status="404 No"))
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        writer.close()

    async def asked(
        self, tool: str = "", *, sources: list[str] | None = None, good: str = FACT
    ) -> str:
        """Ask by a tool, for one of those that read sources where there are some; return
        what is wrong with the outcome."""
        tool = tool or self.rng.choice(READING if sources else TOOLS)
        given: dict[str, object] = {"question": self.rng.choice(QUESTIONS)}
        if tool in READING:
            given["sources"] = sources or [str(self.good())]
        elif sources is None:
            self.good()
        given["max_tokens"] = self.rng.choice((300, 600, 1_500))
        if tool == "search_web":
            del given["max_tokens"]
        if tool not in READING:  # over many pages that say the same
            good = "erry" if good else ""
        assert self.client is not None
        began = time.monotonic()
        text, is_error = "nothing was said", True
        with anyio.move_on_after(self.seconds + GRACE + 20):
            try:
                result = await self.client.call_tool(tool, given)
                text, is_error = _text(result), bool(result.is_error)
            except MCPError as error:
                return f"{tool}: {error}"
        over = time.monotonic() - began - self.seconds
        return _judged(f"{tool} {given}", text, over, good, is_error=is_error)


def _judged(asked: str, text: str, over: float, good: str, *, is_error: bool) -> str:
    """Return what is wrong with an answer: seconds `over` its time, a crash, or without the
    good page."""
    if over > GRACE + LATE:
        return f"{asked}: {over:.1f} s late: {text[:80]}"
    if _FAULT_SENTENCE in text or "Traceback" in text or text == "nothing was said":
        return f"{asked}: {text[:200]}"
    if good and good not in text:
        return f"{asked}: the good page is lost: {text[:300]}"
    if is_error and not text.rstrip().endswith((".", "?")):
        return f"{asked}: no sentence: {text[:200]}"
    return ""


def _text(result: CallToolResult) -> str:
    return "".join(getattr(part, "text", "") for part in result.content)


def _whole(
    body: bytes, *more: str, status: str = "200 OK", kind: str = "text/html"
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *more]
    if not any(line.startswith(("Content-Length", "Transfer")) for line in more):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


Injected = Callable[[World], Awaitable[str]]
"""Injects a fault once and asks; returns what is wrong."""


class Fault(NamedTuple):
    """One way in which things break."""

    inject: Injected
    settings: Mapping[str, str] = MappingProxyType({})
    """Of the server; `{site}` and `{model}` are addresses."""
    at_once: int = 1
    """Tries at the same time."""


# Sources


async def _boom_reader(world: World) -> str:
    heavy = world.rng.random() < 0.3
    name = f"x{next(world.numbers)}.{'heavy' if heavy else 'light'}"
    path = world.folder / name
    path.write_bytes(boom_file(world.rng.choice(list(ERRORS)), heavy=heavy))
    try:
        return await world.asked(
            sources=world.rng.sample([str(world.good()), str(path)], 2)
        )
    finally:
        path.unlink()


_NO_LEAVES: Final = (
    b"",
    b" \n\t",
    b"<frameset><frame src=x></frameset>",
    b"<rss><channel></channel></rss>",
    b"<feed xmlns='http://www.w3.org/2005/Atom'/>",
    b"<html><body><script>1</script></body></html>",
    b"<p hidden>Nothing is seen.</p>",
    b"<nav><a href=/>Home</a></nav>",
    b"<img src=x>",
    b"<table><tr><td></table>",
    b"\xe2\x80\x8b",
    b"<p>&nbsp;</p>",
    b"a",
    b"<!doctype html>",
    b"[]",
    b"{}",
    b"<urlset/>",
    b"# ",
    b"---\ntitle: x\n---\n",
    b"<svg/>",
    b"BEGIN:VCALENDAR\nEND:VCALENDAR\n",
    b"{\\rtf1}",
    b"\n\n\n,,,\n",
    b"<opml><body/></opml>",
)


async def _no_leaves(world: World) -> str:
    kind = world.rng.choice(("html", "xml", "rss", "md", "csv", "json", "txt", "ics"))
    path = world.folder / f"empty{next(world.numbers)}.{kind}"
    path.write_bytes(world.rng.choice(_NO_LEAVES))
    beside = [str(world.good())] if world.rng.random() < 0.6 else []
    try:
        return await world.asked(
            world.rng.choice(("raptor_query", *READING)),
            sources=[*beside, str(path)],
            good=FACT if beside else "",
        )
    finally:
        path.unlink()


async def _changing(world: World) -> str:
    """A file that is deleted, replaced, emptied or linked away while it is read."""
    path = world.folder / f"changing{next(world.numbers)}.html"
    path.write_bytes(_page(1) * 300)
    how = world.rng.choice(
        ("unlink", "empty", "folder", "fifo", "loop", "grow", "zero")
    )
    failed: list[str] = []

    async def change() -> None:
        await anyio.sleep(world.rng.choice((0, 0.001, 0.01, 0.05)))
        if how == "empty":
            path.write_bytes(b"")
        elif how == "grow":
            path.write_bytes(_page(2) * 300)
        elif how == "zero":
            os.truncate(path, 10**6)
        else:
            path.unlink()
            if how == "folder":
                path.mkdir()
            elif how == "fifo":
                os.mkfifo(path)
            elif how == "loop":
                path.symlink_to(path.name)

    async with anyio.create_task_group() as group:
        group.start_soon(change)
        failed.append(await world.asked(sources=[str(path), str(world.good())]))
    with suppress(OSError):
        path.rmdir() if how == "folder" else path.unlink()
    return f"{how}: {failed[0]}" if failed[0] else ""


async def _too_long(world: World) -> str:
    """One page, or three, of up to 9.6 MB in 160,000 blocks, or in lines that are none."""
    paths = [
        _write_long(world, next(world.numbers))
        for _ in range(world.rng.choice((1, 1, 3)))
    ]
    sources = [str(path) for path in (*paths, world.good())]
    try:
        return await world.asked(sources=world.rng.sample(sources, len(sources)))
    finally:
        for path in paths:
            path.unlink()


def _write_long(world: World, number: int) -> Path:
    rng = world.rng
    path = world.folder / f"tickets{number}.{rng.choice(('html', 'txt'))}"
    form = rng.choice(("<p>{}</p>", "<li>{}", "<tr><td>{}", "{}"))
    rows = (f"Ticket {n} of {number} costs {n % 40} crowns here." for n in range(10**6))
    count = rng.choice((40_000, 160_000))
    path.write_text("\n".join(form.format(next(rows)) for _ in range(count)))
    return path


def _drip(piece: bytes, head: bytes = b"") -> Stream:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await anyio.sleep(0.2)

    return write


async def _silent(_writer: asyncio.StreamWriter) -> None:
    await anyio.sleep(10 * SECONDS)


_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


async def _slow_origin(world: World) -> str:
    way = world.rng.choice(
        (
            _silent,
            _drip(b"<"),
            _drip(b"X: y\r\n", _HEAD),
            _drip(b"<p>more", _HEAD + b"\r\n"),
            _drip(b"1\r\nx\r\n", _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"),
            _drip(b"", _HEAD + b"Content-Length: 900\r\n\r\n<p>half"),
        )
    )
    bad = [world.put(way) for _ in range(world.rng.choice((1, 1, 3)))]
    return await world.asked(
        sources=world.rng.sample([str(world.good()), *bad], 1 + len(bad))
    )


def _cut(rng: random.Random, body: bytes) -> bytes:
    packed = gzip.compress(body)
    part = packed[: rng.randrange(len(packed))]
    length = f"Content-Length: {len(body)}"
    return rng.choice(
        (
            _whole(body[: rng.randrange(len(body))], length),
            _whole(part, "Content-Encoding: gzip"),
            _whole(packed, "Content-Encoding: br"),
            _whole(body, "Content-Encoding: gzip"),
            _whole(b"ffff\r\n" + body, "Transfer-Encoding: chunked"),
            _whole(b"zz\r\n" + body, "Transfer-Encoding: chunked"),
            _whole(b"", length, "Location: /nowhere", status="302 Found"),
            b"HTTP/1.1 200",
            b"",
            b"\x00" * 90,
            _whole(body, length, "Content-Length: 5"),
            _whole(
                damaged(make_docx(paragraph("Ferry.")), rng), kind="application/zip"
            ),
            _whole(make_pdf([[("Ferry", 11)] * 9])[:-200], kind="application/pdf"),
            damaged(_whole(body), rng),
        )
    )


async def _truncated(world: World) -> str:
    bad = world.put(_cut(world.rng, _page(3) * 20))
    return await world.asked(sources=world.rng.sample([str(world.good()), bad], 2))


async def _crowd(world: World) -> str:
    """Slow origins under 64 calls at once: who finds no place is said so."""
    bad = world.put(world.rng.choice((_silent, _drip(b"<p>more", _HEAD + b"\r\n"))))
    return await world.asked(sources=[str(world.good()), bad], good="")


# Models


def _broken_json(rng: random.Random, answer: object) -> Response:
    """Return an answer of a model with a value of it replaced, or its bytes damaged."""
    odd: Any = rng.choice(
        (
            None,
            [],
            {},
            "x",
            -1,
            1e39,
            True,
            [[]],
            "NaN",
            10**400 if rng.random() < 0.1 else 7,
        )
    )

    def replaced(value: object, depth: int) -> object:
        if depth == 0 or not isinstance(value, dict | list) or not value:
            return odd
        if isinstance(value, dict):
            key = rng.choice(list(value))
            return {**value, key: replaced(value[key], depth - 1)}
        at = rng.randrange(len(value))
        return [*value[:at], replaced(value[at], depth - 1), *value[at + 1 :]]

    body = json.dumps(replaced(answer, rng.randrange(5))).encode()
    if rng.random() < 0.3:
        body = damaged(json.dumps(answer).encode(), rng)
    if rng.random() < 0.1:
        body = body.replace(b"0.5", b"NaN")
    return Response(body, media_type="application/json")


def _vectors(body: dict[str, object]) -> dict[str, object]:
    texts = body["input"]
    assert isinstance(texts, list)
    rows = [
        {"object": "embedding", "index": n, "embedding": [0.5, len(text) % 7 / 7, 0.1]}
        for n, text in enumerate(texts)
    ]
    return {"object": "list", "data": rows, "model": "m"}


def _ranks(body: dict[str, object]) -> dict[str, object]:
    texts = body["documents"]
    assert isinstance(texts, list)
    return {
        "results": [{"index": n, "relevance_score": 0.5} for n in range(len(texts))]
    }


def _chat(_body: dict[str, object]) -> dict[str, object]:
    message = {"role": "assistant", "content": "The ferry leaves at 7:45."}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def _said(
    answer: Callable[[dict[str, object]], object],
) -> Callable[[dict[str, object]], Response]:
    return lambda body: JSONResponse(answer(body))


_PATHS: Final[dict[str, tuple[str, Callable[[dict[str, object]], object]]]] = {
    "embedder": ("/embeddings", _vectors),
    "reranker": ("/rerank", _ranks),
    "generator": ("/chat/completions", _chat),
}


def _model(role: str, how: str) -> Injected:
    async def inject(world: World) -> str:
        remote, rng = world.remote, world.rng
        assert remote is not None
        path, answer = _PATHS[role]

        def say(body: dict[str, object]) -> Response:
            if how == "malformed":
                return _broken_json(rng, answer(body))
            if how == "late":
                remote.release.wait(2 * SECONDS)
                return JSONResponse(answer(body))
            code = rng.choice((400, 401, 404, 408, 413, 418, 429, 500, 502, 503))
            more = {"Retry-After": "9999"} if rng.random() < 0.3 else {}
            return PlainTextResponse("out of memory", code, headers=more)

        remote.will(path, say)
        return await world.asked()

    return inject


# Search services


async def _search_fails(world: World) -> str:
    rows = [{"title": "Boats", "url": world.url("/none"), "content": "Boats."}]
    whole = json.dumps({"results": rows, "unresponsive_engines": [["a", "b"]]}).encode()
    rng = world.rng
    odd = bytes(_broken_json(rng, {"results": rows * 3}).body)
    replies: Sequence[bytes | Stream] = (
        *(
            _whole(b"no", status=f"{code} No")
            for code in (400, 403, 404, 429, 500, 503)
        ),
        _whole(odd, kind="application/json"),
        _whole(odd, kind="application/json"),
        _whole(whole[: rng.randrange(len(whole))], kind="application/json"),
        _whole(b"<html>", kind="text/html"),
        b"",
        b"HTTP/1.1 200",
        _whole(whole, f"Content-Length: {len(whole) + 9}"),
        _silent,
        _drip(b"{", _HEAD + b"\r\n"),
    )
    world.routes["/search"] = rng.choice(replies)
    return await world.asked(rng.choice(("research", "search_web")))


async def _boom_provider(world: World) -> str:
    error = {"error": world.rng.choice(list(ERRORS))}
    world.routes["/"] = _whole(json.dumps(error).encode(), kind="application/json")
    return await world.asked(world.rng.choice(("research", "search_web")))


async def _boom_tool(world: World) -> str:
    """A tool that crashes says so in a sentence, and the next call is answered."""
    assert world.client is not None
    name = world.rng.choice(list(ERRORS))
    result = await world.client.call_tool("boom", {"question": name})
    if not result.is_error or _FAULT_SENTENCE not in _text(result):
        return f"{name}: {_text(result)[:200]}"
    return await world.asked()


# Cache and disk


async def _locked(world: World) -> str:
    """Another process takes the cache's databases in the middle of a call."""
    words = world.rng.choice(("BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"))
    wait, hold = world.rng.random() / 4, world.rng.random()
    others: list[sqlite3.Connection] = []

    async def take() -> None:
        await anyio.sleep(wait)
        for path in world.cache.rglob("cache.db"):
            other = sqlite3.connect(path, isolation_level=None, timeout=0)
            others.append(other)
            with suppress(sqlite3.Error):
                other.execute(words)
        await anyio.sleep(hold)

    failed: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(take)
        failed.append(await world.asked())
    for other in others:
        other.close()
    return failed[0]


@asynccontextmanager
async def _limited(what: int, soft: int) -> AsyncIterator[None]:
    before, most = resource.getrlimit(what)
    resource.setrlimit(what, (soft, most))
    try:
        yield
    finally:
        resource.setrlimit(what, (before, most))


async def _full(world: World) -> str:
    """No file grows beyond some kilobytes, as on a full disk."""
    sources = [str(world.good())]
    tool = world.rng.choice(TOOLS)
    world.good()
    async with _limited(resource.RLIMIT_FSIZE, world.rng.choice((0, 1, 5, 40)) * 1024):
        return await world.asked(tool, sources=sources)


async def _no_descriptors(world: World) -> str:
    """The process has as good as no file descriptors left."""
    sources = [str(world.good())]
    tool = world.rng.choice(TOOLS)
    open_now = max(map(int, os.listdir("/proc/self/fd")))
    spare = world.rng.choice((0, 1, 2, 5))
    async with _limited(resource.RLIMIT_NOFILE, open_now + 1 + spare):
        # Without a descriptor nothing can be read: a sentence will do.
        return await world.asked(tool, sources=sources, good="")


async def _lost_cache(world: World) -> str:
    """Files of the cache are deleted, emptied, cut or overwritten while it serves.

    The index of a log, which SQLite maps into memory, is deleted only: who cuts that
    short ends every process that has it open (SIGBUS)."""
    rng = world.rng

    async def harm() -> None:
        await anyio.sleep(rng.random() / 10)
        paths = [path for path in world.cache.rglob("*") if path.is_file()]
        for path in rng.sample(paths, min(len(paths), rng.choice((1, 3, 50)))):
            with suppress(OSError):
                match 0 if path.name.endswith("-shm") else rng.randrange(4):
                    case 0:
                        path.unlink()
                    case 1:
                        path.write_bytes(b"")
                    case 2:
                        path.write_bytes(damaged(path.read_bytes(), rng))
                    case _:
                        path.write_bytes(rng.randbytes(5_000))

    failed: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(harm)
        failed.append(await world.asked())
    return failed[0]


_ODD_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 10**30, 1e300, "", "x", [], {}, [[]], [None], {"a": {}}),
    *({"html": 7}, {"url": []}, "\ud800", "y" * 3_000_000, [0] * 200_000),
    [{"a": [{"b": None}]}] * 40,
)


async def _poisoned(world: World) -> str:
    """Another process of the same user writes rows: other types, other keys' values,
    huge ones, in the cache's own form."""
    rng = world.rng
    good = world.good()
    asked = {"question": rng.choice(QUESTIONS), "sources": [str(good)]}
    assert world.client is not None
    await world.client.call_tool("raptor_query", asked)
    await world.client.call_tool("extract_relevant", asked)
    stores = open_stores(world.cache, size_limit=50_000_000, clock=time.time)
    for store in stores.by_kind.values():
        keys = store.keys("")
        for key in rng.sample(keys, min(len(keys), 20)):
            other = rng.choice(keys)
            kept = store.get_bytes(other)
            match rng.randrange(4):
                case 0 if kept is not None:
                    store.set_bytes(key, kept)
                case 1:
                    store.set_bytes(key, rng.randbytes(rng.choice((0, 3, 400, 90_000))))
                case 2:
                    store.set_json(key, store.get_json(other))
                case _:
                    store.set_json(key, rng.choice(_ODD_VALUES))
    stores.close()
    return await world.asked(sources=[str(good)])


# Processes, and the caller


async def _converter_killed(world: World) -> str:
    """The process that converts documents is killed at some moment of a conversion."""
    number = next(world.numbers)
    path = world.folder / f"report{number}.{world.rng.choice(('pdf', 'docx'))}"
    lines = [
        f"Line {n} of report {number}: the red office is closed." for n in range(400)
    ]
    if path.suffix == ".pdf":
        path.write_bytes(
            make_pdf(
                [[(line, 11) for line in lines[n : n + 40]] for n in range(0, 400, 40)]
            )
        )
    else:
        path.write_bytes(make_docx("".join(map(paragraph, lines))))
    wait = world.rng.choice((0.0, 0.02, 0.1, 0.3, 0.6))

    async def kill() -> None:
        for _ in range(world.rng.choice((1, 1, 3))):
            await anyio.sleep(wait)
            for listed in Path("/proc/self/task").glob("*/children"):
                for child in listed.read_text().split():
                    with suppress(ProcessLookupError):
                        os.kill(int(child), signal.SIGKILL)

    failed: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(kill)
        failed.append(await world.asked(sources=[str(world.good()), str(path)]))
    path.unlink()
    return failed[0]


async def _cancelled(world: World) -> str:
    """A call is cancelled at some moment; the next one is answered."""
    assert world.client is not None
    tool = world.rng.choice(TOOLS)
    given: dict[str, object] = {"question": world.rng.choice(QUESTIONS)}
    if tool in READING:
        given["sources"] = [str(world.good()), str(world.folder)]
    with anyio.move_on_after(world.rng.choice((0.0, 0.005, 0.02, 0.1, 0.4))):
        await world.client.call_tool(tool, given)
    return await world.asked()


_PACKAGE: Final = {"search": "boom,folder", "keys": "boom=k", "seconds": f"{SECONDS}"}
_WORDS: Final = {"embedder": "none", "reader": "none"}
_MODELS: Final = {"search": "folder"}


def _models(*roles: str) -> dict[str, str]:
    return _MODELS | dict.fromkeys(roles, "openai:{model}#m")


FAULTS: Final = {
    "an exception in a reader": Fault(_boom_reader, _PACKAGE | _WORDS),
    "an exception in a provider": Fault(_boom_provider, _PACKAGE | _WORDS),
    "an exception in a tool": Fault(_boom_tool, _PACKAGE | _WORDS),
    "a source without leaves": Fault(_no_leaves),
    "a file that changes": Fault(_changing),
    "a page that is too long": Fault(_too_long, {"seconds": "25"}),
    "a slow origin": Fault(_slow_origin, at_once=AT_ONCE),
    "slow origins of a crowd": Fault(_crowd, at_once=64),
    "a truncated body": Fault(_truncated),
    "a malformed embedding": Fault(
        _model("embedder", "malformed"), _models("embedder")
    ),
    "an embedder that fails": Fault(_model("embedder", "failing"), _models("embedder")),
    "an embedder that is late": Fault(
        _model("embedder", "late"), _models("embedder"), AT_ONCE
    ),
    "a malformed ranking": Fault(_model("reranker", "malformed"), _models("reranker")),
    "a reranker that fails": Fault(_model("reranker", "failing"), _models("reranker")),
    "a reranker that is late": Fault(
        _model("reranker", "late"), _models("reranker"), AT_ONCE
    ),
    "malformed words of a model": Fault(
        _model("generator", "malformed"), _models("generator")
    ),
    "a generator that fails": Fault(
        _model("generator", "failing"), _models("generator")
    ),
    "a generator that is late": Fault(
        _model("generator", "late"), _models("generator"), AT_ONCE
    ),
    "a search service that fails": Fault(
        _search_fails, {"searxng": "{site}", "search": "searxng,folder"}
    ),
    "a cache that is locked": Fault(_locked),
    "a disk that is full": Fault(_full),
    "no file descriptors": Fault(_no_descriptors),
    "a cache that is lost": Fault(_lost_cache),
    "rows that are poisoned": Fault(_poisoned),
    "a converter that is killed": Fault(_converter_killed),
    "a call that is cancelled": Fault(_cancelled),
}


@asynccontextmanager
async def _world(
    place: Path, rng: random.Random, settings: Mapping[str, str]
) -> AsyncIterator[World]:
    """Yield a server, in a process of its own where another package belongs to it."""
    world = World(place, rng)
    world.folder.mkdir(parents=True)
    (world.folder / "museum.html").write_text(
        "<title>Museum</title><h1>Museum</h1><p>The museum shows nets and ropes.</p>"
    )
    async with AsyncExitStack() as stack:
        world.port = await stack.enter_async_context(serving(world.serve))
        world.remote = stack.enter_context(model_server())
        for path, answer in _PATHS.values():
            world.remote.will(path, _said(answer))
        given = {
            "folders": str(world.folder),
            "cache": str(world.cache),
            "networks": "loopback",
            "web": "named",
            "seconds": f"{SECONDS}",
            "search": "folder",
        } | {
            name: value.format(site=world.url(""), model=world.remote.url)
            for name, value in settings.items()
        }
        world.seconds = float(given["seconds"])
        if settings.get("keys") == "boom=k":
            variables = {f"WINNOW_{name.upper()}": text for name, text in given.items()}
            other = package(place / "other", world.url("/"))
            parameters = StdioServerParameters(
                command=sys.executable,
                args=["-m", "server"],
                env=os.environ
                | variables
                | {"PYTHONPATH": str(other), "WINNOW_DAEMON": "off"},
                cwd=ROOT,
            )
            errors = stack.enter_context((place / "stderr").open("w"))
            world.client = await stack.enter_async_context(
                Client(stdio_client(parameters, errlog=errors))
            )
        else:
            server = build_server(read_settings(given, {}))
            server.admission = Admission(2 * AT_ONCE)
            world.client = await stack.enter_async_context(Client(server))
        yield world


async def tried(name: str, rng: random.Random, count: int) -> list[str]:
    """Inject a fault so many times; return what came of each, empty for an answer."""
    fault = FAULTS[name]
    failed: list[str] = []
    places = anyio.Semaphore(fault.at_once)

    async def inject(world: World) -> None:
        async with places:
            what = await fault.inject(world)
            failed.append(f"{name}: {what}" if what else "")

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        async with (
            _world(Path(place).resolve(), rng, fault.settings) as world,
            anyio.create_task_group() as group,
        ):
            for _ in range(count):
                group.start_soon(inject, world)
    return failed


def faults(rng: random.Random, count: int) -> Iterator[str]:
    """Each fault of the table, `count` tries in all."""
    each = -(-count // len(FAULTS))
    for name in FAULTS:
        yield from anyio.run(tried, name, random.Random(rng.random()), each)


def main() -> int:
    """Try the faults; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("fault", nargs="?", choices=FAULTS)
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--seed", type=int, default=44)
    wanted = parser.parse_args()
    failed = 0
    for name in FAULTS if wanted.fault is None else (wanted.fault,):
        began = time.monotonic()
        through = anyio.run(
            tried, name, random.Random(f"{wanted.seed} {name}"), wanted.times
        )
        came = [one for one in through if one]
        failed += len(came)
        print(
            f"{name:32} tried {len(through):4} through {len(came):3} {time.monotonic() - began:6.1f} s",
            flush=True,
        )
        for one in came[:4]:
            print(f"  {one[:400]}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
