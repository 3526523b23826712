"""Binary Excel files (extra `office-legacy`)."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/vnd.ms-excel.sheet.binary.macroenabled.12",),
    to_html=later("readers.office.container", "xlsb_to_html"),
    endings=(".xlsb",),
    parts=("xl/workbook.bin",),
    binary=True,
    heavy=True,
    extra="office-legacy",
)
