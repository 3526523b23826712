"""What a client starts: a thin process between its stdin and stdout and the daemon.

It finds the daemon of this user and installation, or starts it, passes the messages of
the protocol in both directions, and survives the daemon: what was not answered is asked
again of the next one. Imports the standard library alone. Where no daemon is possible,
`join` returns and the process serves by itself (`server/stdio.py`). Not for: what is
served (`serve.py`)."""

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, NoReturn

from server.daemon.place import (
    CODE,
    asked,
    connect,
    environment,
    locked,
    runtime_folder,
    socket_path,
)

JOINED: Final = "joined"
"""What a daemon answers to a client that it serves."""
CONTROL: Final = "winnow"
"""Field of the lines that are the daemon's own, not the protocol's."""
_MODE: Final = "off"
"""What WINNOW_DAEMON is by default."""
_ACCEPT_SECONDS: Final = 20.0
"""Seconds in which a daemon, also one that starts, has to accept a client."""
_TRIES: Final = 4
"""Daemons that may end before they accept a client; one that hands over does."""
_AGAIN_SECONDS: Final = 5.0
"""Age up to which a call of a daemon that ended is asked again: a call may take
WINNOW_SECONDS, and clients give up after 60."""
_BEGINNING: Final = ("initialize", "notifications/initialized", "logging/setLevel")
"""Messages that a further daemon has to be sent again."""


class NoDaemon(Exception):
    """Why this process has to serve by itself, or cannot go on."""


def join(arguments: list[str]) -> None:
    """Serve the client of this process through the daemon, and leave the process; return
    where it is to serve by itself, or `arguments` are not those of a stdio server."""
    variables = environment()
    setting = variables.get("WINNOW_DAEMON", "")
    for argument in arguments:
        _, named, value = argument.partition("daemon=")
        setting = value if named else setting
    mode = setting.partition(" ")[0] or _MODE
    other = any(argument.startswith(("--h", "-h", "--d")) for argument in arguments)
    if arguments[:1] != ["serve"] or other or mode not in ("auto", "on"):
        return
    try:
        Relay(arguments, variables).run()
    except NoDaemon as reason:
        if mode == "on":
            _leave(f"WINNOW_DAEMON is on, and there is no daemon: {reason}", 1)
        if str(reason):
            print(
                f"winnow: this process serves without a daemon: {reason}",
                file=sys.stderr,
            )


class _Unanswered(NamedTuple):
    """A request of the client that was not answered yet."""

    line: bytes
    number: object
    is_call: bool
    sent: float
    """By the monotonic clock."""
    repeated: bool = False


