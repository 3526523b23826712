"""Looking after the cache from the command line: `winnow cache stats|clear|verify|path`.

Not for: what a running server tells of its cache (`server/status.py`).
"""

import dataclasses
import json
import time
from typing import Final

from cache.stores import Stores, open_stores
from server.reading import cache_trouble, store_text
from server.settings import Settings

ACTIONS: Final = ("stats", "clear", "verify", "path")


def care_for_cache(settings: Settings, action: str, *, as_json: bool) -> int:
    """Do one of `ACTIONS` and print what came of it.

    Returns:
        0, or 1 when the cache cannot be used, or when `verify` found damage (which it has removed then).

    Raises:
        WinnowError: A cache server is set that cannot be understood, or its package is missing.
    """
    stores = open_stores(
        settings.cache, size_limit=settings.cache_mb * 1_000_000, clock=time.time, url=settings.cache_url
    )
    try:
        report, healthy = _report(stores, action)
        if trouble := cache_trouble(stores.stats()):
            report["trouble"] = trouble
            healthy = False
    finally:
        stores.close()
    if as_json:
        print(json.dumps(report, ensure_ascii=False, indent=2))
    elif action == "path":
        print(report["path"])
    else:
        for key, value in report.items():
            print(f"{key}: {_line(value)}")
    return 0 if healthy else 1


def _report(stores: Stores, action: str) -> tuple[dict[str, object], bool]:
    report: dict[str, object] = {"path": stores.place}
    if action == "clear":
        report["cleared"] = f"{stores.clear()} entries"
    if action == "verify":
        found = stores.verify()
        report.update((kind, dataclasses.asdict(checked)) for kind, checked in found.items())
        return report, not any(checked.damaged for checked in found.values())
    if action in ("stats", "clear"):
        report.update((kind, store_text(stats)) for kind, stats in stores.stats().items())
    return report, True


def _line(value: object) -> str:
    """A count of `verify` as words, anything else as it is."""
    if not isinstance(value, dict):
        return str(value)
    counts = ", ".join(f"{count} {name}" for name, count in value.items() if name != "note")
    removed = " (removed)" if value["damaged"] or value["expired"] or value["orphans"] else ""
    return f"{counts}{removed}{'; ' + str(value['note']) if value['note'] else ''}"
