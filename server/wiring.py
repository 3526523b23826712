"""Making the services from the settings: the one place where parts are chosen and put together.

Not for: what the parts do.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import date
from urllib.parse import urlsplit

import httpx2

from cache.stores import Stores, open_stores
from models.choose import choose_embedder, choose_generator, choose_reranker
from pipeline.embedding import CachedEmbedder
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from pipeline.search.chain import Chain
from pipeline.search.folder import FolderProvider
from pipeline.search.provider import Provider
from pipeline.search.searxng import Searxng
from pipeline.services import Services
from server.settings import Settings

MEGABYTE = 1_000_000


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open cache, network and models; close them in the opposite order.

    Raises:
        CacheError: The cache folder cannot be used.
        UsageError: A model specification cannot be understood.
        MissingExtra: A model needs a package that is not installed.
    """
    async with AsyncExitStack() as stack:
        stores = open_stores(settings.cache, size_limit=settings.cache_mb * MEGABYTE, clock=time.time)
        stack.callback(stores.close)
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=settings.seconds))
        limits = FetchLimits(
            max_unpacked=settings.page_mb * MEGABYTE,
            allow_loopback=settings.allow_loopback,
            respect_robots=settings.robots,
        )
        fetcher = await stack.enter_async_context(
            open_fetcher(limits, pages=stores.pages, roots=settings.folders, clock=time.time)
        )
        embedder = choose_embedder(settings.embedder, http=http, key=settings.model_key)
        reranker = choose_reranker(settings.reranker, http=http, key=settings.model_key)
        generator = choose_generator(settings.generator, http=http, key=settings.model_key)
        for chosen in (embedder, reranker, generator):
            stack.push_async_callback(chosen.aclose)
        yield Services(
            fetcher=fetcher,
            chain=_chain(settings, stores, http),
            stores=stores,
            embedder=CachedEmbedder(embedder.model, stores.embeddings) if embedder.model else None,
            reranker=reranker.model,
            generator=generator.model,
            roots=settings.folders,
            today=date.today,
            model_reasons={"embedder": embedder.reason, "reranker": reranker.reason, "generator": generator.reason},
            seconds=settings.seconds,
        )


def _chain(settings: Settings, stores: Stores, http: httpx2.AsyncClient) -> Chain:
    """The web where one is set, and the user's folders beside it; the folders alone where not."""
    web: list[Provider] = []
    if settings.searxng:
        # The instance is part of the name: answers are cached by it, and another instance is another provider.
        address = urlsplit(settings.searxng)
        web.append(Searxng(http, settings.searxng, name=f"searxng {address.hostname}:{address.port or address.scheme}"))
    local: list[Provider] = [FolderProvider(settings.folders, stores.searches)] if settings.folders else []
    return Chain(web or local, stores.searches, time.time, beside=local if web else ())
