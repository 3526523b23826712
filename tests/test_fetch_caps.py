"""The cap on pages and files (`WINNOW_PAGE_MB`): what it lets in, and the call that a refusal
names."""

import gzip
from pathlib import Path

import pytest

from tests.support import Connect, Site, text_of
from tests.support.hostile_files import xlsx

pytestmark = pytest.mark.anyio

FACT = "<p>The lock at Brindle holds 4,112 cubic metres of water.</p>"
LARGE = f"<title>Lock</title>{FACT}<!-- {'x' * 1_400_000} -->".encode()
ROWS = "<row><c t='inlineStr'><is><t>Brindle</t></is></c></row>" * 30_000


async def asked(connect: Connect, source: str, folder: Path, page_mb: str) -> str:
    async with connect(
        folders=str(folder), search="none", networks="loopback", page_mb=page_mb
    ) as client:
        return text_of(
            await client.call_tool("fetch_and_prune_html", {"sources": [source], "max_tokens": 300})
        )


@pytest.mark.parametrize("form", ["page", "file", "packed file", "workbook"])
async def test_what_is_over_the_cap_names_the_setting_that_reads_it(
    connect: Connect, site: Site, tmp_path: Path, form: str
) -> None:
    (tmp_path / "lock.html").write_bytes(LARGE)
    (tmp_path / "lock.html.gz").write_bytes(gzip.compress(LARGE.replace(b"xx", b"x\n")))
    (tmp_path / "lock.xlsx").write_bytes(xlsx(ROWS))
    source = {
        "page": site.put("/lock", LARGE),
        "file": str(tmp_path / "lock.html"),
        "packed file": str(tmp_path / "lock.html.gz"),
        "workbook": str(tmp_path / "lock.xlsx"),
    }[form]
    refused = await asked(connect, source, tmp_path, "1")
    assert "WINNOW_PAGE_MB=2" in refused
    assert "--set page_mb=2" in refused
    assert "Brindle" in await asked(connect, source, tmp_path, "2")
