"""Small documents, each with one kind of content that a reader easily loses in silence: where
nothing says so, a verdict of `none` is wrong.

`%` in a part represents a new word, which must be read, or something of the file said to be unread.
Not for: text that no reader sees (`attacks.py`, `hidden_files.py`), random mixtures of common kinds
(`bench/documents.py`).
"""

# ruff: noqa: E501  the rows of tables

import base64
import io
import re
import zipfile
from collections.abc import Iterator
from typing import Final, NamedTuple

FACT: Final = "The harbour opens at nine."
_OFFICE: Final = "http://schemas.openxmlformats.org"
_RELATIONS: Final = f"{_OFFICE}/officeDocument/2006/relationships"
_MICROSOFT: Final = "http://schemas.microsoft.com/office"


class OddDocument(NamedTuple):
    """A document and the words that were put into it."""

    file: str
    body: bytes
    words: tuple[str, ...]


class _Words:
    """Gives each `%` of some parts a word of its own."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def into(self, text: str) -> str:
        return re.sub("%", lambda _: self._next(), text)

    def _next(self) -> str:
        number = len(self.given)
        self.given.append(f"{'bdfgklmn'[number % 8]}a{'rstvz'[number // 8 % 5]}o{number + 1}x")
        return self.given[-1]


def _packed(parts: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


def _made(file: str, parts: dict[str, str | bytes]) -> OddDocument:
    words = _Words()
    filled = {
        name: words.into(part) if isinstance(part, str) else part for name, part in parts.items()
    }
    return OddDocument(file, _packed(filled), tuple(words.given))


# Office files

_S: Final = " ".join(
    f'xmlns:{short}="{space}"'
    for short, space in {
        "r": _RELATIONS,
        "w": f"{_OFFICE}/wordprocessingml/2006/main",
        "x": f"{_OFFICE}/spreadsheetml/2006/main",
        "p": f"{_OFFICE}/presentationml/2006/main",
        "m": f"{_OFFICE}/officeDocument/2006/math",
        "a": f"{_OFFICE}/drawingml/2006/main",
        "c": f"{_OFFICE}/drawingml/2006/chart",
        "cdr": f"{_OFFICE}/drawingml/2006/chartDrawing",
        "dgm": f"{_OFFICE}/drawingml/2006/diagram",
        "wp": f"{_OFFICE}/drawingml/2006/wordprocessingDrawing",
        "xdr": f"{_OFFICE}/drawingml/2006/spreadsheetDrawing",
        "pic": f"{_OFFICE}/drawingml/2006/picture",
        "mc": f"{_OFFICE}/markup-compatibility/2006",
        "wps": f"{_MICROSOFT}/word/2010/wordprocessingShape",
        "wpg": f"{_MICROSOFT}/word/2010/wordprocessingGroup",
        "cx": f"{_MICROSOFT}/drawing/2014/chartex",
        "a14": f"{_MICROSOFT}/drawing/2010/main",
        "v": "urn:schemas-microsoft-com:vml",
        "o": "urn:schemas-microsoft-com:office:office",
    }.items()
)


def _rels(**links: str) -> str:
    """Return relations by id, each `kind target`; `kind` may be a whole address."""
    rows = []
    for key, said in links.items():
        kind, target = said.split()
        address = kind if "/" in kind else f"{_RELATIONS}/{kind}"
        rows.append(f'<Relationship Id="{key}" Type="{address}" Target="{target}"/>')
    return f'<Relationships xmlns="{_OFFICE}/package/2006/relationships">{"".join(rows)}</Relationships>'


_LATER_CHART: Final = f"{_MICROSOFT}/2014/relationships/chartEx"
_AT: Final = "<a:p><a:r><a:t>%</a:t></a:r></a:p>"
_CHART: Final = f'<c:chartSpace {_S}><c:chart><c:title><c:tx><c:rich>{_AT}</c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>%</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>%</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>7</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:barChart><c:valAx><c:title><c:tx><c:rich>{_AT}</c:rich></c:tx></c:title></c:valAx></c:plotArea></c:chart><c:userShapes r:id="u"/></c:chartSpace>'
_FUNNEL: Final = f'<cx:chartSpace {_S}><cx:chartData><cx:data id="0"><cx:strDim type="cat"><cx:lvl><cx:pt idx="0">%</cx:pt><cx:pt idx="1">%</cx:pt></cx:lvl></cx:strDim><cx:numDim type="val"><cx:lvl><cx:pt idx="0">7</cx:pt></cx:lvl></cx:numDim></cx:data></cx:chartData><cx:chart><cx:title><cx:tx><cx:rich>{_AT}</cx:rich></cx:tx></cx:title><cx:plotArea><cx:plotAreaRegion><cx:series><cx:tx><cx:txData><cx:v>%</cx:v></cx:txData></cx:tx></cx:series></cx:plotAreaRegion></cx:plotArea></cx:chart></cx:chartSpace>'
_DIAGRAM: Final = f"<dgm:dataModel {_S}><dgm:ptLst><dgm:pt><dgm:t>{_AT}{_AT}</dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
_OVER_CHART: Final = f"<c:userShapes {_S}><cdr:relSizeAnchor><cdr:sp><cdr:txBody>{_AT}</cdr:txBody></cdr:sp></cdr:relSizeAnchor></c:userShapes>"
_ATABLE: Final = f"<a:tbl><a:tr><a:tc><a:txBody>{_AT}</a:txBody></a:tc><a:tc><a:txBody>{_AT}</a:txBody></a:tc></a:tr></a:tbl>"

# Word: what the body holds, and further parts

_R: Final = "<w:r><w:t>%</w:t></w:r>"
_P: Final = f"<w:p>{_R}</w:p>"
_CELLS: Final = f"<w:tc>{_P}</w:tc><w:tc>{_P}</w:tc>"
_TABLE: Final = f"<w:tbl><w:tr>{_CELLS}</w:tr></w:tbl>"
_SHAPE: Final = f"<wps:wsp><wps:txbx><w:txbxContent>{_P}</w:txbxContent></wps:txbx></wps:wsp>"


def _drawing(inner: str, about: str = "") -> str:
    return f'<w:p><w:r><w:drawing><wp:inline><wp:extent cx="9000000" cy="9000000"/><wp:docPr id="1" name="x" {about}/><a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>'


def _notes(kind: str, inner: str) -> str:
    return f'<w:{kind}s {_S}><w:{kind} w:id="2">{inner}</w:{kind}></w:{kind}s>'


_WORD_ART: Final = (
    '<w:p><w:r><w:pict><v:shape><v:textpath string="% %"/></v:shape></w:pict></w:r></w:p>'
)
_WORD: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "an endnote with a table": (
        '<w:p><w:r><w:endnoteReference w:id="2"/></w:r></w:p>',
        {"endnotes e.xml": _notes("endnote", _P + _TABLE)},
    ),
    "a footnote in a table in a box": (
        f'<w:p><w:r><w:pict><v:shape><v:textbox><w:txbxContent><w:tbl><w:tr><w:tc><w:p>{_R}<w:r><w:footnoteReference w:id="2"/></w:r></w:p></w:tc></w:tr></w:tbl></w:txbxContent></v:textbox></v:shape></w:pict></w:r></w:p>',
        {"footnotes f.xml": _notes("footnote", _P)},
    ),
    "a footnote that nothing refers to": (_P, {"footnotes f.xml": _notes("footnote", _P)}),
    "lettering": (_WORD_ART, {}),
    "lettering behind each page": ("", {"header h.xml": f"<w:hdr {_S}>{_WORD_ART}</w:hdr>"}),
    "shapes of a group": (
        _drawing(f"<wpg:wgp>{_SHAPE}<wpg:grpSp>{_SHAPE}</wpg:grpSp></wpg:wgp>"),
        {},
    ),
    "a shape that is described": (_drawing("<wps:wsp/>", 'descr="% % % % %"'), {}),
    "a chart": (_drawing('<c:chart r:id="k"/>'), {"chart c.xml": _CHART}),
    "a funnel": (_drawing('<cx:chart r:id="k"/>'), {f"{_LATER_CHART} c.xml": _FUNNEL}),
    "a diagram": (_drawing('<dgm:relIds r:dm="k"/>'), {"diagramData d.xml": _DIAGRAM}),
    "a chunk of a web archive": (
        '<w:altChunk r:id="k"/>',
        {"aFChunk a.mht": "MIME-Version: 1.0\nContent-Type: text/html\n\n<p>% %"},
    ),
    "a chunk of text": ('<w:altChunk r:id="k"/>', {"aFChunk a.txt": "% %"}),
    "tables in tables": (
        f"<w:tbl><w:tr><w:tc>{_TABLE.replace(_P, _TABLE, 1)}<w:p/></w:tc>{_CELLS}</w:tr></w:tbl>",
        {},
    ),
    "a list to choose from": (
        '<w:p><w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="other"/><w:listEntry w:val="%"/></w:ddList></w:ffData></w:fldChar></w:r><w:r><w:instrText>FORMDROPDOWN</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>',
        {},
    ),
    "a comment with a table": (
        f'<w:p>{_R}<w:r><w:commentReference w:id="2"/></w:r></w:p>',
        {"comments c.xml": _notes("comment", _P + _TABLE)},
    ),
    "an equation of many parts": (
        "<w:p><m:oMathPara><m:oMath><m:m><m:mr><m:e><m:r><m:t>%</m:t></m:r></m:e></m:mr></m:m><m:nary><m:sub><m:r><m:t>%</m:t></m:r></m:sub><m:e><m:r><m:t>%</m:t></m:r></m:e></m:nary><m:limLow><m:e><m:r><m:t>%</m:t></m:r></m:e><m:lim><m:r><m:t>%</m:t></m:r></m:lim></m:limLow></m:oMath></m:oMathPara></w:p>",
        {},
    ),
    "an equation with Word's own text": (
        "<w:p><m:oMath><m:r><w:t>%</w:t></m:r><m:sSup><m:e><m:r><m:t>%</m:t></m:r></m:e><m:sup><m:r><m:t>%</m:t></m:r></m:sup></m:sSup></m:oMath></w:p>",
        {},
    ),
    "a control": (
        '<w:p><w:r><w:object><w:control r:id="k" w:name="Box"/></w:object></w:r></w:p>',
        {"control x.xml": "<x caption='%'/>"},
    ),
    "an embedded workbook": (
        '<w:p><w:r><w:object><o:OLEObject r:id="k" ProgID="Excel.Sheet.12"/></w:object></w:r></w:p>',
        {"package x.xlsx": "%"},
    ),
    "an undescribed picture": (
        _drawing("<pic:pic><pic:blipFill><a:blip/></pic:blipFill></pic:pic>"),
        {"image x.png": "%"},
    ),
    "the choice of a newer program": (
        '<w:p><w:r><mc:AlternateContent><mc:Choice Requires="zz"><w:t>%</w:t></mc:Choice><mc:Fallback/></mc:AlternateContent></w:r></w:p>',
        {},
    ),
    "words that were moved": (f"<w:p><w:moveTo>{_R}</w:moveTo></w:p>", {}),
    "custom XML": (
        f'<w:customXml w:element="a"><w:p><w:customXml w:element="b">{_R}</w:customXml></w:p></w:customXml>',
        {},
    ),
    "sections that repeat": (
        f"<w:sdt><w:sdtContent><w:sdt><w:sdtContent>{_P}</w:sdtContent></w:sdt></w:sdtContent></w:sdt>",
        {},
    ),
    "a field that never ends": (
        f'<w:p>{_R}<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF x</w:instrText></w:r></w:p>{_P}{_P}',
        {},
    ),
    "cells and rows within others": (
        f"<w:tbl><w:tr><w:sdt><w:sdtContent><w:tc>{_P}</w:tc></w:sdtContent></w:sdt><w:customXml><w:tc>{_P}</w:tc></w:customXml></w:tr><w:ins><w:tr><w:tc>{_P}</w:tc></w:tr></w:ins></w:tbl>",
        {},
    ),
}


def _word(body: str, further: dict[str, str]) -> OddDocument:
    links = {f"k{number or ''}": key for number, key in enumerate(further)}
    return _made(
        "a.docx",
        {
            "_rels/.rels": _rels(r="officeDocument word/document.xml"),
            "word/document.xml": f"<w:document {_S}><w:body><w:p><w:r><w:t>{FACT}</w:t></w:r></w:p>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": _rels(**links),
            **{f"word/{key.split()[1]}": part for key, part in further.items()},
        },
    )


# Workbooks: rows, what follows the rows, relations of the sheet, further parts


def _said(reference: str, text: str = "%") -> str:
    return f'<x:c r="{reference}" t="inlineStr"><x:is><x:t>{text}</x:t></x:is></x:c>'


_XSHAPE: Final = f"<xdr:sp><xdr:txBody>{_AT}</xdr:txBody></xdr:sp>"


def _drawn(inner: str, **further: str) -> dict[str, str]:
    """Return the parts of a drawing over the sheet."""
    anchored = f"<xdr:wsDr {_S}><xdr:twoCellAnchor>{inner}</xdr:twoCellAnchor></xdr:wsDr>"
    links = {key: f"{said.split(' ', 1)[0]} {key}.xml" for key, said in further.items()}
    parts = {f"xl/{key}.xml": said.split(" ", 1)[1] for key, said in further.items()}
    return {
        "sheet": "d=drawing ../d.xml",
        "xl/d.xml": anchored,
        "xl/_rels/d.xml.rels": _rels(**links),
        **parts,
    }


def _xframe(inner: str) -> str:
    return f"<xdr:graphicFrame><a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic></xdr:graphicFrame>"


_VML: Final = f"<xml {_S}><v:shape><v:textbox><div>% %</div></v:textbox></v:shape></xml>"
_WORKBOOKS: Final[dict[str, dict[str, str]]] = {
    "shapes of a group": _drawn(
        f"<xdr:grpSp>{_XSHAPE}<xdr:grpSp>{_XSHAPE}</xdr:grpSp></xdr:grpSp>"
    ),
    "a line with words": _drawn(_XSHAPE.replace("xdr:sp", "xdr:cxnSp")),
    "a shape that is described": _drawn(
        '<xdr:sp><xdr:nvSpPr><xdr:cNvPr id="1" name="x" descr="% % % % %"/></xdr:nvSpPr></xdr:sp>'
    ),
    "a shape that shows a picture": _drawn(
        '<xdr:sp><xdr:spPr><a:blipFill><a:blip r:embed="i"/></a:blipFill></xdr:spPr></xdr:sp>'
    )
    | {"x.txt": "%"},
    "a picture": _drawn("<xdr:pic><xdr:blipFill><a:blip/></xdr:blipFill></xdr:pic>")
    | {"x.txt": "%"},
    "a diagram": _drawn(_xframe('<dgm:relIds r:dm="q"/>'), q=f"diagramData {_DIAGRAM}"),
    "a chart": _drawn(_xframe('<c:chart r:id="q"/>'), q=f"chart {_CHART}"),
    "a funnel": _drawn(
        f'<mc:AlternateContent><mc:Choice Requires="cx1">{_xframe(chr(60) + "cx:chart r:id=" + chr(34) + "q" + chr(34) + "/>")}</mc:Choice><mc:Fallback/></mc:AlternateContent>',
        q=f"{_LATER_CHART} {_FUNNEL}",
    ),
    "an equation in a shape": _drawn(
        '<xdr:sp><xdr:txBody><a:p><mc:AlternateContent><mc:Choice Requires="a14"><a14:m><m:oMath><m:r><m:t>%</m:t></m:r></m:oMath></a14:m></mc:Choice></mc:AlternateContent></a:p></xdr:txBody></xdr:sp>'
    ),
    "a sheet of macros": {
        "book": f"{_MICROSOFT}/2006/relationships/xlMacrosheet m.xml",
        "xl/m.xml": f"<x:macro {_S}>%</x:macro>",
    },
    "a sheet that is a dialog": {
        "book": "dialogsheet m.xml",
        "xl/m.xml": f"<x:dialogsheet {_S}>%</x:dialogsheet>",
    },
    "buttons and boxes": {"sheet": "v=vmlDrawing ../v.vml", "xl/v.vml": _VML},
    "heads of first and even pages": {
        "after": "<x:headerFooter><x:oddHeader>&amp;C% %&amp;RPage &amp;P</x:oddHeader><x:evenHeader>&amp;L% %</x:evenHeader><x:firstFooter>&amp;R&amp;12%</x:firstFooter></x:headerFooter>"
    },
    "an error, a date, a word": {
        "rows": f'<x:row r="3"><x:c r="A3" t="e"><x:v>#DIV/0!</x:v></x:c><x:c r="B3" t="d"><x:v>2026-03-04</x:v></x:c>{_said("C3")}</x:row>'
    },
    "a cell beyond the last column": {"rows": f'<x:row r="3">{_said("XFE3")}</x:row>'},
    "a value that is no number": {"rows": '<x:row r="3"><x:c r="A3"><x:v>%</x:v></x:c></x:row>'},
    "a picture in a cell": {
        "rows": '<x:row r="3"><x:c r="A3" t="e" vm="1"><x:v>#VALUE!</x:v></x:c></x:row>',
        "x.txt": "%",
    },
    "notes": {
        "sheet": "n=comments ../n.xml",
        "xl/n.xml": f'<x:comments {_S}><x:commentList><x:comment ref="A2"><x:text><x:r><x:t>%</x:t></x:r><x:r><x:t> %</x:t></x:r></x:text></x:comment></x:commentList></x:comments>',
    },
    "an embedded document": {
        "after": '<x:oleObjects><x:oleObject progId="Word.Document.12" r:id="o"/></x:oleObjects>',
        "sheet": "o=package ../a.docx",
        "x.txt": "%",
    },
}


def _workbook(given: dict[str, str]) -> OddDocument:
    links = dict([given["sheet"].split("=", 1)]) if "sheet" in given else {}
    further = {"s2": given["book"]} if "book" in given else {}
    another = '<x:sheet name="%" sheetId="2" r:id="s2"/>' if further else ""
    first = f'<x:row r="1">{_said("A1", "Name")}{_said("B1", "Berth")}</x:row><x:row r="2">{_said("A2", "Anna")}<x:c r="B2"><x:v>7</x:v></x:c></x:row>'
    return _made(
        "a.xlsx",
        {
            "_rels/.rels": _rels(r="officeDocument xl/workbook.xml"),
            "xl/workbook.xml": f'<x:workbook {_S}><x:sheets><x:sheet name="Boats" sheetId="1" r:id="s1"/>{another}</x:sheets></x:workbook>',
            "xl/_rels/workbook.xml.rels": _rels(s1="worksheet sheets/s.xml", **further),
            "xl/sheets/s.xml": f"<x:worksheet {_S}><x:sheetData>{first}{given.get('rows', '')}</x:sheetData>{given.get('after', '')}</x:worksheet>",
            "xl/sheets/_rels/s.xml.rels": _rels(**links),
            **{name: part for name, part in given.items() if "." in name},
        },
    )


# Presentations: shapes, the layout's and the master's, relations of the slide, further parts


def _shape(tag: str = "sp", text: str = "%", about: str = "", place: str = "") -> str:
    return f'<p:{tag}><p:nvSpPr><p:cNvPr id="9" name="x" {about}/><p:nvPr>{place}</p:nvPr></p:nvSpPr><p:spPr/><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:{tag}>'


def _frame(inner: str) -> str:
    return f'<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="5" name="x"/></p:nvGraphicFramePr><a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic></p:graphicFrame>'


_LARGE: Final = '<a:xfrm><a:off x="0" y="0"/><a:ext cx="9000000" cy="6000000"/></a:xfrm>'
_PHOTO: Final = f'<p:pic><p:nvPicPr><p:cNvPr id="4" name="x"/><p:nvPr/></p:nvPicPr><p:blipFill><a:blip/></p:blipFill><p:spPr>{_LARGE}</p:spPr></p:pic>'
_DECKS: Final[dict[str, dict[str, str]]] = {
    "print of the layout": {"layout": _shape(text="% %")},
    "print of the master": {"master": _shape(text="% %")},
    "a line with words": {"shapes": _shape("cxnSp")},
    "a table in a group": {"shapes": f"<p:grpSp>{_frame(_ATABLE)}</p:grpSp>"},
    "a chart in a group": {
        "shapes": f"<p:grpSp>{_frame(chr(60) + 'c:chart r:id=' + chr(34) + 'q' + chr(34) + '/>')}</p:grpSp>",
        "links": "chart ../q.xml",
        "ppt/q.xml": _CHART,
    },
    "a funnel": {
        "shapes": f'<mc:AlternateContent><mc:Choice Requires="cx1">{_frame(chr(60) + "cx:chart r:id=" + chr(34) + "q" + chr(34) + "/>")}</mc:Choice></mc:AlternateContent>',
        "links": f"{_LATER_CHART} ../q.xml",
        "ppt/q.xml": _FUNNEL,
    },
    "a diagram": {
        "shapes": _frame('<dgm:relIds r:dm="q"/>'),
        "links": "diagramData ../q.xml",
        "ppt/q.xml": _DIAGRAM,
    },
    "replies to a comment": {
        "links": f"{_MICROSOFT}/2018/10/relationships/comments ../q.xml",
        "ppt/q.xml": f'<p188:cmLst xmlns:p188="{_MICROSOFT}/powerpoint/2018/8/main" {_S}><p188:cm><p188:replyLst><p188:reply><p188:txBody>{_AT}</p188:txBody></p188:reply></p188:replyLst><p188:txBody>{_AT}</p188:txBody></p188:cm></p188:cmLst>',
    },
    "an older comment": {
        "links": "comments ../q.xml",
        "ppt/q.xml": f"<p:cmLst {_S}><p:cm><p:text>% %</p:text></p:cm></p:cmLst>",
    },
    "boxes and a table among the notes": {
        "links": "notesSlide ../q.xml",
        "ppt/q.xml": f"<p:notes {_S}><p:cSld><p:spTree>{_shape(place='<p:ph type=' + chr(34) + 'body' + chr(34) + '/>')}{_shape()}{_frame(_ATABLE)}</p:spTree></p:cSld></p:notes>",
    },
    "an embedded workbook": {
        "shapes": _frame('<p:oleObj progId="Excel.Sheet.12" r:id="q"/>'),
        "x.txt": "%",
    },
    "a film": {
        "shapes": '<p:pic><p:nvPicPr><p:cNvPr id="4" name="x"/><p:nvPr><a:videoFile r:link="v"/></p:nvPr></p:nvPicPr><p:spPr/></p:pic>',
        "x.txt": "%",
    },
    "a shape that is described": {"shapes": _shape(text="", about='descr="% % % % %"')},
    "a picture": {"shapes": _PHOTO, "x.txt": "%"},
    "a picture as the ground": {
        "ground": '<p:bg><p:bgPr><a:blipFill><a:blip r:embed="i"/></a:blipFill></p:bgPr></p:bg>',
        "x.txt": "%",
    },
    "a shape that shows a picture": {
        "shapes": f'<p:sp><p:nvSpPr><p:cNvPr id="9" name="x"/><p:nvPr/></p:nvSpPr><p:spPr>{_LARGE}<a:blipFill><a:blip r:embed="i"/></a:blipFill></p:spPr></p:sp>',
        "x.txt": "%",
    },
    "ink": {"shapes": '<p:contentPart r:id="q"/>', "x.txt": "%"},
    "a control": {"controls": '<p:controls><p:control name="x"/></p:controls>', "x.txt": "%"},
    "an equation": {
        "shapes": '<p:sp><p:nvSpPr><p:cNvPr id="9" name="x"/><p:nvPr/></p:nvSpPr><p:txBody><a:p><mc:AlternateContent><mc:Choice Requires="a14"><a14:m><m:oMath><m:r><m:t>%</m:t></m:r></m:oMath></a14:m></mc:Choice></mc:AlternateContent></a:p></p:txBody></p:sp>'
    },
    "sixty groups in each other": {"shapes": "<p:grpSp>" * 60 + _shape() + "</p:grpSp>" * 60},
    "what an older program shows instead": {
        "shapes": f'<mc:AlternateContent><mc:Choice Requires="zz"/><mc:Fallback>{_shape()}</mc:Fallback></mc:AlternateContent>'
    },
}


def _deck(given: dict[str, str]) -> OddDocument:
    title = _shape(text="Boats", place='<p:ph type="title"/>')
    links = {"q": given["links"]} if "links" in given else {}

    def tree(root: str, shapes: str) -> str:
        return f"<p:{root} {_S}><p:cSld>{given.get('ground', '') if root == 'sld' else ''}<p:spTree>{shapes}</p:spTree>{given.get('controls', '') if root == 'sld' else ''}</p:cSld></p:{root}>"

    return _made(
        "a.pptx",
        {
            "_rels/.rels": _rels(r="officeDocument ppt/presentation.xml"),
            "ppt/presentation.xml": f'<p:presentation {_S}><p:sldIdLst><p:sldId id="256" r:id="s"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": _rels(s="slide slides/s.xml"),
            "ppt/slides/s.xml": tree("sld", title + given.get("shapes", "")),
            "ppt/slides/_rels/s.xml.rels": _rels(l="slideLayout ../l/l.xml", **links),
            "ppt/l/l.xml": tree("sldLayout", given.get("layout", "")),
            "ppt/l/_rels/l.xml.rels": _rels(m="slideMaster ../m.xml"),
            "ppt/m.xml": tree("sldMaster", given.get("master", "")),
            **{name: part for name, part in given.items() if "." in name},
        },
    )


# OpenDocument

_OD: Final = (
    " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for short, name in {
            **{one: one for one in ("office", "text", "table", "style", "form", "presentation")},
            "draw": "drawing",
            "svg": "svg-compatible",
        }.items()
    )
    + ' xmlns:xlink="http://www.w3.org/1999/xlink"'
)
_T: Final = "<text:p>%</text:p>"


def _note(kind: str, inner: str = _T) -> str:
    return f'<text:note text:note-class="{kind}"><text:note-citation>1</text:note-citation><text:note-body>{inner}</text:note-body></text:note>'


def _tabled(*cells: str) -> str:
    inner = "".join(f"<table:table-cell>{cell}</table:table-cell>" for cell in cells)
    return f"<table:table><table:table-row>{inner}</table:table-row></table:table>"


_BOXED: Final = f"<draw:frame><draw:text-box>{_T}</draw:text-box></draw:frame>"
_SIZED: Final = '<draw:frame svg:width="9cm" svg:height="9cm">'
_TEXTS: Final = {
    "an endnote": f"<text:p>Boats{_note('endnote')}</text:p>",
    "an endnote of paragraphs and a table": f"<text:p>Boats{_note('endnote', _T + _T + _tabled(_T, _T))}</text:p>",
    "an endnote in a cell": _tabled(f"<text:p>%{_note('endnote')}</text:p>", _T),
    "a footnote in a list": f"<text:list><text:list-item><text:p>%{_note('footnote')}</text:p></text:list-item></text:list>",
    "a footnote in a heading": f'<text:h text:outline-level="1">%{_note("footnote")}</text:h>',
    "a list in a note": f"<text:p>%{_note('footnote', f'<text:list><text:list-item>{_T}</text:list-item></text:list>')}</text:p>",
    "tables in tables": _tabled(_tabled(_T, _tabled(_T, _T)) + _T, _T),
    "a list in a cell": _tabled(
        f"<text:list><text:list-item>{_T}</text:list-item></text:list>", _T
    ),
    "a box in a cell": _tabled(f"<text:p>%{_BOXED}</text:p>", _T),
    "shapes with words": f"<text:p><draw:custom-shape>{_T}</draw:custom-shape><draw:g><draw:ellipse>{_T}</draw:ellipse></draw:g></text:p><draw:line>{_T}</draw:line>",
    "fields": "<text:p><text:placeholder>%</text:placeholder> <text:variable-set>%</text:variable-set> <text:bookmark-ref>%</text:bookmark-ref> <text:bibliography-mark>%</text:bibliography-mark> <text:database-display>%</text:database-display> <text:drop-down>%</text:drop-down></text:p>",
    "readings of letters": "<text:p><text:ruby><text:ruby-base>%</text:ruby-base><text:ruby-text>%</text:ruby-text></text:ruby></text:p>",
    "a form": '<office:forms><form:form><form:text form:value="%"/><form:textarea form:current-value="%"/><form:button form:label="%"/><form:checkbox form:label="%"/><form:listbox><form:option form:label="%" form:selected="true"/></form:listbox></form:form></office:forms>',
    "a table of contents": f"<text:table-of-content><text:index-body><text:index-title>{_T}</text:index-title>{_T}</text:index-body></text:table-of-content>",
    "a picture": f"<text:p>{_SIZED}<draw:image/></draw:frame></text:p><!--%-->",
    "a film": f"<text:p>{_SIZED}<draw:plugin/></draw:frame></text:p><!--%-->",
    "a frame that is another file": f"<text:p>{_SIZED}<draw:floating-frame/></draw:frame></text:p><!--%-->",
    "a comment": f"<text:p>%<office:annotation>{_T}</office:annotation></text:p>",
    "a numbered paragraph": f"<text:numbered-paragraph>{_T}</text:numbered-paragraph>",
    "rows of a head": f"<table:table><table:table-header-rows><table:table-row><table:table-cell>{_T}</table:table-cell></table:table-row></table:table-header-rows><table:table-row><table:table-cell>{_T}</table:table-cell></table:table-row></table:table>",
}
_SHEETS: Final = {
    "the note of an empty cell": f"<table:table-row><table:table-cell><office:annotation>{_T}</office:annotation></table:table-cell></table:table-row>",
    "a shape in a cell": f"<table:table-row><table:table-cell><draw:custom-shape>{_T}</draw:custom-shape></table:table-cell></table:table-row>",
    "a value without text": '<table:table-row><table:table-cell office:value-type="string" office:string-value="%"/></table:table-row>',
    "a chart in a cell": '<table:table-row><table:table-cell><draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></table:table-cell></table:table-row>',
    "shapes over the sheet": f"<table:shapes><draw:custom-shape>{_T}</draw:custom-shape>{_BOXED}</table:shapes>",
}
_SLIDES: Final = {
    "shapes with words": f"<draw:g><draw:custom-shape>{_T}</draw:custom-shape></draw:g><draw:connector>{_T}</draw:connector>",
    "notes": f'<presentation:notes><draw:frame presentation:class="notes"><draw:text-box>{_T}</draw:text-box></draw:frame></presentation:notes>',
    "a table": f"<draw:frame>{_tabled(_T, _T)}</draw:frame>",
    "a head and a foot": '<draw:frame presentation:class="header"><draw:text-box><text:p>% %</text:p></draw:text-box></draw:frame><draw:frame presentation:class="footer"><draw:text-box><text:p>% %</text:p></draw:text-box></draw:frame>',
    "a comment": f"<office:annotation>{_T}</office:annotation>",
}
_CHART_OF_OFFICE: Final = f'<office:document-content {_OD} xmlns:chart="urn:oasis:names:tc:opendocument:xmlns:chart:1.0"><office:body><office:chart><chart:chart><chart:title>{_T}</chart:title>{_tabled(_T, _T)}</chart:chart></office:chart></office:body></office:document-content>'
_MASTERS: Final = "<office:master-styles><style:master-page><style:header><text:p>% %</text:p></style:header><style:header-first><text:p>% %</text:p></style:header-first><style:footer-left><text:p>% %</text:p></style:footer-left><draw:custom-shape><text:p>% %</text:p></draw:custom-shape></style:master-page></office:master-styles>"


def _open_document(kind: str, inner: str, masters: str = "") -> OddDocument:
    endings = {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}
    return _made(
        f"a.{endings[kind]}",
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {_OD}><office:body><office:{kind}>{inner}</office:{kind}></office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {_OD}>{masters}</office:document-styles>",
            "Object 1/content.xml": _CHART_OF_OFFICE if "./Object 1" in inner else "",
        },
    )


def _open_documents() -> Iterator[tuple[str, OddDocument]]:
    fact = f"<text:p>{FACT}</text:p>"
    for name, inner in _TEXTS.items():
        yield name, _open_document("text", fact + inner)
    for name, inner in _SHEETS.items():
        row = f"<table:table-row><table:table-cell>{fact}</table:table-cell></table:table-row>"
        yield (
            name,
            _open_document(
                "spreadsheet", f'<table:table table:name="Boats">{row}{inner}</table:table>'
            ),
        )
    for name, inner in _SLIDES.items():
        yield (
            name,
            _open_document(
                "presentation",
                f"<presentation:footer-decl>% %</presentation:footer-decl><draw:page><draw:frame><draw:text-box>{fact}</draw:text-box></draw:frame>{inner}</draw:page>",
            ),
        )
    yield "heads, feet and print of its pages", _open_document("text", fact, _MASTERS)


# RTF

_RICH: Final = {
    "tables in tables": r"\trowd\cellx4000\cellx8000\pard\intbl\itap2 %\nestcell %\nestcell{\*\nesttableprops\trowd\cellx1000\cellx2000\nestrow}\itap2 %\nestcell %\nestcell{\*\nesttableprops\trowd\cellx1000\cellx2000\nestrow}{\nonesttables\par}\pard\intbl\itap1 %\cell %\cell\row\pard\par",
    "an endnote": r"Boats{\super\chftn}{\footnote\ftnalt{\super\chftn} % %}\par",
    "a footnote of paragraphs": r"Boats{\super\chftn}{\*\footnote {\super\chftn} %\par %\par}\par",
    "a footnote with a table": r"Boats{\super\chftn}{\footnote \trowd\cellx1000\cellx2000\intbl %\cell %\cell\row\pard}\par",
    "a box": r"{\shp{\*\shpinst{\sp{\sn shapeType}{\sv 202}}{\shptxt % %\par}}{\shprslt{\*\do{\dptxbxtext x\par}}}}\par",
    "an older box": r"{\*\do\dobxpage\dptxbx{\dptxbxtext\pard % %\par}\dpx0}\par",
    "lettering": r"{\shp{\*\shpinst{\sp{\sn shapeType}{\sv 136}}{\sp{\sn gtextUNICODE}{\sv % %}}}}\par",
    "lettering behind each page": r"{\header\pard{\shp{\*\shpinst{\sp{\sn gtextUNICODE}{\sv % %}}}}\par}",
    "a field of a form": r"{\field{\*\fldinst FORMTEXT {\*\formfield{\fftype0{\*\ffname a}}}}{\fldrslt %}}\par",
    "a list to choose from": r"{\field{\*\fldinst FORMDROPDOWN {\*\formfield{\fftype2\ffres1{\*\ffl other}{\*\ffl %}}}}{\fldrslt}}\par",
    "an equation": r"{\mmathPr}{\*\moMath{\mr %}{\msSup{\me{\mr %}}{\msup{\mr %}}}{\mf{\mnum{\mr %}}{\mden{\mr %}}}}\par",
    "an equation of its own": r"{\*\mmath{\moMathPara{\*\moMathParaPr}{\*\moMath{\*\mctrlPr}{\mr\mscr0\msty2 %}}}}\par",
    "a comment": r"Boats{\*\atnid AB}{\*\atnauthor A}\chatn{\*\annotation{\*\atndate 1} % %}\par",
    "heads of all kinds": r"{\headerl % % % % %}{\headerr % % % % %}{\headerf % % % % %}{\footerf % % % % %}",
    "a field in a field": r"{\field{\*\fldinst IF {\field{\*\fldinst A}{\fldrslt x}} }{\fldrslt {\field{\*\fldinst B}{\fldrslt %}}}}\par",
    "an object": r"{\object\objemb{\*\objclass Word.Document.8}{\*\objdata 0105}{\result % %\par}}\par",
    "a picture": r"{\pict\pngblip\picwgoal9000\pichgoal9000 0000}\par{\*\x %}",
    "two encodings of a text": r"{\upr{% %}{\*\ud{x}}}\par",
    "a foot right after a word": r"%\par{\footer % % % % %\par}%\par",
    "all ways to a new line": r"%\column %\page %\sect %\line %\tab %\par",
    "numbers before items": r"{\listtext\tab 1.\tab}%\par{\pntext 2.\tab}%\par",
}


def _rich(inner: str) -> OddDocument:
    words = _Words()
    text = words.into(
        r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\pard " + FACT + r"\par " + inner + "}"
    )
    return OddDocument("a.rtf", text.encode(), tuple(words.given))


# Books: chapters in the spine, the manifest's others, further parts

_BOOKS: Final[dict[str, dict[str, str]]] = {
    "a chapter that is only linked to": {"a": "", "other.xhtml": "<p>%</p>"},
    "a chapter that is lacking": {"a": "<!--%-->", "spine": '<itemref idref="z"/>'},
    "a chapter that is encrypted": {
        "a": "",
        "b": "%",
        "META-INF/encryption.xml": '<encryption><enc:CipherReference xmlns:enc="http://www.w3.org/2001/04/xmlenc#" URI="O/b.xhtml"/></encryption>',
    },
    "a note that pops up": {
        "a": '<p>%<a epub:type="noteref" href="#n">1</a></p><aside epub:type="footnote" id="n" hidden="hidden"><p>%</p></aside>'
    },
    "words of a drawing": {
        "a": '<svg xmlns="http://www.w3.org/2000/svg"><text x="1" y="9">% %</text></svg>'
    },
    "a drawing in a file": {
        "a": '<img src="f.svg"/>',
        "O/f.svg": '<svg xmlns="http://www.w3.org/2000/svg"><text>%</text></svg>',
    },
    "sound and film": {"a": '<audio src="a.mp3"></audio><video src="a.mp4"></video><!--%-->'},
    "readings and equations": {
        "a": '<p><ruby>%<rt>%</rt></ruby> <math xmlns="http://www.w3.org/1998/Math/MathML"><msup><mi>%</mi><mi>%</mi></msup></math></p>'
    },
    "what opens, terms, captions": {
        "a": '<details><summary>%</summary><p>%</p></details><dl><dt>%</dt><dd>%</dd></dl><figure><img src="x.jpg" alt="% % % % %"/><figcaption>%</figcaption></figure>'
    },
    "asides, feet, menus": {
        "a": "<aside><p>% %</p></aside><footer><p>% %</p></footer><nav><p>% %</p></nav>"
    },
    "a picture": {"a": '<img src="x.jpg"/><!--%-->'},
    "words outside of elements": {"a": "% %"},
}


def _book(given: dict[str, str]) -> OddDocument:
    page = f'<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body><p>{FACT}</p>{{}}</body></html>'
    chapters = {name: page.format(text) for name, text in given.items() if len(name) == 1}
    others = {name: page.format(text) for name, text in given.items() if name.endswith(".xhtml")}
    files = [
        *(f"{name}.xhtml" for name in chapters),
        *others,
        "z.xhtml" if "spine" in given else "",
    ]
    items = "".join(
        f'<item id="{name[0]}" href="{name}" media-type="application/xhtml+xml"/>'
        for name in files
        if name
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters) + given.get("spine", "")
    return _made(
        "a.epub",
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="O/a.opf"/></rootfiles></container>',
            "O/a.opf": f"<package><metadata/><manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{f"O/{name}.xhtml": text for name, text in chapters.items()},
            **{f"O/{name}": text for name, text in others.items()},
            **{name: text for name, text in given.items() if "/" in name},
        },
    )


# Mail

_BYTES: Final = base64.b64encode(bytes(range(256)) * 4).decode()
_PLAIN: Final = f"Content-Type: text/plain; charset=utf-8\n\n{FACT}\n"


def _parted(kind: str, *parts: str) -> str:
    mark = f"zz{kind}{len(parts)}"
    inner = "".join(f"--{mark}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="{mark}"\n\n{inner}--{mark}--\n'


def _mixed(part: str) -> str:
    return _parted("mixed", _PLAIN, part)


def _coded(kind: str, more: str = "", body: str = _BYTES) -> str:
    return f"Content-Type: {kind}\n{more}X-Word: %\nContent-Transfer-Encoding: base64\n\n{body}\n"


_MAIL: Final = {
    "CSV between the texts": _mixed(
        "Content-Type: text/csv\nContent-Disposition: inline\n\nName,Berth\n%,%\n"
    ),
    "CSV with a name": _mixed(
        "Content-Type: text/csv; name=a.csv\nContent-Disposition: inline; filename=a.csv\n\nName,Berth\n%,%\n"
    ),
    "Markdown": _mixed("Content-Type: text/markdown\n\n% %\n"),
    "RTF": _mixed("Content-Type: text/rtf\n\n{\\rtf1 % %\\par}\n"),
    "JSON": _mixed('Content-Type: application/json\n\n{"a": "%"}\n'),
    "a file without a name": _mixed(_coded("application/x-boats")),
    "a report of what was not delivered": _parted(
        "report",
        _PLAIN,
        "Content-Type: message/delivery-status\n\nReporting-MTA: dns; a\n\nFinal-Recipient: rfc822; %\nAction: %\n",
    ),
    "the head of what was not delivered": _parted(
        "report", _PLAIN, "Content-Type: text/rfc822-headers\n\nSubject: % %\n"
    ),
    "a message in it": _mixed(
        "Content-Type: message/rfc822\n\nFrom: %\nSubject: %\nContent-Type: text/plain\n\n% %\n"
    ),
    "a message attached to it": _mixed(
        "Content-Type: message/rfc822\nContent-Disposition: attachment; filename=a.eml\n\nSubject: %\nContent-Type: text/plain\n\n% %\n"
    ),
    "a digest": _parted("digest", "\nSubject: %\n\n% %", "\nSubject: %\n\n% %"),
    "a body that is elsewhere": _mixed(
        'Content-Type: message/external-body; access-type=URL; URL="http://a.example/"\n\nContent-Type: text/plain\n\n%'
    ),
    "a part of a longer message": f'Content-Type: message/partial; id="x"; number=1; total=3\n\n{FACT} %\n',
    "PGP": _parted(
        "encrypted",
        "Content-Type: application/pgp-encrypted\n\nVersion: 1 %",
        "Content-Type: application/octet-stream\n\n-----BEGIN PGP MESSAGE-----\nabc\n-----END PGP MESSAGE-----",
    ),
    "S/MIME": _coded("application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m"),
    "Outlook's own packet": _mixed(_coded("application/ms-tnef; name=winmail.dat")),
    "a card": _mixed("Content-Type: text/x-vcard\n\nBEGIN:VCARD\nVERSION:3.0\nFN:% %\nEND:VCARD\n"),
    "a screenshot in the text": _parted(
        "related",
        f"Content-Type: text/html\n\n<p>{FACT}</p><img src='cid:a'>",
        _coded(
            "image/png; name=a.png",
            "Content-ID: <a>\nContent-Disposition: inline; filename=a.png\n",
            base64.b64encode(bytes(60_000)).decode(),
        ),
    ),
    "a picture attached": _mixed(
        _coded("image/png; name=a.png", "Content-Disposition: attachment; filename=a.png\n")
    ),
    "a page attached": _mixed(
        "Content-Type: text/html; name=a.html\nContent-Disposition: attachment; filename=a.html\n\n<p>% %</p>"
    ),
    "an archive attached": _mixed(
        _coded("application/zip; name=a.zip", "Content-Disposition: attachment; filename=a.zip\n")
    ),
    "texts after each other": _parted(
        "mixed", _PLAIN, "Content-Type: text/html\n\n<p>% %</p>", "Content-Type: text/plain\n\n%"
    ),
    "who else may read it": f"Bcc: %\nReply-To: % <d@a.example>\n{_PLAIN}",
    "no end": _mixed("Content-Type: text/plain\n\n% %").rsplit("--zz", 1)[0],
    "an invitation": _mixed(
        "Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:%\nLOCATION:%\nDESCRIPTION:%\nDTSTART:20260302T100000Z\nEND:VEVENT\nEND:VCALENDAR\n"
    ),
    "a damaged invitation": _mixed("Content-Type: text/calendar\n\nBEGIN:VCALENDAR\nSUMMARY:%\n"),
    "HTML within what is related": _parted(
        "alternative", _PLAIN, _parted("related", f"Content-Type: text/html\n\n<p>{FACT} %</p>")
    ),
}


def _mail(inner: str) -> OddDocument:
    words = _Words()
    head = "From: Anna <a@a.example>\nTo: Bo <b@a.example>\nSubject: Boats\nMIME-Version: 1.0\n"
    return OddDocument("a.eml", words.into(head + inner).encode(), tuple(words.given))


# PDF: contents besides the fact, what the page and its resources name, the catalog, objects from 6

_SHOWN: Final = "BT /F 12 Tf 60 320 Td (% %) Tj ET"
_FONTS: Final = "/Resources<</Font<</F 5 0 R>>>>"
_BOX: Final = "/Rect[50 500 250 540]/F 4"


def _stream(about: str, inner: str) -> str:
    return f"<<{about}>>stream\n{inner}\nendstream"


_LOOKS: Final = _stream(
    f"/Type/XObject/Subtype/Form/BBox[0 0 200 40]{_FONTS}", "BT /F 12 Tf 5 5 Td (% %) Tj ET"
)
_IMAGE: Final = _stream(
    "/Subtype/Image/Width 10/Height 10/ColorSpace/DeviceGray/BitsPerComponent 8/X(%)", "A" * 100
)


def _annotation(about: str, *objects: str) -> dict[str, str]:
    numbered = {str(number): one for number, one in enumerate(objects, start=7)}
    return {"page": "/Annots[6 0 R]", "6": f"<</Type/Annot{_BOX}{about}>>", **numbered}


def _field(about: str, *objects: str) -> dict[str, str]:
    form = "/AcroForm<</Fields[6 0 R]/DA(/F 12 Tf)/DR<</Font<</F 5 0 R>>>>>>"
    return {**_annotation(f"/Subtype/Widget/T(s){about}", *objects), "catalog": form}


_PRINTED: Final[dict[str, dict[str, str]]] = {
    "free text": _annotation("/Subtype/FreeText/Contents(% %)/DA(/F 12 Tf)"),
    "a note": _annotation("/Subtype/Text/T(a)/Contents(% %)"),
    "a note of rich text alone": _annotation("/Subtype/Text/RC(<body><p>% %</p></body>)"),
    "a word about marked text": _annotation(
        "/Subtype/Highlight/QuadPoints[50 715 150 715 50 695 150 695]/Contents(% %)"
    ),
    "a stamp": _annotation("/Subtype/Stamp/AP<</N 7 0 R>>", _LOOKS),
    "a watermark": _annotation("/Subtype/Watermark/AP<</N 7 0 R>>", _LOOKS),
    "a signature": _field("/FT/Sig/AP<</N 7 0 R>>", _LOOKS),
    "a button": _field("/FT/Btn/Ff 65536/AP<</N 7 0 R>>", _LOOKS),
    "a field": _field("/FT/Tx/V(% %)"),
    "a list to choose from": _field("/FT/Ch/Ff 131072/Opt[(x)[(k)(%)]]/V(k)"),
    "a form for few programs": {
        "catalog": "/NeedsRendering true/AcroForm<</Fields[]/XFA 6 0 R>>",
        "6": _stream("", "<xdp>%</xdp>"),
    },
    "an attached file": {
        "catalog": "/Names<</EmbeddedFiles<</Names[(a.txt) 6 0 R]>>>>",
        "6": "<</Type/Filespec/F(a.txt)/EF<</F 7 0 R>>>>",
        "7": _stream("/Type/EmbeddedFile", "%"),
    },
    "a file attached to a place": _annotation(
        "/Subtype/FileAttachment/FS 7 0 R",
        "<</Type/Filespec/F(a.txt)/EF<</F 8 0 R>>>>",
        _stream("/Type/EmbeddedFile", "%"),
    ),
    "a film": _annotation("/Subtype/Screen/X(%)"),
    "a model in space": _annotation("/Subtype/3D/X(%)"),
    "print in a form in a form": {
        "shown": "q 1 0 0 1 50 400 cm /X Do Q",
        "resources": "/XObject<</X 6 0 R>>",
        "6": _stream(
            "/Type/XObject/Subtype/Form/BBox[0 0 200 40]/Resources<</XObject<</Y 7 0 R>>>>", "/Y Do"
        ),
        "7": _LOOKS,
    },
    "outlined print": {"shown": f"1 Tr {_SHOWN}"},
    "a picture": {
        "shown": "q 500 0 0 400 50 100 cm /I Do Q",
        "resources": "/XObject<</I 6 0 R>>",
        "6": _IMAGE,
    },
    "a picture in strips": {
        "shown": "".join(f"q 500 0 0 40 50 {100 + 40 * strip} cm /I Do Q " for strip in range(10)),
        "resources": "/XObject<</I 6 0 R>>",
        "6": _IMAGE,
    },
    "letters that are paths": {
        "shown": "".join(
            f"{50 + path % 80 * 6} {600 - path // 80 * 12} m {54 + path % 80 * 6} 590 l 52 {604 - path // 80 * 12} 51 603 50 606 c h f "
            for path in range(1_200)
        ),
        "6": "<</X(%)>>",
    },
    "a layer that is shown": {
        "shown": f"/OC /L BDC {_SHOWN} EMC",
        "resources": "/Properties<</L 6 0 R>>",
        "catalog": "/OCProperties<</OCGs[6 0 R]/D<<>>>>",
        "6": "<</Type/OCG/Name(x)>>",
    },
    "a turned page": {"page": "/Rotate 90/UserUnit 2", "shown": _SHOWN},
}


def _printed(given: dict[str, str]) -> OddDocument:
    words = _Words()
    contents = f"BT /F 12 Tf 50 700 Td ({FACT}) Tj ET {given.get('shown', '')}"
    objects = [
        f"<</Type/Catalog/Pages 2 0 R{given.get('catalog', '')}>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>{given.get('resources', '')}>>{given.get('page', '')}>>",
        _stream("", contents),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *(given[key] for key in sorted(given) if key.isdecimal()),
    ]
    body, places = b"%PDF-1.7\n", []
    for number, said in enumerate(objects, start=1):
        places.append(len(body))
        filled = words.into(said)
        about, begins, inner = filled.partition(">>stream\n")
        length = f"/Length {len(inner.removesuffix(chr(10) + 'endstream'))}" if begins else ""
        body += f"{number} 0 obj{about}{length}{begins}{inner} endobj\n".encode("latin-1")
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF"
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode() + table + end.encode()
    return OddDocument("a.pdf", body, tuple(words.given))


def odd_documents() -> Iterator[tuple[str, OddDocument]]:
    """Yield each document with the name of what it holds."""
    made: Iterator[tuple[str, OddDocument]] = iter(
        [
            *((name, _word(*given)) for name, given in _WORD.items()),
            *((name, _workbook(parts)) for name, parts in _WORKBOOKS.items()),
            *((name, _deck(parts)) for name, parts in _DECKS.items()),
            *_open_documents(),
            *((name, _rich(inner)) for name, inner in _RICH.items()),
            *((name, _book(parts)) for name, parts in _BOOKS.items()),
            *((name, _mail(inner)) for name, inner in _MAIL.items()),
            *((name, _printed(parts)) for name, parts in _PRINTED.items()),
        ]
    )
    for name, document in made:
        yield f"{document.file.rpartition('.')[2]}: {name}", document
