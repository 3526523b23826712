"""Converting documents: what is light in a thread, documents such as PDF in processes
of their own.

A process has its own interpreter, so that a conversion slows others only by one core.
Its memory is capped, so that a malicious file fails only its own call, and its budgets
are in processor time, so that load does not change results. It is started by the first
document, ends by itself when none came for a while, and is killed where a cancelled
conversion does not stop. Not for: what a conversion does (`readers/convert.py`).
"""

import copy
import functools
import hashlib
import json
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio

from cache.store import Store
from errors import ModelError, SourceUnreadable
from models.pipe import Frame
from models.shares import MOST_CORES, usable_cores
from models.worker import Limits, ProcessDied, Worker
from pipeline.work import in_thread
from readers.convert import Raw, kind_of, to_page
from readers.converted import MAX_PAGES
from readers.format import HTML, is_heavy, is_paged
from readers.format import version as version_of_formats
from readers.page import Page

LIGHT_BYTES: Final = 1_000_000
"""Text up to this size is converted in a thread: that takes less than sending it to a
process that must be started."""
CONVERTED_SECONDS: Final = timedelta(days=1).total_seconds()
"""How long the pages of a PDF whose reading was cut off wait for the next call."""
MOST_ENDING: Final = 3
"""Pages of a file that may end a process each; then the file is given up."""
_NO_TIME: Final = 1e-9
"""Processor seconds in which nothing is read, so that a process gives back as a page
what was."""
LIMITS: Final = Limits(idle_seconds=60.0, memory_bytes=1 << 30)


