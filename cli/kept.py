"""Maintenance of stored data: `winnow cache path|clear`, and `winnow
sessions show|export|remove HANDLE`.

Not for: continuing a session (`winnow research QUESTION --session HANDLE`), or naming
one: its handle comes with its first answer. Sessions of an HTTP server's callers are
found too, since who may read the cache may read them."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cache.store import Stores, cache_trouble
from cli.output import FAILED, OK, show
from cli.subcommand import settings_from
from errors import UsageError
from pipeline.session.export import export
from pipeline.session.session import (
    SESSION_SCHEME,
    Session,
    find_session,
    remove_session,
)
from server.wiring import open_cache


@contextmanager
def _opened(overrides: Mapping[str, str]) -> Iterator[Stores]:
    stores = open_cache(settings_from(overrides))
    try:
        yield stores
    finally:
        stores.close()


def look_after_cache(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Print where the cache is, after emptying it for `clear`.

    Returns 1 if the cache cannot be used."""
    with _opened(overrides) as stores:
        report: dict[str, object] = {"path": stores.place}
        if args.action == "clear":
            report["cleared"] = f"{stores.clear()} entries"
        if trouble := cache_trouble(stores.stats()):
            report["trouble"] = trouble
    if args.action == "path" and not args.json:
        print(stores.place)
    else:
        show(report, as_json=args.json)
    return FAILED if trouble else OK


def look_after_sessions(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Show, export or remove a session; raises `UsageError` for an unknown one."""
    with _opened(overrides) as stores:
        session = _named(stores, args.handle)
        if args.action == "remove":
            remove_session(stores, session)
            show({"removed": session.handle}, as_json=args.json)
        else:
            form = args.format if args.action == "export" else "markdown"
            print(export(session, "json" if args.json else form), end="")
    return OK


def _named(stores: Stores, handle: str) -> Session:
    session = find_session(stores, handle, owner=None, roots=None)
    if session is None:
        raise UsageError(
            f"There is no session {handle} in the cache {stores.place}.",
            hint=f"Use the handle that its answers name, {SESSION_SCHEME}…, and the "
            "settings WINNOW_CACHE and WINNOW_CACHE_URL of the server that gave it.",
        )
    return session
