"""A cache that another process holds is done without, and a call keeps its time."""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cache.store import Store, open_stores
from tests.support import Connect, text_of

HELD = {
    "a write": ("BEGIN IMMEDIATE",),
    "an exclusive transaction": ("BEGIN EXCLUSIVE",),
    "the exclusive mode": ("PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE"),
    "the exclusive mode of a write": (
        "PRAGMA locking_mode=EXCLUSIVE",
        "BEGIN IMMEDIATE",
        "CREATE TABLE X (a)",
    ),
    "a write that is not done": ("BEGIN IMMEDIATE", "CREATE TABLE Y (a)"),
}


@contextmanager
def held(folder: Path, *words: str) -> Iterator[None]:
    """Hold every database below a folder as another process does."""
    others = [
        sqlite3.connect(path, isolation_level=None, timeout=0)
        for path in (*folder.rglob("cache.db"), *folder.rglob("*.sqlite"))
    ]
    assert others
    for other in others:
        for word in words:
            other.execute(word)
    try:
        yield
    finally:
        for other in others:
            other.close()


@pytest.mark.parametrize("words", HELD.values(), ids=HELD)
def test_a_store_that_is_held_is_opened_and_done_without(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    Store(tmp_path, clock=time.time, size_limit=50_000_000).close()
    with held(tmp_path, *words):
        store = Store(tmp_path, clock=time.time, size_limit=50_000_000)
        for number in range(20):
            store.set_json(f"k{number}", number)
            assert store.get_json(f"k{number}") in {None, number}
        assert "NOT USED" in store.stats().trouble
        store.close()


@pytest.mark.parametrize("words", [HELD["a write"], HELD["an exclusive transaction"]])
def test_a_store_that_is_held_while_it_is_used_is_waited_for_once(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    store = Store(tmp_path, clock=time.time, size_limit=50_000_000)
    store.set_json("before", 1)
    with held(tmp_path, *words):
        store.set_json("held", 2)
        assert "NOT USED" in store.stats().trouble
    # It is free again; nothing has been tried since, so nothing has waited
    store.set_json("after", 3)
    store.close()
    other = Store(tmp_path, clock=time.time, size_limit=50_000_000)
    assert [other.get_json(key) for key in ("before", "held", "after")] == [1, None, None]
    other.close()


@pytest.mark.timeout(50)  # diskcache by itself tries for a minute
def test_an_emptied_database_that_another_process_reads_is_done_without(tmp_path: Path) -> None:
    store = Store(tmp_path, clock=time.time, size_limit=50_000_000)
    store.set_json("before", 1)
    database = tmp_path / "cache.db"
    with held(tmp_path, "SELECT * FROM Cache"):
        database.write_bytes(b"")
        late = Store(tmp_path, clock=time.time, size_limit=50_000_000)
        assert late.get_json("before") is None
        late.close()
    store.close()


def test_stores_that_are_held_are_waited_for_together_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stores = open_stores(tmp_path, size_limit=50_000_000, clock=time.time)
    with held(tmp_path, "BEGIN EXCLUSIVE"), caplog.at_level(logging.WARNING):
        for store in stores.by_kind.values():
            store.set_json("k", 1)
            assert store.get_json("k") is None
        assert caplog.text.count("not used") == 1
    stores.close()


@pytest.mark.anyio
async def test_a_call_keeps_its_time_though_every_store_is_held(
    connect: Connect, tmp_path: Path
) -> None:
    open_stores(tmp_path / "cache", size_limit=50_000_000, clock=time.time).close()
    (tmp_path / "light.md").write_text("# Light\n\nThe harbour light was built in 1871.\n")
    with held(tmp_path / "cache", "BEGIN EXCLUSIVE"):
        given = {"cache": str(tmp_path / "cache"), "folders": str(tmp_path), "embedder": "none"}
        async with connect(**given, seconds="25") as client:
            asked = {"question": "When was the harbour light built?", "sources": ["light.md"]}
            assert "1871" in text_of(await client.call_tool("extract_relevant", asked))


@pytest.mark.anyio
@pytest.mark.parametrize("words", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
async def test_a_lock_that_begins_while_serving_costs_no_answer(
    words: str, connect: Connect, tmp_path: Path
) -> None:
    folder, cache = tmp_path / "documents", tmp_path / "cache"
    folder.mkdir()
    for number in range(3):
        text = f"# Light {number}\n\nThe harbour light {number} was built in 187{number}.\n"
        (folder / f"light{number}.md").write_text(text)
    asked = "When was the harbour light {} built?"
    async with connect(cache=str(cache), folders=str(folder), embedder="none") as client:
        first = await client.call_tool("research", {"question": asked.format(0)})
        assert "1870" in text_of(first)
        with held(cache, words):
            for number in (1, 2):
                question = asked.format(number)
                sources = {"question": question, "sources": [f"light{number}.md"]}
                for tool, given in (
                    ("research", {"question": question}),
                    ("search_web", {"question": question}),
                    ("extract_relevant", sources),
                    ("raptor_query", sources),
                ):
                    result = await client.call_tool(tool, given)
                    assert f"187{number}" in text_of(result), tool
