"""Scanned pages and images are recognised where the extra `ocr` is installed, and said to be; else
it is named."""

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from pypdf import PdfReader, PdfWriter, Transformation

from errors import SourceUnreadable
from pipeline.conversion.converter import Converter
from pipeline.fetch.files import Files
from pipeline.search.folder import FolderProvider
from pipeline.search.query import SearchQuery
from readers.convert import Raw, to_page
from readers.html.document import read_document
from readers.media.image_file import ImageReading
from readers.page import Page
from tests.support import ROOT, Connect, Site, data_of, text_of
from tests.support.extras import need
from tests.support.pdf import make_pdf

need("ocr")

from tests.support.hostile_scans import cost, ended, png  # noqa: E402  Pillow comes with the extra
from tests.support.scans import FONTS, UNKNOWN, as_bytes, printed  # noqa: E402  as above

if not all(path.exists() for path in FONTS.values()):
    pytest.skip(
        "Debian's fonts-liberation and fonts-dejavu-core are not installed", allow_module_level=True
    )

pytestmark = pytest.mark.slow

DROID = Path("/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf")
"""Has Chinese, of Debian's fonts-droid-fallback."""
HARBOUR = (
    "# The harbour of Orvane",
    "",
    "The lighthouse of Orvane was built in 1812 on the northern pier.",
    "Its lamp turns once a minute, and ships see it in clear nights.",
    "",
    "The basin in front of the old quay is 41.5 metres deep at low tide.",
)


def read(body: bytes, name: str) -> Page:
    return to_page(Raw(body, f"file:///{name}", f"file:///{name}", name=name))


def scanned(lines: Sequence[str] = HARBOUR, *, kind: str = "PNG", font: str = "serif") -> bytes:
    return as_bytes([printed(lines, font=FONTS[font])], kind)


@pytest.mark.anyio
async def test_questions_find_the_words_of_scans_with_page_and_box_labelled_as_recognised(
    connect: Connect, tmp_path: Path, site: Site
) -> None:
    (tmp_path / "report.pdf").write_bytes(scanned(kind="PDF"))
    (tmp_path / "photo.jpg").write_bytes(scanned(kind="JPEG", font="sans"))
    web = site.put("/notice.webp", scanned(kind="WEBP", font="mono"), kind="image/webp")
    sources = {
        str(tmp_path / "report.pdf"): "#page=1&xywh=",
        str(tmp_path / "photo.jpg"): "#xywh=",
        web: "#xywh=",
    }
    asked = {
        "When was the lighthouse of Orvane built?": "1812",
        "How deep is the basin at the old quay?": "41.5 metres",
    }
    async with connect(
        folders=str(tmp_path), cache=str(tmp_path / ".cache"), seconds="300", networks="loopback"
    ) as client:
        for source, place in sources.items():
            for question, words in asked.items():
                given = {"question": question, "sources": [source], "max_tokens": 512}
                result = await client.call_tool("extract_relevant", given)
                text = text_of(result)
                assert words in text, (source, text)
                assert "[recognised]" in text
                evidence = data_of(result)["passages"][0]
                assert evidence["trust"] == "recognised"
                assert evidence["link"].startswith(place)


def test_of_a_pdf_with_some_scanned_pages_only_their_words_are_marked() -> None:
    writer = PdfWriter()
    for body in (
        make_pdf([[("The council met in the old town hall of Piran.", 11)]]),
        scanned(kind="PDF"),
    ):
        writer.append(PdfReader(io.BytesIO(body)))
    out = io.BytesIO()
    writer.write(out)
    page = read(out.getvalue(), "minutes.pdf")
    trusts = {block.place.partition("&")[0]: block.trust for block in read_document(page).blocks}
    assert trusts == {"page=1": "visible", "page=2": "recognised"}
    assert page.trust == "visible"
    assert any("OCR: " in note and "read: 1 of 2" in note for note in page.notes)


def test_columns_are_read_one_after_the_other_and_rows_of_a_table_across() -> None:
    left, right = "from the left column, line", "from the right one, line"
    columns = [f"{number} {left} {number}.\t\t{number} {right} {number}." for number in range(4)]
    table = ["City\tDepth\tYear", "Porto\t12.5\t1998", "Lisbon\t8.25\t2004", "Braga\t31.0\t2011"]
    html = read(
        scanned(
            [
                *columns,
                "",
                "A line across the page says that a table of three cities follows below it.",
                *table,
            ]
        ),
        "a.png",
    ).html
    assert html.index(f"{left} 3") < html.index(f"{right} 0")
    assert "<td>Lisbon</td><td>8.25</td><td>2004</td>" in html


def test_a_stamp_on_a_scanned_page_does_not_keep_its_image_from_being_read() -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(scanned(kind="PDF"))))
    stamp = PdfReader(io.BytesIO(make_pdf([[("Page 7", 9)]]))).pages[0]
    writer.pages[0].merge_transformed_page(stamp, Transformation().translate(0, -700))
    out = io.BytesIO()
    writer.write(out)
    assert "41.5 metres deep" in read(out.getvalue(), "stamped.pdf").html


