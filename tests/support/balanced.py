"""Replicas of our server behind a real HAProxy, which reads the configuration that we ship."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.mcp_served import ROOT, environment, free_port

PROGRAM = shutil.which("haproxy")
CONFIGURATION = ROOT / "deploy" / "haproxy.cfg"


@dataclass
class Replicas:
    """Servers of ours on loopback, and the balancer before them."""

    balancer: int
    """Its port."""
    ports: list[int]
    folder: Path
    settings: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where clients call: the balancer."""
        return f"http://127.0.0.1:{self.balancer}"

    def of(self, number: int) -> str:
        """Return the address of one replica."""
        return f"http://127.0.0.1:{self.ports[number]}"

    def start(self, number: int) -> None:
        """Start a replica, or start it again; each has a cache folder of its own, as each machine
        would."""
        port = self.ports[number]
        arguments = [
            "serve",
            "--http",
            "--port",
            str(port),
            "--allow-host",
            f"127.0.0.1:{self.balancer}",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "server", *arguments],
            cwd=ROOT,
            env=environment(
                self.folder / f"replica-{number}", http="stateless=true", **self.settings
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes[number : number + 1] = [process]

    def kill(self, number: int) -> None:
        """End a replica in the middle of whatever it does (SIGKILL)."""
        self.processes[number].send_signal(signal.SIGKILL)
        self.processes[number].wait()


@contextmanager
def balanced(folder: Path, *, count: int = 2, **settings: str) -> Iterator[Replicas]:
    """Run `count` replicas with the same `settings` behind HAProxy; skip the test where that is not
    installed."""
    if PROGRAM is None:
        pytest.skip("haproxy is not installed")
    made = Replicas(free_port(), [free_port() for _ in range(count)], folder, settings)
    shipped = CONFIGURATION.read_text(encoding="utf-8").partition("    server ")[0]
    listed = "".join(
        f"    server r{number} 127.0.0.1:{port}\n" for number, port in enumerate(made.ports)
    )
    own = folder / "haproxy.cfg"
    own.write_text(shipped + listed, encoding="utf-8")
    with ExitStack() as stack:
        for number in range(count):
            made.start(number)
            stack.callback(made.kill, number)
        command = [PROGRAM, "-db", "-f", str(own)]
        bound = {**os.environ, "BIND": f"127.0.0.1:{made.balancer}"}
        balancer = stack.enter_context(
            subprocess.Popen(
                command, env=bound, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        stack.callback(balancer.kill)
        yield made
