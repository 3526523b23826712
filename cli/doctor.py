"""`winnow doctor`: check every part of an installation, and show how to fix what fails.

Models, cache and folders as the server opens them; then wheels, extras, browser,
clients, providers.
"""

import importlib
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import httpx2

from cache.store import cache_trouble
from cli.models import report_roles
from cli.output import FAILED, OK, Check, print_json
from cli.subcommand import subcommands
from cli.terminal import drawn_check, pen_for
from errors import UsageError, WinnowError, without_password
from extra import is_there
from pipeline.document.converted import can_recognise
from pipeline.fetch.cookies import Cookies
from pipeline.fetch.render import find_browser
from pipeline.search.provider import providers
from pipeline.session.export import exports
from seams import faults as faults_of_others
from server.clients import service_client
from server.reading import status_text
from server.settings import Settings, survey_settings
from server.version import VERSION
from server.wiring import KEYLESS_NOTICE, open_services, searched, without_faults

EXTRAS: Final = {
    "models": (
        "huggingface_hub",
        "model downloads, and tokenizers other than BERT's",
    ),
    "llama": ("llama_cpp", "GGUF models"),
    "flag": ("FlagEmbedding", "BGE-M3 and its reranker on torch"),
    "redis": ("redis", "a shared cache"),
    "browser": ("playwright", "pages that need JavaScript"),
    "otel": ("opentelemetry.sdk", "traces"),
    "ocr": ("rapidocr", "scanned pages and images"),
    "ddgs": ("ddgs", "search without a key"),
    "umap": ("umap", "dimension reduction before RAPTOR clustering"),
}
WHEELS: Final = {
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "lxml.etree": "lxml",
    "selectolax.lexbor": "selectolax",
    "Stemmer": "PyStemmer",
    "pydantic_core": "pydantic",
    "cryptography.hazmat.bindings._rust": "cryptography",
}
"""Required compiled modules, and their packages."""


async def doctor(given: Mapping[str, str], as_json: bool) -> int:
    """Check every part once and print the report; return 1 if a configured part fails.

    `given`: settings of the command line. Invalid settings are reported, and not used
    further.
    """
    settings, faults = survey_settings(given)
    checks = await examine(settings, faults)
    problems = [check.name for check in checks if not check.healthy]
    if as_json:
        print_json(
            {**{check.name: check.line for check in checks}, "problems": problems}
        )
    else:
        pen = pen_for(sys.stdout)
        for check in checks:
            print(drawn_check(check, pen))
        print(
            {0: "No problems", 1: "1 problem"}.get(
                len(problems), f"{len(problems)} problems"
            )
        )
    return FAILED if problems else OK


async def examine(settings: Settings, faults: Mapping[str, WinnowError]) -> list[Check]:
    """Check every part once; `faults`: invalid settings to error.

    Turns the log of the cache off for the rest of the process.
    """
    # The report contains the cache's warnings, so the log need not.
    logging.getLogger("cache").setLevel(logging.CRITICAL)
    warnings = settings.warnings()
    settings, more = await without_faults(settings)
    checks = [Check("winnow", f"{VERSION}, Python {sys.version.split()[0]}")]
    checks += [
        Check(f"setting {name}", str(error), healthy=False)
        for name, error in {**faults, **more}.items()
    ]
    checks += [
        Check(name, warning, healthy=False) for name, warning in warnings.items()
    ]
    roles = await report_roles(settings, tried=True)
    checks += [role for role in roles if role.name not in more]
    checks += await _services(settings)
    exports()  # forms of other packages that fail are among the faults below
    checks += [
        check_wheels(WHEELS),
        _extras(),
        _scans(),
        *([] if "browser" in more else [_browser(settings)]),
        *([] if "cookies" in more else [_cookies(settings)]),
        *await _providers(settings),
        *(Check(name, why, healthy=False) for name, why in faults_of_others.items()),
        *(check for command in subcommands() for check in command.checks()),
    ]
    return checks


async def _services(settings: Settings) -> list[Check]:
    """Return the checks of search providers, folders and cache; if they cannot be
    opened, one failed check `cache` with the reason."""
    try:
        async with open_services(settings) as services:
            lines = dict(
                line.split(": ", 1) for line in status_text(services).splitlines()
            )
            lines |= _how_searched(settings, services.chain.names)
            stores = services.stores.stats()
    except WinnowError as error:
        return [Check("cache", str(error), healthy=False)]
    entries = sum(one.entries for one in stores.values())
    size = sum(one.bytes for one in stores.values()) / 1e6
    trouble = cache_trouble(stores)
    cache = Check(
        "cache",
        trouble or f"{entries} entries, {size:.1f} MB, in {settings.cache}",
        healthy=not trouble,
    )
    names = ("search providers", "folders", "search")
    return [*(Check(name, lines[name]) for name in names if name in lines), cache]


