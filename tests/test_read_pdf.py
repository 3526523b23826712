"""What a PDF shows comes out as its reader sees it: scripts, tables, columns, forms, comments,
heads, hidden print."""

import base64
import re
import zlib
from collections.abc import Sequence

import pytest

import readers
from errors import SourceUnreadable
from extra import lacking
from readers.page import Page
from tests.support.pdf import SAID, make_pdf, pdf_of
from tests.test_fetch_pdf import FONT, FONTS, make_file, packed


def read(body: bytes) -> Page:
    return readers.read(body, name="x.pdf").page


def shown(*pieces: tuple[float, float, float, str], drawn: str = "") -> str:
    """Return the HTML of a page of pieces: left edge, baseline, size and text."""
    set_ = "\n".join(
        f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET" for x, y, size, text in pieces
    )
    return read(pdf_of(f"{set_}\n{drawn}", said=())).html


def with_notes(content: bytes, notes: Sequence[bytes], catalog: bytes = b"") -> bytes:
    """Return a PDF of one page with annotations, which are objects 6 and further."""
    named = b" ".join(b"%d 0 R" % (6 + number) for number in range(len(notes)))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << %s >> /Annots [%s] >>"
    pages = b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>"
    head = b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog
    return make_file([head, pages, FONT, packed(content), page % (FONTS, named), *notes])


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (
            [(72, 700, 12, "The tank holds 10"), (167.4, 705, 7, "6"), (171.6, 700, 12, " litres")],
            "The tank holds 10^6 litres",
        ),
        (
            [(72, 700, 12, "It costs 40 crowns"), (168.2, 705, 7, "2"), (175.6, 700, 12, "a day")],
            "40 crowns[2] a day",
        ),
        (
            [(72, 700, 12, "Sea water is H"), (152.1, 697, 7, "2"), (156, 700, 12, "O and salt")],
            "H_2O and salt",
        ),
        (
            [(72, 700, 12, "The 2"), (102.8, 705, 7, "nd"), (114, 700, 12, "of May")],
            "The 2nd of May",
        ),
    ],
    ids=["power", "note", "formula", "ordinal"],
)
def test_raised_and_lowered_print_is_marked(
    pieces: list[tuple[float, float, float, str]], said: str
) -> None:
    assert said in shown(*pieces)


TABLE = [
    ("Basin", "Month", "Tons"),
    ("North", "April", "120"),
    ("", "May", "145"),
    ("South", "April", "99"),
]
CELLS = [
    (76 + 100 * column, 706 - 20 * row, 10, text)
    for row, texts in enumerate(TABLE)
    for column, text in enumerate(texts)
    if text
]


def lines(*, spanned: bool, around: bool) -> str:
    """Return the rulings of the table; the first column's second and third row are one cell where
    it is spanned."""
    level = [
        (172 if spanned and row == 2 else 72, 720 - 20 * row)
        for row in range(0 if around else 1, 5)
    ]
    upright = [72 + 100 * column for column in (range(4) if around else (1, 2))]
    across = "\n".join(f"{x} {y} m 372 {y} l S" for x, y in level)
    return across + "\n" + "\n".join(f"{x} 720 m {x} 640 l S" for x in upright)


@pytest.mark.parametrize("around", [True, False])
def test_a_ruled_table_drawn_column_by_column_keeps_rows_and_repeats_what_spans_them(
    around: bool,
) -> None:
    by_column = sorted(CELLS, key=lambda cell: cell[0])
    html = shown(
        (72, 750, 10, "Ships of the year"), *by_column, drawn=lines(spanned=True, around=around)
    )
    assert "<td>North</td><td>April</td><td>120</td>" in html
    assert "<td>North</td><td>May</td><td>145</td>" in html
    assert "<td>South</td><td>April</td><td>99</td>" in html


def test_a_long_text_that_spans_rows_of_a_ruled_table_is_written_once() -> None:
    pins = [(275, 712 - 9 * n, 8, f"Pin number {n} of the board") for n in range(8)]
    two_columns = lines(spanned=False, around=True).replace("372", "272")
    html = shown(
        *(cell for cell in CELLS if cell[0] < 270),
        *pins,
        drawn=f"{two_columns}\n272 720 100 -80 re S",
    )
    assert "<td>May</td><td></td>" in html
    assert html.count("Pin number 3") == 1


