"""Office and PDF files whose words are all known: which of them are read, said to be
unread, or lost in silence.

python-docx, openpyxl, python-pptx, ReportLab, FPDF, pandoc write files from a few
random parts each (tables, notes, comments, charts, fields, merged cells …). Each word is
made of syllables and is in its file once; what is hidden must not come out. Not for:
where words are, or questions about them (`tests/test_read_formats.py`)."""

import io
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, Final

from readers.convert import Raw, to_page
from readers.html.document import read_document
from tests.support.made_files import by_markdown, runs

PARTS: Final = (2, 5)
"""Fewest and most random parts of a file."""
_SYLLABLES: Final = (
    "ba be bo da de do fa fe ga go ka ke ko la le lo ma me mo na ne no pa pe po "
    "ra re ro sa se so ta to va ve vo"
)
_WORD: Final = re.compile(r"\w[\w.,]*\w|\w")
_W: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


@dataclass(slots=True)
class Known:
    """What was put into one file."""

    rng: Random
    words: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def word(self) -> str:
        """Return a new word that is to be read."""
        self.words.append(self._new())
        return self.words[-1]

    def unseen(self) -> str:
        """Return a new word that is to be hidden."""
        self.hidden.append(self._new())
        return self.hidden[-1]

    def line(self, count: int = 4) -> str:
        """Return some words."""
        return " ".join(self.word() for _ in range(count))

    def number(self) -> int:
        """Return a new number of six digits."""
        value = self.rng.randrange(100_000, 1_000_000)
        self.numbers.append(str(value))
        return value

    def _new(self) -> str:
        spelled = "".join(self.rng.choices(_SYLLABLES.split(), k=3))
        return f"{spelled}{len(self.words) + len(self.hidden)}"  # so that each word is another


@dataclass(frozen=True, slots=True)
class Sample:
    """One file."""

    name: str
    body: bytes
    known: Known
    by: str
    """The program that wrote it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one file was read."""

    sample: Sample
    lost: tuple[str, ...]
    """Words neither in the text nor said to be unread."""
    altered: tuple[str, ...]
    """Numbers that are not in the text."""
    shown: tuple[str, ...]
    """Hidden words in the text."""


# Word


def _word(known: Known) -> bytes:
    docx = import_module("docx")
    document = docx.Document()
    document.add_heading(known.line(3), 1)
    for part in known.rng.choices(_WORD_PARTS, k=known.rng.randint(*PARTS)):
        part(document, known)
    return _saved(document)


def _saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _paragraphs(document: Any, known: Known) -> None:
    for style in ("Normal", "List Bullet", "List Number", "Quote", "Heading 2"):
        document.add_paragraph(known.line(), style=style)


def _word_table(document: Any, known: Known) -> None:
    table = document.add_table(rows=3, cols=3)
    for row in table.rows:
        for cell in row.cells[1:]:
            cell.text = known.line(2)
    table.cell(0, 0).text = known.line(2)
    table.cell(1, 0).merge(table.cell(2, 0)).text = known.line(1)
    table.cell(0, 1).add_table(1, 1).cell(0, 0).text = known.line(2)


def _margins(document: Any, known: Known) -> None:
    section = document.sections[-1]
    section.header.paragraphs[0].text += f" {known.line()}"
    section.footer.paragraphs[0].text += f" {known.line()}"


def _comment(document: Any, known: Known) -> None:
    paragraph = document.add_paragraph(known.line())
    document.add_comment(
        paragraph.runs, text=known.line(), author=known.word(), initials="x"
    )


def _hidden_run(document: Any, known: Known) -> None:
    run_ = document.add_paragraph(known.line()).add_run(f" {known.unseen()}")
    run_.font.hidden = True


def _raw(inner: str) -> Callable[[Any, Known], None]:
    """Return the maker of a paragraph with WordprocessingML, `%` for each word."""

    def add(document: Any, known: Known) -> None:
        parse = import_module("docx.oxml").parse_xml
        filled = re.sub("%", lambda _: known.word(), inner)
        spaces = f'xmlns:w="{_W}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
        document.element.body.insert(0, parse(f"<w:p {spaces}>{filled}</w:p>"))

    return add


