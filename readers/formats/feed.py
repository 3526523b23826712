"""RSS and Atom."""

import re
from typing import Final

from readers.format import FEED, Format
from seams import later

FORMAT: Final = Format(
    types=(FEED,),
    to_html=later("readers.text.markup", "xml_to_html"),
    endings=(".rss", ".atom"),
    also=(
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
    ),
    begins=re.compile(rb"\s*(?=<).*?<(?:rss|feed|rdf:RDF)[\s>]", re.DOTALL),
    indexed="markup",
)
