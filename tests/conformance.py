"""The official MCP conformance suite against our HTTP server, in both revisions: `make
conformance`.

Runs the suite twice a revision: on the server as it is, and on the server with the fixtures that
the suite calls by name. Exits 1 when anything outside the baselines fails, or a baselined scenario
passes. Needs Node 22 and the suite, which `make conformance` installs. Not for: stdio, which the
suite does not use (`tests/inspector.py`).
"""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.support import LIBRARY, ROOT
from tests.support.waiting import wait_until

REVISIONS: Final = ("2026-07-28", "2025-11-25")
SERVERS: Final = {
    "ours": ["-m", "server", "serve", "--http", "--port"],
    "fixtures": ["-m", "tests.conformance_app", "--port"],
}
STARTS_WITHIN: Final = 30
RUNS_WITHIN: Final = 180


def main() -> None:
    """Run all four combinations, print what failed and what is baselined, leave with 0 or 1."""
    failed = [
        f"{name} {revision}"
        for name in SERVERS
        for revision in REVISIONS
        if not conforms(name, revision)
    ]
    print("conformance holds" if not failed else f"conformance fails: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


def conforms(name: str, revision: str) -> bool:
    """Run the required scenarios of one revision against one server; return whether only the
    baseline failed."""
    baseline = ROOT / "tests" / f"conformance_{name}.yml"
    with tempfile.TemporaryDirectory() as out, served(SERVERS[name]) as url:
        command = ["conformance", "server", "--url", url, "--requirements", revision, "-o", out]
        run = subprocess.run(  # the suite's command, found on the PATH that the Makefile sets
            [*command, "--expected-failures", str(baseline)],
            capture_output=True,
            text=True,
            timeout=RUNS_WITHIN,
            env={**os.environ, "HOME": out},
            check=False,
        )
    print(f"== {name}, {revision}: exit {run.returncode}")
    lines = run.stdout.splitlines()
    summary = lines.index("=== SUMMARY ===") if "=== SUMMARY ===" in lines else 0
    print("\n".join(lines[summary:]) if lines else run.stderr[-2000:])
    return run.returncode == 0


@contextmanager
def served(arguments: list[str]) -> Iterator[str]:
    """Start a server of ours on a free port of loopback; yields its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "WINNOW_FOLDERS": str(LIBRARY),
            "WINNOW_CACHE": cache,
            "WINNOW_HTTP": "rate=0",
        }
        with subprocess.Popen(
            [sys.executable, *arguments, str(port)], cwd=ROOT, env=environment
        ) as process:
            try:
                listens(port)
                yield f"http://127.0.0.1:{port}/mcp"
            finally:
                process.terminate()


def listens(port: int) -> None:
    """Return once the port takes connections."""

    def taken() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(taken)


if __name__ == "__main__":
    main()
