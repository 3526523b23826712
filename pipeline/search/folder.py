"""Searching a person's own documents below the allowed folders, of any size, nothing
indexed beforehand.

The first call begins to count the words of every file, without parsing those that are
text; later calls look only at files whose time or size changed. A file counted stays
counted, in this process and, where a place for that is given, for the next: a question
waits a few seconds, is answered from what is counted by then, and says how much that
is. Files come by their titles: who reads the best of them finds their passages
(`pipeline/search/mixed.py`). Not for: the counts (`pipeline/search/word_index.py`) or
reading a named file (`pipeline/fetch/files.py`)."""

import hashlib
import logging
import operator
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal

import anyio
import numpy as np

from cache.folder import make_folder
from cancellation import check_cancelled
from errors import CacheError, ModelError, SourceError
from models.protocols import Embedder
from pipeline.fetch.files import (
    CONVERTED,
    IMAGES,
    LEASE_SECONDS,
    Files,
    ending_of,
    name_span,
    read_raw,
    split_span,
)
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats, blend
from pipeline.search.folder_status import FolderStatus
from pipeline.search.listing import MOST_LISTED_BYTES, Folders, Listing, left_out
from pipeline.search.query import (
    SearchOutcome,
    SearchQuery,
    SearchResult,
    SearchStatus,
)
from pipeline.search.word_index import (
    INDEX_VERSION,
    FileStamp,
    WordIndex,
    remove,
)
from pipeline.work import alone, beside, in_thread, time_left
from readers.sniff import decode, looks_like_text

