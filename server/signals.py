"""Ending a process that serves: on SIGTERM and SIGINT after cleaning up, and where it cannot serve at all.

The default would skip all cleanup on SIGTERM and hang on SIGINT until stdin closes (notes/mcp §4.4). Not for: EOF,
which ends the transport by itself.
"""

import os
import signal
import sys
from collections.abc import Callable

import anyio

from errors import UsageError, WinnowError


async def watch_signals(clean_up: Callable[[], None]) -> None:
    """Wait for a signal, call `clean_up`, and end the process with 128 + the signal's number."""
    wanted = [signal.SIGTERM, signal.SIGINT] if sys.platform != "win32" else [signal.SIGINT]
    with anyio.open_signal_receiver(*wanted) as signals:
        async for received in signals:
            clean_up()
            os._exit(128 + received)


def leave(error: WinnowError) -> None:
    """Say why this process cannot serve and end it: 2 for a setting that is wrong, 1 for anything else."""
    print(f"winnow: {error}", file=sys.stderr, flush=True)
    os._exit(2 if isinstance(error, UsageError) else 1)
