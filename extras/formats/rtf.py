"""Rich text."""

from typing import Final

from pipeline.read.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/rtf",),
    to_html=later("extras.documents.rtf", "rtf_to_html"),
    reads="text",
    endings=(".rtf",),
    magic={b"{\\rtf": "application/rtf"},
    binary=True,
    heavy=True,
)
