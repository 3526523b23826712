"""No caller of the HTTP server locks the others out: sessions, streams and requests have shares,
guesses one bucket."""

import json
import uuid
from typing import Any, cast

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from extras.http.gate import MOST_REQUESTS, MOST_SESSIONS, SESSION_IDLE, Gate
from extras.http.oauth import JwtVerifier
from tests.support import Clock, Site

pytestmark = pytest.mark.anyio

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}


class Sessions:
    """An application that opens a session for each `initialize`, and holds a GET until it is let
    go."""

    def __init__(self) -> None:
        self.held = 0
        self.release = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await receive()
        if scope["method"] == "GET":
            self.held += 1
            await self.release.wait()
            self.held -= 1
        headers = (
            [(b"mcp-session-id", uuid.uuid4().hex.encode())] if scope["method"] == "POST" else []
        )
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})


def gate(
    app: Sessions | None = None,
    *,
    rate: int = 0,
    clock: Clock | None = None,
    tokens: str = "ann bob",
) -> Gate:
    return Gate(app or Sessions(), tokens=tokens.split(), per_minute=rate, clock=clock or Clock())


def caller(
    app: ASGIApp, token: str = "", address: str = "10.0.0.1", **headers: str
) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app, client=(address, 4711))
    given = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(
        transport=transport, base_url="http://winnow", headers={**given, **headers}
    )


async def opened(client: httpx2.AsyncClient, count: int) -> list[int]:
    return [(await client.post("/mcp", json=INITIALIZE)).status_code for _ in range(count)]


async def test_one_token_opens_half_of_all_sessions_and_another_has_the_rest() -> None:
    clock = Clock()
    app = gate(clock=clock)
    async with caller(app, "ann") as ann, caller(app, "bob") as bob:
        codes = await opened(ann, MOST_SESSIONS - 2)
        assert codes.count(200) == MOST_SESSIONS // 2
        assert set(codes) == {200, 429}
        assert await opened(bob, 20) == [200] * 20
        refused = await ann.post("/mcp", json=INITIALIZE)
        assert "Retry-After" in refused.headers
        used = await ann.post(
            "/mcp", json={"method": "tools/list"}, headers={"mcp-session-id": "mine"}
        )
        assert used.status_code == 200
        clock.now += SESSION_IDLE + 1
        assert await opened(ann, 1) == [200]


async def test_a_session_that_is_ended_makes_room() -> None:
    app = gate()
    async with caller(app, "ann") as ann:
        last = ""
        for _ in range(MOST_SESSIONS // 2):
            last = (await ann.post("/mcp", json=INITIALIZE)).headers["mcp-session-id"]
        assert await opened(ann, 1) == [429]
        assert (
            await ann.request("DELETE", "/mcp", headers={"mcp-session-id": last})
        ).status_code == 200
        assert await opened(ann, 2) == [200, 429]


async def test_one_caller_holds_half_of_all_streams_and_another_is_answered() -> None:
    app = Sessions()
    front = gate(app)
    codes: list[int] = []

    async def stream(client: httpx2.AsyncClient) -> None:
        codes.append((await client.get("/mcp")).status_code)
        if len(codes) == 40:  # those that are refused answer at once
            app.release.set()

    async with (
        caller(front, "ann") as ann,
        caller(front, "bob") as bob,
        anyio.create_task_group() as group,
    ):
        for _ in range(MOST_REQUESTS // 2 + 40):
            group.start_soon(stream, ann)
        while app.held < MOST_REQUESTS // 2:
            await anyio.lowlevel.checkpoint()
        assert await opened(bob, 1) == [200]
    assert codes.count(429) == 40


@pytest.mark.parametrize("tokens", ["", "ann bob"], ids=["open to all", "fixed tokens"])
@pytest.mark.parametrize(
    "form", ["Bearer {n}", "bearer x{n}", "Bearer {n}.{n}.{n}", "Basic {n}", "{n}"]
)
async def test_guesses_are_one_caller_whatever_they_say(tokens: str, form: str) -> None:
    app = gate(rate=5, tokens=tokens)
    codes = []
    for number in range(12):
        async with caller(app, Authorization=form.format(n=number)) as guessing:
            codes += await opened(guessing, 1)
    assert codes[5:] == [429] * 7
    async with caller(app, address="10.0.0.2") as other:
        assert await opened(other, 1) == [401 if tokens else 200]


@pytest.mark.parametrize(
    ("trusted", "counted"),
    [([], 5), (["192.168.0.9"], 5), (["10.0.0.0/30"], 12), (["10.0.0.1/32"], 12)],
)
async def test_a_forwarded_address_is_believed_from_a_named_proxy_alone(
    trusted: list[str], counted: int
) -> None:
    app = ProxyHeadersMiddleware(cast(Any, gate(rate=5, tokens="")), trusted_hosts=trusted)
    codes = []
    for number in range(12):
        async with caller(
            cast(ASGIApp, app), **{"X-Forwarded-For": f"203.0.113.{number}"}
        ) as client:
            codes += await opened(client, 1)
    assert codes.count(200) == counted


@pytest.mark.filterwarnings(
    "ignore::jwt.warnings.InsecureKeyLengthWarning"
)  # it is signed with what it warns of
@pytest.mark.parametrize("bits", [1024, 1536, 2048])
async def test_a_key_that_can_be_computed_signs_no_token(site: Site, bits: int) -> None:
    key = rsa.generate_private_key(65537, bits)
    issuer = _issuer(site, {"issuer": site.url(""), "jwks_uri": site.url("/keys")})
    public = {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "k", "use": "sig"}
    site.put("/keys", json.dumps({"keys": [public]}), kind="application/json")
    claims = {"iss": issuer, "aud": "https://us.example", "exp": 4_000_000_000, "sub": "ann"}
    token = jwt.encode(claims, key, algorithm="RS256", headers={"kid": "k"})
    found = await JwtVerifier(issuer, "https://us.example").verify_token(token)
    assert (found is not None) == (bits >= 2048)


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        "text",
        4,
        None,
        {},
        {"issuer": 4},
        {"issuer": ["x"], "jwks_uri": "x"},
        {"issuer": "SELF", "jwks_uri": 7},
    ],
)
async def test_metadata_of_another_form_lets_no_one_in(site: Site, metadata: object) -> None:
    if isinstance(metadata, dict):
        metadata = {
            name: site.url("") if value == "SELF" else value for name, value in metadata.items()
        }
    issuer = _issuer(site, metadata)
    assert await JwtVerifier(issuer, "https://us.example").verify_token("a.b.c") is None


def _issuer(site: Site, metadata: object) -> str:
    site.put(
        "/.well-known/oauth-authorization-server", json.dumps(metadata), kind="application/json"
    )
    return site.url("")
