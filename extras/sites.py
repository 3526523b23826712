"""A whole site as a source, `site:https://docs.example.org/guide/`: which of its pages
a question is about.

A site says itself which pages it has: in its list for models (llms.txt), sitemaps,
feeds, and the links of the page that is named. Those of that host and below that path
are ranked by what is said of them and by their paths, and the best are read as any page
is; `#pages=17-32` after the name continues with the next pages. What lists them is
asked for in three rounds of bounded size, through the same guarded client, so that no
site can keep a call busy. Not for: following links from page to page
(`pipeline/research.py`).
"""

import mimetypes
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html import unescape
from itertools import chain
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import anyio
import numpy as np
from selectolax.lexbor import LexborNode

from errors import SourceError, SourceTimeout, UsageError
from pipeline.document.converted import MAX_ITEMS
from pipeline.document.page import Failure, Page
from pipeline.evidence.render import absolute
from pipeline.fetch.files import DOCUMENTS, split_span
from pipeline.html.addresses import base_of
from pipeline.html.guard import parse
from pipeline.question.question import Question
from pipeline.question.wants import SITE, is_site
from pipeline.read.format import HTML
from pipeline.reading.relevance import score_texts
from pipeline.search.chain import Findings, canonical_url
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult
from pipeline.services import Fetches, Once, Services
from pipeline.sources.gather import MAX_FILES, SitePages, failure_of
from pipeline.text.frame import TITLE_CHARACTERS, one_line, shown_location
from pipeline.work import STEP_SHARE, Report, check_cancelled, in_thread, time_left