_WORD_PARTS: Final[list[Callable[[Any, Known], None]]] = [
    _paragraphs,
    _word_table,
    _margins,
    _comment,
    _hidden_run,
    _raw('<w:fldSimple w:instr="REF a"><w:r><w:t>%</w:t></w:r></w:fldSimple>'),
    _raw('<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>MERGEFIELD a</w:instrText>'
         '<w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>%</w:t><w:fldChar '
         'w:fldCharType="end"/></w:r>'),
    _raw("<m:oMath><m:f><m:num><m:r><m:t>%</m:t></m:r></m:num><m:den><m:r><m:t>%</m:t></m:r></m:den></m:f></m:oMath>"),
    _raw("<w:ins><w:r><w:t>%</w:t><w:tab/></w:r></w:ins><w:smartTag><w:r><w:t>%</w:t></w:r></w:smartTag>"),
    _raw("<w:sdt><w:sdtContent><w:r><w:t>%</w:t><w:tab/></w:r></w:sdtContent></w:sdt><w:bdo><w:r><w:t>%</w:t></w:r></w:bdo>"),
    _raw("<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>%</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"),
    _raw("<w:r><w:ruby><w:rt><w:r><w:t>%</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>%</w:t></w:r></w:rubyBase></w:ruby></w:r>"),
]  # fmt: skip


# Workbooks


def _workbook(known: Known) -> bytes:
    openpyxl = import_module("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = known.word()
    book.active.append([known.line(1) for _ in range(3)])
    for part in known.rng.choices(_BOOK_PARTS, k=known.rng.randint(*PARTS)):
        part(book.create_sheet(known.word()), known)
    return _saved(book)


def _rows(sheet: Any, known: Known) -> None:
    sheet.append([known.word() for _ in range(4)])
    for _ in range(5):
        sheet.append([known.word(), known.number(), known.line(2), known.number()])


def _formats(sheet: Any, known: Known) -> None:
    sheet.append([known.word(), known.word()])
    forms = {
        '"INV-"0': "INV-{}",
        "00000000": "00{}",
        '0" kg"': "{} kg",
        "#,##0": "",
        "0.00": "{}.00",
    }
    for row, (form, shown) in enumerate(forms.items(), start=2):
        value = known.number()
        known.numbers[-1] = shown.format(value) if shown else f"{value:,}"
        sheet.append([known.word(), value])
        sheet.cell(row, 2).number_format = form


def _merged(sheet: Any, known: Known) -> None:
    _rows(sheet, known)
    for cell in ("A3", "A4"):
        known.words.remove(sheet[cell].value)
    sheet.merge_cells("A2:A4")
    sheet["F1"], sheet["G1"], sheet["F2"], sheet["G2"] = (
        known.word() for _ in range(4)
    )


def _noted(sheet: Any, known: Known) -> None:
    _rows(sheet, known)
    sheet["B2"].comment = import_module("openpyxl.comments").Comment(known.line(), "x")
    sheet.oddHeader.center.text = known.line(3)


def _charted(sheet: Any, known: Known) -> None:
    _rows(sheet, known)
    chart = import_module("openpyxl.chart").BarChart()
    chart.title = known.line(3)
    sheet.add_chart(chart, "H2")


def _with_hidden(sheet: Any, known: Known) -> None:
    _rows(sheet, known)
    sheet.append([known.unseen(), known.unseen()])
    sheet.row_dimensions[sheet.max_row].hidden = True
    sheet["I1"] = known.unseen()
    sheet.column_dimensions["I"].hidden = True


_BOOK_PARTS: Final[list[Callable[[Any, Known], None]]] = [
    _rows,
    _formats,
    _merged,
    _noted,
    _charted,
    _with_hidden,
]


# Presentations


def _deck(known: Known) -> bytes:
    deck = import_module("pptx").Presentation()
    for part in known.rng.choices(_DECK_PARTS, k=known.rng.randint(*PARTS)):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = known.line(3)
        part(slide, known)
    return _saved(deck)


def _bullets(slide: Any, known: Known) -> None:
    slide.placeholders[1].text = "\n".join(known.line() for _ in range(3))
    slide.notes_slide.notes_text_frame.text = known.line()


def _boxes(slide: Any, known: Known) -> None:
    for place in range(3):
        slide.shapes.add_textbox(
            0, 900_000 * place, 900_000, 300_000
        ).text_frame.text = known.line()
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 900_000, 300_000).text_frame.text = known.line()


def _deck_table(slide: Any, known: Known) -> None:
    table = slide.shapes.add_table(3, 3, 0, 0, 4_000_000, 2_000_000).table
    for row in table.rows:
        for cell in row.cells:
            cell.text = known.line(2)


def _deck_chart(slide: Any, known: Known) -> None:
    data = import_module("pptx.chart.data").CategoryChartData()
    data.categories = [known.word() for _ in range(3)]
    data.add_series(known.word(), [known.number() for _ in range(3)])
    kind = import_module("pptx.enum.chart").XL_CHART_TYPE.COLUMN_CLUSTERED
    slide.shapes.add_chart(kind, 0, 0, 4_000_000, 2_000_000, data)


_DECK_PARTS: Final[list[Callable[[Any, Known], None]]] = [
    _bullets,
    _boxes,
    _deck_table,
    _deck_chart,
]


# PDF


