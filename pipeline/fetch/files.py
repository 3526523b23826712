"""Local files below the allowed roots, as pages. Nothing else on this machine can be named.

Symbolic links are resolved before the check, so that a link out of a root is refused. Not for: walking folders
(`pipeline/search/folder.py`), nor anything over HTTP.
"""

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from errors import AddressRefused, SourceNotFound, SourceTooLarge, SourceUnavailable
from pipeline.documents import Page
from pipeline.read.convert import Raw, to_page

MAX_FILE_BYTES: Final = 30_000_000
_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
"""No link in the last place, no waiting at a pipe; where the system knows these."""


def read_file(path: Path, *, roots: Sequence[Path], max_bytes: int = MAX_FILE_BYTES) -> Page:
    """Return a local file as a page; its URL is the `file:` URL of the resolved path.

    Args:
        path: Absolute, or relative to the first of `roots` that has it.
        roots: Folders below which files may be read; none means no file may be.
        max_bytes: Cap on the file's size.

    Raises:
        AddressRefused: Not below a root once links are resolved, or no regular file.
        SourceNotFound: No such file.
        SourceTooLarge: Over the cap.
        SourceUnreadable: Without text.
    """
    resolved = allowed_path(path, roots=roots)
    body, changed = _read(resolved, str(path), max_bytes)
    when = datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds")
    url = resolved.as_uri()
    return _with_title(to_page(Raw(body, url, url, name=resolved.name, fetched_at=when)), resolved.stem)


def allowed_path(path: Path, *, roots: Sequence[Path]) -> Path:
    """Return `path` with links resolved, if it lies below one of `roots`.

    Raises:
        AddressRefused: It does not. Whether it exists is not told.
    """
    if not roots:
        raise AddressRefused(
            f"The file {str(path)!r} may not be read: no folder is open to this server.",
            source=str(path),
            hint="Open one with WINNOW_FOLDERS.",
        )
    real_roots = [_resolve(root) for root in roots]
    candidates = [path] if path.is_absolute() else [root / path for root in real_roots]
    inside = [found for found in map(_resolve, candidates) if any(found.is_relative_to(root) for root in real_roots)]
    if not inside:
        raise AddressRefused(
            f"The file {str(path)!r} may not be read: it does not lie below an allowed folder.",
            source=str(path),
            hint="Allowed are: " + ", ".join(str(root) for root in roots) + ".",
        )
    return next(
        (found for found in inside if os.path.exists(found)), inside[0]
    )  # Path.exists raises for names that are too long


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as e:  # a loop of links, a zero byte in the name
        raise AddressRefused(
            f"The path {str(path)!r} cannot be resolved: {e}.", source=str(path), hint="Name the file directly."
        ) from e


def path_of_url(url: str) -> Path:
    """Return the path of a `file:` URL.

    Raises:
        AddressRefused: It names another machine.
    """
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise AddressRefused(
            f"{url} names a file on another machine ({parts.netloc}).", source=url, hint="Use file:///path."
        )
    return Path(url2pathname(parts.path) if os.name == "nt" else unquote(parts.path))


def file_key(path: Path) -> str:
    """Return a cache key that changes when the file is written again: path, time of change (ns) and size.

    Raises:
        SourceNotFound: No such file.
    """
    try:
        found = path.stat()
    except OSError as e:
        raise SourceNotFound(f"There is no file {str(path)!r}.", source=str(path), hint="Check the path.") from e
    return f"file:{path}:{found.st_mtime_ns}:{found.st_size}"


def _read(path: Path, source: str, max_bytes: int) -> tuple[bytes, float]:
    """Return the bytes of a regular file and the moment of its last change."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except OSError as e:
        raise _open_error(e, source) from e
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise AddressRefused(f"{source!r} is no regular file.", source=source, hint="Name a file.")
    with os.fdopen(descriptor, "rb") as file:
        if found.st_size > max_bytes:
            raise SourceTooLarge(
                f"The file {source!r} has {found.st_size:,} bytes, over the cap of {max_bytes:,}.",
                source=source,
                hint="Split it, or raise the cap.",
            )
        body = file.read(max_bytes + 1)
    if len(body) > max_bytes:
        raise SourceTooLarge(f"The file {source!r} grew over {max_bytes:,} bytes.", source=source, hint="Try again.")
    return body, found.st_mtime


def _open_error(error: OSError, source: str) -> SourceNotFound | SourceUnavailable | AddressRefused:
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return SourceNotFound(f"There is no file {source!r}.", source=source, hint="Check the path.")
    if error.errno in {errno.EISDIR, errno.ELOOP, errno.ENXIO}:
        return AddressRefused(f"{source!r} is no regular file.", source=source, hint="Name a file.")
    return SourceUnavailable(
        f"The file {source!r} cannot be read: {error.strerror}.", source=source, hint="Check its permissions."
    )


def _with_title(page: Page, name: str) -> Page:
    if page.title:
        return page
    return replace(page, title=name)
