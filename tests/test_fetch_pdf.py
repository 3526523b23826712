"""Tables in PDFs are found from where the text is, and files made to exhaust us are read in
part or refused."""

import queue
import zlib
from collections.abc import Callable, Sequence

import anyio
import anyio.to_thread
import pytest

from cancellation import Stopped
from errors import SourceUnreadable
from pipeline.document.cite import cite
from pipeline.work import in_thread
from readers.convert import Raw, to_page
from readers.converted import Unreadable
from readers.html.document import read_document
from readers.page import Page
from tests.support.pdf import read_pdf
from tests.support.waiting import bounded

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
FONTS = b"/Font << /F1 3 0 R >>"
HELLO = b"BT /F1 11 Tf 72 700 Td (Hello there world) Tj ET\n"


def make_file(objects: Sequence[bytes]) -> bytes:
    """Return a PDF of numbered objects, the first of which is the catalogue."""
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    return (
        out
        + f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF".encode()
    )


def packed(data: bytes, extra: bytes = b"") -> bytes:
    squeezed = zlib.compress(data)
    return b"<< /Length %d /Filter /FlateDecode %s>>\nstream\n%s\nendstream" % (
        len(squeezed),
        extra,
        squeezed,
    )


def one_page(content: bytes, *, resources: bytes = FONTS, more: Sequence[bytes] = ()) -> bytes:
    """Return a PDF of one page; `content` is a stream object."""
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << %s >> >>"
        % resources
    )
    pages = b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>"
    return make_file([b"<< /Type /Catalog /Pages 2 0 R >>", pages, FONT, content, page, *more])


def read(body: bytes) -> Page:
    return to_page(Raw(body, "https://example.org/x.pdf", "https://example.org/x.pdf"))


ROWS = [
    ("Line", "Leaves", "Price"),
    ("Ferry 12", "09:00", "4.50"),
    ("Ferry 13", "11:30", "16.25"),
    ("Night boat", "23:15", "12.00"),
]
WANTED = (
    "<tr><th>Line</th><th>Leaves</th><th>Price</th></tr>\n"
    "<tr><td>Ferry 12</td><td>09:00</td><td>4.50</td></tr>\n"
    "<tr><td>Ferry 13</td><td>11:30</td><td>16.25</td></tr>\n"
    "<tr><td>Night boat</td><td>23:15</td><td>12.00</td></tr>"
)


def a_piece_each(rows: Sequence[Sequence[str]], lefts: Sequence[int]) -> str:
    """Set every cell as an object of its own, as word processors and browsers do."""
    return "\n".join(
        f"BT /F1 10 Tf 1 0 0 1 {left} {700 - 16 * n} Tm ({cell}) Tj ET"
        for n, row in enumerate(rows)
        for left, cell in zip(lefts, row, strict=True)
        if cell
    )


def one_object(rows: Sequence[Sequence[str]], lefts: Sequence[int]) -> str:
    """Set the table as one text object that moves from cell to cell, as TeX does."""
    parts, x, y = ["BT /F1 10 Tf"], 0, 0
    for n, row in enumerate(rows):
        for left, cell in zip(lefts, row, strict=True):
            parts.append(f"{left - x} {700 - 16 * n - y} Td [({cell})] TJ")
            x, y = left, 700 - 16 * n
    return "\n".join([*parts, "ET"])


def around(table: str) -> bytes:
    above = (
        "BT /F1 10 Tf 1 0 0 1 72 740 Tm (Boats leave from the north pier every day of the "
        "year.) Tj ET"
    )
    below = "BT /F1 10 Tf 1 0 0 1 72 600 Tm (Children pay half the price on all lines.) Tj ET"
    return one_page(packed(f"{above}\n{table}\n{below}".encode()))


@pytest.mark.parametrize("lefts", [(72, 200, 320), (72, 128, 166)], ids=["wide", "close"])
def test_a_table_set_cell_by_cell_is_kept_as_one_with_its_header(lefts: tuple[int, ...]) -> None:
    html = read(around(a_piece_each(ROWS, lefts))).html
    assert WANTED in html
    assert html.index("north pier") < html.index("<table>") < html.index("Children pay half")


def test_a_table_set_in_one_go_is_kept_as_one() -> None:
    assert WANTED in read(around(one_object(ROWS, (72, 200, 320)))).html


def test_cells_of_two_lines_and_empty_cells_stay_in_their_columns() -> None:
    rows = [
        ("Name", "Remarks", "Seats"),
        ("Ada", "only in summer", "40"),
        ("", "and at Easter", ""),
        ("Bo", "", "12"),
    ]
    html = read(around(a_piece_each(rows, (72, 200, 320)))).html
    assert "<td>Ada</td><td>only in summer and at Easter</td><td>40</td>" in html
    assert "<td>Bo</td><td></td><td>12</td>" in html


def test_two_columns_of_prose_are_read_one_after_the_other_and_are_no_table() -> None:
    words = "of the long story about boats and salt"
    lines = [
        f"BT /F1 10 Tf 1 0 0 1 {left} {700 - 12 * n} Tm (Line {n} {side} {words}) Tj ET"
        for left, side in ((60, "left"), (320, "right"))
        for n in range(20)
    ]
    html = read(one_page(packed("\n".join(lines).encode()))).html
    assert "<table>" not in html
    assert html.index("Line 19 left") < html.index("Line 0 right")


