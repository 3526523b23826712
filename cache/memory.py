"""Values that one process holds for itself, because they may not, or cannot, be written.

Not for: speed; what the cache can keep is read from there.
"""

import threading
from collections import OrderedDict


class Memory:
    """Bytes by key, the oldest of which leave when there are too many. Safe for threads."""

    def __init__(self, limit: int) -> None:
        """Hold at most `limit` bytes."""
        self._limit = limit
        self._size = 0
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """Return the value of `key`."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: str, value: bytes) -> None:
        """Hold `value`, unless it alone is over the limit."""
        with self._lock:
            self._forget(key)
            if len(value) > self._limit:
                return
            self._values[key] = value
            self._size += len(value)
            while self._size > self._limit:
                self._forget(next(iter(self._values)))

    def drop(self, key: str) -> None:
        """Forget `key`."""
        with self._lock:
            self._forget(key)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self._size = 0

    def _forget(self, key: str) -> None:
        value = self._values.pop(key, None)
        self._size -= len(value or b"")
