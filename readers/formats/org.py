"""Org, as Emacs writes it."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("text/org",),
    to_html=later("readers.text.markup", "org_to_html"),
    reads="text",
    endings=(".org",),
    also=("text/x-org",),
)
