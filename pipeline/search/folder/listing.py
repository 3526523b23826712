"""Listing the documents below the allowed folders: names and stamps only, nothing is opened.

Bounded, deterministic (breadth first, by name), never outside a root: links are not followed. Not for: reading files.
"""

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.work import check_cancelled

_SUFFIXES: Final = ".html .htm .xhtml .md .markdown .txt .text .rst .adoc .org .pdf .docx"
SUFFIXES: Final = frozenset(_SUFFIXES.split())
MAX_FILES: Final = 20_000
MAX_DEPTH: Final = 32
MAX_BYTES: Final = 20_000_000
"""Files over this size are left out: no document that a person wrote is larger, save scans without text."""
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "__pycache__", "site-packages"})


class FileStamp(NamedTuple):
    """A file as it was when listed; the same stamp means the same content."""

    path: str
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies below the roots."""

    files: tuple[FileStamp, ...]
    too_large: int = 0
    cut: bool = False
    """Whether more files exist than were listed."""
    missing: tuple[str, ...] = ()
    """Roots that cannot be read."""


def list_files(roots: Sequence[Path], *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> Listing:
    """Return the readable documents below `roots`, each once.

    Hidden names, links, folders of dependencies and other file types are passed over.
    """
    files: dict[str, FileStamp] = {}
    missing: list[str] = []
    too_large = 0
    folders = deque((os.fspath(root), 0) for root in roots)
    while folders:
        check_cancelled()
        folder, depth = folders.popleft()
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            if depth == 0:
                missing.append(folder)
            continue
        for entry in listed:
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < MAX_DEPTH and entry.name not in _SKIPPED_FOLDERS:
                    folders.append((entry.path, depth + 1))
            elif (stamp := _stamp(entry)) is not None:
                if stamp.size > max_bytes:
                    too_large += 1
                elif len(files) >= max_files:
                    return Listing(tuple(files.values()), too_large, cut=True, missing=tuple(missing))
                else:
                    files[entry.path] = stamp
    return Listing(tuple(files.values()), too_large, missing=tuple(missing))


def _stamp(entry: "os.DirEntry[str]") -> FileStamp | None:
    """The stamp of a document; None for other files, and for one that went between listing and looking."""
    if os.path.splitext(entry.name)[1].lower() not in SUFFIXES or not entry.is_file(follow_symlinks=False):
        return None
    try:
        stat = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return FileStamp(entry.path, stat.st_mtime_ns, stat.st_size)
