"""Local files below the allowed roots, as pages. Nothing else on this machine can be
named.

Symbolic links are resolved before the check, so that a link out of a root is refused.
None is followed when the file is opened, so that a folder replaced by a link is
refused, too. Hidden files (`.env`, what is in `.ssh` or `.git`) and keys are refused
too: they hold secrets more often than text. Who wants a hidden file or folder read
names it as a root of its own. Not for: walking folders (`pipeline/search/folder.py`),
nor anything over HTTP."""

import errno
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import anyio

from cache.store import Store
from errors import (
    AddressRefused,
    SourceError,
    SourceNotFound,
    SourceTooLarge,
    SourceUnreadable,
)
from pipeline.conversion.converter import Converter, reader_version
from pipeline.fetch.beneath import open_beneath
from pipeline.fetch.handles import find_page, keep_page
from pipeline.fetch.limits import FetchLimits
from pipeline.work import alone, in_thread
from readers.convert import Raw, to_page
from readers.converted import ALL_PAGES, Span, Unreadable, raising_the_cap
from readers.data.slack import DAY_FILE, PEOPLE, with_names
from readers.format import endings_of, formats
from readers.page import Page
from readers.secrets import SECRET_NAME, holds_secret, is_secret
from readers.sniff import SOURCE_LANGUAGES, looks_like_text
from readers.unpack import PACKED, beginning, is_packed, unpacked

IMAGES: Final = endings_of(form for form in formats() if form.pictures)
"""Endings of images, where their text can be recognised: seconds each."""
CONVERTED: Final = endings_of(form for form in formats() if form.heavy)
"""Endings of files that must be parsed for their words, 1 ms to seconds each."""
_TEXT_ENDINGS: Final = (
    ".html",
    ".htm",
    ".xhtml",
    ".txt",
    ".text",
    ".rst",
    ".adoc",
    ".log",
)
DOCUMENTS: Final = endings_of(formats()) | {*_TEXT_ENDINGS, *SOURCE_LANGUAGES}
"""Endings of documents, data and code. Of a folder's other files those that begin as
text are read as well."""
MAX_FILE_BYTES: Final = FetchLimits().max_bytes
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
"""No waiting at a pipe, where the system knows that; no link in the last place, and
none above (`open_beneath`)."""
_SPAN: Final = re.compile(r"#pages=(?P<first>\d{1,6})-(?P<last>\d{1,6})?\Z")
_SNIFFED: Final = 1_024
"""Bytes of a file of another ending that are read to know whether it is text."""
LEASE_SECONDS: Final = 5.0
"""Seconds until others go on with a file after its process was killed."""
_PACKED_BYTES: Final = 1_000_000
"""Bytes of a packed file that are read for the same: a block of bzip2 has up to
900,000."""
_NO_TEXTS: Final = (
    ".png .jpg .jpeg .gif .webp .bmp .ico .icns .tif .tiff .heic .avif .psd .mp3 .m4a .aac .wav "
    ".flac .ogg .opus "
    ".mp4 .mov .avi .mkv .webm .zip .tar .tgz .tbz .txz .7z .rar .jar .war .whl .deb .rpm .dmg "
    ".iso .exe .dll .so "
    ".dylib .o .a .lib .obj .pyc .pyo .class .wasm .woff .woff2 .ttf .otf .eot .db .sqlite "
    ".sqlite3 .gguf .onnx "
    ".safetensors .npy .npz .pkl .pt .parquet .swp"
)
OTHERS: Final = frozenset(_NO_TEXTS.split()) - IMAGES
"""Endings of files that are never text, which need not be opened to know it."""