BATCH: Final = 8
"""Outlines that are embedded at once: a new question waits for the running batch."""
OUTLINES: Final = 128
"""Outlines that a process's first question embeds where every file is counted, some 1.3
processor seconds, files with its words first; later questions leave the others to
`indexing`."""
SLICE: Final = 0.1
"""Processor seconds of counting after which the database is free for a question, and
for other processes."""
WAIT_SHARE: Final = 0.15
"""Part of a call's time left that a question waits for new files at most, and as long
again for embedding."""
LONGER: Final = 5.0
"""A question that nothing was found for waits again, this much longer: an answer from
some of the files is better than none."""
LAST_PIECE: Final = 20.0
"""Seconds that a process waits at its end for the piece that is being read; a scanned
page takes 3 processor seconds to recognise."""
_POLLED: Final = 0.02
"""Seconds between two looks for it."""
FoundBy = Literal["words alone", "both", "meaning alone"]
"""`words alone`: no outline has a vector yet, or the embedder failed, was late or does
not read the question."""
_log: Final = logging.getLogger("winnow.folders")


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
        seconds: float = 1.5,
        quiet: float = 3.0,
        file_bytes: int = MOST_LISTED_BYTES,
    ) -> None:
        """Search below `roots`, converting documents by `files`, by default in this
        process.

        A question waits `seconds` at most for files not seen before, and has the
        processor for what it found for `quiet` seconds after that, in which nothing is
        counted in the background. What is counted
        is kept in `path`, a folder of this machine; None keeps it as long as the
        process. `embedder` finds what shares no word with the question; it is left out
        where it does not read the question."""
        self._roots = tuple(root.expanduser().resolve() for root in roots)
        self._seconds = seconds
        self._quiet = quiet
        self._file_bytes = file_bytes
        self._files = files or Files(self._roots, max_bytes=file_bytes)
        self._embedder = embedder
        self._index: WordIndex | None = None
        self._looking = anyio.Lock()
        self._looked = 0.0
        self._folders = Folders(self._roots, file_bytes=file_bytes)
        self._listing = Listing()
        # What the queues below are worked out from.
        self._compared: tuple[object, ...] = ()
        # What is new or changed and not counted yet, the next file last; and documents that are
        # being converted.
        self._plain: list[FileStamp] = []
        self._parsed: list[FileStamp] = []
        self._converting: set[FileStamp] = set()
        self._turn = anyio.Lock()
        self._is_indexing = False
        self._called, self._caught_up = anyio.Event(), anyio.Event()
        self._waiting = 0
        self._asked = 0.0
        self._embedded = False
        name = hashlib.blake2b(repr(self._roots).encode(), digest_size=12).hexdigest()
        self._database = path / f"{INDEX_VERSION}-{name}.sqlite" if path else None

    @asynccontextmanager
    async def indexing(self) -> AsyncIterator[None]:
        """While the context is open, count in the background what a question had no
        time for.

        The index is closed when the context ends."""
        self._is_indexing = True
        try:
            async with beside(self._count_on):
                yield
                await self._end_piece()
        finally:
            self._is_indexing = False
            if self._index is not None:
                self._index.close()
                self._index = None

    async def _end_piece(self) -> None:
        """Wait until what is being counted is further by a piece, or a batch of outlines
        is embedded, so that processes of one question each get to the end of a document
        and of the folders however slow the machine is."""
        before = self._files.pieces, self._uncounted
        self._waiting += 1
        with anyio.move_on_after(LAST_PIECE), suppress(ModelError, sqlite3.Error):
            while self._uncounted and before == (self._files.pieces, self._uncounted):
                await anyio.sleep(_POLLED)
            if self._listing.files and not before[1]:
                await self._embed((), BATCH)
        self._waiting -= 1

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most `limit` files with a term of `query`, or near it, best first.

        Without a result the status is `timeout` while documents are still uncounted. An
        index on disk that fails is replaced by one in memory; raises `sqlite3.Error`
        where that fails too."""
        language = query.language or query.question.language
        skipped, last = (query.page - 1) * limit, query.page * limit
        self._asked = anyio.current_time()
        try:
            # 1. What is there, and what of it is new; count that as far as there is time
            await self._look_around()
            self._bring_forward(query.question.terms(language))
            await self._catch_up(self._patience)
            # 2. Find the files; where there is none yet, count on for longer. What is counted
            # meanwhile was not searched
            uncounted = self._uncounted
            files, found_by = await self._find(query.question, language, last)
            if not files and uncounted:
                await self._catch_up(LONGER * self._patience)
                uncounted = self._uncounted
                files, found_by = await self._find(query.question, language, last)
            faults = await in_thread(self._opened().unread)
            self._asked = anyio.current_time()
        except sqlite3.Error as error:
            if not self._do_without(error):
                raise
            return await self.search(query, limit=limit)
        results = tuple(
            SearchResult(
                title or Path(path).stem,
                Path(path).as_uri() + name_span((1, pages)),
                "",
                engine=self.name,
                rank=rank,
            )
            for rank, (path, title, pages) in enumerate(files[skipped:], skipped + 1)
        )
        # 3. What is to be said of it
        notes = [*_ignored(query)]
        total = len(self._listing.files)
        waiting = {stamp.path for stamp in (*self._parsed, *self._converting)}
        begun = sum(path in waiting and unread != "" for path, _, unread in faults)
        in_part = f", {begun} more by the first pages" if begun else ""
        by = ", searched by words only" if found_by == "words alone" else ""
        unread = (
            f"{total - uncounted} of {total} documents are read{in_part}{by}; "
            f"repeat the call to continue."
            if uncounted
            else ""
        )
        unsearched = " ".join(_left_out(faults, self._listing))
        if results:
            if found_by == "meaning alone":
                near = "No file has a word of the query; these are nearest in meaning."
                notes, unsearched = [near, *notes, unsearched], ""
            reason = " ".join(filter(None, notes))
            return SearchOutcome(
                results, self.name, "ok", reason, unread=unread, unsearched=unsearched
            )
        if self._listing.missing and not self._listing.files:
            return SearchOutcome((), self.name, "unreachable", unsearched)
        if files:
            notes.insert(
                0, f"Page {query.page} holds no further file: {len(files)} in all."
            )
        elif not unread:
            roots = ", ".join(map(str, self._roots))
            nothing = f"None of {total} files below {roots} has a word of the query."
            notes.insert(0, nothing)
        reason = " ".join(filter(None, (*notes, unsearched)))
        status: SearchStatus = "timeout" if unread else "empty"
        return SearchOutcome((), self.name, status, reason, unread=unread)

    async def finish(self) -> None:
        """Count and embed all that is new, for a process that does nothing else.

        Raises `ModelError` where the embedder fails, `sqlite3.Error` where an index in
        memory does."""
        self._waiting += 1  # so that nothing rests
        try:
            await self._look_around()
            await self._count_all()
            while await self._embed((), BATCH):
                pass
        finally:
            self._waiting -= 1

    async def status(self, *, look: bool = True) -> FolderStatus:
        """Return how far the index is; without `look` what the folders hold is known
        from before.

        Raises `sqlite3.Error` where an index in memory fails."""
        try:
            if look:
                await self._look_around()
            return await in_thread(self._status)
        except sqlite3.Error as error:
            if not self._do_without(error):
                raise
            return await self.status()

    def _status(self) -> FolderStatus:
        index = self._opened()
        sums = index.sums(self._embedder.name if self._embedder else "")
        return FolderStatus(self._listing, self._uncounted, index.unread(), *sums)

    @property
    def progress(self) -> tuple[int, int]:
        """How many files of all are counted, as far as is known."""
        total = len(self._listing.files)
        return total - self._uncounted, total

    @property
    def _uncounted(self) -> int:
        """Documents that are not counted yet."""
        return len(self._plain) + len(self._parsed) + len(self._converting)

    @property
    def _patience(self) -> float:
        """Seconds that the running call waits for new files."""
        return min(self._seconds, WAIT_SHARE * time_left())

    async def _look_around(self) -> None:
        """List the folders, forget what is gone, and note what is to be counted.

        Nothing is done where a look began after the call: parallel queries share one."""
        came = time.monotonic()
        async with self._looking:
            if self._looked > came:
                return
            began = time.monotonic()
            looked = await in_thread(self._list)
            # Not in the thread: it goes on where this call is cancelled, beside that of
            # the next, and what is counted meanwhile leaves and joins the queues.
            self._looked = began
            if looked is not None:
                self._compared, self._listing, stamps = looked
                self._queue(stamps)

    def _list(
        self,
    ) -> tuple[tuple[object, ...], Listing, dict[FileStamp, int]] | None:
        """Return what differs between states of the folders and of the index, what is in
        the folders, and the files in the index with their pages; None in the same state
        as before."""
        index = self._opened()
        listing = self._folders.look()
        compared = (index, index.version, listing)
        if compared == self._compared:
            return None
        stamps = index.stamps()
        # A drive that is away for a while comes back with its files.
        if not listing.missing:
            listed = frozenset(stamp.path for stamp in listing.files)
            index.forget(stamp for stamp in stamps if stamp.path not in listed)
        return compared, listing, stamps

    def _queue(self, stamps: Mapping[FileStamp, int]) -> None:
        new = [stamp for stamp in self._listing.files if stamps.get(stamp) != 0]
        parsed = {stamp for stamp in new if ending_of(stamp.path) in CONVERTED}
        self._plain = [stamp for stamp in reversed(new) if stamp not in parsed]
        # What is quick comes first, then what is to be recognised, last what is read
        # by its first pages already.
        self._parsed = sorted(
            parsed - self._converting,
            key=lambda stamp: (
                stamp not in stamps,
                ending_of(stamp.path) not in IMAGES,
                -stamp.size,
                stamp.path,
            ),
        )

    def _bring_forward(self, terms: Sequence[str]) -> None:
        """Let files with one of `terms` in their names be counted first."""

        def is_named(stamp: FileStamp) -> bool:
            name = os.path.basename(stamp.path).casefold()
            return any(term in name for term in terms)

        # New lists: a thread may be taking files from the old one.
        self._plain = sorted(self._plain, key=is_named)
        self._parsed = sorted(self._parsed, key=is_named)

    def _opened(self) -> WordIndex:
        """The index; one that cannot be used on disk is held in memory."""
        if self._index is not None:
            return self._index
        try:
            if self._database is not None:
                make_folder(self._database.parent)
                self._index = WordIndex(self._database)
                if self._index.is_worn:
                    self._index.close()
                    remove(self._database)
                    self._index = WordIndex(self._database)
        except (CacheError, OSError, sqlite3.Error) as error:
            self._do_without(error)
        self._index = self._index or WordIndex(None)
        return self._index

    def _do_without(self, error: Exception) -> bool:
        """Fall back to an in-memory index; delete a corrupt database, so that the next
        process recreates it.

        Return False where it was in memory already."""
        database, self._database = self._database, None
        self._compared = ()
        if database is None:
            return False
        self._index, self._looked = None, 0.0
        _log.warning(
            "the index of the folders, %s, is no longer used: %s", database, error
        )
        # A database that is only locked or full has an error of a class below this one.
        if type(error) is sqlite3.DatabaseError:
            remove(database)
        return True

    async def _catch_up(self, seconds: float) -> None:
        """Count what is new for at most `seconds`; with `indexing` open it goes on after
        that."""
        self._waiting += 1
        try:
            with anyio.move_on_after(seconds):
                if not self._is_indexing:
                    await self._count_all()
                    return
                if self._caught_up.is_set():
                    self._caught_up = anyio.Event()
                self._called.set()
                await self._caught_up.wait()
        finally:
            self._waiting -= 1

    async def _count_on(self) -> None:
        """Count whenever a question comes, then embed; a task of the server's, which no
        call's deadline or place holds.

        It runs until it is cancelled."""
        while True:
            await self._called.wait()
            self._called = anyio.Event()
            try:
                await self._count_all()
                if self._called.is_set():
                    continue
                self._caught_up.set()
                is_left = True
                while is_left and not self._called.is_set():
                    async with self._slice():
                        is_left = await self._embed((), BATCH)
            except Exception as error:  # noqa: BLE001  the server goes on without it
                if not isinstance(error, ModelError | sqlite3.Error):
                    _log.exception("counting the folders failed")
                self._caught_up.set()

    async def _count_all(self) -> None:
        async with self._turn:
            while self._plain:
                async with self._slice():
                    await in_thread(self._add, self._plain, self._count)
            async with anyio.create_task_group() as group:
                # One waits for its turn in a process.
                for _ in range(self._files.at_once + 1):
                    group.start_soon(self._count_parsed)

    async def _until_quiet(self) -> None:
        """Leave the processor to the last question, unless one waits for what is
        counted."""
        while not self._waiting and anyio.current_time() < self._asked + self._quiet:
            await anyio.sleep(_POLLED)

    @asynccontextmanager
    async def _slice(self) -> AsyncIterator[None]:
        """Rest as long as the work in the context took, and before it until it is
        quiet, unless a question waits."""
        await self._until_quiet()
        began = anyio.current_time()
        yield
        await anyio.sleep(0 if self._waiting else anyio.current_time() - began)

    def _add(
        self, stamps: list[FileStamp], add: Callable[[WordIndex, FileStamp], None]
    ) -> None:
        """`add` files for a slice of processor time, the last of `stamps` first, unless
        another process has its turn.

        Where the database fails, `stamps` is emptied, and the next question begins with
        an index in memory."""
        index, ends = self._opened(), time.thread_time() + SLICE
        try:
            with index.writing() as is_mine:
                while is_mine and stamps and time.thread_time() < ends:
                    check_cancelled()
                    if index.pages(stamps[-1]) != 0:
                        _add_any(index, stamps[-1], add)
                    stamps.pop()
        except sqlite3.Error as error:
            stamps.clear()
            self._do_without(error)

    def _count(self, index: WordIndex, stamp: FileStamp) -> None:
        path = Path(stamp.path)
        try:
            data = read_raw(
                path,
                stamp.path,
                self._file_bytes,
                roots=self._roots,
                opened=path in self._roots,
            ).body
        except SourceError as error:
            index.add(stamp, failure=str(error))
            return
        if data and not looks_like_text(data[:1_024]):
            index.add(stamp, failure=f"{stamp.path} holds no text")
            return
        index.add(stamp, decode(data).text)

    async def _count_parsed(self) -> None:
        """Convert documents one after the other, and count what they say; of all that
        are long the first pages before the others."""
        while self._parsed:
            await self._until_quiet()
            if not self._parsed:  # taken meanwhile
                return
            stamp = self._parsed.pop()
            pages = self._opened().pages(stamp)
            if pages == 0:  # another process was faster
                continue
            self._converting.add(stamp)
            stamps = [stamp]
            begun = 0
            try:
                try:
                    page = await self._files.read(Path(stamp.path), begin=pages is None)
                    if pages is None and page.rest:
                        begun = split_span(page.rest)[1][0] - 1
                    add = partial(
                        WordIndex.add,
                        data=page.html,
                        unread=page.unread,
                        pages=begun,
                    )
                except Exception as error:  # noqa: BLE001  a file may be anything
                    add = partial(WordIndex.add, failure=_failure(stamp, error))
                with anyio.move_on_after(LAST_PIECE, shield=True):
                    while stamps:
                        await in_thread(self._add, stamps, add)
            finally:
                self._converting.discard(stamp)
                self._parsed += stamps
                if begun and not stamps:
                    self._parsed.insert(0, stamp)

    async def _find(
        self, question: Question, language: str, limit: int
    ) -> tuple[list[tuple[str, str, int]], FoundBy]:
        """Return path, title and pages of the `limit` best files by words and meaning of
        outlines, and by which of both they were found.

        Words alone decide where no outline has a vector yet, or the embedder fails, is
        late or does not read the question."""
        index = self._opened()
        words = await in_thread(index.word_scores, question, language=language)
        likeness: dict[int, float] = {}
        # Where the embedder fails or takes too long, words find files without it.
        with anyio.move_on_after(self._patience), suppress(ModelError):
            likeness = await self._likeness(question, words)
        scores = _blended(words, likeness) if likeness else words
        # Files without a word of the question come where too few have one: it may be in another
        # language.
        numbers = words if len(words) >= limit else scores
        ranked = sorted(numbers, key=lambda number: -scores[number])
        files = {
            file[0]: file for file in await in_thread(index.titles, ranked[: 2 * limit])
        }
        present = {stamp.path for stamp in self._listing.files if stamp.path in files}
        listed = [file for path, file in files.items() if path in present][:limit]
        if self._embedder is not None and not likeness:
            return listed, "words alone"
        has_words = any(number in words for number in ranked[:limit])
        return listed, "both" if has_words else "meaning alone"

    async def _likeness(
        self, question: Question, words: dict[int, float]
    ) -> dict[int, float]:
        """Return how near each file's outline is to the question, by number; empty where
        no model reads that. Raises `ModelError`."""
        embedder = self._embedder
        wordings = dict.fromkeys((question.translated_to("en").text, question.text))
        texts = [text for text in wordings if embedder and embedder.reads(text)]
        if embedder is None or not texts:
            return {}
        vectors = await embedder.embed(texts, kind="query")
        if not self._embedded and not self._uncounted:
            self._embedded = self._is_indexing
            await self._embed(words, OUTLINES)
        return await in_thread(self._opened().likeness, embedder.name, vectors)

    async def _embed(
        self, numbers: Sequence[int] | dict[int, float], count: int
    ) -> bool:
        """Embed the outlines of at most `count` files that have no vector yet, those of
        `numbers` first; return whether there were any.

        Raises `ModelError`."""
        index, embedder = self._opened(), self._embedder
        if embedder is None:
            return False
        look = partial(index.without_vector, embedder.name, numbers, count)
        # What another process is embedding is waited for, and not embedded again.
        async with alone(
            self._files.store,
            f"embedding:{self._database}",
            look,
            enough=operator.not_,
            patience=LEASE_SECONDS,
        ) as (outlines, _):
            for start in range(0, len(outlines), BATCH):
                batch = dict(outlines[start : start + BATCH])
                vectors = await embedder.embed(list(batch.values()), kind="passage")
                by_file = dict(zip(batch, vectors, strict=True))
                await in_thread(index.keep_vectors, embedder.name, by_file)
        return bool(outlines)


def _add_any(
    index: WordIndex, stamp: FileStamp, add: Callable[[WordIndex, FileStamp], None]
) -> None:
    """`add` a file; one of an unforeseen form costs itself, never the server, which counts in
    the background."""
    try:
        add(index, stamp)
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001  a file may be anything
        index.add(stamp, failure=_failure(stamp, error))


def _failure(stamp: FileStamp, error: Exception) -> str:
    if isinstance(error, SourceError | OSError):
        return str(error)
    _log.exception("counting %s failed", stamp.path)
    return f"{stamp.path} could not be read ({type(error).__name__})"


def _blended(words: dict[int, float], likeness: dict[int, float]) -> dict[int, float]:
    """Return the blend of both scores of each file; unknown ones have the lowest."""
    numbers = list(words | likeness)
    least = min(likeness.values())
    scores: list[Floats] = [
        np.asarray([words.get(number, 0.0) for number in numbers], dtype=np.float32),
        np.asarray(
            [likeness.get(number, least) for number in numbers], dtype=np.float32
        ),
    ]
    return dict(zip(numbers, blend(scores).tolist(), strict=True))


def _ignored(query: SearchQuery) -> Iterator[str]:
    """Yield sentences on filters that were ignored."""
    if query.freshness != "any" or query.since or query.until:
        yield "Files carry no reliable date: they were searched whatever their age."
    if query.site:
        yield f"Files are of no site: site={query.site} was ignored."
    # Otherwise no filter was requested
    if query.language and query.language != query.question.spoken:
        yield "The language was used for word forms, not as a filter."


def _left_out(
    faults: Sequence[tuple[str, str, str]], listing: Listing
) -> Iterator[str]:
    """Yield sentences on what a repeated call does not search either."""
    if in_part := [Path(path).name for path, _, unread in faults if unread]:
        remainder = f" and {len(in_part) - 3} more" if len(in_part) > 3 else ""
        yield f"Searched in part: {', '.join(in_part[:3])}{remainder}."
    if failed := [(path, failure) for path, failure, _ in faults if failure]:
        example = f"{Path(failed[0][0]).name}: {failed[0][1]}"
        yield f"Files that could not be read: {len(failed)} ({example})."
    yield from left_out(listing)
