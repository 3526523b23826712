"""The cache as a client of a real server sees it: killed, full, read-only, damaged, shared, or on a
server."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import ROOT, Site
from tests.support.commands import run_command
from tests.support.processes import HELLO, READY, answer_to, call, say
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

PAGE = "<html><head><title>Salt</title></head><body><h1>Salt of Piran</h1>{}</body></html>"
BODY = (
    "<p>The salt pans of Piran give forty tonnes in a dry summer, and mooring costs nine euros "
    "a night.</p>"
)
QUERY = "What does mooring cost?"


class Server:
    """`python -m server` on stdio with a cache of its own, connected line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.number = 1
        say(process, HELLO)
        answer_to(process, 1)
        say(process, READY)

    def ask(self, *urls: str) -> str:
        """Fetch pages; return the answer's text."""
        self.begin(*urls)
        return self.answer()

    def begin(self, *urls: str) -> None:
        """Ask for pages without waiting."""
        self.number += 1
        say(self.process, call(self.number, "fetch_and_prune_html", urls=list(urls), query=QUERY))

    def answer(self) -> str:
        """Return the text of the answer to the last question."""
        return json.dumps(answer_to(self.process, self.number))

    def status(self) -> str:
        """Return winnow://status."""
        self.number += 1
        read = {"jsonrpc": "2.0", "id": self.number, "method": "resources/read"}
        say(self.process, {**read, "params": {"uri": "winnow://status"}})
        return json.dumps(answer_to(self.process, self.number))


