"""Incremental listing of documents below the configured folders.

On Linux the kernel reports each change in a watched folder (inotify(7)) before the
write returns, so that only changed folders are read again. Any other folder is looked
at each time, one stat a file: on other systems, on file systems that others write to as
well, with names of one file in two folders, and where the kernel watches no more.
Either way a listing has what was written before it began; but a file that is given a
second name elsewhere, after it was listed, and is written by that one, is seen when
something in its own folder changes. Not for: opening files, or which of them answer
(`pipeline/search/folder.py`)."""

import ctypes
import io
import os
import re
import stat
import struct
import sys
import weakref
from collections import Counter, deque
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.fetch.beneath import open_beneath
from pipeline.fetch.files import DOCUMENTS, OTHERS, ending_of, is_document
from pipeline.read.secrets import SECRET_NAME
from pipeline.search.word_index import FileStamp
from pipeline.work import check_cancelled

MOST_FILES: Final = 200_000
"""Files of a listing."""
MOST_LISTED_BYTES: Final = 20_000_000
"""Larger files are left out: no document that a person wrote is larger, save scans
without text."""
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "__pycache__", "site-packages"})
_MOST_WATCHED: Final = 8_192
"""Maximum watched folders: the kernel's smallest default per user."""
_LOCAL: Final = frozenset(
    {
        "bcachefs",
        "btrfs",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "jfs",
        "overlay",
        "tmpfs",
        "xfs",
        "zfs",
    }
)
"""Local file systems, whose every write the kernel reports."""
_OLD_ENDINGS: Final = (
    ".doc .xls .ppt .msg .pst .pages .numbers .wpd .wps .one .pub .mobi .azw3 .chm "
    ".djvu .xps .vsd .vsdx"
)
_UNREAD_DOCUMENTS: Final = frozenset(_OLD_ENDINGS.split())
"""Endings of documents of forms that no reader here knows."""
_ENDING: Final = re.compile(r"(?:\.[a-z0-9_+-]{1,8})?")
"""A file extension that messages may show; longer ones, or with spaces, are text of the
file's author."""
_ENDINGS_SHOWN: Final = 6
"""Endings that a message names."""
_ENDINGS: Final = frozenset(ending[1:] for ending in DOCUMENTS)
_BY_NAME: Final = attrgetter("name")
_MOUNTS: Final = Path("/proc/self/mountinfo")
_OCTAL_ESCAPE: Final = re.compile(r"\\([0-7]{3})")
# From <sys/inotify.h>: modified, attributes (links among them), closed after writing, moved, made,
# deleted; the folder itself deleted or moved; and that a watch is over. Where the kernel lost
# count, the number of a watch is -1.
_CHANGES: Final = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
_IGNORED: Final = 0x8000
_EVENT: Final = struct.Struct("iIII")


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies below the roots."""

    files: tuple[FileStamp, ...] = ()
    too_large: int = 0
    passed: "Passed" = ()
    cut: bool = False
    """Whether more files exist than were listed."""
    missing: tuple[str, ...] = ()
    """Roots that cannot be read."""


Passed = tuple[tuple[str, int], ...]
"""Extensions of files without text, with counts, most frequent first."""


class _Folder(NamedTuple):
    """A folder as it was when looked at."""

    device: int
    inode: int
    files: tuple[FileStamp, ...]
    below: tuple[str, ...]
    too_large: int
    passed: tuple[FileStamp, ...]
    """Files without text; not opened again while unchanged."""
    watched: bool
    """Whether the kernel reports every change in it."""


@dataclass(slots=True)
class _Contents:
    """What is in a folder, while it is read; fields as of `_Folder`."""

    watched: bool
    files: list[FileStamp] = field(default_factory=list)
    passed: list[FileStamp] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    too_large: int = 0


class Folders:
    """The documents below some roots; not for two threads at once."""

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        most: int = MOST_FILES,
        file_bytes: int = MOST_LISTED_BYTES,
        watched: bool = True,
    ) -> None:
        """List at most `most` files of at most `file_bytes` each below resolved
        `roots`, which may be files.

        Only Linux lets folders be `watched`; elsewhere each look reads all of them."""
        self._roots = [os.path.realpath(root) for root in roots]
        self._most = most
        self._file_bytes = file_bytes
        self._watch = _Watch() if watched and sys.platform == "linux" else None
        self._known: dict[str, _Folder] = {}
        self._singles: list[FileStamp] = []
        self._listing: Listing | None = None

    def look(self) -> Listing:
        """Return the documents, each once, breadth first and by name.

        Of files with an ending that is not known the first bytes are read, once for as
        long as they stay as they are. The same object as before says that nothing
        changed. Hidden names, keys, links and folders of dependencies are passed over;
        files without text are counted. Files beyond `most` are left out (`cut`). A root
        that cannot be read is in `missing`, a folder below it is left out without a
        note."""
        changed = self._watch.changed() if self._watch is not None else None
        singles, tops = self._split_folders()
        found, missing = self._walk(tops, len(singles), changed)
        same = list(found) == list(self._known) and all(
            map(_is, found.values(), self._known.values())
        )
        if (
            same
            and self._listing is not None
            and (singles, missing) == (self._singles, self._listing.missing)
        ):
            return self._listing
        if self._watch is not None:
            self._watch.keep_only(found)
        self._known, self._singles = found, singles
        self._listing = self._listed(found.values(), missing)
        return self._listing

    def _walk(
        self, tops: Sequence[str], count: int, changed: set[str] | None
    ) -> tuple[dict[str, _Folder], tuple[str, ...]]:
        """Return the folders from `tops` down until the files, `count` of them already
        known, are over the most; and the tops that cannot be read.

        Of folders that are watched only those in `changed` are read; None for all."""
        found: dict[str, _Folder] = {}
        missing: list[str] = []
        local: dict[int, bool] = {}
        queue = deque(tops)
        while queue and count <= self._most:
            check_cancelled()
            folder = queue.popleft()
            if folder in found:
                continue
            refresh = changed is None or folder in changed
            try:
                found[folder] = self._looked(folder, refresh=refresh, local=local)
            except OSError:
                if folder in tops:
                    missing.append(folder)
                continue
            count += len(found[folder].files)
            queue += found[folder].below
        return found, tuple(missing)

    def _listed(
        self, folders: Collection[_Folder], missing: tuple[str, ...]
    ) -> Listing:
        """Return what is in folders, and the files named one by one, as one listing."""
        files = {stamp.path: stamp for stamp in self._singles}
        for one in folders:
            files |= {stamp.path: stamp for stamp in one.files}
        listed = tuple(files.values())
        passed = Counter(
            ending_of(stamp.path) for one in folders for stamp in one.passed
        )
        return Listing(
            listed[: self._most],
            sum(one.too_large for one in folders),
            tuple(sorted(passed.items(), key=lambda one: (-one[1], one[0]))),
            len(listed) > self._most,
            missing,
        )

    def _split_folders(self) -> tuple[list[FileStamp], list[str]]:
        """Return the roots that are files, as they are, and the others, also those that
        cannot be found."""
        singles, tops = [], []
        for root in self._roots:
            try:
                found = os.stat(root)
            except OSError:
                tops.append(root)
                continue
            if stat.S_ISREG(found.st_mode):
                singles.append(FileStamp(root, found.st_mtime_ns, found.st_size))
            else:
                tops.append(root)
        return singles, tops

    def _looked(self, folder: str, *, refresh: bool, local: dict[int, bool]) -> _Folder:
        """Return a folder, the same object as before where nothing in it changed;
        `local` by device, to be filled.

        Raises `OSError` where it cannot be read."""
        old, found = self._known.get(folder), os.stat(folder, follow_symlinks=False)
        there = found.st_dev, found.st_ino
        if old is not None and old.watched and not refresh and there == old[:2]:
            return old
        # Watched first, so that writes meanwhile are reported next time.
        watched = self._is_watched(folder, found.st_dev, local)
        known: dict[str, FileStamp] = {}
        others: set[FileStamp] = set()
        if old is not None:
            others = {stamp for stamp in old.passed if stamp.mtime_ns}
            known = {stamp.path: stamp for stamp in (*old.files, *others)}
        new = self._read(folder, there, known, others, watched=watched)
        return old if old is not None and new == old else new

    def _is_watched(self, folder: str, device: int, local: dict[int, bool]) -> bool:
        """Watch a folder; return whether the kernel reports every change in it."""
        if self._watch is None:
            return False
        if device not in local:
            local[device] = _is_local(folder)
        return local[device] and self._watch.add(folder)

    def _read(
        self,
        folder: str,
        there: tuple[int, int],
        known: dict[str, FileStamp],
        others: set[FileStamp],
        *,
        watched: bool,
    ) -> _Folder:
        found = _Contents(watched)
        for path, entry in _entries(folder):
            try:
                if entry.is_file(follow_symlinks=False):
                    self._add_file(found, path, entry, known.get(path), others)
                elif _is_entered(entry):
                    found.below.append(path)
            except OSError:
                continue  # it went between listing and looking
        return _Folder(
            *there,
            tuple(found.files),
            tuple(found.below),
            found.too_large,
            tuple(found.passed),
            found.watched,
        )

    def _add_file(
        self,
        found: _Contents,
        path: str,
        entry: os.DirEntry[str],
        old: FileStamp | None,
        others: set[FileStamp],
    ) -> None:
        """Add a file to what it is among; `old` is its stamp where it was seen before,
        and one of `others` where it had no text."""
        is_named = old is None and _is_named(entry.name)
        if old is None and not is_named:
            if SECRET_NAME.match(entry.name):
                return
            if ending_of(entry.name) in OTHERS:
                found.passed.append(FileStamp(path, 0, 0))
                return
        now = entry.stat(follow_symlinks=False)
        # A write through another hard link is reported to that link's folder.
        found.watched &= now.st_nlink == 1
        stamp = FileStamp(path, now.st_mtime_ns, now.st_size)
        if old == stamp:
            (found.passed if old in others else found.files).append(old)
        elif not (is_named or _is_read(stamp)):
            found.passed.append(stamp)
        elif now.st_size > self._file_bytes:
            found.too_large += 1
        else:
            found.files.append(stamp)


def _entries(folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what is in a folder that no link leads to, by name, without hidden names:
    its path and its entry.

    Raises `OSError` where it cannot be read or a link leads to it."""
    above = folder if folder.endswith(os.sep) else folder + os.sep
    descriptor = (
        open_beneath(folder, os.O_RDONLY | os.O_DIRECTORY)
        if os.scandir in os.supports_fd
        else None
    )
    try:
        with os.scandir(folder if descriptor is None else descriptor) as found:
            listed = sorted(
                [entry for entry in found if entry.name[0] != "."], key=_BY_NAME
            )
        for entry in listed:
            yield above + entry.name, entry
    finally:
        if descriptor is not None:  # beneath it entries are looked at
            os.close(descriptor)