def _how_searched(settings: Settings, names: Sequence[str]) -> dict[str, str]:
    """Return a hint on changing the search providers; {} if none is needed."""
    who = searched(settings)
    if not names:
        return {
            "search": "off; unset WINNOW_SEARCH, or set WINNOW_FOLDERS to your document folders"
        }
    if who.keyless:
        return {"search": KEYLESS_NOTICE}
    if not settings.search and not who.web:
        return {
            "search": "your folders only; WINNOW_SEARCH=keyless,folder also searches the web, without a key"
        }
    return {}


def check_wheels(wanted: Mapping[str, str]) -> Check:
    """Return whether the compiled modules `wanted` load; if not, which packages to
    reinstall."""
    broken = []
    for module, package in wanted.items():
        try:
            importlib.import_module(module)
        except (ImportError, OSError) as error:
            broken.append(
                f"{package} cannot be loaded ({error}); fix it with pip install "
                f"--force-reinstall {package}"
            )
    return Check("wheels", "; ".join(broken) or f"all {len(wanted)} load", not broken)


def _extras() -> Check:
    there = [extra for extra, (module, _) in EXTRAS.items() if is_there(module)]
    lacking = "; ".join(
        f"{extra} for {what}"
        for extra, (_, what) in EXTRAS.items()
        if extra not in there
    )
    more = (
        f"; available with pip install 'winnow-mcp[NAME]': {lacking}" if lacking else ""
    )
    return Check("extras", f"{', '.join(there) or 'none'}{more}")


def _scans() -> Check:
    """Return the check of text recognition (OCR)."""
    if not can_recognise():
        return Check(
            "scans",
            ("off; to read scanned pages and images: pip install 'winnow-mcp[ocr]'"),
        )
    loaded = check_wheels({"cv2": "opencv-python-headless", "rapidocr": "rapidocr"})
    return Check(
        "scans",
        "on: PDF pages without text, and images" if loaded.healthy else loaded.line,
        loaded.healthy,
    )


def _browser(settings: Settings) -> Check:
    try:
        found = find_browser(settings.browser)
    except UsageError as error:
        return Check("browser", str(error), healthy=False)
    off = "off; WINNOW_BROWSER=auto renders pages that need JavaScript (extra browser)"
    return Check("browser", str(found) if found else off)


def _cookies(settings: Settings) -> Check:
    if settings.cookies is None:
        return Check(
            "cookies",
            "none; WINNOW_COOKIES=FILE uses a browser's exported cookies.txt",
        )
    return Check(
        "cookies",
        f"in use; hosts: {Cookies(settings.cookies).hosts}; from {settings.cookies}",
    )


async def _providers(settings: Settings) -> list[Check]:
    """Check that each web provider in use responds; no key and no query is sent."""
    who = searched(settings)
    asked = (providers()[name] for name in (*who.web, *who.scholarly))
    wanted = {one.name: one.address for one in asked if one.address}
    wanted |= {"searxng": settings.searxng} if settings.searxng else {}
    checks: dict[str, Check] = {}

    async def look(name: str, address: str) -> None:
        checks[name] = await _answers(name, address)

    async with anyio.create_task_group() as group:
        for name, address in wanted.items():
            group.start_soon(look, name, address)
    found = [checks[name] for name in wanted]
    return judged_together(found) if who.keyless else found


def judged_together(providers: list[Check]) -> list[Check]:
    """Return the checks of keyless providers: all as healthy if at least one responds,
    else one failed check for all of them."""
    away = [check for check in providers if not check.healthy]
    if len(away) < len(providers):
        return [
            check
            if check.healthy
            else Check(
                check.name, check.line.rpartition("; ")[0] + "; the others are used"
            )
            for check in providers
        ]
    return [
        Check(
            "the web",
            (f"none of the {len(away)} providers responds; the first: {check.line}"),
            healthy=False,
        )
        for check in away[:1]
    ]


async def _answers(name: str, address: str) -> Check:
    try:
        async with service_client() as http:
            answer = await http.get(address)
    except httpx2.HTTPError as error:
        reason = without_password(str(error)) or type(error).__name__
        mend = (
            "is it running?"
            if name == "searxng"
            else "is this machine online, and does a firewall or proxy block it?"
        )
        return Check(
            name,
            f"{without_password(address)} does not respond ({reason}); {mend}",
            healthy=False,
        )
    return Check(
        name, f"{without_password(address)} responds with status {answer.status_code}"
    )
