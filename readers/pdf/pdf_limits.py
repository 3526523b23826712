"""How much a page of a PDF may draw, and how operators that draw are found; what `pdf_guard.py` and
`pdf_follow.py` hold pages to."""

import re
from typing import Final

MOST_CONTENT: Final = 20_000_000
"""Bytes that the contents of a page unpack to, each form as often as it is drawn; a dense street
map has 2 million."""
MOST_SHOWN: Final = 60_000
"""Operators of a page that show text. PDFium keeps some 1,000 bytes for each; a dense page has
6,000."""
MOST_FORMS: Final = 1_000
"""Forms that a page draws, those in others included."""
DRAWS: Final = re.compile(rb"/([^\s/<>\[\]()]+)\s+Do\b")
SHOWS: Final = re.compile(rb"T[jJ]\b|['\"]\s")
