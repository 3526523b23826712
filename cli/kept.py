"""Looking after what is kept: `winnow cache stats|clear|verify|path|backup|restore`, and
`winnow sessions list|show|export|remove`.

Sessions are those that were begun on this machine; a session of an HTTP client is its token's alone. Not for: going on
with one, which `winnow research QUESTION --session HANDLE` does.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cache.backup import read_backup, write_backup
from cache.rows import Checked
from cache.store import Stores
from cli.output import FAILED, OK, print_json, show
from errors import UsageError
from pipeline.evidence.export import export
from pipeline.session import SCHEME, Session, find_session, list_sessions, remove_session
from server.reading import cache_trouble, store_text
from server.settings import Settings
from server.wiring import open_cache


@contextmanager
def _opened(settings: Settings) -> Iterator[Stores]:
    stores = open_cache(settings)
    try:
        yield stores
    finally:
        stores.close()


def look_after_cache(settings: Settings, action: str, file: Path | None, *, as_json: bool) -> int:
    """Do `stats`, `clear`, `verify`, `path`, or `backup` to and `restore` from a file, and print what came of it.

    Returns 1 when the cache cannot be used, or had damage, now removed. Raises `UsageError` for a file that cannot be.
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
        raise UsageError("No file is named.", hint=f"Write `winnow cache {action} FILE`.")
    counts = write_backup(stores, file) if action == "backup" else read_backup(stores, file)
    return {"path": stores.place, "file": str(file), **{kind: f"{count} entries" for kind, count in counts.items()}}


def _report(stores: Stores, action: str, as_json: bool) -> tuple[dict[str, object], bool]:
    report: dict[str, object] = {"path": stores.place}
    if action == "verify":
        found = stores.verify()
        report |= {kind: dataclasses.asdict(checked) if as_json else _line(checked) for kind, checked in found.items()}
        return report, not any(checked.damaged for checked in found.values())
    if action == "clear":
        report["cleared"] = f"{stores.clear()} entries"
    if action != "path":
        report |= {kind: store_text(stats) for kind, stats in stores.stats().items()}
    return report, True


def _line(checked: Checked) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in dataclasses.asdict(checked).items() if name != "note")
    removed = " (removed)" if checked.damaged or checked.expired or checked.orphans else ""
    return f"{counts}{removed}{'; ' + checked.note if checked.note else ''}"


def look_after_sessions(settings: Settings, action: str, handle: str, *, form: str, as_json: bool) -> int:
    """List the sessions, or show, export or remove one; raises `UsageError` where this machine has no such session."""
    with _opened(settings) as stores:
        if action == "list":
            _print_list(list_sessions(stores), as_json=as_json)
            return OK
        session = _named(stores, handle)
        if action == "remove":
            remove_session(stores, session)
            show({"removed": session.handle}, as_json=as_json)
        else:
            print(export(session, "json" if as_json else form if action == "export" else "markdown"), end="")
    return OK


def _named(stores: Stores, handle: str) -> Session:
    session = find_session(stores, handle, owner="", roots=None)
    if session is None:
        what = f"There is no session {handle} here." if handle else "No session is named."
        raise UsageError(what, hint=f"Name one that `winnow sessions` lists, such as {SCHEME}….")
    return session


def row_of(session: Session) -> dict[str, object]:
    """Return what a list says of a session."""
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
        print(f"{row['session']}  {row['asked']}  {counts}{', open' if row['open'] else ''}: {name}")
