"""A line of research that lasts: gone on with, asked further, killed, private, listed; on loopback,
by its doors."""

import json
import secrets
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextResourceContents

from bench.sessions import kill_runs
from cache.store import open_stores
from pipeline.question.question import Question
from pipeline.reading.reading import Reading
from pipeline.session.session import MOST_SESSION_BYTES, Ongoing, find_session
from readers.page import Evidence, Score
from tests.support import LIBRARY, Connect, Site, data_of, text_of
from tests.support.cache_server import cache_server
from tests.support.commands import winnow
from tests.support.processes import healthy, served
from tests.test_web import hits

pytestmark = pytest.mark.anyio

LIT = "When was the light on Orvane Head first lit?"
ANSWERED = Reading("answered", "", 1.0, (), np.zeros(0, dtype=np.float32), "bm25")
KEPT = "Who was the keeper on Orvane Head?"


LIGHT = (
    "The light on Orvane Head was first lit on 4 May 1871. Its lens came by ship from Paris. The "
    "tower is 31 metres "
    "high and built of granite from the quarry of Pell. Coal was burnt at first, then oil."
)
KEEPER = (
    "Anna Lind was the keeper on Orvane Head until 1931. She wrote down the weather every "
    "morning. Her sister grew "
    "potatoes behind the house. A goat and two dogs lived there as well."
)


def publish(site: Site, *, slow: bool = False) -> None:
    """Put a page about a light and one about its keeper, and an engine that finds both, whatever is
    asked."""
    path = "/slow" if slow else "/keeper"
    first = site.put("/light", f"<title>The light</title><p>{LIGHT}</p>")
    second = site.put(path, f"<title>The keeper</title><p>{KEEPER}</p>")
    for page in ("/light", path):
        status, headers, body = site.pages[page]
        site.pages[page] = (status, {**headers, "Cache-Control": "no-cache"}, body)
    site.put("/search", hits((first, "A light."), (second, "A keeper.")), kind="application/json")


def asked(site: Site) -> list[str]:
    return [path.partition("?")[0] for path in site.asked]


