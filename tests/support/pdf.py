"""PDF files written by hand."""

from collections.abc import Sequence

Line = tuple[str, int]
"""Text and its size in points."""


def make_pdf(pages: Sequence[Sequence[Line]], *, font: str = "Helvetica", title: str = "") -> bytes:
    """Return a PDF written by hand: one content stream a page, each line 1.4 times its size below the last."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", f"<< /Type /Font /Subtype /Type1 /BaseFont /{font} >>"]
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
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    tail = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(out)}\n%%EOF"
    return out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{tail}".encode()
