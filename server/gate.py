"""What stands before the HTTP server: fixed bearer tokens, a rate for each caller, and /health.

Plain ASGI, because the SDK's own checks know OAuth tokens only. Not for: OAuth (`server/tokens.py`), Host and Origin
checks and the size of requests, which the SDK's transport makes.
"""

import hashlib
import hmac
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from server.version import VERSION

HEALTH: Final = "/health"
CALLERS: Final = 10_000
"""Callers whose rate is remembered; the one not seen for longest is forgotten first."""


class Gate:
    """ASGI middleware around the MCP application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Sequence[str],
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wrap `app`.

        Args:
            app: The application behind the gate.
            tokens: Bearer tokens that are let in; none means that no token is asked for here.
            per_minute: Requests a caller may send a minute, as many at once; 0 for no limit.
            clock: Seconds, for the rate.
        """
        self._app = app
        self._tokens = [_digest(token) for token in tokens]
        self._rate = per_minute / 60
        self._burst = per_minute
        self._clock = clock
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer /health, refuse whom it must, pass the rest on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == HEALTH:
            await _answer(send, 200, {"status": "ok", "version": VERSION})
            return
        headers = dict(scope["headers"])
        token = _bearer(headers.get(b"authorization", b""))
        known = token is not None and any(hmac.compare_digest(_digest(token), each) for each in self._tokens)
        # Whoever guesses tokens is counted by address: each guess would else be a caller of its own.
        wait = self._wait(_digest(token) if token is not None and (known or not self._tokens) else _address(scope))
        if wait > 0:
            seconds = str(math.ceil(wait))
            said = {"error": f"Too many requests; wait {seconds} s."}
            await _answer(send, 429, said, (b"retry-after", seconds.encode()))
        elif self._tokens and not known:
            said = {"error": "A valid bearer token is needed: Authorization: Bearer TOKEN."}
            await _answer(send, 401, said, (b"www-authenticate", b'Bearer error="invalid_token"'))
        else:
            await self._app(scope, receive, send)

    def _wait(self, caller: bytes) -> float:
        """Take one request from a caller's bucket; return the seconds to wait when it is empty."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, seen = self._left.pop(caller, (float(self._burst), now))
        left = min(float(self._burst), left + (now - seen) * self._rate)
        wait = max(0.0, (1 - left) / self._rate)
        self._left[caller] = (left - (wait == 0), now)
        while len(self._left) > CALLERS:
            self._left.popitem(last=False)
        return wait


def _digest(token: bytes | str) -> bytes:
    """Equal lengths for the comparison in constant time, and no token kept in memory as it came."""
    return hashlib.blake2b(token.encode() if isinstance(token, str) else token, digest_size=32).digest()


def _bearer(header: bytes) -> bytes | None:
    scheme, _, token = header.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" and token.strip() else None


def _address(scope: Scope) -> bytes:
    client = scope.get("client")
    return f"address {client[0]}".encode() if client else b"address"


async def _answer(send: Send, status: int, said: dict[str, str], *headers: tuple[bytes, bytes]) -> None:
    body = json.dumps(said).encode()
    sent = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
