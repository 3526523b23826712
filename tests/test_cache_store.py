"""The disk cache: what is kept comes back, what is broken is recreated, and nothing is ever
unpickled."""

import logging
import os
import pickle
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.rows import Cipher, RefusedRow, seal, unseal
from cache.store import Claim, Store, open_stores
from pipeline.work import alone
from tests.support import Clock


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    opened = Store(tmp_path / "store", size_limit=50_000_000, clock=clock)
    yield opened
    opened.close()


def folder_of(store: Store) -> Path:
    return Path(store._backend.place)


def reopen(store: Store, clock: Callable[[], float] = time.time) -> Store:
    """Return a second store on the same folder, as another server would open it."""
    return Store(folder_of(store), size_limit=50_000_000, clock=clock)


def test_what_is_kept_outlives_the_store_that_kept_it(store: Store, clock: Clock) -> None:
    store.set_json("k", [1, 2])
    store.close()
    again = reopen(store, clock)
    assert again.get_json("k") == [1, 2]
    again.close()


def test_over_the_cap_the_oldest_leave_first(tmp_path: Path) -> None:
    small = Store(tmp_path / "small", size_limit=1_000_000, clock=time.time)
    for n in range(200):
        small.set_bytes(f"k{n}", os.urandom(50_000))
    stats = small.stats()
    assert stats.bytes < 1_300_000
    assert small.get_bytes("k0") is None
    assert small.get_bytes("k199") is not None
    on_disk = sum(path.stat().st_size for path in (tmp_path / "small").rglob("*") if path.is_file())
    assert on_disk < 6_000_000  # the write-ahead log comes on top, up to 4 MB
    small.close()


