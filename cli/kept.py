"""Maintenance of stored data: `winnow cache stats|clear|verify|path`, and `winnow
sessions show|export|remove HANDLE`.

Not for: continuing a session (`winnow research QUESTION --session HANDLE`), or naming
one: its handle comes with its first answer."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from cache.rows import CacheCheck
from cache.store import Stores, cache_trouble, store_text
from cli.output import FAILED, OK, show
from errors import UsageError
from pipeline.session.export import export
from pipeline.session.session import (
    SESSION_SCHEME,
    Session,
    find_session,
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


def look_after_cache(settings: Settings, action: str, *, as_json: bool) -> int:
    """Run one cache command (`stats`, `clear`, `verify`, `path`) and print its result.

    Returns 1 if the cache cannot be used, or was damaged (now repaired)."""
    with _opened(settings) as stores:
        report, healthy = _report(stores, action, as_json)
        if trouble := cache_trouble(stores.stats()):
            report["trouble"] = trouble
            healthy = False
    if action == "path" and not as_json:
        print(report["path"])
    else:
        show(report, as_json=as_json)
    return OK if healthy else FAILED


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
    """Show, export or remove a session; raises `UsageError` for an unknown one."""
    with _opened(settings) as stores:
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
        raise UsageError(
            f"There is no session {handle}.",
            hint=f"Use the handle that `winnow research` printed, {SESSION_SCHEME}….",
        )
    return session
