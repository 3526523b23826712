"""The table of SECURITY.md, row by row: what it says is left out is not read, and is counted; what
it says is read all the same is read."""

import re
from collections.abc import Iterator

import pytest

import readers
from tests.support import ROOT
from tests.support.attacks import (
    BAD,
    FACT,
    FILL,
    HIDDEN_DOCX,
    HIDDEN_PDF,
    SEEN_DOCX,
    SEEN_PDF,
    docx_of,
)
from tests.support.hidden_files import (
    HIDDEN_ODS,
    HIDDEN_ODT,
    HIDDEN_RTF,
    HIDDEN_XLSX,
    SEEN_ODT,
    odt_of,
    xlsx_of,
)
from tests.support.hostile_files import odf, pptx, zipped
from tests.support.pdf import pdf_of

Document = tuple[str, bytes]
"""Ending and bytes."""


def page(*bodies: str) -> list[Document]:
    """Return pages that say `FACT` and `FILL`, and hold a body each with `BAD` at its `¤`."""
    head = f"<!doctype html><title>Light</title><h1>Light</h1><p>{FACT}</p>"
    return [("html", f"{head}{body.replace('¤', BAD)}<p>{FILL}</p>".encode()) for body in bodies]


def styled(*styles: str) -> list[Document]:
    return page(*(f"<p style='{style}'>¤</p>" for style in styles))


def ruled(*sheets: str) -> list[Document]:
    """Return pages whose sheet hides the class `q`."""
    return page(*(f"<style>{sheet}</style><p class=q>¤</p>" for sheet in sheets))


def files(ending: str, forms: dict[str, bytes], *names: str) -> list[Document]:
    return [(ending, forms[name]) for name in names or forms]


def slide(*shapes: str, shown: str = "") -> list[Document]:
    """Return decks with a slide that says `FACT`, and a shape each."""

    def text(inside: str) -> str:
        place = '<a:xfrm><a:off x="0" y="0"/><a:ext cx="90000" cy="20000"/></a:xfrm>'
        box = inside if "<p:spPr>" in inside else f"<p:spPr>{place}</p:spPr>{inside}"
        return f"<p:sp>{box}</p:sp>"

    said = text(f"<a:p><a:r><a:t>{FACT}</a:t></a:r></a:p>")
    size = '<p:sldId id="1" r:id="r1"/><p:sldSz cx="1000000" cy="500000"/>'
    return [
        (
            "pptx",
            pptx(
                f"<p:cSld><p:spTree>{said}{text(shape.replace('¤', BAD))}</p:spTree></p:cSld>",
                shown=size,
            ),
        )
        for shape in shapes
    ]


def letters(look: str) -> str:
    return f"<a:p><a:r>{look}<a:t>¤</a:t></a:r></a:p>"


def odp(style: str, about: str = "") -> list[Document]:
    """Return a deck of two slides, the second in a style."""
    body = f"<draw:page><text:p>{FACT}</text:p></draw:page><draw:page {about}><text:p>{BAD}</text:p></draw:page>"
    return [("odp", odf("presentation", body, styles=style))]


def epub(chapter: str) -> Document:
    """Return a book of one chapter."""
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="c.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
        'full-path="b.opf"/></rootfiles></container>'
    )
    xhtml = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{FACT}</p>{chapter}</body></html>'
    parts = {"mimetype": "application/epub+zip", "META-INF/container.xml": container}
    return "epub", zipped({**parts, "b.opf": opf, "c.xhtml": xhtml})


def mail(inside: str) -> Document:
    """Return a mail of one HTML part."""
    head = "From: a@example.org\nSubject: Light\nContent-Type: text/html\nMIME-Version: 1.0\n\n"
    return "eml", f"{head}<p>{FACT}</p>{inside}".encode()


HOLLOW = "<a:rPr><a:noFill/></a:rPr>"
WHITE = '<a:rPr><a:solidFill><a:srgbClr val="FFFFFF"/></a:solidFill></a:rPr>'
BESIDE = (
    '<p:spPr><a:xfrm><a:off x="3000000" y="0"/><a:ext cx="9000" cy="9000"/></a:xfrm></p:spPr>'
    + letters("")
)
INVISIBLE = '<p style="display:none">' + BAD + "</p>"
TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in BAD)
HIDDEN_SLIDE = (
    '<style:style style:name="h"><style:drawing-page-properties presentation:visibility="hidden"/>'
    "</style:style>"
)
SMALL_PRINT = pdf_of(f"BT /F1 12 Tf /F1 1.5 Tf 1 0 0 1 72 600 Tm ({BAD}) Tj ET")

