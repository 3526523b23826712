"""The server as a process on Streamable HTTP: both eras, the Host check, a quick end."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client

from tests.support import LIBRARY, ROOT, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def http_server(cache_folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "WINNOW_FOLDERS": str(LIBRARY), "WINNOW_CACHE": str(cache_folder)}
    command = [sys.executable, "-m", "server", "serve", "--http", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE) as process:
        try:
            yield process, f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


async def reachable(url: str) -> None:
    async with httpx2.AsyncClient() as http:
        for _ in range(300):
            try:
                await http.get(url, headers={"Accept": "application/json"})
            except httpx2.TransportError:
                await anyio.sleep(0.1)  # a process has no other way to say that it listens
            else:
                return
    raise AssertionError("the server never listened")


async def test_both_eras_get_an_answer_over_http_and_sigterm_ends_it(
    http_server: tuple[subprocess.Popen[bytes], str],
) -> None:
    process, url = http_server
    await reachable(url)
    for mode in ("auto", "legacy"):
        async with Client(url, mode=mode) as client:
            result = await client.call_tool("research", {"question": "When does the first ferry leave on Sundays?"})
            assert not result.is_error, text_of(result)
    process.send_signal(signal.SIGTERM)
    assert process.wait(3) in (0, 128 + signal.SIGTERM)


async def test_a_foreign_host_header_is_refused(http_server: tuple[subprocess.Popen[bytes], str]) -> None:
    _, url = http_server
    await reachable(url)
    async with httpx2.AsyncClient() as http:
        answer = await http.post(url, headers={"Host": "evil.example", "Accept": "application/json"}, json={})
    assert answer.status_code == 421
