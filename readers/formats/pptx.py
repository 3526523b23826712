"""PowerPoint files."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=(
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    to_html=later("readers.office.slides", "pptx_to_html"),
    endings=(".pptx",),
    parts=("ppt/presentation",),
    binary=True,
    heavy=True,
)
