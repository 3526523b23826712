"""What `winnow doctor` looks at beside models, cache and folders: wheels, extras, browser, clients, search addresses.

Not for: mending; each line says how.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import httpx2

from cli import clients
from cli.clients import CLIENTS, Places
from errors import UsageError
from pipeline.fetch.render import find_browser
from pipeline.search.providers.services import SERVICES, WIKIPEDIA
from server.settings import Settings

EXTRAS: Final = {
    "llama": ("llama_cpp", "GGUF models"),
    "flag": ("FlagEmbedding", "BGE-M3 and its reranker on torch"),
    "redis": ("redis", "a shared cache"),
    "browser": ("playwright", "pages that only scripts fill"),
    "otel": ("opentelemetry.sdk", "traces"),
    "ddgs": ("ddgs", "search without a key"),
}
WHEELS: Final = {
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "tokenizers": "tokenizers",
    "lxml.etree": "lxml",
    "selectolax.lexbor": "selectolax",
    "Stemmer": "PyStemmer",
    "pydantic_core": "pydantic",
    "cryptography.hazmat.bindings._rust": "cryptography",
}
"""Compiled modules that everything needs, and the packages that bring them."""
ADDRESSES: Final = {
    **{name: service.address for name, service in SERVICES.items()},
    "wikipedia": WIKIPEDIA.format(language="en"),
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
    return [check_wheels(WHEELS), _extras(), _browser(settings), *await _providers(settings), _clients(places)]


def check_wheels(wanted: Mapping[str, str]) -> Check:
    """Return whether the compiled modules `wanted` load, and which packages to install anew where they do not."""
    broken = []
    for module, package in wanted.items():
        try:
            importlib.import_module(module)
        except (ImportError, OSError) as error:
            broken.append(f"{package} cannot be loaded ({error}); mend it with pip install --force-reinstall {package}")
    return Check("wheels", "; ".join(broken) or f"all {len(wanted)} load", healthy=not broken)


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


async def _providers(settings: Settings) -> list[Check]:
    """Ask each provider on the web that will be searched whether it answers at all; no key and no query is sent."""
    keys = {name: getattr(settings, f"{name}_key") for name in ("brave", "tavily", "exa", "serper")}
    names = settings.search or tuple(name for name, key in keys.items() if key)
    wanted = {name: ADDRESSES[name] for name in names if name in ADDRESSES}
    wanted |= {"searxng": settings.searxng} if settings.searxng else {}
    checks: dict[str, Check] = {}

    async def look(name: str, address: str) -> None:
        checks[name] = await _answers(name, address)

    async with anyio.create_task_group() as group:
        for name, address in wanted.items():
            group.start_soon(look, name, address)
    return [checks[name] for name in wanted]


async def _answers(name: str, address: str) -> Check:
    try:
        async with httpx2.AsyncClient(timeout=WITHIN) as http:
            answer = await http.get(address)
    except httpx2.HTTPError as error:
        reason = str(error) or type(error).__name__
        mend = "is it running there?" if name == "searxng" else "is this machine on the web, and is it let through?"
        return Check(name, f"{address} does not answer ({reason}); {mend}", healthy=False)
    return Check(name, f"{address} answers with status {answer.status_code}")


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
