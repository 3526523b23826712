"""Fetching one source, from what the caller wrote to a `Page`: files below the roots, and the web through the guard.

Each fetch reads as the numbered steps of `Fetcher.fetch`. Not for: search, cleaning, and lists of sources (callers run
several fetches at once; the gates hold them to the limits).
"""

import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeGuard

import anyio

from cache.store import Store
from errors import AddressRefused, SourceNotFound, SourceTimeout
from pipeline.documents import Page
from pipeline.fetch.address import Resolver, Target, check_url, system_resolver
from pipeline.fetch.answer import Answer, error_for, lifetime, validators
from pipeline.fetch.connect import open_client
from pipeline.fetch.exchange import Exchange
from pipeline.fetch.files import Files, name_span, path_of_url, split_span
from pipeline.fetch.flight import Flights, alone
from pipeline.fetch.handles import NO_COPY, Known, find_answer, find_page, is_handle, keep_answer
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.render import RENDERED, Browser, Renderer, page_of
from pipeline.read.convert import Raw
from pipeline.read.converted import Span
from pipeline.work import in_thread

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""Two characters at least: `C:` is a drive."""
_LIKE_HOST: Final = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63})+(?::\d+)?(?:[/?#]|\Z)")


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches sources as pages; made by `open_fetcher`. One for the whole server, used by many tasks at once."""

    _exchange: Exchange
    _limits: FetchLimits
    _pages: Store | None
    files: Files
    """What may be read of this machine."""
    _clock: Callable[[], float]
    _renderer: Renderer | None
    _flights: Flights[Page] = field(default_factory=Flights)

    async def fetch(self, url: str) -> Page:
        """Return one source as a page.

        Args:
            url: An http(s) address, a `file:` URL or path below the roots, or a handle of a page fetched before.

        Raises:
            AddressRefused: Another scheme, a private address, a path outside the roots, or robots.txt says no.
            SourceNotFound: 404, 410, no such file, or an expired handle.
            SourceBlocked: 401, 403, 429, or a check against robots.
            SourceUnavailable: The site is broken, away or unknown.
            SourceTimeout: Not complete before `FetchLimits.total_seconds`.
            SourceTooLarge: Over a cap.
            NeedsBrowser: It is empty until its scripts run, and no browser is set, or that failed.
            SourceUnreadable: There is no text in it.
        """
        source, span = split_span(url.strip())
        # 1. what is not on the web
        if is_handle(source):
            return await self._by_handle(source)
        if source.lower().startswith("file:") or not _SCHEME.match(source):
            return await self._from_disk(source, span)
        # 2. an address of allowed form
        target = _Wanted(check_url(source, self._limits), span)
        page = await self._flights.share(target.key, lambda: self._from_web(source, target))
        return replace(page, url=url.strip())

    async def _from_web(self, source: str, target: "_Wanted") -> Page:
        if self._pages is None:
            return await self._asked(source, target, None, 0.0)
        # 3. known and fresh, from this process or another
        url, store, patience = target.key, self._pages, self._limits.step_seconds
        async with alone(
            store, f"fetch:{url}", lambda: find_answer(store, url), enough=self._is_fresh, patience=patience
        ) as (known, waited):
            if self._is_fresh(known):
                return known.page
            return await self._asked(source, target, known, waited)

    async def _asked(self, source: str, target: "_Wanted", known: Known | None, waited: float) -> Page:
        # 4. the exchange, within the deadline
        answer = await self._ask(source, known, waited)
        # 5. known and unchanged
        if answer.status == 304 and known is not None:
            return await self._keep(target, replace(known.page, fetched_at=self._now()), answer, known)
        # 6. a refusal in words
        refusal = error_for(answer, url=source, now=self._clock())
        if refusal is not None:
            raise refusal
        # 7. bytes to a page, kept for the next time
        page = await page_of(self._raw(source, answer, target.span), self._renderer, self.files.convert)
        return await self._keep(target, page, answer, None)

    async def _by_handle(self, handle: str) -> Page:
        page: Page | None = None
        for store in (self._pages, self.files.store):
            if page is None and store is not None:
                page = await in_thread(find_page, store, handle)
        if page is None or not self.files.may_open(page):
            raise SourceNotFound(
                f"The handle {handle} is unknown or has expired.", source=handle, hint="Fetch the page's URL again."
            )
        return page

    async def _from_disk(self, source: str, span: Span) -> Page:
        path = path_of_url(source) if source.lower().startswith("file:") else Path(source)
        try:
            page = await self._flights.share(f"file:{path}{name_span(span)}", lambda: self.files.read(path, span))
        except (AddressRefused, SourceNotFound) as e:
            if _LIKE_HOST.match(source):
                raise type(e)(e.what, source=source, hint=f"If it is a web address, write https://{source}") from e
            raise
        return replace(page, url=source + name_span(span))

    def _is_fresh(self, known: Known | None) -> TypeGuard[Known]:
        return known is not None and self._clock() < known.fresh_until

    async def _ask(self, source: str, known: Known | None, waited: float) -> Answer:
        with anyio.move_on_after(self._limits.total_seconds - waited):
            return await self._exchange.ask(source, validators=known.validators if known is not None else {})
        raise SourceTimeout(
            f"{source} was not complete after {self._limits.total_seconds:g} s.",
            source=source,
            hint="Try again later, or use another source.",
        )

    def _raw(self, source: str, answer: Answer, span: Span) -> Raw:
        language = answer.headers.get("content-language", "").strip().lower()
        return Raw(
            body=answer.body,
            url=source,
            final_url=str(answer.target.url) + name_span(span),
            content_type=answer.headers.get("content-type", ""),
            name=answer.target.url.path,
            fetched_at=self._now(),
            span=span,
            language=language[:2] if re.fullmatch(r"[a-z]{2}(?:-[a-z0-9-]{1,20})?", language) else "",
        )

    async def _keep(self, target: "_Wanted", page: Page, answer: Answer, known: Known | None) -> Page:
        """Keep a page where that is allowed; return it, with a note where it is not."""
        if self._pages is None or answer.status not in {200, 304}:
            return page
        # A 304 that says nothing of its age leaves what was promised before (RFC 9111 §4.3.4).
        promised = known.lifetime if known is not None and known.lifetime is not None else self._limits.fresh_seconds
        fresh = lifetime(answer.headers, default=promised, shared=self._pages.shared)
        if fresh is None:
            return replace(page, notes=(*page.notes, NO_COPY))
        asked = validators(answer.headers) or (known.validators if known is not None else {})
        # What a redirect led to is asked for at the first hop, where its validators mean nothing.
        usable = asked if str(answer.target.url) == str(target.target.url) else {}
        if RENDERED in page.notes:  # the page's own headers do not tell how long what its scripts load stays the same
            fresh, usable = min(fresh, self._limits.fresh_seconds), {}
        entry = Known(page, self._clock() + fresh, usable, fresh)
        await in_thread(keep_answer, self._pages, target.key, entry)
        return page

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An address, and which pages of the document there."""

    target: Target
    span: Span

    @property
    def key(self) -> str:
        """What the cache knows it by."""
        return str(self.target.url) + name_span(self.span)


@asynccontextmanager
async def open_fetcher(
    limits: FetchLimits,
    *,
    pages: Store | None,
    files: Files | None = None,
    clock: Callable[[], float] = time.time,
    resolve: Resolver = system_resolver,
    tls: ssl.SSLContext | None = None,
    browser: Browser | None = None,
) -> AsyncIterator[Fetcher]:
    """Open a fetcher; its connections close with the context.

    Args:
        limits: Caps, deadlines and permissions.
        pages: Where pages are kept; None to keep none.
        files: The files that may be read, and what converts them and all other documents; None for no files, and
            threads of this process.
        clock: Seconds since the epoch.
        resolve: Finds the addresses of a host; whatever it says is checked.
        tls: Which certificates are trusted; None for the system's.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_client(limits, resolve, tls))
        renderer = None
        if browser is not None:
            open_web = await stack.enter_async_context(open_client(limits.public_only(), resolve, tls))
            renderer = Renderer(browser, client, open_web, limits, anyio.Semaphore(browser.caps.at_once))
        yield Fetcher(Exchange(client, limits, clock), limits, pages, files or Files(), clock, renderer)
