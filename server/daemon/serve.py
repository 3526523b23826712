"""The daemon: one process that serves every stdio client of a person.

Clients with equal settings share a context: a server of ours with its services. What
costs memory is shared by all (`Shared`), and so are the places for calls; folders, keys
and sessions are a context's own. A context ends some minutes after its last client, the
daemon with its last context. Where the files of its code have changed (an upgrade), it
finishes the running calls and ends; clients then start the new one. Not for: what a
client starts (`proxy.py`)."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, chdir, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.server.runner import serve_dual_era_loop

from errors import WinnowError
from server.app import Winnow, build_server
from server.calls import Admission, local_caller
from server.daemon.place import CODE, is_own
from server.daemon.proxy import CONTROL, JOINED
from server.process import (
    PAUSE,
    Opening,
    exit_code,
    start_log,
    start_telemetry,
    tune_process,
    watch_signals,
)
from server.settings import Log, Settings
from server.shared import Shared
from server.stdio import client_messages
from server.version import VERSION

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

SettingsOf = Callable[[list[str], Mapping[str, str]], Settings]
"""Reads the settings of a client from its arguments and variables; raises
`WinnowError`."""
_IDLE_MINUTES: Final = 10.0
"""Minutes for which a context stays without a client by default."""
_LINE_BYTES: Final = 1 << 24
"""Longest message of a client; the arguments of a call are far below."""
_FIRST_SECONDS: Final = 60.0
"""Seconds in which a first client has to come."""
_DRAIN_SECONDS: Final = 40.0
"""Seconds in which running calls may end before a daemon does."""
_LOOK_SECONDS: Final = 0.05
"""Seconds between two looks whether calls still run, while it ends."""
_log: Final = logging.getLogger("winnow.daemon")


def serve_daemon(
    descriptor: str, path: str, settings_of: SettingsOf, settings: Settings
) -> None:
    """Serve clients on the socket at `path`, whose `descriptor` this process was
    started with; the log and telemetry are those of `settings`."""
    start_log(settings)
    _log.setLevel(logging.INFO)
    tune_process()
    end_telemetry = start_telemetry(settings.otlp)
    listener = socket.socket(fileno=int(descriptor))
    anyio.run(_Daemon(path, settings_of).run, listener)
    end_telemetry()
    os._exit(0)  # threads of cancelled calls would delay it


@dataclass(eq=False)
class _Client:
    """A connected client."""

    process: int
    output: asyncio.StreamWriter
    name: str = ""


class _Context:
    """A server for clients of equal settings."""

    opening: Opening

    def __init__(
        self, settings: Settings, admission: Admission, shared: Shared
    ) -> None:
        self.settings = settings
        # Traces are exported by the process, not by each server in it.
        self.server: Winnow = build_server(
            replace(settings, otlp=""), failed=self._fail, shared=shared
        )
        self.server.admission = admission
        self.clients: list[_Client] = []
        self.entered = anyio.Event()
        self._failed = False
        self._changed = anyio.Event()

    def count(self, client: _Client, *, joins: bool) -> None:
        """Note that a client comes or goes."""
        if joins:
            self.clients.append(client)
        else:
            self.clients.remove(client)
        self._changed.set()

    async def left_alone(self) -> None:
        """Wait until it had no client for as long as the settings say, or its services
        could not be opened."""
        minutes = float(self.settings.daemon.partition("idle=")[2] or _IDLE_MINUTES)
        while not self._failed:
            self._changed = anyio.Event()
            patience = math.inf if self.clients else 60 * minutes
            with anyio.move_on_after(patience):
                await self._changed.wait()
                continue
            return

    def _fail(self, error: WinnowError) -> None:
        self._failed = True
        for client in self.clients:
            _say(client.output, {CONTROL: str(error), "code": exit_code(error)})
            client.output.close()
        self._changed.set()


class _Daemon:
    """The connections of one process, and its contexts."""

    _group: TaskGroup
    _shared: Shared
    _log_bytes: int
    """Of the log when it began; what is added later is kept."""

    def __init__(self, path: str, settings_of: SettingsOf) -> None:
        self._path = path
        self._inode = os.stat(path).st_ino
        self._settings_of = settings_of
        self._admission = Admission()
        self._contexts: list[_Context] = []
        self._files = _loaded_files()
        self._state = _state(self._files)
        self._began = time.monotonic()
        self._came = anyio.Event()
        """Set when a first client has come."""
        self._ended = anyio.Event()
        self._draining = False

    async def run(self, listener: socket.socket) -> None:
        """Serve until the last context has ended."""
        async with AsyncExitStack() as stack, anyio.create_task_group() as self._group:
            self._shared = Shared(stack)
            self._group.start_soon(watch_signals, self._leave_place, self._drain)
            server = await asyncio.start_unix_server(
                self._connected, sock=listener, limit=_LINE_BYTES
            )
            _log.info("%s begins with process %d", VERSION, os.getpid())
            self._log_bytes = os.stat(f"{self._path}.log").st_size
            with anyio.move_on_after(_FIRST_SECONDS):
                await self._came.wait()
            if self._contexts:
                await self._ended.wait()
            self._leave_place()
            server.close()
            self._group.cancel_scope.cancel()
        _log.info("process %d ends", os.getpid())

    async def _connected(
        self, lines: asyncio.StreamReader, output: asyncio.StreamWriter
    ) -> None:
        doing = {"serve": self._serve, "status": self._status, "stop": self._stop}
        request: dict[str, Any] = {}
        try:
            # The files of the code are looked at each time: clients of an upgraded
            # installation must not be served by what was loaded before.
            if not is_own(output.get_extra_info("socket")):
                _log.warning(
                    "a process of another user, or in another sandbox, was refused"
                )
            elif self._draining or self._state != _state(self._files):
                self._group.start_soon(self._drain)
            else:
                with suppress(ConnectionError, ValueError):
                    request = json.loads(await lines.readline())
            if request:
                await doing[request["do"]](request, lines, output)
        finally:
            output.close()

    async def _status(
        self, _: Any, __: asyncio.StreamReader, output: asyncio.StreamWriter
    ) -> None:
        running, waiting = map(
            sum, zip(*self._admission.standing().values(), strict=True)
        )
        clients = [client for context in self._contexts for client in context.clients]
        _say(
            output,
            {
                "version": VERSION,
                "process": os.getpid(),
                "seconds": round(time.monotonic() - self._began),
                "megabytes": _resident_megabytes(),
                "clients": [
                    f"{client.name or 'unnamed'} (process {client.process})"
                    for client in clients
                ],
                "settings": len(self._contexts),
                "models": self._shared.models,
                "running": running,
                "waiting": waiting,
            },
        )
        await output.drain()

    async def _stop(
        self, _: Any, lines: asyncio.StreamReader, output: asyncio.StreamWriter
    ) -> None:
        _say(output, {CONTROL: "stops"})
        self._group.start_soon(self._drain)
        await lines.read()  # it sees the end of this process

    async def _serve(
        self,
        request: Mapping[str, Any],
        lines: asyncio.StreamReader,
        output: asyncio.StreamWriter,
    ) -> None:
        try:
            context = self._context_for(request)
        except (WinnowError, SystemExit):
            _say(output, {CONTROL: ""})  # the client's own process says what is wrong
            return
        except OSError as error:
            _say(output, {CONTROL: str(error)})
            return
        client = _Client(request["process"], output)
        context.count(client, joins=True)
        try:
            await context.entered.wait()
            warnings = context.settings.warnings()
            texts = [f"{name}: {text}" for name, text in warnings.items()]
            _say(output, {CONTROL: JOINED, "warnings": texts})
            local_caller.set(f"process {client.process}")
            lowlevel = context.server._lowlevel_server
            wire = _Wire(lines, output, client)
            async with client_messages(wire, wire) as (messages, answers):
                await serve_dual_era_loop(
                    lowlevel,
                    messages,
                    answers,
                    lifespan_state=context.opening,
                    init_options=lowlevel.create_initialization_options(),
                )
        finally:
            context.count(client, joins=False)

    def _context_for(self, request: Mapping[str, Any]) -> _Context:
        """Return the context of a client's settings; raises `WinnowError` for wrong
        settings, `OSError` for those of which a daemon cannot do justice."""
        with chdir(request["folder"]):
            settings = self._settings_of(request["arguments"], request["environment"])
            if settings.log != Log():
                raise OSError("its log is its own (WINNOW_LOG)")
            texts = request["environment"].values()
            names = [text.rpartition(":")[2] for text in texts]
            if any(os.path.isfile(name) and not os.path.isabs(name) for name in names):
                raise OSError("a file is named by a relative path")
        for context in self._contexts:
            if context.settings == settings:
                return context
        context = _Context(settings, self._admission, self._shared)
        self._contexts.append(context)
        self._group.start_soon(self._keep, context)
        self._came.set()
        return context

    async def _keep(self, context: _Context) -> None:
        """Hold a context open while it has clients."""
        lowlevel = context.server._lowlevel_server
        async with lowlevel.lifespan(lowlevel) as context.opening:
            context.entered.set()
            await context.left_alone()
            self._contexts.remove(context)
        if not self._contexts:
            self._ended.set()

    async def _drain(self) -> None:
        """Take no further client, and end when the running calls are answered."""
        if self._draining:
            return
        self._draining = True
        self._leave_place()
        self._admission.close()
        _log.info("the running calls are finished; then it ends")
        with anyio.move_on_after(_DRAIN_SECONDS):
            while any(map(any, self._admission.standing().values())):
                await anyio.sleep(_LOOK_SECONDS)
        await anyio.sleep(PAUSE)  # for the last answers to be written
        self._came.set()
        self._ended.set()

    def _leave_place(self) -> None:
        """Remove the socket's file, and the log where nothing happened; those of
        another daemon stay."""
        with suppress(OSError):
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)
                if os.stat(f"{self._path}.log").st_size == self._log_bytes:
                    os.unlink(f"{self._path}.log")


class _Wire:
    """Lines of a client, and lines to it, as the SDK's transport takes files."""

    def __init__(
        self,
        lines: asyncio.StreamReader,
        output: asyncio.StreamWriter,
        client: _Client,
    ) -> None:
        self._lines = lines
        self._output = output
        self._client = client

    def __aiter__(self) -> _Wire:
        return self

    async def __anext__(self) -> str:
        try:
            line = await self._lines.readline()
        except (ConnectionError, ValueError):  # a line that is too long
            line = b""
        if not line:
            raise StopAsyncIteration
        if not self._client.name:
            self._client.name = _client_name(line)
        return line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        self._output.write(text.encode())

    async def flush(self) -> None:
        with suppress(ConnectionError):
            await self._output.drain()


def _say(output: asyncio.StreamWriter, message: Mapping[str, object]) -> None:
    output.write(json.dumps(message).encode() + b"\n")


def _client_name(line: bytes) -> str:
    """Return how a client names itself in a message of either era, or ""."""
    with suppress(ValueError, RecursionError, KeyError, TypeError):
        params = json.loads(line)["params"]
        about = (
            params.get("clientInfo")
            or params["_meta"]["io.modelcontextprotocol/clientInfo"]
        )
        return str(about["name"])
    return ""


def _loaded_files() -> list[str]:
    """Return the files of ours that this process has loaded."""
    names = [vars(module).get("__file__") for module in [*sys.modules.values()]]
    return [name for name in names if name and name.startswith(CODE)]


def _state(paths: list[str]) -> list[tuple[int, int]]:
    """Return what changes when files are replaced; [] where one is missing."""
    try:
        return [(os.stat(path).st_ino, os.stat(path).st_mtime_ns) for path in paths]
    except OSError:
        return []


def _resident_megabytes() -> float:
    """Return the memory of this process; its peak where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
