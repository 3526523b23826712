"""A whole site as a source, `site:https://docs.example.org/guide/`: which of its pages
a question is about.

A site says itself which pages it has: in its list for models (llms.txt), sitemaps,
feeds, and the links of the page that is named. Those of that host and below that path
are ranked by what is said of them and by their paths, and the best are read as any page
is; `#pages=17-32` after the name continues with the next pages. What lists them is
asked for in three rounds of bounded size, through the same guarded client, so that no
site can keep a call busy. No links are followed from page to page.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import anyio
import numpy as np
from selectolax.lexbor import LexborNode

from cancellation import check_cancelled
from errors import ModelError, SourceError, SourceTimeout, UsageError
from models.protocols import Embedder
from pipeline.evidence.render import absolute
from pipeline.fetch.files import IMAGES, OTHERS, ending_of, split_span
from pipeline.question.question import Question
from pipeline.question.wants import SITE, is_site
from pipeline.reading.bm25 import Floats
from pipeline.reading.relevance import score_texts
from pipeline.search.chain import Findings, canonical_url
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult
from pipeline.services import Once, Services
from pipeline.sources.gather import MAX_FILES, failure_of
from pipeline.text.frame import one_line, shown_location
from pipeline.work import STEP_SHARE, Report, in_thread, time_left
from readers.converted import MAX_ITEMS
from readers.html.addresses import base_of
from readers.html.guard import parse
from readers.page import TITLE_CHARACTERS, Failure, Page

READ: Final = 16
"""Pages that one call reads of a site: as many as `research` reads of a search."""
MOST_LISTS: Final = 8
"""Sitemaps and feeds that are read in one round; where an index names more, those with
the question's words."""
_LISTS: Final = (
    'link[rel~="alternate"][type$="rss+xml"], '
    'link[rel~="alternate"][type$="atom+xml"], [rel~="sitemap"]'
)
Listed = tuple[str, str]
"""Address of a page that a site names, and its title or the words of a link to it."""


def wording(page: Listed) -> str:
    """Return what a page is ranked by."""
    url, title = page
    path = " ".join(re.split(r"[\W_]+", _location(url)[1]))
    return f"{title}\n{path}".strip()


async def _ranked(
    pages: Sequence[Listed], questions: Sequence[Question], services: Services
) -> list[Listed]:
    """Return pages, those first that are near to any of the questions, by words where
    the embedder fails.

    Without a question their order stays."""
    texts = list(map(wording, pages))

    async def scored(embedder: Embedder | None) -> list[Floats]:
        return [
            await score_texts(texts, question, embedder=embedder)
            for question in questions
            if question
        ]

    try:
        scores = await scored(services.embedder)
    except ModelError:
        scores = await scored(None)
    if not scores:
        return list(pages)
    order = np.argsort(-np.max(scores, axis=0), kind="stable")
    return [pages[index] for index in order.tolist()]


async def site_pages(
    names: Sequence[str],
    question: Question,
    services: Services,
    *,
    seconds: float,
    report: Report,
) -> tuple[list[str], set[str], list[Failure]]:
    """Return sources with the pages of each site that are nearest to a question in its
    place, those of them that are named from outside, and what was not read.

    Raises the `SourceError` of a site that is the only source; else it is a failure."""
    expanded: list[str] = []
    outside: set[str] = set()
    failures: list[Failure] = []
    for name in names:
        if not is_site(name):
            expanded.append(name)
            continue
        try:
            survey = Survey(name, [question], services)
            await survey.run(seconds)
        except SourceError as error:
            if len(names) == 1:
                raise
            failures.append(failure_of(error))
            continue
        await report(0, None, survey.summary)
        pages, unread = await survey.nearest([question], limit=MAX_FILES)
        urls = [url for url, _ in pages]
        expanded += urls
        outside.update(() if survey.inside else urls)
        failures += unread
    return list(dict.fromkeys(expanded)), outside - set(names), failures


def site_search(sites: Sequence[str], services: Services, report: Report) -> Services:
    """Return services that search nothing but `sites`."""
    return replace(
        services, chain=SiteSearch(tuple(sites), services, report), notice=Once()
    )


