"""Several processes on one cache folder: at once, killed in the middle, on a full disk."""

import json
import multiprocessing
import os
import resource
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from cache.store import Store

pytestmark = pytest.mark.slow

SPAWN = multiprocessing.get_context("spawn")


def write_many(folder: str, worker: int, count: int) -> None:
    """Write and read back in a process of its own."""
    store = Store(Path(folder), size_limit=200_000_000, clock=time.time)
    for n in range(count):
        store.set_json(f"{worker}:{n}", {"worker": worker, "n": n})
        store.set_bytes(f"{worker}:b{n}", bytes([worker]) * (40_000 if n % 10 == 0 else 500))
        store.set_bytes("shared", json.dumps([worker, n]).encode())
    store.set_many_bytes({f"{worker}:m{n}": b"m" for n in range(count)})
    trouble = store.stats().trouble
    store.close()
    raise SystemExit(trouble or 0)


def test_four_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    workers = [SPAWN.Process(target=write_many, args=(str(folder), n, 100)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    store = Store(folder, size_limit=200_000_000, clock=time.time)
    for worker_number in range(4):
        for n in range(100):
            assert store.get_json(f"{worker_number}:{n}") == {"worker": worker_number, "n": n}
            assert store.get_bytes(f"{worker_number}:m{n}") == b"m"
            assert (store.get_bytes(f"{worker_number}:b{n}") or b"")[:1] == bytes([worker_number])
    assert store.stats().entries == 4 * 300 + 1
    store.close()


def write_until_killed(folder: str, reported: Connection) -> None:
    """Report of every write that has returned."""
    store = Store(Path(folder), size_limit=200_000_000, clock=time.time)
    n = 0
    while True:
        store.set_bytes(f"k{n}", n.to_bytes(4, "big") * (10_000 if n % 7 == 0 else 10))
        reported.send(n)
        n += 1


def test_a_process_killed_while_writing_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    receiver, sender = SPAWN.Pipe(duplex=False)
    worker = SPAWN.Process(target=write_until_killed, args=(str(folder), sender))
    worker.start()
    last = -1
    while last < 200:
        assert receiver.poll(30)
        last = receiver.recv()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(10)
    while receiver.poll(0):
        try:
            last = receiver.recv()
        except EOFError:
            break
    store = Store(folder, size_limit=200_000_000, clock=time.time)
    for n in range(last + 1):
        assert store.get_bytes(f"k{n}") == n.to_bytes(4, "big") * (10_000 if n % 7 == 0 else 10)
    assert store.stats().trouble == ""
    store.close()


def write_on_a_full_disk(folder: str, reported: Connection) -> None:
    """Write under a cap on file sizes, which fails like a full disk does."""
    store = Store(Path(folder), size_limit=200_000_000, clock=time.time)
    store.set_bytes("before", b"kept")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    store.set_bytes("large", b"x" * 5_000_000)
    for n in range(200):
        store.set_bytes(f"k{n}", os.urandom(5000))
    reported.send((store.get_bytes("before"), store.get_bytes("large"), store.stats().trouble))
    store.close()


def test_on_a_full_disk_the_store_goes_on_and_says_so(tmp_path: Path) -> None:
    receiver, sender = SPAWN.Pipe(duplex=False)
    worker = SPAWN.Process(target=write_on_a_full_disk, args=(str(tmp_path / "full"), sender))
    worker.start()
    assert receiver.poll(60)
    before, large, trouble = receiver.recv()
    worker.join(30)
    assert worker.exitcode == 0
    assert before == b"kept"
    assert large is None
    assert trouble
