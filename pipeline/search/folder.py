"""Searching a person's own documents below the allowed folders, nothing indexed beforehand.

The first call counts the words of every file, without parsing those that are text; later calls look only at files whose
time or size changed, and count again only those whose bytes did. A file counted stays counted: a question waits a few
seconds, is answered from what is counted by then, and says how much that is. The few best files are then read properly
for their best passage.
Not for: the counts (`pipeline/search/word_index.py`), reading a named file (`pipeline/fetch/files.py`) or judging
relevance across providers (`pipeline/rank/mixed.py`).
"""

import hashlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio
import numpy as np
from anyio.abc import TaskGroup

from cache.store import Store
from errors import ModelError, SourceError
from models.protocols import Embedder
from pipeline.documents import Page, SearchOutcome, SearchQuery, SearchResult
from pipeline.fetch.files import Files
from pipeline.html.document import read_document
from pipeline.rank.fuse import Floats, blend
from pipeline.rank.passages import best_passages
from pipeline.read.charset import decode
from pipeline.search.word_index import VERSION, FileStamp, IndexedFile, WordIndex, outline, title_and_text
from pipeline.text.frame import one_line
from pipeline.text.language import guess_language
from pipeline.work import check_cancelled, in_thread

TITLE_WEIGHT: Final = 3
"""How often a word of title or file name counts more than one of the text."""
EMBEDDED_AT_ONCE: Final = 16
"""Outlines of one batch; what a batch gave is kept when time runs out."""
OUTLINES: Final = 128
"""Outlines that one question embeds at most, some 1.3 processor seconds, files with its words first; the next question
embeds on."""
_PLAIN: Final = ".html .htm .xhtml .md .markdown .txt .text .rst .adoc .org .csv .tsv .json .jsonl .ndjson .ipynb .xml"
_PARSED: Final = frozenset({".pdf", ".docx"})
"""Files that must be parsed to be counted, 1 ms to seconds each."""
_SUFFIXES: Final = _PARSED | frozenset(_PLAIN.split())
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "__pycache__", "site-packages"})


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """How much of the folders is looked at."""

    files: int = 20_000
    file_bytes: int = 20_000_000
    """Larger files are left out: no document that a person wrote is larger, save scans without text."""
    seconds: float = 4.0
    """How long a question waits for files not seen before; its answer says what is left. Half as much for reading the
    best ones."""
    behind: float = 120.0
    """How long counting goes on behind the last question; a folder of any size is done by asking on."""
    kept_bytes: int = 64_000_000
    """Bytes of word counts that are kept on disk; beyond, they live as long as the process."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies below the roots."""

    files: tuple[FileStamp, ...] = ()
    too_large: int = 0
    cut: bool = False
    """Whether more files exist than were listed."""
    missing: tuple[str, ...] = ()
    """Roots that cannot be read."""