def test_boxes_within_boxes_are_a_drawing_and_no_text_is_repeated() -> None:
    boxes = "\n".join(
        f"{72 + 8 * n} {500 + 8 * n} {400 - 16 * n} {200 - 16 * n} re S" for n in range(5)
    )
    html = shown(
        (120, 600, 10, "The inner box holds the engine"),
        (150, 580, 10, "and the pump"),
        drawn=boxes,
    )
    assert html.count("engine") == 1


WORDS = (
    "the harbour was dug in the year of the flood",
    "its walls are of granite from the quarry at Skarn",
)


def test_columns_that_the_file_mixes_line_by_line_are_read_one_after_the_other() -> None:
    html = shown(
        *(
            (left, 700 - 12 * n, 10, f"{n} {WORDS[left > 100]}")
            for n in range(12)
            for left in (60, 330)
        )
    )
    assert html.index(f"11 {WORDS[0]}") < html.index(f"0 {WORDS[1]}")
    assert "<table>" not in html


def test_three_columns_of_prose_that_the_file_mixes_are_read_one_after_the_other() -> None:
    lines_ = (
        "the harbour was dug in the flood year",
        "its walls are of granite from Skarn",
        WORDS[0],
    )
    html = shown(
        *(
            (40 + 180 * column, 700 - 12 * n, 8, f"{n} {lines_[column][:36]}")
            for n in range(12)
            for column in range(3)
        )
    )
    starts = [html.index(f"11 {line[:36]}") for line in lines_]
    assert starts[0] < html.index(f"0 {lines_[1]}") < starts[1] < html.index(f"0 {WORDS[0][:30]}")
    assert "<table>" not in html


def test_an_initial_over_several_lines_begins_its_word() -> None:
    html = shown(
        (72, 676, 40, "O"),
        (103, 700, 10, "ver the past ten years the mole"),
        (103, 688, 10, "has sunk by a hand, and the lamp"),
        (103, 676, 10, "on it was moved twice."),
    )
    assert "Over the past ten years the mole has sunk" in html
    assert "^" not in html


@pytest.mark.parametrize(
    ("rows", "head"),
    [
        (
            ["|Tons|Tons|", "Berth|in|out|Master", "North|12|14|Olsen", "South|8|9|Berg"],
            "Berth|Tons in|Tons out|Master",
        ),
        (
            ["Berth|Tons|Tons|Master", "|in|out|", "North|12|14|Olsen", "South|8|9|Berg"],
            "Berth|Tons in|Tons out|Master",
        ),
        (["Berth|2023|2024|2025", "North|12|14|9", "South|8|9|7"], "Berth|2023|2024|2025"),
        (
            ["Berth|Tons|Crew|Master", "Old mole|-|-|Lie", "North|12|14|Olsen", "South|8|9|Berg"],
            "Berth|Tons|Crew|Master",
        ),
    ],
    ids=["wrapped", "below", "years", "a row without figures"],
)
def test_two_lines_of_heads_are_one_and_years_are_heads(rows: list[str], head: str) -> None:
    html = shown(
        *(
            (72 + 90 * column, 700 - 13 * number, 10, cell)
            for number, row in enumerate(rows)
            for column, cell in enumerate(row.split("|"))
            if cell
        )
    )
    cells = "".join(f"<th>{cell}</th>" for cell in head.split("|"))
    assert f"<tr>{cells}</tr>" in html


def test_print_that_is_drawn_twice_is_read_once() -> None:
    assert (
        shown((72, 700, 12, "Mooring fee"), (72.4, 700.2, 12, "Mooring fee")).count("Mooring") == 1
    )


def test_values_of_a_form_follow_their_labels_and_hidden_ones_stay_out() -> None:
    field = (
        b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (%s) /V (%s) /Rect [150 %d 350 %d] /F %d >>"
    )
    notes = [
        field % (b"ship", b"Marigold", 695, 715, 4),
        field % (b"secret", b"unseen", 655, 675, 2),
    ]
    labels = b"BT /F1 12 Tf 72 700 Td (Name of ship:) Tj 0 -40 Td (Berth:) Tj ET"
    html = read(with_notes(labels, notes, b"/AcroForm << /Fields [6 0 R 7 0 R] >>")).html
    assert "Name of ship: Marigold Berth:" in html
    assert "unseen" not in html


