"""The server as a process on Streamable HTTP: both eras, the Host check, a quick end."""

import signal
from pathlib import Path

import httpx2
import pytest
from mcp import Client

from tests.support import text_of
from tests.support.processes import EXIT_SECONDS, healthy, served

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
                f"{url}/mcp", headers={"Host": "evil.example", "Accept": "application/json"}, json={}
            )
    assert answer.status_code == 421
