"""Opens files without following symbolic links, so that a folder replaced by a link
cannot redirect a read.

A path whose links were resolved is checked by its name, and opened afterwards; an
attacker with write access may insert a link in between. So no link is followed on any
step of it: the kernel is asked where it can do so (openat2(2) of Linux with
RESOLVE_NO_SYMLINKS, O_NOFOLLOW_ANY of macOS), else each folder is opened beneath the
descriptor of the one above. Not for: which paths are allowed (`files.py`).
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

_OPENAT2: Final = 437
"""Number of the call on every architecture of Linux."""
_HOW: Final = struct.Struct("QQQ")
"""Flags, mode, and how the path is resolved."""
_NO_LINKS: Final = 0x04 | 0x02
"""RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS."""
_HERE: Final = -100
"""AT_FDCWD; paths are absolute."""
_ABSENT: Final = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG})
"""How kernels before 5.6 and sandboxes answer, the latter perhaps for good reason too:
then steps decide."""
_AGAIN: Final = frozenset({errno.EAGAIN, errno.EINTR})
_OPEN_TRIES: Final = 16
"""Of a call that something else was in the way of."""
_NO_LINK_ANYWHERE: Final = getattr(os, "O_NOFOLLOW_ANY", 0)
_OPEN_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_CLOSE_ON_EXEC: Final = getattr(os, "O_CLOEXEC", 0)


def open_beneath(path: str, flags: int, *, by_steps: bool = False) -> int:
    """Return a descriptor of what is at an absolute path without links in it.

    Args:
        path: Absolute, as `os.path.realpath` gives it.
        flags: As of `os.open`.
        by_steps: Go without what the kernel may know, as on systems where it does not.

    Raises `OSError`, with `ELOOP` or `ENOTDIR` where a step of the path is a link.
    """
    flags |= _CLOSE_ON_EXEC
    call = None if by_steps else _kernel()
    if call is not None:
        how = _HOW.pack(flags, 0, _NO_LINKS)
        for _ in range(_OPEN_TRIES):
            descriptor = int(call(_OPENAT2, _HERE, os.fsencode(path), how, _HOW.size))
            if descriptor >= 0:
                return descriptor
            if (code := ctypes.get_errno()) not in _AGAIN:
                break
        if code not in _ABSENT:
            raise OSError(code, os.strerror(code), path)
    if _NO_LINK_ANYWHERE and not by_steps:
        return os.open(path, (flags & ~_NO_LINK) | _NO_LINK_ANYWHERE)
    return (
        _open_by_steps(path, flags)
        if os.open in os.supports_dir_fd
        else _open_and_compare(path, flags)
    )


@lru_cache(1)
def _kernel() -> Callable[..., Any] | None:
    """Return the C library's `syscall`, None where there is none with this number
    (other systems than Linux)."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL(None, use_errno=True)
        library.syscall.restype = ctypes.c_long
    except (OSError, AttributeError):
        return None
    return library.syscall


def _open_by_steps(path: str, flags: int) -> int:
    """Open each folder of a path beneath the one above.

    Raises `OSError` where one of them is missing or a link."""
    first, *folders, last = path.split(os.sep)
    above = os.open(first or os.sep, _OPEN_FOLDER | _CLOSE_ON_EXEC)
    try:
        for name in filter(None, folders):
            below = os.open(
                name, _OPEN_FOLDER | _NO_LINK | _CLOSE_ON_EXEC, dir_fd=above
            )
            os.close(above)
            above = below
        return os.open(last or ".", flags | _NO_LINK, dir_fd=above)
    finally:
        os.close(above)


def _open_and_compare(path: str, flags: int) -> int:
    """Open a path, and look whether it leads where it did, on systems that know no
    descriptors of folders.

    Raises `OSError` with `ELOOP` where it leads elsewhere."""
    descriptor = os.open(path, flags)
    opened, there = os.fstat(descriptor), os.stat(path, follow_symlinks=False)
    is_same = (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)
    if not is_same or os.path.realpath(path) != os.path.normpath(path):
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return descriptor
