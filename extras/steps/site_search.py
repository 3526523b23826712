"""A search of nothing but whole sites."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("site search", later("extras.sites", "site_search"))
