"""PowerPoint files."""

from typing import Final

from pipeline.read.format import Format
from seams import later

FORMAT: Final = Format(
    types=(
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    to_html=later("extras.documents.slides", "pptx_to_html"),
    endings=(".pptx",),
    parts=("ppt/presentation",),
    binary=True,
    heavy=True,
)
