"""Transcripts with times, in any of the forms that pages name."""

from typing import Final

from pipeline.steps import Step
from seams import later

STEP: Final = Step("timed text", later("extras.documents.subtitles", "timed_to_html"))