def test_comments_are_read_as_such() -> None:
    note = b"<< /Type /Annot /Subtype /Text /Rect [300 700 320 720] /Contents (since May it closes at 21:00) >>"
    html = read(with_notes(b"BT /F1 12 Tf 72 700 Td (The boom closes at dusk.) Tj ET", [note])).html
    assert html.index("closes at dusk") < html.index("<p>Comment: since May it closes at 21:00</p>")


def test_attached_files_are_named_and_said_to_be_unread() -> None:
    tree = b"/Names << /EmbeddedFiles << /Names [(plan.txt) 6 0 R] >> >>"
    held = [
        b"<< /Type /Filespec /F (plan.txt) /UF (plan.txt) /EF << /F 7 0 R >> >>",
        packed(b"Dredge in June"),
    ]
    page = read(with_notes(b"BT /F1 12 Tf 72 700 Td (The plan is attached.) Tj ET", held, tree))
    assert "Attached files: plan.txt" in page.html
    assert page.unread == "1 attachment"


def test_heads_of_odd_and_even_pages_and_page_numbers_leave_the_sentences_whole() -> None:
    heads = ("The Lock of Arnvik", "CHAPTER TWO")
    body = [(f"Line {n} of the story goes on and on", 11) for n in range(44)]
    html = read(
        make_pdf([[(heads[page % 2], 9), *body, (str(page + 1), 9)] for page in range(8)])
    ).html
    assert html.count(heads[0]) == html.count(heads[1]) == 1
    assert html.count("Line 43 of the story goes on and on</p>") == 8


def test_headings_that_differ_by_their_number_alone_stay_and_feet_of_pages_go() -> None:
    body = [(f"Line {n} of the story goes on and on", 11) for n in range(44)]
    pages = [[(f"Chapter {n}", 18), *body, (f"Page {n} of 6", 9)] for n in range(1, 7)]
    html = read(make_pdf(pages)).html
    assert [f"<h2>Chapter {n}</h2>" in html for n in range(1, 7)] == [True] * 6
    assert html.count("Page") == 1


def manual(heads: Sequence[str], *, size: int = 9) -> str:
    """Return the HTML of a manual whose pages have these heads; each chapter begins with
    its title, and all pages end in different lines."""
    body = [(f"Line {n} of the story goes on and on", 11) for n in range(40)]
    titles = {"Chapter 1: Fees": "1 Fees", "Chapter 2: Berths": "2 Berths"}
    pages = []
    for number, head in enumerate(heads):
        title = titles.pop(head.rpartition("  ")[0] or head, "")
        begun = [(title, 18)] if title else []
        pages.append([(head, size), *begun, *body, (f"Rate {number} of page {number * 7}", 11)])
    return read(make_pdf(pages)).html


def test_heads_of_chapters_go_and_the_titles_of_the_chapters_stay() -> None:
    heads = [f"Chapter {1 + n // 6}: {('Fees', 'Berths')[n // 6]}  {n + 3}" for n in range(12)]
    html = manual([f"Harbour Book  {n}" for n in range(2)] + heads)
    assert "<h2>1 Fees</h2>" in html
    assert "<h2>2 Berths</h2>" in html
    assert html.count("Chapter") == 2  # a word of the heads alone


@pytest.mark.parametrize(
    ("lines", "size", "stay"),
    [
        (["When it rains", "}", "}", "}", "Tides are", "Boats go", "Crews wait"], 11, range(7)),
        ([f"{n * n} 20 {n * 5}" for n in range(7)], 11, range(7)),
        (["Rates", "Fees", "Rates", "Berths", "Rates", "Rates", "Rates"], 18, range(5)),
        (["Rates", "Rates", "Rates", "Berths", "Rates", "Rates", "Rates"], 18, (0, 3, 4)),
    ],
    ids=["three of many", "rows of figures", "titles that come back", "titles again"],
)
def test_lines_of_the_text_at_the_edge_of_a_page_stay(
    lines: Sequence[str], size: int, stay: Sequence[int]
) -> None:
    body = [(f"Line {n} of the story goes on and on", 11) for n in range(44)]
    html = read(make_pdf([[(line, size), *body] for line in lines])).html
    sections = html.split("<section")[1:]
    kept = [
        n for n, line in enumerate(lines) if f">{line}" in sections[n].partition("Line 0")[0] + ">"
    ]
    assert kept == [*stay]


