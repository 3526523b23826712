"""Excel files."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
    to_html=later("readers.office.workbook", "xlsx_to_html"),
    endings=(".xlsx",),
    parts=("xl/workbook",),
    binary=True,
    heavy=True,
)