READ: Final = 16
"""Pages that one call reads of a site: as many as `research` reads of a search."""
MOST_LISTS: Final = 8
"""Sitemaps and feeds that are read in one round; where an index names more, those with
the question's words."""
_SITEMAP: Final = re.compile(
    r"\bsitemap\b(?:[\s:]|</?\w+>)*(https?://[^\s<]+)", re.IGNORECASE
)
"""Of a robots.txt, as its lines became HTML."""
_MARKDOWN_TWIN: Final = re.compile(r"\.mdx?$")
_SAME: Final = re.compile(r"(?:/index)?(?:\.html?)?$")
_MARKDOWN_LINK: Final = 'link[rel~="alternate"][type="text/markdown"]'
_LISTS: Final = (
    'link[rel~="alternate"][type$="rss+xml"], '
    'link[rel~="alternate"][type$="atom+xml"], [rel~="sitemap"]'
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A page that a site names."""

    url: str
    said: str
    """Its title or the words of a link to it, empty where only its address is known."""

    @property
    def text(self) -> str:
        """What it is ranked by."""
        path = " ".join(re.split(r"[\W_]+", _location(self.url)[1]))
        return f"{self.said}\n{path}".strip()


@dataclass(frozen=True, slots=True)
class ChosenPages:
    """The pages of one site that are read for a question."""

    pages: tuple[Listed, ...]
    """Best first."""
    left: tuple[Failure, ...]
    """What is not read, and how to go on."""


async def look_over(
    site: str, questions: Sequence[Question], services: Services, *, seconds: float
) -> "Survey":
    """Return which pages `site` names: `site:` and the address to begin at,
    followed by `#pages=17-32` for the next.

    Of many sitemaps those are read whose names say what `questions` ask; what is known
    after `seconds` is returned. Raises `SourceError` if it lists no page, `UsageError`
    if that is not an address."""
    survey = Survey(site, questions, services)
    with anyio.move_on_after(seconds) as time:
        await survey.run()
    survey.late = time.cancelled_caught
    if not survey.pages:
        late = SourceTimeout(
            f"{site}: the list of its pages was not ready in time.",
            source=site,
            hint="Repeat the call.",
        )
        raise survey.errors.get(survey.start, late)
    return survey


async def nearest(
    survey: "Survey", questions: Sequence[Question], services: Services, *, most: int
) -> ChosenPages:
    """Return the pages of a site, at most `most`, that are nearest to any of
    `questions` by title and path.

    Failures, and how to go on, are in `left`; a span beyond the last page gives no
    pages. Raises `ModelError`."""
    first, last = survey.span
    best = await _ranked(survey.pages, questions, services)
    end = first - 1 + min(most, last - first + 1 if last else READ)
    left = [Failure(error.source, str(error)) for error in survey.errors.values()]
    if survey.late:
        left.append(
            Failure(
                survey.name,
                "its list of pages did not load completely in time",
                late=True,
            )
        )
    elif survey.cut:
        left.append(
            Failure(
                survey.name,
                (
                    "it lists more pages than were examined; name a part of it, "
                    "such as site:https://docs.example.org/guide/"
                ),
            )
        )
    if end < len(best):
        summary = (
            f"{len(best) - end} of its {len(best)} pages, less near by title and path"
        )
        rest = f"#pages={end + 1}-{2 * end - first + 1}"
        left.append(
            Failure(
                survey.name,
                f"{summary} (to read on, add {rest})",
                rest=survey.name + rest,
            )
        )
    return ChosenPages(tuple(best[first - 1 : end]), tuple(left))


async def _ranked(
    listed: Sequence[Listed], questions: Sequence[Question], services: Services
) -> list[Listed]:
    """Return pages, those first that are near to any of the questions.

    Without a question their order stays. Raises `ModelError`."""
    texts = [page.text for page in listed]
    scores = [
        await score_texts(texts, one, embedder=services.embedder)
        for one in questions
        if one
    ]
    order = (
        np.argsort(-np.max(scores, axis=0), kind="stable")
        if scores
        else np.arange(len(listed))
    )
    return [listed[index] for index in order.tolist()]


async def site_pages(
    names: Sequence[str],
    question: Question,
    services: Services,
    *,
    seconds: float,
    report: Report,
) -> SitePages:
    """Return sources with the pages of each site in its place.

    Raises the `SourceError` of a site that is the only source; else it is a failure."""
    expanded: list[str] = []
    outside: set[str] = set()
    left: list[Failure] = []
    for name in names:
        if not is_site(name):
            expanded.append(name)
            continue
        try:
            survey = await look_over(name, [question], services, seconds=seconds)
        except SourceError as error:
            if len(names) == 1:
                raise
            left.append(failure_of(error))
            continue
        await report(0, None, survey.summary)
        chosen = await nearest(survey, [question], services, most=MAX_FILES)
        expanded += [page.url for page in chosen.pages]
        outside.update(page.url for page in chosen.pages if not survey.inside)
        left += chosen.left
    return SitePages(
        list(dict.fromkeys(expanded)),
        outside - set(names),
        left,
        replace(services, fetcher=Twins(services.fetcher)),
    )


def site_search(sites: Sequence[str], services: Services, report: Report) -> Services:
    """Return services that search nothing but `sites`."""
    search = SiteSearch(sites, services, report)
    return replace(
        services, chain=search, fetcher=Twins(services.fetcher), notice=Once()
    )


class Twins:
    """Reads pages as Markdown where they name such a twin of theirs."""

    def __init__(self, web: Fetches) -> None:
        self._web = web

    async def fetch(
        self, url: str, *, since: str = "", refresh: bool = False, outside: bool = False
    ) -> Page:
        """Return a page, or the Markdown twin that it names, which then is what is
        cited.

        The page itself is returned where it names none, the twin is on another host or
        cannot be read. Raises `SourceError` for the page alone."""
        page = await self._web.fetch(url, since=since, refresh=refresh, outside=outside)
        root = await in_thread(parse, page.html) if page.media_type == HTML else None
        link = root.css_first(_MARKDOWN_LINK) if root is not None else None
        base = base_of(page.html, page.final_url)
        twin = (
            absolute(link.attributes.get("href") or "", base)
            if link is not None
            else ""
        )
        if twin and _location(twin)[0] == _location(page.final_url)[0]:
            with suppress(SourceError):  # the page itself is there
                found = await self._web.fetch(
                    twin, since=since, refresh=refresh, outside=not page.inside
                )
                return replace(found, url=url)
        return page


class SiteSearch:
    """Searches sites for what `research` asks, in place of the web."""

    def __init__(
        self, sites: Sequence[str], services: Services, report: Report
    ) -> None:
        self._sites = sites
        self._services = services
        self._report = report
        self._known: dict[str, Survey] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The sites."""
        return tuple(self._sites)

    async def search(self, queries: Sequence[SearchQuery], *, limit: int) -> Findings:
        """Return the pages nearest to any of the queries; raises the first site's
        `SourceError` if none names any.

        A site that fails is `unreachable` among the outcomes."""
        questions, errors = [query.question for query in queries], list[SourceError]()
        outcomes: list[SearchOutcome] = []
        for site in self._sites:
            try:
                outcomes.append(
                    await self._one(site, questions, max(1, limit // len(self._sites)))
                )
            except SourceError as error:
                errors.append(error)
                outcomes.append(SearchOutcome((), site, "unreachable", str(error)))
        if len(errors) == len(outcomes):
            raise errors[0]
        found = tuple(one for outcome in outcomes for one in outcome.results)
        return Findings(
            found, tuple(outcomes), tuple(one for one in outcomes if one.status != "ok")
        )

    async def _one(
        self, site: str, questions: Sequence[Question], limit: int
    ) -> SearchOutcome:
        if site not in self._known:
            seconds = STEP_SHARE * time_left()
            self._known[site] = await look_over(
                site, questions, self._services, seconds=seconds
            )
            await self._report(2, 10, self._known[site].summary)
        chosen = await nearest(self._known[site], questions, self._services, most=limit)
        results = (
            SearchResult(
                one.said or one.text,
                one.url,
                "",
                engine=SITE,
                rank=rank,
                inside=self._known[site].inside,
            )
            for rank, one in enumerate(chosen.pages, start=1)
        )
        summary, rest = (
            "; ".join(one.reason for one in chosen.left),
            "".join(one.rest for one in chosen.left),
        )
        return SearchOutcome(tuple(results), site, "ok", unread=summary, rest=rest)


class Survey:
    """What is known of a site while it is looked over."""

    def __init__(
        self, site: str, questions: Sequence[Question], services: Services
    ) -> None:
        self.name, self.span = split_span(site)
        start = self.name[len(SITE) :].strip()
        start = start if "://" in start else f"https://{start}"
        if not _location(start)[0]:
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
        """By the key under which the addresses of one page meet."""
        self.start = start
        self._questions = questions
        self._services = services
        self._scope = [_folder(start)]
        self._asked: set[str] = set()
        root = urljoin(start, "/")
        self._guesses = tuple(
            dict.fromkeys(
                (urljoin(start, "llms.txt"), f"{root}llms.txt", f"{root}robots.txt")
            )
        )
        self._sitemap = f"{root}sitemap.xml"

    @property
    def pages(self) -> list[Listed]:
        """What is known of pages in the part of the site that was named, in its own
        order."""
        places = ((page, _location(page.url)) for page in list(self._listed.values()))
        return [
            page
            for page, (host, path) in places
            if any(
                host == own and f"{path}/".startswith(below)
                for own, below in self._scope
            )
        ]

    @property
    def summary(self) -> str:
        """A line of progress."""
        return f"{shown_location(self.name)}: pages listed: {len(self.pages)}"

    async def run(self) -> None:
        """Ask for what lists pages, in three rounds.

        No `SourceError` is raised: failures are in `errors`, and `cut` says that there
        are more lists than were read."""
        lists = await self._first_lists() or [self._sitemap]
        for _ in range(2):  # sitemaps, then those that an index names
            best = await _ranked(
                [Listed(url, "") for url in dict.fromkeys(lists)],
                self._questions,
                self._services,
            )
            self.cut = self.cut or len(best) > MOST_LISTS
            found = await self._fetched(
                [one.url for one in best][:MOST_LISTS], outside=not self.inside
            )
            lists = [
                one
                for page in found.values()
                for one in await in_thread(self._take, page)
            ]
        self.cut = self.cut or bool(lists)

    async def _first_lists(self) -> list[str]:
        """Return the sitemaps that robots.txt and the site's first pages name."""
        lists: list[str] = []
        first = await self._fetched((*self._guesses, self.start), outside=False)
        self.inside = all(page.inside for page in first.values())
        for url, page in first.items():
            if url.endswith("/robots.txt"):
                lists += map(unescape, _SITEMAP.findall(page.html))
                continue
            host = _location(page.final_url)[0]
            if url == self.start and host != _location(url)[0]:
                self._scope.append((host, "/"))  # it lives there now
            lists += await in_thread(self._take, page)
        return lists

    async def _fetched(self, urls: Sequence[str], *, outside: bool) -> dict[str, Page]:
        """Return those of `urls` on the site's host that were not asked for before and
        can be read.

        Failures of the others are in `errors`, but for addresses that were only
        guessed."""
        hosts = {host for host, _ in self._scope}
        wanted = [
            url for url in urls if url not in self._asked and _location(url)[0] in hosts
        ]
        self._asked.update(wanted)
        found: dict[str, Page] = {}

        async def fetch(url: str) -> None:
            try:
                found[url] = await self._services.fetcher.fetch(url, outside=outside)
            except SourceError as error:
                if url == self.start or url not in {*self._guesses, self._sitemap}:
                    self.errors[url] = error

        async with anyio.create_task_group() as group:
            for url in wanted:
                group.start_soon(fetch, url)
        return {url: found[url] for url in wanted if url in found}

    def _take(self, page: Page) -> list[str]:
        """Note the pages that `page` names, itself too where it is one; return what
        else lists pages."""
        root = parse(page.html)
        if root is None:
            return []
        base = base_of(page.html, page.final_url)
        lists = [
            absolute(node.attributes.get("href") or "", base)
            for node in root.css(_LISTS)
        ]
        own = [Listed(page.final_url, page.title)] if page.url == self.start else []
        for one in chain(own, _links(root, base)):
            check_cancelled()
            self._add(one)
        return [url for url in lists if url]

    def _add(self, page: Listed) -> None:
        if page.url in self._asked - {self.start}:
            return
        if len(self._listed) >= MAX_ITEMS:
            self.cut = True
            return
        key = _SAME.sub("", canonical_url(_MARKDOWN_TWIN.sub("", page.url)))
        known = self._listed.get(key, page)
        # The Markdown version has the same text without furniture.
        url = page.url if _MARKDOWN_TWIN.search(urlsplit(page.url).path) else known.url
        self._listed[key] = Listed(url, known.said or page.said)


def _links(root: LexborNode, base: str) -> Iterator[Listed]:
    """Yield the documents that a page links to, with the link's text and the text right
    after it."""
    for node in root.css("a[href]:not([rel~='sitemap'])"):
        url = urldefrag(absolute(node.attributes.get("href") or "", base)).url
        ending = mimetypes.guess_type(url)[0] and re.search(
            r"\.\w+$", urlsplit(url).path
        )
        if url and (not ending or ending[0].lower() in DOCUMENTS):
            description = (
                node.next.text_content
                if node.next is not None and node.next.tag == "-text"
                else ""
            )
            words = one_line(f"{node.text()} {description or ''}")[:TITLE_CHARACTERS]
            yield Listed(
                url, "" if words.startswith(("http://", "https://")) else words
            )


def _location(url: str) -> tuple[str, str]:
    """Return the host and port of an address, with and without `www.` alike, and its
    path; both empty for a malformed one."""
    try:
        parts = urlsplit(url)
        return parts.netloc.lower().removeprefix("www."), unquote(parts.path)
    except ValueError:
        return "", ""


def _folder(url: str) -> tuple[str, str]:
    """Return the host and the folder of an address; a last part with an ending is a
    file in it."""
    host, path = _location(url)
    folder = (
        path.rpartition("/")[0] if "." in path.rpartition("/")[2] else path.rstrip("/")
    )
    return host, f"{folder}/"
