"""`winnow desk`: the desk in a local browser, served on loopback at a secret address.

The page exchanges MCP messages with a server in this process, as it does with a host
that shows it as an MCP App. A web page that guesses the port lacks the token, and its requests
have another Host or Origin. Not for: the page (`page.py`), or serving clients
(`extras/http/`).
"""

import argparse
import base64
import hashlib
import hmac
import json
import re
import secrets
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import anyio
import uvicorn
from mcp import Client
from mcp.client.extension import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cli.output import FAILED, OK
from errors import AddressRefused
from extras.desk.page import desk_html
from extras.http.serve import listen
from pipeline.fetch.files import allowed_path, path_of_url
from server.app import build_server
from server.settings import Settings, for_a_person, read_settings

Emit = Callable[[str, object], Awaitable[None]]

HOST: Final = "127.0.0.1"
_POLICY_HEADER: Final = "Content-Security-Policy"
_FILE_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
)
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def serve_desk(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Serve the desk until a signal; open it in the default browser if wanted.

    Returns `FAILED` if the server did not start. Raises `WinnowError` if the
    port is not available.
    """
    settings = read_settings(overrides)
    with listen(HOST, args.port) as listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe()
        url = f"http://{HOST}:{port}/{token}/"
        print(f"The desk is at {url} until Ctrl-C.", flush=True)
        if not args.no_browser:
            webbrowser.open(url)
        app = build_desk(settings, token=token, port=port)
        server = uvicorn.Server(
            uvicorn.Config(
                app, log_level="warning", server_header=False, access_log=False
            )
        )
        anyio.run(server.serve, [listening])
    return OK if server.started else FAILED


def build_desk(settings: Settings, *, token: str, port: int) -> ASGIApp:
    """Return the ASGI application of the desk below `/{token}/`."""
    desk = _Desk(settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with desk.opened():
            yield

    routes = [
        Route("/", desk.page),
        Route("/message", desk.message, methods=["POST"]),
        Route("/file", desk.file),
    ]
    return _Gate(
        Starlette(routes=[Mount(f"/{token}", routes=routes)], lifespan=lifespan),
        token,
        port,
    )


class _Gate:
    """ASGI middleware: requires the token, and our Origin or none; others get no
    information."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = (f"{HOST}:{port}", f"localhost:{port}")
        self._policy = policy(desk_html())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault(_POLICY_HEADER, self._policy)
            await send(message)

        refused = self._refused(Headers(scope=scope), scope["method"], scope["path"])
        app: ASGIApp = PlainTextResponse(refused, 403) if refused else self._app
        await app(scope, receive, guarded)

    def _refused(self, headers: Headers, method: str, path: str) -> str:
        """Return why a request is refused, or ""."""
        if headers.get("host") not in self._hosts:
            return "The Host header is not this server."
        origins = (f"http://{headers['host']}", *(() if method == "POST" else (None,)))
        if headers.get("origin") not in origins:
            return "The Origin header is missing or names another page."
        if method == "POST" and headers.get("content-type") != "application/json":
            return "The content type must be application/json."
        if not hmac.compare_digest(
            path.partition("/")[2].partition("/")[0].encode(), self._token
        ):
            return "The token is missing; open the address that `winnow desk` printed."
        return ""


def policy(html: str) -> str:
    """Return the desk's Content-Security-Policy: scripts and styles by hash, requests
    to us only."""
    digests = {}
    for kind in ("script", "style"):
        element = re.search(rf"<{kind}[^>]*>(.*?)</{kind}>", html, re.DOTALL)
        assert element is not None  # noqa: S101  the built file has one of each
        digests[kind] = base64.b64encode(
            hashlib.sha256(element[1].encode()).digest()
        ).decode()
    allowed = " ".join(
        f"{kind}-src 'sha256-{digest}';" for kind, digest in digests.items()
    )
    return (
        f"default-src 'none'; {allowed} connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


class _Desk:
    _client: Client

    def __init__(self, settings: Settings) -> None:
        self._settings = for_a_person(settings)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        drawing = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
        server = build_server(self._settings)
        async with Client(server, extensions=[drawing]) as self._client:
            yield

    async def page(self, request: Request) -> Response:
        return HTMLResponse(desk_html())

    async def file(self, request: Request) -> Response:
        """Return the file of the query's `url`, which must be below the folders, as a
        browser shows it; a page without its scripts and what it would load.

        Raises HTTP 404 where there is none."""
        try:
            path = path_of_url(request.query_params.get("url", ""))
            path = allowed_path(path, roots=self._settings.folders)
        except AddressRefused as error:
            raise HTTPException(HTTPStatus.NOT_FOUND, str(error)) from error
        if not path.is_file():
            raise HTTPException(HTTPStatus.NOT_FOUND)
        # In a sandbox there is no viewer of PDF.
        policy = _FILE_POLICY if path.suffix.lower() != ".pdf" else "default-src 'self'"
        return FileResponse(path, headers={_POLICY_HEADER: policy})

    async def message(self, request: Request) -> Response:
        """Pass an MCP message to the server; stream its messages back as server-sent
        events.

        Any method but `tools/call` reads a resource. Raises HTTP 400 for missing
        parameters; an `MCPError` becomes an event `error`.
        """
        envelope = await _asked(request)
        method, params = envelope.get("method"), envelope.get("params")
        required = (
            {"name": str, "arguments": dict} if method == "tools/call" else {"uri": str}
        )
        arguments = params if isinstance(params, dict) else {}
        if not all(
            isinstance(arguments.get(name), kind) for name, kind in required.items()
        ):
            raise HTTPException(
                HTTPStatus.BAD_REQUEST, f"params lacks {' or '.join(required)}."
            )

        async def work(emit: Emit) -> None:
            async def on_progress(
                progress: float, total: float | None, message: str | None
            ) -> None:
                await emit(
                    "progress",
                    {"progress": progress, "total": total, "message": message},
                )

            try:
                if method == "tools/call":
                    called = self._client.call_tool(
                        arguments["name"],
                        arguments["arguments"],
                        progress_callback=on_progress,
                    )
                    result: Any = await called
                else:
                    result = await self._client.read_resource(arguments["uri"])
            except MCPError as error:
                await emit("error", {"message": str(error)})
            else:
                await emit(
                    "result",
                    result.model_dump(by_alias=True, exclude_none=True, mode="json"),
                )

        return _Events(work)


async def _asked(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body; raises HTTP 400 for anything else."""
    try:
        envelope = await request.json()
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, dict):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "The body is not a JSON object.")
    return envelope


class _Events(Response):
    """A server-sent event stream that ends with its work; a disconnect cancels the
    work."""

    def __init__(self, work: Callable[[Emit], Awaitable[None]]) -> None:
        super().__init__()
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": head})

        async def emit(event: str, data: object) -> None:
            lines = f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
            await send(
                {
                    "type": "http.response.body",
                    "body": lines.encode(errors="replace"),
                    "more_body": True,
                }
            )

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await self._work(emit)
            group.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b""})
