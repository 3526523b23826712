"""Where the daemons of a person listen: a folder for its owner only, in it a socket for
each installation and environment, with a log (`SOCKET.log`).

Imports the standard library alone, as a client's process does. Not for: starting a
daemon (`proxy.py`)."""

import hashlib
import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

if sys.platform != "win32":
    import fcntl

CODE: Final = os.path.realpath(os.path.join(__file__, "..", "..", ".."))
"""The folder that our packages are imported from."""
_AGREED: Final = (
    *("HOME", "PYTHONPATH", "TZ"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
)
_AGREED_BEGINNINGS: Final = ("HF_", "OTEL_", "SSL_", "CUDA_")
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group of a socket's other end (`ucred`, Linux)."""
_NAMESPACES: Final = ("mnt", "net", "pid", "user")
_RIGHTS: Final = ("CapEff:", "Groups:", "NoNewPrivs:", "Seccomp:")
"""Rows of a process's status that a sandbox changes; Landlock needs NoNewPrivs."""


def environment() -> dict[str, str]:
    """Return the variables of this process."""
    return dict(os.environ)


def agreed(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that hold for a whole process: clients that differ in one do
    not share a daemon."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if name in _AGREED
        or name.startswith(_AGREED_BEGINNINGS)
        or name.lower().endswith("_proxy")
    }


def runtime_folder(variables: Mapping[str, str]) -> str:
    """Return the folder of the sockets, which is made if needed; raises `OSError` where
    that fails, and `PermissionError` where others may use it."""
    above = variables.get("XDG_RUNTIME_DIR") or variables.get("TMPDIR") or "/tmp"  # noqa: S108  checked below
    # `sudo` may keep the variable: root's folder must not take the place of the user's.
    folder = os.path.join(above, f"winnow-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    about = os.lstat(folder)
    if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise PermissionError(f"{folder} is open to other users")
    return folder


def socket_path(folder: str, variables: Mapping[str, str], python: str) -> str:
    """Return the path of the socket of this installation, run by `python`."""
    parts = [CODE, python, agreed(variables), confinement("self")]
    identity = json.dumps(parts).encode()
    digest = hashlib.blake2b(identity, digest_size=5).hexdigest()
    return os.path.join(folder, f"{digest}.sock")


def confinement(process: int | str) -> list[str]:
    """Return what a sandbox around a process consists of, as far as Linux says: its
    namespaces and rights; [] where they cannot be read."""
    about = f"/proc/{process}"
    try:
        links = [os.readlink(f"{about}/ns/{name}") for name in _NAMESPACES]
        with open(f"{about}/status", encoding="utf-8", errors="replace") as rows:
            return [*links, *(row for row in rows if row.startswith(_RIGHTS))]
    except OSError:
        return []


def is_own(link: Any) -> bool:
    """Return whether the process at the other end of a socket is this user's and in the
    same sandbox or in none, as this one: it could have files read here that are kept
    from it. Where the system does not say, the folder's mode has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    sent = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(sent)
    return user == os.getuid() and confinement(process) == confinement("self")


def connect(path: str, seconds: float) -> socket.socket:
    """Connect to a daemon; answers are awaited for `seconds`. Raises `OSError`:
    `FileNotFoundError` or `ConnectionRefusedError` where none listens."""
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(seconds)
    try:
        link.connect(path)
    except OSError:
        link.close()
        raise
    return link


def asked(link: socket.socket, request: Mapping[str, object]) -> dict[str, Any]:
    """Send a daemon the line that a connection begins with, and return its answer.

    Raises `OSError` (`ConnectionError` where the daemon ended first)."""
    link.sendall(json.dumps(request).encode() + b"\n")
    with link.makefile("rb") as lines:
        answer = lines.readline()
    if not answer:
        raise ConnectionResetError("the daemon ended")
    reply: dict[str, Any] = json.loads(answer)
    return reply


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Hold the lock of a folder, in which one process at a time binds a socket."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
