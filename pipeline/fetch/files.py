"""Local files below the allowed roots, as pages. Nothing else on this machine can be named.

Symbolic links are resolved before the check, so that a link out of a root is refused. Hidden files (`.env`, what is in
`.ssh` or `.git`) and keys are refused too: they hold secrets more often than text. Who wants a hidden folder read names
it in the settings. Not for: walking folders
(`pipeline/search/folder.py`), nor anything over HTTP.
"""

import errno
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from cache.store import HELD_BYTES, Memory
from errors import AddressRefused, SourceNotFound, SourceTooLarge, SourceUnavailable
from pipeline.documents import Page
from pipeline.fetch.handles import page_from_bytes, page_to_bytes
from pipeline.fetch.limits import FetchLimits
from pipeline.read.convert import Raw, to_page

MAX_FILE_BYTES: Final = FetchLimits().max_unpacked
_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
"""No link in the last place, no waiting at a pipe; where the system knows these."""
_SECRET: Final = re.compile(
    r"\.|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$|.*\.(?:env|pem|key|p12|pfx|jks|keystore|kdbx?|ppk|ovpn|pgpass|htpasswd)$",
    re.IGNORECASE,
)
"""Names of what is hidden, and of keys and passwords."""
_KEY: Final = re.compile(rb"\s*-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY")
"""How a key begins, whatever its file is called."""


class Files:
    """The files below some roots, each converted once for as long as it stays as it is.

    What was converted is held in this process alone: a person's own files are not for a cache that others read.
    """

    def __init__(self, roots: Sequence[Path], *, max_bytes: int = MAX_FILE_BYTES) -> None:
        """Take the folders below which files may be read, and the cap on a file's size."""
        self._roots = tuple(roots)
        self._max_bytes = max_bytes
        self._held = Memory(HELD_BYTES)

    def may_open(self, page: Page) -> bool:
        """Return whether a page that was kept may be shown now."""
        return may_open(page.final_url, self._roots)

    def read(self, path: Path) -> Page:
        """Return a local file as a page, as `read_file` does."""
        resolved = allowed_path(path, roots=self._roots)
        key = file_key(resolved, named=str(path))
        page = page_from_bytes(self._held.get(key) or b"")
        if page is None:
            page = read_file(resolved, roots=self._roots, max_bytes=self._max_bytes)
            self._held.put(key, page_to_bytes(page))
        return page


def read_file(path: Path, *, roots: Sequence[Path], max_bytes: int = MAX_FILE_BYTES) -> Page:
    """Return a local file as a page; its URL is the `file:` URL of the resolved path.

    Args:
        path: Absolute, or relative to the first of `roots` that has it.
        roots: Folders below which files may be read; none means no file may be.
        max_bytes: Cap on the file's size.

    Raises:
        AddressRefused: Not below a root once links are resolved, hidden, or no regular file.
        SourceNotFound: No such file.
        SourceTooLarge: Over the cap.
        SourceUnreadable: Without text.
    """
    resolved = allowed_path(path, roots=roots)
    body, changed = _read(resolved, str(path), max_bytes)
    when = datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds")
    url = resolved.as_uri()
    page = to_page(Raw(body, url, url, name=resolved.name, fetched_at=when))
    return page if page.title else replace(page, title=resolved.stem)


def allowed_path(path: Path, *, roots: Sequence[Path]) -> Path:
    """Return `path` with links resolved, if it lies below one of `roots` and is not hidden there.

    Raises:
        AddressRefused: It does not, or is. The error never says whether it exists.
    """

    def refused(why: str, hint: str) -> AddressRefused:
        return AddressRefused(f"The file {str(path)!r} may not be read: {why}.", source=str(path), hint=hint)

    if not roots:
        raise refused("no folder is open to this server", "Open one with WINNOW_FOLDERS.")
    real_roots = [_resolve(root) for root in roots]
    candidates = [path] if path.is_absolute() else [root / path for root in real_roots]
    below = [(found, root) for found in map(_resolve, candidates) for root in real_roots if found.is_relative_to(root)]
    if not below:
        allowed = ", ".join(str(root) for root in roots)
        raise refused("it does not lie below an allowed folder", f"Allowed are: {allowed}.")
    shown = [found for found, root in below if not is_hidden(found, root)]
    if not shown:
        raise refused(
            "it is hidden by a period before its name, or holds keys by its ending",
            "A person can open a hidden folder by naming it in WINNOW_FOLDERS.",
        )
    # Path.exists raises for names that are too long.
    return next((found for found in shown if os.path.exists(found)), shown[0])


def is_hidden(path: Path, root: Path) -> bool:
    """Return whether a path, or a folder between it and `root`, has a name of what is not for others to read."""
    return any(map(_SECRET.match, path.relative_to(root).parts))


def may_open(url: str, roots: Sequence[Path]) -> bool:
    """Return whether what was read from an address earlier may be shown now: a file only where it may be read."""
    if not url.startswith("file:"):
        return True
    try:
        allowed_path(path_of_url(url.partition("#")[0]), roots=roots)
    except AddressRefused:
        return False
    return True


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as e:  # a loop of links, a zero byte in the name
        raise AddressRefused(
            f"The path {str(path)!r} cannot be resolved: {e}.", source=str(path), hint="Name the file directly."
        ) from e


def path_of_url(url: str) -> Path:
    """Return the path of a `file:` URL."""
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise AddressRefused(
            f"{url} names a file on another machine ({parts.netloc}).", source=url, hint="Use file:///path."
        )
    return Path(url2pathname(parts.path) if os.name == "nt" else unquote(parts.path))


def file_key(path: Path, *, named: str = "") -> str:
    """Return a key that changes when the file is written again: path, time of change (ns) and size.

    `named` is how the caller knows the file, for messages.
    """
    try:
        found = path.stat()
    except OSError as e:
        raise _open_error(e, named or str(path)) from e
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
        # One byte more than allowed: a file may grow while it is read.
        body = file.read(max_bytes + 1) if found.st_size <= max_bytes else b""
    if _KEY.match(body):
        raise AddressRefused(f"{source!r} may not be read: it is a private key.", source=source, hint="Name a text.")
    if found.st_size > max_bytes or len(body) > max_bytes:
        size = max(found.st_size, len(body))
        raise SourceTooLarge(
            f"The file {source!r} has {size:,} bytes, over the cap of {max_bytes:,}.",
            source=source,
            hint="Split it, or raise the cap.",
        )
    return body, found.st_mtime


def _open_error(error: OSError, source: str) -> SourceNotFound | SourceUnavailable | AddressRefused:
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return SourceNotFound(f"There is no file {source!r}.", source=source, hint="Check the path.")
    if error.errno in {errno.EISDIR, errno.ELOOP, errno.ENXIO}:
        return AddressRefused(f"{source!r} is no regular file.", source=source, hint="Name a file.")
    return SourceUnavailable(
        f"The file {source!r} cannot be read: {error.strerror}.", source=source, hint="Check its permissions."
    )
