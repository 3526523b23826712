"""A model hub on loopback: files by repository, with ranges, and the ways in which a transfer goes
wrong."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class HubServer:
    """What the hub has, what was asked of it, and how it fails next."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """OWNER/REPO/FILE to content."""
    hashes: dict[str, str] = field(default_factory=dict)
    """What the hub says the sha256 is, where that is not the truth."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method and `Range` header of each request."""
    cut_after: int | None = None
    """Bytes of the next answer after which the connection breaks; all later ones are 503 until it
    is None again."""
    away: bool = False


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        hub, name = (
            self.hub,
            self.path.lstrip("/").replace(f"resolve/{COMMIT}/", "").replace("resolve/main/", ""),
        )
        hub.asked.append((self.command, self.headers.get("Range", "")))
        if name not in hub.files:
            self._end(404, {"X-Error-Code": "EntryNotFound"})
            return
        if with_body and hub.away:
            self._end(503, {})
            return
        data = hub.files[name]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        facts = {
            "X-Repo-Commit": COMMIT,
            "X-Linked-Size": str(len(data)),
            "X-Linked-Etag": f'"{hub.hashes.get(name) or hashlib.sha256(data).hexdigest()}"',
            "ETag": '"pointer"',
            "Accept-Ranges": "bytes",
            "Content-Length": str(len(data) - start),
        }
        if start:
            facts["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self._end(206 if start else 200, facts)
        if with_body:
            body = data[start:]
            if hub.cut_after is not None:
                body, hub.away = body[: hub.cut_after], True
                self.close_connection = True
            self.wfile.write(body)

    def _end(self, status: int, facts: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in facts.items():
            self.send_header(key, value)
        if status >= 400:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""


@contextmanager
def hub_server() -> Iterator[HubServer]:
    """Serve in a thread of its own on a free port of loopback."""
    hub = HubServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
