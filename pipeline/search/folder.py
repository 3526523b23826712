"""Searching a person's own documents below the allowed folders, nothing indexed beforehand.

The first call counts the words of every file without parsing it; later calls look only at files whose time or size
changed, and count again only those whose bytes did. The few best files are then read properly for their best passage.
Not for: the counts (`pipeline/search/word_index.py`), reading a named file (`pipeline/fetch/files.py`) or judging
relevance across providers (`pipeline/rank/mixed.py`).
"""

import hashlib
import json
import os
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from cache.store import JsonValue, Store
from errors import SourceError
from pipeline.documents import SearchOutcome, SearchQuery, SearchResult
from pipeline.fetch.files import read_file
from pipeline.html.document import read_document
from pipeline.rank.bm25 import BM25
from pipeline.rank.passages import Passage, cut_passages
from pipeline.read.charset import decode
from pipeline.search.word_index import VERSION, FileStamp, IndexedFile, WordIndex, title_and_text
from pipeline.text.language import guess_language
from pipeline.text.words import index_terms
from pipeline.work import check_cancelled, in_thread

TITLE_WEIGHT: Final = 3
"""How often a word of title or file name counts more than one of the text."""
READ_MORE: Final = 4
"""Files read properly beyond those wanted: the best passage turns the order of the first few."""
SNIPPET: Final = 400
"""Characters of a snippet: about what web engines show, and enough for a sentence with its neighbours."""
_PLAIN: Final = ".html .htm .xhtml .md .markdown .txt .text .rst .adoc .org .csv .tsv .json .jsonl .ndjson .ipynb .xml"
_PARSED: Final = frozenset({".pdf", ".docx"})
"""Files that must be parsed to be counted, 1 ms to seconds each."""
_SUFFIXES: Final = _PARSED | frozenset(_PLAIN.split())
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "__pycache__", "site-packages"})
_PIECE: Final = re.compile(r"[^\n.!?。！？]*(?:[.!?。！？](?=\S)[^\n.!?。！？]*)*[.!?。！？\n]*\s*")
"""Sentences, roughly: a stop inside a number or a name (`2.4`, `node.js`) does not end one."""


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """How much of the folders is looked at."""

    files: int = 20_000
    file_bytes: int = 20_000_000
    """Larger files are left out: no document that a person wrote is larger, save scans without text."""
    seconds: float = 4.0
    """Time for files not seen before; what is left is done by the next call, and this one says so."""
    kept_files: int = 512
    """Files whose passages stay in memory: about 20 kB each."""
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


