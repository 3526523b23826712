"""Sessions and trees brought into a file, and from it into another cache, by the command line."""

import json
import shutil
import stat
from pathlib import Path

import pytest

from cache.rows import Cipher, RefusedRow
from cache.store import open_stores
from cli.kept import read_backup
from pipeline.session.session import find_session
from tests.support import LIBRARY
from tests.support.cache_server import cache_server
from tests.support.commands import winnow

LAKE = str(LIBRARY / "lake-orvane.html")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Return a backup of a cache with a session and a tree, and the handles of both."""
    folder = tmp_path_factory.mktemp("kept")
    session = json.loads(
        winnow(folder / "cache", "research", "How deep is Lake Orvane?", "--json").stdout
    )
    tree = json.loads(
        winnow(folder / "cache", "raptor", "What is it about?", LAKE, "--json").stdout
    )
    reported = winnow(folder / "cache", "cache", "backup", str(folder / "all.zip"))
    assert "sessions" in reported.stdout, reported.stderr
    return folder / "all.zip", session["session"], tree["tree"]


@pytest.mark.slow
def test_a_session_and_a_tree_are_gone_on_with_in_another_cache(
    kept: tuple[Path, str, str], tmp_path: Path
) -> None:
    file, session, tree = kept
    assert winnow(tmp_path, "cache", "restore", str(file)).returncode == 0
    (listed,) = json.loads(winnow(tmp_path, "sessions", "--json").stdout)
    assert listed["session"] == session
    asked = winnow(tmp_path, "raptor", "How deep is it?", tree)
    assert (asked.returncode, "213" in asked.stdout) == (0, True), asked.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.slow
def test_what_was_private_is_put_into_no_store_that_others_read(
    kept: tuple[Path, str, str], tmp_path: Path
) -> None:
    file, session, _ = kept
    with cache_server(tmp_path / "redis") as redis:
        stores = open_stores(tmp_path / "own", size_limit=10**9, url=redis.url)
        try:
            assert sum(read_backup(stores, file).values()) > 0
            assert stores.sessions.keys("") == stores.trees.keys("") == []
            assert find_session(stores, session, owner="", roots=None) is not None
        finally:
            stores.close()
        reported = winnow(
            tmp_path / "own",
            "cache",
            "backup",
            str(tmp_path / "again.zip"),
            "--set",
            f"cache_url={redis.url}",
        )
        assert reported.returncode == 0, reported.stderr
    stores = open_stores(tmp_path / "other", size_limit=10**9)
    try:
        read_backup(stores, tmp_path / "again.zip")
        assert find_session(stores, session, owner="", roots=None) is not None
    finally:
        stores.close()


@pytest.mark.slow
def test_a_file_that_is_there_or_is_no_backup_or_a_cache_that_is_away_is_said_and_leaves_nothing(
    kept: tuple[Path, str, str], tmp_path: Path
) -> None:
    there = winnow(tmp_path / "cache", "cache", "backup", str(kept[0]))
    assert (there.returncode, "exists" in there.stderr) == (2, True)
    other = winnow(tmp_path / "cache", "cache", "restore", LAKE)
    assert (other.returncode, "is not a backup" in other.stderr) == (2, True)
    unnamed = winnow(tmp_path / "cache", "cache", "backup")
    assert (unnamed.returncode, "winnow cache backup FILE" in unnamed.stderr) == (2, True)
    blocked = tmp_path / "file"
    blocked.write_text("no folder", encoding="utf-8")
    away = winnow(blocked, "cache", "backup", str(tmp_path / "new.zip"))
    assert (away.returncode != 0, "cannot be used" in away.stderr) == (True, True)
    assert not (tmp_path / "new.zip").exists()


@pytest.mark.slow
def test_values_under_a_secret_are_seen_with_it_alone_and_a_backup_brings_them_under_another(
    kept: tuple[Path, str, str], tmp_path: Path
) -> None:
    file, handle, _ = kept
    ours, other = "cache_secret=correct horse battery staple", "cache_secret=another"
    for folder, given in ((tmp_path / "open", ()), (tmp_path, ("--set", ours))):
        assert winnow(folder, "cache", "restore", str(file), *given).returncode == 0
        held = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert (b"Orvane" in held) == (not given)
        shutil.rmtree(tmp_path / "open", ignore_errors=True)
    assert handle in winnow(tmp_path, "sessions", "--set", ours).stdout
    assert winnow(tmp_path, "sessions").stdout == ""
    assert winnow(tmp_path, "sessions", "--set", other).stdout == ""
    again = tmp_path / "again.zip"
    assert winnow(tmp_path, "cache", "backup", str(again), "--set", ours).returncode == 0
    assert winnow(tmp_path, "cache", "restore", str(again), "--set", other).returncode == 0
    assert handle in winnow(tmp_path, "sessions", "--set", other).stdout


def test_a_locked_value_under_another_name_is_refused() -> None:
    cipher = Cipher("a secret")
    locked = cipher.lock("pages:a", b"value")
    assert cipher.open("pages:a", locked) == b"value"
    changed = locked[:-1] + bytes([locked[-1] ^ 1])
    for name, blob in (("pages:b", locked), ("pages:a", changed), ("pages:a", b"short")):
        with pytest.raises(RefusedRow):
            cipher.open(name, blob)
