"""Fetching one source, from what the caller wrote to a `Page`: files below the roots,
and the web through the guard.

Each fetch reads as the numbered steps of `Fetcher.fetch`; calls that ask for one page
at once share one request, in this process and in others. Not for: search, cleaning, and
lists of sources (callers run several fetches at once; the gates hold them to the
limits)."""

import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeGuard

import anyio

from cache.store import Store
from errors import (
    AddressRefused,
    SourceError,
    SourceNotFound,
    SourceTimeout,
    SourceUnreadable,
)
from pipeline.fetch.address import Resolver, check_url, system_resolver
from pipeline.fetch.body import LATE
from pipeline.fetch.connect import open_client, pinned_client
from pipeline.fetch.exchange import (
    ServerAnswer,
    WebExchange,
    error_for,
    lifetime,
)
from pipeline.fetch.files import Files, may_open, name_span, path_of_url, split_span
from pipeline.fetch.frames import UNREAD_FRAME, has_frames
from pipeline.fetch.handles import (
    NO_COPY,
    KeptPage,
    find_answer,
    find_page,
    is_handle,
    keep_answer,
)
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.page_source import ReadPage, plan_for
from pipeline.fetch.render import RENDERED, Browser, Renderer, page_of
from pipeline.fetch.served import FRONTS, front_of
from pipeline.work import alone, in_thread
from readers.convert import Raw, kind_of
from readers.converted import ALL_PAGES, Span
from readers.format import HTML
from readers.page import WITH_COOKIES, Page
from readers.sniff import decode
from seams import optional


class Flights:
    """The flights of one process: what one call fetches, for those who wait for it."""

    def __init__(self) -> None:
        self._flights: dict[str, tuple[anyio.Event, list[Page | SourceError]]] = {}

    async def share(self, key: str, work: Callable[[], Awaitable[Page]]) -> Page:
        """Return what `work` returns, or what an equal flight under way returns; a
        `SourceError` is shared alike.

        If the fetching call is canceled, one of the waiting calls starts again.
        Likewise if it fails with any other error. A waiting call has no time limit of
        its own."""
        while (flight := self._flights.get(key)) is not None:
            landed, results = flight
            await landed.wait()
            for result in results:
                if isinstance(result, SourceError):
                    raise _copy(result)
                return result
        landed, results = self._flights[key] = anyio.Event(), []
        try:
            page = await work()
            results.append(page)
            return page
        except SourceError as e:
            results.append(_copy(e))
            raise
        finally:
            del self._flights[key]
            landed.set()


def _kept(store: Store, key: str, *, outside: bool) -> KeptPage | None:
    """Return what is stored of an address, or None. With `outside`, the caller may not
    reach private networks: a page that came from one is not returned."""
    kept_page = find_answer(store, key)
    is_closed = outside and kept_page is not None and kept_page.page.inside
    return None if is_closed else kept_page


def _copy(error: SourceError) -> SourceError:
    """Return an equal error without a traceback, which would keep its frames, and a
    whole body in them, alive."""
    return type(error)(error.what, source=error.source, hint=error.hint)


def _refuse_front(raw: Raw, page: Page | None) -> None:
    """Raise `SourceError` where what came is a page in front of the one asked for.

    `page` is what was made of it; None where nothing could be. Anything but HTML
    passes."""
    if kind_of(raw) != HTML:
        return
    front = front_of(page.html if page is not None else decode(raw.body).text)
    if front is None:
        return
    message = f"{raw.url} {FRONTS[front]}: the server answered 200 with an error or login page."
    hint = (
        "Check the address, or search for where the page is now."
        if front == "missing"
        else "Use another source for this."
    )
    raise SourceError(message, source=raw.url, hint=hint)


_LONGEST_NAME: Final = 1_000
"""Characters of a header that are looked at for the name of a download."""


def _file_name(answer: ServerAnswer) -> str:
    """Return the name that a server gives a download, else the path of its address."""
    header = Message()
    header["Content-Disposition"] = answer.headers.get("content-disposition", "")[
        :_LONGEST_NAME
    ]
    return header.get_filename("") or answer.target.url.path


