"""Maintenance of stored data: `winnow cache path|clear`, and `winnow
sessions show|export|remove HANDLE`.

Not for: continuing a session (`winnow research QUESTION --session HANDLE`), or naming
one: its handle comes with its first answer."""

from collections.abc import Iterator
from contextlib import contextmanager

from cache.store import Stores, cache_trouble
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
    """Print where the cache is, after emptying it for `clear`.

    Returns 1 if the cache cannot be used."""
    with _opened(settings) as stores:
        report: dict[str, object] = {"path": stores.place}
        if action == "clear":
            report["cleared"] = f"{stores.clear()} entries"
        if trouble := cache_trouble(stores.stats()):
            report["trouble"] = trouble
    if action == "path" and not as_json:
        print(stores.place)
    else:
        show(report, as_json=as_json)
    return FAILED if trouble else OK


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
