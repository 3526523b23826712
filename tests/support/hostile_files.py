"""Files of every format made to harm who reads them: bombs, loops, depth, cut short, misnamed; and
what each costs."""

import contextlib
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Final, NamedTuple

from errors import SourceUnreadable
from readers.convert import Raw, to_page
from tests.support.waiting import bounded

MOST_SECONDS: Final = 300
FILE_SECONDS: Final = 15.0
"""Of processor time for one file."""
ROOT: Final = Path(__file__).resolve().parents[2]
_RELS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006/relationships"
_A: Final = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P: Final = "http://schemas.openxmlformats.org/presentationml/2006/main"
_X: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LAUGHS: Final = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'


def _relations(*links: tuple[str, str, str]) -> str:
    """Return the part that says what another refers to: id, kind and name of each."""
    inner = "".join(
        f'<Relationship Id="{key}" Type="{_RELS}/{kind}" Target="{name}"/>'
        for key, kind, name in links
    )
    return f'<Relationships xmlns="{_PACKAGE}">{inner}</Relationships>'


def zipped(parts: dict[str, str | bytes]) -> bytes:
    """Return an archive of parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


def pptx(slide: str, *, head: str = "", shown: str = "") -> bytes:
    """Return a presentation of one slide with `slide` as its shapes."""
    links = _relations(("r1", "slide", "slides/slide1.xml"))
    ids = shown or '<p:sldId id="1" r:id="r1"/>'
    return zipped(
        {
            "ppt/presentation.xml": f'<p:presentation xmlns:p="{_P}" '
            f'xmlns:r="{_RELS}">{ids}</p:presentation>',
            "ppt/_rels/presentation.xml.rels": links,
            "ppt/slides/slide1.xml": f'{head}<p:sld xmlns:p="{_P}" xmlns:a="{_A}">{slide}</p:sld>',
        }
    )


def shape(text: str) -> str:
    """Return a shape with a text."""
    return f"<p:sp><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp>"


def xlsx(
    rows: str, *, head: str = "", strings: str = "", state: str = "", extra: str = ""
) -> bytes:
    """Return a workbook of one sheet with `rows` of SpreadsheetML, and another before it that has a
    `state`."""
    office = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    kinds = {"workbook": "sheet.main", "sharedStrings": "sharedStrings"}
    types = "".join(
        f'<Override PartName="/xl/{part}.xml" ContentType="{office}.{kind}+xml"/>'
        for part, kind in kinds.items()
    )
    links = _relations(
        ("r1", "worksheet", "worksheets/sheet1.xml"),
        ("r2", "worksheet", "worksheets/sheet2.xml"),
        ("r3", "sharedStrings", "sharedStrings.xml"),
    )
    shown = '<sheet name="Costs" sheetId="1" r:id="r1"/>'
    other = f'<sheet name="Other" sheetId="2" state="{state}" r:id="r2"/>' if state else ""
    sheet = f'{head}<worksheet xmlns="{_X}">{extra}<sheetData>{{}}</sheetData></worksheet>'
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE[:-13]}content-types">{types}</Types>',
            "_rels/.rels": _relations(("r1", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{_X}" '
            f'xmlns:r="{_RELS}"><sheets>{other}{shown}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": links,
            "xl/worksheets/sheet1.xml": sheet.format(rows),
            "xl/worksheets/sheet2.xml": sheet.format(
                '<row r="1"><c r="A1" t="str"><v>unshown</v></c></row>'
            ),
            "xl/sharedStrings.xml": f'<sst xmlns="{_X}">{strings}</sst>',
        }
    )


def odf(kind: str, body: str, *, head: str = "", styles: str = "", manifest: str = "") -> bytes:
    """Return an OpenDocument file of a kind (`text`, `spreadsheet`, `presentation`)."""
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
        for name, space in (
            ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style"),
            ("presentation", "presentation"),
        )
    )  # fmt: skip
    content = (
        f"{head}<office:document-content "
        f"{spaces}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    said = f"application/vnd.oasis.opendocument.{kind}"
    return zipped(
        {
            "mimetype": said,
            "content.xml": content,
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
        }
    )


def epub(
    chapters: dict[str, str],
    *,
    head: str = "",
    spine: str = "",
    extra: dict[str, str] | None = None,
) -> bytes:
    """Return a book of chapters by name."""
    items = "".join(f'<item id="{name}" href="{name}"/>' for name in chapters)
    order = spine or "".join(f'<itemref idref="{name}"/>' for name in chapters)
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="b.opf"/></container>',
            "b.opf": f"{head}<package><metadata/><manifest>{items}</manifest><spine>{order}</spine></package>",
            **chapters,
            **(extra or {}),
        }
    )


def eml(text: str = "The council met.") -> EmailMessage:
    """Return a message with a text."""
    message = EmailMessage()
    message["From"], message["Subject"], message["Message-ID"] = (
        "a@example.org",
        "Harbour",
        "<1@example.org>",
    )
    message.set_content(text)
    return message


def ole(name: str) -> bytes:
    """Return the beginning of a file of Microsoft's older container that names a stream."""
    return (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600 + name.encode("utf-16-le") + b"\0" * 600
    )


