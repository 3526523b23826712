"""Proxies of the environment get what is for the web, and nothing that is for this machine or its
network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp_types import CallToolResult
from starlette.responses import PlainTextResponse

from server.clients import service_client
from tests.support import Connect
from tests.support.model_server import Remote
from tests.support.web_site import Reply, Site, open_site

pytestmark = pytest.mark.anyio

VARIABLES = (
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
)
NAMES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
PLACES = {
    "searxng": "127.0.0.1",
    "searxng.local": "127.0.0.1",
    "models.winnow-site.org": "127.0.0.1",
    "web.winnow-site.org": "93.184.215.14",
    **dict.fromkeys(("localhost", "localhost.", "127.1", "2130706433"), "127.0.0.1"),
}


@asynccontextmanager
async def behind(monkeypatch: pytest.MonkeyPatch, *names: str) -> AsyncIterator[Site]:
    """Name a proxy in the environment that answers by itself, and counts what it gets."""
    async with open_site({}) as proxy:
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name in names:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        yield proxy


async def places(host: str, _port: int) -> list[str]:
    return [PLACES[host]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_what_is_for_this_machine_goes_to_no_proxy(
    monkeypatch: pytest.MonkeyPatch, name: str, host: str
) -> None:
    async with (
        open_site({"/v1/embeddings": Reply(b"yes")}) as site,
        behind(monkeypatch, name) as proxy,
    ):
        async with service_client() as client:
            answer = await client.post(
                site.url("/v1/embeddings", host=host), json={"input": "a secret diagnosis"}
            )
        assert (answer.status_code, proxy.asked) == (200, [])


INSIDE = (
    *("127.0.0.1", "127.8.8.8", "[::1]", "searxng", "searxng.local", "models.winnow-site.org"),
    *("[::ffff:7f00:1]", "0.0.0.0"),  # noqa: S104
    *("LOCALHOST", "localhost.", "127.1", "2130706433", "Models.Winnow-Site.ORG"),
)


@pytest.mark.parametrize("host", INSIDE)
async def test_a_name_that_represents_this_machine_is_no_affair_of_the_proxy(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    async with behind(monkeypatch, *NAMES) as proxy, service_client(0.2, resolve=places) as client:
        with pytest.raises(httpx2.TransportError):
            await client.post(f"http://{host}:9/search", content=b"a secret diagnosis")
        assert proxy.asked == []


async def test_the_web_is_asked_by_the_proxy_but_where_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with behind(monkeypatch, "http_proxy") as proxy:
        async with service_client(resolve=places) as client:
            assert (await client.get("http://web.winnow-site.org/p")).status_code == 404
        assert proxy.paths == ["http://web.winnow-site.org/p"]
        monkeypatch.setenv("no_proxy", ".winnow-site.org")
        async with service_client(0.2, resolve=places) as client:
            with pytest.raises(httpx2.TransportError):
                await client.get("http://web.winnow-site.org:9/p")
        assert len(proxy.paths) == 1


async def test_a_question_for_models_and_metasearch_of_this_machine_reaches_no_proxy(
    monkeypatch: pytest.MonkeyPatch, connect: Connect, remote: Remote
) -> None:
    remote.will("/chat/completions", lambda _: PlainTextResponse("busy", status_code=500))
    found = Reply(b'{"query": "x", "results": []}', kind="application/json")
    async with open_site({"/search": found}) as site, behind(monkeypatch, *NAMES) as proxy:
        given = {
            "searxng": site.url(""),
            "generator": f"openai:{remote.url}#m",
            "embedder": "none",
            "folders": " ",
        }
        async with connect(networks="loopback", **given) as client:
            result = await client.call_tool(
                "search_web", {"question": "What is my secret diagnosis?"}
            )
        assert isinstance(result, CallToolResult)
        assert proxy.asked == []
        assert remote.asked
