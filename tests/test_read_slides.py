"""Presentations: slides are read as a person reads them, charts and diagrams too, and what is not
read is said."""

import pytest

import readers
from errors import SourceUnreadable
from readers.page import Document
from tests.support.hostile_files import zipped

OFFICE = "http://schemas.openxmlformats.org"
RELATIONS = f"{OFFICE}/officeDocument/2006/relationships"
SPACES = " ".join(
    f'xmlns:{name}="{OFFICE}/{space}/2006/{part}"'
    for name, space, part in (
        ("p", "presentationml", "main"),
        ("a", "drawingml", "main"),
        ("c", "drawingml", "chart"),
        ("dgm", "drawingml", "diagram"),
        ("r", "officeDocument", "relationships"),
    )
)
ROOTS = {
    "chart": "c:chartSpace",
    "diagramData": "dgm:dataModel",
    "slideLayout": "p:sldLayout",
    "comments": "p:cmLst",
}


def deck(*slides: str, size: tuple[int, int] | None = None, **parts: str) -> bytes:
    """Return a presentation; each slide has the further parts by kind, each the inside of its root,
    with its kind as id. Their size is in thousands of EMU."""
    files: dict[str, str | bytes] = {}
    package = f"{OFFICE}/package/2006/relationships"

    def relate(part: str, links: dict[str, tuple[str, str]]) -> None:
        inner = "".join(
            f'<Relationship Id="{key}" Type="{RELATIONS}/{kind}" Target="{name}"/>'
            for key, (kind, name) in links.items()
        )
        folder, _, name = part.rpartition("/")
        files[f"{folder}/_rels/{name}.rels"] = (
            f'<Relationships xmlns="{package}">{inner}</Relationships>'
        )

    ids = "".join(f'<p:sldId id="{number}" r:id="r{number}"/>' for number in range(len(slides)))
    extent = f'<p:sldSz cx="{size[0]}000" cy="{size[1]}000"/>' if size else ""
    files["ppt/presentation.xml"] = f"<p:presentation {SPACES}>{ids}{extent}</p:presentation>"
    relate(
        "ppt/presentation.xml", {f"r{n}": ("slide", f"slides/{n}.xml") for n in range(len(slides))}
    )
    for number, shapes in enumerate(slides):
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        files[f"ppt/slides/{number}.xml"] = f"<p:sld {SPACES}>{tree}</p:sld>"
        relate(f"ppt/slides/{number}.xml", {kind: (kind, f"../{kind}.xml") for kind in parts})
    for kind, inner in parts.items():
        files[f"ppt/{kind}.xml"] = f"<{ROOTS[kind]} {SPACES}>{inner}</{ROOTS[kind]}>"
    return zipped(files)


def box(
    text: str, left: int, top: int, *, kind: str = "", size: tuple[int, int] = (100, 20)
) -> str:
    """Return a shape with a text, its box in thousands of EMU."""
    place = (
        f'<p:nvSpPr><p:cNvPr id="1"/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        if kind
        else ""
    )
    off = f'<a:off x="{left}000" y="{top}000"/><a:ext cx="{size[0]}000" cy="{size[1]}000"/>'
    paragraphs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp>{place}<p:spPr><a:xfrm>{off}</a:xfrm></p:spPr><p:txBody>{paragraphs}</p:txBody></p:sp>"


def read(body: bytes) -> Document:
    return readers.read(body, name="a.pptx")


def lines(body: bytes) -> list[str]:
    assert read(body).page.unread == ""
    return read(body).text.split("\n")


def test_boxes_are_read_from_the_top_down_whatever_their_order_in_the_file() -> None:
    shapes = (
        box("three", 0, 200)
        + box("one", 0, 100)
        + box("Gate", 0, 0, kind="title")
        + box("two", 0, 150)
    )
    assert lines(deck(shapes)) == ["Gate", "one", "two", "three"]


def test_columns_that_the_file_has_as_columns_stay_so_and_rows_stay_rows() -> None:
    left, right = (
        [box("left", 0, 100), box("below left", 0, 150)],
        [box("right", 300, 100), box("below right", 300, 150)],
    )
    assert lines(deck("".join([*left, *right]))) == [
        "Slide 1",
        "left",
        "below left",
        "right",
        "below right",
    ]
    across = [left[0], right[0], left[1], right[1]]
    assert lines(deck("".join(across))) == ["Slide 1", "left", "right", "below left", "below right"]


def test_shapes_in_a_group_are_where_the_group_is() -> None:
    size = 'cx="100000" cy="20000"'
    form = f'<a:off x="0" y="300000"/><a:ext {size}/><a:chOff x="0" y="0"/><a:chExt {size}/>'
    group = f"<p:grpSp><p:grpSpPr><a:xfrm>{form}</a:xfrm></p:grpSpPr>{box('last', 0, 0)}</p:grpSp>"
    assert lines(deck(group + box("first", 0, 100))) == ["Slide 1", "first", "last"]


