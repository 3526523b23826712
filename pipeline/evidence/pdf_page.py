"""Which page of a PDF a passage stands on, from the anchors that its conversion left.

Not for: pages of anything but a PDF.
"""

import html
import re
from typing import Final

from pipeline.documents import Document

_ANCHOR: Final = re.compile(r'<section id="page-(\d{1,4})">')
_LETTERS: Final = 40
"""Characters of the passage that are looked for; the first line of most is longer."""


def pdf_page(document: Document, start: int, end: int) -> int | None:
    """Return the 1-based page of `document.text[start:end]`, None where it is no PDF or the passage is not found.

    A text that stands on several pages is taken for the one that lies about as far into the file.
    """
    source = document.page.html
    if document.page.media_type != "application/pdf" or not document.text:
        return None
    words = re.split(r"\n|\s\|\s", document.text[start:end].strip(), maxsplit=1)[0][:_LETTERS].strip()
    wanted = html.escape(words, quote=False)
    if not wanted:
        return None
    share = start / len(document.text) * len(source)
    places = [found.start() for found in re.finditer(re.escape(wanted), source)]
    if not places:
        return None
    place = min(places, key=lambda found: abs(found - share))
    number = None
    for anchor in _ANCHOR.finditer(source, 0, place):
        number = int(anchor.group(1))
    return number
