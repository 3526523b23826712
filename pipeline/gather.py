"""Request → queries → results → pages → mixed ranking: the first half of the zero-index pipeline (§3).

`search_web` shows what comes out; `research` goes on with it. Not for: reading named sources (`pipeline/sources.py`).
"""

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from pipeline.documents import Document, Failure, Freshness, ParsedRequest, SearchOutcome, SearchQuery, SearchResult
from pipeline.rank.mixed import RankedPage, RankForm, mixed_rank
from pipeline.search.parse import Parser, parse
from pipeline.services import Services
from pipeline.sources import failure_of, open_all, read_in_part
from pipeline.work import STEP_SHARE, Report, time_left

HITS_PER_PAGE: Final = 2
"""Results asked for each page wanted: mixed ranking needs something to choose from."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to gather."""

    question: str
    max_pages: int
    freshness: Freshness = "any"
    language: str = ""
    form: RankForm = "mixed"
    hops: int = 3
    """Most further searches that start from what was found."""
    filters: SearchQuery = field(default_factory=lambda: SearchQuery(""))
    """Dates, region, site, safe search and page for every query; its other fields are not read."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was found, best first, and what could not be had."""

    parsed: ParsedRequest
    ranked: tuple[RankedPage, ...]
    documents: dict[str, Document]
    """Result URL to its page, for the pages that came in time."""
    outcomes: tuple[SearchOutcome, ...]
    failures: tuple[Failure, ...]
    silent: tuple[SearchOutcome, ...] = ()
    """Sources that did not answer, for which no other stood in."""
    notice: str = ""
    """What is told once of how this server searches."""

    def missing(self) -> list[Failure]:
        """Return what was not read, sources of results first."""
        asked = dict.fromkeys((one.provider, one.status) for one in self.silent)
        silent = [Failure(provider, status, late=status == "timeout") for provider, status in asked]
        return [*silent, *self.failures]


async def gather_pages(wanted: Wanted, services: Services, *, report: Report) -> Gathered:
    """Search, fetch and rank; returns at most `wanted.max_pages` pages.

    Raises:
        SearchFailed: No provider could answer.
    """
    # 1. PARSER: what to ask, in which language, how fresh
    parser = Parser(services.generator, services.stores.scores, services.seconds * STEP_SHARE)
    parsed = await parse(wanted.question, parser, today=services.today())
    queries = [narrowed(query, wanted) for query in parsed.queries]
    await report(1, 10, f"searching: {queries[0].text}")
    # 2. Search: every query, the provider chain
    found = await services.chain.search(queries, limit=wanted.max_pages * HITS_PER_PAGE)
    await report(3, 10, f"{len(found.results)} results")
    # 3. Fetch: the pages behind, as far as they come in time
    documents: dict[str, Document] = {}
    failures = [
        Failure(provider, one.unread, late=not one.rest, rest=one.rest)
        for provider, one in {outcome.provider: outcome for outcome in found.outcomes}.items()
        if one.unread
    ]
    if wanted.form not in ("snippet", "engine"):
        urls = [result.url for result in found.results]
        seconds = STEP_SHARE * min(services.seconds, time_left())
        documents, errors = await open_all(urls, services, seconds=seconds)
        documents |= {one.url: catalogued(documents[one.url], one) for one in found.results if one.url in documents}
        failures += map(failure_of, errors)
        await report(6, 10, f"{len(documents)} pages read, {len(errors)} not")
    # 4. Mixed ranking: snippets, passages and the engines' order
    asked = parsed.parts or (wanted.question,)
    orders = [
        await mixed_rank(
            one,
            found.results,
            documents,
            embedder=services.embedder,
            reranker=services.reranker,
            form=wanted.form,
        )
        for one in asked
    ]
    # Each part's best page comes before the second of any.
    turns: dict[str, RankedPage] = {}
    for one in chain.from_iterable(zip(*orders, strict=True)):
        turns.setdefault(one.result.url, one)
    ranked = [replace(one, place=place) for place, one in enumerate(turns.values(), start=1)]
    await report(7, 10, f"ranked {len(ranked)} pages")
    ranked = ranked[: wanted.max_pages]
    in_part = read_in_part(documents[one.result.url] for one in ranked if one.result.url in documents)
    missing = tuple(dict.fromkeys([*in_part, *failures]))
    notice = services.notice.take()
    return Gathered(parsed, tuple(ranked), documents, found.outcomes, missing, found.silent, notice)


def catalogued(document: Document, result: SearchResult) -> Document:
    """Return a document with what a catalogue of research says of it, which is surer than what a PDF says of itself."""
    if not result.doi and not result.author:
        return document
    page = document.page
    page = replace(
        page,
        title=result.title,
        author=result.author or page.author,
        published=result.published or page.published,
        doi=result.doi,
    )
    return replace(document, page=page)


def narrowed(query: SearchQuery, wanted: Wanted) -> SearchQuery:
    """Return a query with what the caller wants of all."""
    return replace(
        wanted.filters,
        text=query.text,
        scholarly=query.scholarly,
        freshness=wanted.freshness if wanted.freshness != "any" else query.freshness,
        language=wanted.language or query.language,
    )
