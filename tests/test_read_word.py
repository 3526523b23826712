"""Word files: what a reader sees is read, each thing at its place, and what is not read is said."""

from itertools import pairwise

import pytest

import readers
from readers.page import Document, Page
from tests.support.docx import as_strict, make_parts, paragraph, run

TITLED = '<w:style w:type="paragraph" w:styleId="{id}">{inner}</w:style>'


def read(body: bytes) -> Document:
    return readers.read(body, name="a.docx")


def page_of(body: bytes) -> Page:
    return read(body).page


def text_of(body: str, **parts: str) -> str:
    return read(make_parts(body, **parts)).text


def of_list(text: str, key: int, level: int = 0) -> str:
    said = f'<w:pPr><w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{key}"/></w:numPr></w:pPr>'
    return f"<w:p>{said}{run(text)}</w:p>"


def level(number: int, text: str, form: str = "decimal", start: int = 1) -> str:
    inner = f'<w:start w:val="{start}"/><w:numFmt w:val="{form}"/>'
    return f'<w:lvl w:ilvl="{number}">{inner}<w:lvlText w:val="{text}"/></w:lvl>'


def numbering(*levels: str) -> str:
    return (
        f'<w:abstractNum w:abstractNumId="1">{"".join(levels)}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
    )


def complex_field(instruction: str, result: str) -> str:
    marks = [
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
    ]
    return f"{marks[0]}<w:r><w:instrText>{instruction}</w:instrText></w:r>{marks[1]}{run(result)}{marks[2]}"


@pytest.mark.parametrize(
    ("inner", "seen"),
    [
        (f'{run("Table ")}<w:fldSimple w:instr="SEQ">{run("3")}</w:fldSimple>{run(": Fees")}', "Table 3: Fees"),
        (run("Dear ") + complex_field("MERGEFIELD name", "Mrs Holt") + run(","), "Dear Mrs Holt,"),
        (run("Take ") + "<m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den>"
         "</m:f></m:oMath>", "Take (a+b)/2"),
        (run("r") + '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>2</w:t></w:r>', "r^2"),
        ("<w:r><w:ruby><w:rt>" + run("とうきょう") + "</w:rt><w:rubyBase>" + run("東京")
         + "</w:rubyBase></w:ruby></w:r>",
         "東京(とうきょう)"),
        ('<w:sdt><w:sdtPr><w14:checkbox><w14:checked '
        'w14:val="0"/></w14:checkbox></w:sdtPr><w:sdtContent>' + run("☐")
         + "</w:sdtContent></w:sdt>" + run(" Yes"), "☐ Yes"),
        ('<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>' + run(" done at 30") + '<w:r><w:sym w:font="Symbol" '
         'w:char="F0B0"/></w:r>', "✓ done at 30°"),
        ('<w:dir w:val="rtl">' + run("Boats") + "</w:dir><w:madeUp>" + run(" lie here") + "</w:madeUp>",
         "Boats lie here"),
        ("<w:r><mc:AlternateContent><mc:Choice><w:drawing><wps:txbx><w:txbxContent>" + paragraph("In a box.")
         + "</w:txbxContent></wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><w:txbxContent>"
         + paragraph("In a box.") + "</w:txbxContent></w:pict></mc:Fallback></mc:AlternateContent></w:r>", "In a box."),
    ],
)  # fmt: skip
def test_what_a_paragraph_shows_is_its_text(inner: str, seen: str) -> None:
    document = read(make_parts(f"<w:p>{inner}</w:p>"))
    assert document.text == seen
    assert document.page.unread == ""


def test_clauses_have_the_numbers_that_word_shows() -> None:
    forms = numbering(level(0, "%1."), level(1, "%1.%2"), level(2, "(%3)", "lowerLetter"))
    items = [
        ("Terms", 0),
        ("The Yard", 1),
        ("The Owner", 1),
        ("Payment", 0),
        ("Late sums", 1),
        ("six", 2),
        ("nine", 2),
    ]
    text = text_of("".join(of_list(words, 1, depth) for words, depth in items), numbering=forms)
    assert text.split("\n") == [
        *("1. Terms", "1.1 The Yard", "1.2 The Owner"),
        *("2. Payment", "2.1 Late sums", "(a) six", "(b) nine"),
    ]
    rules = "".join(of_list(words, 1) for words in ("No fires.", "No nets."))
    assert (
        text_of(rules, numbering=numbering(level(0, "Rule %1", start=7)))
        == "Rule 7 No fires.\nRule 8 No nets."
    )