class SiteSearch:
    """Searches sites for what `research` asks, in place of the web."""

    def __init__(
        self, names: tuple[str, ...], services: Services, report: Report
    ) -> None:
        self.names = names
        """The sites."""
        self._services = services
        self._report = report
        self._surveys: dict[str, Survey] = {}

    async def search(self, queries: Sequence[SearchQuery], *, limit: int) -> Findings:
        """Return the pages nearest to any of the queries; raises the first site's
        `SourceError` if none names any.

        A site that fails is `unreachable` among the outcomes."""
        questions, errors = [query.question for query in queries], list[SourceError]()
        outcomes: list[SearchOutcome] = []
        failed: list[SearchOutcome] = []
        for site in self.names:
            share = max(1, limit // len(self.names))
            try:
                outcomes.append(await self._outcome(site, questions, share))
            except SourceError as error:
                errors.append(error)
                failed.append(SearchOutcome((), site, "unreachable", str(error)))
        if not outcomes:
            raise errors[0]
        results = tuple(row for outcome in outcomes for row in outcome.results)
        return Findings(results, (*outcomes, *failed), tuple(failed))

    async def _outcome(
        self, site: str, questions: Sequence[Question], limit: int
    ) -> SearchOutcome:
        survey = self._surveys.get(site)
        if survey is None:
            survey = Survey(site, questions, self._services)
            await survey.run(STEP_SHARE * time_left())
            self._surveys[site] = survey
            await self._report(2, 10, survey.summary)
        pages, unread = await survey.nearest(questions, limit=limit)
        results = tuple(
            SearchResult(
                page[1] or wording(page),
                page[0],
                "",
                engine=SITE,
                rank=rank,
                inside=survey.inside,
            )
            for rank, page in enumerate(pages, start=1)
        )
        summary = "; ".join(failure.reason for failure in unread)
        continuation = "".join(failure.rest for failure in unread)
        return SearchOutcome(results, site, "ok", unread=summary, rest=continuation)


class Survey:
    """What is known of a site while it is looked over."""

    def __init__(
        self, site: str, questions: Sequence[Question], services: Services
    ) -> None:
        services.addresses.check(site)
        self.name, self.span = split_span(site)
        address = self.name[len(SITE) :].strip()
        self.start = address if "://" in address else f"https://{address}"
        if not _location(self.start)[0]:
            raise UsageError(
                f"{site} is not a site.",
                hint="Write site:https://docs.example.org/guide/.",
            )
        self.errors: dict[str, SourceError] = {}
        """Why what the site names, the page to begin at first of all, cannot be
        read."""
        self.cut = False
        """Whether the site names more pages, or more that lists them, than are looked
        at."""
        self.late = False
        self.inside = False
        """Whether all that lists its pages came from inside."""
        self._listed: dict[str, Listed] = {}
        """Pages by the key under which the addresses of one page meet."""
        self._questions = questions
        self._services = services
        self._folders = [_folder(self.start)]
        self._asked: set[str] = set()
        root = urljoin(self.start, "/")
        lists = (
            urljoin(self.start, "llms.txt"),
            f"{root}llms.txt",
            f"{root}robots.txt",
        )
        self._guesses = [*dict.fromkeys(lists), f"{root}sitemap.xml"]

    @property
    def pages(self) -> list[Listed]:
        """What is known of pages in the part of the site that was named, in its own
        order."""
        return [page for page in [*self._listed.values()] if self._covers(page[0])]

    def _covers(self, url: str) -> bool:
        host, path = _location(url)
        return any(
            host == name and f"{path}/".startswith(folder)
            for name, folder in self._folders
        )

    @property
    def summary(self) -> str:
        """A line of progress."""
        return f"{shown_location(self.name)}: pages listed: {len(self.pages)}"

    async def run(self, seconds: float) -> None:
        """Ask for what lists pages, for `seconds` at most.

        Of many sitemaps those are read whose names say what the questions ask. Raises
        `SourceError` if the site lists no page; other failures are in `errors`."""
        with anyio.move_on_after(seconds) as time:
            await self._look_over()
        self.late = time.cancelled_caught
        if not self.pages:
            late = SourceTimeout(
                f"{self.name}: the list of its pages was not ready in time.",
                source=self.name,
                hint="Repeat the call.",
            )
            raise self.errors.get(self.start, late)

    async def nearest(
        self, questions: Sequence[Question], *, limit: int
    ) -> tuple[list[Listed], list[Failure]]:
        """Return the pages of the site, at most `limit`, that are nearest to any of
        `questions` by title and path, and what is not read, with how to go on.

        A span beyond the last page gives no pages. Raises `ModelError`."""
        start, last_page = self.span[0] - 1, self.span[1]
        pages = await _ranked(self.pages, questions, self._services)
        until = start + min(limit, last_page - start if last_page else READ)
        unread = [Failure(error.source, str(error)) for error in self.errors.values()]
        if self.late:
            why = "its list of pages did not load completely in time"
            unread.append(Failure(self.name, why, late=True))
        elif self.cut:
            why = (
                "it lists more pages than were examined; name a part of it, "
                "such as site:https://docs.example.org/guide/"
            )
            unread.append(Failure(self.name, why))
        if until < len(pages):
            span = f"#pages={until + 1}-{2 * until - start}"
            why = (
                f"{len(pages) - until} of its {len(pages)} pages, less near by title "
                f"and path (to read on, add {span})"
            )
            unread.append(Failure(self.name, why, rest=self.name + span))
        return pages[start:until], unread

    async def _look_over(self) -> None:
        """Ask for what lists pages, in three rounds; `cut` says that there are more
        lists than were read."""
        *guesses, sitemap = self._guesses
        pages = await self._fetched((*guesses, self.start), outside=False)
        self.inside = all(page.inside for page in pages)
        host = next(
            (_location(page.final_url)[0] for page in pages if page.url == self.start),
            "",
        )
        if host and host != self._folders[0][0]:
            self._folders.append((host, "/"))  # it lives there now
        lists = await in_thread(self._lists_of, pages) or [sitemap]
        for _ in range(2):  # sitemaps, then those that an index names
            names = [(url, "") for url in dict.fromkeys(lists)]
            ranked = await _ranked(names, self._questions, self._services)
            self.cut = self.cut or len(ranked) > MOST_LISTS
            pages = await self._fetched(
                [url for url, _ in ranked[:MOST_LISTS]], outside=not self.inside
            )
            lists = await in_thread(self._lists_of, pages)
        self.cut = self.cut or bool(lists)

    async def _fetched(self, urls: Sequence[str], *, outside: bool) -> list[Page]:
        """Return those of `urls` on the site's host that were not asked for before and
        can be read, in order.

        Failures are in `errors`, but for addresses that were only guessed."""
        hosts = {host for host, _ in self._folders}
        urls = [
            url for url in urls if url not in self._asked and _location(url)[0] in hosts
        ]
        self._asked.update(urls)
        pages: dict[str, Page] = {}

        async def fetch(url: str) -> None:
            try:
                pages[url] = await self._services.fetcher.fetch(url, outside=outside)
            except SourceError as error:
                if url == self.start or url not in self._guesses:
                    self.errors[url] = error

        async with anyio.create_task_group() as group:
            for url in urls:
                group.start_soon(fetch, url)
        return [pages[url] for url in urls if url in pages]

    def _lists_of(self, pages: Sequence[Page]) -> list[str]:
        """Note the pages that `pages` name, and the start among them; return what else
        lists pages."""
        lists: list[str] = []
        for page in pages:
            root = parse(page.html)
            if root is None:
                continue
            if page.url.endswith("/robots.txt"):
                words = root.text(separator=" ").replace(":http", ": http").split()
                lists += [
                    url for word, url in pairwise(words) if word.lower() == "sitemap:"
                ]
            else:
                base = base_of(page.html, page.final_url)
                if page.url == self.start:
                    self._add(page.final_url, page.title)
                for link in _links(root, base):
                    check_cancelled()
                    self._add(*link)
                lists += filter(
                    None, (_address(node, base) for node in root.css(_LISTS))
                )
        return lists

    def _add(self, url: str, title: str) -> None:
        if url in self._asked - {self.start}:
            return
        if len(self._listed) >= MAX_ITEMS:
            self.cut = True
            return
        key, ending = os.path.splitext(canonical_url(url))
        if ending not in {".html", ".htm", ".md", ".mdx"}:
            key += ending
        key = key.removesuffix("/index")
        earlier = self._listed.get(key, (url, title))
        # The Markdown version has the same text without furniture.
        url = url if url.endswith((".md", ".mdx")) else earlier[0]
        self._listed[key] = url, earlier[1] or title


def _links(root: LexborNode, base: str) -> Iterator[Listed]:
    """Yield the documents that a page links to, with the link's text and the text right
    after it."""
    for node in root.css("a[href]:not([rel~='sitemap'])"):
        url = urldefrag(_address(node, base)).url
        if not url or ending_of(urlsplit(url).path) in OTHERS | IMAGES:
            continue
        after = node.next
        is_text = after is not None and after.tag == "-text"
        description = after.text_content if after is not None and is_text else ""
        words = one_line(f"{node.text()} {description or ''}")[:TITLE_CHARACTERS]
        yield url, "" if words.startswith(("http://", "https://")) else words


def _address(node: LexborNode, base: str) -> str:
    return absolute(node.attributes.get("href") or "", base)


def _location(url: str) -> tuple[str, str]:
    """Return the host and port of an address, with and without `www.` alike, and its
    path; both empty for a malformed one."""
    try:
        split = urlsplit(url)
        return split.netloc.lower().removeprefix("www."), unquote(split.path)
    except ValueError:
        return "", ""


def _folder(url: str) -> tuple[str, str]:
    """Return the host and the folder of an address; a last part with an ending is a
    file in it."""
    host, path = _location(url)
    folder, _, name = path.rpartition("/")
    return host, f"{folder}/" if "." in name else f"{path.rstrip('/')}/"
