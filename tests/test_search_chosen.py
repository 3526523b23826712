"""Which providers a server searches, by its settings; all of them are installed."""

import pytest

from tests.support import Connect
from tests.support.extras import need

CATALOGUES = "openalex, semanticscholar, crossref, arxiv"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"folders": " "}, f"ddgs, tavily-keyless, wikipedia, {CATALOGUES}"),
        # Who names a folder and nothing else has not said that questions about it may go to
        # strangers.
        ({}, "folder"),
        ({"search": "keyless,folder"}, f"ddgs, tavily-keyless, wikipedia, folder, {CATALOGUES}"),
        ({"keys": "brave=k"}, "brave, folder"),
        ({"keys": "brave=k", "search": "brave,academic"}, f"brave, {CATALOGUES}"),
        ({"search": "academic"}, CATALOGUES),
        ({"search": "arxiv,wikipedia"}, "arxiv, wikipedia"),
        ({"search": "folder"}, "folder"),
        ({"search": "none"}, "none"),
        ({"search": "folder", "folders": " "}, "none"),
    ],
)
async def test_who_is_searched_follows_from_what_is_set(
    connect: Connect, given: dict[str, str], asked: str
) -> None:
    need("ddgs")
    async with connect(**given) as client:
        status = str((await client.read_resource("winnow://status")).contents[0])
    assert f"search providers: {asked}\\n" in status
