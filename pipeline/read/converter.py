"""Converting documents: what is light in a thread, documents such as PDF in processes of their own.

A process has its own interpreter, so that a conversion takes nothing from the answers of others but a core, a cap on
its memory, so that a file made to exhaust us costs its own call, and budgets in processor time, so that a busy machine
reads what an idle one reads. It is started by the first document, ends by itself when none came for a while, and is
killed where a cancelled conversion does not stop. Not for: what a conversion does (`pipeline/read/convert.py`).
"""

import functools
import hashlib
import json
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio

from cache.store import Store
from errors import ModelError, SourceUnreadable
from models.pipe import Frame
from models.shares import MOST_CORES, usable_cores
from models.worker import Limits, Worker
from pipeline.documents import Page
from pipeline.read.convert import Raw, kind_of, to_page
from pipeline.read.converted import can_recognise
from pipeline.read.sniff import HEAVY, HTML, PAGED
from pipeline.work import in_thread

LIGHT_BYTES: Final = 1_000_000
"""Text up to this size is converted in a thread: that takes less than sending it to a process that must be started."""
KEPT_SECONDS: Final = timedelta(days=1).total_seconds()
"""How long the pages of a PDF whose reading was cut off wait for the next call."""
LIMITS: Final = Limits(idle_seconds=60.0, memory_bytes=1 << 30, first_pause=0.0)
"""A file that ends a process is no reason to rest: the next is another."""


class Converter:
    """Turns bytes into pages, in processes that `aclose` ends. Belongs to one event loop, whose tasks may all call."""

    def __init__(self, store: Store | None, *, processes: int = 0, limits: Limits = LIMITS) -> None:
        """Start nothing yet; most `processes`, 0 for one for each two cores, take what `limits` says each.

        In `store`, of this machine only, a PDF that was read in part waits for the next call.
        """
        count = processes or max(1, min(MOST_CORES, usable_cores() // 2))
        self._free = [
            Worker("pipeline.read.process", {}, label="the converter of documents", limits=limits) for _ in range(count)
        ]
        self._all = tuple(self._free)
        self._places = anyio.Semaphore(count)
        self._store = store
        self.converted = 0
        """Conversions that were begun since the start."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of those that run."""
        return tuple(worker.pid for worker in self._all if worker.pid is not None)

    @property
    def at_once(self) -> int:
        """Documents that can be converted at the same time."""
        return len(self._all)

    async def page(self, raw: Raw) -> Page:
        """Return `raw` as `to_page` does, wherever that is done; one that dies of it raises `SourceUnreadable`."""
        self.converted += 1
        kind = await in_thread(kind_of, raw)
        if kind in HEAVY or (kind != HTML and len(raw.body) > LIGHT_BYTES):
            return await self._elsewhere(raw)
        return await in_thread(to_page, raw)

    async def _elsewhere(self, raw: Raw) -> Page:
        key = await in_thread(_key, raw)
        kept = (await in_thread(self._store.get_bytes, key) if self._store is not None else None) or b""
        begun = len(kept)
        left: object = None
        try:
            while True:
                try:
                    frame = await self._slice(raw, kept, key, left)
                except SourceUnreadable as error:
                    killed = "SIGKILL" in error.what  # from outside, which is told
                    if killed or not (raw.sighted and can_recognise() and kind_of(raw) in PAGED):
                        raise
                    raw = replace(raw, sighted=False)  # an image may have ended the process: text is read without
                    continue
                if "unreadable" in frame.fields:
                    what, hint = str(frame.fields["unreadable"]), str(frame.fields["hint"])
                    raise SourceUnreadable(what, source=raw.url, hint=hint)
                if "page" in frame.fields:
                    begun = len(kept)
                    return await in_thread(_page_of, frame)
                kept += frame.blob
                left = frame.fields["left"]
        finally:
            if len(kept) > begun and self._store is not None:
                with anyio.CancelScope(shield=True):
                    await in_thread(self._store.set_bytes, key, kept, expire=KEPT_SECONDS)

    async def _slice(self, raw: Raw, kept: bytes, key: str, left: object) -> Frame:
        fields = {field: value for field, value in asdict(raw).items() if field != "body"}
        asked = {"do": "read", "raw": fields, "bytes": len(raw.body), "key": key, "left": left}
        async with self._places:
            worker = self._free.pop()
            try:
                return await worker.call(asked, raw.body + kept)
            except ModelError as error:
                why = error.what.partition(" Its last words")[0]
                raise SourceUnreadable(
                    f"{raw.url} could not be converted: {why}", source=raw.url, hint="Split it, or save it as text."
                ) from error
            finally:
                self._free.append(worker)

    async def aclose(self) -> None:
        """End the processes."""
        for worker in self._all:
            await worker.aclose()


@functools.cache
def reader_version() -> str:
    """Return a digest of the code that converts, so that nothing is kept longer than the code that made it."""
    code = hashlib.blake2b(b"sighted" if can_recognise() else b"", digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()


def _key(raw: Raw) -> str:
    body = hashlib.blake2b(raw.body, digest_size=16).hexdigest()
    return f"reading:{reader_version()}:{body}:{json.dumps([raw.span, raw.sighted])}"


def _page_of(frame: Frame) -> Page:
    fields: Any = frame.fields["page"]
    notes = tuple(fields.pop("notes"))
    return Page(**fields, notes=notes, html=frame.blob.decode("utf-8", "surrogatepass"))
