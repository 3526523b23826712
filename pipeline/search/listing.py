"""Listing of documents below the configured folders: each look is one walk over all
names, one stat a file.

Not for: opening files, or which of them answer (`pipeline/search/folder.py`)."""

import os
import stat
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from cancellation import check_cancelled
from pipeline.fetch.beneath import open_beneath
from pipeline.fetch.files import DOCUMENTS, OTHERS, ending_of, is_document
from pipeline.search.ignored import Ignored
from pipeline.search.word_index import FileStamp
from readers.secrets import SECRET_NAME

MOST_FILES: Final = 200_000
"""Files of a listing."""
MOST_LISTED_BYTES: Final = 20_000_000
"""Larger files are left out: no document that a person wrote is larger, save scans
without text."""
_HIDDEN: Final = (".", "~$")
"""Beginnings of hidden names, and of Office's lock files."""
_OLD_ENDINGS: Final = (
    ".doc .xls .xlsb .ppt .msg .pst .pages .numbers .wpd .wps .one .pub .mobi .azw3 .chm "
    ".djvu .xps .vsd .vsdx .parquet .mdb .accdb"
)
"""Endings of documents of forms that no reader here knows."""
Passed = tuple[tuple[str, int], ...]
"""Extensions of files without text, with counts, most frequent first."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies below the roots."""

    files: tuple[FileStamp, ...] = ()
    too_large: int = 0
    ignored: int = 0
    """Files and folders left out by their names: hidden, of keys, or by a pattern."""
    passed: Passed = ()
    cut: bool = False
    """Whether more files exist than were listed."""
    missing: tuple[str, ...] = ()
    """Roots that cannot be read."""


class _Listed(NamedTuple):
    """A file in a folder that may be a document."""

    place: int
    """Among the entries of the folder, by name."""
    stamp: FileStamp
    is_named: bool
    """Whether its ending says that it is a document."""
    is_text: bool = True