def kinds(html: str, text: str) -> set[str]:
    """Return the tags that directly hold a text that contains `text`."""
    return {tag for tag, held in re.findall(r"<(\w+)>([^<]*)", html) if text in held}


def test_lines_of_a_table_of_contents_are_no_headings() -> None:
    body = [(72, 400 - 14 * n, 10, f"Line {n} of the story goes on and on") for n in range(20)]
    entries = [
        (72, 700, 16, "Contents"),
        (72, 660, 16, "1 Fees"),
        (420, 660, 16, "6"),
        (72, 620, 16, "2 Berths . . 18"),
        (72, 580, 16, "3 Rates ........ 29"),
    ]
    html = shown(*entries, *body)
    assert kinds(html, "Contents") == {"h2"}
    assert kinds(html, "1 Fees 6") == kinds(html, "Berths") == kinds(html, "Rates") == {"p"}


@pytest.mark.parametrize(
    ("text", "tag"),
    [(["The lock opens at dawn", "and it closes at dusk"] * 9, "p"), (["Fees"], "h2")],
    ids=["text", "a title"],
)
def test_text_above_long_listings_in_smaller_type_is_no_heading(text: list[str], tag: str) -> None:
    listing = [(f"open the gate number {n} of the lock and wait", 7) for n in range(20)]
    html = read(make_pdf([[(line, 10) for line in text] + listing])).html
    assert kinds(html, text[0]) == {tag}


@pytest.mark.parametrize(
    ("turned", "tag"),
    [("0 1 -1 0 40 100", "p"), ("1 0 0 1 72 720", "h2")],
    ids=["aside", "upright"],
)
def test_large_print_turned_against_the_text_is_no_heading(turned: str, tag: str) -> None:
    body = [(72, 600 - 14 * n, 10, f"Line {n} of the story goes on and on") for n in range(20)]
    html = shown(*body, drawn=f"BT /F1 20 Tf {turned} Tm (Tons of fish a year) Tj ET")
    assert kinds(html, "Tons of fish") == {tag}


@pytest.mark.parametrize(
    ("elsewhere", "parted", "whole"),
    [
        ("A well-known pier", ("It is well-", "known."), "It is well-known."),
        ("A Well-Known pier", ("It is (well-", "known)."), "It is (well-known)."),
        ("An out-of-date map", ("It is out-of-", "date now."), "It is out-of-date now."),
        ("The harbour is old", ("It is a har-", "bour."), "It is a harbour."),
        ("A pier", ("They co-", "operate."), "They cooperate."),
        ("An e-mail is an email", ("Send an e-", "mail."), "Send an email."),
    ],
)
def test_the_hyphen_of_a_word_that_has_one_elsewhere_stays_at_the_end_of_a_line(
    elsewhere: str, parted: tuple[str, str], whole: str
) -> None:
    html = read(make_pdf([[(elsewhere, 11), ("", 11), *((line, 11) for line in parted)]])).html
    assert f"{whole}</p>" in html


def test_white_print_on_a_gradient_and_on_a_thick_stroke_is_seen() -> None:
    white = "BT /F1 12 Tf 1 g 1 0 0 1 72 600 Tm (Berth nine is closed.) Tj ET"
    shading = (
        "/Shading << /S0 << /ShadingType 2 /ColorSpace /DeviceGray /Coords [0 0 600 0] /Extend "
        "[true true]"
        " /Function << /FunctionType 2 /Domain [0 1] /N 1 /C0 [0] /C1 [.3] >> >> >>"
    )
    for drawn, resources in (
        (f"q 50 580 500 40 re W n /S0 sh Q {white}", shading),
        (f"40 w 50 604 m 550 604 l S {white}", ""),
    ):
        page = read(pdf_of(drawn, resources=resources))
        assert "Berth nine is closed." in page.html
        assert page.hidden == 0


