"""What this server has: models with the reason for each, providers, cache, folders.

Shown by the resource `winnow://status` and by `winnow doctor`. Not for: measuring anything.
"""

from pipeline.services import Services


def status_text(services: Services) -> str:
    """Return the status as lines a person reads."""
    lines = [f"{role}: {reason}" for role, reason in services.model_reasons.items()]
    providers = ", ".join(services.chain.names) or "none"
    lines.append(f"search providers: {providers}")
    folders = ", ".join(str(root) for root in services.roots) or "none (set WINNOW_FOLDERS)"
    lines.append(f"folders: {folders}")
    for kind, stats in services.stores.stats().items():
        lines.append(f"cache {kind}: {stats.entries} entries, {stats.bytes / 1e6:.1f} MB")
    return "\n".join(lines)