ROWS: dict[str, tuple[list[Document], list[Document]]] = {
    "HTML: elements": (
        page(
            "<!-- ¤ -->",
            "<script>var x='¤'</script>",
            "<template><p>¤</p></template>",
            "<noscript><p>¤</p></noscript>",
            "<dialog><p>¤</p></dialog>",
            "<object data=x><p>¤</p></object>",
            "<progress value=1>¤</progress>",
            "<select hidden><option>¤</select>",
        ),
        page("<details><summary>More</summary><p>¤</p></details>"),
    ),
    "HTML: attributes": (
        page(
            "<p hidden>¤</p>",
            "<div popover><p>¤</p></div>",
            "<input type=hidden value='¤'>",
            "<p aria-hidden=true>¤</p>",
            "<div><template shadowrootmode=open><p>Boats.</p></template><p>¤</p></div>",
        ),
        page("<div><template shadowrootmode=open><slot></slot></template><p>¤</p></div>"),
    ),
    "HTML: not displayed": (
        styled(
            "display:none",
            "content-visibility:hidden",
            "height:3px;overflow:hidden",
            "width:0;overflow:clip",
        ),
        styled("position:relative;z-index:-1")
        + page(
            "<details open><summary>More</summary><p style='display:none'>¤</p></details>",
            "<button aria-expanded=false>More</button><div style='display:none'><p>¤</p></div>",
            "<div role=tabpanel hidden><p>¤</p></div>",
        ),
    ),
    "HTML: clear": (
        styled("visibility:hidden", "visibility:collapse", "opacity:.04", "filter:opacity(0)"),
        styled("opacity:.2"),
    ),
    "HTML: size": (
        styled("font-size:1px", "font:0/0 serif", "scale:0", "transform:scale(.01)", "zoom:.01"),
        styled("transform:rotate(3deg)"),
    ),
    "HTML: colour": (
        styled(
            "color:white",
            "color:#fefefe",
            "color:rgb(255 255 255)",
            "color:hsl(0,0%,100%)",
            "color:hwb(0 100% 0%)",
            "color:rgba(0,0,0,.02)",
            "color:navy;background:navy",
        )
        + page("<font color=white>¤</font>"),
        styled("color:#fff;background:linear-gradient(#fff,#00f)"),
    ),
    "HTML: place": (
        styled(
            "position:absolute;left:-480px",
            "position:fixed;inset:-9999px",
            "margin-left:-9999px",
            "text-indent:-9999px",
            "translate:-9999px",
            "position:absolute;left:5000px",
        ),
        styled("position:absolute;top:900px"),
    ),
    "HTML: clipped": (
        styled("position:absolute;clip:rect(0,0,0,0)", "clip-path:inset(50%)"),
        styled("clip-path:inset(1%)"),
    ),
    "HTML: for screen readers": (
        page("<p class=sr-only>¤ and then again, ¤, and once more at the end</p>"),
        [],
    ),
    "HTML: sheets": (
        ruled(
            ".q{display:none}",
            "@media screen{.q{display:none}}",
            "@media (min-width:600px){.q{display:none}}",
            "@supports (display:grid){.q{display:none}}",
            "@layer a{.q{display:none}}",
            "p{&.q{display:none}}",
        ),
        ruled(
            "@container (min-width:1px){.q{display:none}}",
            "@media print{.q{display:none}}",
            "@supports not (no:thing){.q{display:none}}",
            "@layer a,b;@layer b{.q{display:none}}@layer a{.q{display:block}}",
            ".q{display:none;display:nothing}",
        ),
    ),
    "HTML: rows of tables": (
        page(
            "<table><tr><th>a<th>b<tr><td>1<td>2<tr style='display:none'><td>3<td>¤</table>",
            "<table><tr><th>a<th>b<tr><td>1<td>2<tr hidden><td>3<td>¤</table>",
        ),
        [],
    ),
    "any: characters": (
        [*page(f"<p>Boats{TAGS} leave.</p>"), ("txt", f"{FACT}{TAGS}".encode())],
        [],
    ),
    "books, mail, notebooks: pages": ([epub(INVISIBLE), mail(INVISIBLE)], []),
    "Markdown": (
        [
            ("md", f"# Light\n\n{FACT}\n\n{body}\n".encode())
            for body in (f"<!-- {BAD} -->", f"<p hidden>{BAD}</p>", f"[//]: # ({BAD})")
        ],
        [("md", f"# Light\n\n{FACT}\n\n```html\n<p hidden>{BAD}</p>\n```\n".encode())],
    ),
    "PDF: print": (
        files(
            "pdf",
            HIDDEN_PDF,
            "white ink",
            "its colour on its ground",
            "outside the clipping path",
            "below an image",
            "above the page",
            "a layer that is off",
            "in the place of print",
        ),
        files("pdf", SEEN_PDF),
    ),
    "PDF: size, mode": (
        [*files("pdf", HIDDEN_PDF, "half a point", "rendering mode 3"), ("pdf", SMALL_PRINT)],
        [],
    ),
    "DOCX: letters": (
        files(
            "docx",
            HIDDEN_DOCX,
            "vanish",
            "half a point",
            "squeezed to 1 %",
            "hollow letters",
            "raised off the page",
            "vanished by a style's style",
        ),
        files("docx", SEEN_DOCX, "condensed type", "small print"),
    ),
    "DOCX: colour": (
        files("docx", HIDDEN_DOCX, "white", "its colour on its shade", "on a shaded paragraph"),
        files("docx", SEEN_DOCX, "white in a table with a style", "white in a dark cell"),
    ),
    "PPTX": (
        slide(
            f'<p:nvSpPr><p:cNvPr hidden="1"/></p:nvSpPr>{letters("")}',
            BESIDE,
            letters('<a:rPr sz="100"/>'),
            letters(HOLLOW),
            letters(WHITE),
        ),
        slide(letters('<a:rPr sz="700"/>')),
    ),
    "ODT, ODS, ODP: not displayed": (
        files(
            "odt",
            HIDDEN_ODT,
            "not displayed",
            "hidden text",
            "hidden paragraph",
            "hidden section",
            "deleted",
        ),
        files("odt", SEEN_ODT, "a field that shows", "a section that shows"),
    ),
    "ODT, ODS, ODP: letters": (
        files("odt", HIDDEN_ODT, "white", "one point", "squeezed", "its colour on its ground"),
        files("odt", SEEN_ODT, "white on a dark ground", "small print"),
    ),
    "ODS, ODP: parts": (
        files(
            "ods",
            HIDDEN_ODS,
            "hidden row",
            "filtered row",
            "row of a closed group",
            "hidden column",
        )
        + odp(HIDDEN_SLIDE, 'draw:style-name="h"'),
        odp(HIDDEN_SLIDE),
    ),
    "XLSX: parts": (
        files(
            "xlsx",
            HIDDEN_XLSX,
            "hidden row",
            "row without height",
            "hidden column",
            "column without width",
        ),
        [
            (
                "xlsx",
                xlsx_of(
                    f'<row r="2"><c r="A2" t="inlineStr"><is><t>{BAD}</t></is></c></row>',
                    before='<sheetFormatPr defaultRowHeight="15" zeroHeight="1"/>',
                ),
            )
        ],
    ),
    "XLSX: cells": (
        files("xlsx", HIDDEN_XLSX, "a format that shows nothing", "one point", "white"),
        [],
    ),
    "RTF": (
        files("rtf", HIDDEN_RTF, "hidden", "deleted", "half a point", "squeezed", "white"),
        [],
    ),
}
"""By the first cell of a row, documents whose words are left out, and those that are read."""


