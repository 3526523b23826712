"""Spans: one for each step, sent to a collector on loopback, without a word of what was asked."""

import gzip
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support import LIBRARY
from tests.support.commands import run_command
from tests.support.extras import need

pytestmark = pytest.mark.slow

STEPS = ("parse", "search", "read_source", "rank", "read", "assemble")


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A collector that keeps what it is sent."""
    kept: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.append(
                gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            )
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", kept
    server.shutdown()
    server.server_close()
    thread.join()


def test_every_step_of_a_research_call_is_a_span_and_none_reports_the_question(
    collector: tuple[str, list[bytes]], cache_folder: Path
) -> None:
    need("otel")
    address, kept = collector
    environment = {
        **os.environ,
        "WINNOW_CACHE": str(cache_folder),
        "OTEL_EXPORTER_OTLP_ENDPOINT": address,
    }
    asking = ("research", "When does the first ferry leave on Sundays?")
    run = run_command(*asking, "--folder", str(LIBRARY), environment=environment, seconds=300)
    assert run.returncode == 0, run.stderr
    sent = b"".join(kept)
    for step in STEPS:
        assert re.search(rf"winnow\.{step}(?!_)".encode(), sent)
    assert b"ferry" not in sent