def _is_named(name: str) -> bool:
    """Whether a file is a document by its ending; of these only a text may be a
    browser's cookies."""
    stem, _, ending = name.rpartition(".")
    ending = ending.lower()
    return (
        ending in _ENDINGS
        and stem != ""
        and not (ending == "txt" and SECRET_NAME.match(name))
    )


def _is_read(stamp: FileStamp) -> bool:
    """Whether a file is a document; one that is empty is, and one that may not be
    opened is said by its reader."""
    try:
        return stamp.size == 0 or is_document(stamp.path, ending_of(stamp.path))
    except PermissionError:
        return True


def may_answer(passed: Passed) -> bool:
    """Return whether some of the files that are not read are documents all the same."""
    return any(ending in _UNREAD_DOCUMENTS for ending, _ in passed)


def not_searched(passed: Passed) -> str:
    """Return the message part on files without text: `21 files not searched: .bin
    17, .xls 4`."""
    plain = [(ending, count) for ending, count in passed if _ENDING.fullmatch(ending)][
        :_ENDINGS_SHOWN
    ]
    named = [f"{ending or 'without ending'} {count}" for ending, count in plain]
    rest = sum(count for _, count in passed) - sum(count for _, count in plain)
    named += [f"others {rest}"] if rest else []
    total = sum(count for _, count in passed)
    return (
        f"{total} {'file' if total == 1 else 'files'} not searched: {', '.join(named)}"
    )


