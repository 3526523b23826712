"""`winnow desk`: the desk in a local browser, served on loopback at a secret address.

The page exchanges MCP messages with a server in this process, as it does with a host
that shows it as an MCP App. Health, cache and client configurations have
routes of their own. A web page that guesses the port lacks the token, and its requests
have another Host or Origin. Not for: the page (`page.py`), or serving clients
(`extras/http/`).
"""

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
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cache.store import Stores
from cli.doctor import examine
from cli.models import report_roles
from cli.output import FAILED, OK
from errors import UsageError, WinnowError
from extras.desk.library import describe_library
from extras.desk.page import desk_html
from extras.http.serve import listen
from extras.install.clients import CLIENTS, file_of
from extras.install.install import client_state, make_change, plan_change
from pipeline.work import in_thread
from server.app import build_server
from server.settings import SETTINGS_TABLE, Http, Log, Networks, Papers, Settings
from server.wiring import CACHE_BYTES, open_cache

Emit = Callable[[str, object], Awaitable[None]]

HOST: Final = "127.0.0.1"
_NO_FRAMES: Final = "form-action 'none'; frame-ancestors 'none'"
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def serve_desk(
    settings: Settings, given: Mapping[str, str], *, port: int, show: bool
) -> int:
    """Serve the desk until a signal; with `show`, open it in the default browser.

    `given`: settings of the command line, also used for clients that are configured in
    the desk. Returns `FAILED` if the server did not start. Raises `CannotListen` if the
    port is not available.
    """
    (listening,) = listen(HOST, port)
    with listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe()
        url = f"http://{HOST}:{port}/{token}/"
        print(f"The desk is at {url} until Ctrl-C.", flush=True)
        if show:
            webbrowser.open(url)
        app = build_desk(settings, given, token=token, port=port)
        server = uvicorn.Server(
            uvicorn.Config(
                app, log_level="warning", server_header=False, access_log=False
            )
        )
        anyio.run(server.serve, [listening])
    return OK if server.started else FAILED