class Files:
    """The files below some roots, each converted once for as long as its bytes stay as
    they are."""

    def __init__(
        self,
        roots: Sequence[Path] = (),
        *,
        store: Store | None = None,
        converter: Converter | None = None,
        max_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        """Let files below `roots`, of at most `max_bytes`, be read; none means no file
        may be.

        Conversions, by `converter` or in threads of this process, are kept in `store`:
        on this machine only, for a person's own files are not for a cache that others
        read."""
        self.roots = tuple(roots)
        self.store = store
        self._converter = converter
        self._max_bytes = max_bytes

    @property
    def at_once(self) -> int:
        """How many documents can be converted at the same time."""
        return self._converter.at_once if self._converter is not None else 1

    @property
    def pieces(self) -> int:
        """Pieces of documents that were read before the whole."""
        return self._converter.pieces if self._converter is not None else 0

    async def convert(self, raw: Raw, *, begin: bool = False) -> Page:
        """Return `raw`, of a file or not, as a page; see
        `readers.convert.to_page`, and `Converter.page` for `begin`.

        Raises `NeedsBrowser` for a page that is empty until its scripts run, and
        `SourceUnreadable` for what has no text or is damaged."""
        return await (
            self._converter.page(raw, begin=begin)
            if self._converter is not None
            else in_thread(to_page, raw)
        )

    async def read(
        self,
        path: Path,
        span: Span = ALL_PAGES,
        *,
        begin: bool = False,
    ) -> Page:
        """Return a local file as a page; `span` and what it raises are as in
        `read_file` and `Raw`.

        `begin`: of a document that takes long the first pages, where it is not kept
        whole; they are not kept as such, but the next reading goes on from there."""
        store = self.store
        resolved = await in_thread(allowed_path, path, roots=self.roots)
        key = await in_thread(self._key, resolved, str(path))
        opened = self._is_opened(resolved)
        if store is None:
            return await self._converted(
                resolved, str(path), span, opened=opened, begin=begin
            )
        name = f"{key}:{reader_version()}:{name_span(span)}:{opened}"

        def kept() -> Page | None:
            # The same words under one handle may be those of a file of another time.
            match store.get_json(name):
                case [str(handle), str(changed)] if page := find_page(store, handle):
                    return replace(page, fetched_at=changed)
            return None

        # A file that another call or process is converting is waited for.
        async with alone(
            store, f"converting:{name}", kept, enough=bool, patience=LEASE_SECONDS
        ) as (kept_page, _):
            if kept_page is not None:
                return kept_page
            page = await self._converted(
                resolved, str(path), span, opened=opened, begin=begin
            )
            if begin and page.rest:
                return page
            with anyio.CancelScope(shield=True):  # the work of seconds is not lost
                handle = await in_thread(keep_page, store, page)
                await in_thread(store.set_json, name, [handle, page.fetched_at])
            return page

    async def _converted(
        self,
        resolved: Path,
        source: str,
        span: Span,
        *,
        opened: bool,
        begin: bool,
    ) -> Page:
        raw = await in_thread(
            read_raw,
            resolved,
            source,
            self._max_bytes,
            span,
            roots=self.roots,
            opened=opened,
        )
        page = _titled(await self.convert(raw, begin=begin), Path(raw.name))
        if not opened and await in_thread(holds_secret, page.html):
            raise _secret(source)
        return page

    def _key(self, resolved: Path, source: str) -> str:
        """Return a key that changes when the file, or what it is read with, is written
        again; raises as `file_key` does."""
        people = _people_of(resolved, self.roots)
        named = file_key(people) if people is not None else ""
        return file_key(resolved, source=source) + named

    def _is_opened(self, resolved: Path) -> bool:
        """Whether a person has named this file itself as a root."""
        return any(_resolve(root) == resolved for root in self.roots)


def split_span(source: str) -> tuple[str, Span]:
    """Return a source without `#pages=66-120` at its end, and those pages (0 as the
    last for all that follow).

    Without one, or with one that starts at 0 or runs backwards, that is the source
    unchanged and `ALL_PAGES`."""
    match = _SPAN.search(source)
    if match is None:
        return source, ALL_PAGES
    first_page, last_page = int(match["first"]), int(match["last"] or 0)
    if first_page < 1 or 0 < last_page < first_page:
        return source, ALL_PAGES
    return source[: match.start()], (first_page, last_page)


def name_span(span: Span) -> str:
    """Return the end of a source's name that `split_span` reads; empty for the
    whole."""
    return "" if span == ALL_PAGES else f"#pages={span[0]}-{span[1] or ''}"


def read_file(
    path: Path, *, roots: Sequence[Path], max_bytes: int = MAX_FILE_BYTES
) -> Page:
    """Return a local file, absolute or relative to a root, as a page with the `file:`
    URL of the resolved path.

    Raises `AddressRefused` for one that is not below a root once links are resolved,
    hidden, or no regular file, `SourceNotFound`, `SourceError`, `SourceTooLarge`,
    and `SourceUnreadable` for one without text."""
    resolved = allowed_path(path, roots=roots)
    raw = read_raw(resolved, str(path), max_bytes, roots=roots)
    return _titled(to_page(raw), resolved)


def read_raw(
    resolved: Path,
    source: str,
    max_bytes: int,
    span: Span = ALL_PAGES,
    *,
    roots: Sequence[Path] = (),
    opened: bool = False,
) -> Raw:
    """Return the bytes of an allowed file, unpacked, with what is known of it; `source`
    is its name in messages. A day of a Slack export has the names of people where their
    list lies below one of `roots`, too.

    `opened`: a person has named the file itself as a root, so that it may hold keys,
    which otherwise is refused. Raises `AddressRefused` for a file of keys or what is
    not a regular file, `SourceNotFound`, `SourceError` (its permissions),
    `SourceTooLarge` over `max_bytes`, `SourceUnreadable` for a damaged packed file."""
    try:
        descriptor = open_beneath(os.fspath(resolved), _OPEN_FLAGS)
    except OSError as e:
        raise _open_error(e, source) from e
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise AddressRefused(
            f"'{source}' is not a regular file.", source=source, hint="Name a file."
        )
    with os.fdopen(descriptor, "rb") as file:
        # One byte more than allowed: a file may grow while it is read.
        body = file.read(max_bytes + 1) if status.st_size <= max_bytes else b""
    if (size := max(status.st_size, len(body))) > max_bytes:
        raise SourceTooLarge(
            f"The file '{source}' has {size:,} bytes, over the cap of {max_bytes:,}.",
            source=source,
            hint=raising_the_cap(size),
        )
    when = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
    url, name = resolved.as_uri() + name_span(span), resolved.name
    if resolved.suffix.lower() in PACKED and is_packed(body):
        name = resolved.stem
        try:
            body = unpacked(body, max_bytes=max_bytes)
        except Unreadable as error:
            raise SourceUnreadable(
                f"{source} cannot be unpacked: {error}.",
                source=source,
                hint=error.hint or "Unpack it, or split it.",
            ) from error
    if not opened and is_secret(body):
        raise _secret(source)
    people = _people_of(resolved, roots)
    if people is not None:
        with suppress(SourceError):  # then ids stay, and a note of the page says so
            body = with_names(body, read_raw(people, PEOPLE, max_bytes).body)
    return Raw(body, url, url, name=name, fetched_at=when, span=span, most=max_bytes)


def _people_of(path: Path, roots: Sequence[Path]) -> Path | None:
    """Return the list of people that names those of a Slack export's day; None for
    another file, and where no such list may be read."""
    if not DAY_FILE.fullmatch(path.name):
        return None
    try:
        people = allowed_path(path.parent.parent / PEOPLE, roots=roots)
    except AddressRefused:
        return None
    return people if os.path.isfile(people) else None


def _secret(source: str) -> AddressRefused:
    return AddressRefused(
        f"'{source}' may not be read: it holds keys, passwords or cookies.",
        source=source,
        hint="The user can allow it by adding the file itself to WINNOW_FOLDERS.",
    )


def ending_of(name: str) -> str:
    """Return the ending of a file's name, in lower case with its dot; of a packed one
    that of what it holds."""
    stem, ending = os.path.splitext(name)
    ending = ending.lower()
    return os.path.splitext(stem)[1].lower() if ending in PACKED else ending


def beginning_of(path: str, count: int) -> bytes:
    """Return the first bytes of a file; nothing of a pipe. Raises `OSError` where it
    cannot be opened, as where a link leads to it."""
    descriptor = open_beneath(path, _OPEN_FLAGS)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        return file.read(count) or b""


def is_document(path: str, ending: str) -> bool:
    """Return whether a folder's file with this ending, from `ending_of`, is read: by
    its ending, else its first bytes.

    Raises `OSError` where it cannot be opened. A file that is empty and has no known
    ending is none."""
    packed = os.path.splitext(path)[1].lower() in PACKED
    if ending in DOCUMENTS and not packed:
        return True
    if ending in OTHERS:
        return False
    descriptor = open_beneath(path, _OPEN_FLAGS)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        start = file.read(_SNIFFED)
        if packed and is_packed(start):
            # A packed document of another program is known by its ending; text by what it begins
            # with.
            start = beginning(start + file.read(_PACKED_BYTES), _SNIFFED)
            return bool(start) and (ending in CONVERTED or looks_like_text(start))
    return bool(start) and looks_like_text(start)


def _titled(page: Page, path: Path) -> Page:
    return page if page.title else replace(page, title=path.stem)


def allowed_path(path: Path, *, roots: Sequence[Path]) -> Path:
    """Return `path`, absolute or relative to a root, with links resolved, if it lies
    below one of `roots` and is not hidden there.

    Else raises `AddressRefused`, which never says whether it exists. The path returned
    need not exist."""

    def refused(why: str, hint: str) -> AddressRefused:
        return AddressRefused(
            f"The file '{path}' may not be read: {why}.", source=str(path), hint=hint
        )

    if not roots:
        raise refused(
            "no folder is open to this server", "Open one with WINNOW_FOLDERS."
        )
    real_roots = [_resolve(root) for root in roots]
    # An absolute path stays as it is.
    candidates = dict.fromkeys(root / path for root in real_roots)
    allowed_paths = [
        (resolved, root)
        for resolved in map(_resolve, candidates)
        for root in real_roots
        if resolved.is_relative_to(root)
    ]
    if not allowed_paths:
        allowed = ", ".join(str(root) for root in roots)
        raise refused(
            "it does not lie below an allowed folder", f"Allowed are: {allowed}."
        )
    paths = [
        resolved for resolved, root in allowed_paths if not is_hidden(resolved, root)
    ]
    if not paths:
        raise refused(
            "it is hidden by a period before its name, or holds keys by its ending",
            "A person can open it by naming it, or the hidden folder that holds it, in "
            "WINNOW_FOLDERS.",
        )
    # Path.exists raises for names that are too long.
    return next((path for path in paths if os.path.exists(path)), paths[0])


def is_hidden(path: Path, root: Path) -> bool:
    """Return whether a path, or a folder between it and `root`, has a name of what is
    not for others to read."""
    return any(map(SECRET_NAME.match, path.relative_to(root).parts))


def may_open(url: str, roots: Sequence[Path]) -> bool:
    """Return whether what was read from an address earlier may be shown now: a file
    only where it may be read, any other address always."""
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
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as e:  # a loop of links, a zero byte in the name
        raise AddressRefused(
            f"The path '{path}' cannot be resolved: {_why(e)}.",
            source=str(path),
            hint="Give the file's direct path.",
        ) from e


def _why(error: Exception) -> str:
    """Return why a path leads nowhere, without the path, which the system's own words
    repeat."""
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def path_of_url(url: str) -> Path:
    """Return the path of a `file:` URL.

    Raises `AddressRefused` for a file on another machine."""
    address = urlsplit(url)
    if address.netloc not in {"", "localhost"}:
        raise AddressRefused(
            f"{url} is a file on another machine.",
            source=url,
            hint="Use file:///path.",
        )
    return Path(
        url2pathname(address.path) if os.name == "nt" else unquote(address.path)
    )


def file_key(path: Path, *, source: str = "") -> str:
    """Return a key that changes when the file is written again; `source` is how messages
    call it, or its path.

    Raises `SourceNotFound`, `AddressRefused` or `SourceError` where it cannot be
    looked at."""
    try:
        status = path.stat()
    except OSError as e:
        raise _open_error(e, source or str(path)) from e
    return f"file:{path}:{status.st_mtime_ns}:{status.st_size}"


def _open_error(error: OSError, source: str) -> SourceError:
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return SourceNotFound(
            f"There is no file '{source}'.", source=source, hint="Check the path."
        )
    if error.errno in {errno.EISDIR, errno.ELOOP, errno.ENXIO}:
        return AddressRefused(
            f"'{source}' is not a regular file.", source=source, hint="Name a file."
        )
    return SourceError(
        f"The file '{source}' cannot be read: {error.strerror}.",
        source=source,
        hint="Check its permissions.",
    )
