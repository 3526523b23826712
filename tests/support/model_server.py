"""A model server on loopback that answers as a test says: OpenAI's paths, and those that servers
add of their own."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio.to_thread
import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

_NO_ONE: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts no authority: reading the machine's takes 25 ms of the processor for each client."""


def loopback_client() -> httpx2.AsyncClient:
    """Return a client for servers that use plain HTTP."""
    return httpx2.AsyncClient(verify=_NO_ONE)


@dataclass
class Remote:
    """The server: answers by path, and what it was asked."""

    root: str = ""
    answers: dict[str, list[Callable[[dict[str, object]], Response]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, object], str]] = field(default_factory=list)
    reported: dict[str, object] = field(default_factory=dict)
    """What each path answers to GET."""
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """The base URL that a spec names."""
        return f"{self.root}/v1"

    async def handle(self, request: Request) -> Response:
        """Keep the request and answer with the next answer of its path; the last one stays."""
        path = request.url.path
        if request.method == "GET":
            return (
                JSONResponse(self.reported[path])
                if path in self.reported
                else PlainTextResponse("none", status_code=404)
            )
        body = json.loads(await request.body())
        self.asked.append((path, body, request.headers.get("authorization", "")))
        if path not in self.answers:
            return PlainTextResponse("no such call", status_code=404)
        waiting = self.answers[path]
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return await anyio.to_thread.run_sync(answer, body)

    def will(self, path: str, *answers: Callable[[dict[str, object]], Response]) -> None:
        """Let `path` below the base URL answer with these in turn."""
        self.answers[f"/v1{path}"] = list(answers)

    def will_at_root(self, path: str, *answers: Callable[[dict[str, object]], Response]) -> None:
        """Let `path` of the server itself answer with these in turn."""
        self.answers[path] = list(answers)


@contextmanager
def model_server() -> Iterator[Remote]:
    """Serve in a thread of its own on a free port of loopback."""
    reported = Remote()
    app = Starlette(routes=[Route("/{rest:path}", reported.handle, methods=["GET", "POST"])])
    listening = socket.create_server(("127.0.0.1", 0))
    reported.root = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield reported
    finally:
        reported.release.set()
        server.should_exit = True
        thread.join()
        listening.close()
