"""Images whose text is recognised (extra `ocr`)."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("image/png", "image/jpeg", "image/tiff", "image/webp"),
    to_html=later("readers.media.image_file", "ImageReading"),
    endings=(".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"),
    magic={
        b"\x89PNG\r\n": "image/png",
        b"\xff\xd8\xff": "image/jpeg",
        **dict.fromkeys((b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+"), "image/tiff"),
    },
    binary=True,
    heavy=True,
    paged=True,
    pictures=True,
    extra="ocr",
)
