"""Builds the services from the settings; the only place where parts are chosen and
combined.

Not for: what the parts do.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import date
from typing import Any, Final, NamedTuple, get_args
from urllib.parse import parse_qsl, urlencode

import httpx2

from cache.server import check_address
from cache.store import Stores, open_stores
from errors import BrokenExtra, MissingExtra, WinnowError
from extra import require
from models.backend import Resources
from models.catalogue import Role
from models.choose import Chosen, choose
from models.protocols import CrossEncoder, Embedder, Generator, HeldModel, Reranker
from pipeline.cached_models import CachedCrossEncoder, CachedReranker, cached_embedder
from pipeline.conversion.converter import Converter
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.cookies import Cookies
from pipeline.fetch.files import Files
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.page_source import known_sites
from pipeline.fetch.proxy import parse_proxy
from pipeline.fetch.render import Browser, find_browser
from pipeline.printed import printed
from pipeline.reading.extract import Extractor
from pipeline.search.chain import Chain, Searcher
from pipeline.search.folder import FolderProvider
from pipeline.search.provider import Access, providers
from pipeline.services import Addresses, Once, Services
from pipeline.work import STEP_SHARE, in_thread
from server.clients import service_client
from server.settings import (
    CATALOGUES,
    KEYLESS,
    MEGABYTE,
    Http,
    Papers,
    Settings,
)
from server.shared import Shared

_Try = Callable[[Settings, httpx2.AsyncClient], Any]
_log: Final = logging.getLogger("winnow.wiring")
CACHE_BYTES: Final = 1_024 * MEGABYTE
"""Most bytes of the cache; the oldest entries are removed first."""
KEYLESS_NOTICE: Final = (
    "No search provider is set, so keyless ones were used. WINNOW_SEARXNG or a key "
    "such as WINNOW_KEYS=brave=KEY finds more; WINNOW_SEARCH=none turns web search off."
)


def open_cache(settings: Settings) -> Stores:
    """Open the stores of the cache. Raises `MissingExtra` or `BrokenExtra` for the
    package `redis`, `CacheError` for an invalid WINNOW_CACHE_URL; an unusable folder or
    server is reported in `stats()` instead."""
    url, _, query = settings.cache_url.partition("?")
    options = dict(parse_qsl(query))
    private, secret = options.pop("private", ""), options.pop("secret", "")
    return open_stores(
        settings.cache,
        size_limit=CACHE_BYTES,
        clock=time.time,
        url=f"{url}?{urlencode(options)}" if options else url,
        private=private == "true",
        secret=secret,
    )


@asynccontextmanager
async def open_services(
    settings: Settings, shared: Shared | None = None
) -> AsyncIterator[Services]:
    """Open cache, network and models; close them in the opposite order, save what is
    `shared`.

    Raises `CacheError` or `UsageError` for settings that cannot be understood,
    `MissingExtra` or `BrokenExtra` for those that need a package."""
    async with AsyncExitStack() as stack:
        shared = shared or Shared(stack)
        # In a thread: another process may hold a database, a server may be slow to refuse.
        stores = await in_thread(open_cache, settings)
        stack.callback(stores.close)
        if settings.folders and stores.trees.shared:
            # Model outputs are cached by content, so those of private files stay on
            # this machine.
            stores = replace(stores, embeddings=stores.own, scores=stores.own)
        http = await stack.enter_async_context(service_client(settings.seconds))
        limits = _fetch_limits(settings)
        chromium = find_browser(settings.browser)
        converter = _converter(shared).keeping_in(stores.own)
        files = Files(
            settings.folders,
            store=stores.own,
            converter=converter,
            max_bytes=limits.max_bytes,
        )
        fetcher = await stack.enter_async_context(
            open_fetcher(
                limits,
                pages=stores.pages,
                files=files,
                clock=time.time,
                browser=Browser(chromium) if chromium else None,
            )
        )
        models = await open_models(settings, shared)
        embedder, reader = models.embedder.model, models.reader.model
        reranker, generator = models.reranker.model, models.generator.model
        folder = await stack.enter_async_context(
            _open_folder(settings, stores, files, embedder)
        )
        chain = _chain(settings, stores, http, folder)
        reasons = {role: chosen.reason for role, chosen in models._asdict().items()}
        scores = stores.scores
        yield Services(
            fetcher=fetcher,
            chain=chain,
            stores=stores,
            embedder=cached_embedder(embedder, stores.embeddings) if embedder else None,
            cross_encoder=CachedCrossEncoder(reader, scores) if reader else None,
            reranker=CachedReranker(reranker, scores) if reranker else None,
            generator=generator,
            roots=settings.folders,
            folder=folder,
            today=date.today,
            model_reasons=reasons,
            seconds=settings.seconds,
            pruning=settings.papers.pruning,
            extractor=_extractor(settings, generator),
            idms=settings.papers.idms,
            clustering=settings.papers.clustering,
            notice=Once(KEYLESS_NOTICE if searched(settings).keyless else ""),
            addresses=Addresses(any_may=_may_name_any(settings)),
        )


async def without_faults(settings: Settings) -> tuple[Settings, dict[str, WinnowError]]:
    """Return `settings` without those that `open_services` would refuse, and name to
    error.

    Chooses every part; loads no model and sends no request.
    """
    faults: dict[str, WinnowError] = {}
    async with service_client() as http:
        for name, (try_it, off) in _TRIED.items():
            try:
                try_it(settings, http)
            except WinnowError as error:
                faults[name] = error
                settings = replace(settings, **{name: off})
    return settings, faults


def _need_metrics(settings: Settings, _: httpx2.AsyncClient) -> None:
    if settings.http.metrics:
        require("metrics", "WINNOW_HTTP=metrics=…")


def _try_papers(settings: Settings, http: httpx2.AsyncClient) -> None:
    """Raise `UsageError` for an extractor that the generator does not support,
    `MissingExtra` for the paper's clusters without their extra."""
    generator = choose("generator", settings.generator, _resources(settings, http))
    _extractor(settings, generator.model)
    if settings.papers.clustering != "kmeans":
        require("papers", "WINNOW_PAPERS=clustering=…")