@pytest.mark.parametrize(
    "head", [b"\xef\xbb\xbf", b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n"]
)
def test_what_is_before_the_file_is_passed_over(head: bytes) -> None:
    page = read(head + pdf_of(""))
    assert page.media_type == "application/pdf"
    assert SAID[0] in page.html


def test_a_pdf_of_that_name_is_known_though_digits_are_before_it_and_its_end_is_lost() -> None:
    body = b"0000" + pdf_of("").partition(b"startxref")[0]
    page = read(body)
    assert page.media_type == "application/pdf"
    assert SAID[0] in page.html
    text = b"A file that begins with %PDF-1.4 is a PDF."
    assert readers.read(text, name="x.txt").page.media_type == "text/plain"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("Pay the bill to account 999", "The boat leaves at nine."),
        ("ab" * 40, "The boat leaves at nine."),
        ("\\337\\061", "The boat leaves at nine."),
        ("\\055", "-"),
    ],
    ids=["other words", "long", "a letter", "a hyphen"],
)
def test_what_is_drawn_is_read_and_no_letters_that_the_file_gives_in_its_place(
    given: str, said: str
) -> None:
    drawn = "BT /F1 12 Tf 1 0 0 1 72 600 Tm (The boat leaves at nine.) Tj ET"
    html = read(pdf_of(f"/Span << /ActualText ({given}) >> BDC {drawn} EMC")).html
    assert f"<p>{said}</p>" in html


def test_headlines_with_a_map_stay_where_the_other_letters_have_none() -> None:
    other = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [<< /Type /Font"
        b" /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity)"
        b" /Supplement 0 >> /FontDescriptor << /Type /FontDescriptor /FontName /X /Flags 4 >> >>] >>"
    )
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 3 0 R /F2 6 0 R >> >> >>"
    )
    codes = b"".join(b"%04x" % (900 + n) for n in range(60))
    content = packed(
        b"BT /F1 18 Tf 72 740 Td (Market on Friday) Tj ET BT /F2 12 Tf 72 700 Td <"
        + codes
        + b"> Tj ET"
    )
    pages = b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>"
    read_page = read(
        make_file([b"<< /Type /Catalog /Pages 2 0 R >>", pages, FONT, content, page, other])
    )
    assert read_page.html.count("Market on Friday") == 1
    # With the extra ocr the page is recognised, and nothing is unread.
    assert read_page.trust == "recognised" or "pages read in part: 1 of 1" in read_page.unread


def test_what_lies_beyond_the_page_is_left_out_however_much_it_is() -> None:
    far = "\n".join(
        f"BT /F1 12 Tf 1 0 0 1 72 {900 + 20 * n} Tm (The next page has line {n} of the list) Tj ET"
        for n in range(30)
    )
    page = read(pdf_of(far))
    assert SAID[1] in page.html
    assert "next page" not in page.html
    assert page.hidden == 30 * 9


def test_letters_that_the_file_does_not_name_are_said_to_be_unreadable() -> None:
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [<< /Type /Font"
        b" /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity)"
        b" /Supplement 0 >> /FontDescriptor << /Type /FontDescriptor /FontName /X /Flags 4 >> >>] >>"
    )
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << %s >> >>"
        % FONTS
    )
    content = packed(
        b"BT /F1 12 Tf 72 700 Td <" + b"".join(b"%04x" % (900 + n) for n in range(60)) + b"> Tj ET"
    )
    pages = b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>"
    body = make_file([b"<< /Type /Catalog /Pages 2 0 R >>", pages, font, content, page])
    with pytest.raises(SourceUnreadable, match="cannot be read as text"):
        readers.read(body)


@pytest.mark.parametrize("codes", ["(cid:12)(cid:88)(cid:101)", "/G21/G22/G3A"])
def test_codes_of_glyphs_in_the_place_of_letters_are_not_taken_for_text(codes: str) -> None:
    page = read(make_pdf([[("The pier was built in 1871.", 11)], [(f"{codes} {codes}", 11)]]))
    assert "1871" in page.html
    if not lacking("ocr"):  # the page is looked at, and shows these signs
        assert "images were read: 1 of 2" in page.notes[0]
    else:
        assert "cannot be read as text" in page.unread
        with pytest.raises(SourceUnreadable, match="cannot be read as text"):
            read(make_pdf([[(f"{codes} {codes}", 11)]]))


def test_a_page_whose_filters_no_decoder_of_ours_has_leaves_the_other_pages() -> None:
    text = b"BT /F1 12 Tf 72 700 Td (%s) Tj ET"
    odd = base64.a85encode(zlib.compress(text % b"Boats leave at ten.")) + b"~>"
    leaf = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << %s >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [6 0 R 7 0 R] /Count 2 >>",
        FONT,
        packed(text % b"Boats leave at nine."),
        b"<< /Length %d /Filter [/A85 /Fl] >>\nstream\n%s\nendstream" % (len(odd), odd),
        leaf % (4, FONTS),
        leaf % (5, FONTS),
    ]
    page = read(make_file(objects))
    assert "Boats leave at nine." in page.html
    assert page.unread.startswith("pages not read: 1 of 2 (the first is page 2)")