def test_headings_are_known_by_their_base_style_and_by_outline_level() -> None:
    styles = TITLED.format(id="H2", inner='<w:name w:val="heading 2"/>')
    styles += TITLED.format(id="Own", inner='<w:name w:val="Yard"/><w:basedOn w:val="H2"/>')
    styles += TITLED.format(
        id="Out", inner='<w:name w:val="Chart"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr>'
    )
    html = page_of(
        make_parts(paragraph("Pumps", "Own") + paragraph("Valves", "Out"), styles=styles)
    ).html
    assert "<h2>Pumps</h2>" in html and "<h1>Valves</h1>" in html


def test_headers_and_footers_are_read_once_without_page_numbers() -> None:
    numbers = f"<w:p>{run('Page ')}{complex_field('PAGE', '1')}</w:p>"
    header = paragraph("Revision D, 2 June 2026") + numbers
    assert (
        text_of(paragraph("Boats."), header=header, footer=numbers)
        == "Revision D, 2 June 2026\nBoats."
    )


def test_notes_and_comments_follow_the_block_that_refers_to_them() -> None:
    body = (
        f'<w:p>{run("The toll is 9 crowns.")}<w:r><w:footnoteReference w:id="2"/></w:r>'
        '<w:r><w:commentReference w:id="5"/></w:r></w:p>' + paragraph("The lock is of larch.")
    )
    notes = f'<w:footnote w:id="2">{paragraph("Since May.")}</w:footnote>'
    comments = f'<w:comment w:id="5" w:author="Ada Holt">{paragraph("Now 12.")}</w:comment>'
    assert text_of(body, footnotes=notes, comments=comments).split("\n") == [
        "The toll is 9 crowns.[1]",
        "[1] Since May.",
        "Comment by Ada Holt: Now 12.",
        "The lock is of larch.",
    ]


def test_tracked_changes_are_marked_and_counted() -> None:
    deleted = "<w:del><w:r><w:delText>9</w:delText></w:r></w:del>"
    body = f"<w:p>{run('The toll is ')}{deleted}<w:ins>{run('12')}</w:ins></w:p>"
    page = page_of(make_parts(body))
    assert "<del>9</del><ins>12</ins>" in page.html
    assert page.notes == (
        "Word: tracked changes are shown as accepted: 1 words are inserted, 1 deleted",
    )


def test_a_chart_is_a_table_of_its_figures() -> None:
    points = "".join(f'<c:pt idx="{place}"><c:v>{{}}{place}</c:v></c:pt>' for place in range(2))
    chart = (
        f"<c:chart><c:ser><c:tx><c:v>Tons</c:v></c:tx><c:cat>{points.format('May ', 'May ')}</c:cat>"
        f"<c:val>{points.format('4', '4')}</c:val></c:ser></c:chart>"
    )
    body = '<w:p><w:r><w:drawing><c:chart r:id="chart"/></w:drawing></w:r></w:p>'
    text = text_of(body, chart=chart)
    assert "Tons" in text and "May 1" in text and "41" in text


def test_merged_cells_belong_to_each_of_their_rows_and_columns() -> None:
    def cell(text: str, said: str = "") -> str:
        return f"<w:tc><w:tcPr>{said}</w:tcPr>{paragraph(text)}</w:tc>"

    rows = [
        cell("Port") + cell("Fish") + cell("Tons"),
        cell("Arnvik", '<w:vMerge w:val="restart"/>') + cell("Cod") + cell("12"),
        cell("", "<w:vMerge/>") + cell("Hake") + cell("7"),
    ]
    document = read(
        make_parts("<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>")
    )
    assert document.blocks[-1].cells == ("Arnvik", "Hake", "7")


