"""The part of the attack set that knocks at doors: bytes over HTTP, requests at the
desk, messages over stdio.

Each door is a process of its own, as a person starts it; after the tries it must still
answer. Not for: callers that take all there is, and tokens (`bench/attack_http.py`).
"""

import copy
import json
import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support import LIBRARY
from tests.support.desk import desk_served
from tests.support.life import started
from tests.support.processes import HELLO, READY, answer_to, call, line, say, served

_TOKEN: Final = "anna-4711-of-winnow"  # noqa: S105  of these tries
_WAIT: Final = 3.0
"""Seconds for an answer to one request; a broken one is waited for, and has none."""
_IDLE: Final = 0.3
"""Seconds after an answer in which another would come."""
_LONGEST: Final = 100_000
_PING: Final = json.dumps(HELLO).encode()
_PATHS: Final = (
    "/mcp",
    "//mcp",
    "/mcp/",
    "/mcp/../mcp",
    "/%6dcp",
    "/mcp%00",
    "/mcp?token=x",
    "/MCP",
    "/mcp;a",
    "/./mcp",
    "/metrics",
    "/docs",
    "/openapi.json",
    "/.env",
    "/../../etc/passwd",
    "/mcp/%2e%2e/admin",
    "*",
    "http://127.0.0.1/mcp",
    "/" + "a" * 9_000,
    "/mcp#x",
    "/\x7f",
    "/desk",
    "/status",
)
_METHODS: Final = (
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "TRACE",
    "CONNECT",
    "OPTIONS",
    "XYZZY",
)
_NO_TOKEN: Final = (
    "",
    "Authorization: Bearer",
    "Authorization: Bearer x",
    "Authorization: Basic YTpi",
    f"Authorization: bearer {_TOKEN}x",
    f"Authorization: Bearer {_TOKEN[:-1]}",
    f"Authorization: Bearer {_TOKEN.upper()}",
    f"Cookie: token={_TOKEN}",
    f"X-Api-Key: {_TOKEN}",
    f"Proxy-Authorization: Bearer {_TOKEN}",
    f"Authorization: Token {_TOKEN}",
    f"Authorization: Bearer x\r\nAuthorization: Bearer {_TOKEN}x",
    "Authorization: Bearer " + "a" * 9_000,
    "X-Forwarded-User: anna",
    "X-Original-URL: /health",
    "X-HTTP-Method-Override: GET",
)
_FOREIGN: Final = (
    "Host: evil.example",
    "Host: 127.0.0.1.evil.example",
    "Host:",
    "Host: a\r\nHost: b",
    "Origin: https://evil.example",
    "Origin: null",
    "Origin: http://127.0.0.1.evil.example",
    "Origin: file://",
    "Sec-Fetch-Site: cross-site\r\nOrigin: https://evil.example",
)


def _smuggled(at: str) -> tuple[bytes, ...]:
    """Return requests within requests: the inner one has no token."""
    inner = f"POST /mcp HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\n\r\n".encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\n".encode()
    return (
        head
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        + inner,
        head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde" + inner,
        head + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
        head
        + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"
        + inner,
        head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + inner,
        head + b"Content-Length: -5\r\n\r\n" + inner,
        head + b"Content-Length: 99999999999\r\n\r\nx",
        head + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        head + b"\r\n".join(b"X%d: y" % n for n in range(3_000)) + b"\r\n\r\n",
        head.replace(b"HTTP/1.1", b"HTTP/9.9") + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\0" * 500,
        b"GET /mcp\r\n\r\n",
        head[:-2] + b" folded\r\n\tX: y\r\n\r\n",
    )


