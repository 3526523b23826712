"""Searching a person's own documents below the allowed folders, of any size, nothing
indexed beforehand.

The first call begins to count the words of every file, without parsing those that are
text; later calls look only at files whose time or size changed, and count again only
those whose bytes did. A file counted stays counted, in this process and, where a place
for that is given, for the next: a question waits a few seconds, is answered from what
is counted by then, and says how much that is. The few best files are then read properly
for their best passage. Not for: the counts (`pipeline/search/word_index.py`), reading a
named file (`pipeline/fetch/files.py`) or judging relevance across providers
(`pipeline/search/mixed.py`)."""

import hashlib
import logging
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import numpy as np
from anyio.abc import TaskGroup
from numpy.typing import NDArray

from cache.folder import make_folder
from errors import CacheError, ModelError, SourceError
from models.protocols import Embedder
from pipeline.document.converted import can_recognise
from pipeline.document.page import Document, Page
from pipeline.fetch.files import CONVERTED, IMAGES, Files, ending_of, read_raw
from pipeline.html.document import read_document
from pipeline.question.question import Question
from pipeline.read.sniff import decode, looks_like_text
from pipeline.reading.bm25 import Floats, blend
from pipeline.search.listing import (
    MOST_FILES,
    MOST_LISTED_BYTES,
    Folders,
    Listing,
    not_searched,
)
from pipeline.search.mixed import best_passages
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult
from pipeline.search.word_index import (
    INDEX_VERSION,
    FileStamp,
    IndexedFile,
    IndexedFiles,
    WordIndex,
    remove,
)
from pipeline.text.frame import one_line
from pipeline.work import check_cancelled, in_thread, time_left

