"""Word files written by hand."""

import io
import zipfile


def make_docx(paragraphs: str, *, extra: str = "", core: str = "") -> bytes:
    """Return the smallest Word file with `paragraphs` of WordprocessingML."""
    space = "http://schemas.openxmlformats.org"
    document = (
        f"{extra}<w:document "
        f'xmlns:w="{space}/wordprocessingml/2006/main"><w:body>{paragraphs}</w:body></w:document>'
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


_SPACE = "http://schemas.openxmlformats.org"
_W = f"{_SPACE}/wordprocessingml/2006/main"
_RELATIONS = f"{_SPACE}/officeDocument/2006/relationships"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
SPACES = (
    f'xmlns:w="{_W}" xmlns:r="{_RELATIONS}" xmlns:m="{_SPACE}/officeDocument/2006/math" '
    f'xmlns:a="{_SPACE}/drawingml/2006/main" xmlns:c="{_SPACE}/drawingml/2006/chart" '
    f'xmlns:wp="{_SPACE}/drawingml/2006/wordprocessingDrawing" '
    f'xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    f'xmlns:mc="{_SPACE}/markup-compatibility/2006" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)
"""Namespaces of the parts that `make_parts` writes."""


def make_parts(body: str, *, main: str = "word/document.xml", **parts: str) -> bytes:
    """Return a Word file with further parts by kind (`header`, `comments`, `styles` …), each the
    inside of its root.

    Their relations have the kind as id.
    """
    roots = {
        "numbering": "numbering",
        "styles": "styles",
        "comments": "comments",
        "chart": "c:chartSpace",
    }
    roots |= {"footnotes": "footnotes", "header": "hdr", "footer": "ftr", "theme": "a:theme"}
    content = f"{_SPACE}/package/2006"
    links = "".join(
        f'<Relationship Id="{kind}" Type="{_RELATIONS}/{kind}" Target="{kind}.xml"/>'
        for kind in parts
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{content}/content-types"><Override '
        f'PartName="/{main}" ContentType='
        '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{content}/relationships"><Relationship Id="r" '
        f'Type="{_RELATIONS}/officeDocument" Target="{main}"/></Relationships>',
        f"word/_rels/{main.rpartition('/')[2]}.rels": f"<Relationships "
        f'xmlns="{content}/relationships">{links}'
        "</Relationships>",
        main: f"<w:document {SPACES}><w:body>{body}</w:body></w:document>",
    }
    for kind, inner in parts.items():
        root = roots.get(kind, "")
        root = root if ":" in root else f"w:{root}"
        files[f"word/{kind}.xml"] = (
            f"<{root} {SPACES}>{inner}</{root}>" if roots.get(kind) else inner
        )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def as_strict(file: bytes) -> bytes:
    """Return a Word file in the strict form of ISO 29500, whose namespaces are others."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as usual, zipfile.ZipFile(out, "w") as archive:
        for part in usual.infolist():
            archive.writestr(part.filename, usual.read(part).replace(_W.encode(), _STRICT.encode()))
    return out.getvalue()


def run(text: str) -> str:
    """Return a run of WordprocessingML."""
    return f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"
