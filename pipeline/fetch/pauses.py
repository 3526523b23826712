"""Sites that asked to be left alone for a while (429 or 503 with `Retry-After`), so that they are.

Not for: reading the header (`pipeline/fetch/status.py`), nor how many requests go at once (`pipeline/fetch/gates.py`).
"""

from collections import OrderedDict
from typing import Final

LONGEST: Final = 3600.0
"""Seconds that a request for silence is remembered; a site that names more is asked again after an hour."""
_MOST_SITES: Final = 512


class Pauses:
    """Until when each site wants silence; the oldest request is forgotten first."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, float] = OrderedDict()

    def note(self, origin: str, seconds: float, *, now: float) -> None:
        """Leave `origin`, such as `https://example.org:443`, alone for `seconds`."""
        if seconds <= 0:
            return
        self._until[origin] = now + min(seconds, LONGEST)
        self._until.move_to_end(origin)
        if len(self._until) > _MOST_SITES:
            self._until.popitem(last=False)

    def remaining(self, origin: str, *, now: float) -> float:
        """Return the seconds for which `origin` is still to be left alone, 0 when it may be asked."""
        left = self._until.get(origin, 0.0) - now
        if left <= 0:
            self._until.pop(origin, None)
            return 0.0
        return left
