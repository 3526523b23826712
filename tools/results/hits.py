"""The result of `search_web`."""

from pydantic import BaseModel, Field

from pipeline.search_pages import Hit, HitList
from pipeline.text.frame import address, one_line
from readers.page import TITLE_CHARACTERS, Trust
from tools.common.ending import Ending
from tools.common.results import INJECTION, TRUST, Next


class HitInfo(BaseModel):
    """One ranked page."""

    place: int = Field(description="Rank, and number in the text")
    url: str
    published: str = Field(description="ISO date, empty when unknown")
    language: str = Field(description="ISO 639-1 code, empty when unknown")
    handle: str = Field(
        description="Handle of the page as read; other tools use it without fetching again. Empty: not read"
    )
    engine: str = Field(description="Providers and engines that listed it")
    score: float
    made_by: str = Field(description="What made the score")
    trust: Trust = Field(default="visible", description=TRUST)
    injection: bool = Field(default=False, description=INJECTION)


class SearchWebResult(BaseModel):
    """Structured result of `search_web`."""

    queries: list[str] = Field(description="Queries that were sent")
    hits: list[HitInfo]
    providers: list[str] = Field(description="Each provider with its status and reason")
    failures: list[str] = Field(
        description="Pages that could not be read, with the reason"
    )
    next: list[Next] = Field(description="Follow-up calls, best first")
    tokens: int = Field(description="Tokens of the text")


def search_result(hits: HitList, ending: Ending) -> SearchWebResult:
    """Return the result for a list of hits."""
    parsed = hits.gathered.parsed
    facts: dict[str, object] = {
        "queries": [query.text for query in parsed.queries],
        "hits": list(map(_info, hits.hits)),
        "providers": hits.providers,
    }
    return SearchWebResult.model_validate(facts | ending.facts)


def _info(hit: Hit) -> HitInfo:
    ranked, result, document = hit.ranked, hit.ranked.result, hit.document
    return HitInfo(
        place=ranked.place,
        url=address(result.url),
        published=hit.published,
        language=result.language or (document.page.language if document else ""),
        handle=hit.handle,
        engine=one_line(result.engine)[:TITLE_CHARACTERS],
        score=round(ranked.score.value, 4),
        made_by=ranked.score.made_by,
        trust=_trust(hit),
        injection=hit.injection,
    )


def _trust(hit: Hit) -> Trust:
    """Return the origin of the words that are shown: the page, or the search alone."""
    document = hit.document
    if document is None:
        return "snippet"
    # The engine's snippet may be part of the page too.
    of_search = (
        hit.words == hit.ranked.result.snippet and hit.words not in document.text
    )
    return "snippet" if of_search else document.page.trust
