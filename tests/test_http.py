"""The server as a process on Streamable HTTP: both eras, the Host check, a quick end."""

import signal
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp_types import CallToolResult

from tests.support import LIBRARY, Site, text_of
from tests.support.processes import EXIT_SECONDS, HELLO, as_caller, call, health, healthy, served

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_both_eras_get_an_answer_over_http_and_sigterm_ends_it(cache_folder: Path) -> None:
    question = {"question": "When does the first ferry leave on Sundays?"}
    with served(cache_folder) as (process, url):
        await healthy(url)
        for mode in ("auto", "legacy"):
            async with Client(f"{url}/mcp", mode=mode) as client:
                result = await client.call_tool("research", question)
                assert not result.is_error, text_of(result)
        process.send_signal(signal.SIGTERM)
        assert process.wait(EXIT_SECONDS) in (0, 128 + signal.SIGTERM)


async def test_a_foreign_host_header_is_refused(cache_folder: Path) -> None:
    with served(cache_folder) as (_, url):
        await healthy(url)
        async with httpx2.AsyncClient(timeout=60) as http:
            answer = await http.post(
                f"{url}/mcp",
                headers={"Host": "evil.example", "Accept": "application/json"},
                json={},
            )
    assert answer.status_code == 421


async def test_pages_of_an_allowed_site_may_call_from_a_browser_and_no_others(
    cache_folder: Path,
) -> None:
    def leave(answer: httpx2.Response) -> str | None:
        return answer.headers.get("Access-Control-Allow-Origin")

    chat, evil = "https://chat.example", "https://evil.example"
    asking = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,mcp-session-id",
    }
    accept = {"Accept": "application/json, text/event-stream"}
    with served(cache_folder, "--allow-origin", chat, http_tokens="secret") as (_, url):
        await healthy(url)
        async with httpx2.AsyncClient(timeout=60) as http:
            asked = await http.options(f"{url}/mcp", headers={"Origin": chat, **asking})
            refused = await http.options(f"{url}/mcp", headers={"Origin": evil, **asking})
            unknown = await http.post(f"{url}/mcp", headers={"Origin": chat, **accept}, json=HELLO)
            accept["Authorization"] = "Bearer secret"
            opened = await http.post(f"{url}/mcp", headers={"Origin": chat, **accept}, json=HELLO)
            foreign = await http.post(f"{url}/mcp", headers={"Origin": evil, **accept}, json=HELLO)
    assert (asked.status_code, leave(asked)) == (200, chat)
    assert asked.headers["Access-Control-Allow-Headers"] == "authorization,mcp-session-id"
    assert (refused.status_code, leave(refused)) == (400, None)
    assert (unknown.status_code, leave(unknown)) == (401, chat)
    assert (opened.status_code, leave(opened)) == (200, chat)
    assert "mcp-session-id" in opened.headers["Access-Control-Expose-Headers"].lower()
    assert (foreign.status_code, leave(foreign)) == (403, None)


async def test_sigterm_lets_the_running_call_end_and_no_other_begin(
    cache_folder: Path, site: Site
) -> None:
    slow = site.put("/slow", "<p>The ferry to the island leaves at noon.</p>")
    asked = {"question": "When does the ferry leave?", "sources": [slow]}
    results: list[CallToolResult] = []

    async def extract(url: str) -> None:
        async with Client(f"{url}/mcp") as client:
            results.append(await client.call_tool("extract_relevant", asked))

    with served(cache_folder, networks="loopback", robots="0", seconds="60") as (process, url):
        await healthy(url)
        async with Client(f"{url}/mcp") as other, anyio.create_task_group() as group:
            group.start_soon(extract, url)
            while "/slow" not in site.asked:
                await other.list_tools()
            process.send_signal(signal.SIGTERM)
            while (await health(url))["status"] != "draining":
                await other.list_tools()
            late = await other.call_tool("research", {"question": "When does the ferry leave?"})
            site.hold.set()
        assert process.wait(EXIT_SECONDS) == 128 + signal.SIGTERM
    assert late.is_error
    assert "shutting down" in text_of(late)
    assert "noon" in text_of(results[0])