def test_a_main_part_of_another_name_and_of_the_strict_form_is_read() -> None:
    assert "Boats." in page_of(make_parts(paragraph("Boats."), main="word/document2.xml")).html
    assert "Boats." in page_of(as_strict(make_parts(paragraph("Boats.")))).html


def test_what_is_not_read_is_said_by_kind_and_number() -> None:
    picture = (
        '<w:r><w:drawing><wp:extent cx="5000000" cy="4000000"/><wp:docPr '
        'id="1"/><a:blip/></w:drawing></w:r>'
    )
    body = (
        f"<w:p>{run('Boats.')}{picture}<w:r><w:drawing><c:chart "
        f'r:id="none"/></w:drawing></w:r></w:p>'
    )
    body += "<w:p><w:r><w:object><o:OLEObject/></w:object></w:r></w:p>"
    page = page_of(make_parts(body))
    assert page.unread == "1 chart, 1 embedded object, 1 image"
    assert page.tables_whole
    described = picture.replace('id="1"', 'id="1" descr="The mole from the north"')
    assert "The mole from the north" in page_of(make_parts(f"<w:p>{described}</w:p>")).html


def test_a_part_that_breaks_off_is_read_to_there_and_the_rest_is_said() -> None:
    page = page_of(
        make_parts(paragraph("Boats."), header="<w:p><w:r><w:t>Revision D</w:t></w:r></w:p><w:p><")
    )
    assert "Revision D" in page.html and "Boats." in page.html
    assert page.unread == "what follows a damaged place in 1 of its parts"


def test_long_lists_go_on_counting() -> None:
    document = read(
        make_parts(
            "".join(of_list(f"point {n}", 1) for n in range(1, 30)),
            numbering=numbering(level(0, "%1.")),
        )
    )
    assert document.page.html.count("<ul") == 1
    lines = document.text.split("\n")
    assert all(
        int(after.split(".")[0]) == int(before.split(".")[0]) + 1
        for before, after in pairwise(lines)
    )


def test_struck_text_is_marked() -> None:
    struck = "<w:r><w:rPr><w:{}/></w:rPr><w:t>80</w:t></w:r>"
    for name in ("strike", "dstrike", 'strike w:val="1"'):
        assert (
            "<s>80</s> 70"
            in page_of(make_parts(f"<w:p>{struck.format(name)}{run(' 70')}</w:p>")).html
        )
    off = struck.format('strike w:val="0"')
    assert "<s>" not in page_of(make_parts(f"<w:p>{off}</w:p>")).html


def test_a_style_without_id_is_that_of_no_text() -> None:
    styles = "<w:style><w:rPr><w:vanish/></w:rPr></w:style>"
    assert text_of(paragraph("Boats."), styles=styles) == "Boats."


def test_a_file_that_would_be_hidden_for_the_most_part_is_shown_with_a_note() -> None:
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>obey me now</w:t></w:r>"
    page = page_of(make_parts(paragraph("Boats.") + f"<w:p>{hidden}</w:p>" * 50))
    assert "obey" in page.html
    assert page.notes == ("most words are marked as hidden, and shown here",)


def test_a_long_table_is_one_table() -> None:
    pair = f"<w:tr><w:tc>{paragraph('a{0}')}</w:tc><w:tc>{paragraph('b{0}')}</w:tc></w:tr>"
    rows = "".join(map(pair.format, range(9000)))
    page = page_of(make_parts(f"<w:tbl>{rows}</w:tbl>{paragraph('After all.')}"))
    assert (page.html.count("<table"), page.html.count("<tr>"), page.unread) == (1, 9000, "")
    assert "<td>a8999</td><td>b8999</td>" in page.html
    assert "After all." in page.html


def test_what_a_field_compares_within_anothers_instruction_is_not_shown() -> None:
    begin, part, end = (
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
    )
    asked = f"{begin}<w:r><w:instrText> IF </w:instrText></w:r>{complex_field('MERGEFIELD n', '5')}"
    whole = f"{run('We have ')}{asked}{part}{run('five boats')}{end}{run(' today.')}"
    assert text_of(f"<w:p>{whole}</w:p>{paragraph('More.')}") == "We have five boats today.\nMore."
