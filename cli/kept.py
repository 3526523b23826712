"""Maintenance of stored data: `winnow cache stats|clear|verify|path|backup|restore`,
and `winnow sessions list|show|export|remove`.

Only sessions of this machine are listed; a session of an HTTP client belongs to its
token. A backup is a ZIP file of what cannot be fetched again, sessions and trees, from
any cache to any other: `rows.json` lists store, name, format and expiry time of each
entry; a member holds its bytes. Not for: continuing a session (`winnow research
QUESTION --session HANDLE`).
"""

import dataclasses
import json
import math
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cache.rows import CacheCheck, Entry, Kind
from cache.store import Stores, cache_trouble, store_text
from cli.output import FAILED, OK, print_json, show
from errors import UsageError
from pipeline.session.export import export
from pipeline.session.session import (
    SESSION_SCHEME,
    Session,
    find_session,
    list_sessions,
    remove_session,
)
from server.settings import Settings
from server.wiring import open_cache


@contextmanager
def _opened(settings: Settings) -> Iterator[Stores]:
    stores = open_cache(settings)
    try:
        yield stores
    finally:
        stores.close()


def look_after_cache(
    settings: Settings, action: str, file: Path | None, *, as_json: bool
) -> int:
    """Run one cache command (`stats`, `clear`, `verify`, `path`, `backup`, `restore`)
    and print its result.

    Returns 1 if the cache cannot be used, or was damaged (now repaired). Raises
    `UsageError` for an unusable file.
    """
    with _opened(settings) as stores:
        if action in ("backup", "restore"):
            report, healthy = _moved(stores, action, file), True
        else:
            report, healthy = _report(stores, action, as_json)
        if trouble := cache_trouble(stores.stats()):
            report["trouble"] = trouble
            healthy = False
    if action == "path" and not as_json:
        print(report["path"])
    else:
        show(report, as_json=as_json)
    return OK if healthy else FAILED


def _moved(stores: Stores, action: str, file: Path | None) -> dict[str, object]:
    if file is None:
        raise UsageError(
            "No file is given.", hint=f"Write `winnow cache {action} FILE`."
        )
    counts = (
        write_backup(stores, file) if action == "backup" else read_backup(stores, file)
    )
    return {
        "path": stores.place,
        "file": str(file),
        **{kind: f"{count} entries" for kind, count in counts.items()},
    }


def _report(
    stores: Stores, action: str, as_json: bool
) -> tuple[dict[str, object], bool]:
    report: dict[str, object] = {"path": stores.place}
    if action == "verify":
        found = stores.verify()
        report |= {
            kind: dataclasses.asdict(checked) if as_json else _line(checked)
            for kind, checked in found.items()
        }
        return report, not any(checked.damaged for checked in found.values())
    if action == "clear":
        report["cleared"] = f"{stores.clear()} entries"
    if action != "path":
        report |= {kind: store_text(stats) for kind, stats in stores.stats().items()}
    return report, True


def _line(checked: CacheCheck) -> str:
    counts = ", ".join(
        f"{count} {name}"
        for name, count in dataclasses.asdict(checked).items()
        if name != "note"
    )
    removed = (
        " (removed)" if checked.damaged or checked.expired or checked.orphans else ""
    )
    return f"{counts}{removed}{'; ' + checked.note if checked.note else ''}"


def look_after_sessions(
    settings: Settings, action: str, handle: str, *, form: str, as_json: bool
) -> int:
    """List the sessions, or show, export or remove one; raises `UsageError` for an
    unknown session."""
    with _opened(settings) as stores:
        if action == "list":
            _print_list(list_sessions(stores), as_json=as_json)
            return OK
        session = _named(stores, handle)
        if action == "remove":
            remove_session(stores, session)
            show({"removed": session.handle}, as_json=as_json)
        else:
            print(
                export(
                    session,
                    "json" if as_json else form if action == "export" else "markdown",
                ),
                end="",
            )
    return OK


def _named(stores: Stores, handle: str) -> Session:
    session = find_session(stores, handle, owner="", roots=None)
    if session is None:
        what = (
            f"There is no session {handle}."
            if handle
            else "The command names no session."
        )
        raise UsageError(
            what,
            hint=f"Use one that `winnow sessions` lists, such as {SESSION_SCHEME}….",
        )
    return session


