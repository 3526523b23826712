"""The daemons of this user that run: what they do, their end, their logs.

Not for: serving (`server/daemon/serve.py`)."""

import argparse
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NoReturn

from cli.output import OK
from server.daemon.place import asked, connect, environment, runtime_folder

_ANSWER_SECONDS: Final = 5.0
"""Seconds in which a daemon has to answer; its event loop may be busy."""

_REDRAW_SECONDS: Final = 1.0
"""Seconds between two looks of `winnow status --watch`."""
_CLEARED: Final = "\033[H\033[J"
"""Goes to the upper left corner, and clears the screen from there."""


def daemon_rows() -> dict[str, str]:
    """Return what each daemon of this user is doing, as names and texts of a value a
    line."""
    rows = {}
    for path, link in _daemons():
        try:
            about = asked(link, {"do": "status"})
        except OSError:  # it ends at this moment
            continue
        finally:
            link.close()
        about["log"] = f"{path}.log"
        rows[f"daemon {about['process']}"] = "\n  ".join(
            f"{name} {', '.join(value) if isinstance(value, list) else value}"
            for name, value in about.items()
        )
    return rows or {"daemon": "none runs"}


def watch_daemons() -> NoReturn:
    """Print what each daemon of this user is doing, a value a line, once a second until
    a signal; at a terminal in the place of what was printed before."""
    above = _CLEARED if sys.stdout.isatty() else ""
    while True:
        rows = "\n".join(f"{name}: {text}" for name, text in daemon_rows().items())
        print(above + rows, flush=True)
        time.sleep(_REDRAW_SECONDS)


def stop_daemons(_: argparse.Namespace, __: Mapping[str, str]) -> int:
    """Have each daemon of this user finish its calls and end; return the exit code."""
    for path, link in _daemons():
        with link:
            asked(link, {"do": "stop"})
            link.settimeout(None)  # it ends within the limits of its calls
            link.recv(1)
        print(f"stopped the daemon of {path}")
    return OK


def print_logs(_: argparse.Namespace, __: Mapping[str, str]) -> int:
    """Print the logs of the daemons that run, or did not end by themselves; return the
    exit code."""
    for path in _sockets():
        log = Path(f"{path}.log")
        if log.is_file():
            print(f"{log}:\n{log.read_text(encoding='utf-8', errors='replace')}")
    return OK


def _sockets() -> list[Path]:
    if sys.platform == "win32":
        return []
    try:
        return sorted(Path(runtime_folder(environment())).glob("*.sock"))
    except OSError:
        return []


def _daemons() -> Iterator[tuple[str, socket.socket]]:
    """Yield a connection to each daemon that runs, and the path of its socket."""
    for path in map(str, _sockets()):
        try:
            link = connect(path, _ANSWER_SECONDS)
        except OSError:  # of one that was killed
            continue
        yield path, link