def _need_extras(settings: Settings, _: httpx2.AsyncClient) -> None:
    """Raise `MissingExtra` if a provider needs a package that is not installed."""
    for name in settings.search:
        provider = providers().get(name)
        if provider is not None and provider.extra:
            require(provider.extra, f"The search provider {name}")


def _need_cache_server(settings: Settings, _: httpx2.AsyncClient) -> None:
    if settings.cache_url:
        check_address(settings.cache_url)


def _role(role: Role) -> _Try:
    return lambda settings, http: choose(
        role, getattr(settings, role), _resources(settings, http)
    )


_TRIED: Final[Mapping[str, tuple[_Try, Any]]] = {
    "embedder": (_role("embedder"), "none"),
    "reader": (_role("reader"), "none"),
    "reranker": (_role("reranker"), "none"),
    "generator": (_role("generator"), "none"),
    "papers": (_try_papers, Papers()),
    "browser": (lambda settings, _: find_browser(settings.browser), "none"),
    "cookies": (
        lambda settings, _: settings.cookies and Cookies(settings.cookies),
        None,
    ),
    "proxy": (lambda settings, _: settings.proxy and parse_proxy(settings.proxy), ""),
    "search": (_need_extras, ("none",)),
    "cache_url": (_need_cache_server, ""),
    "http": (_need_metrics, Http()),
}
"""Per setting: a check that raises if its value cannot work, and the value that
disables it."""


def _fetch_limits(settings: Settings) -> FetchLimits:
    return FetchLimits(
        max_bytes=settings.page_mb * MEGABYTE,
        allow_loopback=settings.networks.loopback,
        respect_robots=settings.robots,
        allowed_networks=settings.networks.private,
        nat64=settings.networks.nat64,
        sites=(*settings.forges, *known_sites()),
        cookies=Cookies(settings.cookies) if settings.cookies else None,
        proxy=parse_proxy(settings.proxy) if settings.proxy else None,
    )


class Models(NamedTuple):
    """The model chosen for each role."""

    embedder: Chosen[Embedder]
    reader: Chosen[CrossEncoder]
    reranker: Chosen[Reranker]
    generator: Chosen[Generator]


async def open_models(settings: Settings, shared: Shared) -> Models:
    """Return the model of each role: one that is shared already, else a new one, closed
    with the shared ones.

    Raises `UsageError` for an invalid spec or a missing file, `MissingExtra` if a
    backend's package is not installed."""
    options = sorted(map(str, settings.model_options.items()))
    setup = (settings.keys.get("model"), settings.seconds, *options)
    chosen: list[Chosen[Any]] = []
    roles: tuple[Role, ...] = get_args(Role)
    for role in roles:
        key = (role, getattr(settings, role), *setup)
        async with shared.turn:
            if key not in shared.held:
                http = service_client(settings.seconds)
                shared.stack.push_async_callback(http.aclose)
                shared.held[key] = _role(role)(settings, http)
                model = shared.held[key].model
                if isinstance(model, HeldModel):
                    shared.stack.push_async_callback(model.aclose)
                    await model.prepare()
        chosen.append(shared.held[key])
    return Models(*chosen)


