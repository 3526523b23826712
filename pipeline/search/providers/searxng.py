"""A SearXNG instance that a person names."""

from typing import Final

from pipeline.search.provider import Provider
from seams import later

PROVIDER: Final = Provider(
    name="searxng",
    make=later("pipeline.search.searxng", "made"),
    at="searxng",
    place=10,
)
