"""Searching a person's own documents below the allowed folders, nothing indexed beforehand.

The first call counts the words of every file (light, without parsing, two batches of files at a time); later calls
look only at files whose time or size changed, and count again only those whose bytes did. The few best files are then
read properly for their best passage. Not for: reading a named file
(`pipeline/fetch/files.py`) or judging relevance across providers (`pipeline/rank/mixed.py`).
"""

import hashlib
import json
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from cache.store import JsonValue, Store
from errors import SourceError
from pipeline.documents import Document, SearchOutcome, SearchQuery, SearchResult
from pipeline.fetch.files import read_file
from pipeline.html.document import read_document
from pipeline.rank.bm25 import BM25
from pipeline.rank.passages import Passage, cut_passages
from pipeline.search.folder.digests import VERSION, Digest, Digests, Light
from pipeline.search.folder.light import as_utf8, light_text, name_of
from pipeline.search.folder.listing import MAX_BYTES, FileStamp, Listing, list_files
from pipeline.search.folder.snippet import snippet_around
from pipeline.search.folder.spellings import Counted, count_spellings
from pipeline.text.language import guess_language
from pipeline.work import check_cancelled, in_thread

TITLE_WEIGHT: Final = 3
"""How often a word of title or file name counts more than one of the text."""
READ_MORE: Final = 4
"""Files read properly beyond those wanted: the best passage turns the order of the first few."""
MAX_READ: Final = 40
COLD_SECONDS: Final = 4.0
"""Time for files not seen before; what is left is done by the next call, and this one says so."""
KEPT_FILES: Final = 512
"""Files whose passages stay in memory: about 20 kB each."""
MAX_STORED: Final = 64_000_000
"""Bytes of digests that are kept on disk; beyond, they live as long as the process."""
BATCH_BYTES: Final = 4_000_000
"""Bytes of files that are counted in one go: 0.2 s and about 60 MB of arrays."""
BATCH_FILES: Final = 1_000
BATCH_PARSED: Final = 8
"""The same for files that must be parsed to be counted, 1 ms to seconds each: the clock is looked at after them."""
COUNTERS: Final = 2
"""Threads that count: reading, blanking and sorting leave the interpreter to each other."""
_PARSED: Final = frozenset({".pdf", ".docx"})
_HTML: Final = frozenset({".html", ".htm", ".xhtml"})


@dataclass(frozen=True, slots=True)
class _Read:
    """A file read properly."""

    title: str
    published: str
    passages: tuple[Passage, ...]


