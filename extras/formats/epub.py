"""Books."""

from typing import Final

from pipeline.read.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/epub+zip",),
    to_html=later("extras.documents.epub", "epub_to_html"),
    endings=(".epub",),
    parts=("META-INF/container.xml",),
    binary=True,
    heavy=True,
)
