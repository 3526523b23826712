"""Opens files without following symbolic links, so that a folder replaced by a link
cannot redirect a read.

A path whose links were resolved is checked by its name, and opened afterwards; an
attacker with write access may insert a link in between. So no link is followed on any
step of it: each folder is opened beneath the descriptor of the one above, unless the
system can be asked for as much (O_NOFOLLOW_ANY of macOS). Not for: which paths are
allowed (`files.py`).
"""

import errno
import os
from typing import Final

_NO_LINK_ANYWHERE: Final = getattr(os, "O_NOFOLLOW_ANY", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final = (
    getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_CLOEXEC", 0)
)


def open_beneath(path: str, flags: int) -> int:
    """Return a descriptor of what is at an absolute path without links in it, as
    `os.path.realpath` gives it, by `flags` of `os.open`.

    Raises `OSError`, with `ELOOP` or `ENOTDIR` where a step of the path is a link."""
    if _NO_LINK_ANYWHERE:
        return os.open(path, (flags & ~_NO_LINK) | _NO_LINK_ANYWHERE)
    if os.open not in os.supports_dir_fd:
        return _open_and_compare(path, flags)
    root, *folders, name = path.split(os.sep)
    parent = os.open(root or os.sep, _FOLDER)
    try:
        for folder in filter(None, folders):
            descriptor = os.open(folder, _FOLDER | _NO_LINK, dir_fd=parent)
            os.close(parent)
            parent = descriptor
        return os.open(name or ".", flags | _NO_LINK, dir_fd=parent)
    finally:
        os.close(parent)


def _open_and_compare(path: str, flags: int) -> int:
    """Open a path, and look whether it leads where it did, on systems that know no
    descriptors of folders.

    Raises `OSError` with `ELOOP` where it leads elsewhere."""
    descriptor = os.open(path, flags)
    opened, linked = os.fstat(descriptor), os.stat(path, follow_symlinks=False)
    is_same = (opened.st_dev, opened.st_ino) == (linked.st_dev, linked.st_ino)
    if not is_same or os.path.realpath(path) != os.path.normpath(path):
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return descriptor
