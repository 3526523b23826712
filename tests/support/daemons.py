"""Clients that share a daemon, in a runtime folder of their own."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from server.daemon.place import asked, connect
from tests.support import LIBRARY, ROOT
from tests.support.processes import HELLO, READY, answer_to, line, say

END_SECONDS = 60.0
"""After this a daemon that should end hangs, however busy the machine is."""


class Person:
    """The clients of one person, whose daemon is not that of who runs the tests."""

    def __init__(self, folder: Path, cache: Path, root: Path = ROOT) -> None:
        self.folder = folder
        self.cache = cache
        self.root = root
        self.clients: list[subprocess.Popen[bytes]] = []
        folder.mkdir(exist_ok=True)

    @property
    def runtime(self) -> Path:
        """The folder of the sockets."""
        return self.folder / f"winnow-{os.getuid()}"

    def variables(self, **settings: str) -> dict[str, str]:
        """Return the environment of a client."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("WINNOW_")}
        return {
            **kept,
            "XDG_RUNTIME_DIR": str(self.folder),
            "WINNOW_DAEMON": "on idle=0",
            "WINNOW_FOLDERS": str(LIBRARY),
            "WINNOW_CACHE": str(self.cache),
            "WINNOW_SEARCH": "folder",
            **{f"WINNOW_{name.upper()}": text for name, text in settings.items() if name.islower()},
            **{name: text for name, text in settings.items() if name.isupper()},
        }

    def begin(self, *arguments: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start a client's process."""
        started = subprocess.Popen(
            [sys.executable, str(self.root / "server"), *arguments],
            env=self.variables(**settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.clients.append(started)
        return started

    def connected(self, name: str = "raw", **settings: str) -> subprocess.Popen[bytes]:
        """Start a client's process, and begin a session of the protocol by handshake."""
        client = self.begin(**settings)
        hello = json.loads(json.dumps(HELLO))
        hello["params"]["clientInfo"]["name"] = name
        say(client, hello)
        assert "result" in line(client)
        say(client, READY)
        return client

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours to its end."""
        return subprocess.run(
            [sys.executable, "-m", "server", *arguments],
            cwd=self.root,
            env=self.variables(embedder="none", reader="none"),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    @property
    def files(self) -> list[str]:
        """Names of what is in the folder of the sockets."""
        return sorted(os.listdir(self.runtime))

    def daemons(self) -> list[dict[str, Any]]:
        """Return what each daemon that runs says of itself."""
        reported = []
        for path in sorted(self.folder.glob("winnow-*/*.sock")):
            with suppress(ConnectionRefusedError), connect(str(path), 60) as link:
                reported.append(asked(link, {"do": "status"}))
        return reported

    def daemon(self) -> int:
        """Return the process id of the one daemon."""
        [daemon] = self.daemons()
        pid: int = daemon["process"]
        return pid


def leave(client: subprocess.Popen[bytes]) -> int:
    """End a client as its host does; return its exit code."""
    assert client.stdin is not None
    client.stdin.close()
    return client.wait(END_SECONDS)


@contextmanager
def watched(pid: int) -> Iterator[None]:
    """Wait at the end for the end of a process."""
    handle = os.pidfd_open(pid)
    try:
        yield
        ready, _, _ = select.select([handle], [], [], END_SECONDS)
        assert ready, f"process {pid} still runs"
    finally:
        os.close(handle)


@contextmanager
def person(folder: Path, cache: Path, root: Path = ROOT) -> Iterator[Person]:
    """Yield the clients of a person; they and their daemons have ended afterwards."""
    one = Person(folder, cache, root)
    try:
        yield one
    finally:
        for client in one.clients:
            with client:  # which closes its streams
                client.kill()
        one.run("stop")


def first_answer(client: subprocess.Popen[bytes], number: int) -> Any:
    """Return the text of the answer to a call, or its error."""
    answer: Any = answer_to(client, number)
    return answer["result"]["content"][0]["text"] if "result" in answer else answer["error"]