class FolderProvider:
    """A provider over local documents."""

    def __init__(
        self,
        roots: Sequence[Path],
        store: Store | None,
        *,
        name: str = "folder",
        max_bytes: int = MAX_BYTES,
        cold_seconds: float = COLD_SECONDS,
    ) -> None:
        """Search below `roots`; digests go to `store` where one is given."""
        self._roots = tuple(root.expanduser().resolve() for root in roots)
        self._store = store
        self._name = name
        self._max_bytes = max_bytes
        self._cold_seconds = cold_seconds
        self._digests: Digests | None = None
        self._lock = threading.Lock()
        self._started = 0.0
        self._state = _State()
        self._read: OrderedDict[FileStamp, _Read] = OrderedDict()
        places = json.dumps([str(root) for root in self._roots])
        self.key = (
            f"folder:{VERSION}:{hashlib.blake2b(places.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}"
        )

    @property
    def name(self) -> str:
        """Name in outcomes and errors."""
        return self._name

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most `limit` files with a term of `query`, best first, each with the passage around the hit."""
        language = query.language or guess_language(query.text) or "en"
        # 1. Bring the digests up to date and find the files
        best, state = await in_thread(self._find, query.text, language, limit, time.monotonic())
        # 2. Read the best ones properly, in parallel
        read: dict[str, _Read] = {}

        async def read_one(digest: Digest) -> None:
            document = await in_thread(self._passages, digest)
            if document is not None:
                read[digest.stamp.path] = document

        async with anyio.create_task_group() as group:
            for digest, _ in best:
                group.start_soon(read_one, digest)
        # 3. Order by file and best passage together
        results = await in_thread(self._ranked, query.text, language, best, read, limit)
        reason = " ".join(filter(None, (_not_honoured(query), state.told())))
        if results:
            return SearchOutcome(results, self._name, "ok", reason)
        nothing = f"None of {state.searched} files below {', '.join(map(str, self._roots))} has a word of the query."
        if state.missing and not state.searched:
            return SearchOutcome((), self._name, "unreachable", reason)
        return SearchOutcome((), self._name, "empty", f"{nothing} {reason}".strip())

    def _find(self, text: str, language: str, limit: int, came: float) -> tuple[list[tuple[Digest, float]], "_State"]:
        while not self._lock.acquire(timeout=0.05):
            check_cancelled()
        try:
            # A look around that began after this call came is fresh enough for it: parallel queries share one
            if self._digests is None or self._started <= came:
                self._started = time.monotonic()
                self._state = self._refresh()
            if self._digests is None:
                return [], self._state
            wanted = min(MAX_READ, limit + READ_MORE)
            return self._digests.best(text, language=language, limit=wanted), self._state
        finally:
            self._lock.release()

    def _refresh(self) -> "_State":
        """Look at the folders; count what is new or changed, forget what is gone, keep the whole."""
        digests = self._digests
        if digests is None:
            kept = self._store.get_bytes(self.key) if self._store is not None else None
            digests = Digests.from_bytes(kept) if kept else Digests()
        listing = list_files(self._roots, max_bytes=self._max_bytes)
        changed = digests.keep_only(stamp.path for stamp in listing.files)
        new = [stamp for stamp in listing.files if not digests.known(stamp)]
        ends = time.monotonic() + self._cold_seconds
        done = 0
        for batch in self._counted(_batches(new), digests, ends):
            digests.add(batch.files, batch.counted)
            done += batch.size
        self._digests = digests
        if (changed or done) and self._store is not None:
            data = digests.to_bytes()
            if len(data) <= MAX_STORED:
                self._store.set_bytes(self.key, data)
        return _State(searched=len(digests), later=len(new) - done, failures=tuple(digests.failures()), listing=listing)

    def _counted(self, batches: Sequence[Sequence[FileStamp]], digests: Digests, ends: float) -> "Iterator[_Batch]":
        """Yield the batches as they are counted, until the time `ends`."""
        if len(batches) < 2:
            yield from (self._count(batch, digests) for batch in batches if time.monotonic() <= ends)
            return
        with ThreadPoolExecutor(COUNTERS) as pool:
            running: deque[Future[_Batch]] = deque()
            for batch in batches:
                check_cancelled()
                if time.monotonic() > ends:
                    break
                running.append(pool.submit(self._count, batch, digests))
                if len(running) > COUNTERS:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()

    def _count(self, stamps: Sequence[FileStamp], digests: Digests) -> "_Batch":
        files, texts = [], []
        for stamp in stamps:
            try:
                with open(stamp.path, "rb", buffering=0, opener=_open) as file:
                    data = file.read(self._max_bytes)
                mark = hashlib.blake2b(data, digest_size=16).hexdigest()
                if digests.unchanged(stamp, mark):
                    continue
                suffix = _suffix(stamp.path)
                if suffix in _PARSED:
                    page = read_file(Path(stamp.path), roots=self._roots, max_bytes=self._max_bytes)
                    data = page.html.encode("utf-8", "surrogatepass")
            except (SourceError, OSError) as error:
                files.append(Light(stamp, failure=str(error)))
                texts.append(b"")
                continue
            title, text = light_text(as_utf8(data), is_html=suffix in _HTML or suffix in _PARSED)
            named = f"{title} {name_of(stamp.path)} ".encode("utf-8", "surrogatepass")
            files.append(Light(stamp, title, mark))
            texts.append(text + b" " + TITLE_WEIGHT * named)
        return _Batch(len(stamps), files, count_spellings(texts))

    def _passages(self, digest: Digest) -> _Read | None:
        """The passages of a file, from memory, from the store, or by reading it; None where it cannot be read."""
        stamp = digest.stamp
        if (known := self._read.get(stamp)) is not None:
            return known
        key = f"passages:{VERSION}:{digest.mark}:{name_of(stamp.path)}"  # the name may stand for a title
        store = self._store if _suffix(stamp.path) in _PARSED else None  # others are read as fast as a store is
        kept = store.get_json(key) if store is not None else None
        read = _from_json(kept) if isinstance(kept, dict) else None
        if read is None:
            try:
                document = read_document(read_file(Path(stamp.path), roots=self._roots, max_bytes=self._max_bytes))
            except SourceError:
                return None
            read = _of(document)
            if store is not None and _still(stamp):
                store.set_json(key, _to_json(read))
        self._read[stamp] = read
        while len(self._read) > KEPT_FILES:
            self._read.popitem(last=False)
        return read

    def _ranked(
        self,
        text: str,
        language: str,
        best: Sequence[tuple[Digest, float]],
        read: dict[str, _Read],
        limit: int,
    ) -> tuple[SearchResult, ...]:
        """File score and best passage's score, each over its maximum, added (notes/zeroindex §0.8)."""
        files = [(digest, score, read[digest.stamp.path]) for digest, score in best if digest.stamp.path in read]
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
                engine=self._name,
                rank=place,
            )
            for place, i in enumerate(order[:limit], start=1)
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Files that were counted together."""

    size: int
    """Files looked at, those included whose bytes had not changed."""
    files: list[Light]
    counted: Counted


@dataclass(frozen=True, slots=True)
class _State:
    """What the last look around saw, for the outcome's reason."""

    searched: int = 0
    later: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    listing: Listing = field(default_factory=lambda: Listing(()))

    @property
    def missing(self) -> tuple[str, ...]:
        return self.listing.missing

    def told(self) -> str:
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
        parts.extend(f"The folder {folder} cannot be read." for folder in self.missing)
        return " ".join(parts)