def _requests(rng: random.Random, at: str, count: int) -> Iterator[bytes]:
    """Yield requests none of which may be let in."""
    smuggled = _smuggled(at)
    for number in range(count):
        if number % 4 == 3:
            yield smuggled[(number // 4) % len(smuggled)]
            continue
        foreign = number % 4 == 2
        line = f"Authorization: Bearer {_TOKEN}" if foreign else rng.choice(_NO_TOKEN)
        odd = _FOREIGN[(number // 4) % len(_FOREIGN)] if foreign else ""
        host = "" if odd.startswith("Host") else f"Host: {at}"
        method, path = (
            ("POST", "/mcp") if foreign else (rng.choice(_METHODS), rng.choice(_PATHS))
        )
        lines = [
            f"{method} {path} HTTP/1.1",
            host,
            line,
            odd,
            "Content-Type: application/json",
        ]
        lines += [
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(_PING)}",
        ]
        lines.append("Connection: close")
        yield "\r\n".join([*filter(None, lines), "", ""]).encode() + _PING


def _said(port: int, request: bytes) -> bytes:
    """Return what is answered to bytes, empty where the connection is closed."""
    with (
        suppress(OSError),
        socket.create_connection(("127.0.0.1", port), _WAIT) as wire,
    ):
        wire.settimeout(_WAIT)
        wire.sendall(request)
        found = b""
        with suppress(TimeoutError):
            while len(found) < _LONGEST and (piece := wire.recv(65_536)):
                found += piece
                wire.settimeout(_IDLE)
        return found
    return b""


def _statuses(said: bytes) -> list[int]:
    lines = [line.split() for line in said.splitlines() if line.startswith(b"HTTP/1.")]
    return [int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()]


def http(rng: random.Random, count: int) -> Iterator[str]:
    """Requests without a valid token, from foreign pages, with odd paths and methods,
    smuggled, or too large."""
    with (
        tempfile.TemporaryDirectory() as place,
        served(Path(place), http_tokens=_TOKEN, embedder="none") as (_, url),
    ):
        port = urlsplit(url).port or 0
        _until_open(port)
        at = f"127.0.0.1:{port}"
        for request in _requests(rng, at, count):
            said = _said(port, request)
            codes = _statuses(said)
            let_in = any(200 <= code < 300 for code in codes) or b"research" in said
            broken = 500 in codes or b"Traceback" in said
            yield f"{codes} to {request[:90]!r}" if let_in or broken else ""
        lines = [f"POST /mcp HTTP/1.1\r\nHost: {at}", f"Authorization: Bearer {_TOKEN}"]
        lines += ["Content-Type: application/json", f"Content-Length: {len(_PING)}"]
        lines += ["Accept: application/json, text/event-stream", "", ""]
        if 200 not in _statuses(_said(port, "\r\n".join(lines).encode() + _PING)):
            yield "the server does not let in who has a token"


def _until_open(port: int) -> None:
    """Wait until a port is listened at."""
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), _WAIT):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens at {port}")


_ODD: Final = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"7",
    b'"x"',
    b"{}",
    b'{"id":1}',
    b"[" * 20_000,
    b"\xff\xfe",
    b"{" * 9_000,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    b'{"jsonrpc":"1.0","id":1,"method":"x"}',
    b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"tool":"fetch","arguments":"x"}',
    b'{"tool":"research","arguments":{"question":' + b'"x' * 9 + b"}}",
)


def desk(rng: random.Random, count: int) -> Iterator[str]:
    """Requests at the desk without its token or from other pages, and malformed
    messages with it."""
    with (
        tempfile.TemporaryDirectory() as place,
        desk_served(Path(place, "cache")) as url,
    ):
        parts = urlsplit(url)
        port, own = parts.port or 0, parts.path
        at = f"127.0.0.1:{port}"
        paths = (
            "message",
            "sessions",
            "",
            "settings",
            "tree",
            "../message",
            "%2e%2e/",
            "export",
        )
        for number in range(count):
            with_token = number % 2
            odd = rng.choice(
                ("Origin: https://evil.example", "Origin: null", "Host: evil.example")
            )
            token = (
                own
                if with_token
                else rng.choice(("/", "/x/", own[:-2] + "/", own.upper()))
            )
            foreign = with_token and rng.random() < 0.3
            lines = [
                f"{rng.choice(_METHODS)} {token}{rng.choice(paths)} HTTP/1.1",
                "" if foreign and odd.startswith("Host") else f"Host: {at}",
                odd if foreign else f"Origin: http://{at}",
                rng.choice(
                    ("Content-Type: application/json", "Content-Type: text/plain", "")
                ),
            ]
            body = rng.choice(_ODD)
            lines += [f"Content-Length: {len(body)}", "Connection: close"]
            if number % 9 == 8:
                lines[0] = "OPTIONS * HTTP/1.1"
            said = _said(
                port, "\r\n".join([*filter(None, lines), "", ""]).encode() + body
            )
            codes = _statuses(said)
            let_in = any(200 <= code < 300 for code in codes) and (
                foreign or not with_token
            )
            broken = 500 in codes or b"Traceback" in said or b"root:x" in said
            yield (
                f"{codes} to {lines[0]} {odd if foreign else ''} {body[:40]!r}"
                if let_in or broken
                else ""
            )
        good = f"GET {own} HTTP/1.1\r\nHost: {at}\r\n\r\n".encode()
        if 200 not in _statuses(_said(port, good)):
            yield "the desk answers no longer"