class FolderProvider:
    """A provider over local documents. Belongs to one event loop at a time; any number of its tasks may search."""

    name: Final = "folder"

    def __init__(
        self,
        roots: Sequence[Path],
        store: Store | None,
        *,
        files: Files | None = None,
        embedder: Embedder | None = None,
        limits: FolderLimits = FolderLimits(),
    ) -> None:
        """Search below `roots`.

        Args:
            roots: Folders.
            store: Where word counts are kept; on this machine only.
            files: What reads documents; by default below `roots` and in this process.
            embedder: Finds what shares no word with the question; left out where it does not read the question.
            limits: How much is looked at.
        """
        self._roots = tuple(root.expanduser().resolve() for root in roots)
        self._store = store
        self._limits = limits
        self._files = files or Files(self._roots, store=store, max_bytes=limits.file_bytes)
        self._embedder = embedder
        self._vectors: dict[str, Floats] = {}
        """Vectors of outlines."""
        self._index: WordIndex | None = None
        self._lock = threading.Lock()
        self._looked = 0.0
        self._listing = Listing()
        self._todo: dict[str, FileStamp] = {}
        """Files that are new or changed and not counted yet, in the order in which they will be."""
        self._doing: dict[str, FileStamp] = {}
        """Documents that are being converted."""
        self._changed = False
        self._turn = anyio.Lock()
        self._group: TaskGroup | None = None
        self._wanted, self._caught_up = anyio.Event(), anyio.Event()
        self._counting: anyio.CancelScope | None = None
        places = json.dumps([str(root) for root in self._roots]).encode()
        self.key = f"folder:{VERSION}:{hashlib.blake2b(places, digest_size=12).hexdigest()}"

    @asynccontextmanager
    async def behind(self) -> AsyncIterator[None]:
        """While the context is open, what a question had no time to count is counted behind its answer."""
        group = anyio.create_task_group()
        # No `async with`: an error of the block is none of the group's, to be wrapped as such.
        await group.__aenter__()
        self._group = group
        group.start_soon(self._count_on)
        try:
            yield
        finally:
            self._group = None
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most `limit` files with a term of `query`, or near it, best first, each with its best passage."""
        language = query.language or guess_language(query.text) or "en"
        # 1. What is there, and what of it is new; count that as far as there is time
        await in_thread(self._look_around, time.monotonic())
        await self._catch_up()
        # 2. Find the files
        best, state = await self._find(query.text, language, limit)
        # 3. Read them properly, in parallel; one that takes too long comes by its title alone
        read = [self._unread(file) for file in best]

        async def read_one(place: int) -> None:
            try:
                page = await self._files.read(Path(best[place].stamp.path))
            except (SourceError, OSError):
                return
            read[place] = await in_thread(_shown, read[place], page, query.text, language)

        with anyio.move_on_after(self._limits.seconds / 2):
            async with anyio.create_task_group() as group:
                for place in range(len(best)):
                    group.start_soon(read_one, place)
        results = tuple(replace(result, rank=rank) for rank, result in enumerate(read, start=1))
        reason = " ".join(filter(None, (_not_honoured(query), state.described())))
        if results:
            return SearchOutcome(results, self.name, "ok", reason, unread=state.unread)
        if state.later:
            return SearchOutcome((), self.name, "timeout", f"{state.unread} {reason}".strip(), unread=state.unread)
        nothing = f"None of {state.searched} files below {', '.join(map(str, self._roots))} has a word of the query."
        if state.listing.missing and not state.searched:
            return SearchOutcome((), self.name, "unreachable", reason)
        return SearchOutcome((), self.name, "empty", f"{nothing} {reason}".strip())

    def _look_around(self, came: float) -> None:
        """List the folders, forget what is gone, and note what is to be counted."""
        with self._locked():
            # A look around that began after this call came is fresh enough for it: parallel queries share one
            if self._index is not None and self._looked > came:
                return
            self._looked = time.monotonic()
            if self._index is None:
                kept = self._store.get_bytes(self.key) if self._store is not None else None
                self._index = WordIndex.from_bytes(kept) if kept else WordIndex()
            self._listing = list_files(self._roots, self._limits)
            self._changed = bool(self._index.keep_only(stamp.path for stamp in self._listing.files)) or self._changed
            new = [stamp for stamp in self._listing.files if not self._index.known(stamp)]
            new = [stamp for stamp in new if self._doing.get(stamp.path) != stamp]
            # What is quick comes first
            new.sort(key=lambda stamp: (_is_parsed(stamp), stamp.size if _is_parsed(stamp) else 0))
            self._todo = {stamp.path: stamp for stamp in new}

    async def _catch_up(self) -> None:
        """Count what is new for as long as a question may wait; with `behind` open it goes on after that."""
        if self._group is None:
            with anyio.move_on_after(self._limits.seconds):
                await self._count_all()
            return
        if self._caught_up.is_set():
            self._caught_up = anyio.Event()
        self._wanted.set()
        if self._counting is not None:
            self._counting.deadline = anyio.current_time() + self._limits.behind
        with anyio.move_on_after(self._limits.seconds):
            await self._caught_up.wait()

    async def _count_on(self) -> None:
        """Count whenever a question wants it; a task of the server's, which no call's deadline or place holds."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            with anyio.CancelScope(deadline=anyio.current_time() + self._limits.behind) as self._counting:
                while self._todo:
                    await self._count_all()
            if not self._wanted.is_set():
                self._caught_up.set()

    async def _count_all(self) -> None:
        async with self._turn:
            try:
                await in_thread(self._count_plain)
                async with anyio.create_task_group() as group:
                    for _ in range(self._files.at_once + 1):  # one waits for its turn in a process
                        group.start_soon(self._count_parsed)
            finally:
                with anyio.CancelScope(shield=True):
                    await in_thread(self._keep)

    def _count_plain(self) -> None:
        for stamp in [stamp for stamp in self._todo.values() if not _is_parsed(stamp)]:
            check_cancelled()
            self._count(stamp)
            self._todo.pop(stamp.path, None)

    async def _count_parsed(self) -> None:
        while stamp := next(iter(self._todo.values()), None):
            del self._todo[stamp.path]
            self._doing[stamp.path] = stamp
            counted = False
            try:
                try:
                    page = await self._files.read(Path(stamp.path))
                except (SourceError, OSError) as error:
                    self._add(IndexedFile(stamp, failure=str(error)))
                else:
                    await in_thread(self._add_text, stamp, page.html.encode("utf-8", "surrogatepass"), page.unread)
                counted = True
            finally:
                self._doing.pop(stamp.path, None)
                if not counted:
                    self._todo[stamp.path] = stamp

    def _count(self, stamp: FileStamp) -> None:
        try:
            with open(stamp.path, "rb", buffering=0, opener=_open) as opened:
                data = opened.read(self._limits.file_bytes)
        except OSError as error:
            self._add(IndexedFile(stamp, failure=str(error)))
            return
        mark = hashlib.blake2b(data, digest_size=16).hexdigest()
        with self._lock:
            if self._index is not None and self._index.unchanged(stamp, mark):
                return
        self._add_text(stamp, _as_utf8(data), mark=mark)

    def _add_text(self, stamp: FileStamp, data: bytes, unread: str = "", mark: str = "") -> None:
        suffix = _suffix(stamp.path)
        title, text = title_and_text(data, suffix)
        named = f"{title} {_name_of(stamp.path)} ".encode("utf-8", "surrogatepass")
        about = outline(title or _name_of(stamp.path), data, text, suffix)
        self._add(IndexedFile(stamp, title, mark, unread=unread, outline=about), text + b" " + TITLE_WEIGHT * named)

    def _add(self, file: IndexedFile, text: bytes = b"") -> None:
        with self._lock:
            if self._index is not None:
                self._index.add(file, text)
                self._changed = True

    def _keep(self) -> None:
        with self._lock:
            if not self._changed or self._index is None or self._store is None:
                return
            self._changed = False
            data = self._index.to_bytes()
        if len(data) <= self._limits.kept_bytes:
            self._store.set_bytes(self.key, data)

    async def _find(self, text: str, language: str, limit: int) -> tuple[list[IndexedFile], "_State"]:
        """Return up to `limit` files, best first, by their words and, with an embedder, by their outlines' meaning."""
        files, words, state = await in_thread(self._scored, text, language)
        scores, wanted = words, words > 0
        if files and self._embedder is not None and self._embedder.reads(text):
            scores = blend([words, await self._likeness(text, files, words, self._embedder)])
            # Files without a word of the question come where too few have one: it may be in another language.
            wanted |= np.count_nonzero(wanted) < limit
        best = [row for row in np.argsort(-scores, kind="stable").tolist() if wanted[row]][:limit]
        return [files[row] for row in best], replace(state, meant=bool(best) and not words[best].any())

    async def _likeness(self, text: str, files: Sequence[IndexedFile], words: Floats, embedder: Embedder) -> Floats:
        """Return the cosine of a question with the outline of each file [n]; of those not embedded yet the lowest.

        All are zero where the embedder fails or takes too long: words find files without it.
        """
        asked: Floats | None = None
        new = [row for row in np.argsort(-words, kind="stable").tolist() if files[row].outline not in self._vectors]
        outlines = list(dict.fromkeys(files[row].outline for row in new[:OUTLINES]))
        with anyio.move_on_after(self._limits.seconds / 2), suppress(ModelError):
            asked = (await embedder.embed([text], kind="query"))[0]
            for at in range(0, len(outlines), EMBEDDED_AT_ONCE):
                part = outlines[at : at + EMBEDDED_AT_ONCE]
                self._vectors.update(zip(part, await embedder.embed(part, kind="passage"), strict=True))
        known = [self._vectors.get(file.outline) for file in files]
        if asked is None or not any(vector is not None for vector in known):
            return np.zeros(len(files), dtype=np.float32)
        found = np.array([np.nan if vector is None else vector @ asked for vector in known], dtype=np.float32)
        return np.nan_to_num(found, nan=float(np.nanmin(found)))

    def _scored(self, text: str, language: str) -> tuple[list[IndexedFile], Floats, "_State"]:
        with self._locked():
            index = self._index or WordIndex()
            later = sum(not index.known(stamp) for stamp in self._listing.files)
            state = _State(len(index), later, tuple(index.failures()), index.in_part(), listing=self._listing)
            return *index.scores(text, language=language), state

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the index, unless the call goes while another has it."""
        while not self._lock.acquire(timeout=0.05):
            check_cancelled()
        try:
            yield
        finally:
            self._lock.release()

    def _unread(self, file: IndexedFile) -> SearchResult:
        path = Path(file.stamp.path)
        return SearchResult(file.title or path.stem, path.as_uri(), "", engine=self.name)


def _shown(unread: SearchResult, page: Page, question: str, language: str) -> SearchResult:
    """Return a result with what its page says, and its best passage."""
    document = read_document(page)
    best = next(iter(best_passages(document, question, limit=1, language=language)), None)
    shown = replace(unread, title=document.page.title or unread.title, published=document.page.published)
    return replace(shown, snippet=one_line(best.text)) if best is not None else shown


@dataclass(frozen=True, slots=True)
class _State:
    """What the last look around saw, for the outcome's reason."""

    searched: int = 0
    later: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    in_part: int = 0
    meant: bool = False
    """Whether no file has a word of the query, so that what is found is near in meaning only."""
    listing: Listing = field(default_factory=Listing)

    @property
    def unread(self) -> str:
        """How much of the folders the answer stands on; empty when it is all of them."""
        total = len(self.listing.files)
        return f"{total - self.later} of {total} documents are read; ask again to go on." if self.later else ""

    def described(self) -> str:
        """Sentences on what will not be searched by asking again; empty when nothing is left out."""
        parts = []
        if self.meant:
            parts.append("No file has a word of the query; these are nearest in meaning.")
        if self.in_part:
            parts.append(f"{self.in_part} files were searched in part.")
        if self.listing.cut:
            parts.append(f"Only the first {len(self.listing.files)} files were searched.")
        if self.listing.too_large:
            parts.append(f"{self.listing.too_large} files were left out for their size.")
        if self.failures:
            path, why = self.failures[0]
            parts.append(f"{len(self.failures)} files could not be read ({Path(path).name}: {why}).")
        parts.extend(f"The folder {folder} cannot be read." for folder in self.listing.missing)
        return " ".join(parts)


