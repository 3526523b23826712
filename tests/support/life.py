"""A server over stdio as a client starts it, with an environment that a caller changes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support import LIBRARY, ROOT


def environment(cache: Path, **settings: str) -> dict[str, str]:
    """Return the environment of a server over the sample library, without a model."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINNOW_")}
    own = {"WINNOW_FOLDERS": str(LIBRARY), "WINNOW_CACHE": str(cache), "WINNOW_EMBEDDER": "none"}
    own |= {"WINNOW_SEARCH": "folder", "WINNOW_DAEMON": "off", "PYTHONPATH": str(ROOT)}
    return {**kept, **own, **settings}


@contextmanager
def started(
    cache: Path, *before: str, lost: Sequence[str] = (), **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server over stdio after the words of a shell `before`, without the variables that are
    `lost`; it ends with the context."""
    given = {key: one for key, one in environment(cache, **settings).items() if key not in lost}
    command = [*before, sys.executable, "-m", "server"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=given,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