def test_what_one_reading_has_no_time_for_is_said_with_the_pages_that_go_on() -> None:
    many = [
        printed(
            [*HARBOUR, f"This is sheet {number} of the book.", *HARBOUR * 2], font=FONTS["serif"]
        )
        for number in range(1, 5)
    ]
    body = as_bytes(many, "TIFF")
    reading = ImageReading(
        body, scan_seconds=0.01
    )  # however fast the machine, a sheet takes longer
    reading.read(60.0)
    page = to_page(Raw(body, "file:///book.tiff", "file:///book.tiff"), pdf=reading)
    assert "had no time to recognise" in page.unread
    first, last = page.rest.rpartition("#pages=")[2].split("-")
    assert (first, last) == ("2", "4")
    assert f"sheet {int(first) - 1}" in page.html
    assert f"sheet {first} of" not in page.html
    further = to_page(
        Raw(body, "file:///book.tiff", "file:///book.tiff", span=(int(first), int(first)))
    )
    assert f"sheet {first}" in further.html
    assert f'data-place="page={first}&amp;xywh=' in further.html


@pytest.mark.parametrize("language", UNKNOWN)
def test_print_in_a_writing_that_the_recogniser_does_not_know_is_said_and_never_text(
    language: str,
) -> None:
    with pytest.raises(
        SourceUnreadable, match=f"{len(UNKNOWN[language])} lines of text that OCR could not read"
    ):
        read(scanned(UNKNOWN[language], font="sans"), "a.png")


def test_lines_in_an_unknown_writing_beside_print_are_reported_as_unread() -> None:
    page = read(scanned([*HARBOUR, "", *UNKNOWN["Russian"][:2]], kind="PDF", font="sans"), "a.pdf")
    assert "41.5 metres deep" in page.html
    assert "2 lines of text that OCR could not read" in page.unread
    assert page.html.count("1812") == 1


@pytest.mark.parametrize(
    ("font", "line"),
    [
        (FONTS["sans"], "Das Schloss wurde im Jahr 1790 für die Fürstin Änne Größ errichtet."),
        (FONTS["serif"], "Ships: 1,000,000,000 and 0 0 0 0"),
        (FONTS["mono"], "Depth: 41.50 metres   9.00 metres"),
        (DROID, "旧码头前的港池深三十米，大船须等待涨潮。"),
    ],
)
def test_print_in_known_writings_is_read_whole(font: Path, line: str) -> None:
    if not font.exists():
        pytest.skip(f"the font {font.name} is not installed")
    page = read(as_bytes([printed([line], font=font)], "PNG"), "a.png")
    assert not page.unread
    assert "".join(line.split()) in "".join(page.html.split())


def test_an_image_without_print_says_so() -> None:
    blank = as_bytes([printed([""], font=FONTS["serif"])], "PNG")
    with pytest.raises(SourceUnreadable, match="images without text"):
        read(blank, "blank.png")


def test_an_image_of_more_pixels_than_a_sheet_has_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(SourceUnreadable, match="60,000 × 60,000 pixels"):
        read(png(60_000, 60_000), "bomb.png")


@pytest.mark.anyio
async def test_words_of_scans_are_searched_once_other_documents_are_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "a-scan.pdf").write_bytes(scanned(kind="PDF"))
    (tmp_path / "b-scan.png").write_bytes(scanned(HARBOUR[:3]))
    (tmp_path / "minutes.pdf").write_bytes(
        make_pdf([[(f"Line {n} of the council's minutes.", 11) for n in range(90)]] * 9)
    )
    async with aclosing(Converter(None, processes=1)) as converter:
        folder = FolderProvider(
            [tmp_path], None, files=Files([tmp_path], converter=converter), seconds=300
        )
        found = await folder.search(SearchQuery("lighthouse of Orvane"), limit=5)
    assert {Path(result.url).name for result in found.results} == {"a-scan.pdf", "b-scan.png"}
    assert not found.unread


@pytest.mark.anyio
async def test_hostile_images_and_pdfs_end_typed_in_bounds() -> None:
    assert await ended((await cost())[1]) == []


def test_without_the_extra_its_name_is_reported(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(scanned(kind="PDF"))
    (tmp_path / "scan.png").write_bytes(scanned())
    for name in ("scan.pdf", "scan.png"):
        code = (
            "import sys; sys.modules['rapidocr'] = None\nfrom pathlib import Path\n"
            f"from pipeline.fetch.files import read_file\nread_file(Path({name!r}), "
            f"roots=[Path({str(tmp_path)!r})])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "SourceUnreadable" in done.stderr
        assert "extra ocr (winnow doctor)" in done.stderr