_LINES: Final = (
    *filter(None, _ODD),
    b"\0" * 400,
    b"GET / HTTP/1.1",
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":-1,"method":"' + b"x" * 100_000 + b'"}',
    b'{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"1066-10-14"}}',
    b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"research","arguments":null}}',
    b'{"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{}}',
    b'{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"x"}}',
    b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]',
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
)
_TOOLS: Final = (
    "research",
    "search_web",
    "fetch_and_prune_html",
    "extract_relevant",
    "raptor_query",
)
_NAMES: Final = (
    *(
        "question",
        "sources",
        "max_tokens",
        "part",
        "cursor",
        "session",
        "mode",
        "format",
    ),
    *("max_results", "page", "freshness", "language", "draft", "max_pages"),
)


def _value(rng: random.Random) -> object:
    page = str(LIBRARY / "ferry-winter-cuts.html")
    return rng.choice(
        (
            None,
            True,
            -1,
            0,
            10**12,
            0.5,
            "",
            "x",
            "\x00",
            "\ud7ff\u202e",
            "a" * 9_000,
            [],
            [[]],
            {},
            [None],
            ["."],
            [page],
            [page] * 30,
            "winnow://session/0",
            "winnow://page/x",
            "../..",
            "markdown",
            ["http://127.0.0.1/"],
            "ferry",
            "minibus?",
            "whole",
            "sql: SELECT (",
            "2026-13-40",
            {"a": {}},
        )
    )


