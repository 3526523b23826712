"""Engines' result pages, through the library `ddgs` (extra `ddgs`)."""

from typing import Final

from pipeline.search.provider import Provider
from seams import later

PROVIDER: Final = Provider(
    name="ddgs",
    make=lambda access: later("pipeline.search.metasearch", "Metasearch")(),
    keyless=True,
    extra="ddgs",
    place=25,
)