def _open(path: str, flags: int) -> int:
    """Open without following a link that came after the listing, and without waiting at a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _is_parsed(stamp: FileStamp) -> bool:
    return _suffix(stamp.path) in _PARSED


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _name_of(path: str) -> str:
    """A file's name as words: without folder and suffix."""
    return os.path.splitext(os.path.basename(path))[0].replace("_", " ")


def _as_utf8(data: bytes) -> bytes:
    """`data` as UTF-8; what is not is decoded as a reader of web pages would."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return decode(data).text.encode("utf-8", "surrogatepass")
    return data


def _not_honoured(query: SearchQuery) -> str:
    parts = []
    if query.freshness != "any":
        parts.append("Files carry no reliable date, so freshness was not filtered by.")
    if query.language and query.language != guess_language(query.text):  # else nobody asked for a filter
        parts.append("The language was used for word forms, not as a filter.")
    return " ".join(parts)


def list_files(roots: Sequence[Path], limits: FolderLimits = FolderLimits()) -> Listing:
    """Return the readable documents below `roots`, each once, breadth first and by name; nothing is opened.

    Hidden names, links, folders of dependencies and other file types are passed over.
    """
    files: dict[str, FileStamp] = {}
    missing: list[str] = []
    too_large = 0
    tops = [os.fspath(root) for root in roots]
    folders = deque(tops)
    while folders:
        check_cancelled()
        folder = folders.popleft()
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            if folder in tops:
                missing.append(folder)
            continue
        for entry in listed:
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED_FOLDERS:
                    folders.append(entry.path)
            elif (stamp := _stamp(entry)) is not None:
                if stamp.size > limits.file_bytes:
                    too_large += 1
                elif len(files) >= limits.files:
                    return Listing(tuple(files.values()), too_large, cut=True, missing=tuple(missing))
                else:
                    files[entry.path] = stamp
    return Listing(tuple(files.values()), too_large, missing=tuple(missing))


def _stamp(entry: "os.DirEntry[str]") -> FileStamp | None:
    """The stamp of a document; None for other files, and for one that went between listing and looking."""
    if _suffix(entry.name) not in _SUFFIXES or not entry.is_file(follow_symlinks=False):
        return None
    try:
        stat = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return FileStamp(entry.path, stat.st_mtime_ns, stat.st_size)
