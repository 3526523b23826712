"""Sites whose pages are read through an API: code forges (`extras/forge.py`).

An address that no site plans, or whose API fails, is fetched as a page. Not for:
connections and refusals (`exchange.py`).
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from seams import optional

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


ReadPage = Callable[[Get], Awaitable[Content]]
"""Returns the page of one address; raises `SourceError` where the API refuses it."""


Plan = Callable[[str], ReadPage | None]
"""How a site with an API reads an address; None for one that is not plainly of its
form."""


def known_sites() -> tuple[Plan, ...]:
    """Return the sites that are read through their API without a setting."""
    forges = optional("extras.forge", "known_forges")
    return tuple(forge.plan for forge in forges()) if forges is not None else ()


def site_at(kind: str, address: str) -> Plan:
    """Return the code forge of a `kind` that somebody runs at `address`.

    Raises `ValueError` for an unknown kind."""
    forge_at = optional("extras.forge", "forge_at")
    if forge_at is None:
        raise ValueError("This installation lacks `extras/forge.py`.")
    plan: Plan = forge_at(kind, address).plan
    return plan


def plan_for(url: str, sites: Iterable[Plan]) -> ReadPage | None:
    """Return how to read an address through an API; None where no site has it."""
    return next(filter(None, (plan(url) for plan in sites)), None)
