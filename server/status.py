"""What this server has: models with the reason for each, providers, cache, folders.

Shown by the resource `winnow://status` and by `winnow doctor`. Not for: measuring anything.
"""

from cache.store import StoreStats
from pipeline.services import Services


def status_text(services: Services) -> str:
    """Return the status as lines a person reads."""
    lines = [f"{role}: {reason}" for role, reason in services.model_reasons.items()]
    providers = ", ".join(services.chain.names) or "none"
    lines.append(f"search providers: {providers}")
    folders = ", ".join(str(root) for root in services.roots) or "none (set WINNOW_FOLDERS)"
    lines.append(f"folders: {folders}")
    stores = services.stores.stats()
    lines.extend(f"cache {kind}: {store_text(stats)}" for kind, stats in stores.items())
    lines.append(f"cache: {cache_trouble(stores) or 'works'}")
    return "\n".join(lines)


def store_text(stats: StoreStats) -> str:
    """Return what a store holds and how it has fared since this process began, on one line."""
    if stats.away:
        return f"NOT USED, answers are worked out anew each time: {stats.away}"
    count = f"{'over ' if stats.partial else ''}{stats.entries} entries, {stats.bytes / 1e6:.1f} MB"
    seen = f"{stats.hits} hits, {stats.misses} misses"
    moved = f"{stats.bytes_read / 1e6:.1f} MB read, {stats.bytes_written / 1e6:.1f} MB written"
    trouble = f"; {stats.problems} problems, the last: {stats.last_problem}" if stats.problems else ""
    note = f"; {stats.note}" if stats.note else ""
    return f"{count}; since start {seen}, {moved}{trouble}{note}"


def cache_trouble(stores: dict[str, StoreStats]) -> str:
    """Return what is wrong with the cache on one line, nothing when it works."""
    away = {kind: stats.away for kind, stats in stores.items() if stats.away}
    failed = {kind: stats.last_problem for kind, stats in stores.items() if stats.problems and not stats.away}
    if away:
        return f"NOT USED for {', '.join(away)}; Winnow works on without it. {next(iter(away.values()))}"
    if failed:
        return f"had trouble with {', '.join(failed)}; Winnow worked on without it. {next(iter(failed.values()))}"
    return ""
