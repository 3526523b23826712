"""What of a source was not read is said by every tool, with the call that reads on."""

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult

from tests.support import Connect, data_of, text_of
from tests.support.pdf import make_pdf

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

CUT = "pages 501 to 530 of 530 (to read on, add #pages=501-530)"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report of 530 pages, 500 of which one reading takes."""
    folder = tmp_path / "reports"
    folder.mkdir()
    pages = [
        [(f"Berth {n} of the harbour is let to the boat number {n}.", 11)] for n in range(1, 529)
    ]
    last = [
        [("The zeppelin mast rests on the north pier since 1931.", 11)],
        [("Printed by the harbour office.", 11)],
    ]
    (folder / "report.pdf").write_bytes(make_pdf([*pages, *last], title="Berths"))
    return folder / "report.pdf"


async def asked(client: Client, tool: str, **arguments: Any) -> CallToolResult:
    result = await client.call_tool(
        tool, {"question": "Which boat has berth 17 of the harbour?", **arguments}
    )
    assert not result.is_error, text_of(result)
    return result


def rest_of(result: CallToolResult) -> list[str]:
    """Return the sources that the answer names to read on."""
    return [
        source
        for call in data_of(result)["next"]
        for source in call["arguments"].get("sources", [])
        if "#pages=" in source
    ]


async def test_every_tool_says_which_pages_were_not_read_and_the_call_that_reads_on(
    connect: Connect, report: Path, tmp_path: Path
) -> None:
    async with connect(
        folders=str(report.parent), cache=str(tmp_path / "cache"), seconds="120"
    ) as client:
        named = {"sources": [str(report)]}
        results = {
            "fetch_and_prune_html": await asked(
                client, "fetch_and_prune_html", **named, max_tokens=600
            ),
            "extract_relevant": await asked(client, "extract_relevant", **named),
            "raptor_query": await asked(client, "raptor_query", **named),
            "research": await asked(client, "research", max_tokens=600),
            "search_web": await asked(client, "search_web"),
        }
        tree = data_of(results["raptor_query"])["tree"]
        results["the tree again"] = await asked(client, "raptor_query", sources=[tree])
        for tool, result in results.items():
            assert CUT in text_of(result), tool
            assert rest_of(result) == [f"{report.as_uri()}#pages=501-530"], tool
        # The rest, by the name that the answers gave, and by the path as a person has it
        rest = rest_of(results["research"])
        for sources in (rest, [f"{report}#pages=501-530"]):
            found = await asked(
                client, "extract_relevant", sources=sources, question="Since when is there a mast?"
            )
            assert "1931" in text_of(found)
            assert "not read" not in text_of(found).lower()
            assert "#page=5" in str(data_of(found))
        grown = await asked(
            client, "raptor_query", sources=[tree, *rest], question="Since when is there a mast?"
        )
        assert "1931" in text_of(grown)
        assert CUT in text_of(await asked(client, "raptor_query", sources=[str(report)]))


async def test_pages_that_a_pdf_does_not_have_are_refused_with_their_number(
    connect: Connect, report: Path
) -> None:
    async with connect(folders=str(report.parent)) as client:
        result = await client.call_tool(
            "fetch_and_prune_html", {"sources": [f"{report}#pages=600-700"]}
        )
    assert result.is_error
    assert "530 pages" in text_of(result)
