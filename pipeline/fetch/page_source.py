"""Sites whose pages are read through an API: the plug-in point for one more.

Each module of `extras/page_sources/` binds one `PageSource` to `PAGE_SOURCE`, and other
packages add theirs by entry points of the group `winnow.page_sources`. An address that
no site plans, or whose API fails, is fetched as a page. Not for: connections and
refusals (`exchange.py`).
"""

import functools
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from seams import Seam

Get = Callable[[str], Awaitable[bytes]]
"""Returns the bytes at an address; raises `SourceError`."""


class Content(NamedTuple):
    """What an API says of one page."""

    body: bytes
    name: str = "page.html"
    """For its ending, which gives the format."""
    author: str = ""
    published: str = ""
    unread: str = ""


class ReadingPlan(Protocol):
    """How one address is read."""

    async def read(self, get: Get) -> Content:
        """Return the page; raises `SourceError` where the API refuses it."""


class ApiSite(Protocol):
    """A site that has an API."""

    def plan(self, url: str) -> ReadingPlan | None:
        """Return how to read an address; None for one that is not plainly of its
        form."""


@dataclass(frozen=True, slots=True)
class PageSource:
    """The sites of one kind of API."""

    known: tuple[ApiSite, ...] = ()
    """Those that everybody knows."""
    kinds: tuple[str, ...] = ()
    """Names by which the setting `forges` adds further ones."""
    at: Callable[[str, str], ApiSite] | None = None
    """Takes one of `kinds` and the site's address."""


SEAM: Final = Seam(
    ("extras.page_sources",), "PAGE_SOURCE", "winnow.page_sources", PageSource
)


@functools.cache
def known_sites() -> tuple[ApiSite, ...]:
    """Return the sites that are read through their API without a setting."""
    return tuple(site for source in SEAM.found() for site in source.known)


def site_at(kind: str, address: str) -> ApiSite:
    """Return the site of a `kind` that somebody runs at `address`.

    Raises `ValueError` for an unknown kind."""
    sources = SEAM.found()
    for source in sources:
        if source.at is not None and kind in source.kinds:
            return source.at(kind, address)
    kinds = ", ".join(kind for source in sources for kind in source.kinds)
    raise ValueError(
        f"Use KIND=ADDRESS with one of these kinds: {kinds}; for "
        "example gitlab=https://git.example.org."
    )


def plan_for(url: str, sites: Iterable[ApiSite]) -> ReadingPlan | None:
    """Return how to read an address through an API; None where no site has it."""
    return next((plan for site in sites if (plan := site.plan(url))), None)