def _converter(shared: Shared) -> Converter:
    """Return the converter whose processes are shared."""
    if (Converter,) not in shared.held:
        shared.held[(Converter,)] = Converter(None)
        shared.stack.push_async_callback(shared.held[(Converter,)].aclose)
    converter: Converter = shared.held[(Converter,)]
    return converter


def _resources(settings: Settings, http: httpx2.AsyncClient) -> Resources:
    key = settings.keys.get("model", "")
    return Resources(http, key, options=settings.model_options)


def _extractor(settings: Settings, model: Generator | None) -> Extractor | None:
    """Return how a generator revises readings; None if rules alone are used, or there
    is none. Raises `UsageError` where it does not support the way that was set."""
    if settings.papers.extractor == "rules":
        return None
    seconds = settings.seconds * STEP_SHARE
    extractor: Extractor | None = printed("extractor")(
        settings.papers.extractor, model, seconds
    )
    return extractor


class Searched(NamedTuple):
    """The search providers chosen by the settings."""

    web: tuple[str, ...]
    """Provider names in order of use."""
    scholarly: tuple[str, ...]
    """Scholarly providers, for questions about publications."""
    folders: bool
    keyless: bool
    """Whether they were chosen because nothing is set."""


def searched(settings: Settings) -> Searched:
    """Return the search providers to use.

    `auto` uses providers with an address or a key and the folders; keyless ones only if
    none of these is set, so that questions about folders are not sent to the web
    unasked.
    """
    names: Sequence[str] = settings.search
    if settings.web == "off":
        names = [name for name in names or ("folder",) if name == "folder"]
    elif not names:
        keyed = [name for name in providers() if settings.keys.get(name)]
        configured = [*(["searxng"] if settings.searxng else []), *keyed]
        names = [*configured, "folder"]
        if not configured and not settings.folders:
            names = ["keyless"]
    web = dict.fromkeys(
        provider
        for name in names
        for provider in (KEYLESS if name == "keyless" else (name,))
        if provider in providers()
    )
    scholarly = CATALOGUES if {"keyless", "academic"} & {*names} else ()
    folders = bool(settings.folders) and "folder" in names
    by_default = "keyless" in names and not settings.search
    if not web:
        return Searched(scholarly, (), folders, by_default)
    return Searched(tuple(web), scholarly, folders, by_default)


def _may_name_any(settings: Settings) -> bool:
    """Return whether a call may name any address of the web."""
    if settings.web == "auto":
        return not settings.folders or bool(searched(settings).web)
    return settings.web == "named"


@asynccontextmanager
async def _open_folder(
    settings: Settings,
    stores: Stores,
    files: Files,
    embedder: Embedder | None,
) -> AsyncIterator[FolderProvider | None]:
    """Return the search over the user's folders; None if they are not searched."""
    if not searched(settings).folders:
        yield None
        return
    folder = FolderProvider(
        settings.folders,
        stores.folders,
        files=files,
        embedder=embedder,
        file_bytes=settings.page_mb * MEGABYTE,
    )
    async with folder.indexing():
        yield folder


def _chain(
    settings: Settings,
    stores: Stores,
    http: httpx2.AsyncClient,
    folder: FolderProvider | None,
) -> Chain:
    """Return the chain of web providers in the order of the settings, and the folder
    search.

    A provider whose package is missing or broken is left out, unless the setting
    `search` names it: then its error is raised.
    """

    chosen = searched(settings)
    searchers: dict[str, Searcher] = {}
    for name in dict.fromkeys((*chosen.web, *chosen.scholarly)):
        provider = providers()[name]
        address = getattr(settings, provider.at) if provider.at else ""
        key, contact = settings.keys.get(name, ""), settings.keys.get("contact", "")
        try:
            searchers[name] = provider.make(Access(http, key, contact, address))
        except (MissingExtra, BrokenExtra) as error:
            # An extra's provider is used only if installed, unless the user names it.
            if name in settings.search:
                raise
            if isinstance(error, BrokenExtra):
                _log.warning("%s", error)
    web = [searchers[name] for name in chosen.web if name in searchers]
    local: list[Searcher] = [folder] if folder is not None else []
    return Chain(
        web or local,
        stores.searches,
        time.time,
        beside=local if web else (),
        scholarly=[searchers[name] for name in chosen.scholarly if name in searchers],
    )