def list_files(
    roots: Sequence[Path],
    *,
    most: int = MOST_FILES,
    file_bytes: int = MOST_LISTED_BYTES,
) -> Listing:
    """Return the readable documents below `roots` once, as `Folders.look` does."""
    return Folders(roots, most=most, file_bytes=file_bytes, watched=False).look()


def _is(one: object, other: object) -> bool:
    return one is other


def _is_entered(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder in which documents may be."""
    return (
        entry.is_dir(follow_symlinks=False)
        and entry.name not in _SKIPPED_FOLDERS
        and SECRET_NAME.match(entry.name) is None
    )


def _is_local(folder: str) -> bool:
    """Whether the file system of a folder is one that this kernel alone writes to;
    False where that is not known."""
    try:
        lines = _MOUNTS.read_text(
            encoding="utf-8", errors="surrogateescape"
        ).splitlines()
    except OSError:
        return False
    kinds: dict[str, str] = {}
    for line in lines:
        left, _, right = line.partition(" - ")
        point = _OCTAL_ESCAPE.sub(
            lambda octal: chr(int(octal[1], 8)), left.split(" ")[4]
        )
        kinds[point.rstrip("/")] = right.partition(" ")[
            0
        ]  # the last one mounted there is seen
    above = [folder, *map(str, Path(folder).parents)]
    return (
        next((kinds[one.rstrip("/")] for one in above if one.rstrip("/") in kinds), "")
        in _LOCAL
    )


class _Watch:
    """Folders watched through Linux' inotify, by ctypes."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._file = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._folders: dict[int, str] = {}  # by number of the watch
        if self._file >= 0:
            weakref.finalize(self, os.close, self._file)

    def add(self, folder: str) -> bool:
        """Watch a folder; return whether that is possible: not beyond `_MOST_WATCHED`
        folders."""
        if self._file < 0 or len(self._folders) >= _MOST_WATCHED:
            return False
        number = self._library.inotify_add_watch(
            self._file, os.fsencode(folder), _CHANGES
        )
        if number >= 0:
            self._folders[number] = folder
        return bool(number >= 0)

    def changed(self) -> set[str] | None:
        """Return the folders in which something changed since the last call; None where
        the kernel lost count, empty where nothing can be watched."""
        changed: set[str] = set()
        whole = True
        while self._file >= 0:
            try:
                data = os.read(self._file, io.DEFAULT_BUFFER_SIZE)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                whole = whole and number >= 0
                # A watch that is ignored is over; its number is not given again.
                folder = (
                    self._folders.pop(number, None)
                    if mask & _IGNORED
                    else self._folders.get(number)
                )
                if folder is not None:
                    changed.add(folder)
        return changed if whole else None

    def keep_only(self, folders: Container[str]) -> None:
        """Watch no other than these."""
        for number in [
            number for number, folder in self._folders.items() if folder not in folders
        ]:
            self._library.inotify_rm_watch(self._file, number)
            del self._folders[number]
