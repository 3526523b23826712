"""What is asked of search providers, and what they answer.

    ParsedRequest → SearchQuery → SearchOutcome(SearchResult…)

Not for: asking them (`pipeline/search/chain.py`), or what a question wants
(`pipeline/question/wants.py`)."""

from dataclasses import dataclass, field
from typing import Literal

from pipeline.question.question import Question
from pipeline.question.wants import Freshness

SafeSearch = Literal["", "off", "moderate", "strict"]
SearchStatus = Literal[
    "ok",
    "empty",
    "blocked",
    "rate_limited",
    "unauthorized",
    "quota",
    "timeout",
    "unreachable",
    "unsupported",
    "bad_response",
]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One query for the providers."""

    text: str
    """Words as the provider gets them."""
    language: str = ""
    """ISO 639-1 code of the requested results; "" for any."""
    freshness: Freshness = "any"
    """How recent results must be; a filter, never words."""
    since: str = ""
    """First ISO day of publication, empty for no bound. With `until` it takes the place
    of `freshness`."""
    until: str = ""
    """Last ISO day of publication, empty for no bound."""
    region: str = ""
    """ISO 3166 code of the country to search for, such as `at`; empty for any."""
    site: str = ""
    """Host that results must come from, its subdomains included; empty for any."""
    safe: SafeSearch = ""
    """How strictly adult pages are left out; empty for the provider's own default."""
    page: int = 1
    """1-based page of results."""
    scholarly: bool = False
    """Whether it asks for published research, which catalogues of it are asked for
    besides."""
    guessed: bool = field(default=False, compare=False)
    """Whether a model wrote it; what such queries find shares a part of the places."""
    asked: Question | None = field(default=None, compare=False, repr=False)
    """The question that its text is the whole of, for who asked it has analysed it."""

    @property
    def question(self) -> Question:
        """What it asks."""
        is_known = self.asked is not None and self.asked.text == self.text
        return (
            self.asked if self.asked is not None and is_known else Question(self.text)
        )


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request (zero-index §3.1)."""

    queries: tuple[SearchQuery, ...]
    """1..n queries; the raw request is always the first."""
    entities: tuple[str, ...] = ()
    """Names and unknown words, kept whole and verbatim."""
    fallback: str = ""
    """Why a generator that is set did not produce it, or is not followed."""
    needless: str = ""
    """Why nothing is searched, as the end of a sentence."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about it for the reader."""
        needless = f"Not searched: {self.needless}." if self.needless else ""
        return tuple(filter(None, (self.fallback, needless)))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One hit of one provider."""

    title: str
    url: str
    snippet: str
    """Plain text, without markup."""
    published: str = ""
    """ISO date, empty when the provider gives none."""
    engine: str = ""
    """Provider, and its engine if known (`searxng:brave`)."""
    rank: int = 1
    """1-based place in the provider's own order."""
    language: str = ""
    """ISO 639-1 code, empty when the provider does not say."""
    author: str = ""
    """Names, parted by semicolons, of what a catalogue lists."""
    doi: str = ""
    inside: bool = False
    """Whether an internal search service or page led to it."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The result of one provider. `blocked` is never `empty`."""

    results: tuple[SearchResult, ...]
    provider: str
    status: SearchStatus
    reason: str = ""
    """A sentence for any status but `ok`; also which filters were ignored."""
    retry_after: float | None = None
    """Seconds until it is worth asking again, if known."""
    unread: str = ""
    """What the provider has not looked at yet, and will when it is asked again; empty
    for nothing."""
    unsearched: str = ""
    """What a provider that found something can never search: said where nothing
    answers."""
    rest: str = ""
    """The source under which that can be had, where asking again is not enough."""
