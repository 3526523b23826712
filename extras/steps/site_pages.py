"""The pages of a whole site that a question is about."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("site pages", later("extras.sites", "site_pages"))
