"""What a search provider is: the seam by which Winnow learns to ask one more.

Each module of `pipeline/search/providers/` and `extras/providers/` binds one `Provider` to
`PROVIDER`, and other wheels add theirs by entry points of the group `winnow.providers`. Its key's
setting, who is asked, what the doctor looks at and the documents follow from here. These files are
read at every start, so what takes long to import is reached by `seams.later`. Not for: the call
itself (`web_api.py`), nor a person's own folders (`folder.py`).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from seams import Seam, later

if TYPE_CHECKING:
    import httpx2

    from pipeline.search.service import Service


@dataclass(frozen=True, slots=True)
class Access:
    """What a provider may use to be asked."""

    http: "httpx2.AsyncClient"
    key: str = field(default="", repr=False)
    """Its key."""
    contact: str = field(default="", repr=False)
    """Mail address of the person who asks."""
    address: str = field(default="", repr=False)
    """Value of the setting `at`."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One search provider: what it is called, what it needs, and how it is made."""

    name: str
    """In small letters, as settings name it."""
    make: Callable[[Access], Any]
    """Returns what has `name` and `async search(query, *, limit)`, which never raises for what the
    other side does: a `pipeline.search.chain.Searcher`."""
    kind: Literal["web", "research"] = "web"
    """Pages of all kinds, or a catalogue of published research, asked beside the web for questions
    about that."""
    key: str = ""
    """What its key is, as the documents say it; the setting `keys` holds it under this name. Empty for none."""
    keyless: bool = False
    """Whether it answers without a key."""
    at: str = ""
    """The setting that has its address, of one that a person runs."""
    address: str = ""
    """Of its service, which the doctor asks whether it answers; empty where that is set by `at` or
    there is no single one."""
    extra: str = ""
    """The extra whose package it needs."""
    place: int = 100
    """Its place where a person has set no order, the lowest first: the widest first."""
    service: "Service | None" = None
    """Its row, where it is a JSON API like others."""


SEAM: Final = Seam(
    ("pipeline.search.providers", "extras.providers"),
    "PROVIDER",
    "winnow.providers",
    Provider,
)


@functools.cache
def providers() -> dict[str, Provider]:
    """Return every provider by its name, in the order in which they are asked unless a person sets
    another."""
    return {
        provider.name: provider
        for provider in sorted(
            SEAM.found(), key=lambda provider: (provider.place, provider.name)
        )
    }


def over(
    service: "Service",
    *,
    key: str = "",
    keyless: bool = False,
    kind: Literal["web", "research"] = "web",
    place: int = 100,
) -> Provider:
    """Return the provider over one JSON API; `key` says what its key is, never the key
    itself."""
    return Provider(
        name=service.name,
        make=functools.partial(later("pipeline.search.web_api", "made"), service),
        kind=kind,
        key=key,
        keyless=keyless or service.keyless,
        address=service.address.replace("{language}", "en"),
        place=place,
        service=service,
    )