def environment(cache: Path, **settings: str) -> dict[str, str]:
    given = {
        "cache": str(cache),
        "networks": "loopback",
        "web": "named",
        "embedder": "none",
        "reranker": "none",
        **settings,
    }
    own = {f"WINNOW_{name.upper()}": value for name, value in given.items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINNOW_")}
    return {
        **kept,
        "WINNOW_GENERATOR": "none",
        "WINNOW_ROBOTS": "0",
        "PYTHONPATH": str(ROOT),
        **own,
    }


@contextmanager
def serving(cache: Path, **settings: str) -> Iterator[Server]:
    """Run a server; its stderr goes to a file beside its log or its cache."""
    with (
        Path(settings.get("log", str(cache)).removeprefix("file="))
        .with_suffix(".stderr")
        .open("ab") as log,
        subprocess.Popen(
            [sys.executable, "-m", "server"],
            cwd=ROOT,
            env=environment(cache, **settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        ) as process,
    ):
        try:
            yield Server(process)
        finally:
            process.kill()


def winnow(cache: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return run_command(
        *arguments,
        environment=environment(cache, **settings),
        folder=cache.parent,
        seconds=100,
    )


def log_of(cache: Path) -> str:
    return cache.with_suffix(".stderr").read_text()


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """Put a small disk of its own at `folder`; skip where this user may not."""
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False
    )
    if made.returncode:
        pytest.skip("this machine lets no user mount a small disk")
    try:
        yield
    finally:
        subprocess.run([str(shutil.which("umount")), "-l", str(folder)], check=True)


def fill(site: Site, count: int, size: int = 1) -> list[str]:
    return [
        site.put(f"/p{n}", PAGE.format(f"<p>Page {n}.</p>" + BODY * size)) for n in range(count)
    ]


def test_a_killed_server_has_lost_no_page_that_it_answered_with(site: Site, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    urls = fill(site, 120, 30)
    with serving(cache) as server:
        for n in range(0, 60, 20):
            assert "nine euros" in server.ask(*urls[n : n + 20])
        for n in range(60, 120, 20):
            server.begin(*urls[n : n + 20])
        wait_until(lambda: len(site.asked) >= 90)
        os.kill(server.process.pid, signal.SIGKILL)
    before = len(site.asked)
    with serving(cache) as server:
        for n in range(0, 60, 20):
            assert "nine euros" in server.ask(*urls[n : n + 20])
        assert len(site.asked) == before
        for n in range(60, 120, 20):  # some were under way when the process was killed
            assert "nine euros" in server.ask(*urls[n : n + 20])
        assert "cache: works" in server.status()


def test_on_a_full_disk_pages_are_still_read_and_the_status_says_why_none_is_kept(
    site: Site, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, "2m"):
        cache = disk / "cache"
        urls = fill(site, 12, 2000)
        with serving(cache, log=f"file={tmp_path / 'log'}") as server:
            for url in urls:
                assert "nine euros" in server.ask(url)
            status = server.status()
            assert "cache: skipped" in status or "cache: NOT USED" in status
        assert "skipped an entry" in (tmp_path / "log").read_text()


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(
    site: Site, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    url = fill(site, 1)[0]
    with mounted(disk, "2m"):
        cache = disk / "cache"
        subprocess.run([str(shutil.which("mount")), "-o", "remount,ro", str(disk)], check=True)
        with serving(cache, log=f"file={tmp_path / 'log'}") as server:
            for _ in range(2):
                assert "nine euros" in server.ask(url)
            assert "cache: NOT USED" in server.status()
            assert "Read-only file system" in server.status()
            assert len(site.asked) == 2
        assert "is not used" in (tmp_path / "log").read_text()
        doctor = winnow(cache, "doctor")
        assert doctor.returncode == 1
        assert "NOT USED" in doctor.stdout
        assert winnow(cache, "cache").returncode == 1


def test_a_folder_that_goes_away_under_a_server_is_done_without_until_it_is_back(
    site: Site, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    first, second = fill(site, 2)
    with serving(disk / "cache", log=f"file={tmp_path / 'log'}") as server:
        assert "nine euros" in server.ask(first)
        away = disk / "moved"
        (disk / "cache").rename(away)
        (disk / "cache").write_text("in the way")
        assert "nine euros" in server.ask(second)
        assert "cache: NOT USED" in server.status()
        (disk / "cache").unlink()
        away.rename(disk / "cache")
        wait_until(
            lambda: "nine euros" in server.ask(first) and "cache: NOT USED" not in server.status()
        )
        before = len(site.asked)
        assert "nine euros" in server.ask(first)
        assert len(site.asked) == before
        assert "is used again" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("harm", ["garbage", "cut short"])
def test_a_damaged_database_costs_its_entries_and_is_recreated(
    site: Site, tmp_path: Path, harm: str
) -> None:
    cache = tmp_path / "cache"
    urls = fill(site, 30)
    with serving(cache) as server:
        assert "nine euros" in server.ask(*urls[:20])
    database = cache / "pages" / "cache.db"
    for beside in database.parent.glob("cache.db-*"):
        beside.unlink()
    raw = database.read_bytes() or b"x" * 40_000
    database.write_bytes(b"garbage " * 5000 if harm == "garbage" else raw[: len(raw) * 2 // 3])
    with serving(cache) as server:
        assert "nine euros" in server.ask(*urls[10:])
        before = len(site.asked)
        assert "nine euros" in server.ask(*urls[10:])
        assert len(site.asked) == before
        status = server.status()
    if harm == "garbage":
        assert "recreated" in log_of(cache)
        assert "recreated" in status


def test_a_database_cut_short_under_a_running_server_does_not_end_it(
    site: Site, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    urls = fill(site, 40)
    with serving(cache) as server:
        assert "nine euros" in server.ask(*urls[:20])
        os.truncate(cache / "pages" / "cache.db", 6000)
        for n in (0, 20):
            assert "nine euros" in server.ask(*urls[n : n + 20])
        assert server.process.poll() is None
        before = len(site.asked)
        assert "nine euros" in server.ask(*urls[20:])
        assert len(site.asked) == before


def test_two_servers_on_one_folder_ask_a_site_once(site: Site, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    url = site.put("/slow", PAGE.format(BODY))
    with serving(cache) as one, serving(cache) as other:
        one.begin(url)
        other.begin(url)
        release = threading.Timer(1.5, site.hold.set)
        release.start()
        assert "nine euros" in one.answer()
        assert "nine euros" in other.answer()
    assert site.asked == ["/slow"]


def test_a_server_killed_while_it_fetches_leaves_the_page_to_the_other(
    site: Site, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    url = site.put("/slow", PAGE.format(BODY))
    with serving(cache) as one, serving(cache) as other:
        one.begin(url)
        wait_until(lambda: bool(site.asked))
        other.begin(url)
        os.kill(one.process.pid, signal.SIGKILL)
        site.hold.set()
        assert "nine euros" in other.answer()
    assert site.asked == ["/slow", "/slow"]


def test_the_command_reports_where_the_cache_lies_and_what_is_in_it(
    site: Site, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    with serving(cache) as server:
        server.ask(*fill(site, 3, 2000))
    assert winnow(cache, "cache", "path").stdout == f"{cache}\n"
    assert "cache pages: 0 entries" not in winnow(cache, "status").stdout
    cleared = json.loads(winnow(cache, "cache", "clear", "--json").stdout)
    assert cleared["path"] == str(cache)
    assert "cache pages: 0 entries" in winnow(cache, "status").stdout
    assert not list((cache / "pages").rglob("*.val"))
