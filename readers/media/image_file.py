"""Image files to HTML, whose text is recognised (extra `ocr`)."""

from functools import cached_property
from typing import ClassVar

from readers.converted import INSTALL_OCR, Unreadable, can_recognise
from readers.media.recognition import Scans
from readers.pdf.pdf_reading import PageLines, PdfReading


class ImageReading(PdfReading):
    """An image on its way to HTML, a TIFF page by page."""

    kind: ClassVar = "an image"

    def _open(self) -> None:
        if not can_recognise():
            raise Unreadable(f"it is an image, whose text needs OCR: {INSTALL_OCR}")
        from readers.media.images import ImageScans  # noqa: PLC0415  brings Pillow, of the extra

        self._images = ImageScans(self._body)
        self.count = self._images.count
        self._about, self._attached, self._is_xfa = ("", ""), [], False

    def _read_page(self, number: int) -> PageLines:
        return PageLines([], "image")

    @cached_property
    def _scans(self) -> Scans:
        return self._images

    def _place(self, number: int, *, recognised: bool) -> str:
        place = super()._place(number, recognised=recognised)
        return place if self.count > 1 else place.partition("&")[2]
