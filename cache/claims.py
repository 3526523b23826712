"""Claims: leases on work (a URL that is being fetched), kept in the cache so that other processes see them.

A claim has an owner and an end. While its process lives a thread moves the end on; after a kill it passes, so nobody is
blocked for longer than that. Not for: tasks of one process among themselves (`pipeline/fetch/flight.py`).
"""

import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from cache.rows import judge, seal

Swap = Callable[[str, bytes | None, bytes | None, float], tuple[bool, bytes | None]]
"""Row, old and new bytes, seconds → whether it was replaced, and what is there if not."""


@dataclass(slots=True)
class Claim:
    """A lease on `row` for `seconds`; `blob` is what lies there now, None where the cache could not hold it."""

    row: str
    seconds: float
    owner: bytes
    blob: bytes | None


class Claims:
    """The claims that one store of this process holds."""

    def __init__(self, swap: Swap, clock: Callable[[], float]) -> None:
        """Keep claims through `swap`; `clock` decides when one has passed."""
        self._swap = swap
        self._clock = clock
        self._held: dict[bytes, Claim] = {}
        self._lock = threading.Lock()
        self._renewing = False

    def take(self, row: str, seconds: float) -> Claim | None:
        """Return a claim on `row`, None while someone else holds it."""
        owner = f"{os.getpid()}-{uuid.uuid4().hex}".encode()
        mine = self._sealed(row, owner, seconds)
        done, found = self._swap(row, None, mine, seconds)
        if not done and found is not None and judge(row, found, now=self._clock()) != "whole":
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
        """End a claim; one that has passed to another owner stays with that owner."""
        with self._lock:
            self._held.pop(claim.owner, None)
            blob = claim.blob
        if blob is not None:
            self._swap(claim.row, blob, None, claim.seconds)

    def close(self) -> None:
        """End all claims."""
        with self._lock:
            claims = list(self._held.values())
        for claim in claims:
            self.give_back(claim)

    def _renew(self) -> None:
        """Move the ends of all claims on, until there is none for a while."""
        while True:
            with self._lock:
                # Halfway to its end, so that a late renewal does not lose it.
                wait = min((claim.seconds for claim in self._held.values()), default=1.0) / 2
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
            # Under the lock: a claim that is given back meanwhile must be given back in its newest form.
            done, _ = self._swap(claim.row, claim.blob, fresh, claim.seconds)
            if done:
                claim.blob = fresh

    def _sealed(self, row: str, owner: bytes, seconds: float) -> bytes:
        return seal(row, owner, kind=b"B", expires_at=self._clock() + seconds)
