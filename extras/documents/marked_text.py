"""Plain text of a known form to HTML: manual pages and AsciiDoc."""

from extras.documents.asciidoc import asciidoc_to_html, is_asciidoc
from extras.documents.manual import is_manual, manual_to_html
from pipeline.document.converted import Converted


def marked_to_html(text: str) -> Converted | None:
    """Return a text as HTML by the rules of its form, None for one of no known form."""
    if is_manual(text):
        return manual_to_html(text)
    if is_asciidoc(text):
        return asciidoc_to_html(text)
    return None