_URL_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""Two characters at least: `C:` is a drive."""
_LIKE_HOST: Final = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63})+(?::\d+)?(?:[/?#]|\Z)")


class _Request(NamedTuple):
    source: str
    span: Span
    key: str
    """Under which the page is kept."""
    outside: bool
    deadline: float
    """By the event loop's clock."""


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches sources as pages; made by `open_fetcher`. One for the whole server, used
    by many tasks at once."""

    _exchange: WebExchange
    _limits: FetchLimits
    _pages: Store | None
    files: Files
    _clock: Callable[[], float]
    _renderer: Renderer | None
    _flights: Flights = field(default_factory=Flights)

    async def fetch(
        self, url: str, *, since: str = "", refresh: bool = False, outside: bool = False
    ) -> Page:
        """Return one source as a page: an http(s) address, a `file:` URL or path below
        the roots, or a page's handle.

        A kept page is new enough from the ISO time `since` on, whatever its server says
        of its age; with `refresh` none is. With `outside` a page or search result of a public address names
        it, and nothing inside is asked. Raises the `SourceError` that says why it
        cannot be read, `NeedsBrowser` where only scripts would fill it. Where the
        server fails, an older copy that is kept is not returned."""
        source, span = split_span(url.strip())
        # 1. what is not on the web
        if is_handle(source):
            return await self._by_handle(source)
        if source.lower().startswith("file:") or not _URL_SCHEME.match(source):
            return await self._from_disk(source, span)
        # 2. an address of allowed form
        outside = outside and self._limits.public_only() is not self._limits
        limits = self._limits.public_only() if outside else self._limits
        target = str(check_url(source, limits).url)
        key = target + name_span(span)
        if self._limits.cookies is not None:
            key += self._limits.cookies.mark(target)
        flight = f"{key}{' refresh' * refresh}{' outside' * outside}"
        deadline = anyio.current_time() + self._limits.total_seconds
        request = _Request(source, span, key, outside, deadline)
        page = await self._flights.share(
            flight, lambda: self._from_web(request, since, refresh=refresh)
        )
        return replace(page, url=url.strip())

    async def _from_web(self, request: _Request, since: str, *, refresh: bool) -> Page:
        if self._pages is None:
            return await self._asked(request)
        # 3. kept and fresh, from this process or another
        store = self._pages

        def is_fresh(kept_page: KeptPage | None) -> TypeGuard[KeptPage]:
            if kept_page is None or refresh:
                return False
            is_new = "" < since <= kept_page.page.fetched_at
            return is_new or self._clock() < kept_page.fresh_until

        async with alone(
            store,
            f"fetch:{request.key}",
            lambda: _kept(store, request.key, outside=request.outside),
            enough=is_fresh,
            patience=self._limits.step_seconds,
        ) as (kept_page, _):
            if is_fresh(kept_page):
                page = kept_page.page
                read = datetime.fromisoformat(page.fetched_at).timestamp()
                return replace(page, age=max(0.0, self._clock() - read))
            return await self._asked(request)

    async def _asked(self, request: _Request) -> Page:
        source, why = request.source, ""
        # 4. the site's API
        if (read := plan_for(source, self._limits.sites)) is not None:
            try:
                page, answer = await self._of_site(read, request)
                return await self._keep(request.key, page, answer)
            except SourceError as error:
                why = f"read as a page, since its API failed: {error.shown}"
        # 5. the exchange, within the deadline
        with anyio.CancelScope(deadline=request.deadline) as scope:
            answer = await self._exchange.ask(source, outside=request.outside)
        if scope.cancelled_caught:
            raise self._incomplete(source, LATE)
        # 6. a refusal in words
        refusal = error_for(answer, url=source, now=self._clock())
        if refusal is not None:
            raise refusal
        # 7. bytes to a page, with what it consists of besides
        raw, seconds = (
            self._raw(source, answer, request.span),
            self._limits.step_seconds,
        )
        if await in_thread(has_frames, raw):
            raw = replace(raw, notes=(*raw.notes, UNREAD_FRAME))
        add_transcript = optional("extras.transcript", "with_transcript")
        if add_transcript is not None:
            get_part = partial(self._get_part, outside=answer.outside)
            raw = await add_transcript(raw, get_part, seconds)
        page = replace(await self._page(raw, answer), inside=not answer.outside)
        notes = filter(None, (why, WITH_COOKIES if answer.own else ""))
        page = replace(page, notes=(*page.notes, *notes))
        # 8. kept for the next time, unless it is cut
        return page if answer.cut else await self._keep(request.key, page, answer)

    async def _page(self, raw: Raw, answer: ServerAnswer) -> Page:
        """Return an answer as a page; of one that is cut, what came of it.

        Raises `SourceError` where nothing of it can be read, or where a log-in or error
        page came instead."""
        try:
            # The scripts of a page that is one person's are not run.
            page = await page_of(
                raw, None if answer.own else self._renderer, self.files.convert
            )
        except SourceUnreadable as error:
            if answer.cut:
                raise self._incomplete(raw.url, answer.cut) from error
            await in_thread(_refuse_front, raw, None)
            raise
        if not answer.cut:
            await in_thread(_refuse_front, raw, page)
            return page
        missing = f"what follows its first {len(answer.body):,} bytes: {answer.cut}"
        unread = "; ".join(filter(None, (page.unread, missing)))
        return replace(page, unread=unread, tables_whole=False)

    def _incomplete(self, source: str, cut: str) -> SourceError:
        if cut == LATE:
            message = (
                f"{source} was not complete after {self._limits.total_seconds:g} s."
            )
            return SourceTimeout(message, source=source, hint="Use another source.")
        message = f"{source}: {cut}, before any text arrived."
        return SourceError(message, source=source, hint="Try again later.")

    async def _of_site(
        self, read: ReadPage, request: _Request
    ) -> tuple[Page, ServerAnswer]:
        """Return a page from its site's API, and a response without its headers (they
        would be the API's).

        Raises `SourceTimeout` after half of the time that is left, and the
        `SourceError` of the API. The caller reads the page itself then."""
        source = request.source
        address = check_url(source, self._limits)
        seconds = (request.deadline - anyio.current_time()) / 2
        # The page itself is the fallback, and needs its share of the time.
        with anyio.move_on_after(seconds):
            content = await read(partial(self._get_part, outside=request.outside))
            bare = ServerAnswer(address, 200, {}, content.body)
            raw = replace(self._raw(source, bare, ALL_PAGES), name=content.name)
            page = await self.files.convert(raw)
            page = replace(
                page,
                author=content.author or page.author,
                published=content.published or page.published,
                unread=content.unread or page.unread,
                tables_whole=page.tables_whole and not content.unread,
            )
            return page, bare
        raise SourceTimeout(
            f"{source}: its API was too slow.", source=source, hint="Try again later."
        )

    async def _get_part(self, url: str, *, outside: bool) -> bytes:
        """Return the body of a page's sub-resource or API request.

        Raises `SourceError` where the server refuses it or it is cut. robots.txt is not
        read."""
        answer = await self._exchange.ask(url, robots=False, outside=outside)
        if (refusal := error_for(answer, url=url, now=self._clock())) is not None:
            raise refusal
        if answer.cut:
            raise self._incomplete(url, answer.cut)
        return answer.body

    async def _by_handle(self, handle: str) -> Page:
        stores = filter(None, (self._pages, self.files.store))
        page = next(
            filter(
                None, [await in_thread(find_page, store, handle) for store in stores]
            ),
            None,
        )
        if page is None or not may_open(page.final_url, self.files.roots):
            raise SourceNotFound(
                f"The handle {handle} is unknown or has expired.",
                source=handle,
                hint="Fetch the page's URL again.",
            )
        return page

    async def _from_disk(self, source: str, span: Span) -> Page:
        path = (
            path_of_url(source) if source.lower().startswith("file:") else Path(source)
        )
        try:
            page = await self._flights.share(
                f"file:{path}{name_span(span)}", lambda: self.files.read(path, span)
            )
        except (AddressRefused, SourceNotFound) as e:
            if _LIKE_HOST.match(source):
                raise type(e)(
                    e.what,
                    source=source,
                    hint=f"If it is a web address, write https://{source}",
                ) from e
            raise
        return replace(page, url=source + name_span(span))

    def _raw(self, source: str, answer: ServerAnswer, span: Span) -> Raw:
        language = answer.headers.get("content-language", "").strip().lower()
        return Raw(
            body=answer.body,
            url=source,
            final_url=str(answer.target.url) + name_span(span),
            content_type=answer.headers.get("content-type", ""),
            address=answer.address,
            name=_file_name(answer),
            fetched_at=self._now(),
            span=span,
            most=self._limits.max_bytes,
            language=language[:2]
            if re.fullmatch(r"[a-z]{2}(?:-[a-z0-9-]{1,20})?", language)
            else "",
        )

    async def _keep(self, key: str, page: Page, answer: ServerAnswer) -> Page:
        """Keep a page where that is allowed; return it, with a note where it is not."""
        if self._pages is None or answer.status != 200 or NO_COPY in page.notes:
            return page
        default, shared = self._limits.fresh_seconds, self._pages.shared
        seconds = lifetime(answer.headers, default=default, shared=shared)
        if seconds is None:
            return replace(page, notes=(*page.notes, NO_COPY))
        # The page's headers do not cover what its scripts load.
        if RENDERED in page.notes:
            seconds = min(seconds, default)
        await in_thread(
            keep_answer, self._pages, key, KeptPage(page, self._clock() + seconds)
        )
        return page

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")


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

    Pages are kept in `pages`, if given. `files` may be read, and says what converts
    them and all other documents; None is for no files, and threads of this process.
    `clock` gives seconds since the epoch; whatever `resolve` says of a host is checked;
    `tls` says which certificates are trusted, the system's if None."""
    async with AsyncExitStack() as stack:
        client = open_web = await stack.enter_async_context(
            open_client(limits, resolve, tls)
        )
        public = limits.public_only()
        if public is not limits:
            open_web = await stack.enter_async_context(
                open_client(public, resolve, tls)
            )
        renderer = None
        if browser is not None:
            renderer = Renderer(
                browser,
                partial(pinned_client, limits=limits, tls=tls),
                open_web,
                limits,
                anyio.Semaphore(browser.at_once),
            )
        yield Fetcher(
            WebExchange(client, open_web, limits, clock),
            limits,
            pages,
            files or Files(),
            clock,
            renderer,
        )