@dataclass(frozen=True, slots=True)
class _Read:
    """A file read properly."""

    title: str
    published: str
    passages: tuple[Passage, ...]


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
        self._read: OrderedDict[FileStamp, _Read] = OrderedDict()
        places = json.dumps([str(root) for root in self._roots]).encode()
        self.key = f"folder:{VERSION}:{hashlib.blake2b(places, digest_size=12).hexdigest()}"

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most `limit` files with a term of `query`, best first, each with the passage around the hit."""
        language = query.language or guess_language(query.text) or "en"
        # 1. Bring the word counts up to date and find the files
        best, state = await in_thread(self._find, query.text, language, limit, time.monotonic())
        # 2. Read the best ones properly, in parallel
        read: dict[str, _Read] = {}

        async def read_one(file: IndexedFile) -> None:
            document = await in_thread(self._passages, file)
            if document is not None:
                read[file.stamp.path] = document

        async with anyio.create_task_group() as group:
            for file, _ in best:
                group.start_soon(read_one, file)
        # 3. Order by file and best passage together
        results = await in_thread(self._ranked, query.text, language, best, read, limit)
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
                page = read_file(Path(stamp.path), roots=self._roots, max_bytes=self._limits.file_bytes)
                data = page.html.encode("utf-8", "surrogatepass")
        except (SourceError, OSError) as error:
            index.add(IndexedFile(stamp, failure=str(error)))
            return
        title, text = title_and_text(_as_utf8(data), suffix)
        named = f"{title} {_name_of(stamp.path)} ".encode("utf-8", "surrogatepass")
        index.add(IndexedFile(stamp, title, mark), text + b" " + TITLE_WEIGHT * named)

    def _passages(self, file: IndexedFile) -> _Read | None:
        """The passages of a file, from memory, from the store, or by reading it; None where it cannot be read."""
        stamp = file.stamp
        if (known := self._read.get(stamp)) is not None:
            return known
        key = f"passages:{VERSION}:{file.mark}:{_name_of(stamp.path)}"  # the name may stand for a title
        store = self._store if _suffix(stamp.path) in _PARSED else None  # others are read as fast as a store is
        read = _from_json(store.get_json(key)) if store is not None else None
        if read is None:
            try:
                page = read_file(Path(stamp.path), roots=self._roots, max_bytes=self._limits.file_bytes)
                document = read_document(page)
            except SourceError:
                return None
            read = _Read(document.page.title, document.page.published, tuple(cut_passages(document)))
            if store is not None and _still(stamp):
                store.set_json(key, _to_json(read))
        self._read[stamp] = read
        while len(self._read) > self._limits.kept_files:
            self._read.popitem(last=False)
        return read

    def _ranked(
        self,
        text: str,
        language: str,
        best: Sequence[tuple[IndexedFile, float]],
        read: dict[str, _Read],
        limit: int,
    ) -> tuple[SearchResult, ...]:
        """File score and best passage's score, each over its maximum, added."""
        files = [(file, score, read[file.stamp.path]) for file, score in best if file.stamp.path in read]
        if not files:
            return ()
        owners = [i for i, (_, _, one) in enumerate(files) for _ in one.passages]
        passages = [passage for _, _, one in files for passage in one.passages]
        titled = [f"{files[i][2].title}\n{p.headed}" for i, p in zip(owners, passages, strict=True)]
        scores = BM25(titled, language=language).scores(text)
        shown: dict[int, tuple[float, Passage]] = {}
        for owner, passage, score in zip(owners, passages, scores, strict=True):
            if owner not in shown or score > shown[owner][0]:
                shown[owner] = (float(score), passage)
        top_file = max(score for _, score, _ in files)
        top_passage = max((score for score, _ in shown.values()), default=0.0) or 1.0
        order = sorted(
            range(len(files)), key=lambda i: -(files[i][1] / top_file + shown.get(i, (0.0, None))[0] / top_passage)
        )
        return tuple(
            SearchResult(
                title=files[i][2].title or files[i][0].title or Path(files[i][0].stamp.path).stem,
                url=Path(files[i][0].stamp.path).as_uri(),
                snippet=snippet_around(shown[i][1].text, text, language=language) if i in shown else "",
                published=files[i][2].published,
                engine=self.name,
                rank=rank,
            )
            for rank, i in enumerate(order[:limit], start=1)
        )


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


def _still(stamp: FileStamp) -> bool:
    """Whether a file is as it was listed: else what was read is not what was counted."""
    try:
        now = os.stat(stamp.path, follow_symlinks=False)
    except OSError:
        return False
    return (now.st_mtime_ns, now.st_size) == (stamp.mtime_ns, stamp.size)


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


def _to_json(read: _Read) -> JsonValue:
    passages: list[JsonValue] = [[p.text, list(p.heading_path), p.start, p.end] for p in read.passages]
    return [read.title, read.published, passages]


def _from_json(value: JsonValue) -> _Read | None:
    """What `_to_json` wrote; None where the entry has another form."""
    match value:
        case [str(title), str(published), list(rows)]:
            passages = []
        case _:
            return None
    for row in rows:
        match row:
            case [str(text), list(path), int(start), int(end)]:
                passages.append(Passage(text, tuple(map(str, path)), start, end))
            case _:
                return None
    return _Read(title, published, tuple(passages))


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


def snippet_around(text: str, question: str, *, language: str = "en", length: int = SNIPPET) -> str:
    """Return at most about `length` characters of `text` around the densest place of the terms of `question`.

    Left-out text is marked `…`; line breaks become spaces.
    """
    if len(text) <= length:
        return " ".join(text.split())
    terms = set(index_terms(question, language=language))
    spans = [match.span() for match in _PIECE.finditer(text) if match.end() > match.start()]
    spans = [piece for span in spans for piece in _bounded(span, length)]
    found = [terms & set(index_terms(text[start:end], language=language)) for start, end in spans]
    best, best_first, best_last = -1.0, 0, 0
    for first in range(len(spans)):
        seen: set[str] = set()
        for last in range(first, len(spans)):
            if last > first and spans[last][1] - spans[first][0] > length:
                break
            seen |= found[last]
            worth = len(seen) + 0.1 * len(found[first]) - 0.001 * first
            if worth > best:
                best, best_first, best_last = worth, first, last
    # Fill up with what follows, so that the hit keeps its context
    while best_last + 1 < len(spans) and spans[best_last + 1][1] - spans[best_first][0] <= length:
        best_last += 1
    start, end = spans[best_first][0], spans[best_last][1]
    cut = " ".join(text[start:end].split())
    return ("… " if start > 0 else "") + cut + (" …" if end < len(text) else "")


def _bounded(span: tuple[int, int], length: int) -> list[tuple[int, int]]:
    start, end = span
    return [(at, min(at + length, end)) for at in range(start, end, length)]