class Bomb:
    """Leaves a file after when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return os.symlink, (str(self.path.parent), str(self.path))


def plant(folder: Path, columns: dict[str, object]) -> None:
    """Write a row into the database as an attacker with access to the folder would."""
    row = {
        "store_time": 0,
        "expire_time": None,
        "access_time": 0,
        "size": 0,
        "filename": None,
        "value": None,
        **columns,
    }
    with sqlite3.connect(folder / "cache.db") as connection:
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        statement = f"INSERT INTO Cache ({names}) VALUES ({marks})"  # noqa: S608  names are ours
        connection.execute(statement, tuple(row.values()))
    connection.close()


def test_a_planted_pickle_is_refused_and_not_executed(store: Store, tmp_path: Path) -> None:
    folder = folder_of(store)
    mark = tmp_path / "executed"
    value = pickle.dumps(Bomb(mark))
    (folder / "aa" / "bb").mkdir(parents=True)
    (folder / "aa" / "bb" / f"{'c' * 28}.val").write_bytes(value)
    plant(folder, {"key": ":2:row", "raw": 1, "mode": 4, "value": value})
    plant(folder, {"key": ":2:file", "raw": 1, "mode": 4, "filename": f"aa/bb/{'c' * 28}.val"})
    plant(folder, {"key": value, "raw": 0, "mode": 1, "value": value})
    for key in ("row", "file"):
        assert store.get_json(key) is None
        assert store.get_bytes(key) is None
    assert store.stats().trouble
    store.clear()
    assert not mark.exists()
    pickle.loads(value)  # noqa: S301  shows that the bomb would have gone off
    assert mark.exists()


def test_a_planted_file_name_reads_and_deletes_nothing_outside(
    store: Store, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(seal(":2:k", b"secret", kind=b"B"))
    for number, name in enumerate(["../secret", str(secret), "aa/bb/../../../secret"]):
        plant(folder_of(store), {"key": f":2:k{number}", "raw": 1, "mode": 2, "filename": name})
        assert store.get_bytes(f"k{number}") is None
    store.clear()
    assert secret.exists()


def test_a_value_that_was_changed_on_disk_is_not_served(store: Store) -> None:
    store.set_bytes("large", b"a" * 100_000)
    store.set_bytes("small", b"b" * 100)
    (file,) = folder_of(store).rglob("*.val")
    file.write_bytes(file.read_bytes()[:50_000])
    with sqlite3.connect(folder_of(store) / "cache.db") as connection:
        connection.execute("UPDATE Cache SET value = value || x'00' WHERE key = ':2:small'")
    connection.close()
    assert store.get_bytes("large") is None
    assert store.get_bytes("small") is None
    assert store.stats().trouble
    store.set_bytes("large", b"new")
    assert store.get_bytes("large") == b"new"


@given(st.text(max_size=20), st.binary(max_size=200), st.integers(0, 250), st.integers(1, 255))
def test_an_envelope_opens_only_whole_and_for_its_own_key(
    key: str, payload: bytes, place: int, flip: int
) -> None:
    blob = seal(key, payload, kind=b"B", expires_at=100.0)
    assert unseal(key, blob, kind=b"B", now=99.0) == payload
    assert unseal(key, blob, kind=b"B", now=100.0) is None
    assert unseal(key, blob, kind=b"J", now=0.0) is None
    with pytest.raises(RefusedRow):
        unseal(key + "x", blob, kind=b"B", now=0.0)
    damaged = bytearray(blob)
    if place < len(blob):
        damaged[place] ^= flip
        with pytest.raises(RefusedRow):
            unseal(key, bytes(damaged), kind=b"B", now=0.0)
    with pytest.raises(RefusedRow):
        unseal(key, blob[:place] if place < len(blob) else blob + b"x", kind=b"B", now=0.0)


@pytest.mark.parametrize(
    "garbage", [b"garbage " * 5000, b"SQLite format 3\x00" + os.urandom(20_000), b"\x00" * 9000]
)
def test_a_database_of_garbage_is_set_aside_and_recreated(
    store: Store, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    folder = folder_of(store)
    store.set_bytes("k", b"v")
    store.close()
    for path in folder.glob("cache.db*"):
        path.unlink()
    (folder / "cache.db").write_bytes(garbage)
    with caplog.at_level(logging.WARNING):
        again = reopen(store)
    assert "recreated" in caplog.text
    assert again.get_bytes("k") is None
    again.set_bytes("k", b"new")
    assert again.get_bytes("k") == b"new"
    assert not list(folder.parent.glob("store.broken-*"))
    again.close()


def test_a_database_that_breaks_while_it_is_open_is_replaced(store: Store) -> None:
    folder = folder_of(store)
    store.set_many_bytes({f"k{n}": os.urandom(2000) for n in range(500)})
    store.close()
    raw = bytearray((folder / "cache.db").read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    (folder / "cache.db").write_bytes(raw)
    for path in folder.glob("cache.db-*"):
        path.unlink()
    for n in range(20):
        store.get_bytes(f"k{n}")
        store.set_bytes(f"k{n}", b"new")
    assert store.get_bytes("k19") == b"new"
    assert store.stats().trouble


def test_odd_settings_in_a_database_are_not_taken_over(store: Store) -> None:
    folder = folder_of(store)
    store.close()
    with sqlite3.connect(folder / "cache.db") as connection:
        connection.execute("INSERT INTO Settings VALUES ('disk_evil', 'x'), ('get', 'y')")
    connection.close()
    again = reopen(store)
    again.set_bytes("k", b"v")
    assert again.get_bytes("k") == b"v"
    again.close()


def test_a_folder_that_is_deleted_under_a_running_store_comes_back(store: Store) -> None:
    folder = folder_of(store)
    store.set_bytes("k", b"v" * 100_000)
    folder.rename(folder.with_name("gone"))
    assert store.get_bytes("k") is None
    store.set_bytes("k", b"w" * 100_000)
    assert store.get_bytes("k") == b"w" * 100_000
    assert (folder / "cache.db").is_file()
    again = reopen(store)
    assert again.get_bytes("k") == b"w" * 100_000
    again.close()


def test_the_cache_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "cache"
    stores = open_stores(folder, size_limit=10_000_000)
    for name in ("", "pages", "searches", "embeddings", "scores", "trees"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o700
    stores.pages.set_json("k", 1)
    assert stores.searches.get_json("k") is None
    assert stores.stats()["pages"].entries == 1
    assert stores.clear() == 1
    stores.close()


def test_where_no_folder_can_be_the_stores_go_on_without_and_say_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/winnow-cache")):
        stores = open_stores(folder, size_limit=1_000_000)
        stores.pages.set_json("k", 1)
        assert stores.pages.get_json("k") is None
        assert stores.clear() == 0
        for stats in stores.stats().values():
            assert "cannot be used" in stats.trouble
        stores.close()


def test_two_servers_on_one_folder_recover_together(store: Store, clock: Clock) -> None:
    other = reopen(store, clock)
    folder = folder_of(store)
    store.set_many_bytes({f"k{n}": os.urandom(2000) for n in range(500)})
    store.close()
    other.close()
    (folder / "cache.db").write_bytes(os.urandom(500_000))
    for path in folder.glob("cache.db-*"):
        path.unlink()
    for n in range(10):
        store.set_bytes(f"k{n}", b"from the first")
        other.set_bytes(f"l{n}", b"from the second")
    assert store.get_bytes("l9") == b"from the second"
    assert other.get_bytes("k9") == b"from the first"
    assert not list(folder.parent.glob("store.broken-*"))
    other.close()


def test_clearing_removes_files_that_killed_writers_left(store: Store) -> None:
    store.set_bytes("large", b"a" * 100_000)
    lost = folder_of(store) / "ab" / "cd" / f"{'e' * 28}.val"
    lost.parent.mkdir(parents=True, exist_ok=True)
    lost.write_bytes(b"half a val")
    assert store.clear() == 1
    assert not lost.exists()
    store.set_bytes("large", b"a" * 100_000)
    assert store.get_bytes("large") == b"a" * 100_000


def test_what_is_only_held_leaves_when_there_is_too_much_of_it(store: Store) -> None:
    for n in range(5):
        store.hold(f"k{n}", bytes([n]) * 10_000_000)
    assert store.get_bytes("k0") is None
    assert store.get_bytes("k4") == bytes([4]) * 10_000_000
    store.hold("huge", b"x" * 40_000_000)
    assert store.get_bytes("huge") is None
    assert store.stats().entries == 0


class Patient(Store):
    """A store that counts how often a claim was asked for."""

    tries = 0

    def claim(self, key: str, *, seconds: float) -> Claim | None:
        """Count, and answer."""
        self.tries += 1
        return super().claim(key, seconds=seconds)


@pytest.mark.anyio
async def test_work_that_takes_longer_than_a_claim_lasts_is_done_once(tmp_path: Path) -> None:
    first, second = (
        Patient(tmp_path / "store", size_limit=10_000_000, clock=time.time) for _ in range(2)
    )
    at_work: list[Store] = []
    finish = anyio.Event()

    async def work(store: Store) -> None:
        async with alone(
            store, "job", lambda: store.get_json("job"), enough=bool, patience=2.0
        ) as (found, _):
            if not found:
                at_work.append(store)
                await finish.wait()
                store.set_json("job", True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, first)
        while not at_work:
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(work, second)
        while len(at_work) == 1 and second.tries < 30:  # for three seconds
            await anyio.lowlevel.checkpoint()
        finish.set()
    assert at_work == [first]
    for store in (first, second):
        store.close()


def test_values_under_a_secret_are_found_with_it_alone_and_not_readable_on_disk(
    tmp_path: Path,
) -> None:
    for secret, readable in (("", True), ("correct horse battery staple", False)):
        folder = tmp_path / str(readable)
        stores = open_stores(folder, size_limit=10**9, secret=secret)
        stores.sessions.set_json("session:a", "Orvane")
        stores.close()
        on_disk = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert (b"Orvane" in on_disk) == readable
    values = []
    for secret in ("correct horse battery staple", "another", ""):
        stores = open_stores(tmp_path / "False", size_limit=10**9, secret=secret)
        values.append(stores.sessions.get_json("session:a"))
        stores.close()
    assert values == ["Orvane", None, None]


def test_a_locked_value_under_another_name_is_refused() -> None:
    cipher = Cipher("a secret")
    locked = cipher.lock("pages:a", b"value")
    assert cipher.open("pages:a", locked) == b"value"
    changed = locked[:-1] + bytes([locked[-1] ^ 1])
    for name, blob in (("pages:b", locked), ("pages:a", changed), ("pages:a", b"short")):
        with pytest.raises(RefusedRow):
            cipher.open(name, blob)
