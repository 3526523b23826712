"""The gate in front of the MCP application: probes, fixed bearer tokens, requests a
minute, shares of sessions and requests, and a body that arrives in time.

Plain ASGI, because the SDK's own checks know OAuth tokens only. Not for: OAuth
(`oauth.py`), Host and Origin, which the SDK's transport checks.
"""

import hashlib
import hmac
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
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
    {
        "error": "Too many of your sessions, requests or streams are open: close some, or retry later."
    },
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
        opened: Callable[[], bool] = lambda: True,
        accepted: Callable[[bytes], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wrap `app`: require one of the bearer `tokens` (empty: no check here).

        A caller may send `per_minute` requests a minute, as many at once; 0 for no
        limit. `clock` gives seconds. `close` is called at shutdown, so that no new call
        begins. `opened` returns whether the services are open, `accepted` whether the
        application accepted a token.
        """
        self._app = app
        self._opened = opened
        self._tokens = [digest_of(token.encode()) for token in tokens]
        self._rate = per_minute / MINUTE
        self._burst = per_minute
        self._clock = clock
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._accepted = accepted
        self._held = Shares(clock)
        self._close = close
        self._draining = False
        self._posts = 0
        """Requests that arrived before shutdown began."""
        self._quiet = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer probes, refuse requests over a limit, pass on the rest."""
        if scope["type"] == "http":
            scope, send = _named(scope, send)
        app = self._app if scope["type"] != "http" else self._answering(scope)
        if app is not self._app or scope["type"] != "http":
            await app(scope, receive, send)
            return
        caller = self._caller(scope)
        with self._held.request(caller) as has_room:
            if has_room:
                await self._pass(
                    caller, scope, receive, self._held.watched(caller, scope, send)
                )
            else:
                await _TOO_MANY_OPEN(scope, receive, send)

    async def _pass(
        self, caller: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass a request to the application, after its whole body has arrived.

        Status 408 for a body that does not arrive in time; refused as full if the
        caller may open no more sessions.
        """
        app = self._app
        if scope["method"] != "POST":
            await app(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:  # the client left or is too slow
            await JSONResponse(
                {"error": "The request body did not arrive in time."}, 408
            )(scope, receive, send)
            return
        if (
            SESSION not in Headers(scope=scope)
            and b'"initialize"' in body
            and not self._held.opens(caller)
        ):
            await _TOO_MANY_OPEN(scope, receive, send)
            return
        counted = not self._draining
        self._posts += counted
        try:
            await app(scope, _replayed(body, receive), send)
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

    def _answering(self, scope: Scope) -> ASGIApp:
        if scope["path"] == ALIVE:
            return JSONResponse({"status": "ok", "version": VERSION})
        if scope["path"] in READY_PATHS:
            status = (
                "draining" if self._draining else "ok" if self._opened() else "opening"
            )
            return JSONResponse(
                {"status": status, "version": VERSION}, 200 if status == "ok" else 503
            )
        token = _bearer(Headers(scope=scope).get("authorization", ""))
        known = self._is_known(token)
        wait = self._wait(self._caller(scope))
        if wait > 0:
            seconds = str(math.ceil(wait))
            said = {"error": f"Too many requests; wait {seconds} s."}
            return JSONResponse(said, 429, {"Retry-After": seconds})
        if self._tokens and not known:
            said = {
                "error": "A valid bearer token is required: Authorization: Bearer TOKEN."
            }
            return JSONResponse(
                said, 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            )
        if known and token is not None:
            # The SDK binds a session to its user, and the queue of calls is fair by
            # user.
            name = digest_of(token).hex()
            scope["user"] = AuthenticatedUser(
                AccessToken(token=name, client_id=name, scopes=[])
            )
        return self._app

    def _is_known(self, token: bytes | None) -> bool:
        return token is not None and any(
            hmac.compare_digest(digest_of(token), each) for each in self._tokens
        )

    def _caller(self, scope: Scope) -> bytes:
        """Return the caller: a valid token, else the address (so that guessed tokens
        share one)."""
        token = _bearer(Headers(scope=scope).get("authorization", ""))
        valid = token is not None and (
            self._is_known(token) or self._accepted(digest_of(token))
        )
        return digest_of(token) if token is not None and valid else _address(scope)

    def _wait(self, caller: bytes) -> float:
        """Token bucket: take one request; return the seconds to wait if it is empty,
        else 0; always 0 without a limit."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, seen = self._left.pop(caller, (float(self._burst), now))
        left = min(float(self._burst), left + (now - seen) * self._rate)
        wait = max(0.0, (1 - left) / self._rate)
        self._left[caller] = (left - (wait == 0), now)
        # After a minute without requests a caller's bucket is full, as for a new
        # caller.
        while next(iter(self._left.values()))[1] < now - MINUTE:
            self._left.popitem(last=False)
        return wait


class Shares:
    """Shares of sessions and requests: large holders get no more once half are
    taken."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with zero counts; `clock` returns seconds."""
        self._clock = clock
        self._requests: Counter[bytes] = Counter()
        self._sessions: dict[bytes, dict[str, float]] = {}
        """Caller to its sessions with the time of last use."""

    @contextmanager
    def request(self, caller: bytes) -> Iterator[bool]:
        """Count a request or stream while it is open; yield whether it is within the
        share."""
        has_room = _has_room(
            self._requests[caller], self._requests.total(), MOST_REQUESTS
        )
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
        dead = self._clock() - SESSION_IDLE
        kept = {
            one: {name: seen for name, seen in own.items() if seen > dead}
            for one, own in self._sessions.items()
        }
        self._sessions = {one: own for one, own in kept.items() if own}
        total = sum(map(len, self._sessions.values()))
        return _has_room(len(self._sessions.get(caller, ())), total, MOST_SESSIONS)

    def watched(self, caller: bytes, scope: Scope, send: Send) -> Send:
        """Return a `send` that records which session of `caller` the response opens, uses
        or ends, by its session header or else the request's; none without both.

        DELETE and status 404 end a session."""
        asked = Headers(scope=scope).get(SESSION, "")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                session = (
                    Headers(raw=message.get("headers", [])).get(SESSION, "") or asked
                )
                own = self._sessions.setdefault(caller, {})
                own[session] = self._clock()
                if (
                    not session
                    or scope["method"] == "DELETE"
                    or message["status"] == 404
                ):
                    del own[session]
            await send(message)

        return answer


def _has_room(own: int, total: int, most: int) -> bool:
    return own < most // CALLER_SHARE or total < most // 2


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
    parts = bytearray()
    with anyio.move_on_after(REQUEST_SECONDS):
        while len(parts) <= MEGABYTE:
            message = await receive()
            if message["type"] != "http.request":
                return None
            parts += message.get("body", b"")
            if not message.get("more_body"):
                break
        return bytes(parts)
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
