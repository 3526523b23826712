"""The gate in front of the MCP application: probes, fixed bearer tokens, requests a
minute, shares of sessions and requests, and a body that arrives in time.

Plain ASGI, because the SDK's own checks know OAuth tokens only. Not for: OAuth
(`oauth.py`), Host and Origin, which the SDK's transport checks.
"""

import hashlib
import hmac
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extras.http.protocol import REQUEST_SECONDS
from server.calls import REQUEST_ID_HEADER, request_id
from server.settings import MEGABYTE
from server.version import VERSION

ALIVE: Final = "/healthz"
"""Liveness probe: answers while the event loop runs; no answer means restart."""
READY_PATHS: Final = frozenset({"/readyz", "/health"})
"""Readiness probe: false while the services open and while draining. A missing cache or
model server does not count: answers work without it."""
MINUTE: Final = timedelta(minutes=1).total_seconds()
MOST_SESSIONS: Final = 1_000
"""Most sessions of the 2025 protocol; 38 kB each."""
CALLER_SHARE: Final = 8
"""Each caller may always hold 1/n of the sessions, requests and streams."""
MOST_REQUESTS: Final = 512
"""Most concurrent requests and streams; a process may open 1,024 files by default."""
SESSION: Final = "mcp-session-id"
SESSION_IDLE: Final = timedelta(minutes=10).total_seconds()
"""Seconds after which a session without a request or an open stream ends."""
_TOO_MANY_OPEN: Final = JSONResponse(
    {"error": "Too many of your sessions or requests are open: close some, or retry."},
    429,
    {"Retry-After": "10"},
)


