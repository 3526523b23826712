"""`winnow doctor`: check every part of an installation, and show how to fix what fails.

Models, cache and folders as the server opens them; then wheels, extras, browser,
clients, providers.
"""

import argparse
import importlib
import logging
import platform
import sys
from collections.abc import Mapping, Sequence
from itertools import filterfalse
from typing import Final

import anyio
import httpx2

from cache.store import cache_trouble
from cli.models import report_roles
from cli.output import FAILED, OK, Check, print_json
from cli.subcommand import subcommands
from errors import (
    UsageError,
    WinnowError,
    how_to_add,
    installer,
    without_password,
)
from extra import PACKAGES, lacking
from pipeline.fetch.cookies import Cookies
from pipeline.fetch.render import find_browser
from pipeline.search.provider import providers
from pipeline.session.export import exports
from readers.converted import can_recognise
from seams import faults as faults_of_others
from server.clients import service_client
from server.settings import (
    SETTINGS_TABLE,
    Settings,
    folder_list,
    read_settings,
    survey_settings,
)
from server.version import VERSION
from server.wiring import KEYLESS_NOTICE, open_services, searched, without_faults

WHEELS: Final = {
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "lxml.etree": "lxml",
    "selectolax.lexbor": "selectolax",
    "Stemmer": "PyStemmer",
    "pydantic_core": "pydantic",
    "cryptography.hazmat.bindings._rust": "cryptography",
    "sentencepiece._sentencepiece": "sentencepiece",
}
"""Required compiled modules, and their packages."""


PUBLIC_NAMES: Final = {
    *(
        "winnow",
        "embedder",
        "reader",
        "reranker",
        "generator",
        "search providers",
        "folders",
    ),
    *("search", "cache", "wheels", "extras", "scans", "browser", "cookies", "clients"),
}
"""Checks whose names are the same for everybody; others hold paths and addresses."""