def data(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    return data_of(result)


def settings(site: Site, cache: Path, **more: str) -> dict[str, str]:
    return {
        "folders": " ",
        "searxng": site.url(""),
        "networks": "loopback",
        "web": "named",
        "robots": "false",
        "cache": str(cache),
        **more,
    }


async def test_the_same_question_goes_on_without_asking_anybody(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    publish(site)
    async with connect(**settings(site, tmp_path)) as client:
        first = data(await client.call_tool("research", {"question": LIT}))
    before = len(site.asked)
    async with connect(**settings(site, tmp_path)) as client:
        again = await client.call_tool("research", {"question": LIT, "session": first["session"]})
    assert data(again)["session"] == first["session"]
    assert "1871" in text_of(again)
    assert len(site.asked) == before
    assert "Shown before: all" in text_of(again)


async def test_a_question_that_refers_to_an_earlier_one_asks_for_its_session(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    publish(site)
    async with connect(**settings(site, tmp_path)) as client:
        alone = await client.call_tool("research", {"question": "What is its default?"})
        assert "pass that answer's session" in text_of(alone)
        complete = await client.call_tool("research", {"question": LIT})
        assert "that answer's session" not in text_of(complete)


async def test_a_further_question_fetches_no_page_twice_and_reports_what_is_new(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    publish(site)
    async with connect(**settings(site, tmp_path)) as client:
        first = await client.call_tool("research", {"question": LIT, "max_pages": 1})
        short = data(first)["session"].rpartition("/")[2]
        assert f"Session: {short}" in text_of(first)
        second = await client.call_tool(
            "research", {"question": KEPT, "session": data(first)["session"]}
        )
        assert "Anna Lind" in text_of(second)
        shown = {passage["label"] for passage in data(second)["passages"]}
        assert set(data(second).get("before", [])) < shown
    assert asked(site).count("/search") == 2
    assert (asked(site).count("/light"), asked(site).count("/keeper")) == (1, 1)


async def test_a_page_that_was_read_answers_though_no_search_finds_it_any_more(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    publish(site)
    async with connect(**settings(site, tmp_path)) as client:
        first = data(await client.call_tool("research", {"question": LIT}))
        other = site.put("/other", "<title>Other</title><p>Boats are red.</p>")
        site.put("/search", hits((other, "Boats.")), kind="application/json")
        second = await client.call_tool("research", {"question": KEPT, "session": first["session"]})
    assert "Anna Lind" in text_of(second)
    assert asked(site).count("/keeper") == 1


async def test_a_call_ends_in_time_with_what_it_has_and_goes_on_with_the_handle(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    publish(site, slow=True)
    async with connect(**settings(site, tmp_path, seconds="12")) as client:
        first = await client.call_tool("research", {"question": KEPT})
        following = data(first)["next"][0]
        short = data(first)["session"].rpartition("/")[2]
        assert following == {"tool": "research", "arguments": {"session": short}}
        assert f'session="{short}"' in text_of(first)
        site.hold.set()
        second = await client.call_tool("research", {"question": KEPT, **following["arguments"]})
    assert "Anna Lind" in text_of(second)
    assert data(second)["failures"] == []
    assert (asked(site).count("/search"), asked(site).count("/light")) == (1, 1)


async def test_a_handle_that_is_none_is_refused_with_what_to_do(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    publish(site)
    async with connect(**settings(site, tmp_path)) as client:
        for handle in ("winnow://session/0123456789abcdef01234567", "nonsense", "winnow://page/1"):
            result = await client.call_tool("research", {"question": LIT, "session": handle})
            assert result.is_error
            assert "unknown" in text_of(result)
            assert "Leave it out" in text_of(result)
    assert site.asked == []


async def test_a_session_is_read_as_a_resource_in_each_form(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    publish(site)
    async with connect(**settings(site, tmp_path)) as client:
        handle = data(await client.call_tool("research", {"question": LIT}))["session"]
        for form, begins in (("/html", "<!DOCTYPE html>"), ("/bibtex", "@misc{"), ("/json", "{")):
            found = (await client.read_resource(f"{handle}{form}")).contents[0]
            assert isinstance(found, TextResourceContents)
            assert found.text.startswith(begins)
        read = (await client.read_resource(handle)).contents[0]
        assert isinstance(read, TextResourceContents)
        assert f"»\n# {LIT}" in read.text
        unknown = "winnow://session/0123456789abcdef01234567"
        for asked, said in ((f"{handle}/docx", "no format 'docx'"), (unknown, "unknown")):
            with pytest.raises(MCPError, match=said):
                await client.read_resource(asked)


async def test_a_session_that_grows_over_its_cap_loses_its_oldest_questions(tmp_path: Path) -> None:
    stores = open_stores(tmp_path, size_limit=10**9)
    handle = ""
    for number in range(12):
        question = f"What is number {number}?"
        ongoing = await Ongoing.begin(stores, Question(question), handle=handle, owner="", roots=())
        handle = ongoing.session.handle
        words = f"Number {number}: {'ä' * (MOST_SESSION_BYTES // 10)}"
        passage = Evidence(
            words, "https://e.org/", "", "html/body", (1,), Score(1.0, "read"), "https://e.org/"
        )
        assert await ongoing.keep(ANSWERED, [], [passage], [], []) == [False]
    session = find_session(stores, handle, owner="", roots=())
    kept = stores.sessions.get_json(f"session:{handle.rpartition('/')[2]}")
    stores.close()
    assert session is not None
    assert len(json.dumps(kept, ensure_ascii=False).encode()) <= MOST_SESSION_BYTES
    assert 1 < len(session.turns) < 12
    assert session.turns[-1].question == "What is number 11?"


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_session_killed_at_random_goes_on_and_asks_nothing_twice(
    tmp_path: Path,
) -> None:
    seed = secrets.randbits(64)
    assert kill_runs(tmp_path, seed=seed, kills=10) == [], f"with seed {seed}"


def client_of(url: str, http: httpx2.AsyncClient) -> Client:
    return Client(streamable_http_client(f"{url}/mcp", http_client=http))


def with_token(token: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=100)


@pytest.mark.slow
async def test_another_token_cannot_open_a_session_and_another_replica_goes_on_with_it(
    site: Site, tmp_path: Path
) -> None:
    publish(site)
    with cache_server(tmp_path / "redis") as redis:
        given = settings(site, tmp_path, http_tokens="ann,bob", cache_url=redis.url)
        del given["cache"]
        with served(tmp_path / "one", **given) as (_, url):
            await healthy(url)
            async with with_token("ann") as http, client_of(url, http) as client:
                handle = data(await client.call_tool("research", {"question": LIT}))["session"]
        before = len(site.asked)
        with served(tmp_path / "other", **given) as (_, url):
            await healthy(url)
            async with with_token("bob") as http, client_of(url, http) as client:
                refused = await client.call_tool("research", {"question": LIT, "session": handle})
                assert refused.is_error
                assert "unknown" in text_of(refused)
                with pytest.raises(MCPError, match="unknown"):
                    await client.read_resource(handle)
            async with with_token("ann") as http, client_of(url, http) as client:
                again = await client.call_tool("research", {"question": LIT, "session": handle})
                assert "Shown before: all" in text_of(again)
                assert "1871" in str((await client.read_resource(handle)).contents[0])
        assert len(site.asked) == before


@pytest.mark.slow
async def test_a_session_with_local_files_stays_on_this_machine(
    connect: Connect, tmp_path: Path
) -> None:
    with cache_server(tmp_path / "redis") as redis:
        given = {"cache": str(tmp_path / "own"), "cache_url": redis.url}
        async with connect(folders=str(LIBRARY), **given) as client:
            question = {"question": "When does the first ferry leave on Sundays?"}
            handle = data(await client.call_tool("research", question))["session"]
            assert data(await client.call_tool("research", {**question, "session": handle}))[
                "before"
            ]
        stores = open_stores(tmp_path / "own", size_limit=10**9, url=redis.url)
        try:
            assert stores.sessions.keys("") == []
            assert find_session(stores, handle, owner="", roots=[LIBRARY]) is not None
            # Where the folder is allowed no more, what was read in it is not shown.
            assert find_session(stores, handle, owner="", roots=[]) is None
        finally:
            stores.close()


@pytest.mark.slow
def test_a_session_is_shown_exported_and_removed_on_the_command_line(tmp_path: Path) -> None:
    question = "When does the first ferry leave on Sundays?"
    found = winnow(tmp_path, "research", question, "--json", "--quiet")
    handle = json.loads(found.stdout)["session"]
    assert winnow(tmp_path, "sessions", "show", handle, folder=None).stdout.startswith(
        f"# {question}"
    )
    exported = winnow(tmp_path, "sessions", "export", handle, "--format", "ris", folder=None).stdout
    assert exported.startswith("TY  - ELEC")
    assert handle in winnow(tmp_path, "sessions", "remove", handle, folder=None).stdout
    gone = winnow(tmp_path, "sessions", "show", handle, folder=None)
    assert (gone.returncode, "There is no session" in gone.stderr) == (2, True)
    assert str(tmp_path) in gone.stderr


@pytest.mark.slow
async def test_who_runs_a_server_finds_the_session_of_any_of_its_callers(
    site: Site, tmp_path: Path
) -> None:
    publish(site)
    given = settings(site, tmp_path, http_tokens="ann,bob")
    cache = Path(given.pop("cache"))
    with served(cache, **given) as (_, url):
        await healthy(url)
        async with with_token("ann") as http, client_of(url, http) as client:
            handle = data(await client.call_tool("research", {"question": LIT}))["session"]
        assert "1871" in winnow(cache, "sessions", "show", handle, folder=None).stdout
        assert handle in winnow(cache, "sessions", "remove", handle, folder=None).stdout
        async with with_token("ann") as http, client_of(url, http) as client:
            gone = await client.call_tool("research", {"question": LIT, "session": handle})
    assert "unknown" in text_of(gone)
