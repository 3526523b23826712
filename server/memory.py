"""Memory of a process that serves: garbage is looked for at quiet moments, and what a large page took is given back.

A full collection holds every thread for as long as it takes to walk all objects, 100 to 250 ms once a few cleaned pages
are kept, and Python starts one while a large page is being cleaned: that was the longest wait of any ping. Young
objects are still collected as always. Not for: what is kept (`pipeline/services.py`); a process that others share.
"""

import ctypes
import gc
import sys
from typing import Final

import anyio

from pipeline.work import is_busy

LOOK_SECONDS: Final = 0.5
ENOUGH: Final = 10
"""Collections of the middle generation (7,000 new objects each) after which a full one is due, as in Python itself."""
TOO_MANY: Final = 1000
"""After so many it is run in the middle of work too: garbage must not grow without end on a server that never rests."""
LARGE_BYTES: Final = 1 << 20
"""A block of at least so many bytes is the system's again once it is freed. glibc raises its own bound to the largest
block freed so far, up to 32 MB, and keeps the room in one heap a thread: the hostile set
(`tests/test_fetch_hostile_set.py`) then left 60 to 121 MB, and with this bound 25 to 33 (six and three runs). Reading
pages of 60 kB to 4 MB takes as long as before; at 256 kB pages of 300 kB took up to a tenth more."""
_M_MMAP_THRESHOLD: Final = -3  # malloc.h
_NEVER: Final = 1 << 30
_PYTHONS: Final = gc.get_threshold()


def give_back_large_blocks() -> bool:
    """Have freed blocks of `LARGE_BYTES` and more go back to the system; return whether the C library can."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES))
    except AttributeError:  # a C library without the call, such as musl, which has no such bound to hold
        return False


async def collect_when_quiet() -> None:
    """Run for as long as the server does; on cancellation Python's own ways come back."""
    gc.freeze()  # what the imports made stays for good and need not be walked again
    done = _middle_collections()
    try:
        while True:
            gc.set_threshold(*_PYTHONS[:2], _NEVER)
            await anyio.sleep(LOOK_SECONDS)
            since = _middle_collections() - done
            if since >= TOO_MANY or (since >= ENOUGH and not is_busy()):
                gc.collect()
                done = _middle_collections()
    finally:
        gc.set_threshold(*_PYTHONS)
        gc.unfreeze()


def _middle_collections() -> int:
    return int(gc.get_stats()[1]["collections"])
