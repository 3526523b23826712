"""PDF files written by hand."""

from collections.abc import Sequence

from readers.converted import Converted
from readers.pdf.pdf_reading import PdfReading

SAID = (
    "The harbour light was built in 1871 by Orvane.",
    "The pier beside it is older, and boats leave from it.",
)
"""Lines that a reader of `pdf_of` sees."""
Line = tuple[str, int]
"""Text and its size in points."""


def read_pdf(body: bytes, seconds: float) -> Converted:
    """Return the pages of a PDF as far as they are read in some processor seconds."""
    reading = PdfReading(body)
    reading.read(seconds, remaining_seconds=seconds)
    return reading.converted()


def make_pdf(pages: Sequence[Sequence[Line]], *, font: str = "Helvetica", title: str = "") -> bytes:
    """Return a PDF written by hand: one content stream a page, each line 1.4 times its size below
    the last."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        f"<< /Type /Font /Subtype /Type1 /BaseFont /{font} >>",
    ]
    kids = []
    for lines in pages:
        y = 760.0
        parts = []
        for text, size in lines:
            y -= size * 1.4 if text else size * 2
            safe = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
            if text:
                parts.append(f"BT /F1 {size} Tf 1 0 0 1 72 {y:.1f} Tm ({safe}) Tj ET")
        stream = "\n".join(parts)
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        content = len(objects)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({title}) >>")
    return _written(objects, f"/Info {len(objects)} 0 R")


def _written(objects: Sequence[str], about: str) -> bytes:
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    tail = (
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {about} >>\nstartxref\n{len(out)}\n%%EOF"
    )
    return out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{tail}".encode()


def pdf_of(
    drawn: str,
    *,
    resources: str = "",
    catalog: str = "",
    more: Sequence[str] = (),
    said: Sequence[str] = SAID,
) -> bytes:
    """Return a PDF of one page that says some lines, then draws `drawn`.

    Args:
        drawn: Operators of a content stream; the font is /F1.
        resources: Entries of the page's resources beside its font; `{0}` is the number of the first of `more`.
        catalog: Entries of the catalogue, in the same way.
        more: Further objects.
        said: Lines that its reader sees.
    """
    lines = "\n".join(
        f"BT /F1 12 Tf 1 0 0 1 72 {760 - 20 * n} Tm ({line}) Tj ET" for n, line in enumerate(said)
    )
    stream = f"{lines}\n{drawn}"
    first = 6
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog.format(first)} >>",
        "<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        f" /Resources << /Font << /F1 3 0 R >> {resources.format(first)} >> >>",
        *more,
    ]
    return _written(objects, "")
