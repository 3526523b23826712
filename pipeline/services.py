"""External dependencies of the pipeline, created once by the server and passed in.

Not for: making any of it (`server/wiring.py`), nor settings as such: a step takes
values, not a settings object."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Final, Literal, Protocol

import anyio

from cache.store import Stores
from errors import AddressRefused
from models.protocols import CrossEncoder, Embedder, Generator, Reranker
from pipeline.conversion.converter import LIGHT_BYTES
from pipeline.question.wants import SITE
from pipeline.reading.extract import Extractor
from pipeline.reading.relevance import Blend, Reader, Reread
from pipeline.search.chain import Findings
from pipeline.search.folder import FolderProvider
from pipeline.search.query import SearchQuery
from pipeline.work import in_thread
from readers.html.document import read_document
from readers.page import KEPT_DOCUMENTS, Document, Page

KEPT_ADDRESSES: Final = 20_000
"""Addresses that a server remembers to have given, about 3 MB; an older one is searched for
again."""


class DocumentMemory:
    """Converts pages to documents and keeps the last ones, so that a page is cleaned
    once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Document] = OrderedDict()
        self._reading_long = anyio.Lock()

    async def read(self, page: Page) -> Document:
        """Return `page` cleaned and cut into content units; the work runs off the event
        loop. The `KEPT_DOCUMENTS` read last are kept, by content and final address.
        Tasks that ask for one at once each read it. Of pages over `LIGHT_BYTES` one is
        read at a time, so that short ones find a thread."""
        key = f"{page.content_hash}:{page.final_url}"
        if key in self._kept:
            self._kept.move_to_end(key)
            return _as_asked(self._kept[key], page)
        is_long = len(page.html) > LIGHT_BYTES
        async with self._reading_long if is_long else nullcontext():
            document = await in_thread(read_document, page)
        self._kept[key] = document
        while len(self._kept) > KEPT_DOCUMENTS:
            self._kept.popitem(last=False)
        return document


def _as_asked(document: Document, page: Page) -> Document:
    """Return a kept document with the address and age of this request."""
    known = document.page
    if (known.url, known.fetched_at) == (page.url, page.fetched_at):
        return document
    return replace(
        document, page=replace(known, url=page.url, fetched_at=page.fetched_at)
    )


class Once:
    """A notice shown once per process."""

    def __init__(self, text: str = "") -> None:
        self._text = text

    def take(self) -> str:
        """Return the notice at the first call, then ""."""
        text, self._text = self._text, ""
        return text


class Addresses:
    """Web addresses that a call may name: any, or those that a search of this process found
    and where these lead, so that no page can have a model send words out in an address."""

    def __init__(self, *, any_may: bool = True) -> None:
        self._any_may = any_may
        self._given: deque[str] = deque(maxlen=KEPT_ADDRESSES)

    def give(self, urls: Iterable[str]) -> None:
        """Note what a search found, and where it led."""
        self._given.extend(url.partition("#")[0] for url in urls)

    def check(self, source: str) -> None:
        """Raise `AddressRefused` for an address that was not given, and for a site."""
        on_web = source.lower().startswith(("http:", "https:", SITE))
        if on_web and not self._any_may and source.partition("#")[0] not in self._given:
            raise AddressRefused(
                f"{source} was not found by a search of this server.",
                source=source,
                hint="Pass files, folders, handles, or addresses that a search found; a "
                "person allows others with WINNOW_WEB=named.",
            )


class Fetches(Protocol):
    """Reads one source; see `pipeline.fetch.client.Fetcher`."""

    async def fetch(
        self, url: str, *, since: str = "", refresh: bool = False, outside: bool = False
    ) -> Page:
        """Return it as a page; what was kept from the ISO time `since` on is new
        enough, never with `refresh`. An address given from `outside` may not be
        internal."""
        ...


class Searches(Protocol):
    """Asks search providers; see `pipeline.search.chain.Chain`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the providers, in order."""
        ...

    async def search(self, queries: Sequence[SearchQuery], *, limit: int) -> Findings:
        """Return at most `limit` distinct results over all `queries`."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """The outside world of one server: network, cache, models, clock, folders."""

    fetcher: Fetches
    chain: Searches
    stores: Stores
    embedder: Embedder | None
    cross_encoder: CrossEncoder | None
    reranker: Reranker | None
    """Reranker; replaces the cross-encoder if set."""
    generator: Generator | None
    roots: Sequence[Path]
    """Folders that local sources may come from, resolved."""
    today: Callable[[], date]
    model_reasons: dict[str, str] = field(default_factory=dict)
    """Role to a sentence: the chosen model and why."""
    seconds: float = 25.0
    """Time limit of a tool call in seconds."""
    documents: DocumentMemory = field(default_factory=DocumentMemory)
    pruning: str = "winnow"
    """How pages are pruned: by our scores, or as HtmlRAG prints it; see WINNOW_PAPERS."""
    extractor: Extractor | None = None
    """A model that writes beside the extractor's rules, and how it is asked."""
    idms: str = "partition"
    """How `idms` chunks are cut; see WINNOW_PAPERS."""
    folder: FolderProvider | None = None
    """The search over the roots, which `chain` asks too; None where they are not
    searched."""
    notice: Once = field(default_factory=Once)
    """Notice about the search providers of this server."""

    addresses: Addresses = field(default_factory=Addresses)
    """Those of the web that a call may name; see WINNOW_WEB."""

    @property
    def reader(self) -> Reader:
        """The models that score units for a question: the cross-encoder only where no
        reranker is set."""
        blend = Blend(self.embedder, self.reranker)
        return (
            Reread(blend, self.cross_encoder)
            if self.cross_encoder and self.reranker is None
            else blend
        )

    clustering: Literal["kmeans", "gmm", "umap"] = "kmeans"
    """How nodes above leaves are grouped (RAPTOR)."""