def test_code_keeps_its_indentation() -> None:
    code = [
        (72, 700, "def f(x):"),
        (96, 686, "if x:"),
        (120, 672, "return x"),
        (72, 658, "print(f(1))"),
    ]
    drawn = "\n".join(
        f"BT /F1 10 Tf 1 0 0 1 {x} {y} Tm "
        f"({text.replace('(', chr(92) + '(').replace(')', chr(92) + ')')}) Tj ET"
        for x, y, text in code
    )
    body = pdf_of(drawn, said=()).replace(b"/Helvetica", b"/Courier  ")
    assert "<pre>def f(x):\n    if x:\n        return x\nprint(f(1))</pre>" in read(body).html


def test_print_that_is_turned_and_pages_that_are_turned_are_read_along_their_lines() -> None:
    turned = "\n".join(
        f"BT /F1 12 Tf 0 1 -1 0 {300 + 20 * n} 200 Tm ({text}) Tj ET"
        for n, text in enumerate(("The first line of the page", "and its second line"))
    )
    for body in (
        pdf_of(turned, said=()),
        pdf_of(turned, said=()).replace(b"/MediaBox", b"/Rotate 90 /MediaBox"),
    ):
        assert "The first line of the page and its second line" in read(body).html


def test_text_behind_other_print_in_the_colour_of_its_ground_is_left_out() -> None:
    line = "BT /F1 12 Tf {} g 1 0 0 1 72 700 Tm ({}) Tj ET"
    page = read(pdf_of(line.format(1, "Obey the keeper") + " " + line.format(0, "The boats leave")))
    assert "The boats leave" in page.html
    assert "keeper" not in page.html


def with_font(font: bytes, *others: bytes, text: bytes) -> bytes:
    """Return a PDF of one page that shows a text in a font, which is object 3; others follow the
    page from 6 on."""
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << %s >> >>"
    pages = b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>"
    content = packed(b"BT /F1 12 Tf 72 700 Td (%s) Tj 0 -30 Td (Boats leave at nine.) Tj ET" % text)
    return make_file(
        [b"<< /Type /Catalog /Pages 2 0 R >>", pages, font, content, page % FONTS, *others]
    )


def test_letters_beyond_the_first_plane_leave_the_ones_behind_them_where_they_are() -> None:
    named = b"\n".join(
        b"<%02X> <%s>" % (code, chr(code).encode("utf-16-be").hex().encode())
        for code in range(32, 127)
        if chr(code) != "A"
    )
    table = (
        b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n"
        b"1 beginbfchar <41> <D835DC9C> endbfchar 94 beginbfchar %s endbfchar endcmap end" % named
    )
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>"
    page = read(
        with_font(font, packed(table), text=b"Matrix AA and AAA of the Routed Expert Layer")
    )
    assert "Matrix 𝒜𝒜 and 𝒜𝒜𝒜 of the Routed Expert Layer" in page.html
    assert "Boats leave at nine." in page.html
    assert page.hidden == 0


def test_a_font_of_drawings_whose_letters_have_no_map_is_read_by_its_codes() -> None:
    codes = sorted(set(b"Depth of the basin in metres 12.5 Boats leave at nine."))
    procs = b" ".join(b"/g%d 6 0 R" % code for code in codes)
    differences = b" ".join(b"%d /g%d" % (code, code) for code in codes)
    font = (
        b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 600 700] /FontMatrix [.001 0 0 .001 0 0] "
        b"/FirstChar 32 /LastChar 126 /Widths [%s] /CharProcs << %s >> "
        b"/Encoding << /Type /Encoding /Differences [%s] >> /Resources << >> >>"
        % (b"600 " * 95, procs, differences)
    )
    page = read(
        with_font(
            font, packed(b"600 0 d0 50 0 450 600 re f"), text=b"Depth of the basin in metres 12.5"
        )
    )
    assert "Depth of the basin in metres 12.5" in page.html
    assert page.unread == ""