def _lying() -> bytes:
    """Return a presentation whose part claims to be smaller than it is."""
    body = bytearray(pptx(shape("boom " * 9_000_000)))
    place = body.rindex(b"ppt/slides/slide1.xml") - 46
    body[place + 24 : place + 28] = (1000).to_bytes(4, "little")
    return bytes(body)


def _nested_mail(depth: int) -> bytes:
    head = b"From: a@example.org\r\nSubject: deep\r\nMIME-Version: 1.0\r\nContent-Type: message/rfc822\r\n\r\n"
    return head * depth + b"the end"


def _boundaries(count: int) -> bytes:
    parts = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\r\n\r\n--b%d\r\n' % (number, number)
        for number in range(count)
    )
    return b"Message-ID: <1@example.org>\r\nMIME-Version: 1.0\r\n" + parts + b"\r\n--x" * 20_000


def _cells(count: int) -> str:
    return "".join(f'<c r="A{number}" t="n"><v>1</v></c>' for number in range(1, count))


HOSTILE: Final[dict[str, tuple[str, Callable[[], bytes]]]] = {
    # bombs: little that becomes much
    "a zip bomb of a slide": ("a.pptx", lambda: pptx(shape("boom " * 9_000_000))),
    "a part larger than it claims": ("a.pptx", _lying),
    "a zip bomb of a sheet": ("a.xlsx", lambda: xlsx("<row><c><v>1</v></c></row>" * 2_000_000)),
    "a zip bomb of strings": ("a.xlsx", lambda: xlsx("", strings="<si><t>a</t></si>" * 900_000)),
    "a zip bomb of a text": ("a.odt", lambda: odf("text", "<text:p>boom</text:p>" * 2_000_000)),
    "a zip bomb of a book": ("a.epub", lambda: epub({"1.xhtml": "<p>boom</p>" * 4_000_000})),
    "a book of 30,000 chapters": (
        "a.epub",
        lambda: epub({f"{number}.xhtml": "<p>a" for number in range(30_000)}),
    ),
    "entities in a slide": ("a.pptx", lambda: pptx(shape("&b;"), head=LAUGHS)),
    "entities in a sheet": (
        "a.xlsx",
        lambda: xlsx("<row><c t='str'><v>&b;</v></c></row>", head=LAUGHS),
    ),
    "entities in a text": ("a.odt", lambda: odf("text", "<text:p>&b;</text:p>", head=LAUGHS)),
    "entities in a book": ("a.epub", lambda: epub({"1.xhtml": "<p>a"}, head=LAUGHS)),
    "a million empty elements": ("a.odt", lambda: odf("text", "<text:x/>" * 1_000_000)),
    "as many elements as are read": (
        "a.odt",
        lambda: odf("text", "<x/>" * 590_000 + "<text:p>end</text:p>"),
    ),
    "a row of 600,000 cells": ("a.xlsx", lambda: xlsx(f"<row>{_cells(600_000)}</row>")),
    "cells far out in every row": (
        "a.xlsx",
        lambda: xlsx(
            "".join(f'<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>' for row in range(1, 9_001))
        ),
    ),
    "a sheet that claims 17 billion cells": (
        "a.xlsx",
        lambda: xlsx(
            '<row r="1"><c r="A1"><v>1</v></c></row>', extra='<dimension ref="A1:XFD1048576"/>'
        ),
    ),
    "a cell repeated a billion times": (
        "a.ods",
        lambda: odf(
            "spreadsheet",
            '<table:table table:name="a"><table:table-row '
            'table:number-rows-repeated="9999999"><table:table-cell '
            'table:number-columns-repeated="9999999"><text:p>a</text:p></table:table-cell></table:table-row></table:table>',
        ),
    ),
    "rows of repeated cells": (
        "a.ods",
        lambda: odf(
            "spreadsheet",
            '<table:table table:name="a">'
            + '<table:table-row table:number-rows-repeated="9999"><table:table-cell '
            'table:number-columns-repeated="9">'
            "<text:p>long words of a cell</text:p></table:table-cell></table:table-row>"
            * 1000
            + "</table:table>",
        ),
    ),
    "RTF of 20 million signs": ("a.rtf", lambda: b"{\\rtf1 " + b"a\\par " * 4_000_000 + b"}"),
    "RTF of a million links": (
        "a.rtf",
        lambda: b"{\\rtf1 " + b"{\\field{\\*\\fldinst{HYPERLINK " * 100_000 + b"}",
    ),
    "a notebook of a million cells": (
        "a.ipynb",
        lambda: b'{"cells": [' + b'{"cell_type":"raw"},' * 400_000 + b"{}]}",
    ),
    "a million cues": (
        "a.srt",
        lambda: b"".join(b"%d\n00:00:01,000 --> 00:00:02,000\na.\n\n" % n for n in range(200_000)),
    ),
    "times without words": (
        "a.vtt",
        lambda: b"WEBVTT\n\n" + b"00:01.000 --> 00:02.000\n" * 400_000,
    ),
    "mail of 20,000 parts": ("a.eml", lambda: _boundaries(1)),
    # loops and depth
    "a slide named 100,000 times": (
        "a.pptx",
        lambda: pptx(shape("a"), shown='<p:sldId id="1" r:id="r1"/>' * 100_000),
    ),
    "a chapter named 100,000 times": (
        "a.epub",
        lambda: epub({"1.xhtml": "<p>a"}, spine='<itemref idref="1.xhtml"/>' * 100_000),
    ),
    "a book that is its own chapter": (
        "a.epub",
        lambda: epub({"b.opf": ""}, spine='<itemref idref="b.opf"/>'),
    ),
    "a slide 100,000 deep": ("a.pptx", lambda: pptx("<p:grpSp>" * 100_000)),
    "a text 100,000 deep": ("a.odt", lambda: odf("text", "<text:list><text:list-item>" * 100_000)),
    "tables 5,000 deep": (
        "a.odt",
        lambda: odf(
            "text",
            "<table:table><table:table-row><table:table-cell>" * 5_000 + "<text:p>a</text:p>",
        ),
    ),
    "a chapter 100,000 deep": ("a.epub", lambda: epub({"1.xhtml": "<div>" * 100_000 + "a"})),
    "RTF 100,000 deep": ("a.rtf", lambda: b"{\\rtf1 " + b"{" * 100_000 + b"a"),
    "a notebook 100,000 deep": ("a.ipynb", lambda: b'{"cells": ' + b"[" * 100_000),
    "mail in mail 2,000 deep": (
        "a.eml",
        lambda: b"Message-ID: <1@example.org>\r\n" + _nested_mail(2_000),
    ),
    "boundaries 900 deep": ("a.eml", lambda: _boundaries(900)),
    "a mail box of bare marks": (
        "a.mbox",
        lambda: b"From a@example.org Thu Jan  1 00:00:00 1970\n\n" * 100_000,
    ),
    # cut short
    "half a presentation": ("a.pptx", lambda: pptx(shape("words " * 5000))[:400]),
    "a presentation with a torn part": (
        "a.pptx",
        lambda: _torn(pptx(shape("some words that are torn"))),
    ),
    "a workbook with a torn part": ("a.xlsx", lambda: _torn(xlsx("<row><c><v>1</v></c></row>"))),
    "half of a book's XML": ("a.epub", lambda: epub({"1.xhtml": "<p>The council <b>met"})),
    "half of a sheet's XML": ("a.xlsx", lambda: xlsx("</sheetData></worksheet><row><c")),
    "half a notebook": ("a.ipynb", lambda: json.dumps({"cells": [{"source": "a"}]}).encode()[:-9]),
    "subtitles without an end": ("a.srt", lambda: b"1\n00:00:01,000 --> 00:00"),
    "mail without an end": (
        "a.eml",
        lambda: b'Message-ID: <1@x>\r\nContent-Type: multipart/mixed; boundary="a"\r\n\r\n--a\r\n',
    ),
    # misnamed, locked, old
    "a workbook called a presentation": (
        "a.pptx",
        lambda: xlsx('<row r="1"><c r="A1" t="str"><v>Boats</v></c></row>'),
    ),
    "a text called a workbook": ("a.xlsx", lambda: b"The council met in March."),
    "a presentation called mail": ("a.eml", lambda: pptx(shape("Boats"))),
    "an image called subtitles": ("a.vtt", lambda: b"\x89PNG\r\n\x1a\n" + b"\0" * 99),
    "JSON called a notebook": ("a.ipynb", lambda: b'{"cells": "none", "name": "Pell"}'),
    "an old Word file": ("a.doc", lambda: ole("WordDocument")),
    "an old workbook": ("a.xls", lambda: ole("Workbook")),
    "an old presentation": ("a.ppt", lambda: ole("PowerPoint Document")),
    "a workbook with a password": ("a.xlsx", lambda: ole("EncryptedPackage")),
    "a text with a password": ("a.odt", lambda: odf("text", "", manifest="<encryption-data/>")),
    "a sealed book": (
        "a.epub",
        lambda: epub(
            {"1.xhtml": "\1\2\3"},
            extra={
                "META-INF/encryption.xml": "<encryption><CipherReference "
                'URI="1.xhtml"/></encryption>'
            },
        ),
    ),
}


