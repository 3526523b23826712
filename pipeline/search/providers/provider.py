"""What a search provider is: one call, one answer with a status.

A provider never raises for what the other side does (blocked, slow, broken): it answers with a status, and the chain
decides what comes next. Not for: the order of providers (`pipeline/search/chain.py`).
"""

from typing import Protocol

from pipeline.documents import SearchOutcome, SearchQuery


class Provider(Protocol):
    """Somewhere to search."""

    @property
    def name(self) -> str:
        """Short name, unique in a chain; it stands in outcomes, errors and cache keys."""
        ...

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most `limit` results and how it went; `reason` also says what of `query` was not honoured."""
        ...