OUTLINES_AT_ONCE: Final = 16
"""Outlines of one batch; what a batch gave is kept when time runs out. A quarter of it
in the background: a new question waits for the running batch."""
OUTLINES: Final = 128
"""Outlines that a process's first question embeds, some 1.3 processor seconds, files
with its words first; later questions leave the rest to `indexing` (figures: docs/log.md,
2026-11-27)."""
SLICE: Final = 0.1
"""Processor seconds of counting after which the database is free for a question, and
for other processes."""
QUIET: Final = 1.0
"""Seconds after a question's start without background counting and embedding, unless it
waits for them."""
NAMED_IN_PART: Final = 3
"""Files that were read in part which an answer names."""
WAIT_SHARE: Final = 0.15
"""Part of a call's time left that a question waits for new files, where that is less
than `FolderLimits.seconds`. For embedding it waits half as long, and reading has what
is left of twice as long, which is below what the chain gives a search: a replica that
has just started and reads its first files on a busy machine needs more than embedding
leaves."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """How much of the folders is looked at."""

    files: int = MOST_FILES
    file_bytes: int = MOST_LISTED_BYTES
    seconds: float = 4.0
    """How long a question waits for files not seen before; its answer says what is
    left. Half as much at least for reading the best ones, and what is left of twice as
    much in all."""
    background_seconds: float = 600.0
    """Seconds of background counting and embedding after the last question (at most
    half of the time)."""


class FolderProvider:
    """A provider over local documents. Belongs to one event loop at a time; any number
    of its tasks may search."""

    name: Final = "folder"

    def __init__(
        self,
        roots: Sequence[Path],
        path: Path | None,
        *,
        files: Files | None = None,
        embedder: Embedder | None = None,
        read: Callable[[Page], Awaitable[Document]] | None = None,
        limits: FolderLimits = FolderLimits(),
    ) -> None:
        """Search below `roots`, converting documents by `files`, by default in this
        process.

        The best are cleaned by `read`, which may remember them; by default without
        memory. What is counted is kept in `path`, a folder of this machine; None keeps
        it as long as the process. `embedder` finds what shares no word with the
        question; it is left out where it does not read the question.
        """
        self._roots = tuple(root.expanduser().resolve() for root in roots)
        self._limits = limits
        self._files = files or Files(self._roots, max_bytes=limits.file_bytes)
        self._embedder = embedder
        self._read = read or _read_again
        self._index: WordIndex | None = None
        self._lock = threading.Lock()
        self._looked = 0.0
        self._folders: Folders | None = None
        self._listing = Listing()
        # Index, listing and newest file of the index for which what follows is worked out
        self._compared: tuple[WordIndex, Listing, int] | None = None
        # What is new or changed and not counted yet, the next one last; documents that are being
        # converted; files of which something is to be recognised, after all others
        self._plain: list[FileStamp] = []
        self._parsed: list[FileStamp] = []
        self._doing: set[FileStamp] = set()
        self._scans: set[FileStamp] = set()
        self._turn = anyio.Lock()
        self._group: TaskGroup | None = None
        self._wanted, self._caught_up = anyio.Event(), anyio.Event()
        self._waiting = 0
        self._asked = 0.0
        self._embedding = (
            False  # in the background, since a question embedded the first outlines
        )
        name = hashlib.blake2b(repr(self._roots).encode(), digest_size=12).hexdigest()
        self._place = (
            path / f"{INDEX_VERSION}-{name}.sqlite" if path is not None else None
        )

    @asynccontextmanager
    async def indexing(self) -> AsyncIterator[None]:
        """While the context is open, count in the background what a question had no
        time for.

        The index is closed when the context ends."""
        group = anyio.create_task_group()
        # No `async with`: an error of the block is none of the group's, to be wrapped as such.
        await group.__aenter__()
        self._group = group
        group.start_soon(self._count_on)
        try:
            yield
        finally:
            self._group, self._embedding = None, False
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)
            self._folders = None
            if self._index is not None:
                self._index.close()
                self._index = None

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most `limit` files with a term of `query`, or near it, best first,
        each with its best passage.

        A file that cannot be read in time comes by its title alone. Without a result
        the status is `timeout` while documents are still uncounted. An index on disk
        that fails is replaced by one in memory; raises `sqlite3.Error` where that fails
        too."""
        language = query.language or query.question.language
        self._asked = anyio.current_time()
        ends = self._asked + 2 * self._patience
        try:
            # 1. What is there, and what of it is new; count that as far as there is time
            await in_thread(self._look_around, time.monotonic())
            await self._catch_up()
            # 2. Find the files
            indexed, best, by_words = await self._find(query.question, language, limit)
        except sqlite3.Error as error:
            if not self._do_without(error):
                raise
            return await self.search(query, limit=limit)
        unread = self._unread()
        # 3. Read them properly, in parallel; one that takes too long comes by its title alone
        read = [
            SearchResult(
                file.title or Path(file.stamp.path).stem,
                Path(file.stamp.path).as_uri(),
                "",
                engine=self.name,
            )
            for file in best
        ]

        async def read_one(place: int) -> None:
            try:
                document = await self._read(
                    await self._files.read(Path(best[place].stamp.path), passing=True)
                )
            except (SourceError, OSError):
                return
            read[place] = await in_thread(
                _shown, read[place], document, query.question, language
            )

        # Whatever looking around took, the best files get the time that embedding had.
        with anyio.CancelScope(
            deadline=max(ends, anyio.current_time() + self._patience / 2)
        ):
            async with anyio.create_task_group() as group:
                for place in range(len(best)):
                    group.start_soon(read_one, place)
        results = tuple(
            replace(result, rank=rank) for rank, result in enumerate(read, start=1)
        )
        meant = (
            ["No file has a word of the query; these are nearest in meaning."]
            if results and not by_words
            else []
        )
        reason = " ".join(
            [*meant, *_ignored(query), *_left_out(indexed, self._listing)]
        )
        if results:
            return SearchOutcome(results, self.name, "ok", reason, unread=unread)
        return self._without_result(indexed, unread, reason)

    def _unread(self) -> str:
        """Return a sentence on the documents that are not read yet, "" without any."""
        later = len(self._plain) + len(self._parsed) + len(self._doing)
        if not later:
            return ""
        total = len(self._listing.files)
        return (
            f"{total - later} of {total} documents are read; repeat the call to "
            f"continue."
        )

    def _without_result(
        self, indexed: IndexedFiles, unread: str, reason: str
    ) -> SearchOutcome:
        if unread:
            return SearchOutcome(
                (), self.name, "timeout", f"{unread} {reason}".strip(), unread=unread
            )
        if self._listing.missing and not indexed.files:
            return SearchOutcome((), self.name, "unreachable", reason)
        nothing = (
            f"None of {len(indexed.files)} files below {', '.join(map(str, self._roots))} "
            f"has a word of the query."
        )
        return SearchOutcome((), self.name, "empty", f"{nothing} {reason}".strip())

    def _is_scan(self, stamp: FileStamp) -> bool:
        return stamp in self._scans or ending_of(stamp.path) in IMAGES

    @property
    def _patience(self) -> float:
        """Seconds that the running call waits for new files."""
        return min(self._limits.seconds, WAIT_SHARE * time_left())

    def _look_around(self, came: float) -> None:
        """List the folders, forget what is gone, and note what is to be counted.

        Nothing is done where a look began after `came`."""
        with self._lock:
            # A look around that began after this call came is fresh enough for it: parallel queries
            # share one
            if self._index is not None and self._looked > came:
                return
            self._looked = time.monotonic()
            index = self._opened()
            index.refresh()
            self._folders = self._folders or Folders(
                self._roots, most=self._limits.files, file_bytes=self._limits.file_bytes
            )
            self._listing = listing = self._folders.look()
            match self._compared:
                case (compared, files, newest) if (compared, newest) == (
                    index,
                    index.newest,
                ) and files is listing:
                    return
            # A drive that is away for a while comes back with its files.
            index.keep_only(
                (stamp.path for stamp in listing.files), forget=not listing.missing
            )
            new = [stamp for stamp in reversed(listing.files) if not index.known(stamp)]
            self._plain = [
                stamp for stamp in new if ending_of(stamp.path) not in CONVERTED
            ]
            parsed = {*new} - {*self._plain} - self._doing
            # What is quick comes first, what is to be recognised last.
            self._parsed = sorted(
                parsed,
                key=lambda stamp: (not self._is_scan(stamp), -stamp.size, stamp.path),
            )
            self._compared = index, listing, index.newest

    def _opened(self) -> WordIndex:
        """The index; one that cannot be used on disk is held in memory."""
        try:
            if self._index is None and self._place is not None:
                make_folder(self._place.parent)
                self._index = WordIndex(self._place)
                if self._index.is_worn:
                    self._index.close()
                    remove(self._place)
                    self._index = WordIndex(self._place)
        except (CacheError, OSError, sqlite3.Error) as error:
            self._do_without(error)
        self._index = self._index or WordIndex(None)
        return self._index

    def _do_without(self, error: Exception) -> bool:
        """Fall back to an in-memory index; delete a corrupt database, so that the next
        process recreates it.

        Return False where it was in memory already."""
        place, self._place = self._place, None
        if place is not None:
            self._index = None
            _log.warning(
                "the index of the folders, %s, is no longer used: %s", place, error
            )
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in {
                sqlite3.SQLITE_CORRUPT,
                sqlite3.SQLITE_NOTADB,
            }:
                remove(place)
        return place is not None

    async def _catch_up(self) -> None:
        """Count what is new for as long as a question may wait; with `indexing` open it
        goes on after that."""
        self._waiting += 1
        try:
            with anyio.move_on_after(self._patience):
                if self._group is None:
                    await self._count_all()
                    return
                if self._caught_up.is_set():
                    self._caught_up = anyio.Event()
                self._wanted.set()
                await self._caught_up.wait()
        finally:
            self._waiting -= 1

    async def _count_on(self) -> None:
        """Count whenever a question wants it; a task of the server's, which no call's
        deadline or place holds.

        It runs until it is cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            with anyio.move_on_after(self._limits.background_seconds):
                while self._plain or self._parsed:
                    await self._count_all()
                if not self._wanted.is_set():
                    self._caught_up.set()
                with suppress(ModelError, sqlite3.Error):
                    while self._embedder is not None and not self._wanted.is_set():
                        if not await self._embed_in_background(self._embedder):
                            break
            if not self._wanted.is_set():
                self._caught_up.set()

    async def _count_all(self) -> None:
        async with self._turn:
            while self._plain:
                async with self._slice():
                    await in_thread(self._add, self._plain, self._count)
            async with anyio.create_task_group() as group:
                for _ in range(
                    self._files.at_once + 1
                ):  # one waits for its turn in a process
                    group.start_soon(self._count_parsed)

    @property
    def _hurried(self) -> bool:
        """Whether a question waits for files to be counted."""
        return self._waiting > 0 and not self._caught_up.is_set()

    @asynccontextmanager
    async def _slice(self) -> AsyncIterator[None]:
        """Rest as long as the work in the context took, and before it until it is
        quiet, unless hurried."""
        if not self._hurried:
            with anyio.CancelScope(deadline=self._asked + QUIET):
                await self._wanted.wait()
        began = anyio.current_time()
        yield
        await anyio.sleep(0 if self._hurried else anyio.current_time() - began)

    def _add(
        self, stamps: list[FileStamp], add: Callable[[WordIndex, FileStamp], None]
    ) -> None:
        """`add` files for a slice of processor time, the last first, unless another
        process has its turn.

        Where the database fails, `stamps` is emptied, and the next question begins with
        an index in memory."""
        index, ends = self._opened(), time.thread_time() + SLICE
        try:
            with index.writing() as mine:
                while mine and stamps and time.thread_time() < ends:
                    check_cancelled()
                    if not index.known(stamps[-1]):
                        add(index, stamps[-1])
                    stamps.pop()
        except sqlite3.Error as error:
            stamps.clear()
            self._compared = None
            self._do_without(error)

    def _count(self, index: WordIndex, stamp: FileStamp) -> None:
        try:
            path = Path(stamp.path)
            data = read_raw(
                path, stamp.path, self._limits.file_bytes, opened=path in self._roots
            ).body
        except SourceError as error:
            index.add(stamp, failure=str(error))
            return
        if data and not looks_like_text(data[:1_024]):
            index.add(stamp, failure=f"{stamp.path} holds no text")
            return
        index.add(stamp, decode(data).text.encode("utf-8", "surrogatepass"))

    async def _count_parsed(self) -> None:
        while self._parsed:
            stamp = self._parsed.pop()
            self._doing.add(stamp)
            left = [stamp]
            try:
                sighted = self._is_scan(stamp)
                try:
                    page = await self._files.read(Path(stamp.path), sighted=sighted)
                    html = page.html.encode("utf-8", "surrogatepass")
                    add, whole = (
                        partial(WordIndex.add, data=html, unread=page.unread),
                        not page.unread,
                    )
                except (SourceError, OSError) as error:
                    add, whole = partial(WordIndex.add, failure=str(error)), False
                if (
                    not (whole or sighted)
                    and can_recognise()
                    and ending_of(stamp.path) == ".pdf"
                ):
                    self._scans.add(
                        stamp
                    )  # it may be a scan: read again, after all others
                    self._parsed.insert(0, left.pop())
                while left:
                    await in_thread(self._add, left, add)
            finally:
                self._doing.discard(stamp)
                self._parsed += left

    async def _find(
        self, question: Question, language: str, limit: int
    ) -> tuple[IndexedFiles, list[IndexedFile], bool]:
        """Return all files, the `limit` best by words and meaning of outlines, and
        whether these have a word of it.

        Words alone decide where the embedder fails, is late or does not read the
        question."""
        indexed, words = await in_thread(
            self._opened().scores, question, language=language
        )
        scores, wanted = words, words > 0
        embedder = self._embedder
        wordings = dict.fromkeys((question.translated_to("en").text, question.text))
        understood = [one for one in wordings if embedder and embedder.reads(one)]
        if len(words) and embedder is not None and understood:
            asked = None
            # Where the embedder fails or takes too long, words find files without it.
            with anyio.move_on_after(self._patience / 2), suppress(ModelError):
                asked = await embedder.embed(understood, kind="query")
                if not self._embedding:
                    self._embedding = self._group is not None
                    await self._embed(
                        embedder, indexed.abouts[np.argsort(-words, kind="stable")]
                    )
            if asked is not None:
                scores = blend(
                    [
                        words,
                        await in_thread(
                            self._opened().likeness, embedder.name, indexed, asked
                        ),
                    ]
                )
            # Files without a word of the question come where too few have one: it may be in another
            # language.
            wanted |= np.count_nonzero(wanted) < limit
        rows = np.flatnonzero(wanted)
        best = rows[np.argsort(-scores[rows], kind="stable")[:limit]]
        return (
            indexed,
            [indexed.files[row] for row in best.tolist()],
            bool(words[best].any()),
        )

    async def _embed(self, embedder: Embedder, abouts: NDArray[np.int64]) -> None:
        """Embed the first `OUTLINES` of the outlines with these hashes that have no
        vector yet.

        Raises `ModelError`."""
        index = self._opened()
        new = await in_thread(index.without_vector, embedder.name, abouts, OUTLINES)
        for at in range(0, len(new), OUTLINES_AT_ONCE):
            part = dict(new[at : at + OUTLINES_AT_ONCE])
            vectors = await embedder.embed(list(part.values()), kind="passage")
            await in_thread(index.keep_vectors, embedder.name, list(part), vectors)

    async def _embed_in_background(self, embedder: Embedder) -> bool:
        """Do the same in small batches until a question comes; return whether there
        were any.

        Raises `ModelError`."""
        index = self._opened()
        async with self._slice():
            if self._wanted.is_set():
                return True
            new = await in_thread(
                lambda: index.without_vector(
                    embedder.name, index.indexed().abouts, OUTLINES
                )
            )
        at_once = OUTLINES_AT_ONCE // 4
        vectors: list[Floats] = []
        for at in range(0, len(new), at_once):
            async with self._slice():
                if self._wanted.is_set():
                    break
                texts = [text for _, text in new[at : at + at_once]]
                vectors.extend(await embedder.embed(texts, kind="passage"))
        if vectors:
            abouts = [about for about, _ in new[: len(vectors)]]
            await in_thread(
                index.keep_vectors, embedder.name, abouts, np.stack(vectors)
            )
        return bool(new)


async def _read_again(page: Page) -> Document:
    return await in_thread(read_document, page)


def _shown(
    unread: SearchResult, document: Document, question: Question, language: str
) -> SearchResult:
    """Return a result with what its page says, and its best passage."""
    best = next(
        iter(best_passages(document, question, limit=1, language=language)), None
    )
    shown = replace(
        unread,
        title=document.page.title or unread.title,
        published=document.page.published,
    )
    return replace(shown, snippet=one_line(best.text)) if best is not None else shown


def _ignored(query: SearchQuery) -> Iterator[str]:
    """Yield sentences on filters that were ignored."""
    if query.freshness != "any":
        yield "Files carry no reliable date, so the freshness filter was ignored."
    # Otherwise no filter was requested
    if query.language and query.language != query.question.spoken:
        yield "The language was used for word forms, not as a filter."


def _left_out(indexed: IndexedFiles, listing: Listing) -> Iterator[str]:
    """Yield sentences on what a repeated call does not search either."""
    if in_part := [file.stamp.path for file in indexed.partly if file.unread]:
        named = ", ".join(Path(path).name for path in in_part[:NAMED_IN_PART])
        more = f"; further files: {len(in_part) - NAMED_IN_PART}"
        yield f"Searched in part: {named}{more if len(in_part) > NAMED_IN_PART else ''}."
    if listing.cut:
        yield f"Only the first {len(listing.files)} files were searched."
    if listing.passed:
        yield f"{not_searched(listing.passed)}."
    if listing.too_large:
        yield f"Files left out for their size: {listing.too_large}."
    if failed := [file for file in indexed.partly if file.failure]:
        yield (
            f"Files that could not be read: {len(failed)} ({Path(failed[0].stamp.path).name}: "
            f"{failed[0].failure})."
        )
    yield from (f"The folder {folder} cannot be read." for folder in listing.missing)