def messages(rng: random.Random, count: int) -> Iterator[str]:
    """Lines that are not messages, a call after each; then calls with arguments at
    random. Each call is answered, and no error of Python's is in an answer."""
    with tempfile.TemporaryDirectory() as place, started(Path(place)) as process:
        say(process, HELLO, READY)
        answer_to(process, 1)
        for number in range(2, count + 2):
            if number % 7 == 0 and process.stdin is not None:
                process.stdin.write(_LINES[(number // 7) % len(_LINES)] + b"\n")
                say(process, {"jsonrpc": "2.0", "id": number, "method": "ping"})
                asked: object = _LINES[(number // 7) % len(_LINES)][:80]
            else:
                given = {
                    name: _value(rng)
                    for name in rng.sample(_NAMES, rng.randrange(1, 5))
                }
                tool = rng.choice(_TOOLS)
                say(process, call(number, tool, **given))
                asked = f"{tool} {str(given)[:120]}"
            try:
                reported = json.dumps(answer_to(process, number))
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                yield f"{asked}: {error}"
                return
            yield (
                f"{asked}: a traceback"
                if "Traceback" in reported or "Error(" in reported
                else ""
            )


_CALLS: Final[tuple[dict[str, object], ...]] = (
    {"method": "ping"},
    {"method": "tools/list", "params": {"cursor": None}},
    {"method": "resources/list"},
    {"method": "resources/templates/list"},
    {"method": "resources/read", "params": {"uri": "winnow://status"}},
    {"method": "prompts/list"},
    {"method": "prompts/get", "params": {"name": "x", "arguments": {"a": "b"}}},
    {"method": "logging/setLevel", "params": {"level": "info"}},
    {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "no"}},
    {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 2}},
    {"method": "notifications/roots/list_changed"},
    {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt"}}},
    {"method": "tools/call", "params": {"name": "research", "arguments": {}}},
    {"method": "initialize", "params": HELLO["params"]},
    {"result": {}},
    {"error": {"code": -1, "message": "no"}},
)
_ODD_JSON: Final = (
    *(b"null", b"true", b"-1", b"1e400", b"9" * 400, b"1.5", b"NaN", b'""', b"[]"),
    *(
        b"{}",
        b'"\\ud83d"',
        b'"\\u0000"',
        b"[" * 250 + b"]" * 250,
        b'{"a":' * 90 + b"}" * 90,
    ),
    *(b'"\xff"', b'"' + "é😀\u202e\u2028".encode() + b'"', b'"' + b"x" * 70_000 + b'"'),
)


def _mutated_line(rng: random.Random, number: int) -> bytes:
    """Return one line: a message with values, fields or bytes of it changed."""
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": rng.choice((number, f"n{number}")),
    }
    message |= copy.deepcopy(rng.choice(_CALLS))
    for _ in range(rng.randrange(3)):
        inside = rng.choice(
            [message, *(m for m in message.values() if isinstance(m, dict) and m)]
        )
        key = rng.choice(list(inside))
        match rng.randrange(4):
            case 0:
                del inside[key]
            case 1:
                inside[
                    rng.choice(("id", "method", "params", "result", "_meta", "\ud800"))
                ] = inside[key]
            case 2:
                inside[key] = _value(rng)
            case _:
                inside[key] = "¤"
        message = json.loads(json.dumps(message)) or {"id": number}
    line = json.dumps(message).encode()
    while b'"\\u00a4"' in line:
        line = line.replace(b'"\\u00a4"', rng.choice(_ODD_JSON), 1)
    for _ in range(rng.choice((0, 0, 1, 2, 9))):
        at, length = rng.randrange(len(line) + 1), rng.choice((0, 1, 5, 40))
        piece = rng.choice(
            (
                b"",
                b",",
                b"{",
                b"]",
                b'"',
                b"\\",
                b"\0",
                b"\xff",
                rng.randbytes(3),
                line[at : at + length],
            )
        )
        line = line[:at] + piece + line[at + length :]
    return line.replace(b"\n", b" ").replace(b"\r", b" ")


def _wants_answer(line: bytes) -> bool:
    """Whether a line must be answered: all but notifications, responses and blanks."""
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return bool(line.strip())
    if not isinstance(message, dict):
        return True
    method = message.get("method", "")
    is_notice = isinstance(method, str) and method.startswith("notifications/")
    has_id = isinstance(message.get("id"), str | int)
    is_response = not message.keys().isdisjoint({"result", "error"})
    return not is_response and (has_id or not is_notice)


def garbled(rng: random.Random, count: int) -> Iterator[str]:
    """Lines with damage, a ping after each: every line that is a request, or nothing at
    all, is answered, and the connection lives; a fifth through a daemon."""
    by_daemon = -(-count // 5)
    for number, mode in ((count - by_daemon, "off"), (by_daemon, "on idle=1")):
        with tempfile.TemporaryDirectory() as place:
            given = {"WINNOW_DAEMON": mode, "XDG_RUNTIME_DIR": place}
            with started(Path(place, "cache"), **given) as process:
                say(process, HELLO, READY)
                answer_to(process, 1)
                for sent in range(number):
                    yield _answered(process, _mutated_line(rng, sent), f"after {sent}")


def _answered(process: subprocess.Popen[bytes], sent: bytes, ping: str) -> str:
    """Return what is wrong with the answers to a line and to the ping after it."""
    assert process.stdin is not None
    process.stdin.write(sent + b"\n")
    say(process, {"jsonrpc": "2.0", "id": ping, "method": "ping"})
    awaited, pinged = _wants_answer(sent), False
    try:
        while awaited or not pinged:
            answer = line(process)
            if answer.get("id") == ping:
                pinged = True
            elif "method" not in answer:
                awaited = False
                if "Traceback" in json.dumps(answer):
                    return f"{sent[:200]!r}: a traceback"
    except (AssertionError, OSError) as error:
        return f"{sent[:200]!r}: {error}"
    return ""
