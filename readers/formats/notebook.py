"""Jupyter's notebooks."""

from typing import Final

from readers.format import JSON, Format
from seams import later

FORMAT: Final = Format(
    types=("application/x-ipynb+json",),
    to_html=later("readers.office.notebook", "ipynb_to_html"),
    reads="text",
    endings=(".ipynb",),
    form_of=JSON,
    indexed="json",
)
