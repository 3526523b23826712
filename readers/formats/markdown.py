"""Markdown."""

from typing import Final

from readers.format import MARKDOWN, Format
from seams import later

FORMAT: Final = Format(
    types=(MARKDOWN,),
    to_html=later("readers.text.markup", "markdown_to_html"),
    reads="text",
    endings=(".md", ".markdown", ".mdown"),
    also=("text/x-markdown",),
)
