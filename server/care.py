"""Looking after an installation: `winnow models`, `winnow cache`, `winnow doctor`.

Not for: answering questions.
"""

import json
import sys
import time
from typing import Final

from cache.stores import open_stores
from errors import WinnowError
from server.settings import Settings
from server.status import status_text
from server.version import VERSION
from server.wiring import open_services

PROBE: Final = "A ferry leaves the harbour at noon."


def _show(data: dict[str, object], as_json: bool) -> None:
    if as_json:
        print(json.dumps(data, ensure_ascii=False, indent=2))
    else:
        for key, value in data.items():
            print(f"{key}: {value}")


async def show_models(settings: Settings, as_json: bool) -> int:
    """Print which model has which role and why; return the exit code."""
    async with open_services(settings) as services:
        _show(dict(services.model_reasons), as_json)
    return 0


def show_cache(settings: Settings, *, clear: bool, as_json: bool) -> int:
    """Print the size of each store, or empty them first; return the exit code."""
    stores = open_stores(settings.cache, size_limit=settings.cache_mb * 1_000_000, clock=time.time)
    try:
        if clear:
            stores.clear()
        data: dict[str, object] = {"folder": str(settings.cache)}
        for kind, stats in stores.stats().items():
            data[kind] = f"{stats.entries} entries, {stats.bytes / 1e6:.1f} MB"
        _show(data, as_json)
    finally:
        stores.close()
    return 0


async def doctor(settings: Settings, as_json: bool) -> int:
    """Try every part once and print what works; return 1 if a part that is set up does not."""
    report: dict[str, object] = {"winnow": VERSION, "python": sys.version.split()[0]}
    healthy = True
    async with open_services(settings) as services:
        for line in status_text(services).splitlines():
            key, _, value = line.partition(": ")
            report[key] = value
        if services.embedder is not None:
            started = time.perf_counter()
            try:
                await services.embedder.embed([PROBE], kind="passage")
                report["embedding"] = f"works, {1000 * (time.perf_counter() - started):.0f} ms with loading"
            except WinnowError as error:
                report["embedding"] = str(error)
                healthy = False
        if not services.chain.names:
            report["search"] = "no provider: set WINNOW_FOLDERS to document folders, or WINNOW_SEARXNG to an instance"
    _show(report, as_json)
    return 0 if healthy else 1
