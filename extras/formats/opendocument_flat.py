"""OpenDocument files that are one XML file each, not an archive."""

import re
from typing import Final

from pipeline.read.format import XML, Format
from seams import later

FORMAT: Final = Format(
    types=("application/vnd.oasis.opendocument.flat-xml",),
    to_html=later("extras.documents.opendocument", "flat_opendocument_to_html"),
    endings=(".fodt", ".fods", ".fodp"),
    also=(
        "application/vnd.oasis.opendocument.text-flat-xml",
        "application/vnd.oasis.opendocument.spreadsheet-flat-xml",
        "application/vnd.oasis.opendocument.presentation-flat-xml",
    ),
    begins=re.compile(rb"\s*(?=<).*?<office:document[\s>]", re.DOTALL),
    heavy=True,
    form_of=XML,
    indexed="markup",
)