def test_letters_that_are_joined_in_print_come_apart() -> None:
    encoding = b"<< /Type /Encoding /Differences [1 /fi /ffl] >>"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /Encoding 6 0 R >>"
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << %s >> >>"
        % FONTS
    )
    content = packed(b"BT /F1 11 Tf 72 700 Td (The \001sh is \001ne, the ba\002ed cook too) Tj ET")
    pages = b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>"
    body = make_file([b"<< /Type /Catalog /Pages 2 0 R >>", pages, font, content, page, encoding])
    assert "The fish is fine, the baffled cook too" in read(body).html


def nested_forms(depth: int) -> bytes:
    """Return a page whose forms each draw the next one ten times."""
    head = b"/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources "
    forms = [
        packed(
            b"/X%d Do " % (n + 1) * 10, head + b"<< /XObject << /X%d %d 0 R >> >> " % (n + 1, 7 + n)
        )
        for n in range(depth)
    ]
    last = packed(HELLO, head + b"<< %s >> " % FONTS)
    return one_page(
        packed(b"/X0 Do"), resources=FONTS + b" /XObject << /X0 6 0 R >>", more=[*forms, last]
    )


def page_tree(kids: bytes) -> bytes:
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << %s >> >>"
        % FONTS
    )
    pages = b"<< /Type /Pages /Kids [%s] /Count 9 >>" % kids
    return make_file([b"<< /Type /Catalog /Pages 2 0 R >>", pages, FONT, packed(HELLO), page])


def doubling_tree() -> bytes:
    levels = [
        b"<< /Type /Pages /Kids [%s] /Count 9 >>" % (b"%d 0 R " % (n + 3) * 10) for n in range(9)
    ]
    return make_file(
        [b"<< /Type /Catalog /Pages 2 0 R >>", *levels, b"<< /Type /Page /MediaBox [0 0 1 1] >>"]
    )


def layered() -> bytes:
    data = zlib.compress(zlib.compress(zlib.compress(b"q " * 50_000_000)))
    head = b"<< /Length %d /Filter [/FlateDecode /FlateDecode /FlateDecode] >>" % len(data)
    return one_page(head + b"\nstream\n" + data + b"\nendstream")


BOMBS: dict[str, Callable[[], bytes]] = {
    "stream of 100 MB": lambda: one_page(packed(HELLO * 2_000_000)),
    "stream of 19 MB": lambda: one_page(packed(HELLO * 380_000)),
    "graphics states": lambda: one_page(packed(HELLO + b"q " * 2_000_000)),
    "nested arrays": lambda: one_page(packed(HELLO + b"[" * 200_000)),
    "array of 500,000": lambda: one_page(
        packed(b"BT /F1 11 Tf [" + b"(a)-3 " * 250_000 + b"] TJ ET")
    ),
    "three layers of deflate": layered,
    "forms in forms": lambda: nested_forms(8),
    "one page 15,000 times": lambda: page_tree(b"5 0 R " * 15_000),
    "one page 90,000 times": lambda: page_tree(b"5 0 R " * 90_000),
    "tree of a billion pages": doubling_tree,
    "tree in a circle": lambda: page_tree(b"2 0 R"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_pdf_made_to_exhaust_us_is_read_in_part_or_refused_in_words(name: str) -> None:
    body = BOMBS[name]()
    with bounded():
        try:
            page = read(body)
        except SourceUnreadable as e:
            assert "PDF" in e.what
        else:
            assert len(page.html) < 1_000_000


def test_time_is_up_inside_of_forms_too() -> None:
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << %s >> " % FONTS
    body = one_page(
        packed(b"/X0 Do " * 900),
        resources=FONTS + b" /XObject << /X0 6 0 R >>",
        more=[packed(HELLO * 5_000, form)],
    )
    with bounded(), pytest.raises(Unreadable, match="too long"):
        read_pdf(body, seconds=0.5)


@pytest.mark.anyio
async def test_a_cancelled_pdf_stops_and_the_loop_never_waits_for_it() -> None:
    row = "\n".join(
        f"BT /F1 11 Tf 72 {700 - n} Td (Words on line {n} of a page) Tj ET" for n in range(200)
    )
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << %s >> >>"
        % FONTS
    )
    pages = b"<< /Type /Pages /Kids [%s] /Count 400 >>" % (b"5 0 R " * 400)
    body = make_file(
        [b"<< /Type /Catalog /Pages 2 0 R >>", pages, FONT, packed(row.encode()), page]
    )
    ended: queue.Queue[str] = queue.Queue()

    def convert() -> None:
        try:
            read_pdf(body, seconds=600)
        except Stopped:
            ended.put("stopped")
            raise
        ended.put("finished")

    with anyio.move_on_after(0.5) as scope:
        await in_thread(convert)
    assert scope.cancelled_caught
    assert await anyio.to_thread.run_sync(ended.get) == "stopped"


def test_a_citation_names_the_page_of_the_pdf() -> None:
    pages = [
        f"BT /F1 11 Tf 72 700 Td (Chapter {n} describes the year {1900 + n * 7}.) Tj ET".encode()
        for n in range(4)
    ]
    contents = [packed(b"" if n == 1 else content) for n, content in enumerate(pages)]
    leaf = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << %s >> >>"
    leaves = [leaf % (4 + n, FONTS) for n in range(4)]
    kids = b"<< /Type /Pages /Kids [8 0 R 9 0 R 10 0 R 11 0 R] /Count 4 >>"
    document = read_document(
        read(make_file([b"<< /Type /Catalog /Pages 2 0 R >>", kids, FONT, *contents, *leaves]))
    )
    start = document.text.index("Chapter 3")
    assert cite(document, start, len(document.text)).startswith(
        "https://example.org/x.pdf#page=4:~:text=Chapter%203"
    )
    assert "#page=1:~:text=" in cite(document, 0, document.text.index("\n"))
