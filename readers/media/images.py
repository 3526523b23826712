"""Pages as images: of a PDF as PDFium draws them, of PNG, JPEG, TIFF and WebP as Pillow decodes
them, each in bounds.

Needs the extra `ocr`, which brings both. Not for: reading what they show (`readers/media/scan.py`).
"""

import io
import math
from typing import Final

import numpy as np
import pypdfium2
from PIL import Image, ImageOps
from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

from readers.converted import DAMAGED, MOST_PIXELS, Unreadable, ended_after
from readers.media.recognition import Scan

PAGE_PIXELS: Final = 2_800_000
"""That a page has at most when it is read: A4 at 170 dpi."""
DRAW_SECONDS: Final = 4.0
"""Processor time for a page to be drawn: nine times what the largest image that it may show takes.
One that needs more ends its process twice, so that it is known which page did."""
IMAGE_LAYERS: Final = 3
"""Images of `MOST_PIXELS` that a page may show: scanners part print from its background, and mask
one by the other."""
_FORMATS: Final = ("PNG", "JPEG", "TIFF", "WEBP")

Image.MAX_IMAGE_PIXELS = (
    None  # it warns, and for less than its cap decodes: `_bounded` looks before
)


class PdfScans:
    """The pages of a PDF as images."""

    def __init__(self, body: bytes) -> None:
        try:
            self._file = pypdfium2.PdfDocument(body)
        except pypdfium2.PdfiumError as error:
            raise Unreadable(f"it is a damaged PDF ({error})") from error

    def page(self, number: int) -> Scan:
        """Return a page, 1-based. Raises `Unreadable` for one that shows an image of
        too many pixels, or is damaged.

        Drawing that takes longer than `DRAW_SECONDS` of processor time ends a process
        of the converter; elsewhere it waits without limit."""
        try:
            page = self._file[number - 1]
            sizes = [
                image.get_px_size()
                for image in page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE])
            ]
            for width, height in sizes:
                _bounded(width, height)
            _bounded(1, sum(width * height for width, height in sizes) // IMAGE_LAYERS)
            width, height = page.get_size()
            scale = min(math.sqrt(PAGE_PIXELS / (width * height)), 300 / 72)
            scale = min(scale, PAGE_PIXELS / max(width, height))
            # PDFium looks at no clock, and a pattern of small tiles has it draw for hours.
            with ended_after(DRAW_SECONDS):
                return Scan(
                    page.render(scale=scale, may_draw_forms=False).to_numpy()[:, :, :3],
                    1 / scale,
                )
        except (pypdfium2.PdfiumError, *DAMAGED) as error:
            raise Unreadable(
                f"its page {number} is damaged ({type(error).__name__})"
            ) from error


class ImageScans:
    """The pages of an image: one, of a TIFF any number."""

    def __init__(self, body: bytes) -> None:
        try:
            self._image = Image.open(io.BytesIO(body), formats=_FORMATS)
            _bounded(*self._image.size)
            self.count = (
                getattr(self._image, "n_frames", 1)
                if self._image.format == "TIFF"
                else 1
            )
        except DAMAGED as error:
            raise Unreadable(
                f"it is a damaged image ({type(error).__name__})"
            ) from error

    def page(self, number: int) -> Scan:
        """Return a page, 1-based. Raises `Unreadable` for one of too many pixels, or that is
        damaged."""
        try:
            if number > 1:
                self._image.seek(number - 1)
            width, height = self._image.size
            _bounded(width, height)
            scale = min(1.0, math.sqrt(PAGE_PIXELS / (width * height)))
            size = math.ceil(width * scale), math.ceil(height * scale)
            self._image.draft("RGB", size)  # a JPEG is decoded at a part of its size
            image: Image.Image = self._image
            if image.mode.startswith("I"):  # 16 bits a pixel
                image = image.point(lambda value: value / 256).convert("L")
            elif image.mode not in {
                "L",
                "RGB",
                "RGBA",
            }:  # others are made smaller without looking at each pixel
                image = image.convert(
                    "RGBA"
                    if image.has_transparency_data
                    else "L"
                    if image.mode == "1"
                    else "RGB"
                )
            image.thumbnail(size, reducing_gap=2.0)  # in place: what is large goes
            if image.mode == "RGBA":
                image = Image.alpha_composite(
                    Image.new("RGBA", image.size, "white"), image
                )
            image = ImageOps.exif_transpose(image).convert("RGB")
        except DAMAGED as error:
            raise Unreadable(
                f"its page {number} is damaged ({type(error).__name__})"
            ) from error
        return Scan(np.asarray(image), max(width, height) / max(image.size))


def _bounded(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise Unreadable(
            f"it shows an image of {width:,} × {height:,} pixels, over the cap of {MOST_PIXELS:,}"
        )
