"""Request → queries → results → pages → mixed ranking: the first half of the zero-index pipeline (§3).

`search_web` shows what comes out; `research` goes on with it. Not for: reading named sources (`pipeline/sources.py`).
"""

from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.documents import Document, Failure, Freshness, ParsedRequest, SearchOutcome, SearchQuery
from pipeline.rank.mixed import RankedPage, RankForm, mixed_rank
from pipeline.search.parse_model import Parser, parse
from pipeline.services import Services
from pipeline.sources import failure_of, open_all, read_in_part
from pipeline.work import Report

FETCH_SHARE: Final = 0.4
"""Part of a call's time that page fetches may use; late pages are ranked by snippet."""
PARSE_SHARE: Final = 0.25
"""The same for a generator that parses the request; the rules are what it comes to otherwise."""
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
    parser = Parser(services.generator, services.stores.scores, services.seconds * PARSE_SHARE)
    parsed = await parse(wanted.question, parser, today=services.today())
    queries = [_narrowed(query, wanted) for query in parsed.queries]
    await report(1, 10, f"searching: {queries[0].text}")
    # 2. Search: every query, the provider chain
    found = await services.chain.search(queries, limit=wanted.max_pages * HITS_PER_PAGE)
    await report(3, 10, f"{len(found.results)} results")
    # 3. Fetch: the pages behind, as far as they come in time
    documents: dict[str, Document] = {}
    failures = [
        Failure(provider, unread, late=True)
        for provider, unread in {o.provider: o.unread for o in found.outcomes}.items()
        if unread
    ]
    if wanted.form not in ("snippet", "engine"):
        urls = [result.url for result in found.results]
        documents, errors = await open_all(urls, services, seconds=services.seconds * FETCH_SHARE)
        failures += map(failure_of, errors)
        await report(6, 10, f"{len(documents)} pages read, {len(errors)} not")
    # 4. Mixed ranking: snippets, passages and the engines' order
    ranked = await mixed_rank(
        wanted.question,
        found.results,
        documents,
        embedder=services.embedder,
        reranker=services.reranker,
        form=wanted.form,
    )
    await report(7, 10, f"ranked {len(ranked)} pages")
    ranked = ranked[: wanted.max_pages]
    in_part = read_in_part(documents[one.result.url] for one in ranked if one.result.url in documents)
    return Gathered(
        parsed, tuple(ranked), documents, found.outcomes, tuple(dict.fromkeys([*in_part, *failures])), found.silent
    )


def _narrowed(query: SearchQuery, wanted: Wanted) -> SearchQuery:
    return replace(
        wanted.filters,
        text=query.text,
        freshness=wanted.freshness if wanted.freshness != "any" else query.freshness,
        language=wanted.language or query.language,
    )