def _torn(body: bytes) -> bytes:
    place = len(body) // 3
    return body[:place] + b"\xff\x00\xff" * 8 + body[place + 24 :]


class Spent(NamedTuple):
    """What reading one hostile file came to."""

    name: str
    megabytes: float
    """The process grew by at most."""
    said: str
    """The error of ours that it ended with, or the beginning of its text."""
    is_refused: bool


def read_all() -> list[Spent]:
    """Read all hostile files in a process of their own; fewer come back where one ended it, or took
    too long."""
    command = [sys.executable, "-m", "tests.support.hostile_files"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, timeout=MOST_SECONDS, check=False
        )
        return [Spent(**json.loads(line)) for line in done.stdout.splitlines()]
    return []


def _memory(key: str) -> float:
    """Return megabytes that this process holds (`VmRSS`), or held at most (`VmHWM`)."""
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    return int(found[1]) / 1024 if found else 0.0


def main() -> None:
    """Read each file and write what it came to, a line of JSON each."""
    small = {
        "a.pptx": pptx(""),
        "a.xlsx": xlsx(""),
        "a.odt": odf("text", ""),
        "a.epub": epub({"a": ""}),
        "a.eml": b"A: b",
    }
    for name, body in small.items():  # imports are not cost of a file
        with contextlib.suppress(SourceUnreadable):
            to_page(Raw(body, "a", "a", name=name))
    for name, (file, made) in HOSTILE.items():
        body = made()
        Path("/proc/self/clear_refs").write_text("5", "ascii")  # the highest mark begins again
        before, refused = _memory("VmRSS"), False
        try:
            with bounded(FILE_SECONDS):
                page = to_page(Raw(body, f"file:///{file}", f"file:///{file}", name=file))
            said = page.html[:300]
        except SourceUnreadable as error:
            said, refused = error.what, True
        spent = Spent(name, _memory("VmHWM") - before, " ".join(said.split()), refused)
        print(json.dumps(spent._asdict()), flush=True)


if __name__ == "__main__":
    main()
