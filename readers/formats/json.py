"""JSON, and what is written in it."""

from typing import Final

from readers.format import JSON, Format
from seams import later

FORMAT: Final = Format(
    types=(JSON,),
    to_html=later("readers.data.records", "json_to_html"),
    reads="text",
    endings=(".json", ".geojson", ".jsonld"),
    also=("text/json",),
    indexed="json",
)
