"""Workbooks: cells are read as a person sees them, and no value is computed over what was not
read."""

import io
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from openpyxl.worksheet.worksheet import Worksheet

import readers
from readers.page import Document, Page
from tests.support import Connect, text_of
from tests.support.hostile_files import xlsx

CATCH = [
    ("Port", "Fish", "Tons"),
    ("Arnvik", "Herring", 210),
    ("", "Cod", 95),
    ("Mossund", "Herring", 120),
]


def book_of(
    rows: Sequence[Sequence[object]], change: Callable[[Worksheet], object] = lambda _: None
) -> bytes:
    """Return a workbook with one sheet of rows."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Catch"
    for row in rows:
        sheet.append([cell if cell != "" else None for cell in row])
    change(sheet)
    return saved(book)


def saved(book: openpyxl.Workbook) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def read(body: bytes) -> Document:
    return readers.read(body, name="a.xlsx")


def page_of(body: bytes) -> Page:
    return read(body).page


def rows_of(document: Document) -> list[tuple[str, ...]]:
    return [block.cells for block in document.blocks if block.kind == "row"]


def test_merged_cells_belong_to_all_their_rows_and_names_of_two_rows_are_joined() -> None:
    document = read(book_of(CATCH, lambda sheet: sheet.merge_cells("A2:A3")))
    assert rows_of(document)[2] == ("Arnvik", "Cod", "95")
    rates = [
        ("Ship", "Day rate", "", "Night rate", ""),
        ("", "Summer", "Winter", "Summer", "Winter"),
    ]
    body = book_of(
        [*rates, ("small", 14, 9, 21, 13), ("large", 26, 18, 39, 27)],
        lambda sheet: merge(sheet, "A1:A2 B1:C1 D1:E1"),
    )
    assert "Night rate Winter: 13" in read(body).blocks[-2].text


def merge(sheet: Worksheet, ranges: str) -> None:
    for one in ranges.split():
        sheet.merge_cells(one)


async def asked(connect: Connect, folder: Path, part: str) -> str:
    async with connect(folders=str(folder)) as client:
        result = await client.call_tool(
            "fetch_and_prune_html", {"sources": [str(folder / "a.xlsx")], "part": part}
        )
        return text_of(result)


@pytest.mark.anyio
async def test_a_merged_cell_is_in_each_of_its_rows_and_a_query_says_so(
    connect: Connect, tmp_path: Path
) -> None:
    rows = [
        ("Boat", "Port", "Fee"),
        ("Ada", "Arn", 10),
        ("Bea", "Arn", ""),
        ("Cia", "Holt", 30),
        ("Dora", "Arn", ""),
    ]
    body = book_of(rows, lambda sheet: merge(sheet, "C2:C3 C4:C5"))
    (tmp_path / "a.xlsx").write_bytes(body)
    text = await asked(connect, tmp_path, "sql: SELECT * FROM t1 WHERE boat = 'Dora'")
    assert "Dora | Arn | 30" in text
    assert "cells that cover several rows count in each: t1" in text


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (501, "00000", "00501"),
        (1234.5, '#,##0.00 "€"', "1,234.50 €"),
        (1234.5, "#,##0.00\\ [$€-407]", "1,234.50 €"),
        (99, '"USD "0.00', "USD 99.00"),
        (0.5, '0.00" kg"', "0.50 kg"),
        (4711, '"INV-"0', "INV-4711"),
        (0.125, "0.0%", "12.5%"),
        (-5, "0;(0)", "(5)"),
        (0, '0;-0;"none"', "none"),
        (1500, '[<1000]0;[>=1000]0.0," k"', "1500"),
        (5551234567, "(000) 000-0000", "5551234567"),
        (0.4, "0", "0.4"),
        (0.1 + 0.2, "General", "0.3"),
        (1234567890123450, "General", "1234567890123450"),
        (1234567890123451, "General", "1234567890123451"),
        (1.5, "[h]:mm", "36:00"),
        (1500, '0.0," k"', "1.5 k"),
        (date(2026, 5, 9), "dd.mm.yyyy", "2026-05-09"),
    ],
)
def test_a_cell_is_shown_as_its_format_shows_it(value: object, form: str, shown: str) -> None:
    def format_it(sheet: Worksheet) -> None:
        sheet["B2"].number_format = form

    document = read(book_of([("Item", "Cost"), ("Rope", value), ("Tar", "open")], format_it))
    assert rows_of(document)[1] == ("Rope", shown)


def test_days_are_right_in_both_systems_of_dates() -> None:
    for epoch in (CALENDAR_MAC_1904, None):
        book = openpyxl.Workbook()
        if epoch is not None:
            book.epoch = epoch
        for row in (("Town", "Since"), ("Arn", date(2026, 6, 2)), ("Holt", date(1926, 6, 2))):
            book.active.append(row)
        assert rows_of(read(saved(book)))[1:] == [("Arn", "2026-06-02"), ("Holt", "1926-06-02")]


def test_tables_side_by_side_and_below_each_other_are_tables_of_their_own() -> None:
    rows = [
        ("Boat", "Berth", "", "Ship", "Master"),
        ("Ada", 4, "", "Pell", "Ruth"),
        ("Bea", 9, "", "Brod", "Ivo"),
        ("", "", "", "Varn", "Mara"),
        ("Town", "Toll"),
        ("Osk", 41),
    ]
    html = page_of(book_of(rows)).html
    assert html.count("<table>") == 3
    assert ">Ada</td><td>4</td></tr>" in html
    spaced = [("Boat", "", "Berth"), ("Ada", "", 4), ("Bea", "", 9)]
    assert page_of(book_of(spaced)).html.count("<table>") == 1


def test_hidden_rows_columns_and_values_are_left_out_and_counted() -> None:
    def hide(sheet: Worksheet) -> None:
        sheet.row_dimensions[2].hidden = True
        sheet.column_dimensions["C"].hidden = True
        sheet["B3"].number_format = ";;;"

    page = page_of(
        book_of(
            [
                ("Part", "Price", "Our cost"),
                ("OLD Winch", 850, 300),
                ("Davit", 400, 111),
                ("Oar", 9, 2),
            ],
            hide,
        )
    )
    assert not any(word in page.html for word in ("Winch", "cost", "111", "400"))
    assert page.notes[:2] == (
        "workbook: hidden rows removed: 1",
        "workbook: hidden columns removed: 1",
    )
    assert page.hidden == 9
    assert page.unread == ""


def test_formulas_that_were_never_computed_are_shown_and_said() -> None:
    body = book_of([("Item", "Cost"), ("Paint", 120), ("Rope", "=60+20"), ("Tar", 9)])
    page = page_of(body)
    assert "=60+20" in page.html
    assert page.unread == "1 formula without a value"


def test_notes_charts_and_raised_digits_are_read() -> None:
    def draw(sheet: Worksheet) -> None:
        sheet["B2"].comment = Comment("Landed at night", "Ada")
        chart = BarChart()
        chart.title = "Tons by port"
        chart.add_data(Reference(sheet, min_col=3, min_row=1, max_row=4), titles_from_data=True)
        sheet.add_chart(chart, "E2")

    page = page_of(book_of(CATCH, draw))
    assert "Note at B2: Landed at night" in page.html
    assert "Tons by port" in page.html
    raised = (
        '<r><t>10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r><r><t> '
        "litres</t></r>"
    )
    rows = '<row r="1"><c r="A1" t="inlineStr"><is>' + raised + "</is></c></row>"
    assert "10^6 litres" in page_of(xlsx(rows)).html


def test_words_beside_a_page_number_of_a_printed_sheet_are_read() -> None:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet["A1"] = "Fees"
    sheet.oddHeader.center.text = "Draft, page &P of &N"
    out = io.BytesIO()
    book.save(out)
    assert "Draft, page of" in read(out.getvalue()).text


def test_words_beside_the_page_number_of_a_printed_sheet_are_read() -> None:
    book = openpyxl.Workbook()
    book.worksheets[0]["A1"] = "Fees"
    book.worksheets[0].oddHeader.center.text = "Draft, page &P of &N"
    assert "Draft, page of" in read(saved(book)).text


def test_numbers_of_sixteen_digits_stay_distinct_and_have_no_binary_noise() -> None:
    numbers = (9876543210123456, 9876543210123458, 5715.0464000000011)
    said = read(book_of([("Account",), *((number,) for number in numbers)])).text
    assert "9876543210123456" in said and "9876543210123458" in said
    assert said.rstrip().endswith("5715.0464")


def test_what_follows_the_most_cells_is_said() -> None:
    rows = "".join(
        f'<row r="{row}"><c r="A{row}"><v>{row}</v></c><c r="B{row}"><v>1</v></c></row>'
        for row in range(1, 100_002)
    )
    page = page_of(xlsx(rows))
    assert page.unread.startswith("what follows its first ")  # tags of the page, before its cells
    assert not page.tables_whole
