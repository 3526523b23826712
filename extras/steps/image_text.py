"""The text that an image shows."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("image text", later("extras.ocr.scan", "read_scan"))
