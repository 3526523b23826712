"""Sole rights to work on something, kept in the cache so that other processes see them.

A right has an owner and an end. While its process lives a thread moves the end on; after a kill it passes, so nobody is
blocked for longer than that. Not for: tasks of one process among themselves, which need no cache
(`pipeline/fetch/flight.py`).
"""

import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cache.disk import RefusedRow, seal, unseal

Swap = Callable[[str, bytes | None, bytes | None, float], tuple[bool, bytes | None]]
"""Row, old and new bytes, seconds → whether it was replaced, and what is there if not."""
RENEWED_IN: Final = 1 / 3
"""A right is renewed after this part of its time, so that one late renewal does not lose it."""


@dataclass(slots=True)
class Claim:
    """The sole right to work on `row`; `blob` is what lies there now, None where the cache could not hold it."""

    row: str
    seconds: float
    owner: bytes
    blob: bytes | None


class Claims:
    """The rights that one store of this process holds."""

    def __init__(self, swap: Swap, clock: Callable[[], float]) -> None:
        """Keep rights through `swap`; `clock` decides when one has passed."""
        self._swap = swap
        self._clock = clock
        self._held: dict[bytes, Claim] = {}
        self._lock = threading.Lock()
        self._renewing = False

    def take(self, row: str, seconds: float) -> Claim | None:
        """Return the right to `row`, None while someone else holds it."""
        owner = f"{os.getpid()}-{uuid.uuid4().hex}".encode()
        mine = self._sealed(row, owner, seconds)
        done, found = self._swap(row, None, mine, seconds)
        if not done and found is not None and self._has_passed(row, found):
            done, found = self._swap(row, found, mine, seconds)
        if not done:
            return None
        claim = Claim(row, seconds, owner, found)
        if found is not None:
            with self._lock:
                self._held[owner] = claim
                if not self._renewing:
                    self._renewing = True
                    threading.Thread(target=self._renew, name="winnow-claims", daemon=True).start()
        return claim

    def give_back(self, claim: Claim) -> None:
        """End a right; one that has passed to another owner stays with that owner."""
        with self._lock:
            self._held.pop(claim.owner, None)
            blob = claim.blob
        if blob is not None:
            self._swap(claim.row, blob, None, claim.seconds)

    def close(self) -> None:
        """End all rights."""
        with self._lock:
            claims = list(self._held.values())
        for claim in claims:
            self.give_back(claim)

    def _renew(self) -> None:
        """Move the ends of all rights on, until there is none for a while."""
        while True:
            with self._lock:
                wait = min((claim.seconds for claim in self._held.values()), default=1.0) * RENEWED_IN
            time.sleep(wait)
            with self._lock:
                if not self._held:
                    self._renewing = False
                    return
                claims = list(self._held.values())
            for claim in claims:
                self._renew_one(claim)

    def _renew_one(self, claim: Claim) -> None:
        fresh = self._sealed(claim.row, claim.owner, claim.seconds)
        with self._lock:
            if claim.owner not in self._held:
                return
            # Under the lock: a right that is given back meanwhile must be given back in its newest form.
            done, _ = self._swap(claim.row, claim.blob, fresh, claim.seconds)
            if done:
                claim.blob = fresh

    def _sealed(self, row: str, owner: bytes, seconds: float) -> bytes:
        return seal(row, owner, kind=b"B", expires_at=self._clock() + seconds)

    def _has_passed(self, row: str, found: bytes) -> bool:
        try:
            return unseal(row, found, kind=b"B", now=self._clock()) is None
        except RefusedRow:
            return True
