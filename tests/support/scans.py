"""Scanned pages with known words: print of Debian's fonts drawn by Pillow, as noisy images and as
PDFs of these.

Needs the extra `ocr`, which brings Pillow, and the fonts Liberation and DejaVu.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_FOLDER: Final = Path("/usr/share/fonts/truetype")
FONTS: Final = {
    "serif": _FOLDER / "liberation/LiberationSerif-Regular.ttf",
    "sans": _FOLDER / "dejavu/DejaVuSans.ttf",
    "mono": _FOLDER / "liberation/LiberationMono-Regular.ttf",
}
CHINESE: Final = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
POINTS: Final = 11


UNKNOWN: Final = {
    "Russian": [
        "Маяк в Орване был построен в 1812 году на северном пирсе.",
        "Его лампа видна издалека.",
        "Итого: 41,5 м",
    ],
    "Greek": [
        "Ο φάρος της Ορβάνης χτίστηκε το 1812 στη βόρεια προβλήτα.",
        "Η λάμπα του γυρίζει αργά τη νύχτα.",
    ],
    "Arabic": ["بني المنارة في عام 1812 على الرصيف الشمالي", "تدور مصباحها مرة كل دقيقة"],
}
"""Lines in writings that the recogniser has not learnt; DejaVu Sans has their letters."""


def printed(
    lines: Sequence[str], *, font: Path, dpi: int = 150, size: float = POINTS, noise: float = 10.0
) -> Image.Image:
    """Return lines of print on a page as wide as A4 and as long as they need, with the noise of a
    scanner.

    A line that begins with `#` is a heading; a tab begins the next column, of three.
    """
    step, edge = round(size * dpi / 72 * 1.4), round(0.8 * dpi)
    page = Image.new("L", (round(8.27 * dpi), 2 * edge + step * (len(lines) + 1)), 250)
    pen = ImageDraw.Draw(page)
    for place, line in enumerate(lines):
        larger = 1.5 if line.startswith("#") else 1.0
        kind = ImageFont.truetype(font, round(size * larger * dpi / 72))
        for column, cell in enumerate(line.lstrip("# ").split("\t")):
            pen.text(
                (edge + column * page.width // 3.6, edge + place * step), cell, font=kind, fill=20
            )
    grey = np.asarray(page, dtype=np.float32) + np.random.default_rng(dpi).normal(
        0, noise, (page.height, page.width)
    )
    return Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))


def as_bytes(pages: Sequence[Image.Image], kind: str, *, dpi: int = 150) -> bytes:
    """Return pages as a file of one of Pillow's kinds (PNG, JPEG, TIFF, WEBP, PDF); TIFF and PDF
    have pages."""
    out = io.BytesIO()
    more = {"save_all": True, "append_images": list(pages[1:])} if kind in {"TIFF", "PDF"} else {}
    given = (
        {"resolution": dpi, "quality": 85}
        if kind == "PDF"
        else {"dpi": (dpi, dpi)}
        if kind != "WEBP"
        else {}
    )
    pages[0].save(out, kind, **more, **given)
    return out.getvalue()
