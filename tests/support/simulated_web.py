"""The web on loopback, for a program without any setting of Winnow's: a proxy terminates TLS for every host with a
certificate made for it, as an office's proxy does. Not for: the live services, which are never asked."""

import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.loopback import listening
from tests.support.certificate import make_certificate
from tests.support.providers import SCHOLARLY, Reply

ROOT: Final = Path(__file__).resolve().parents[2]
QUESTION: Final = "How deep is Lake Orvane?"
HOSTS: Final = (
    "api.tavily.com",
    "en.wikipedia.org",
    *(urlsplit(one.address).netloc for one in SCHOLARLY.values()),
)
TAVILY: Final = {
    "results": [
        {
            "title": "Lake Orvane",
            "url": "http://127.0.0.1:9/orvane",
            "content": "Lake Orvane is 213 metres deep.",
        }
    ]
}
ABSENT: Final = "raise ImportError('a base install has no ddgs')\n"


@dataclass(slots=True)
class Web:
    """What each host answers, and who was asked."""

    answers: dict[str, Reply]
    asked: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


def json_reply(value: object) -> Reply:
    """Return an answer of an API."""
    return Reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


class Proxy(BaseHTTPRequestHandler):
    """The proxy and, after it, every host."""

    host = ""
    contexts: dict[str, ssl.SSLContext]
    state: Web

    def do_CONNECT(self) -> None:
        """Become the host that is asked for."""
        self.host = self.path.rpartition(":")[0]
        if self.host not in self.contexts:
            self.send_error(502)
            return
        self.send_response(200)
        self.end_headers()
        self.connection = self.contexts[self.host].wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def finish(self) -> None:
        """Let the TLS connection go as well."""
        super().finish()
        self.connection.close()

    def answer(self) -> None:
        """Say what this host says."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.state.asked.append(self.host)
        reply = self.state.answers.get(self.host, Reply(503, b""))
        self.send_response(reply.status)
        for header, value in reply.headers.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = answer
    do_POST = answer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _certified(folder: Path) -> dict[str, ssl.SSLContext]:
    """Return what each host uses TLS with; `trusted.pem` in `folder` then has all their
    certificates."""
    contexts = {}
    for host in HOSTS:
        (folder / host).mkdir()
        contexts[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[host].load_cert_chain(make_certificate(folder / host, host))
    certificates = [(folder / host / "certificate.pem").read_bytes() for host in HOSTS]
    (folder / "trusted.pem").write_bytes(b"".join(certificates))
    return contexts


@contextmanager
def web(answers: dict[str, Reply]) -> Iterator[Web]:
    """Play the web: each of `HOSTS` with its answer, 503 where it has none, and no
    other host at all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = Web(answers)
        handler = type("Handler", (Proxy,), {"contexts": _certified(folder), "state": state})
        (folder / "ddgs").mkdir()
        (folder / "ddgs" / "__init__.py").write_text(ABSENT, encoding="utf-8")
        with listening(handler) as port:
            state.environment = {
                **{
                    name: value
                    for name, value in os.environ.items()
                    if not name.startswith("WINNOW_")
                },
                "HTTPS_PROXY": f"http://127.0.0.1:{port}",
                "SSL_CERT_FILE": str(folder / "trusted.pem"),
                "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
                "HOME": str(folder),
                "XDG_CACHE_HOME": str(folder / "cache"),
            }
            yield state


def winnow(state: Web, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a newcomer does."""
    command = [sys.executable, "-m", "server", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=state.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
