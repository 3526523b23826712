"""XML of no format that is known better."""

from typing import Final

from readers.format import XML, Format
from seams import later

FORMAT: Final = Format(
    types=(XML,),
    to_html=later("readers.text.markup", "xml_to_html"),
    endings=(".xml", ".opml"),
    also=("text/xml", "text/x-opml"),
    indexed="markup",
)
