"""Pages as a browser shows them."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("browser", later("extras.browser", "driver"))
