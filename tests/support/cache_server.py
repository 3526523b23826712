"""A real Valkey or Redis server of the distribution's packages, started on loopback for one
test."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.extras import need
from tests.support.waiting import wait_until

PROGRAM = shutil.which("valkey-server") or shutil.which("redis-server")


class CacheServer:
    """One server process; it can be stopped and started again on the same port, with nothing
    kept."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        assert PROGRAM is not None
        own = [
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            str(self.folder),
            "--save",
            "",
        ]
        words = [PROGRAM, *own, "--appendonly", "no", *self.options]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def takes() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, "the cache server did not start"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_until(takes)

    def stop(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def cache_server(folder: Path, *options: str) -> Iterator[CacheServer]:
    """Run a server in `folder`; skip the test where none is installed, or the extra `redis` is
    not."""
    if PROGRAM is None:
        pytest.skip("neither valkey-server nor redis-server is installed")
    need("redis")
    folder.mkdir(parents=True, exist_ok=True)
    server = CacheServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