class Relay:
    """The messages between one client and the daemon."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        self._environment = environment
        ours = {
            name: value
            for name, value in environment.items()
            if name.startswith("WINNOW_")
        }
        self._request = {
            "do": "serve",
            "arguments": arguments,
            "environment": ours,
            "folder": _working_folder(),
            "process": os.getpid(),
        }
        self._unsent = bytearray()
        self._received = bytearray()
        self._typed = bytearray()
        """The beginning of the client's next line."""
        self._pending: dict[str, _Unanswered] = {}
        self._session: dict[str, tuple[str, bytes]] = {}
        """By method, the id and line of what began the session."""
        self._answered_before: set[str] = set()
        """Ids of requests that were sent again for the daemon only."""
        self._link: socket.socket | None = self._joined()

    def run(self) -> NoReturn:
        """Pass messages on until the client or a signal ends it."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: os._exit(128 + received))
        while True:
            link: list[Any] = [self._link] if self._link is not None else []
            writing = link if self._unsent else []
            readable, writable, _ = select.select([0, *link], writing, [])
            for linked in link:
                try:
                    with suppress(BlockingIOError):
                        if writable:
                            del self._unsent[: linked.send(self._unsent)]
                        if linked in readable:
                            self._receive(linked)
                except ConnectionError:
                    self._lost(linked)
            if 0 in readable:
                self._take()

    def _take(self) -> None:
        """Read from the client."""
        read = os.read(0, 1 << 16)
        if not read:
            os._exit(0)
        self._typed += read
        *lines, self._typed[:] = self._typed.split(b"\n")
        for line in lines:
            self._note(bytes(line) + b"\n")
            self._unsent += line + b"\n"
        if lines and self._link is None:
            self._go_on()

    def _note(self, line: bytes) -> None:
        """Keep a request until it is answered, and what begins a session for long."""
        message = _parsed(line)
        method, key = message.get("method"), json.dumps(message.get("id"))
        if method in _BEGINNING:
            self._session[method] = (key, line)
        if method == "notifications/cancelled":
            params = message.get("params")
            if isinstance(params, dict):
                self._pending.pop(json.dumps(params.get("requestId")), None)
        if method is not None and "id" in message:
            self._pending[key] = _Unanswered(
                line, message["id"], method == "tools/call", time.monotonic()
            )

    def _receive(self, link: socket.socket) -> None:
        """Read from the daemon, and pass whole lines on."""
        read = link.recv(1 << 16)
        if not read:
            raise ConnectionResetError
        self._received += read
        *lines, self._received[:] = self._received.split(b"\n")
        for line in lines:
            message = _parsed(line)
            if CONTROL in message:
                _leave(message[CONTROL], message["code"])
            key = json.dumps(message.get("id"))
            if "method" not in message and "id" in message:
                self._pending.pop(key, None)
                if key in self._answered_before:
                    self._answered_before.discard(key)
                    continue
            _write(bytes(line) + b"\n")

    def _lost(self, link: socket.socket) -> None:
        """Take note that a daemon has ended.

        What it had not answered is asked again, once, and a call only while it is
        young; other requests fail with a sentence. Else the next message of the client
        starts a further daemon: who stops one wants its memory."""
        link.close()
        self._link = None
        self._received.clear()
        self._unsent.clear()
        now = time.monotonic()
        for key, request in list(self._pending.items()):
            old = request.is_call and now - request.sent > _AGAIN_SECONDS
            if request.repeated or old:
                del self._pending[key]
                _write(_failed(request))
            else:
                self._pending[key] = request._replace(repeated=True)
        if self._pending:
            self._go_on()

    def _go_on(self) -> None:
        """Go on with another daemon: begin the session, and ask what is not answered."""
        try:
            self._link = self._joined()
        except NoDaemon as reason:
            for request in self._pending.values():
                _write(_failed(request))
            _leave(f"the daemon ended, and there is no other: {reason}", 1)
        begun = [
            (key, line)
            for key, line in self._session.values()
            if key not in self._pending
        ]
        self._answered_before = {key for key, _ in begun if key != "null"}
        unanswered = [request.line for request in self._pending.values()]
        self._unsent[:] = b"".join([*(line for _, line in begun), *unanswered])

    def _joined(self) -> socket.socket:
        """Return a connection to a daemon that serves this client, and start the daemon
        if needed; raises `NoDaemon`."""
        try:
            folder = runtime_folder(self._environment)
            path = socket_path(folder, self._environment, sys.executable)
            for _ in range(_TRIES):
                with suppress(ConnectionError):
                    link = self._reached(folder, path)
                    reply = asked(link, self._request)
                    if reply[CONTROL] != JOINED:
                        raise NoDaemon(reply[CONTROL])
                    for warning in reply["warnings"]:
                        print(f"winnow: {warning}", file=sys.stderr, flush=True)
                    link.setblocking(False)
                    return link
        except OSError as error:
            raise NoDaemon(str(error)) from error
        raise NoDaemon(f"it ends at once, as {path}.log says")

    def _reached(self, folder: str, path: str) -> socket.socket:
        """Return a connection to the daemon at `path`, started if none listens there."""
        with suppress(FileNotFoundError, ConnectionRefusedError):
            return connect(path, _ACCEPT_SECONDS)
        with locked(folder):
            with suppress(FileNotFoundError, ConnectionRefusedError):
                return connect(path, _ACCEPT_SECONDS)
            with suppress(FileNotFoundError):
                os.unlink(path)  # of a daemon that was killed
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                os.chmod(path, 0o600)
                listener.listen()
                _start(listener.fileno(), path, self._environment)
            return connect(path, _ACCEPT_SECONDS)


def _start(listener: int, path: str, variables: Mapping[str, str]) -> None:
    """Start a daemon that accepts on the socket `listener`, in a session of its own;
    what it prints goes to its log."""
    from subprocess import DEVNULL, Popen  # noqa: PLC0415  most clients start none

    command = [sys.executable, os.path.join(CODE, "server"), "serve"]
    kept = {
        name: value
        for name, value in variables.items()
        if not name.startswith("WINNOW_")
    }
    with open(f"{path}.log", "ab") as log:
        # By a process between: a host that ends all processes below a client must not
        # find the daemon there, and a daemon that ended waits for no client.
        if between := os.fork():
            os.waitpid(between, 0)
            return
        try:
            Popen(  # noqa: S603  our own interpreter
                [*command, "--daemon", str(listener), path],
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=kept,
                pass_fds=[listener],
                start_new_session=True,
            )
        finally:
            os._exit(0)


def _working_folder() -> str:
    """Return the folder that relative paths begin at; the root where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _parsed(line: bytes | bytearray) -> dict[str, Any]:
    """Return a message; {} for a line that is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _failed(request: _Unanswered) -> bytes:
    """Return the answer to a request that a daemon took along."""
    text = "The process of Winnow ended during this call and was started again. Repeat the call."
    answer: dict[str, object] = {"jsonrpc": "2.0", "id": request.number}
    if request.is_call:
        content = [{"type": "text", "text": text}]
        answer["result"] = {
            "content": content,
            "isError": True,
            "resultType": "complete",
        }
    else:
        answer["error"] = {"code": -32603, "message": text}
    return json.dumps(answer).encode() + b"\n"


def _write(data: bytes) -> None:
    """Write to the client; leave the process where it has gone."""
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:
            select.select([], [1], [])
        except BrokenPipeError:
            os._exit(0)


def _leave(message: str, code: int) -> NoReturn:
    print(f"winnow: {message}", file=sys.stderr, flush=True)
    os._exit(code)
