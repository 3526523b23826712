"""Books."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/epub+zip",),
    to_html=later("readers.office.epub", "epub_to_html"),
    endings=(".epub",),
    parts=("META-INF/container.xml",),
    binary=True,
    heavy=True,
)
