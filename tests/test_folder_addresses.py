"""Files at addresses that readers open: `DIR=https://…` in the list of folders."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextResourceContents

from server.folder_list import as_list, folders_in
from server.settings import read_settings
from tests.support import LIBRARY, ROOT, Connect, data_of, text_of
from tests.support.pdf import make_pdf
from tools.common.ending import RESULT

pytestmark = pytest.mark.anyio
ADDRESS = "https://files.example.org:8443/team/Docs%20A"
ODD = "50% #1 ö? lease.md"
ODD_QUOTED = "50%25%20%231%20%C3%B6%3F%20lease.md"
NOTE = "# Lease\n\nOne cat may live in the flat.\n\n{}"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that others open at ADDRESS, with odd names and a PDF."""
    below = tmp_path / "my docs" / "sub dir"
    below.mkdir(parents=True)
    (below / ODD).write_text(NOTE.format(""), encoding="utf-8")
    pages = [[("One is about pumps.", 12)], [("The zeppelin valve opens at 7 bar.", 12)]]
    (below.parent / "manual.pdf").write_bytes(make_pdf(pages, title="manual"))
    return below.parent


@pytest.fixture
def folders(shared: Path) -> str:
    """The setting that names it, and one without an address."""
    return os.pathsep.join((f"{shared}={ADDRESS}/", str(LIBRARY)))


def _facts(result: Any) -> str:
    return json.dumps(result.meta, ensure_ascii=False)


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("/a:/b=c:/d", {"/a": "", "/b=c": "", "/d": ""}),
        ("/a=https://x.org:/b", {"/a": "=https://x.org", "/b": ""}),
        ("/a=https://x.org:81/d:/b", {"/a": "=https://x.org:81/d", "/b": ""}),
        ("/b: /a=http://x.org/?dir= ", {"/b": "", "/a": "=http://x.org/?dir="}),
        ("/a=https://ann:word@x.org", {"/a": "=https://ann", "word@x.org": ""}),
        ('/a=https://x.org/"', {"/a=https": "", '//x.org/"': ""}),
        ("::", {}),
    ],
)
@pytest.mark.skipif(os.pathsep != ":", reason="as on Linux and macOS")
def test_an_address_follows_its_folder(text: str, folders: dict[str, str]) -> None:
    assert folders_in(text) == folders
    assert folders_in(as_list(folders, os.pathsep)) == folders


async def test_answers_cite_the_address_and_take_it_back_as_the_file(
    connect: Connect, shared: Path, folders: str
) -> None:
    question = {"question": "May a cat live in the flat?"}
    lease = f"{ADDRESS}/sub%20dir/{ODD_QUOTED}"
    async with connect(folders=folders, search="folder", web="off") as client:
        answer = await client.call_tool("research", question)
        assert f"[1] {lease}\n" in text_of(answer)
        assert data_of(answer)["pages"][0] == lease
        found = await client.call_tool("search_web", question)
        assert lease in text_of(found)
        assert data_of(found)["hits"][0]["url"] == lease
        decoded = f"{ADDRESS}/sub dir/50%25 %231 ö%3F lease.md"
        for source in (lease, f"<{lease}>", f"[lease]({lease})", decoded, f"{lease}?web=1"):
            read = await client.call_tool("extract_relevant", {**question, "sources": [source]})
            assert f"[1] {lease}\n" in text_of(read), source
        for tool, more in (
            ("fetch_and_prune_html", {"part": "files"}),
            ("raptor_query", question),
        ):
            read = await client.call_tool(tool, {"sources": [ADDRESS], **more})
            assert "lease" in text_of(read), tool
            assert shared.as_uri() not in text_of(read) + _facts(read), tool
        draft = f"One cat may live in the flat [1].\n\n[1]: {lease}"
        checked = await client.call_tool("extract_relevant", {"sources": [lease], "draft": draft})
        assert text_of(checked).startswith("Checked 2: 1 ")
        assert ", 1 there." in text_of(checked)
        assert lease in text_of(checked)
        session = data_of(answer)["session"]
        for form in ("", "/html", "/json", "/bibtex", "/ris"):
            [content] = (await client.read_resource(session + form)).contents
            assert isinstance(content, TextResourceContents)
            assert ADDRESS in content.text, form
            assert shared.as_uri() not in content.text, form
        for result in (answer, found, checked):
            assert shared.as_uri() not in text_of(result) + _facts(result)


