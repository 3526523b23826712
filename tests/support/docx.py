"""Word files written by hand."""

import io
import zipfile


def make_docx(paragraphs: str, *, extra: str = "", core: str = "") -> bytes:
    """Return the smallest Word file with `paragraphs` of WordprocessingML."""
    space = "http://schemas.openxmlformats.org"
    document = (
        f'{extra}<w:document xmlns:w="{space}/wordprocessingml/2006/main"><w:body>{paragraphs}</w:body></w:document>'
    )
    types = f'<Types xmlns="{space}/package/2006/content-types"/>'
    target = f"{space}/officeDocument/2006/relationships/officeDocument"
    link = f'<Relationship Id="r1" Type="{target}" Target="word/document.xml"/>'
    rels = f'<Relationships xmlns="{space}/package/2006/relationships">{link}</Relationships>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("_rels/.rels", rels)
        archive.writestr("word/document.xml", document)
        if core:
            archive.writestr("docProps/core.xml", core)
    return out.getvalue()


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of WordprocessingML."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"
