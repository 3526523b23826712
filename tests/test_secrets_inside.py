"""Keys and passwords inside documents: a converted file is looked into by the rule of text files, and
`winnow status` says what was withheld. Archives are not read at all."""

import base64
import json
from pathlib import Path

import pytest

from tests.support import Connect, text_of
from tests.support.attacks import FACT, docx_of
from tests.support.commands import winnow
from tests.support.hidden_files import odt_of, xlsx_of
from tests.support.hostile_files import odf, pptx, shape, zipped
from tests.support.key_forms import KEY

LINES = KEY.decode().splitlines()
EXPORT = (("name", "url", "username", "password"), ("x.org", "https://x.org", "anna", "s3cret99"))


def sheet(rows: tuple[tuple[str, ...], ...]) -> str:
    cells = [
        "".join(
            f'<c r="{"ABCD"[column]}{row}" t="inlineStr"><is><t>{text}</t></is></c>'
            for column, text in enumerate(texts)
        )
        for row, texts in enumerate(rows, start=3)
    ]
    return "".join(f'<row r="{row}">{text}</row>' for row, text in enumerate(cells, start=3))


def table(rows: tuple[tuple[str, ...], ...]) -> str:
    """Return rows as a table of OpenDocument."""
    return "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in texts)
        + "</table:table-row>"
        for texts in rows
    )


def mail(body: bytes) -> bytes:
    head = b"From: a@example.org\nSubject: Key\nMIME-Version: 1.0\nContent-Type: text/plain\n"
    return head + b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(body)


SECRET: dict[str, bytes] = {
    "key.docx": docx_of("".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in LINES)),
    "key.odt": odt_of("".join(f"<text:p>{line}</text:p>" for line in LINES)),
    "key.pptx": pptx(
        "<p:cSld><p:spTree>"
        + shape("x").replace("x", "</a:t></a:r></a:p><a:p><a:r><a:t>".join(LINES))
        + "</p:spTree></p:cSld>"
    ),
    "key.eml": mail(KEY),
    "key.html": f"<title>Key</title><p>{'<br>'.join(LINES)}</p>".encode(),
    "key.ipynb": json.dumps(
        {"cells": [{"cell_type": "markdown", "source": [f"{line}\n" for line in LINES]}]}
    ).encode(),
    "key.rtf": ("{\\rtf1\\ansi " + "\\par ".join(LINES) + "}").encode(),
    "passwords.xlsx": xlsx_of(sheet(EXPORT)).replace(FACT.encode(), b""),
    "passwords.ods": odf(
        "spreadsheet", f'<table:table table:name="P">{table(EXPORT)}</table:table>'
    ),
    "passwords.html": (
        "<title>Passwords</title><table>"
        + "".join("<tr>" + "".join(f"<td>{x}</td>" for x in row) + "</tr>" for row in EXPORT)
        + "</table>"
    ).encode(),
}
OPEN: dict[str, bytes] = {
    "boats.docx": docx_of("<w:p><w:r><w:t>A key begins with BEGIN PRIVATE KEY.</w:t></w:r></w:p>"),
    "rules.xlsx": xlsx_of(sheet((("name", "url", "user", "rule"), ("x", "y", "z", "long")))),
}
ARCHIVES: dict[str, bytes] = {"keys.zip": zipped({"a.txt": KEY, "b.txt": FACT})}
pytestmark = pytest.mark.anyio


async def test_keys_inside_documents_are_read_by_no_tool(connect: Connect, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, body in (SECRET | OPEN | ARCHIVES).items():
        (folder / name).write_bytes(body)
    async with connect(
        folders=str(folder), cache=str(tmp_path / "cache"), embedder="none", reader="none"
    ) as client:
        for name in SECRET | ARCHIVES:
            asked = {"question": "password key", "sources": [str(folder / name)]}
            for tool in ("extract_relevant", "fetch_and_prune_html", "raptor_query"):
                result = await client.call_tool(tool, asked)
                assert result.is_error, (name, text_of(result))
                assert LINES[2][:20] not in text_of(result)
        for name in OPEN:
            asked = {"sources": [str(folder / name)]}
            assert not (await client.call_tool("fetch_and_prune_html", asked)).is_error, name
        for tool in ("research", "search_web"):
            text = text_of(await client.call_tool(tool, {"question": "password of x.org, key"}))
            assert "s3cret99" not in text
            assert LINES[2][:20] not in text
    listed = winnow(tmp_path / "cache", "status", folder=folder).stdout
    # Pages are counted as they are; what they hold is looked into where they are read.
    for name in SECRET:
        assert name.endswith(".html") or f"{name}: not read" in listed, (name, listed)


async def test_a_document_that_a_person_names_is_open_though_it_holds_keys(
    connect: Connect, tmp_path: Path
) -> None:
    path = tmp_path / "key.docx"
    path.write_bytes(SECRET["key.docx"])
    asked = {"sources": [str(path)], "part": "whole"}
    cache = str(tmp_path / "cache")
    async with connect(folders=str(path), cache=cache, embedder="none") as client:
        assert LINES[2][:20] in text_of(await client.call_tool("fetch_and_prune_html", asked))
    async with connect(folders=str(tmp_path), cache=cache, embedder="none") as client:
        assert (await client.call_tool("fetch_and_prune_html", asked)).is_error
