"""Listing of documents below the configured folders: each look is one walk over all
names, one stat a file.

Not for: opening files, or which of them answer (`pipeline/search/folder.py`)."""

import os
import stat
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

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
    ".djvu .xps .vsd .vsdx .sqlite .sqlite3 .db .parquet .mdb .accdb"
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
    """Files and folders left out by patterns of names."""
    passed: Passed = ()
    cut: bool = False
    """Whether more files exist than were listed."""
    missing: tuple[str, ...] = ()
    """Roots that cannot be read."""


class Folders:
    """The documents below some roots; not for two threads at once."""

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
        self._texts: dict[FileStamp, bool] = {}
        self._known = self._texts
        """Whether files are text whose ending does not say so, now and before."""
        self._listing = Listing()

    def look(self) -> Listing:
        """Return the documents, each once, breadth first and by name.

        Of files with an ending that is not known the first bytes are read, once for as
        long as they stay as they are. The same object as before says that nothing
        changed. Hidden names, keys, links and what is `Ignored` are passed over;
        files without text are counted. Files beyond `most` are left out (`cut`). A root
        that cannot be read is in `missing`, a folder below it is left out without a
        note."""
        count, file_bytes = self._limits
        self._known, self._texts = self._texts, {}
        files: dict[str, FileStamp] = {}
        passed, too_large, missing = Counter[str](), set[str](), list[str]()
        walked, ignored = set[str](), set[str]()
        queue = deque((root, Ignored()) for root in self._roots)
        while queue and len(files) <= count:
            check_cancelled()
            folder, above = queue.popleft()
            if folder in walked:
                continue
            walked.add(folder)
            patterns = above.below(folder)
            try:
                for path, stamp in self._found(folder):
                    if path != folder and patterns.has(path, is_folder=stamp is None):
                        ignored.add(path)
                    elif stamp is None:
                        queue.append((path, patterns))
                    elif not self._texts.get(stamp, True):
                        passed[ending_of(path)] += 1
                    elif stamp.size > file_bytes:
                        too_large.add(path)
                    else:
                        files[path] = stamp
            except OSError:
                if folder in self._roots:
                    missing.append(folder)
        listing = Listing(
            tuple(files.values())[:count],
            len(too_large),
            len(ignored),
            tuple(sorted(passed.items(), key=lambda item: (-item[1], item[0]))),
            len(files) > count,
            tuple(missing),
        )
        if listing != self._listing:
            self._listing = listing
        return self._listing

    def _found(self, folder: str) -> Iterator[tuple[str, FileStamp | None]]:
        """Yield path and stamp of each file in a folder, and the path of each folder; of
        a root that is a file itself.

        Raises `OSError` where it cannot be read."""
        status = os.stat(folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            yield folder, FileStamp(folder, status.st_mtime_ns, status.st_size)
            return
        for path, entry in _entries(folder):
            # An entry may go between listing and looking.
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if not is_secret(entry.name):
                        yield path, None
                elif entry.is_file(follow_symlinks=False) and (
                    stamp := self._stamp(path, entry)
                ):
                    yield path, stamp

    def _stamp(self, path: str, entry: os.DirEntry[str]) -> FileStamp | None:
        """Return a file's stamp, and note whether it is text where its ending does not
        say so; None for a file of keys."""
        is_named = _is_named(entry.name)
        if not is_named and is_secret(entry.name):
            return None
        if ending_of(entry.name) in OTHERS and not is_named:
            stamp = FileStamp(path, 0, 0)
            self._texts[stamp] = False
            return stamp
        status = entry.stat(follow_symlinks=False)
        stamp = FileStamp(path, status.st_mtime_ns, status.st_size)
        if not is_named:
            is_text = self._known.get(stamp)
            self._texts[stamp] = _is_text(stamp) if is_text is None else is_text
        return stamp


def is_secret(name: str) -> bool:
    """Whether a file or folder of this name holds keys."""
    return SECRET_NAME.match(name) is not None


def _entries(folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what is in a folder that no link leads to, by name, without hidden names:
    its path and its entry.

    Raises `OSError` where it cannot be read or a link leads to it."""
    prefix = folder if folder.endswith(os.sep) else folder + os.sep
    descriptor = (
        open_beneath(folder, getattr(os, "O_DIRECTORY", 0))
        if os.scandir in os.supports_fd
        else None
    )
    try:
        with os.scandir(folder if descriptor is None else descriptor) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(_HIDDEN)]
        for entry in sorted(visible, key=attrgetter("name")):
            yield prefix + entry.name, entry
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
