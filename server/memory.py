"""When Python looks for garbage in a process that serves: at quiet moments, and not in the middle of a page.

A full collection holds every thread for as long as it takes to walk all objects, 100 to 250 ms once a few cleaned pages
are kept, and Python starts one while a large page is being cleaned: that was the longest wait of any ping. Young
objects are still collected as always. Not for: what is kept (`pipeline/services.py`); a process that others share.
"""

import gc
from typing import Final

import anyio

from pipeline.work import is_busy

LOOK_SECONDS: Final = 0.5
ENOUGH: Final = 10
"""Collections of the middle generation (7,000 new objects each) after which a full one is due, as in Python itself."""
TOO_MANY: Final = 1000
"""After so many it is run in the middle of work too: garbage must not grow without end on a server that never rests."""
_NEVER: Final = 1 << 30
_PYTHONS: Final = gc.get_threshold()


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
