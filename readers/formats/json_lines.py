"""A JSON value on each line."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/x-ndjson",),
    to_html=later("readers.data.records", "json_to_html"),
    reads="text",
    endings=(".jsonl", ".ndjson"),
    also=(
        "application/jsonl",
        "application/json-seq",
    ),
    indexed="json",
)