def build_desk(
    settings: Settings, given: Mapping[str, str], *, token: str, port: int
) -> ASGIApp:
    """Return the ASGI application of the desk below `/{token}/`."""
    desk = _Desk(settings, given)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with desk.opened():
            yield

    routes = [
        Route("/", desk.page),
        Route("/message", desk.message, methods=["POST"]),
        Route("/library", desk.library),
        Route("/health", desk.health),
        Route("/doctor", desk.doctor, methods=["POST"]),
        Route("/cache", desk.clear_cache, methods=["POST"]),
        Route("/client", desk.change_client, methods=["POST"]),
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
                MutableHeaders(scope=message).update(
                    {**_HEADERS, "Content-Security-Policy": self._policy}
                )
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
        found = re.search(rf"<{kind}[^>]*>(.*?)</{kind}>", html, re.DOTALL)
        assert found is not None  # noqa: S101  the built file has one of each
        digests[kind] = base64.b64encode(
            hashlib.sha256(found[1].encode()).digest()
        ).decode()
    allowed = " ".join(
        f"{kind}-src 'sha256-{digest}';" for kind, digest in digests.items()
    )
    return (
        f"default-src 'none'; {allowed} connect-src 'self'; img-src data:; base-uri 'none'; "
        f"{_NO_FRAMES}"
    )


class _Desk:
    """Route handlers."""

    _client: Client
    _stores: Stores

    def __init__(self, settings: Settings, given: Mapping[str, str]) -> None:
        self._settings = settings
        self._given = given

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open a server with a client, and the cache stores."""
        settings = self._settings
        shown = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
        async with Client(build_server(settings), extensions=[shown]) as self._client:
            self._stores = await in_thread(open_cache, settings)
            try:
                yield
            finally:
                self._stores.close()

    async def page(self, request: Request) -> Response:
        """Return the desk's page."""
        return HTMLResponse(desk_html())

    async def message(self, request: Request) -> Response:
        """Pass an MCP message to the server; stream its messages back as server-sent
        events.

        Any method but `tools/call` reads a resource. Raises HTTP 400 for missing
        parameters; an `MCPError` becomes an event `error`.
        """
        asked = await _asked(request)
        method, params = asked.get("method"), asked.get("params")
        wanted = (
            {"name": str, "arguments": dict} if method == "tools/call" else {"uri": str}
        )
        given = params if isinstance(params, dict) else {}
        if not all(isinstance(given.get(name), kind) for name, kind in wanted.items()):
            raise HTTPException(
                HTTPStatus.BAD_REQUEST, f"params lacks {' or '.join(wanted)}."
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
                        given["name"], given["arguments"], progress_callback=on_progress
                    )
                    result: Any = await called
                else:
                    result = await self._client.read_resource(given["uri"])
            except MCPError as error:
                await emit("error", {"message": str(error)})
            else:
                await emit(
                    "result",
                    result.model_dump(by_alias=True, exclude_none=True, mode="json"),
                )

        return _Events(work)

    async def library(self, request: Request) -> Response:
        """Return search providers, folders with their documents, and example
        questions."""
        return JSONResponse(await in_thread(describe_library, self._settings))

    async def health(self, request: Request) -> Response:
        """Return settings, models by role, cache content and configured clients."""
        roles = await report_roles(self._settings, tried=False)
        return JSONResponse(
            {
                "settings": setting_rows(self._settings),
                "models": [{"role": role.name, "line": role.line} for role in roles],
                "cache": await in_thread(cache_rows, self._stores, self._settings),
                "clients": await in_thread(client_rows),
            }
        )

    async def clear_cache(self, request: Request) -> Response:
        """Clear one store, or all of them and the folder index."""
        kind = (await _asked(request)).get("kind")
        if kind not in ("", *self._stores.by_kind):
            return JSONResponse({"message": f"Unknown store {kind!r}."}, 404)
        store = self._stores.by_kind[kind] if kind else self._stores
        return JSONResponse({"cleared": await in_thread(store.clear)})

    async def change_client(self, request: Request) -> Response:
        """Return the change that `winnow install` would make; write it if exactly that
        was shown.

        Status 404: the client is unknown. 409: its file cannot be used.
        """
        asked = await _asked(request)
        name, undo = str(asked.get("client")), asked.get("undo") is True
        if name not in CLIENTS:
            return JSONResponse({"message": f"Unknown client {name!r}."}, 404)
        try:
            change = await in_thread(plan_change, name, "user", self._given, undo=undo)
            if change is not None and asked.get("shown") == change.shown:
                await in_thread(make_change, change, undo=undo)
                return JSONResponse({"done": True, "after": CLIENTS[name].after})
        except UsageError as error:
            return JSONResponse({"message": str(error)}, 409)
        return JSONResponse({"done": False, "shown": change.shown if change else ""})

    async def doctor(self, request: Request) -> Response:
        """Run the checks of `winnow doctor`; an error that ends them becomes an event
        `error`."""

        async def work(emit: Emit) -> None:
            try:
                checks = await examine(self._settings, {})
            except WinnowError as error:
                await emit("error", {"message": str(error)})
            else:
                await emit("result", {"checks": [check._asdict() for check in checks]})

        return _Events(work)


async def _asked(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body; raises HTTP 400 for anything else."""
    try:
        asked = await request.json()
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "The body is not a JSON object.")
    return asked


def setting_rows(settings: Settings) -> list[dict[str, object]]:
    """Return each setting: value as text (secrets as dots), whether it is the default,
    help."""
    rows: list[dict[str, object]] = []
    for setting in SETTINGS_TABLE:
        value = getattr(settings, setting.name)
        if isinstance(value, (Papers, Networks, Http, Log)):
            pairs = value._asdict().items()
            text = " ".join(f"{name}={part}" for name, part in pairs if part)
        elif isinstance(value, tuple):
            text = ", ".join(map(str, value))
        else:
            text = "" if value is None or value == {} else str(value)
        usual = value == setting.read(setting.default)
        rows.append(
            {
                "name": setting.name,
                "value": "•••" if setting.secret and text else text,
                "usual": usual,
                "help": setting.help,
            }
        )
    return rows


def cache_rows(stores: Stores, settings: Settings) -> dict[str, object]:
    """Return the cache's path and limit (bytes), and entries, bytes and errors of each
    store."""
    kinds = [
        {
            "kind": kind,
            "entries": one.entries,
            "bytes": one.bytes,
            "trouble": one.away or one.last_problem,
        }
        for kind, one in stores.stats().items()
    ]
    return {
        "place": stores.place,
        "limit": CACHE_BYTES,
        "kinds": kinds,
    }


def client_rows() -> list[dict[str, str]]:
    """Return each supported client, its file, and the state of Winnow's entry ("":
    none)."""
    return [
        {
            "client": name,
            "path": str(file_of(name, "user")),
            "state": client_state(name),
        }
        for name in CLIENTS
    ]


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
