"""What `winnow doctor` looks at beside models, cache and folders: extras, browser, clients' files, the search address.

Not for: mending; each line says how.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from errors import UsageError
from pipeline.fetch.browser import find_browser
from server import clients
from server.clients import CLIENTS, Places
from server.settings import Settings

EXTRAS: Final = {
    "llama": ("llama_cpp", "GGUF models"),
    "flag": ("FlagEmbedding", "BGE-M3 and its reranker on torch"),
    "redis": ("redis", "a shared cache"),
    "browser": ("playwright", "pages that only scripts fill"),
    "otel": ("opentelemetry.sdk", "traces"),
    "ddgs": ("ddgs", "search without a key"),
}
WITHIN: Final = 3.0


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    line: str
    healthy: bool = True


async def check_up(settings: Settings, places: Places) -> list[Check]:
    """Return one line for each thing; not healthy is what was asked for by a setting and does not work."""
    return [
        _extras(),
        _browser(settings),
        *([await _searxng(settings.searxng)] if settings.searxng else []),
        _clients(places),
    ]


def _extras() -> Check:
    there = {extra: _installed(module) for extra, (module, _) in EXTRAS.items()}
    have = ", ".join(extra for extra, yes in there.items() if yes) or "none"
    lacking = "; ".join(f"{extra} for {EXTRAS[extra][1]}" for extra, yes in there.items() if not yes)
    more = f"; to be had by pip install 'winnow-mcp[NAME]': {lacking}" if lacking else ""
    return Check("extras", f"{have}{more}")


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is not there
        return False


def _browser(settings: Settings) -> Check:
    try:
        found = find_browser(settings.browser)
    except UsageError as error:
        return Check("browser", str(error), healthy=False)
    if found is None:
        return Check("browser", "off; WINNOW_BROWSER=auto renders pages that only scripts fill (extra browser)")
    return Check("browser", str(found))


async def _searxng(address: str) -> Check:
    try:
        async with httpx2.AsyncClient(timeout=WITHIN) as http:
            answer = await http.get(address)
    except httpx2.HTTPError as error:
        reason = str(error) or type(error).__name__
        return Check("searxng", f"{address} does not answer ({reason}); is it running there?", healthy=False)
    return Check("searxng", f"{address} answers with status {answer.status_code}")


def _clients(places: Places) -> Check:
    told = [f"{name} ({state})" for name in CLIENTS if (state := _state(name, places))]
    return Check("clients", ", ".join(told) or "Winnow is in none; winnow install CLIENT puts it there")


def _state(name: str, places: Places) -> str:
    path = clients.file_of(name, "user", places)
    if not path.exists():
        return ""
    try:
        entry = clients.entry_in(clients.read_config(path), CLIENTS[name].key)
    except UsageError:
        return f"{path} cannot be read as JSON"
    if entry is None:
        return ""
    command = entry.get("command")
    if isinstance(command, str) and Path(command).is_absolute() and not Path(command).exists():
        return f"its command {command} is gone; run winnow install {name} again"
    return "ready"
