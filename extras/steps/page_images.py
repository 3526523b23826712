"""The pages of a PDF as images."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("page images", later("extras.ocr.images", "PdfScans"))
