"""The HTTP application: bearer tokens or OAuth (RFC 9068, RFC 8707), rate and size
limits, MCP.

Plain ASGI, because the SDK's own checks know OAuth tokens only. Winnow issues no
tokens: it checks signature, issuer, audience and expiry of a JWT against the issuer's
public keys. Host and Origin are checked for every address by the SDK's transport. Not
for: opening the port (`server/transports.py`)."""

import asyncio
import hashlib
import hmac
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import anyio
import httpx2
import jwt
from anyio import to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from errors import UsageError
from extra import importing
from server.app import Winnow, build_server
from server.calls import REQUEST_ID_HEADER, Observer, request_id
from server.clients import service_client
from server.process import PAUSE
from server.settings import MEGABYTE, Settings
from server.toolbox import GRACE
from server.version import VERSION

ALIVE: Final = "/healthz"
"""Liveness probe: answers while the event loop runs; no answer means restart."""
READY_PATHS: Final = frozenset({"/readyz", "/health"})
"""Readiness probe: false while the services open and while draining. A missing cache or
model server does not count: answers work without it."""
MINUTE: Final = timedelta(minutes=1).total_seconds()
ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""Signatures with a public key only: a shared secret cannot be published, and `none` is
no signature."""
LEAST_RSA: Final = 2_048
"""Minimum bits of an RSA key (NIST SP 800-131A)."""
REQUEST_SECONDS: Final = 10.0
"""Seconds for the head of a request, and for its body of at most 1 MB."""
MOST_SESSIONS: Final = 1_000
"""Most sessions of the 2025 protocol; 38 kB each."""
CALLER_SHARE: Final = 8
"""Each caller may always hold 1/n of the sessions, requests and streams."""
MOST_REQUESTS: Final = 512
"""Most concurrent requests and streams; a process may open 1,024 files by default."""
SESSION: Final = "mcp-session-id"
SESSION_IDLE: Final = timedelta(minutes=10).total_seconds()
"""Seconds after which a session without a request or an open stream ends."""
_METADATA_PATHS: Final = (
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
)
_log: Final = logging.getLogger("winnow.http")


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
        self._tokens = [_digest(token.encode()) for token in tokens]
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
            name = _digest(token).hex()
            scope["user"] = AuthenticatedUser(
                AccessToken(token=name, client_id=name, scopes=[])
            )
        return self._app

    def _is_known(self, token: bytes | None) -> bool:
        return token is not None and any(
            hmac.compare_digest(_digest(token), each) for each in self._tokens
        )

    def _caller(self, scope: Scope) -> bytes:
        """Return the caller: a valid token, else the address (so that guessed tokens
        share one)."""
        token = _bearer(Headers(scope=scope).get("authorization", ""))
        valid = token is not None and (
            self._is_known(token) or self._accepted(_digest(token))
        )
        return _digest(token) if token is not None and valid else _address(scope)

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
        """Return a `send` that records which session the response opens, uses or
        ends."""
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


def _digest(token: bytes) -> bytes:
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


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a timeout for the request head."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base has it
        """Start the timeout for a request's head."""
        super().connection_made(transport)
        self._late = self.loop.call_later(REQUEST_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Pass on data; the timeout starts at the first byte of a head."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class JwtVerifier:
    """Verifies access tokens (JWT) of one issuer for one resource.

    PyJWT reloads the issuer's keys every five minutes, so that withdrawn keys expire,
    and for an unknown key at most twice a minute, so that forged tokens cause no
    traffic.
    """

    def __init__(self, issuer: str, resource: str) -> None:
        """Set the issuer's URL and our own, as in the tokens (`iss`, `aud`)."""
        self._issuer = issuer
        self._resource = resource
        self._keys: jwt.PyJWKClient | None = None
        self._valid: OrderedDict[bytes, None] = OrderedDict()

    def has_accepted(self, token: bytes) -> bool:
        """Return whether a token (by hash) was valid lately; then it is a caller of its
        own."""
        return token in self._valid

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access token's claims; None if it is not valid here and now.

        None also if the issuer's keys cannot be read, which is logged.
        """
        try:
            self._keys = self._keys or jwt.PyJWKClient(
                await _address_of_keys(self._issuer)
            )
            key = await to_thread.run_sync(self._keys.get_signing_key_from_jwt, token)
            _check_size(key)
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._resource,
                issuer=self._issuer,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (
            jwt.PyJWKClientConnectionError,
            httpx2.HTTPError,
            ValueError,
            UsageError,
        ) as error:
            _log.warning("the keys of %s cannot be read: %s", self._issuer, error)
            return None
        except jwt.PyJWTError as error:
            _log.info("token refused: %s", type(error).__name__)
            return None
        self._valid[_digest(token.encode())] = None
        if len(self._valid) > MOST_SESSIONS:
            self._valid.popitem(last=False)
        scope = claims.get("scope", "")
        return AccessToken(
            token=token,
            client_id=str(
                claims.get("client_id")
                or claims.get("azp")
                or claims.get("sub")
                or "unknown"
            ),
            scopes=scope.split() if isinstance(scope, str) else [],
            expires_at=int(claims["exp"]),
            resource=self._resource,
            subject=str(claims["sub"]) if "sub" in claims else None,
        )


def _check_size(key: jwt.PyJWK) -> None:
    """Raise `InvalidKeyError` for an RSA key that is too short."""
    size = getattr(key.key, "key_size", 0)
    if key.key_type == "RSA" and size < LEAST_RSA:
        raise jwt.InvalidKeyError(f"an RSA key of {size} bits")


async def _address_of_keys(issuer: str) -> str:
    async with service_client() as http:
        for path in _METADATA_PATHS:
            answer = await http.get(issuer.rstrip("/") + path)
            if answer.status_code != httpx2.codes.OK:
                continue
            said = answer.json()
            named, keys = (
                (said.get("issuer"), said.get("jwks_uri"))
                if isinstance(said, dict)
                else (None, None)
            )
            if (
                not isinstance(named, str)
                or not isinstance(keys, str)
                or named.rstrip("/") != issuer.rstrip("/")
            ):
                raise UsageError(
                    f"The metadata of {issuer} names another issuer or no keys."
                )
            return keys
    raise UsageError(
        f"{issuer} publishes no metadata.", hint="Check WINNOW_HTTP_ISSUER."
    )


def build_app(
    settings: Settings,
    *,
    host: str,
    port: int,
    allowed_hosts: list[str],
    allowed_origins: Sequence[str] = (),
) -> ASGIApp:
    """Return the ASGI application: `/mcp`, `/healthz`, `/readyz`, and the metadata of
    RFC 9728 where OAuth is set.

    `allowed_origins`: sites such as `https://chat.example` whose pages may call from a
    browser (CORS). Raises `UsageError` for OAuth settings that do not fit together, and
    where the metrics' address cannot be used; `MissingExtra` or `BrokenExtra` without
    the package of a feature that is set.
    """
    auth, verifier = _oauth(settings)

    async def drain() -> None:
        with anyio.move_on_after(settings.seconds + 2 * GRACE):
            await gate.drain()
        await anyio.sleep(PAUSE)  # lets uvloop write the last response

    server = build_server(
        settings, own_signals=True, drain=drain, auth=auth, token_verifier=verifier
    )
    if settings.metrics:
        server.observers.append(_metrics(server, settings.metrics))
    # The SDK checks Host and Origin by itself on loopback addresses only.
    names = [
        f"{host}:{port}",
        f"127.0.0.1:{port}",
        f"localhost:{port}",
        f"[::1]:{port}",
        *allowed_hosts,
    ]
    security = TransportSecuritySettings(
        allowed_hosts=names,
        allowed_origins=[
            *allowed_origins,
            *(f"{scheme}://{name}" for name in names for scheme in ("http", "https")),
        ],
    )
    # Arguments are at most 50 sources and a question; the SDK's own limit is four times
    # larger.
    app = server.streamable_http_app(
        host=host,
        transport_security=security,
        max_request_body_size=MEGABYTE,
        stateless_http=settings.http_stateless,
        session_idle_timeout=SESSION_IDLE,
        max_sessions=MOST_SESSIONS,
    )
    gate = Gate(
        app,
        tokens=settings.http_tokens,
        per_minute=settings.http_rate,
        close=server.admission.close,
        opened=server.is_open,
        accepted=verifier.has_accepted if verifier else lambda _: False,
    )
    if not allowed_origins:
        return gate
    # Outside the gate: CORS preflights have no token, and browsers read refusals only
    # with CORS headers.
    return CORSMiddleware(
        gate,
        allow_origins=allowed_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "Retry-After", "WWW-Authenticate"],
    )


def _metrics(server: Winnow, at: str) -> Observer:
    """Serve metrics of `server` at an address; return the observer that counts its
    calls.

    Raises `MissingExtra`, `BrokenExtra`, or `UsageError` for the address.
    """
    with importing("metrics", "WINNOW_METRICS"):
        from server.metrics import Metrics  # noqa: PLC0415  an extra
    metrics = Metrics(server.admission, server.stores)
    metrics.serve(at)
    return metrics


def _oauth(settings: Settings) -> tuple[AuthSettings | None, JwtVerifier | None]:
    if not settings.http_issuer:
        return None, None
    if not settings.http_resource:
        raise UsageError(
            "WINNOW_HTTP_ISSUER is set, but WINNOW_HTTP_RESOURCE (this server's URL "
            "in its tokens) is not.",
            hint="Set WINNOW_HTTP_RESOURCE to this server's URL, such as https://winnow.example/mcp.",
        )
    if settings.http_tokens:
        raise UsageError(
            "Both fixed tokens and an OAuth issuer are set.", hint="Choose one of them."
        )
    # Validated from JSON text, which keeps URLs unchanged: clients compare issuers as
    # strings.
    auth = AuthSettings.model_validate(
        {
            "issuer_url": settings.http_issuer,
            "resource_server_url": settings.http_resource,
            "required_scopes": list(settings.http_scopes) or None,
            "validate_token_resource": True,
        }
    )
    return auth, JwtVerifier(settings.http_issuer, settings.http_resource)