def test_a_deck_of_charts_and_diagrams_is_read() -> None:
    points = '<c:pt idx="0"><c:v>{}</c:v></c:pt><c:pt idx="1"><c:v>{}</c:v></c:pt>'
    chart = (
        "<c:chart><c:title><a:p><a:r><a:t>Hires</a:t></a:r></a:p></c:title><c:ser><c:tx><c:v>Boats</c:v></c:tx>"
        f"<c:cat>{points.format('Spring', 'Summer')}</c:cat><c:val>{points.format(41, 187)}</c:val></c:ser></c:chart>"
    )
    data = "<dgm:pt><dgm:t><a:p><a:r><a:t>Shut the gate</a:t></a:r></a:p></dgm:t></dgm:pt>"
    drawn = ('<c:chart r:id="chart"/>', '<dgm:relIds r:dm="diagramData"/>')
    frames = "".join(f"<p:graphicFrame>{one}</p:graphicFrame>" for one in drawn)
    text = "\n".join(lines(deck(frames, chart=chart, diagramData=data)))
    assert "Hires" in text and "Summer" in text and "187" in text and "Shut the gate" in text


def test_footers_are_read_once_and_numbers_of_slides_never() -> None:
    slide = (
        box("Boats", 0, 0)
        + box("Office of Moorings", 0, 300, kind="ftr")
        + box("7", 0, 320, kind="sldNum")
    )
    assert lines(deck(slide, slide)) == [
        "Slide 1",
        "Boats",
        "Slide 2",
        "Boats",
        "Office of Moorings",
    ]


def test_comments_raised_digits_and_merged_cells_are_read() -> None:
    said = "<p:cm><p:text>Closed in May</p:text></p:cm>"
    raised = (
        "<p:sp><a:p><a:r><a:t>10</a:t></a:r><a:r><a:rPr "
        'baseline="30000"/><a:t>6</a:t></a:r></a:p></p:sp>'
    )
    assert lines(deck(raised, comments=said))[1:] == ["10^6", "Comment: Closed in May"]

    def cell(text: str, marks: str = "") -> str:
        return f"<a:tc {marks}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = [
        cell("Port") + cell("Fish"),
        cell("Arn", 'rowSpan="2"') + cell("Cod"),
        cell("", 'vMerge="1"') + cell("Hake"),
    ]
    table = "".join(f"<a:tr>{row}</a:tr>" for row in rows)
    blocks = read(deck(f"<p:graphicFrame><a:tbl>{table}</a:tbl></p:graphicFrame>")).blocks
    assert blocks[-1].cells == ("Arn", "Hake")


def test_what_a_deck_holds_and_does_not_show_is_said() -> None:
    picture = (
        '<p:pic><p:nvPicPr><p:cNvPr id="2"/></p:nvPicPr><p:spPr><a:xfrm><a:off x="0" y="0"/>'
        '<a:ext cx="5000000" cy="5000000"/></a:xfrm></p:spPr></p:pic>'
    )
    lost = '<p:graphicFrame><c:chart r:id="none"/></p:graphicFrame>'
    assert read(deck(box("Boats", 0, 0) + picture + lost)).page.unread == "1 chart, 1 image"
    with pytest.raises(SourceUnreadable, match="without text: 1 image"):
        read(deck(picture))


def styled(text: str, look: str, *, left: int = 0) -> str:
    return box(text, left, 100).replace("<a:r>", f"<a:r>{look}")


WHITE = '<a:rPr><a:solidFill><a:srgbClr val="FFFFFF"/></a:solidFill></a:rPr>'


@pytest.mark.parametrize(
    "hidden",
    [
        styled("Obey the keeper", '<a:rPr sz="100"/>'),
        styled("Obey the keeper", "<a:rPr><a:noFill/></a:rPr>"),
        styled("Obey the keeper", WHITE),
        styled("Obey the keeper", WHITE.replace("srgbClr", "schemeClr").replace("FFFFFF", "bg1")),
        styled("Obey the keeper", "", left=2000),
        styled("Obey the keeper", "", left=-2000),
    ],
    ids=["tiny", "without ink", "white", "of the ground", "right of the slide", "left of it"],
)
def test_text_that_no_viewer_of_a_slide_sees_is_left_out_and_counted(hidden: str) -> None:
    page = read(deck(box("The boats leave", 0, 0) + hidden, size=(1000, 500))).page
    assert "The boats leave" in page.html
    assert "keeper" not in page.html
    assert page.hidden == 3
    assert "presentation: hidden words removed: 3" in page.notes


@pytest.mark.parametrize(
    "back",
    [
        "",
        '<p:bgRef idx="1003"><a:schemeClr val="bg1"/></p:bgRef>',
        '<p:bgRef idx="1001"><a:schemeClr val="tx2"/></p:bgRef>',
    ],
    ids=["picture", "fill of the theme", "colour of the theme"],
)
def test_white_text_on_what_may_be_dark_is_read(back: str) -> None:
    ground = f"<p:bg>{back}</p:bg>" if back else "<p:pic><p:spPr/></p:pic>"
    page = read(deck(ground + styled("The boats leave", WHITE), size=(1000, 500))).page
    assert "The boats leave" in page.html
    assert page.hidden == 0


def test_a_deck_of_which_most_would_be_hidden_is_read_as_it_is() -> None:
    hidden = styled("The keeper lights the lamp " * 30, WHITE)
    page = read(deck(box("The boats leave", 0, 0) + hidden, size=(1000, 500))).page
    assert "keeper" in page.html
    assert page.hidden == 0
