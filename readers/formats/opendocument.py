"""OpenDocument texts, tables and slides."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=(
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.presentation",
    ),
    to_html=later("readers.office.opendocument", "opendocument_to_html"),
    endings=(".odt", ".ods", ".odp"),
    binary=True,
    heavy=True,
)