def row_of(session: Session) -> dict[str, object]:
    """Return the list entry of a session."""
    return {
        "session": session.handle,
        "asked": session.turns[-1].asked,
        "name": session.name,
        "question": session.turns[0].question,
        "questions": len(session.turns),
        "pages": len(session.pages),
        "passages": len(session.passages),
        "open": any(turn.open or not turn.parts for turn in session.turns),
    }


def _print_list(sessions: list[Session], *, as_json: bool) -> None:
    rows = list(map(row_of, sessions))
    if as_json:
        print_json(rows)
        return
    for row in rows:
        counts = f"{row['questions']} asked, {row['pages']} pages, {row['passages']} passages"
        name = row["name"] or row["question"]
        print(
            f"{row['session']}  {row['asked']}  {counts}{', open' if row['open'] else ''}: {name}"
        )


_INDEX: Final = "rows.json"
_VALUE_TYPES: Final[dict[str, Kind]] = {"json": b"J", "bytes": b"B"}
_STORE_OF_PREFIX: Final = {
    "session:": "sessions",
    "begun:": "sessions",
    "winnow://tree/": "trees",
}
"""Key prefixes in the private store, and their store if the cache is not shared."""


def write_backup(stores: Stores, path: Path) -> dict[str, int]:
    """Write every session and tree into a new file that its owner alone may read;
    return the entries by store.

    Raises `UsageError` if the file exists or cannot be created, `CacheError` if the
    cache fails.
    """
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        ) as file:
            return _write(stores, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))
    except FileExistsError as error:
        raise UsageError(
            f"{path} exists.", hint="Give the name of a new file."
        ) from error
    except BaseException as error:
        path.unlink(missing_ok=True)  # an incomplete backup must not remain
        if isinstance(error, OSError):
            why = error.strerror or error
            raise UsageError(
                f"{path} cannot be written: {why}.",
                hint="Give a file in another folder.",
            ) from error
        raise


def _write(stores: Stores, archive: zipfile.ZipFile) -> dict[str, int]:
    rows: list[list[object]] = []
    forms = {form: name for name, form in _VALUE_TYPES.items()}
    with archive:
        for kind, private, entry in _entries(stores):
            archive.writestr(str(len(rows)), entry.payload)
            until = None if math.isinf(entry.expires_at) else entry.expires_at
            rows.append([kind, private, entry.name, forms[entry.form], until])
        archive.writestr(_INDEX, json.dumps(rows))
    return dict(Counter(str(kind) for kind, *_ in rows))


def read_backup(stores: Stores, path: Path) -> dict[str, int]:
    """Restore a backup's entries that have not expired; return their number by store.

    Private entries never go to a shared store. After an error the entries before it
    stay restored. Raises `UsageError` for a file that is not a backup, `CacheError` if
    the cache fails.
    """
    taken: Counter[str] = Counter()
    try:
        with zipfile.ZipFile(path) as archive:
            for number, (kind, private, name, form, until) in enumerate(
                json.loads(archive.read(_INDEX))
            ):
                store = {"sessions": stores.sessions, "trees": stores.trees}[kind]
                store = stores.own if private and store.shared else store
                entry = Entry(
                    name,
                    _VALUE_TYPES[form],
                    math.inf if until is None else until,
                    archive.read(str(number)),
                )
                taken[kind] += store.keep(entry)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise UsageError(
            f"{path} is not a backup: {error}.",
            hint="Give a file that `winnow cache backup` wrote.",
        ) from error
    return dict(taken)


def _entries(stores: Stores) -> Iterator[tuple[str, bool, Entry]]:
    """Yield store name, whether it is private, and entry, for all entries to back
    up."""
    for kind, store in (("sessions", stores.sessions), ("trees", stores.trees)):
        yield from ((kind, not store.shared, entry) for entry in store.entries())
    if stores.sessions.shared:
        for entry in stores.own.entries():
            kind = next(
                (
                    kind
                    for start, kind in _STORE_OF_PREFIX.items()
                    if entry.name.startswith(start)
                ),
                "",
            )
            if kind:
                yield kind, True, entry