class Gate:
    """ASGI middleware around the MCP application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Sequence[str],
        per_minute: int,
        close: Callable[[], None] = lambda: None,
        is_open: Callable[[], bool] = lambda: True,
        accepted: Callable[[bytes], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wrap `app`: require one of the bearer `tokens` (empty: no check here).

        A caller may send `per_minute` requests a minute, as many at once; 0 for no
        limit. `clock` gives seconds. `close` is called at shutdown, so that no new call
        begins. `is_open` returns whether the services are open, `accepted` whether the
        application accepted a token.
        """
        self._app = app
        self._is_open = is_open
        self._tokens = [digest_of(token.encode()) for token in tokens]
        self._per_minute = per_minute
        self._clock = clock
        self._due: dict[bytes, float] = {}
        """Caller to the time at which all of its requests would have been due."""
        self._accepted = accepted
        self._shares = Shares(clock)
        self._close = close
        self._draining = False
        self._posts = 0
        """Requests that arrived before shutdown began."""
        self._quiet = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer probes, refuse requests over a limit, pass on the rest."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope, send = _named(scope, send)
        token = _bearer(Headers(scope=scope).get("authorization", ""))
        digest = digest_of(token) if token is not None else b""
        is_fixed = any(hmac.compare_digest(digest, fixed) for fixed in self._tokens)
        # Guessed tokens share the caller of their address.
        caller = digest if is_fixed or self._accepted(digest) else _address(scope)
        response = self._probed(scope["path"]) or self._refused(caller, is_fixed)
        if response is not None:
            await response(scope, receive, send)
            return
        if is_fixed:
            # The SDK binds a session to its user, and calls are fair by user.
            name = digest.hex()
            access = AccessToken(token=name, client_id=name, scopes=[])
            scope["user"] = AuthenticatedUser(access)
        with self._shares.request(caller) as has_room:
            if has_room:
                send = self._shares.watched(caller, scope, send)
                await self._pass(caller, scope, receive, send)
            else:
                await _TOO_MANY_OPEN(scope, receive, send)

    async def _pass(
        self, caller: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass a request to the application, after its whole body has arrived.

        Status 408 for a body that does not arrive in time; refused as full if the
        caller may open no more sessions.
        """
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:  # the client left or is too slow
            late = {"error": "The request body did not arrive in time."}
            await JSONResponse(late, 408)(scope, receive, send)
            return
        opens = SESSION not in Headers(scope=scope) and b'"initialize"' in body
        if opens and not self._shares.opens(caller):
            await _TOO_MANY_OPEN(scope, receive, send)
            return
        counted = not self._draining
        self._posts += counted
        try:
            await self._app(scope, _replayed(body, receive), send)
        finally:
            self._posts -= counted
            if not self._posts:
                self._quiet.set()

    async def drain(self) -> None:
        """Refuse new calls, and return when the running ones are answered."""
        self._draining = True
        self._close()
        self._quiet = anyio.Event()
        if self._posts:
            await self._quiet.wait()

    def _probed(self, path: str) -> Response | None:
        if path not in {ALIVE, *READY_PATHS}:
            return None
        status = "ok"
        if path in READY_PATHS and self._draining:
            status = "draining"
        elif path in READY_PATHS and not self._is_open():
            status = "opening"
        code = 200 if status == "ok" else 503
        return JSONResponse({"status": status, "version": VERSION}, code)

    def _refused(self, caller: bytes, is_fixed: bool) -> Response | None:
        """Return the refusal of a request over the rate, or without a token."""
        if seconds := math.ceil(self._wait(caller)):
            error = {"error": f"Too many requests; wait {seconds} s."}
            return JSONResponse(error, 429, {"Retry-After": str(seconds)})
        if self._tokens and not is_fixed:
            error = {"error": "A valid token is required: Authorization: Bearer TOKEN."}
            challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            return JSONResponse(error, 401, challenge)
        return None

    def _wait(self, caller: bytes) -> float:
        """Count one request; return the seconds to wait if the caller has none left
        (generic cell rate algorithm)."""
        if not self._per_minute:
            return 0.0
        now, interval = self._clock(), MINUTE / self._per_minute
        due = max(now, self._due.get(caller, now))
        wait = due - now - (MINUTE - interval)
        if wait > 0:
            return wait
        self._due[caller] = due + interval
        if len(self._due) > MOST_SESSIONS:
            self._due = {name: due for name, due in self._due.items() if due > now}
        return 0.0


class Shares:
    """Shares of sessions and requests: large holders get no more once half are
    taken."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._requests: Counter[bytes] = Counter()
        self._sessions: dict[tuple[bytes, str], float] = {}
        """Caller and session to the time of last use."""

    @contextmanager
    def request(self, caller: bytes) -> Iterator[bool]:
        """Count a request or stream while it is open; yield whether it is within the
        share."""
        total = self._requests.total()
        has_room = _has_room(self._requests[caller], total, MOST_REQUESTS)
        self._requests[caller] += has_room
        try:
            yield has_room
        finally:
            self._requests[caller] -= has_room
            if not self._requests[caller]:
                del self._requests[caller]

    def opens(self, caller: bytes) -> bool:
        """Return whether a caller may open one more session; idle sessions are
        dropped."""
        ended = self._clock() - SESSION_IDLE
        self._sessions = {
            key: seen for key, seen in self._sessions.items() if seen > ended
        }
        held = sum(owner == caller for owner, _ in self._sessions)
        return _has_room(held, len(self._sessions), MOST_SESSIONS)

    def watched(self, caller: bytes, scope: Scope, send: Send) -> Send:
        """Return a `send` that records which session of `caller` the response opens,
        uses or ends, by its session header or else the request's; none without both.

        DELETE and status 404 end a session."""
        requested = Headers(scope=scope).get(SESSION, "")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = Headers(raw=message.get("headers", []))
                session = headers.get(SESSION, "") or requested
                if scope["method"] == "DELETE" or message["status"] == 404:
                    self._sessions.pop((caller, session), None)
                elif session:
                    self._sessions[caller, session] = self._clock()
            await send(message)

        return answer


def _has_room(held: int, total: int, limit: int) -> bool:
    return held < limit // CALLER_SHARE or total < limit // 2


def _named(scope: Scope, send: Send) -> tuple[Scope, Send]:
    """Set the request id, and add it to the response headers."""
    name = (
        REQUEST_ID_HEADER.encode(),
        request_id(Headers(scope=scope).get(REQUEST_ID_HEADER, "")).encode(),
    )
    headers = [(key, value) for key, value in scope["headers"] if key != name[0]]

    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), name]}
        await send(message)

    return {**scope, "headers": [*headers, name]}, answer


async def _body(receive: Receive) -> bytes | None:
    """Return a request's body, cut just over the SDK's limit; None on timeout or if the
    client leaves."""
    chunks = bytearray()
    with anyio.move_on_after(REQUEST_SECONDS):
        while len(chunks) <= MEGABYTE:
            message = await receive()
            if message["type"] != "http.request":
                return None
            chunks += message.get("body", b"")
            if not message.get("more_body"):
                break
        return bytes(chunks)
    return None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first replays the body that was read."""
    messages: list[Message] = [
        {"type": "http.request", "body": body, "more_body": False}
    ]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def digest_of(token: bytes) -> bytes:
    """Return a hash of a token: equal lengths for constant-time comparison, no token in
    memory."""
    return hashlib.blake2b(token, digest_size=32).digest()


def _bearer(header: str) -> bytes | None:
    scheme, _, token = header.partition(" ")
    return (
        token.strip().encode("latin-1")
        if scheme.lower() == "bearer" and token.strip()
        else None
    )


def _address(scope: Scope) -> bytes:
    client = scope.get("client")
    return f"address {client[0]}".encode() if client else b"address"
