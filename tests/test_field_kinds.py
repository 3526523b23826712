"""Inputs of our own, two at least of each kind that failed in the field, asked through the
tools.

Of each kind the inputs differ in tags, headers, names and order. Not for: what one part does in
full, which the tests of that part hold.
"""

# ruff: noqa: E501  the rows of tables

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.worksheet.worksheet import Worksheet
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import FreeText
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Table, TableStyle

from tests.support import SHARED, Connect, text_of
from tests.support.docx import make_parts, run
from tests.support.pdf import pdf_of
from tests.support.raw_site import Answer, answer, raw_site
from tests.test_html_served import STORY
from tests.test_read_others import book, mail
from tests.test_read_slides import box, deck

pytestmark = pytest.mark.anyio


class Asked(NamedTuple):
    """An input, a call on it, and what the answer has."""

    body: bytes | str | Answer | Mapping[str, str]
    """Of a file, of a page, what a server answers, or the files of a folder."""
    shows: str
    """A pattern over the answer with its blanks folded."""
    hides: str = r"\Z\A"
    name: str = ""
    """Of a file, or `.ending`; empty for a page."""
    place: str = ""
    """Fragment of the address."""
    question: str = ""
    part: str = ""
    tokens: int = 4000


def page(body: str, head: str = "") -> str:
    return f"<!doctype html><html><head><title>Harbour</title>{head}</head><body><main><h1>Harbour</h1><p>{STORY}</p>{body}</main></body></html>"


def word(body: str, **parts: str) -> bytes:
    return make_parts(f"<w:p>{run(STORY)}</w:p>{body}", **parts)


def item(text: str, level: int = 0) -> str:
    return f'<w:p><w:pPr><w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="4"/></w:numPr></w:pPr>{run(text)}</w:p>'


def numbered(*levels: tuple[str, str, int]) -> str:
    """Return a numbering of levels by form, text and start."""
    inner = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for n, (form, text, start) in enumerate(levels)
    )
    return f'<w:abstractNum w:abstractNumId="1">{inner}</w:abstractNum><w:num w:numId="4"><w:abstractNumId w:val="1"/></w:num>'


def workbook(
    rows: list[list[object]], merged: str = "", change: Callable[[Worksheet], object] = id
) -> bytes:
    found = openpyxl.Workbook()
    sheet = found.active
    for row in rows:
        sheet.append(row)
    for one in merged.split():
        sheet.merge_cells(one)
    change(sheet)
    out = io.BytesIO()
    found.save(out)
    return out.getvalue()


def formatted(*values: tuple[float, str]) -> bytes:
    def change(sheet: Worksheet) -> None:
        for row, (value, form) in enumerate(values, 2):
            sheet.cell(row, 1, f"n{row}")
            sheet.cell(row, 2, value).number_format = form

    return workbook([["Name", "Value"]], change=change)


