"""Parquet files (extra `parquet`)."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/vnd.apache.parquet",),
    to_html=later("readers.data.parquet", "parquet_to_html"),
    endings=(".parquet",),
    magic={b"PAR1": "application/vnd.apache.parquet"},
    binary=True,
    heavy=True,
    extra="parquet",
)
