"""Tables as text."""

from typing import Final

from readers.format import CSV, Format
from seams import later

FORMAT: Final = Format(
    types=(CSV,),
    to_html=later("readers.text.markup", "csv_to_html"),
    reads="text",
    endings=(".csv", ".tsv"),
    also=(
        "text/tab-separated-values",
        "application/csv",
        "application/x-csv",
        "application/vnd.ms-excel",
    ),
)
