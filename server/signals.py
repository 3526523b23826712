"""Ending on SIGTERM and SIGINT: clean up, then leave at once.

The default would skip all cleanup on SIGTERM and hang on SIGINT until stdin closes (notes/mcp §4.4). Not for: EOF,
which ends the transport by itself.
"""

import os
import signal
import sys
from collections.abc import Callable

import anyio


async def watch_signals(clean_up: Callable[[], None]) -> None:
    """Wait for a signal, call `clean_up`, and end the process with 128 + the signal's number."""
    wanted = [signal.SIGTERM, signal.SIGINT] if sys.platform != "win32" else [signal.SIGINT]
    with anyio.open_signal_receiver(*wanted) as signals:
        async for received in signals:
            clean_up()
            os._exit(128 + received)