class Converter:
    """Turns bytes into pages, in processes that `aclose` ends. Belongs to one event
    loop, whose tasks may all call."""

    def __init__(
        self, store: Store | None, *, processes: int = 0, limits: Limits = LIMITS
    ) -> None:
        """Start nothing yet; most `processes`, 0 for one for each two cores, take what
        `limits` says each.

        In `store`, of this machine only, a PDF that was read in part waits for the next
        call."""
        count = processes or max(1, min(MOST_CORES, usable_cores() // 2))
        self._free = [
            Worker(
                "pipeline.conversion.process",
                {},
                label="the document converter",
                limits=limits,
            )
            for _ in range(count)
        ]
        self._all = tuple(self._free)
        self._places = anyio.Semaphore(count)
        self._store = store
        self.converted = 0
        """Conversions that were begun since the start."""
        self.pieces = 0
        """Pieces of documents that were read before the whole, since the start."""

    def keeping_in(self, store: Store) -> "Converter":
        """Return a converter with the same processes that keeps what it read in part in
        `store`."""
        converter = copy.copy(self)
        converter._store = store
        return converter

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of those that run."""
        return tuple(worker.pid for worker in self._all if worker.pid is not None)

    @property
    def at_once(self) -> int:
        """Documents that can be converted at the same time."""
        return len(self._all)

    async def page(self, raw: Raw, *, begin: bool = False) -> Page:
        """Return `raw` as `to_page` does, in another process for a heavy format and for
        a large file other than HTML.

        `begin`: of a document of pages those of one piece, where they have text; `rest`
        names the others. If that process dies of it, or `raw` cannot be read, raises `SourceUnreadable`.
        It waits without limit for a free process."""
        self.converted += 1
        kind = await in_thread(kind_of, raw)
        if is_heavy(kind) or (kind != HTML and len(raw.body) > LIGHT_BYTES):
            return await self._elsewhere(raw, begin=begin)
        return await in_thread(to_page, raw)

    async def _elsewhere(self, raw: Raw, *, begin: bool) -> Page:
        key = await in_thread(_key, raw)
        saved_pages = (
            await in_thread(self._store.get_bytes, key)
            if self._store is not None
            else None
        ) or b""
        careful = _Careful(raw.span[0])
        remaining_seconds: object = None
        seconds_before: object = None
        while True:
            try:
                frame = await self._slice(
                    raw, saved_pages, key, remaining_seconds, careful
                )
            except ModelError as error:
                why = error.how if isinstance(error, ProcessDied) else error.what
                died = SourceUnreadable(
                    f"{raw.url} could not be converted: {why}",
                    source=raw.url,
                    hint="Split it, or save it as text.",
                )
                # What was killed from outside is reported: its pages are not the cause.
                killed = isinstance(error, ProcessDied) and error.was_killed
                again = is_paged(kind_of(raw)) and careful.goes_on(saved_pages, died)
                if killed or not again:
                    raise died from error
                continue
            if "unreadable" in frame.fields:
                if remaining_seconds == _NO_TIME:  # no text yet
                    begin, remaining_seconds = False, seconds_before
                    continue
                if careful.died is not None:
                    raise careful.died
                message, hint = (
                    str(frame.fields["unreadable"]),
                    str(frame.fields["hint"]),
                )
                raise SourceUnreadable(message, source=raw.url, hint=hint)
            if "page" in frame.fields:
                return await in_thread(_page_of, frame)
            saved_pages += frame.blob
            seconds_before = frame.fields["left"]
            remaining_seconds = _NO_TIME if begin else seconds_before
            if (
                self._store is not None
            ):  # any process goes on from here, whatever ends this call
                with anyio.CancelScope(shield=True):
                    await in_thread(
                        self._store.set_bytes,
                        key,
                        saved_pages,
                        expire=CONVERTED_SECONDS,
                    )
            self.pieces += 1

    async def _slice(
        self,
        raw: Raw,
        saved_pages: bytes,
        key: str,
        remaining_seconds: object,
        careful: "_Careful",
    ) -> Frame:
        fields = {
            field: value for field, value in asdict(raw).items() if field != "body"
        }
        request = {
            "do": "read",
            "raw": fields,
            "bytes": len(raw.body),
            "key": key,
            "left": remaining_seconds,
            **careful.fields,
        }
        async with self._places:
            worker = self._free.pop()
            try:
                return await worker.call(request, raw.body + saved_pages)
            finally:
                self._free.append(worker)

    async def aclose(self) -> None:
        """End the processes."""
        for worker in self._all:
            await worker.aclose()


class _Careful:
    """How a file is read whose pages have ended processes: page by page, then without
    the page that did.

    PDFium cannot be stopped within a page, and an image may take more memory than a
    process has."""

    def __init__(self, first_page: int) -> None:
        self._first = first_page
        self._alone = False
        self._ending: list[int] = []
        self.died: SourceUnreadable | None = None
        """Description of the last crash."""

    @property
    def fields(self) -> dict[str, Any]:
        """What a process is asked for beside the file."""
        return {"most": 1 if self._alone else MAX_PAGES, "ending": self._ending}

    def goes_on(self, saved_pages: bytes, error: SourceUnreadable) -> bool:
        """Take note of a death after the pages in `saved_pages`; return whether the file is
        tried again.

        It is not where a page that is left out already would be the cause, or after
        more than `MOST_ENDING` such pages."""
        self.died = error
        number = self._first + saved_pages.count(b"\n")
        if number in self._ending:  # it is not the page that ends a process
            return False
        if self._alone:
            self._ending.append(number)
        self._alone = not self._alone
        return len(self._ending) <= MOST_ENDING


@functools.cache
def reader_version() -> str:
    """Return a digest of the code that converts, so that nothing is kept longer than
    the code that made it."""
    code = hashlib.blake2b(digest_size=8)
    for path in sorted((Path(__file__).parents[2] / "readers").rglob("*.py")):
        code.update(path.read_bytes())
    code.update(version_of_formats())
    return code.hexdigest()


def _key(raw: Raw) -> str:
    body = hashlib.blake2b(raw.body, digest_size=16).hexdigest()
    return f"reading:{reader_version()}:{body}:{json.dumps(raw.span)}"


def _page_of(frame: Frame) -> Page:
    fields: Any = frame.fields["page"]
    notes = tuple(fields.pop("notes"))
    return Page(**fields, notes=notes, html=frame.blob.decode("utf-8", "surrogatepass"))