def renamed(file: bytes, old: str, new: str) -> bytes:
    """Return a package whose main part has another name."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as given, zipfile.ZipFile(out, "w") as made:
        for name in given.namelist():
            body = given.read(name)
            if name.endswith((".rels", "[Content_Types].xml")):
                body = body.replace(old.encode(), new.encode())
            made.writestr(name.replace(old, new), body)
    return out.getvalue()


def chart(kind: XL_CHART_TYPE, **series: tuple[float, float]) -> bytes:
    data = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = ["North", "South"]
    for name, values in series.items():
        data.add_series(name, values)  # type: ignore[no-untyped-call]
    shown = Presentation()
    slide = shown.slides.add_slide(shown.slide_layouts[6])
    slide.shapes.add_chart(kind, 0, 0, Inches(5), Inches(4), data)
    out = io.BytesIO()
    shown.save(out)
    return out.getvalue()


def typeset(*flow: Flowable) -> bytes:
    out = io.BytesIO()
    SimpleDocTemplate(out).build(list(flow))
    return out.getvalue()


def prose(text: str) -> Paragraph:
    return Paragraph(text, getSampleStyleSheet()["Normal"])


def ruled(rows: list[list[str]], *more: tuple[object, ...]) -> bytes:
    return typeset(
        Table(rows, style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), *more]))
    )


def canvas(draw: Callable[[Canvas], object]) -> bytes:
    out = io.BytesIO()
    drawn = Canvas(out)
    draw(drawn)
    drawn.save()
    return out.getvalue()


def by_letters(text: str) -> Callable[[Canvas], None]:
    def draw(drawn: Canvas) -> None:
        at = 72.0
        for letter in text:
            drawn.drawString(at, 700, letter)
            at += drawn.stringWidth(letter)

    return draw


def paged(odd: str, even: str, foot: str) -> Callable[[Canvas], None]:
    def draw(drawn: Canvas) -> None:
        for number in range(1, 7):
            drawn.setFont("Helvetica", 9)
            drawn.drawString(72, 810, odd if number % 2 else even)
            drawn.drawString(250, 28, foot.replace("#", str(number)))
            drawn.setFont("Helvetica", 11)
            for line in range(40):
                drawn.drawString(
                    72, 770 - 15 * line, f"Keeper {number}.{line} writes the depth of the basin and"
                )
            drawn.showPage()

    return draw


def with_comment(text: str) -> bytes:
    writer = PdfWriter()
    writer.append(PdfReader(io.BytesIO(typeset(prose("The boom is closed at dusk every day.")))))
    writer.add_annotation(0, FreeText(text=text, rect=(50, 500, 300, 560)))
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def filled_form(drawn: Canvas) -> None:
    drawn.drawString(72, 700, "Name of skipper:")
    drawn.acroForm.textfield(
        name="skipper", x=200, y=690, width=200, height=20, value="Odda Brekke"
    )


SHUT = (
    "The upper lock closes on 3 August for the repair of its northern gate and opens in September."
)
CALLS = "The keeper calls each boat by radio on channel 12 before it may enter the basin."
BOTH = r"upper lock closes on 3 August.*keeper calls each boat|keeper calls each boat.*upper lock closes on 3 August"
DATA = json.dumps({"post": {"title": "Lock", "body": f"<p>{SHUT}</p><p>{CALLS}</p>"}})


def drawn_by_scripts(body: str) -> str:
    return f"<!doctype html><html><head><title>Lock</title><script src=/app.js></script></head><body>{body}</body></html>"


def marked(no: str, yes: str) -> str:
    return page(
        f"<table><tr><th>What<th>Basic<th>Plus<tr><td>Crane<td>{no}<td>{yes}<tr><td>Water<td>yes<td>yes</table>"
    )


def to(address: str, status: str = "302 Found", more: str = "") -> bytes:
    return answer("", status=status, more=f"Location: {address}\r\n{more}")


def behind_cookie(cookie: str, status: str) -> Answer:
    pair = cookie.partition(";")[0]
    return lambda request: (
        answer(page("<p>Key K-4.</p>"))
        if pair in request
        else to(request.split()[1], status, f"Set-Cookie: {cookie}\r\n")
    )


def sent(body: str | bytes, kind: str = "text/html; charset=utf-8", more: str = "") -> Answer:
    return lambda request: answer(body, kind, more=more)


def chunked(body: str, end: bytes) -> Answer:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    return lambda request: head + b"%x\r\n%b\r\n" % (len(body), body.encode()) + end


def behind_cookies(count: int) -> Answer:
    """Return a page that is shown to who brings a cookie from each of so many hops."""

    def reply(request: str) -> bytes:
        path, _, step = request.split()[1].partition("?")
        if (at := int(step or 0)) < count:
            return to(f"{path}?{at + 1}", more=f"Set-Cookie: c{at}=v{at}; Path=/\r\n")
        known = all(f"c{hop}=v{hop}" in request for hop in range(count))
        return answer(
            page("<p>Key K-4.</p>") if known else "", status="200 OK" if known else "403 No"
        )

    return reply


def reloading(request: str) -> bytes:
    """A page that reloads itself once its cookie is set, and names no address."""
    if "seen=yes" in request:
        return answer(page("<p>Key K-4.</p>"))
    wait = '<meta http-equiv="refresh" content="1"><title>One moment</title><p>Please wait</p>'
    return answer(wait, more="Set-Cookie: seen=yes\r\n")


def accented(request: str) -> bytes:
    """A page after a redirect whose address is written in UTF-8 as it is."""
    path = request.split()[1]
    return answer(page("<p>Key K-4.</p>")) if "%C3%85" in path else to(f"{path}?n=Å")


XHTML = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">'
CUT = page("<p>Key K-4.</p>" + "<p>More of it is here.</p>" * 40)
BASINS = "".join(
    f'<h2 id="b{n}">Basin {n}</h2><p>Basin {n} is dredged in week {n + 10}. {"Its floor is clay. " * 20}</p>'
    for n in range(1, 13)
)
LOG = b"Line one: gate shut.\nLine two: level 4.62 metres.\nLine three: opened.\n"
LOGGED = r"Line one.*4\.62.*Line three"
TABLED = ruled([["Berth", "Fee"], ["East 1", "300"], ["West 1", "120"]])
CSV = b"ship,fee\r\nTern,12\r\nGull,19\r\n"
FEES = r"Tern \| 12.*Gull \| 19"
QUAYS: list[list[object]] = [
    ["Quay", "Cargo", "Tons"],
    ["East", "Salt", 10],
    [None, "Coal", 20],
    ["West", "Salt", 5],
]
CATCH: list[list[object]] = [["Part", "Price"], ["Winch", 100], ["Old rope", 50], ["Anchor", 90]]
ROTA: list[list[object]] = [["Name", "Mon", "Tue", "Wed"], ["Ada", "Gate", None, "Crane"]]
RULES = (
    "<h2>1.2.1 Small boats</h2><p>There are seven berths.</p><h2>1.2 Boats</h2><p>There are six berths.</p>"
    "<h2>§ 12a Late fees</h2><p>They are 5 crowns a day, whoever owns the boat.</p><h2>§ 12 Fees</h2><p>40 crowns.</p>"
)
CALENDAR = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Inspection\r\nDTSTART:20260614T073000Z\r\nLOCATION:Shed 8\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
FRAME_SAID = r"a frame of the page.s own site was not read|contains only frames"
"""Frames are said, not fetched (CHANGELOG)."""
KINDS: dict[str, list[Asked]] = {
    "docx: elements mammoth does not know vanish without a word": [
        Asked(word(f'<w:p>{run("Table ")}<w:fldSimple w:instr=" SEQ Table ">{run("7")}</w:fldSimple>{run(": fees")}</w:p>'), "Table 7: fees", name=".docx"),
        Asked(word(f"<w:p><w:ruby><w:rt>{run('おおさか')}</w:rt><w:rubyBase>{run('大阪')}</w:rubyBase></w:ruby>{run('の灯台')}</w:p>"), "大阪.*の灯台", name=".docx"),
        Asked(word(f"<w:sdt><w:sdtContent><w:p>{run('Chosen: deep water')}</w:p></w:sdtContent></w:sdt>"), "Chosen: deep water", name=".docx"),
    ],
    "docx: elements mammoth does not know vanish without a word (parts that are not read: header, footer, comments)": [
        Asked(word('<w:sectPr><w:headerReference w:type="default" r:id="header"/></w:sectPr>', header=f"<w:p>{run('Manual, revision K')}</w:p>"), "revision K", name=".docx", question="Which revision is the manual?"),
        Asked(word('<w:sectPr><w:footerReference w:type="default" r:id="footer"/></w:sectPr>', footer=f"<w:p>{run('Approved by Ilse Marin')}</w:p>"), "Ilse Marin", name=".docx", question="Who approved the manual?"),
    ],
    "docx: numbers and levels that Word computes": [
        Asked(word(item("Scope") + item("New works", 1), numbering=numbered(("upperRoman", "Article %1", 1), ("decimal", "Section %1.%2", 2))), r"Article I\W+Scope.*Section I\.2\W+New works", name=".docx"),
        Asked(word(item("No fires") + item("No nets"), numbering=numbered(("lowerLetter", "(%1)", 5))), r"\(e\)\W+No fires.*\(f\)\W+No nets", name=".docx"),
    ],
    "office: main part under another name": [
        Asked(make_parts(f"<w:p>{run('45 drums of tar')}</w:p>", main="content/main.xml"), "45 drums of tar", name=".docx"),
        Asked(renamed(chart(XL_CHART_TYPE.PIE, Share=(0.7, 0.3)), "presentation.xml", "deck9.xml"), "South", name=".pptx"),
        Asked(renamed(workbook(CATCH), "workbook.xml", "book7.xml"), r"Anchor \| 90", name=".xlsx"),
    ],
    "xlsx: merged cells are blank below and beside the first": [
        Asked(workbook(QUAYS, "A2:A3"), r"East \| 30", name=".xlsx", part="sql: SELECT quay, sum(tons) FROM t1 GROUP BY quay"),
        Asked(workbook(ROTA, "B2:C2"), "Ada", name=".xlsx", part="sql: SELECT * FROM t1 WHERE tue = 'Gate'"),
        Asked(workbook([["Fees of 2026", None], *CATCH], "A1:B1"), r"\b240\b", name=".xlsx", part="sql: SELECT sum(price) FROM t1"),
    ],
    "xlsx: number formats that say what the number is": [
        Asked(formatted((7, '"INV-"0000'), (1234.5, '"$"#,##0.00'), (99, "[$CHF] #,##0.00")), r"INV-0007.*\$1,234\.50.*CHF 99\.00", name=".xlsx"),
        Asked(formatted((12.5, "#,##0.00 [$kr-41D]"), (3, '0" days"'), (42, "00000"), (1_500_000, '0.0,,"M"')), r"12\.50 kr.*3 days.*00042.*1\.5M", name=".xlsx"),
    ],
    "xlsx: what is left out is not said": [
        Asked(workbook([*CATCH, ["Total", "=SUM(B2:B4)"]]), r"=SUM\(B2:B4\)", name=".xlsx"),
        Asked(workbook(CATCH, change=lambda sheet: setattr(sheet.row_dimensions[3], "hidden", True)), r"\b190\b", r"\b240\b", name=".xlsx", part="sql: SELECT sum(price) FROM t1"),
        Asked(workbook(CATCH, change=lambda sheet: setattr(sheet["B2"], "comment", Comment("Rises in August", "Ada"))), "Rises in August", name=".xlsx"),
    ],
    "pptx: order and charts": [
        Asked(deck(box("Last: pay", 10, 300) + box("First: call", 10, 20) + box("Then: moor", 10, 150)), "First: call.*Then: moor.*Last: pay", name=".pptx"),
        Asked(chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Salt=(12.5, 40), Coal=(13, 44)), r"North \| 12\.5 \| 13.*South \| 40 \| 44", name=".pptx"),
    ],
    "lists: the numbers that the page shows": [
        Asked(page('<ol type="A" start="3"><li>No fires<li>No nets</ol>'), r"C\. No fires.*D\. No nets"),
        Asked(page('<ol reversed><li value="20">Tar<li><p>Rope</p></ol>'), r"20\. Tar.*19\. Rope"),
        Asked(page('<ol start="4"><li>Four<ol type="i" start="2"><li>two<li value="9">nine</ol><li>Five</ol>'), r"4\. Four.*ii\. two.*ix\. nine.*5\. Five"),
        Asked(page('<ol style="list-style: none"><li>Tar of the yard<li>Rope of the yard</ol>'), "Tar of the yard.*Rope", r"\d\. (Tar|Rope)"),
        Asked(page("<ol><li>§ 4 No nets on the quay.<li>§ 5 No fires on the quay.</ol>"), "§ 4 No nets.*§ 5 No fires", r"\d\. §"),
        Asked(page("<table><tr><th>Yard<th>Rules<tr><td>East<td><ol><li>7.1. No nets.<li>7.2. No fires.</ol></table>"), r"7\.1\. No nets\. 7\.2\. No fires", r"1\. 7\.1"),
    ],
    "definition lists whose dd opens with a list, code or table": [
        Asked(page("<dl><dt>Options</dt><dd><table><tr><th>Name<th>Use<tr><td>-v<td>talks</table></dd><dt>Exit</dt><dd>0 when well.</dd></dl>"), r"Options.*-v.*Exit\W+0 when well"),
        Asked(page("<dl><div><dt>Synopsis</dt><dd><pre>gate --open</pre></dd></div><div><dt>Needs</dt><dd><ol><li>key<li>lamp</ol></dd></div></dl>"), r"Synopsis.*gate --open.*Needs.*1\. key"),
        Asked(page("<dl><dt>gate(level)</dt><dd><dl><dt>Parameters</dt><dd><dl><dt>level</dt><dd>metres</dd></dl></dd><dt>Returns</dt><dd>True</dd></dl></dd></dl>"), r"gate\(level\).*Parameters.*level\W+metres.*Returns\W+True"),
    ],
    "framed content": [
        Asked(page('<iframe data-src="/tariff" src="about:blank"></iframe>'), FRAME_SAID),
        Asked(page('<iframe data-src="/tariff" src="about:blank"></iframe>'), r"\d/tariff", part="links"),
        Asked(page('<object type="text/html" data="/tariff"></object>'), FRAME_SAID),
        Asked("<html><frameset cols='20%,*'><frame src='/tariff'></frameset></html>", FRAME_SAID),
        Asked(page('<embed type="text/html" src="/tariff">'), FRAME_SAID),
        Asked(page("<svg><title>Plan</title><text x=1>Gate <tspan>North</tspan></text><foreignObject><div><p>Sill 4.5 m</p></div></foreignObject></svg>"), "Gate North.*Sill 4.5 m"),
        Asked(page('<iframe src="https://forms.example.org/fee?id=4" title="Fee"></iframe>'), r"forms\.example\.org/fee\?id=4", part="links"),
    ],
    "base href": [
        Asked(page('<p>See <a href="plan.pdf">the plan of works</a>.</p>', '<base href="//static.example.net/a/">'), r"http://static\.example\.net/a/plan\.pdf", part="links"),
        Asked(page('<p>See <a href="plan.pdf">the plan of works</a>.</p>', '<base target=_top><base href="/one/"><base href="/two/">'), r"\d/one/plan\.pdf", part="links"),
        Asked(page('<iframe src="tariff"></iframe>', '<base href="/">'), FRAME_SAID),
    ],
    "page data that is not plain JSON in a script": [
        Asked(drawn_by_scripts(f'<div ng-init="post = {escape(DATA)}"></div>'), BOTH),
        Asked(drawn_by_scripts(f'<my-post :post="{escape(DATA)}"></my-post>'), BOTH),
        Asked(drawn_by_scripts(f'<script>window.__remixContext = {{"state": {{"loaderData": {{"post": {DATA}}}}}}};</script>'), BOTH),
    ],
    "closed or animated text that is judged hidden": [
        Asked(page('<style>#t~.c{max-height:0;overflow:hidden}</style><input type=checkbox id=t><label for=t>Fee</label><div class=c><p>The fee is 31 crowns.</p></div>'), "31 crowns", question="What is the fee?"),
        Asked(page(f"<div aria-hidden=true><p>The letter says that a berth costs 31 crowns a night, and that no boat may stay for longer than a week. {STORY}</p></div>"), "31 crowns", question="What does a berth cost?"),
        Asked(page('<style>.c{display:grid;grid-template-rows:0fr}.c>div{overflow:hidden}</style><button aria-expanded=false>Fee</button><div class=c><div><p>The fee is 31 crowns.</p></div></div>'), "31 crowns", question="What is the fee?"),
    ],
    "marks in table cells that are no text": [
        Asked(marked('<i class="codicon codicon-x"></i>', '<svg data-testid="CheckIcon"></svg>'), r"Crane \| ✗ \| ✓"),
        Asked(marked('<i class="el-icon-close"></i>', '<svg><use href="/s.svg#icon-check"/></svg>'), r"Crane \| ✗ \| ✓"),
        Asked(marked('<svg class="bi bi-x-lg"><path d="M2"/></svg>', "<input type=checkbox disabled checked>"), r"Crane \| ✗ \| ✓"),
        Asked(marked('<span class="material-icons">close</span>', "<img src=/i/checkmark.svg>"), r"Crane \| ✗ \| ✓"),
    ],
    "pdf: ReportLab ends every string with T*": [
        Asked(ruled([["Berth", "Depth", "Fee"], ["East 2", "", "310"], ["West 1", "4.0", "120"]]), r"East 2 \| +\| 310.*West 1 \| 4\.0 \| 120", name=".pdf"),
        Asked(canvas(by_letters("Each letter rests alone at 7.25 m")), r"Each letter rests alone at 7\.25 m", name=".pdf"),
    ],
    "pdf: superscripts become digits": [
        Asked(typeset(prose("The tank holds 10<super>7</super> litres.")), r"10\^7|10⁷", "107 litres", name=".pdf"),
        Asked(typeset(prose("A berth costs 40<super>12</super> crowns.")), r"40.{0,3}12", "4012", name=".pdf"),
    ],
    "pdf: superscripts become digits (the same without <sup>)": [
        Asked(book({"a": '<p>The catch was 93 kg<a role="doc-noteref" href="#n4">4</a> in May.</p><p id="n4">4. Weighed.</p>'}), r"93 kg ?\[4\]", "kg4", name=".epub"),
        Asked(book({"a": '<p>The catch was 93 kg<a class="noteref" href="#n4">4</a> in May.</p><aside epub:type="footnote" id="n4">4. Weighed.</aside>'}), r"93 kg ?\[4\]", "kg4", name=".epub"),
    ],
    "pdf: what is not in the page's content stream": [
        Asked(canvas(filled_form), "Odda Brekke", name=".pdf", question="What is the name of the skipper?"),
        Asked(with_comment("Since June it closes at 22:00"), "22:00", name=".pdf", question="When does the boom close?"),
    ],
    "pdf: beginnings and ends that readers forgive": [
        Asked(b"\r\n\xef\xbb\xbf\n" + TABLED, r"West 1 \| 120", name=".pdf"),
        Asked(TABLED.rstrip().removesuffix(b"%%EOF"), r"West 1 \| 120", name=".pdf"),
        Asked(TABLED + b"\0" * 700 + b"junk", r"West 1 \| 120", name=".pdf"),
    ],
    "pdf: running heads": [
        Asked(canvas(paged("HARBOUR BOOK", "CHAPTER NINE", "- # -")), r"Keeper 3\.9", r"- 3 -|CHAPTER NINE.*CHAPTER NINE", name=".pdf", tokens=8000),
        Asked(canvas(paged("Report", "Report", "Arnvik | # | Confidential")), r"Keeper 3\.9", "Confidential.*Confidential.*Confidential", name=".pdf", tokens=8000),
    ],
    "pdf: running heads / print drawn twice": [
        Asked(pdf_of("".join(f"BT /F1 12 Tf {72 + d} 600 Td (Winter rate 44 crowns) Tj ET " for d in (0, 0.3))), "Winter rate 44 crowns", "44 crowns.*44 crowns", name=".pdf"),
        Asked(pdf_of("".join(f"BT /F1 14 Tf 72 {600 + d} Td (Summer rate 61) Tj ET " for d in (0, 0.2, 0.4))), "Summer rate 61", "rate 61.*rate 61", name=".pdf"),
    ],
    "redirects that are no 3xx with Location alone": [
        Asked(behind_cookie("sid=4; Path=/; HttpOnly", "307 Temporary Redirect"), "K-4"),
        Asked(behind_cookie("sid=5; Domain=127.0.0.1", "301 Moved"), "K-4"),
        Asked("<title>Gone</title><script>window.location.replace('/landing')</script>", "K-9"),
        Asked('<title>x</title><META CONTENT="0;URL=\'/landing\'" HTTP-EQUIV=Refresh><p>Moved.</p>', "K-9"),
        Asked(sent("<p>Wait</p>", more="Refresh: 0; url=/landing\r\n"), "K-9"),
        Asked("<title>x</title><script>setTimeout(function(){window.location.href='/landing';}, 500);</script><p>Redirecting...</p>", "K-9"),
        Asked("<title>x</title><body onload=\"location.href='/landing'\"><p>Redirecting...</p></body>", "K-9"),
        Asked(behind_cookies(5), "K-4"),
        Asked(reloading, "K-4"),
        Asked(accented, "K-4"),
    ],
    "XHTML is parsed as HTML": [
        Asked(sent(f"{XHTML}<head><title>T</title><script src='a.js' /></head><body><textarea/><p>Key K-4.</p></body></html>", "application/xhtml+xml; charset=utf-8"), "K-4"),
        Asked(sent(f"{XHTML}<head><style/></head><body><iframe src='x'/><a id='a'/><p><![CDATA[Key < K-4.]]></p></body></html>", "application/xml"), "K-4"),
        Asked(sent(f"{XHTML}<head><title/></head><body><div id='a'/><p>Key K-4.</p><a name='x'/><p>More of it.</p></body></html>", "application/xhtml+xml"), r"K-4.*More of it"),
    ],
    "bodies that were cut are thrown away whole": [
        Asked(lambda request: answer(CUT, left=900), "K-4"),
        Asked(lambda request: answer(gzip.compress(CUT.encode())[:-9], more="Content-Encoding: gzip\r\n"), "K-4"),
        Asked(chunked(CUT, b"zz\r\n"), "K-4"),
        Asked(chunked(CUT, b""), "K-4"),
        Asked(lambda request: answer(f"{page('<p>Key K-4.</p>')}<p>and <a hre", left=500), "K-4"),
    ],
    "interstitials served with 200 count as the page": [
        Asked("<title>Connexion</title><form><input name=user><input type=password name=mdp><input type=submit value='Se connecter'></form>", "behind a login", question="What is the fee of the harbour?"),
        Asked("<title>しばらくお待ちください...</title><h1>お使いのブラウザを確認しています</h1><script>window._cf_chl_opt={}</script>", "bot check", question="What is the fee of the harbour?"),
        Asked("<title>Iniciar sesión</title><h1>Iniciar sesión</h1><form><input type=email><input type=password><button>Entrar</button></form>", "behind a login", question="What is the fee of the harbour?"),
    ],
    "the fragment of an address is ignored": [
        Asked(page(BASINS.replace('id="b10"', 'id="user-content-b10"')), "in week 20", place="b10", tokens=400),
        Asked(page(BASINS.replace('id="b9"', "")), "in week 19", place="basin-9", tokens=400),
        Asked(page(BASINS), "in week 18", place=":~:text=Basin%208%20is,week", tokens=400),
        Asked(page("<h2>Fees</h2><table><tr><th>No<th>Fee" + "".join(f"<tr id=r{n}><td>{n}<td>{n * 7} crowns for the boat of that length" for n in range(1, 90)) + "</table>"), "560 crowns", place="r80", tokens=300),
        Asked(page(BASINS.replace('<h2 id="b9">', '<a name="nine"></a><h2>')), "in week 19", place="nine", tokens=400),
    ],
    "files that a folder's search does not see": [
        Asked({"INSTALL": "The fee of the lock is 31 crowns.\n", "other.txt": STORY}, "31 crowns", name="lock", question="What is the fee of the lock?"),
        Asked({"gate.toml": '[lock]\nfee = "31 crowns"\n', "other.txt": STORY}, "31 crowns", name="gate", question="What is the fee of the lock?"),
    ],
    "a stray byte makes a text binary": [
        Asked(LOG + b"\0\0\0", LOGGED, name=".log"),
        Asked(LOG.replace(b"two", b"\0two\0"), LOGGED, name=".txt"),
        Asked(b"ship,fee\nTern,12\n\0\nGull,19\n", r"Tern \| 12.*Gull|Tern,12.*Gull", name=".csv"),
    ],
    "a stray byte makes a text binary / declared type believed": [
        Asked(sent(CSV.replace(b",", b";"), "application/vnd.ms-excel"), FEES),
        Asked(sent(CSV, "application/vnd.ms-excel; charset=windows-1252", "Content-Disposition: attachment; filename=fees.csv\r\n"), FEES),
        Asked(sent(CSV, "application/octet-stream", "Content-Disposition: attachment; filename*=UTF-8''fees.csv\r\n"), FEES),
        Asked(sent('{"fee": "31 crowns", "berths": ["A4", "B7"]}', "text/html"), "31 crowns.*B7"),
        Asked(sent(page("<p>Key <b>K-4</b>.</p>"), "image/png"), "Key K-4"),
    ],
    "epub and mail parts that are left out": [
        Asked(book({"a": "<p>Riddle 3: what climbs?</p>", "z": "<p>The answer to riddle 3 is smoke.</p>"}, last="z"), "riddle 3 is smoke", name=".epub"),
        Asked(mail(attached={}, calendar=CALENDAR), "Shed 8.*07:30|07:30.*Shed 8", name=".eml"),
        Asked(mail(attached={"visit.ics": CALENDAR.encode()}), "Shed 8", name=".eml"),
    ],
    "a section's name that begins another's": [
        Asked(page(RULES), "40 crowns", "5 crowns a day", part="section § 12"),
        Asked(page(RULES), "5 crowns a day", "40 crowns", part="section 12a"),
        Asked(page(RULES), "six berths", "seven berths", part="section 1.2"),
        Asked(page(RULES), "There is no section .§ 1.; headings", part="section § 1"),
    ],
    "front matter in one line, or left out above a title": [
        Asked(b"---\nlimits:\n  pressure: 0.7 bar\n  level: 0.8 m\n---\n# Pump\n\n" + STORY.encode(), r"limits: pressure: 0\.7 bar level: 0\.8 m ``` The harbour", "Main content ends", name=".md"),
        Asked(b'+++\r\nowner = "Per Holm"\r\n[limits]\r\nload = "12 t"\r\n+++\r\nThe crane lifts.', r'owner = "Per Holm" \[limits\] load = "12 t".*The crane', name=".md"),
    ],
    "words on both sides of an image run together": [
        Asked(page('<p>The mate counted<img src=a.png alt="fourteen"> lights at night.</p>'), "counted lights"),
        Asked(book({"a": "<p>Turn the <img src='x.png' alt='red'/> tap shut.</p>"}), "the tap shut", name=".epub"),
    ],
    "HTML as a value of JSON, and letters that were escaped byte by byte": [
        Asked(b'[{"id": 1, "content": {"rendered": "<p>It lifts 12&nbsp;tonnes.</p><ul><li>Book by mail</li></ul><style>li{display:none}</style>"}}]', r"lifts 12 tonnes\. - Book by mail", "<p>|&nbsp;|style", name=".json"),
        Asked(b'{"rows": [{"by": "Ann", "text": "<p>Use <b>tallow</b>.</p>"}, {"by": "Bo", "text": "Use <oil>."}]}', r"Ann \| Use tallow.*Bo \| Use <oil>", "<p>", name=".json"),
        Asked(rb'{"messages": [{"from": "Bo", "text": "He is from Troms\u00c3\u00b8."}, {"from": "S\u00f8ren", "text": "So am I."}]}', r"from Tromsø.*Søren", name=".json"),
    ],
    "a text that goes on at a next page": [
        Asked(page(f"<p>{STORY}</p>", '<link rel="next" href="?page=2">'), r"Not read: \d: its next page, http://127\.0\.0\.1:\d+/\d\?page=2 Next: the same call with sources=", "None:", question="Which king came?"),
        Asked(page(f'<p>{STORY}</p><a rel="nofollow next" href="9">Next</a>'), r"its next page, http://127\.0\.0\.1:\d+/9"),
        Asked(page(f'<p>{STORY}</p><a rel="next" href="/how-ropes-are-made">Next story</a>'), "Arnvik lies", "next page"),
        Asked(page(f'<p>{STORY}</p><a rel="next" href="http://[">Next</a>'), "Arnvik lies", "next page"),
    ],
    "comments of LaTeX": [
        Asked(b"\\section{Method}\n% The budget was 9000.\nThe mast is 12 m high, 5\\% more.\n  % TODO\n", r"mast is 12 m high, 5.% more.*comments left out: 2", "9000|TODO", name=".tex"),
        Asked(b"% Draft of 9 May\n\\title{Trials}\n\\begin{document}We sailed.\\end{document}\n", r"We sailed", "9 May", name=".latex", question="When was the draft?"),
    ],
    "what a mail quotes": [
        Asked(b"Subject: Re: Winch\n\nThe blue one.\n\nOn Monday Ann wrote:\n> Which one? The red one costs 19,000 crowns and the blue one is some\n> thousand crowns less than that.\n>\n>> I have two offers.\n", "wrote: > Which one.* is some thousand crowns less than that. >> I have two", "> > ?>", name=".eml"),
        Asked(b"A note.\n\n> Low water is at six.\n>\n> High water is at noon.\n", "> Low water is at six. > High water", name=".txt"),
    ],
}  # fmt: skip
ELSEWHERE = {"SearXNG": "tests/test_search_searxng.py"}
"""Kinds with a file of tests of their own."""


@pytest.mark.parametrize("kind", KINDS)
async def test_inputs_of_a_kind_that_failed_in_the_field_are_read(
    connect: Connect, tmp_path: Path, kind: str
) -> None:
    routes: dict[str, Answer] = {
        "/landing": sent(page("<p>Key K-9.</p>")),
    }
    with raw_site(routes) as address:
        async with connect(
            folders=str(tmp_path), search="none", networks="loopback", robots="false"
        ) as client:
            for number, asked in enumerate(KINDS[kind]):
                source = _put(asked, number, tmp_path, routes, address)
                given = {"question": asked.question, "part": asked.part}
                reported = {name: value for name, value in given.items() if value}
                tool = "extract_relevant" if asked.question else "fetch_and_prune_html"
                result = await client.call_tool(
                    tool, {"sources": [source], "max_tokens": asked.tokens, **reported}
                )
                # The folder of a test has a number of its own
                shown = " ".join(text_of(result).replace(str(tmp_path), "").split())
                assert re.search(asked.shows, shown), f"input {number}: {shown}"
                assert not re.search(asked.hides, shown), f"input {number}: {shown}"


def _put(asked: Asked, number: int, folder: Path, routes: dict[str, Answer], address: str) -> str:
    """Store an input as a file, a folder or a page; return its source."""
    body = asked.body
    name = f"{number}{asked.name}"
    if isinstance(body, Mapping):
        (folder / name).mkdir()
        for file, text in body.items():
            (folder / name / file).write_text(text, "utf-8")
    elif asked.name:
        (folder / name).write_bytes(body if isinstance(body, bytes) else b"")
    else:
        routes[f"/{number}"] = body if callable(body) else sent(body)
        return f"{address}/{number}{'#' * bool(asked.place)}{asked.place}"
    return str(folder / name)


def test_each_kind_that_failed_in_the_field_has_two_inputs_of_our_own() -> None:
    index = SHARED / "data" / "field" / "index.jsonl"
    if not index.is_file():
        pytest.skip("../shared/data is not beside this checkout")
    kinds = {json.loads(line)["kind"] for line in index.read_text("utf-8").splitlines()}
    assert kinds - set(ELSEWHERE) <= {kind for kind, inputs in KINDS.items() if len(inputs) > 1}
