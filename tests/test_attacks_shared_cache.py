"""What a person's files leave in a cache that others use."""

import re
from pathlib import Path

import pytest

from tests.support import LIBRARY, Connect
from tests.support.cache_server import PROGRAM, cache_server
from tests.support.extras import need
from tests.test_attacks import handles_of, opens

pytestmark = pytest.mark.anyio


@pytest.mark.skipif(PROGRAM is None, reason="neither valkey-server nor redis-server is installed")
async def test_nothing_of_a_persons_file_goes_to_a_shared_cache(
    connect: Connect, tmp_path: Path
) -> None:
    redis = need("redis")
    folder = tmp_path / "private"
    folder.mkdir()
    path = folder / "light.md"
    path.write_text(
        "\n\n".join(
            f"# Light {n}\n\nThe zquorvex of the harbour light number {n} burns." for n in range(9)
        )
    )
    with cache_server(tmp_path / "server") as server:
        own = str(tmp_path / "own")
        async with connect(folders=str(folder), cache=own, cache_url=server.url) as client:
            handles = await handles_of(client, str(path))
            await client.call_tool("research", {"question": "What of the zquorvex burns?"})
            assert all([await opens(client, handle) for handle in handles])
        shared = redis.Redis.from_url(server.url)
        kept = {key: shared.get(key) for key in shared.scan_iter("*")}
        leaked = [
            key
            for key, value in kept.items()
            if b"zquorvex" in (value or b"") or b"light.md" in (value or b"")
        ]
        derived = [key for key in kept if re.match(rb"(?:embeddings|scores|trees):", key)]
        async with connect(
            folders=str(LIBRARY), cache=str(tmp_path / "other"), cache_url=server.url
        ) as client:
            assert not any([await opens(client, handle) for handle in handles])
    assert leaked == []
    assert derived == []