def doctor(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Check every part once and print the report; return 1 if a configured part fails.

    `overrides`: settings of the command line. Invalid settings are reported, and not used
    further.
    """
    settings, faults = survey_settings(overrides, listed=folder_list())
    checks = anyio.run(examine, settings, faults)
    problems = [check.name for check in checks if not check.healthy]
    if args.report:
        print("\n".join(public_report(settings, checks)))
    elif args.json:
        lines = {check.name: check.line for check in checks}
        print_json({**lines, "problems": problems})
    else:
        for check in checks:
            print(f"{'✓' if check.healthy else '✗'} {check.name}: {check.line}")
        count = len(problems) or "No"
        print(f"{count} problem{'s' * (count != 1)}")
    return FAILED if problems else OK


def public_report(settings: Settings, checks: Sequence[Check]) -> list[str]:
    """Return lines for an issue that anybody reads: versions, extras, names of settings
    that are not the default, and which parts fail; nothing that a person named."""
    usual = read_settings({}, {})
    names = [setting.name for setting in SETTINGS_TABLE]
    public = PUBLIC_NAMES | {f"setting {name}" for name in names}
    changed = [
        name for name in names if getattr(settings, name) != getattr(usual, name)
    ]
    system = f"{sys.platform} {platform.machine()}"
    return [
        f"winnow {VERSION}, Python {platform.python_version()}, {system}",
        f"extras: {', '.join(filterfalse(lacking, PACKAGES)) or 'none'}",
        f"settings: {', '.join(changed) or 'none'}",
        *(
            f"{'ok' if check.healthy else 'fails'}: "
            f"{check.name if check.name in public else 'another part'}"
            for check in checks
        ),
    ]


async def examine(settings: Settings, faults: Mapping[str, WinnowError]) -> list[Check]:
    """Check every part once; `faults`: invalid settings to error.

    Turns the log of the cache off for the rest of the process.
    """
    # The report contains the cache's warnings, so the log need not.
    logging.getLogger("winnow.cache").setLevel(logging.CRITICAL)
    warnings = settings.warnings()
    settings, unusable = await without_faults(settings)
    faults = {**faults, **unusable}
    roles = await report_roles(settings, tried=True)
    services = await _services(settings)
    exports()  # forms of other packages that fail are among the faults below
    return [
        Check("winnow", f"{VERSION}, Python {sys.version.split()[0]}"),
        *(Check(f"setting {name}", str(why), False) for name, why in faults.items()),
        *(Check(name, warning, False) for name, warning in warnings.items()),
        *(role for role in roles if role.name not in unusable),
        *services,
        check_wheels(WHEELS),
        _extras(),
        _scans(),
        *([] if "browser" in unusable else [_browser(settings)]),
        *([] if "cookies" in unusable else [_cookies(settings)]),
        *await _providers(settings),
        *(Check(name, why, False) for name, why in faults_of_others.items()),
        *(check for command in subcommands() for check in command.checks()),
    ]


async def _services(settings: Settings) -> list[Check]:
    """Return the checks of search providers, folders and cache; if they cannot be
    opened, one failed check `cache` with the reason."""
    try:
        async with open_services(settings) as services:
            names = services.chain.names
            stores = services.stores.stats()
    except WinnowError as error:
        return [Check("cache", str(error), healthy=False)]
    folders = ", ".join(map(str, settings.folders)) or "none; winnow folders add DIR"
    checks = [
        Check("search providers", ", ".join(names) or "none"),
        Check("folders", folders),
    ]
    if hint := _search_hint(settings, names):
        checks.append(Check("search", hint))
    entries = sum(store.entries for store in stores.values())
    size = sum(store.bytes for store in stores.values()) / 1e6
    trouble = cache_trouble(stores)
    line = trouble or f"{entries} entries, {size:.1f} MB, in {settings.cache}"
    return [*checks, Check("cache", line, healthy=not trouble)]


def _search_hint(settings: Settings, names: Sequence[str]) -> str:
    """Return a hint on changing the search providers; "" if none is needed."""
    chosen = searched(settings)
    if not names:
        return "off; winnow folders add DIR, or unset WINNOW_SEARCH and WINNOW_WEB"
    if chosen.keyless:
        return KEYLESS_NOTICE
    if not settings.search and not chosen.web:
        return "your folders only; WINNOW_SEARCH=keyless,folder adds the web"
    return ""


def check_wheels(packages: Mapping[str, str]) -> Check:
    """Return whether compiled modules (to their `packages`) load; if not, which
    packages to reinstall."""
    broken = []
    for module, package in packages.items():
        try:
            importlib.import_module(module)
        except (ImportError, OSError) as error:
            broken.append(
                f"{package} cannot be loaded ({error}); fix it with {installer()} "
                f"--force-reinstall {package}"
            )
    line = "; ".join(broken) or f"all {len(packages)} load"
    return Check("wheels", line, not broken)


def _extras() -> Check:
    installed = [extra for extra in PACKAGES if not lacking(extra)]
    absent = ", ".join(extra for extra in PACKAGES if extra not in installed)
    hint = f"; not: {absent}; {how_to_add('NAME')} adds one" if absent else ""
    return Check("extras", f"{', '.join(installed) or 'none'}{hint}")


def _scans() -> Check:
    """Return the check of text recognition (OCR)."""
    if not can_recognise():
        return Check("scans", f"off; {how_to_add('ocr')} reads them")
    loaded = check_wheels({"cv2": "opencv-python-headless", "rapidocr": "rapidocr"})
    line = "on: PDF pages without text, and images" if loaded.healthy else loaded.line
    return Check("scans", line, loaded.healthy)


def _browser(settings: Settings) -> Check:
    try:
        path = find_browser(settings.browser)
    except UsageError as error:
        return Check("browser", str(error), healthy=False)
    off = "off; WINNOW_BROWSER=auto renders pages that need JavaScript (extra browser)"
    return Check("browser", str(path) if path else off)


def _cookies(settings: Settings) -> Check:
    if settings.cookies is None:
        return Check(
            "cookies", "none; WINNOW_COOKIES=FILE uses a browser's cookies.txt"
        )
    hosts = Cookies(settings.cookies).hosts
    return Check("cookies", f"in use; hosts: {hosts}; from {settings.cookies}")


async def _providers(settings: Settings) -> list[Check]:
    """Check that each web provider in use responds; no key and no query is sent.

    Keyless ones are healthy if at least one of them responds."""
    chosen = searched(settings)
    in_use = (providers()[name] for name in (*chosen.web, *chosen.scholarly))
    addresses = {provider.name: provider.address for provider in in_use}
    if settings.searxng:
        addresses["searxng"] = settings.searxng
    checks: dict[str, Check] = {}

    async def look(name: str, address: str) -> None:
        checks[name] = await _responds(name, address)

    async with anyio.create_task_group() as group:
        for name, address in addresses.items():
            if address:
                group.start_soon(look, name, address)
    ordered = [checks[name] for name in addresses if name in checks]
    if chosen.keyless and any(check.healthy for check in ordered):
        return [check._replace(healthy=True) for check in ordered]
    return ordered


async def _responds(name: str, address: str) -> Check:
    address_text = without_password(address)
    try:
        async with service_client() as http:
            response = await http.get(address)
    except httpx2.HTTPError as error:
        reason = without_password(str(error)) or type(error).__name__
        line = f"{address_text} does not respond ({reason}); is it running, and are you online?"
        return Check(name, line, healthy=False)
    return Check(name, f"{address_text} responds with status {response.status_code}")
