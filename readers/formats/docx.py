"""Word files."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
    to_html=later("readers.office.docx", "docx_to_html"),
    endings=(".docx",),
    parts=("word/document",),
    binary=True,
    heavy=True,
)
