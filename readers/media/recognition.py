"""What recognising the text of images takes and returns.

The steps `page images` and `image text` do it (`readers/media/`); `can_recognise` says
whether they can be used. Not for: making HTML of lines (`pdf_reading.py`).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from readers.pdf.pdf_lines import PrintLine


@dataclass(frozen=True, slots=True)
class Scan:
    """A page as an image [height, width, 3]."""

    pixels: NDArray[np.uint8]
    unit: float
    """Points of a PDF's page, or pixels of the image as it came, that a pixel is long."""


class Scans(Protocol):
    """The pages of a file as images: what `readers/media/images.py` makes of the bytes of a
    PDF."""

    def page(self, number: int) -> Scan:
        """Return a page, 1-based; raises `Unreadable`."""


class Recognised(NamedTuple):
    """What `readers/media/scan.py` reads in a `Scan`, by a time of this thread's processor
    clock."""

    lines: list[PrintLine]
    """In reading order; coordinates in the page's units, from left and bottom."""
    unsure: int
    """Lines that could not be read."""
    is_complete: bool
    """Whether all lines were tried."""
