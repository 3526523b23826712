"""Searching a person's own documents below the allowed folders, nothing indexed beforehand.

The first call counts the words of every file without parsing it; later calls look only at files whose time or size
changed, and count again only those whose bytes did. The few best files are then read properly for their best passage.
Not for: the counts (`pipeline/search/word_index.py`), reading a named file (`pipeline/fetch/files.py`) or judging
relevance across providers (`pipeline/rank/mixed.py`).
"""

import hashlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio
import numpy as np

from cache.store import Store
from errors import SourceError
from pipeline.documents import SearchOutcome, SearchQuery, SearchResult
from pipeline.fetch.files import Files
from pipeline.html.document import read_document
from pipeline.rank.bm25 import BM25
from pipeline.rank.passages import best_passages
from pipeline.read.charset import decode
from pipeline.search.word_index import VERSION, FileStamp, IndexedFile, WordIndex, title_and_text
from pipeline.text.frame import one_line
from pipeline.text.language import guess_language
from pipeline.work import check_cancelled, in_thread

TITLE_WEIGHT: Final = 3
"""How often a word of title or file name counts more than one of the text."""
READ_MORE: Final = 4
"""Files read properly beyond those wanted: the best passage turns the order of the first few."""
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
    """Time for files not seen before; what is left is done by the next call, and this one says so. Half as much for
    reading the best ones."""
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
    """A provider over local documents."""

    name: Final = "folder"

    def __init__(self, roots: Sequence[Path], store: Store | None, *, limits: FolderLimits = FolderLimits()) -> None:
        """Search below `roots`; word counts go to `store` where one is given."""
        self._roots = tuple(root.expanduser().resolve() for root in roots)
        self._store = store
        self._limits = limits
        self._index: WordIndex | None = None
        self._lock = threading.Lock()
        self._started = 0.0
        self._state = _State()
        self._files = Files(self._roots, max_bytes=limits.file_bytes)
        places = json.dumps([str(root) for root in self._roots]).encode()
        self.key = f"folder:{VERSION}:{hashlib.blake2b(places, digest_size=12).hexdigest()}"

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most `limit` files with a term of `query`, best first, each with its best passage."""
        language = query.language or guess_language(query.text) or "en"
        # 1. Bring the word counts up to date and find the files
        best, state = await in_thread(self._find, query.text, language, limit, time.monotonic())
        # 2. Read them properly, in parallel; one that takes too long comes by its title alone
        read = [self._unread(file) for file, _ in best]

        async def read_one(place: int) -> None:
            read[place] = await in_thread(self._read, read[place][0], best[place][0], query.text, language)

        with anyio.move_on_after(self._limits.seconds / 2):
            async with anyio.create_task_group() as group:
                for place in range(len(best)):
                    group.start_soon(read_one, place)
        # 3. Order by file and best passage together
        scores = [score for _, score in best]
        results = (await in_thread(_ordered, query.text, language, scores, read))[:limit]
        reason = " ".join(filter(None, (_not_honoured(query), state.described())))
        if results:
            return SearchOutcome(results, self.name, "ok", reason)
        nothing = f"None of {state.searched} files below {', '.join(map(str, self._roots))} has a word of the query."
        if state.listing.missing and not state.searched:
            return SearchOutcome((), self.name, "unreachable", reason)
        return SearchOutcome((), self.name, "empty", f"{nothing} {reason}".strip())

    def _find(
        self, text: str, language: str, limit: int, came: float
    ) -> tuple[list[tuple[IndexedFile, float]], "_State"]:
        while not self._lock.acquire(timeout=0.05):
            check_cancelled()
        try:
            # A look around that began after this call came is fresh enough for it: parallel queries share one
            if self._index is None or self._started <= came:
                self._started = time.monotonic()
                self._index, self._state = self._refreshed()
            return self._index.best(text, language=language, limit=limit + READ_MORE), self._state
        finally:
            self._lock.release()

    def _refreshed(self) -> tuple[WordIndex, "_State"]:
        """Look at the folders; count what is new or changed, forget what is gone, keep the whole."""
        index = self._index
        if index is None:
            kept = self._store.get_bytes(self.key) if self._store is not None else None
            index = WordIndex.from_bytes(kept) if kept else WordIndex()
        listing = list_files(self._roots, self._limits)
        changed = index.keep_only(stamp.path for stamp in listing.files)
        new = [stamp for stamp in listing.files if not index.known(stamp)]
        new.sort(key=lambda stamp: _suffix(stamp.path) in _PARSED)  # what is quick comes first
        ends = time.monotonic() + self._limits.seconds
        done = 0
        for stamp in new:
            check_cancelled()
            if time.monotonic() > ends:
                break
            self._count(stamp, index)
            done += 1
        if (changed or done) and self._store is not None:
            data = index.to_bytes()
            if len(data) <= self._limits.kept_bytes:
                self._store.set_bytes(self.key, data)
        return index, _State(len(index), len(new) - done, tuple(index.failures()), listing)

    def _count(self, stamp: FileStamp, index: WordIndex) -> None:
        suffix = _suffix(stamp.path)
        try:
            with open(stamp.path, "rb", buffering=0, opener=_open) as opened:
                data = opened.read(self._limits.file_bytes)
            mark = hashlib.blake2b(data, digest_size=16).hexdigest()
            if index.unchanged(stamp, mark):
                return
            if suffix in _PARSED:
                data = self._files.read(Path(stamp.path)).html.encode("utf-8", "surrogatepass")
        except (SourceError, OSError) as error:
            index.add(IndexedFile(stamp, failure=str(error)))
            return
        title, text = title_and_text(_as_utf8(data), suffix)
        named = f"{title} {_name_of(stamp.path)} ".encode("utf-8", "surrogatepass")
        index.add(IndexedFile(stamp, title, mark), text + b" " + TITLE_WEIGHT * named)

    def _unread(self, file: IndexedFile) -> tuple[SearchResult, str]:
        path = Path(file.stamp.path)
        return SearchResult(file.title or path.stem, path.as_uri(), "", engine=self.name), ""

    def _read(self, unread: SearchResult, file: IndexedFile, question: str, language: str) -> tuple[SearchResult, str]:
        """Return a result with what its page says, and its best passage; as it was where the file cannot be read."""
        try:
            document = read_document(self._files.read(Path(file.stamp.path)))
        except SourceError:
            return unread, ""
        best = next(iter(best_passages(document, question, limit=1, language=language)), None)
        title, published = document.page.title or unread.title, document.page.published
        if best is None:
            return replace(unread, title=title, published=published), ""
        return replace(unread, title=title, published=published, snippet=one_line(best.text)), best.headed


def _ordered(
    question: str, language: str, files: Sequence[float], read: Sequence[tuple[SearchResult, str]]
) -> tuple[SearchResult, ...]:
    """Return the results of `read` by the scores of file and best passage, each over the best of all, added."""
    texts = [f"{result.title}\n{headed}" for result, headed in read]
    passages = BM25(texts, language=language).scores(question)
    both = np.asarray(files) / max(files, default=1.0) + passages / (passages.max(initial=0.0) or 1.0)
    order = np.argsort(-both, kind="stable").tolist()
    return tuple(replace(read[place][0], rank=rank) for rank, place in enumerate(order, start=1))


@dataclass(frozen=True, slots=True)
class _State:
    """What the last look around saw, for the outcome's reason."""

    searched: int = 0
    later: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    listing: Listing = field(default_factory=Listing)

    def described(self) -> str:
        """Sentences on all that was not searched; empty when everything was."""
        parts = []
        if self.later:
            parts.append(f"{self.later} of {len(self.listing.files)} files are not read yet; ask again for them.")
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