def _by_reportlab(known: Known) -> bytes:
    flow, styles = (
        import_module("reportlab.platypus"),
        import_module("reportlab.lib.styles").getSampleStyleSheet(),
    )
    out = io.BytesIO()
    parts: list[Any] = [flow.Paragraph(known.line(3), styles["Title"])]
    for part in known.rng.choices(
        ("text", "table", "list", "hidden"), k=known.rng.randint(*PARTS)
    ):
        if part == "text":
            parts += [
                flow.Paragraph(known.line(24), styles["BodyText"]) for _ in range(2)
            ]
        elif part == "table":
            rows = [
                [known.line(1), known.line(2), str(known.number())] for _ in range(4)
            ]
            parts.append(
                flow.Table(rows, style=[("GRID", (0, 0), (-1, -1), 0.5, "black")])
            )
        elif part == "list":
            items = [flow.Paragraph(known.line(), styles["BodyText"]) for _ in range(3)]
            parts.append(flow.ListFlowable(items, bulletType="1"))
        else:
            parts.append(
                flow.Paragraph(
                    f'{known.line()} <font color="white">{known.unseen()}</font>',
                    styles["Normal"],
                )
            )
    flow.SimpleDocTemplate(out).build(parts)
    return out.getvalue()


def _by_fpdf(known: Known) -> bytes:
    page = import_module("fpdf").FPDF()
    page.add_page()
    page.set_font("Helvetica", size=11)
    for part in known.rng.choices(
        ("text", "table", "cells"), k=known.rng.randint(*PARTS)
    ):
        if part == "text":
            page.multi_cell(
                0, 6, known.line(30), align="L", new_x="LMARGIN", new_y="NEXT"
            )
        elif part == "table":
            with page.table() as table:
                for _ in range(4):
                    table.row([known.line(1), known.line(2), str(known.number())])
        else:
            for _ in range(3):
                page.cell(60, 8, known.line(2), border=1)
            page.ln()
    return bytes(page.output())


# By pandoc


def _markdown(known: Known) -> str:
    notes = f"\n\n[^1]: {known.line()}\n"
    rows = "".join(f"| {known.word()} | {known.number()} |\n" for _ in range(3))
    parts = [
        f"# {known.line(3)}",
        f"{known.line()}[^1] *{known.word()}* and $x_2 + {known.word()}$.",
        f"1. {known.line()}\n2. {known.line()}\n    - {known.line()}",
        f"| {known.word()} | {known.word()} |\n|---|---|\n{rows}",
        f"> {known.line()}",
        f"{known.word()}\n:   {known.line()}",
    ]
    return "\n\n".join(parts) + notes


def by_pandoc(form: str) -> Callable[[Known], bytes]:
    """Return the maker of files that pandoc writes in a form."""

    def make(known: Known) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"a.{form}"
            by_markdown(_markdown(known), path, "-s")
            return path.read_bytes()

    return make


MAKERS: Final[dict[str, tuple[str, Callable[[Known], bytes], str]]] = {
    "python-docx": ("docx", _word, "docx"),
    "openpyxl": ("xlsx", _workbook, "openpyxl"),
    "python-pptx": ("pptx", _deck, "pptx"),
    "ReportLab": ("pdf", _by_reportlab, "reportlab"),
    "FPDF": ("pdf", _by_fpdf, "fpdf"),
    "pandoc, docx": ("docx", by_pandoc("docx"), "pandoc"),
    "pandoc, pptx": ("pptx", by_pandoc("pptx"), "pandoc"),
}
"""By program: the form of its files, how they are made, and the package or program that
must be there."""


def lacking() -> list[str]:
    """Return the makers that cannot work here."""
    there = {
        need: bool(find_spec(need)) if need != "pandoc" else runs(need)
        for _, _, need in MAKERS.values()
    }
    return [by for by, (_, _, need) in MAKERS.items() if not there[need]]


def samples(count: int) -> Iterator[Sample]:
    """Yield `count` files of the makers that can work here, one after the other; the
    same ones each time."""
    makers = [by for by in MAKERS if by not in lacking()]
    for number in range(count):
        by = makers[number % len(makers)]
        form, make, _ = MAKERS[by]
        known = Known(Random(number))
        body = make(known)
        yield Sample(f"{number}.{form}", body, known, by)


def outcome(sample: Sample) -> Outcome:
    """Read a file and compare its text with what was put in."""
    page = to_page(Raw(sample.body, sample.name, sample.name, name=sample.name))
    text = read_document(page).text
    found = set(_WORD.findall(text))
    missing = tuple(word for word in sample.known.words if word not in found)
    altered = tuple(number for number in sample.known.numbers if number not in text)
    shown = tuple(word for word in sample.known.hidden if word in found)
    return Outcome(
        sample,
        () if page.unread else missing,
        altered,
        shown,
    )
