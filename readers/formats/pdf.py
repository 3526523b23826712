"""PDF; `sniff.py` knows it by more than its first bytes, since readers forgive what is before."""

from typing import Final

from readers.format import PDF, Format
from seams import later

FORMAT: Final = Format(
    types=(PDF,),
    to_html=later("readers.pdf.pdf_reading", "PdfReading"),
    endings=(".pdf",),
    binary=True,
    heavy=True,
    paged=True,
)
