"""A web server on loopback that answers with bytes as a test writes them: cut bodies, odd headers,
answers that depend on a cookie.

Not for: pages that arrive whole (`tests/support/__init__.py`, the fixture `site`).
"""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

Answer = Callable[[str], bytes]
"""From the request as it came to the answer as it goes; the connection closes after it."""


def answer(
    body: str | bytes,
    kind: str = "text/html; charset=utf-8",
    status: str = "200 OK",
    more: str = "",
    left: int = 0,
) -> bytes:
    """Return an answer with a length; `left` bytes more are announced than come."""
    raw = body.encode() if isinstance(body, str) else body
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(raw) + left}\r\n"
    return f"{head}Connection: close\r\n{more}\r\n".encode() + raw


@contextmanager
def raw_site(routes: Mapping[str, Answer]) -> Iterator[str]:
    """Serve `routes` by path while the context is open; yield the address."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=50)

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=_reply, args=(connection, routes), daemon=True).start()

    worker = threading.Thread(target=serve, daemon=True)
    worker.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        worker.join()


def _reply(connection: socket.socket, routes: Mapping[str, Answer]) -> None:
    asked = b""
    with connection, suppress(ConnectionError):
        while b"\r\n\r\n" not in asked and (part := connection.recv(65_536)):
            asked += part
        request = asked.decode("latin-1")
        path = (request.split() or ["", ""])[1].partition("?")[0]
        found = routes.get(path)
        connection.sendall(found(request) if found else answer("", status="404 Not Found"))