class _Contents(NamedTuple):
    """What is in a folder, as of the last look."""

    entries: tuple[tuple[str, bool, bool], ...]
    """Name of each, whether it is a folder, and whether it is a file."""
    patterns: Ignored
    """While entries and patterns are the same, so are the next three."""
    folders: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Files that are never text."""
    items: tuple[_Listed, ...] = ()


class Folders:
    """The documents below some roots; for any number of threads."""

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        most: int = MOST_FILES,
        file_bytes: int = MOST_LISTED_BYTES,
    ) -> None:
        """List at most `most` files of at most `file_bytes` each below resolved
        `roots`, which may be files."""
        self._roots = [os.path.realpath(root) for root in roots]
        self._limits = most, file_bytes
        self._contents: dict[str, _Contents] = {}
        self._listing = Listing()
        self._lock = threading.Lock()

    def look(self) -> Listing:
        """Return the documents, each once, breadth first and by name.

        Of files with an ending that is not known the first bytes are read, once for as
        long as they stay as they are. The same object as before says that nothing
        changed. Hidden names, keys, links and what is `Ignored` are passed over;
        files without text are counted. Files beyond `most` are left out (`cut`). A root
        that cannot be read is in `missing`, a folder below it is left out without a
        note."""
        with self._lock:
            return self._look()

    def _look(self) -> Listing:
        count, file_bytes = self._limits
        walked, missing = dict[str, _Contents](), list[str]()
        queue = deque((root, Ignored()) for root in self._roots)
        listed = 0
        while queue and listed <= count:
            check_cancelled()
            folder, above = queue.popleft()
            if folder in walked:
                continue
            try:
                walked[folder] = contents = self._looked_into(folder, above)
            except OSError:
                if folder in self._roots:
                    missing.append(folder)
                continue
            queue.extend((below, contents.patterns) for below in contents.folders)
            listed += len(contents.items)
        if (walked, (*missing,)) == (self._contents, self._listing.missing):
            return self._listing
        self._contents = walked
        items = {item.stamp.path: item for one in walked.values() for item in one.items}
        texts = [item.stamp for item in items.values() if item.is_text]
        files = [stamp for stamp in texts if stamp.size <= file_bytes]
        no_texts = [path for path, item in items.items() if not item.is_text]
        no_texts += (path for one in walked.values() for path in one.others)
        passed = Counter(map(ending_of, no_texts))
        self._listing = Listing(
            tuple(files[:count]),
            len(texts) - len(files),
            len({path for one in walked.values() for path in one.ignored}),
            tuple(sorted(passed.items(), key=lambda item: (-item[1], item[0]))),
            bool(queue) or len(files) > count,
            tuple(missing),
        )
        return self._listing

    def _looked_into(self, folder: str, above: Ignored) -> _Contents:
        """Return what is in a folder; of a root that is a file itself, that.

        Every name and every file's time is looked at, whatever the folder's own time
        is: not all file systems change that. Raises `OSError` where it cannot be
        read."""
        status = os.stat(folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            item = _Listed(0, _stamp(folder, status), is_named=True)
            return _Contents((), above, items=(item,))
        patterns = above.below(folder)
        with _entries(folder) as entries:
            names = tuple(
                [
                    (
                        entry.name,
                        entry.is_dir(follow_symlinks=False),
                        entry.is_file(follow_symlinks=False),
                    )
                    for entry in entries
                ]
            )
            contents = self._contents.get(folder)
            if contents is None or contents[:2] != (names, patterns):
                contents = _sorted_out(folder, names, patterns)
            items: list[_Listed] = []
            for item in contents.items:
                current = item
                try:
                    status = entries[item.place].stat(follow_symlinks=False)
                    _, mtime_ns, size = item.stamp
                    if mtime_ns != status.st_mtime_ns or size != status.st_size:
                        stamp = _stamp(item.stamp.path, status)
                        is_text = item.is_named or _is_text(stamp)
                        current = item._replace(stamp=stamp, is_text=is_text)
                except OSError:  # it went between listing and looking
                    continue
                items.append(current)
        return contents._replace(items=tuple(items))


def _stamp(path: str, status: os.stat_result) -> FileStamp:
    return FileStamp(path, status.st_mtime_ns, status.st_size)


def _sorted_out(
    folder: str, entries: tuple[tuple[str, bool, bool], ...], patterns: Ignored
) -> _Contents:
    """Return what the entries of a folder are by their names; no file was looked at
    yet."""
    prefix = folder if folder.endswith(os.sep) else folder + os.sep
    folders, ignored, others = list[str](), list[str](), list[str]()
    items = list[_Listed]()
    for place, (name, is_folder, is_file) in enumerate(entries):
        path, is_named = prefix + name, is_file and _is_named(name)
        if not (is_folder or is_file):
            continue
        is_hidden = name.startswith(_HIDDEN) or (not is_named and is_secret(name))
        if is_hidden or patterns.has(path, is_folder=is_folder):
            ignored.append(path)
        elif is_folder:
            folders.append(path)
        elif not is_named and ending_of(name) in OTHERS:
            others.append(path)
        else:
            items.append(_Listed(place, FileStamp(path, -1, -1), is_named))
    return _Contents(entries, patterns, (*folders,), (*ignored,), (*others,), (*items,))


def is_secret(name: str) -> bool:
    """Whether a file or folder of this name holds keys."""
    return SECRET_NAME.match(name) is not None


@contextmanager
def _entries(folder: str) -> Iterator[list[os.DirEntry[str]]]:
    """Yield what is in a folder that no link leads to, by name.

    Raises `OSError` where it cannot be read or a link leads to it."""
    descriptor = (
        open_beneath(folder, getattr(os, "O_DIRECTORY", 0))
        if os.scandir in os.supports_fd
        else None
    )
    try:
        with os.scandir(folder if descriptor is None else descriptor) as entries:
            listed = sorted(entries, key=attrgetter("name"))
        yield listed
    finally:
        if descriptor is not None:  # beneath it entries are looked at
            os.close(descriptor)


def _is_named(name: str) -> bool:
    """Whether a file is a document by its ending; of these only a text may be a
    browser's cookies."""
    stem, dot, ending = name.rpartition(".")
    ending = (dot + ending).lower()
    return (
        stem != ""
        and ending in DOCUMENTS
        and not (ending == ".txt" and is_secret(name))
    )


def _is_text(stamp: FileStamp) -> bool:
    """Whether a file is a document; one that is empty is, and one that may not be
    opened is said by its reader."""
    try:
        return stamp.size == 0 or is_document(stamp.path, ending_of(stamp.path))
    except PermissionError:
        return True


def left_out(listing: Listing) -> Iterator[str]:
    """Yield sentences on what below the folders is not read."""
    if listing.cut:
        yield f"Only the first {len(listing.files)} files were searched."
    if listing.passed:
        yield f"{not_searched(listing.passed)}."
    if listing.too_large:
        yield f"Files left out for their size: {listing.too_large}."
    yield from (f"The folder {folder} cannot be read." for folder in listing.missing)


def may_answer(passed: Passed) -> bool:
    """Return whether some of the files that are not read are documents all the same."""
    return any(ending in _OLD_ENDINGS.split() for ending, _ in passed)


def not_searched(passed: Passed) -> str:
    """Return the message part on files without text: `21 files not searched: .bin
    17, .xls 4`."""
    total = sum(count for _, count in passed)
    # Longer endings, or with spaces, are text of the file's author.
    endings = [
        (ending, count)
        for ending, count in passed
        if not ending or (len(ending) < 10 and ending[1:].isalnum())
    ]
    counted = [f"{ending or 'without ending'} {count}" for ending, count in endings[:6]]
    if uncounted := total - sum(count for _, count in endings[:6]):
        counted.append(f"others {uncounted}")
    return f"{total} file{'s' * (total != 1)} not searched: {', '.join(counted)}"


def list_files(
    roots: Sequence[Path],
    *,
    most: int = MOST_FILES,
    file_bytes: int = MOST_LISTED_BYTES,
) -> Listing:
    """Return the readable documents below `roots` once, as `Folders.look` does."""
    return Folders(roots, most=most, file_bytes=file_bytes).look()
