"""Plain text of a known form: manual pages and AsciiDoc."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step(
    "marked text", later("extras.documents.marked_text", "marked_to_html")
)
