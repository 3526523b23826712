"""The transcript of a page's film or sound."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("transcript", later("extras.transcript", "with_transcript"))
