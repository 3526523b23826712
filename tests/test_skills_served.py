"""Skills as a client meets them: listed, described with their hash, read as resources."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a package of their own
from mcp import Client, StdioServerParameters

from tests.support import ROOT
from tests.support.processes import HELLO, READY, answer_to, say
from tests.test_stdio import environment, server

pytestmark = pytest.mark.slow


def result_of(process: subprocess.Popen[bytes], number: int) -> Any:
    return answer_to(process, number)["result"]


def ask(number: int, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_a_client_finds_the_skills_with_their_hash_and_reads_them(cache_folder: Path) -> None:
    with server(cache_folder) as process:
        say(process, HELLO)
        hello = result_of(process, 1)
        assert hello["serverInfo"]["websiteUrl"].startswith("https://")
        assert hello["serverInfo"]["icons"][0]["mimeType"] == "image/png"
        # This revision has no field for extensions; `server/discover` of the next one has.
        say(process, READY, ask(2, "skills/list"))
        listed = result_of(process, 2)
        assert (listed["resultType"], listed["cacheScope"]) == ("complete", "public")
        names = [skill["frontmatter"]["name"] for skill in listed["skills"]]
        assert names == ["ask-my-folder", "check-my-draft", "read-one-site", "research"]
        for number, skill in enumerate(listed["skills"], start=3):
            uri = skill["uri"]
            file = ROOT / "skills" / skill["frontmatter"]["name"] / "SKILL.md"
            say(process, ask(number, "resources/read", uri=uri))
            (content,) = result_of(process, number)["contents"]
            assert content["mimeType"] == "text/markdown"
            raw = content["text"].encode()
            assert raw == file.read_bytes()
            digest = hashlib.sha256(raw).hexdigest()
            assert skill["resources"] == [
                {"uri": uri, "digest": f"sha256:{digest}", "size": len(raw)}
            ]
            # Hosts compare what they parse with what is listed.
            assert yaml.safe_load(raw.decode().split("---\n")[1]) == skill["frontmatter"]
        say(process, ask(9, "skills/get", uri=listed["skills"][0]["uri"]))
        assert result_of(process, 9)["skill"] == listed["skills"][0]
        say(process, ask(10, "skills/get", uri="skill://none/SKILL.md"))
        refused: Any = answer_to(process, 10)["error"]
        assert refused["code"] == -32602


@pytest.mark.anyio
async def test_the_extension_is_declared_to_clients_of_the_revision_that_has_extensions(
    cache_folder: Path,
) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "server"], env=environment(cache_folder), cwd=ROOT
    )
    async with Client(parameters, mode="auto") as client:
        declared = client.server_capabilities.extensions or {}
    assert declared["io.modelcontextprotocol/skills"] == {}
