"""A draft against its sources."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("draft check", later("extras.drafts.answer", "check_draft"))