async def test_a_cited_page_of_a_pdf_is_where_reading_begins(
    connect: Connect, shared: Path, folders: str
) -> None:
    question = {"question": "At which pressure does the zeppelin valve open?"}
    for setting, base in ((folders, ADDRESS), (str(shared), shared.as_uri())):
        manual = f"{base}/manual.pdf"
        async with connect(folders=setting, search="folder", web="off") as client:
            answer = await client.call_tool("research", question)
            assert f"[1] {manual}\n" in text_of(answer)
            link = data_of(answer)["passages"][-1]["link"]
            assert link.startswith("#page=2")
            for place in ("#page=2", link, "#pages=2-2"):
                arguments = {"sources": [manual + place]}
                read = text_of(await client.call_tool("fetch_and_prune_html", arguments))
                assert "opens at 7 bar" in read.partition("pumps")[0], place


async def test_an_address_opens_nothing_outside_and_is_never_asked_for(
    connect: Connect, shared: Path, folders: str
) -> None:
    (shared.parent / "secret.txt").write_text("The quokka is secret.", encoding="utf-8")
    async with connect(folders=folders, search="folder", web="named") as client:
        for name, why in (
            ("../secret.txt", "does not lie below an allowed folder"),
            ("%2e%2e/secret.txt", "does not lie below an allowed folder"),
            ("gone.txt", "There is no file"),
        ):
            arguments = {"sources": [f"{ADDRESS}/{name}"], "question": "What is secret?"}
            refused = await client.call_tool("extract_relevant", arguments)
            assert refused.is_error, name
            assert why in text_of(refused), name


async def test_words_that_a_file_quotes_stay_and_budgets_hold(
    connect: Connect, shared: Path, folders: str
) -> None:
    quoting = f"The lease is at {shared.as_uri()}/lease.md for tenants."
    (shared / "sub dir" / ODD).write_text(NOTE.format(quoting), encoding="utf-8")
    async with connect(folders=folders, search="folder", web="off") as client:
        for max_tokens in (150, 300, 600):
            arguments = {"question": "Where is the lease for tenants?", "max_tokens": max_tokens}
            answer = await client.call_tool("research", arguments)
            assert data_of(answer)["tokens"] <= max_tokens
            assert f"{ADDRESS}/sub%20dir" in text_of(answer)
            assert quoting in text_of(answer)


@pytest.mark.slow
async def test_a_client_on_stdio_gets_what_the_list_of_folders_says(
    shared: Path, tmp_path: Path
) -> None:
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "WINNOW_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "server"]

    def run(*arguments: str) -> str:
        words = [*command, "folders", *arguments]
        done = subprocess.run(words, check=False, cwd=ROOT, env=env, capture_output=True, text=True)
        return done.stdout + done.stderr

    assert run("add", str(shared)) == f"{shared}\n"
    assert run("add", f"{shared}={ADDRESS}") == f"{shared}={ADDRESS}\n"
    assert "does not exist" in run("add", f"{shared}=https://ann:word@files.example.org")
    server = StdioServerParameters(command=command[0], args=command[1:], env=env, cwd=ROOT)
    async with Client(server) as client:
        arguments = {"question": "May a cat live in the flat?"}
        answer = await client.call_tool("research", arguments)
        [lease, *_] = (answer.meta or {})[RESULT]["pages"]
        assert lease == f"{ADDRESS}/sub%20dir/{ODD_QUOTED}"
        read = await client.call_tool("fetch_and_prune_html", {"sources": [lease]})
        assert "One cat may live" in text_of(read)
    assert "No folder is listed" in run("remove", str(shared))


def test_an_address_in_a_setting_is_of_its_folder_alone(tmp_path: Path) -> None:
    settings = read_settings({"folders": f"{tmp_path}=https://x.org/ö/"}, {})
    assert settings.folders == (tmp_path.resolve(),)
    assert settings.addresses == ((tmp_path.resolve().as_uri(), "https://x.org/%C3%B6"),)
