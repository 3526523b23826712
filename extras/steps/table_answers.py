"""Values that tables answer."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("table answers", later("extras.tables.asked", "ask_parts"))
