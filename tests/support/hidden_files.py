"""Files of offices with text that no reader sees, and with like text that is seen, by name: ODT,
ODS, RTF, XLSX.

Not for: pages and Markdown (`hidden_forms.py`), PDF and Word (`attacks.py`).
"""

# ruff: noqa: E501  the rows of a table

import io
import zipfile
from typing import Final

from tests.support.attacks import BAD, FACT, FILL

_SPACES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("style", "style"),
        ("fo", "xsl-fo-compatible"),
        ("draw", "drawing"),
    )
)


def _packed(parts: dict[str, str]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return written.getvalue()


def _document(kind: str, body: str, styles: str) -> bytes:
    media = f"application/vnd.oasis.opendocument.{kind}"
    content = (
        f"<office:document-content "
        f"{_SPACES}><office:automatic-styles>{styles}</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    manifest = (
        f"<manifest:manifest "
        f'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="{media}"/></manifest:manifest>'
    )
    return _packed({"mimetype": media, "META-INF/manifest.xml": manifest, "content.xml": content})


def odt_of(body: str, letters: str = "", paragraph: str = "") -> bytes:
    """Return a text document that says two lines, then `body`; the style `T` has these
    properties."""
    styles = (
        f'<style:style style:name="T" style:family="text"><style:text-properties '
        f"{letters}/><style:paragraph-properties {paragraph}/></style:style>"
    )
    return _document("text", f"<text:p>{FACT}</text:p><text:p>{FILL}</text:p>{body}", styles)


def ods_of(rows: str, styles: str = "") -> bytes:
    """Return a workbook with a row that says `FACT`, then `rows`."""
    first = f"<table:table-row><table:table-cell><text:p>{FACT}</text:p></table:table-cell></table:table-row>"
    return _document(
        "spreadsheet",
        f'<table:table table:name="Light">{rows.replace("<!--first-->", first)}</table:table>',
        styles,
    )


_SPAN: Final = f'<text:p>Boats. <text:span text:style-name="T">{BAD}</text:span></text:p>'
_LINE: Final = f'<text:p text:style-name="T">{BAD}</text:p>'
_ROW: Final = f"<table:table-row><table:table-cell><text:p>{BAD}</text:p></table:table-cell></table:table-row>"
HIDDEN_ODT: Final = {
    "white": odt_of(_SPAN, 'fo:color="#ffffff"'),
    "nearly white": odt_of(_LINE, 'fo:color="#fdfdfe"'),
    "one point": odt_of(_SPAN, 'fo:font-size="1pt"'),
    "not displayed": odt_of(_SPAN, 'text:display="none"'),
    "its colour on its ground": odt_of(_LINE, 'fo:color="#102030" fo:background-color="#102030"'),
    "on a ground of the paragraph": odt_of(
        _LINE, 'fo:color="#000000"', 'fo:background-color="#000000"'
    ),
    "squeezed": odt_of(_SPAN, 'style:text-scale="1%"'),
    "hidden text": odt_of(
        f'<text:p>Boats. <text:hidden-text text:condition="ooow:1" text:string-value="x" '
        f'text:is-hidden="true">{BAD}</text:hidden-text></text:p>'
    ),
    "hidden paragraph": odt_of(
        f'<text:p><text:hidden-paragraph text:condition="ooow:1" '
        f'text:is-hidden="true"/>{BAD}</text:p>'
    ),
    "hidden section": odt_of(
        f'<text:section text:name="S" text:display="none"><text:p>{BAD}</text:p></text:section>'
    ),
    "deleted": odt_of(
        f"<text:tracked-changes><text:changed-region><text:deletion><text:p>{BAD}</text:p></text:deletion></text:changed-region></text:tracked-changes>"
    ),
}
SEEN_ODT: Final = {
    "white on a dark ground": odt_of(_LINE, 'fo:color="#ffffff" fo:background-color="#003366"'),
    "white on a dark paragraph": odt_of(
        f'<text:p text:style-name="T">{BAD}</text:p>',
        'fo:color="#ffffff"',
        'fo:background-color="#003366"',
    ),
    "small print": odt_of(_SPAN, 'fo:font-size="5pt"'),
    "a field that shows": odt_of(
        f'<text:p><text:hidden-text text:condition="ooow:0" text:string-value="x" '
        f'text:is-hidden="false">{BAD}</text:hidden-text></text:p>'
    ),
    "a section that shows": odt_of(
        f'<text:section text:name="S"><text:p>{BAD}</text:p></text:section>'
    ),
}
HIDDEN_ODS: Final = {
    "hidden row": ods_of(
        "<!--first-->"
        + _ROW.replace("<table:table-row>", '<table:table-row table:visibility="collapse">')
    ),
    "filtered row": ods_of(
        "<!--first-->"
        + _ROW.replace("<table:table-row>", '<table:table-row table:visibility="filter">')
    ),
    "row of a closed group": ods_of(
        f'<!--first--><table:table-row-group table:display="false">{_ROW}</table:table-row-group>'
    ),
    "hidden column": ods_of(
        f"<table:table-column/><table:table-column "
        f'table:visibility="collapse"/><table:table-row><table:table-cell><text:p>{FACT}</text:p></table:table-cell><table:table-cell><text:p>{BAD}</text:p></table:table-cell></table:table-row>'
    ),
    "white cell": ods_of(
        "<!--first-->"
        + _ROW.replace("<table:table-cell>", '<table:table-cell table:style-name="C">'),
        '<style:style style:name="C" style:family="table-cell"><style:text-properties '
        'fo:color="#ffffff"/></style:style>',
    ),
}
SEEN_ODS: Final = {
    "white cell on a dark ground": ods_of(
        "<!--first-->"
        + _ROW.replace("<table:table-cell>", '<table:table-cell table:style-name="C">'),
        '<style:style style:name="C" style:family="table-cell"><style:table-cell-properties '
        'fo:background-color="#003366"/><style:text-properties fo:color="#ffffff"/></style:style>',
    ),
    "row of an open group": ods_of(
        f"<!--first--><table:table-row-group>{_ROW}</table:table-row-group>"
    ),
}


def rtf_of(body: str) -> bytes:
    """Return an RTF file that says two lines, then `body`; colour 1 is white, 2 black, 3 nearly
    white."""
    colours = r"{\colortbl;\red255\green255\blue255;\red0\green0\blue0;\red250\green250\blue254;}"
    return rf"{{\rtf1\ansi{{\fonttbl{{\f0 Arial;}}}}{colours}\f0\fs24 {FACT}\par {FILL}\par {body} The end.\par}}".encode()


HIDDEN_RTF: Final = {
    "half a point": rtf_of(rf"{{\fs1 {BAD}}}"),
    "white": rtf_of(rf"{{\cf1 {BAD}}}"),
    "white until it ends": rtf_of(rf"\cf1 {BAD}\cf0 "),
    "nearly white": rtf_of(rf"{{\cf3 {BAD}}}"),
    "deleted": rtf_of(rf"{{\deleted {BAD}}}"),
    "hidden": rtf_of(rf"\v {BAD}\v0 "),
    "squeezed": rtf_of(rf"{{\charscalex1 {BAD}}}"),
    "its colour on its ground": rtf_of(rf"{{\cf2\highlight2 {BAD}}}"),
    "by escapes": rtf_of(r"{\fs1 " + "".join(rf"\u{ord(letter)}?" for letter in BAD) + "}"),
}
SEEN_RTF: Final = {
    "white on black": rtf_of(rf"{{\cf1\highlight2 {BAD}}}"),
    "small print": rtf_of(rf"{{\fs10 {BAD}}}"),
    "not hidden": rtf_of(rf"{{\v0 {BAD}}}"),
    "behind what is hidden": rtf_of(rf"\v gone\v0  {BAD}"),
    "white in a shaded cell": rtf_of(
        rf"\trowd\clcbpat2\cellx9000\intbl {{\cf1 {BAD}}}\cell\row\pard "
    ),
}


def xlsx_of(rows: str, *, before: str = "", styles: str = "") -> bytes:
    """Return a workbook of one sheet with a row that says `FACT`, then `rows`."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    first = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{FACT}</t></is></c></row>'
    return _packed({
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/><Override '
        f'PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/><Override '
        f'PartName="/xl/styles.xml" ContentType="{kind}.styles+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="a" '
        f'Type="{rel}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships '
        f'xmlns="{package}/relationships"><Relationship Id="s" Type="{rel}/worksheet" '
        f'Target="worksheets/sheet1.xml"/><Relationship Id="t" Type="{rel}/styles" '
        f'Target="styles.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{rel}"><sheets><sheet name="Light" '
        f'sheetId="1" r:id="s"/></sheets></workbook>',
        "xl/styles.xml": f"<styleSheet {main}>{styles}</styleSheet>",
        "xl/worksheets/sheet1.xml": f"<worksheet "
        f"{main}>{before}<sheetData>{first}{rows}</sheetData></worksheet>",
    })  # fmt: skip


def _cells(attributes: str = "", column: str = "A", style: str = "0") -> str:
    return (
        f'<row r="2" {attributes}><c r="{column}2" s="{style}" '
        f't="inlineStr"><is><t>{BAD}</t></is></c></row>'
    )


_FONTS: Final = (
    '<fonts><font/><font><color rgb="FFFFFFFF"/></font><font><color '
    'theme="0"/></font><font><sz val="1"/></font></fonts><fills><fill><patternFill '
    'patternType="none"/></fill><fill><patternFill patternType="solid"><fgColor '
    'rgb="FF003366"/></patternFill></fill></fills>'
)
_XFS: Final = (
    _FONTS + '<cellXfs><xf fontId="0" fillId="0"/><xf fontId="1" fillId="0" applyFont="1"/><xf '
    'fontId="2" fillId="0" applyFont="1"/><xf fontId="3" fillId="0"/><xf fontId="1" fillId="1" '
    'applyFill="1"/></cellXfs>'
)
HIDDEN_XLSX: Final = {
    "hidden row": xlsx_of(_cells('hidden="1"')),
    "hidden row in words": xlsx_of(_cells('hidden="true"')),
    "row without height": xlsx_of(_cells('ht="0" customHeight="1"')),
    "row of hardly a point": xlsx_of(_cells('ht="0.75" customHeight="1"')),
    "hidden column": xlsx_of(
        _cells(column="C"), before='<cols><col min="3" max="3" width="9" hidden="1"/></cols>'
    ),
    "column without width": xlsx_of(
        _cells(column="C"), before='<cols><col min="2" max="4" width="0" customWidth="1"/></cols>'
    ),
    "column of hardly a letter": xlsx_of(
        _cells(column="C"),
        before='<cols><col min="2" max="4" width="0.08" customWidth="1"/></cols>',
    ),
    "white": xlsx_of(_cells(style="1"), styles=_XFS),
    "white by the theme": xlsx_of(_cells(style="2"), styles=_XFS),
    "one point": xlsx_of(_cells(style="3"), styles=_XFS),
    "a format that shows nothing": xlsx_of(
        _cells(style="1"),
        styles='<numFmts><numFmt numFmtId="170" formatCode=";;;"/></numFmts><cellXfs><xf/><xf '
        'numFmtId="170"/></cellXfs>',
    ),
}
SEEN_XLSX: Final = {
    "white on a dark ground": xlsx_of(_cells(style="4"), styles=_XFS),
    "usual": xlsx_of(_cells(), styles=_XFS),
    "a low row": xlsx_of(_cells('ht="6" customHeight="1"')),
    "a wide column": xlsx_of(
        _cells(column="C"), before='<cols><col min="3" max="3" width="40"/></cols>'
    ),
}

FILES: Final = (
    ("odt", HIDDEN_ODT, SEEN_ODT),
    ("ods", HIDDEN_ODS, SEEN_ODS),
    ("rtf", HIDDEN_RTF, SEEN_RTF),
    ("xlsx", HIDDEN_XLSX, SEEN_XLSX),
)
"""Ending, hidden and seen."""
