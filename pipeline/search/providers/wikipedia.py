"""Wikipedia."""

from typing import Final

from pipeline.search.provider import Provider
from seams import later

WIKIPEDIA: Final = "https://{language}.wikipedia.org"
PROVIDER: Final = Provider(
    name="wikipedia",
    make=later("pipeline.search.wikipedia", "made"),
    keyless=True,
    address=WIKIPEDIA.format(language="en"),
    place=60,
)
