"""Fixtures that every test may ask for."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import settings
from mcp import Client

from cache.store import Store
from models.llama.model import LlamaGenerator
from models.onnx import OnnxEmbedder
from server.app import build_server
from server.process import give_back_large_blocks
from server.settings import read_settings
from tests.support import LIBRARY, SHARED, Clock, Connect, Site
from tests.support.llama_reference import FLOAT32_CACHE, smol_weights
from tests.support.model_server import Remote, model_server

pytest_plugins = (
    "tests.support.collect",
    "tests.support.extras",
    "tests.support.quick",
    "tests.support.record",
)

# Each run has the same examples: a change must not fail by a case that it has no part in. `make
# fresh` draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


_CONFIG = tempfile.TemporaryDirectory(prefix="winnow-config-")


def pytest_sessionstart() -> None:
    """Have large blocks go back to the system, as a server does: training in a test left 4 GB in
    this process. No test reads the list of folders of who runs it."""
    give_back_large_blocks()
    # A shell that starts tests in the background has them, and what they start, ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["XDG_CONFIG_HOME"] = _CONFIG.name
    # A server that a test starts is its own process, which ends with the test.
    os.environ["WINNOW_DAEMON"] = "off"
    os.environ["XDG_RUNTIME_DIR"] = _CONFIG.name


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the loop that the server uses."""
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real data and small real weights; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("../shared (real data and weights) is not beside this checkout")
    return SHARED


@pytest.fixture
async def stories(shared: Path, anyio_backend: str) -> AsyncIterator[LlamaGenerator]:
    """A base model of 260 000 parameters and 512 tokens of context, in 32-bit floats and a process
    of its own."""
    model = LlamaGenerator(
        shared / "models" / "stories260K" / "stories260K-f32.gguf", options=FLOAT32_CACHE
    )
    yield model
    await model.aclose()


@pytest.fixture
async def smol(anyio_backend: str) -> AsyncIterator[LlamaGenerator]:
    """SmolLM2-135M-Instruct, an instructed model with a chat template, from its package."""
    model = LlamaGenerator(smol_weights())
    yield model
    await model.aclose()


@pytest.fixture(scope="session")
def embedder() -> OnnxEmbedder:
    """The embedder that Winnow carries, once for the whole run: its weights take half a second to
    load."""
    return OnnxEmbedder()


@pytest.fixture
def remote() -> Iterator[Remote]:
    """A model server in a thread of its own on a free port of loopback."""
    with model_server() as reported:
        yield reported


@pytest.fixture
def clock() -> Clock:
    """Time that passes when the test says so."""
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A cache on disk, with the time of the machine."""
    opened = Store(tmp_path / "store", size_limit=50_000_000, clock=time.time)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One disk cache for the whole run, so that the sample library is embedded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def connect(cache_folder: Path) -> Connect:
    """Return a function that connects a client to a server of ours in this process; settings by
    keyword."""

    @asynccontextmanager
    async def connected(*, mode: str = "auto", **given: str) -> AsyncIterator[Client]:
        settings = {"folders": str(LIBRARY), "cache": str(cache_folder), "web": "named", **given}
        async with Client(build_server(read_settings(settings, {})), mode=mode) as client:
            yield client

    return connected


@pytest.fixture(scope="session")
def used_ports() -> set[int]:
    """Ports that sites had in this run: its one cache may hold pages under their addresses."""
    return set()


def _on_new_port(handler: type[BaseHTTPRequestHandler], used: set[int]) -> ThreadingHTTPServer:
    """Return a server on a port that no site of this run had, and note the port in `used`."""
    held: list[ThreadingHTTPServer] = []
    while True:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if server.server_port not in used:
            break
        held.append(server)  # so that the system gives another one
    for one in held:
        one.server_close()
    used.add(server.server_port)
    return server


@pytest.fixture
def site(used_ports: set[int]) -> Iterator[Site]:
    """A web site on loopback that a test fills with pages."""
    state = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            if self.path.startswith("/slow"):
                state.held.set()
                state.hold.wait(30)
            missing = (404, {"Content-Type": "text/plain"}, b"no such page")
            status, headers, body = state.pages.get(self.path.split("?")[0], missing)
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                # The client under test has left; that is what some tests are about.
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test output quiet."""

    server = _on_new_port(Handler, used_ports)
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield state
    state.hold.set()
    server.shutdown()
    server.server_close()
    thread.join()