@pytest.mark.parametrize("tool", ["raptor_query", "extract_relevant"])
async def test_a_caller_waits_for_no_place_though_another_holds_them_all(
    cache_folder: Path, site: Site, tool: str
) -> None:
    slow = site.put("/slow", "<p>The ferry to the island leaves at noon.</p>")
    reported: list[str] = []
    queued = anyio.Event()

    async def wait(progress: float, total: float | None, message: str | None) -> None:
        if (message or "").startswith("waiting"):
            queued.set()

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        reported.append(message or "")

    async def ask(client: Client) -> None:
        asked = {"question": "When does the ferry leave?", "sources": [slow]}
        await client.call_tool(tool, asked, progress_callback=wait)

    given = {"networks": "loopback", "robots": "0", "seconds": "200", "http_tokens": "many,one"}
    with served(cache_folder, **given) as (_, url):
        await healthy(url)
        async with (
            as_caller(url, "many") as many,
            as_caller(url, "one") as one,
            anyio.create_task_group() as group,
        ):
            for _ in range(64):
                group.start_soon(ask, many)
            await queued.wait()
            page = {
                "question": "How deep is Lake Orvane?",
                "sources": [str(LIBRARY / "lake-orvane.html")],
            }
            result = await one.call_tool(tool, page, progress_callback=listen)
            site.hold.set()
    assert "213 metres" in text_of(result)
    assert [message for message in reported if message.startswith("waiting")] == []


async def test_a_session_answers_only_the_token_that_opened_it(cache_folder: Path) -> None:
    with served(cache_folder, http_tokens="mine,theirs") as (_, url):
        await healthy(url)
        async with httpx2.AsyncClient(timeout=60) as http:

            async def post(
                token: str, message: dict[str, object], session: str = ""
            ) -> httpx2.Response:
                headers = {
                    "Accept": "application/json, text/event-stream",
                    "Authorization": f"Bearer {token}",
                }
                headers |= {"Mcp-Session-Id": session} if session else {}
                return await http.post(f"{url}/mcp", headers=headers, json=message)

            session = (await post("mine", HELLO)).headers["Mcp-Session-Id"]
            listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
            assert (await post("theirs", listing, session)).status_code == 404
            assert (await post("mine", listing, session)).status_code == 200


async def test_without_sessions_a_client_of_2025_may_ask_any_server(
    cache_folder: Path,
) -> None:
    with served(cache_folder, http="stateless=1") as (_, url):
        await healthy(url)
        async with httpx2.AsyncClient(timeout=60) as http:
            accept = {"Accept": "application/json, text/event-stream"}
            opened = await http.post(f"{url}/mcp", headers=accept, json=HELLO)
            listed = await http.post(
                f"{url}/mcp", headers=accept, json=call(2, "search_web", question="ferry")
            )
    assert "Mcp-Session-Id" not in opened.headers
    assert listed.status_code == 200
    assert "erry" in listed.text


async def test_heads_that_never_end_keep_no_one_from_being_answered(cache_folder: Path) -> None:
    with served(cache_folder) as (_, url):
        await healthy(url)
        port = int(url.rpartition(":")[2])
        async with AsyncExitStack() as stack:
            for _ in range(600):
                stream = await anyio.connect_tcp("127.0.0.1", port)
                await stack.enter_async_context(stream)
                await stream.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            async with httpx2.AsyncClient(timeout=60) as http:
                assert (await http.get(f"{url}/healthz")).status_code == 200


async def test_half_a_request_does_not_hold_a_connection(cache_folder: Path) -> None:
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with served(cache_folder) as (_, url):
        await healthy(url)
        port = int(url.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as head_only:
            await head_only.send(head)
            async with await anyio.connect_tcp("127.0.0.1", port) as half_body:
                await half_body.send(head + b'Content-Length: 100\r\n\r\n{"jsonrpc"')
                assert b"408" in await half_body.receive()
            with pytest.raises(anyio.EndOfStream):
                await head_only.receive()
        assert (await healthy(url))["status"] == "ok"
