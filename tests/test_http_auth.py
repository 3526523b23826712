"""Who is let into the HTTP server: fixed tokens, OAuth access tokens, rates, hosts; and that
/health answers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tests.support import ROOT, Site, text_of
from tests.support.processes import as_caller, healthy, served

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

RESOURCE = "https://winnow.example/mcp"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


async def status(url: str, **headers: str) -> int:
    async with httpx2.AsyncClient(timeout=60) as http:
        return (await http.post(f"{url}/mcp", headers={**ACCEPT, **headers}, json=LIST)).status_code


async def test_a_fixed_token_lets_in_and_nothing_else_does(cache_folder: Path) -> None:
    with served(cache_folder, http_tokens="first-secret, second-secret") as (_, url):
        assert (await healthy(url))["status"] == "ok"
        for wrong in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Basic second-secret"},
        ):
            assert await status(url, **wrong) == 401
        async with httpx2.AsyncClient(timeout=60) as http:
            refused = await http.post(f"{url}/mcp", headers=ACCEPT, json=LIST)
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        async with as_caller(url, "second-secret") as client:
            answer = await client.call_tool("search_web", {"question": "ferry timetable"})
        assert "erry" in text_of(answer)


async def test_a_caller_over_the_rate_reads_how_long_to_wait_and_holds_up_no_other(
    cache_folder: Path,
) -> None:
    with served(cache_folder, http_tokens="one,two", http="rate=5") as (_, url):
        await healthy(url)
        answers = [await status(url, Authorization="Bearer one") for _ in range(7)]
        async with httpx2.AsyncClient(timeout=60) as http:
            refused = await http.post(
                f"{url}/mcp", headers={**ACCEPT, "Authorization": "Bearer one"}, json=LIST
            )
        assert answers[5:] == [429, 429]
        assert 429 not in answers[:5]
        assert await status(url, Authorization="Bearer two") != 429
        guesses = [await status(url, Authorization=f"Bearer guess{n}") for n in range(7)]
        assert guesses[5:] == [429, 429]
        assert 1 <= int(refused.headers["Retry-After"]) <= 12


async def test_a_request_of_several_megabytes_is_refused(cache_folder: Path) -> None:
    with served(cache_folder) as (_, url):
        await healthy(url)
        async with httpx2.AsyncClient(timeout=60) as http:
            answer = await http.post(
                f"{url}/mcp", headers=ACCEPT, content=b'{"x": "' + b"a" * 2_000_000 + b'"}'
            )
        assert answer.status_code == 413


@pytest.mark.parametrize(
    ("header", "value", "expected"),
    [("Host", "evil.example", 421), ("Origin", "http://evil.example", 403)],
)
async def test_host_and_origin_are_checked_on_every_address(
    cache_folder: Path, header: str, value: str, expected: int
) -> None:
    with served(cache_folder, "--host", "0.0.0.0", "--without-auth") as (_, url):  # noqa: S104  the case that matters
        await healthy(url)
        assert await status(url, **{header: value}) == expected
        assert await status(url) not in (403, 421)


async def test_an_allowed_host_is_accepted_as_clients_send_it(cache_folder: Path) -> None:
    options = ("--allow-host", "winnow.example:443", "--allow-host", "other.example:8443")
    with served(cache_folder, *options, http="hosts=set.example,more.example:8443") as (_, url):
        await healthy(url)
        hosts = "winnow.example winnow.example:443 other.example:8443 set.example more.example:8443"
        assert 421 not in [await status(url, Host=host) for host in hosts.split()]
        for refused in ("other.example", "more.example"):
            assert await status(url, Host=refused) == 421


def test_an_open_address_without_a_word_on_who_may_call_is_refused(cache_folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "server",
        "serve",
        "--http",
        "--host",
        "0.0.0.0",  # noqa: S104  the case
        "--port",
        "0",
    ]
    environment = {**os.environ, "WINNOW_CACHE": str(cache_folder)}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 2
    assert "WINNOW_HTTP_TOKENS" in run.stderr


NEVER, LONG_AGO = 4_102_444_800, 946_684_800
"""The years 2100 and 2000."""
KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())


def token(
    issuer: str, *, key: Any = KEY, algorithm: str = "ES256", kid: str = "k1", **changed: object
) -> str:
    claims = {
        "iss": issuer,
        "aud": RESOURCE,
        "exp": NEVER,
        "sub": "ann",
        "scope": "read other",
        **changed,
    }
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, key, algorithm=algorithm, headers={"kid": kid})


def publish(site: Site, end: str = "") -> str:
    """Let the site be an authorization server whose name ends in `end`; return its URL."""
    issuer = f"{site.url('').rstrip('/')}{end}"
    keys = {
        "keys": [
            {
                **ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True),
                "kid": "k1",
                "alg": "ES256",
                "use": "sig",
            }
        ]
    }
    site.put("/keys", json.dumps(keys), kind="application/json")
    metadata = json.dumps({"issuer": issuer, "jwks_uri": site.url("/keys")})
    site.put("/.well-known/oauth-authorization-server", metadata, kind="application/json")
    return issuer


async def test_access_tokens_of_the_issuer_let_in_and_forged_old_or_foreign_ones_do_not(
    cache_folder: Path, site: Site
) -> None:
    issuer = publish(site)
    good = token(issuer)
    bad = {
        "expired": token(issuer, exp=LONG_AGO),
        "without an expiry": token(issuer, exp=None),
        "for another server": token(issuer, aud="https://other.example/mcp"),
        "of another issuer": token("https://other.example"),
        "signed with another key": token(issuer, key=OTHER_KEY),
        "with an unknown key": token(issuer, kid="k2"),
        "signed with a shared secret": token(issuer, key="0123456789abcdef" * 4, algorithm="HS256"),
        "unsigned": token(issuer, key=None, algorithm="none"),
        "no token at all": "abc.def.ghi",
    }
    with served(cache_folder, http=f"issuer={issuer} resource={RESOURCE} scopes=read") as (
        _,
        url,
    ):
        await healthy(url)
        assert await status(url) == 401
        for what, each in bad.items():
            assert await status(url, Authorization=f"Bearer {each}") == 401, what
        assert await status(url, Authorization=f"Bearer {token(issuer, scope='other')}") == 403
        for scp in ("read other", ["other", "read"]):
            named = token(issuer, scope=None, scp=scp)
            assert await status(url, Authorization=f"Bearer {named}") not in (401, 403), scp
        async with as_caller(url, good) as client:
            assert len((await client.list_tools()).tools) == 5
        async with httpx2.AsyncClient(timeout=60) as http:
            metadata = (await http.get(f"{url}/.well-known/oauth-protected-resource/mcp")).json()
        assert metadata["resource"] == RESOURCE
        assert metadata["authorization_servers"] == [issuer]
    assert site.asked.count("/keys") == 1


@pytest.mark.parametrize(("named", "written"), [("/", ""), ("/", "/"), ("", "/")])
async def test_an_issuer_is_the_same_with_a_slash_at_its_end_and_without(
    cache_folder: Path, site: Site, named: str, written: str
) -> None:
    issuer = publish(site, named)
    setting = f"{issuer.rstrip('/')}{written}"
    with served(cache_folder, http=f"issuer={setting} resource={RESOURCE}") as (_, url):
        await healthy(url)
        good = await status(url, Authorization=f"Bearer {token(issuer)}")
        other = await status(url, Authorization=f"Bearer {token(f'{issuer}x')}")
        async with httpx2.AsyncClient(timeout=60) as http:
            metadata = (await http.get(f"{url}/.well-known/oauth-protected-resource/mcp")).json()
    assert (good == 401, other) == (False, 401)
    # Clients compare this, letter by letter, with what the issuer calls itself.
    assert metadata["authorization_servers"] == [setting]


async def test_an_issuer_without_our_own_name_is_refused_at_the_start(cache_folder: Path) -> None:
    environment = {
        **os.environ,
        "WINNOW_CACHE": str(cache_folder),
        "WINNOW_HTTP": "issuer=https://login.example",
    }
    command = [sys.executable, "-m", "server", "serve", "--http"]
    run = await anyio.run_process(command, cwd=ROOT, env=environment, check=False)
    assert run.returncode == 2
    assert b"resource=" in run.stderr