def words(document: Document) -> str:
    """Return what is read of a document."""
    read = readers.read(document[1], name=f"a.{document[0]}")
    return "\n".join(" ".join([block.text, *block.cells]) for block in read.blocks)


def rows() -> Iterator[str]:
    """Yield the first cells of the table."""
    table = (ROOT / "SECURITY.md").read_text().partition("hidden:begin")[2].partition("<!--")[0]
    yield from re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:]


def test_each_row_of_the_table_has_a_document_and_each_document_a_row() -> None:
    assert list(rows()) == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_what_a_row_says_is_left_out_is_not_read_and_what_it_says_is_read_is(row: str) -> None:
    hidden, seen = ROWS[row]
    for document in hidden:
        read = words(document)
        assert "1871" in read, document
        assert "PWNED" not in read, document
    for document in seen:
        assert "PWNED" in words(document), document


MANY = f"{BAD} " * 12
TINY = '<fonts><font><sz val="1"/></font></fonts><cellXfs><xf fontId="0"/></cellXfs>'
SMALL_WHITE = " ".join(
    f"BT /F1 4 Tf 1 g 1 0 0 1 20 {600 - 9 * n} Tm ({BAD}) Tj ET" for n in range(12)
)
VANISHED = f"<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>{MANY}</w:t></w:r></w:p>"
MOSTLY: dict[str, Document] = {
    "DOCX": ("docx", docx_of(VANISHED)),
    "DOCX that shows nothing else": ("docx", docx_of(VANISHED, said=())),
    "ODT": ("odt", odt_of(f'<text:p text:style-name="T">{MANY}</text:p>', 'fo:color="#ffffff"')),
    "RTF": ("rtf", f"{{\\rtf1\\ansi {FACT}\\par{{\\v {MANY}}}}}".encode()),
    "PPTX": slide(letters(WHITE).replace("¤", MANY))[0],
    "XLSX": (
        "xlsx",
        xlsx_of(
            f'<row r="2"><c r="A2" s="0" t="inlineStr"><is><t>{MANY}</t></is></c></row>',
            styles=TINY,
        ),
    ),
    "PDF": ("pdf", pdf_of(SMALL_WHITE)),
    "page": page(f"<p style='color:white'>{MANY}</p>")[0],
}
"""Files of which most would be left out for their looks."""


@pytest.mark.parametrize("name", MOSTLY)
def test_a_file_of_which_most_would_be_left_out_for_its_looks_is_shown(name: str) -> None:
    assert "PWNED" in words(MOSTLY[name])


def test_rows_that_a_person_hides_stay_out_however_many() -> None:
    cells = f'<row r="2" hidden="1"><c r="A2" t="inlineStr"><is><t>{MANY}</t></is></c></row>'
    assert "PWNED" not in words(("xlsx", xlsx_of(cells)))