def _batches(stamps: Sequence[FileStamp]) -> list[list[FileStamp]]:
    """Cut files into batches to be counted in one go; what is quick comes first."""
    batches: list[list[FileStamp]] = []
    for parsed, most in ((False, BATCH_FILES), (True, BATCH_PARSED)):
        size = BATCH_BYTES
        for stamp in stamps:
            if (_suffix(stamp.path) in _PARSED) != parsed:
                continue
            if size >= BATCH_BYTES or len(batches[-1]) >= most:
                batches.append([])
                size = 0
            batches[-1].append(stamp)
            size += stamp.size
    return batches


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


def _not_honoured(query: SearchQuery) -> str:
    parts = []
    if query.freshness != "any":
        parts.append("Files carry no reliable date, so freshness was not filtered by.")
    if query.language and query.language != guess_language(query.text):  # else nobody asked for a filter
        parts.append("The language was used for word forms, not as a filter.")
    return " ".join(parts)


def _of(document: Document) -> _Read:
    return _Read(document.page.title, document.page.published, tuple(cut_passages(document)))


def _to_json(read: _Read) -> JsonValue:
    passages: list[JsonValue] = [[p.text, list(p.heading_path), p.start, p.end] for p in read.passages]
    return {"title": read.title, "published": read.published, "passages": passages}


def _from_json(value: dict[str, JsonValue]) -> _Read | None:
    """What `_to_json` wrote; None where the entry has another form."""
    title, published, rows = value.get("title"), value.get("published"), value.get("passages")
    if not isinstance(title, str) or not isinstance(published, str) or not isinstance(rows, list):
        return None
    passages = []
    for row in rows:
        match row:
            case [str(text), list(path), int(start), int(end)]:
                passages.append(Passage(text, tuple(map(str, path)), start, end))
            case _:
                return None
    return _Read(title, published, tuple(passages))
