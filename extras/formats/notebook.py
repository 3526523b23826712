"""Jupyter's notebooks."""

from typing import Final

from pipeline.read.format import JSON, Format
from seams import later

FORMAT: Final = Format(
    types=("application/x-ipynb+json",),
    to_html=later("extras.documents.notebook", "ipynb_to_html"),
    reads="text",
    endings=(".ipynb",),
    form_of=JSON,
    indexed="json",
)
