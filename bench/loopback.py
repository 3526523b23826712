"""Web servers on loopback whose answers a benchmark decides, and a search engine over
their pages."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple

HTML: Final = "text/html; charset=utf-8"


class Answer(NamedTuple):
    """What is said of a path; nothing is there without a body."""

    body: bytes
    kind: str = HTML
    headers: Mapping[str, str] = {}


def searched(
    pages: Mapping[str, bytes], address: str, query: str, count: int
) -> Answer:
    """Return the pages, by path, that share most words with a query, as SearXNG lists them."""
    words = set(query.lower().replace("?", "").split())
    shared = {
        path: len(words & set(body.decode("utf-8", "replace").lower().split()))
        for path, body in pages.items()
    }
    nearest = sorted(shared, key=lambda path: (-shared[path], path))[:count]
    rows = [
        {"title": path, "url": address + path, "content": query} for path in nearest
    ]
    listed = {"query": query, "results": rows, "unresponsive_engines": []}
    return Answer(json.dumps(listed).encode(), "application/json")


@contextmanager
def serving(answer: Callable[[str], Answer]) -> Iterator[int]:
    """Answer each GET by its path with its query, in a thread of its own, while the
    context is open; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = answer(self.path)
            try:
                self.send_response(200 if said.body else 404)
                self.send_header("Content-Type", said.kind)
                self.send_header("Content-Length", str(len(said.body)))
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said.body)
            except ConnectionError:
                self.close_connection = True  # who asked has left

        def log_message(self, format: str, *args: object) -> None:
            """Keep the output to the tables."""

    with listening(Handler) as port:
        yield port


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Answer requests on a free port of 127.0.0.1, which is yielded, each in a thread
    of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # An answer that is held back, or a tunnel that stays open, must not keep the end waiting.
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}
    )
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
