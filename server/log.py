"""The log: a file where one is set, else as few lines on stderr as a client may leave unread.

A client that never reads our stderr must not stop us: its pipe takes 64 kB and then blocks whoever writes. Not for:
what is logged; questions and addresses never are.
"""

import logging
import os
import stat
import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

from server.settings import Settings

MOST: Final = 8_000
"""Bytes of warnings an hour."""
HOUR: Final = 3600.0
FORMAT: Final = "%(asctime)s %(name)s %(message)s"
DROPPED: Final = "winnow: more is not shown this hour; WINNOW_LOG_FILE=FILE keeps all of it"
_ROOM: Final = 200
"""Bytes kept for that line and a cut."""


def start_log(settings: Settings) -> None:
    """Send the log where the settings say, one line each: the SDK's own set-up draws boxes."""
    if settings.log_file:
        logging.basicConfig(filename=settings.log_file, level=settings.log_level, format=FORMAT)
    elif settings.log_level in {"DEBUG", "INFO"}:  # asked for, so all of it
        logging.basicConfig(level=settings.log_level, format=FORMAT)
    else:
        logging.basicConfig(handlers=[Sparing(sys.stderr)], level=settings.log_level, format=FORMAT)


def drop_what_nobody_reads() -> None:
    """Let writes to a stderr that is a full pipe fail instead of wait; a terminal or a file stays as it is."""
    if sys.platform != "win32" and stat.S_ISFIFO(os.fstat(2).st_mode):
        os.set_blocking(2, False)


class Sparing(logging.StreamHandler[TextIO]):
    """Writes `MOST` bytes an hour, says once that there was more, and drops that."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._since = clock()
        self._left = MOST

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or what there is room for of it."""
        now = self._clock()
        if now - self._since >= HOUR:
            self._since, self._left = now, MOST
        if self._left <= 0:
            return
        cost = len(self.format(record).encode()) + 1
        if cost <= self._left - _ROOM:
            self._left -= cost
            super().emit(record)
        else:
            self._left = 0
            self.stream.write(f"{DROPPED}\n")
            self.flush()
