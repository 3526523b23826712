"""Looking after the cache from the command line: `winnow cache stats|clear|verify|path`."""

import dataclasses
import time
from typing import Final

from cache.rows import Checked
from cache.stores import Stores, open_stores
from cli.output import FAILED, OK, show
from server.reading import cache_trouble, store_text
from server.settings import MEGABYTE, Settings

ACTIONS: Final = ("stats", "clear", "verify", "path")


def look_after_cache(settings: Settings, action: str, *, as_json: bool) -> int:
    """Do one of `ACTIONS` and print what came of it.

    Returns:
        0, or 1 when the cache cannot be used, or when `verify` found damage (which it has removed then).
    """
    size = settings.cache_mb * MEGABYTE
    stores = open_stores(settings.cache, size_limit=size, clock=time.time, url=settings.cache_url)
    try:
        report, healthy = _report(stores, action, as_json)
        if trouble := cache_trouble(stores.stats()):
            report["trouble"] = trouble
            healthy = False
    finally:
        stores.close()
    if action == "path" and not as_json:
        print(report["path"])
    else:
        show(report, as_json=as_json)
    return OK if healthy else FAILED


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
