"""Backup and restore of what cannot be fetched again: sessions and trees, from any cache to any other.

A backup is a ZIP file: `rows.json` lists store, name, form and moment of expiry of each entry, and a member holds the
entry's bytes. Not for: pages, searches, vectors and scores, which come again by themselves.
"""

import json
import math
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cache.rows import Entry, Kind
from cache.store import Stores
from errors import UsageError

_INDEX: Final = "rows.json"
_FORMS: Final[dict[str, Kind]] = {"json": b"J", "bytes": b"B"}
_OWN: Final = {"session:": "sessions", "begun:": "sessions", "winnow://tree/": "trees"}
"""Beginnings of names in the store of private things, and the store that they have where nobody else reads any."""


def write_backup(stores: Stores, path: Path) -> dict[str, int]:
    """Write every session and tree into a new file that its owner alone may read; return the entries by store.

    Raises `UsageError` where the file exists or cannot be made, `CacheError` where the cache cannot be used.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            return _write(stores, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))
    except FileExistsError as error:
        raise UsageError(f"{path} exists.", hint="Name a new file.") from error
    except BaseException as error:
        path.unlink(missing_ok=True)  # half a backup must not be taken for one
        if isinstance(error, OSError):
            why = error.strerror or error
            raise UsageError(f"{path} cannot be written: {why}.", hint="Name a file in another folder.") from error
        raise


def _write(stores: Stores, archive: zipfile.ZipFile) -> dict[str, int]:
    rows: list[list[object]] = []
    forms = {form: name for name, form in _FORMS.items()}
    with archive:
        for kind, private, entry in _entries(stores):
            archive.writestr(str(len(rows)), entry.payload)
            until = None if math.isinf(entry.expires_at) else entry.expires_at
            rows.append([kind, private, entry.name, forms[entry.form], until])
        archive.writestr(_INDEX, json.dumps(rows))
    return dict(Counter(str(kind) for kind, *_ in rows))


def read_backup(stores: Stores, path: Path) -> dict[str, int]:
    """Add what a backup holds and has not expired; return the entries by store.

    What others could not read where it came from goes into no store that others read.
    Raises `UsageError` for a file that is no backup, `CacheError` where the cache cannot be used.
    """
    taken: Counter[str] = Counter()
    try:
        with zipfile.ZipFile(path) as archive:
            for number, (kind, private, name, form, until) in enumerate(json.loads(archive.read(_INDEX))):
                store = {"sessions": stores.sessions, "trees": stores.trees}[kind]
                store = stores.own if private and store.shared else store
                entry = Entry(name, _FORMS[form], math.inf if until is None else until, archive.read(str(number)))
                taken[kind] += store.keep(entry)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise UsageError(
            f"{path} is no backup: {error}.", hint="Name a file that `winnow cache backup` wrote."
        ) from error
    return dict(taken)


def _entries(stores: Stores) -> Iterator[tuple[str, bool, Entry]]:
    """Yield store, whether it is this machine's alone, entry; of the private store what belongs here."""
    for kind, store in (("sessions", stores.sessions), ("trees", stores.trees)):
        yield from ((kind, not store.shared, entry) for entry in store.entries())
    if stores.sessions.shared:
        for entry in stores.own.entries():
            kind = next((kind for start, kind in _OWN.items() if entry.name.startswith(start)), "")
            if kind:
                yield kind, True, entry
