"""The part of the attack set that uses HTTP: callers that take all there is, and tokens
that no one issued.

Everything stays in this process: the gate precedes an application of a few lines. Not
for: sockets, slow heads and bodies (`tests/test_http.py`)."""

import json
import random
import time
import uuid
from collections.abc import Iterator

import anyio
import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm
from starlette.types import Receive, Scope, Send

from bench.loopback import Answer, serving
from extras.http.gate import MOST_SESSIONS, Gate
from extras.http.oauth import JwtVerifier

RATE = 5
"""Requests a minute in these tries."""
OURS = "https://winnow.example/mcp"


async def _opens(scope: Scope, receive: Receive, send: Send) -> None:
    """Open a session for each request."""
    await receive()
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"mcp-session-id", uuid.uuid4().hex.encode())],
        }
    )
    await send({"type": "http.response.body", "body": b"{}"})


async def _asked(gate: Gate, count: int, address: str, token: str = "") -> list[int]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx2.ASGITransport(gate, client=(address, 4711))
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://winnow", headers=headers
    ) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        return [
            (await client.post("/mcp", json=body)).status_code for _ in range(count)
        ]


def try_shares(rng: random.Random, count: int) -> Iterator[str]:
    """One caller opens all sessions it gets, or guesses tokens; another must be let in,
    the guesses be stopped."""
    gate = Gate(_opens, tokens=["ann", "bob"], per_minute=0)
    taken = anyio.run(_asked, gate, MOST_SESSIONS, "10.0.0.1", "ann").count(200)
    for number in range(count):
        if rng.random() < 0.5:
            codes = anyio.run(_asked, gate, 1, f"10.0.1.{number % 250}", "bob")
            yield (
                ""
                if codes == [200] and taken <= MOST_SESSIONS // 2
                else f"locked out: {codes}, {taken} taken"
            )
            continue
        limited = Gate(_opens, tokens=rng.choice(([], ["ann"])), per_minute=RATE)
        guesses = [
            code
            for _ in range(RATE + 3)
            for code in anyio.run(
                _asked, limited, 1, "10.0.0.9", rng.randbytes(9).hex()
            )
        ]
        yield "" if guesses[RATE:] == [429] * 3 else f"guesses: {guesses}"


def try_tokens(rng: random.Random, count: int) -> Iterator[str]:
    """Access tokens that are forged, old, foreign or weak."""
    good, other = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    public = {
        **ECAlgorithm.to_jwk(good.public_key(), as_dict=True),
        "kid": "k",
        "alg": "ES256",
        "use": "sig",
    }
    issuer = ""

    def answer(path: str) -> Answer:
        reported = (
            {"keys": [public]}
            if path == "/keys"
            else {"issuer": issuer, "jwks_uri": f"{issuer}/keys"}
        )
        return Answer(json.dumps(reported).encode(), "application/json")

    with serving(answer) as port:
        issuer = f"http://127.0.0.1:{port}"
        verifier = JwtVerifier(issuer, OURS)
        facts = {"iss": issuer, "aud": OURS, "exp": time.time() + 600, "sub": "ann"}
        valid = jwt.encode(facts, good, algorithm="ES256", headers={"kid": "k"})
        if anyio.run(verifier.verify_token, valid) is None:
            yield "a valid token was refused"
        for _ in range(count):
            yield (
                ""
                if anyio.run(
                    verifier.verify_token, _forged(rng, facts, good, other, valid)
                )
                is None
                else "a forged token"
            )


def _forged(
    rng: random.Random,
    facts: dict[str, object],
    good: ec.EllipticCurvePrivateKey,
    other: ec.EllipticCurvePrivateKey,
    valid: str,
) -> str:
    wrong: tuple[dict[str, object], ...] = (
        {"exp": time.time() - rng.randrange(1, 10**6)},
        {"aud": f"https://{rng.randbytes(4).hex()}.example/mcp"},
        {"iss": "https://other.example"},
        {"aud": [OURS + "/x"]},
    )
    head, body, sign = valid.split(".")
    match rng.randrange(6):
        case 0:
            return jwt.encode(
                {**facts, **rng.choice(wrong)},
                good,
                algorithm="ES256",
                headers={"kid": "k"},
            )
        case 1:
            return jwt.encode(
                facts,
                other,
                algorithm="ES256",
                headers={"kid": rng.choice(("k", "x", ""))},
            )
        case 2:
            return jwt.encode(
                facts, rng.randbytes(40), algorithm="HS256", headers={"kid": "k"}
            )
        case 3:
            return jwt.encode(facts, "", algorithm="none", headers={"kid": "k"})
        case 4:
            return jwt.encode(
                facts,
                rsa.generate_private_key(65537, 2048),
                algorithm="RS256",
                headers={"kid": "k"},
            )
        case _:
            return (
                f"{head}.{body}{rng.choice('ABC')}.{sign}"
                if rng.random() < 0.5
                else f"{head}.{body}."
            )
