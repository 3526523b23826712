"""Hidden rows and columns of a table stay out of what SQL asks: they are left out, and the
answer counts them."""

from pathlib import Path

import pytest

from tests.support import Connect, text_of
from tests.support.hidden_files import ods_of, xlsx_of

FIRST = ("Boat", "Price")
SEEN = (("Ada", 40), ("Bea", 60))
HIDDEN = ("Cod", 9000)


def html(row: str, sheet: str = "", last: str = "") -> bytes:
    """Return a page with a table whose last row is written by `row`."""
    rows = "".join(f"<tr><td>{name}</td><td>{price}</td></tr>" for name, price in SEEN)
    names = "".join(f"<th>{name}</th>" for name in FIRST)
    hidden = row.format(*HIDDEN)
    return (
        f"<title>Boats</title>{sheet}<h1>Boats</h1><table><tr>{names}</tr>{rows}{hidden}</table>"
        f"<p>The boats lie at the pier.</p>{last}"
    ).encode()


def xlsx(about: str = "", *, before: str = "") -> bytes:
    """Return a workbook whose last row has attributes."""

    def row(number: int, cells: tuple[str, object], about: str = "") -> str:
        return (
            f'<row r="{number}" {about}><c r="A{number}" t="inlineStr"><is><t>{cells[0]}</t></is></c>'
            f'<c r="B{number}" t="{"n" if isinstance(cells[1], int) else "str"}"><v>{cells[1]}</v>'
            f"</c></row>"
        )

    rows = [*enumerate(((FIRST), *SEEN), start=2)]
    written = "".join(row(number, cells) for number, cells in rows) + row(5, HIDDEN, about)
    return xlsx_of(written, before=before)


def ods(about: str, columns: str = "") -> bytes:
    """Return an OpenDocument sheet whose last row has attributes."""

    def row(cells: tuple[str, object], about: str = "") -> str:
        inside = "".join(
            f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells
        )
        return f"<table:table-row {about}>{inside}</table:table-row>"

    return ods_of(columns + "".join(map(row, (FIRST, *SEEN))) + row(HIDDEN, about))


ROW = "<tr {about}><td>{{}}</td><td>{{}}</td></tr>"
LEFT_OUT: dict[str, tuple[str, bytes, str]] = {
    "hidden row": ("xlsx", xlsx('hidden="1"'), "hidden rows removed: 1"),
    "row without height": ("xlsx", xlsx('ht="0" customHeight="1"'), "hidden rows removed: 1"),
    "collapsed row": ("ods", ods('table:visibility="collapse"'), "hidden rows removed: 1"),
    "filtered row": ("ods", ods('table:visibility="filter"'), "hidden rows removed: 1"),
    "row by its style": (
        "html", html(ROW.format(about="style='display:none'")), "hidden rows of tables removed: 1",
    ),
    "row by a rule": (
        "html",
        html(ROW.format(about="class=q"), "<style>.q{display:none}</style>"),
        "hidden rows of tables removed: 1",
    ),
    "row by a rule for screens": (
        "html",
        html(ROW.format(about="class=q"), "<style>@media (min-width:9px){.q{display:none}}</style>"),
        "hidden rows of tables removed: 1",
    ),
    "row by its attribute": (
        "html", html(ROW.format(about="hidden")), "hidden rows of tables removed: 1",
    ),
    "row that collapses": (
        "html",
        html(ROW.format(about="style='visibility:collapse'")),
        "hidden rows of tables removed: 1",
    ),
}  # fmt: skip
READ: dict[str, tuple[str, bytes, str]] = {
    "rows that are written where others are hidden": (
        "xlsx",
        xlsx(before='<sheetFormatPr defaultRowHeight="15" zeroHeight="1"/>'),
        "",
    ),
    "a row for print": (
        "html",
        html(ROW.format(about="class=q"), "<style>@media print{.q{display:none}}</style>"),
        "",
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("rows", "total"), [(LEFT_OUT, "100"), (READ, "9100")])
async def test_hidden_rows_stay_out_of_sums_and_are_counted(
    rows: dict[str, tuple[str, bytes, str]], total: str, connect: Connect, tmp_path: Path
) -> None:
    async with connect(
        folders=str(tmp_path), cache=str(tmp_path.parent / "cache"), embedder="none"
    ) as client:
        for number, (name, (ending, body, note)) in enumerate(rows.items()):
            path = tmp_path / f"boats{number}.{ending}"
            path.write_bytes(body)
            asked = {"sources": [str(path)], "part": "sql: SELECT sum(price) AS s FROM t1"}
            text = text_of(await client.call_tool("fetch_and_prune_html", asked))
            assert f"\n{total}" in text or f"| {total}" in text, (name, text)
            assert note in text, (name, text)
            assert "9000" not in text, name
