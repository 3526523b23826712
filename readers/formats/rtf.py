"""Rich text."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/rtf",),
    to_html=later("readers.office.rtf", "rtf_to_html"),
    reads="text",
    endings=(".rtf",),
    magic={b"{\\rtf": "application/rtf"},
    binary=True,
    heavy=True,
)
