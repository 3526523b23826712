"""Dates of pages: what a page says of itself first, then trafilatura, and never a date out of running text."""

from pathlib import Path

from pipeline.documents import Page
from pipeline.fetch.files import read_file
from pipeline.html.document import read_document
from pipeline.html.opinion import with_second_opinion

VISIBLE = '<html><body><article><p class="date">Published: 4 May 2021</p><p>The boat sails.</p></article></body></html>'


def published(html: str) -> str:
    return read_document(Page("http://a/", "http://a/", "", html, "text/html")).page.published


def test_a_date_that_stands_only_in_the_text_of_an_article_head_is_found() -> None:
    assert published(VISIBLE) == "2021-05-04"


def test_the_metadata_of_the_page_comes_first() -> None:
    meta = '<meta property="article:published_time" content="2020-01-02T10:00:00Z">'
    assert published(VISIBLE.replace("<body>", f"<head>{meta}</head><body>")) == "2020-01-02"


def test_a_page_without_a_date_has_none() -> None:
    assert published("<p>The boat sails at noon.</p>") == ""


def test_no_date_is_taken_out_of_a_text_file(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("Meeting notes\n\nPublished: 4 May 2021, the boat was repaired.\n", encoding="utf-8")
    assert read_document(read_file(note, roots=[tmp_path])).page.published == ""


def test_an_author_and_a_title_are_found_where_the_page_names_them_only_in_print() -> None:
    head = '<div class="post-author">By <span class="author vcard">Maud Ferrier</span> in 2019</div>'
    page = read_document(
        Page("http://a/", "http://a/", "", f"<body>{head}<article>{PROSE}</article></body>", "text/html")
    )
    assert page.page.author == "Maud Ferrier"


PROSE = "".join(
    f"<p>In the year {year} the harbour of Skellmouth was dredged again, and the {year - 1600} boats that lay there "
    f"for the winter had to move to the inner basin, where {year % 7} families kept watch over them.</p>"
    for year in range(1801, 1813)
)
LOOSE = "".join(f"<p>Card {n}: more of this</p>" for n in range(30))


def main_of(html: str) -> list[str]:
    document = read_document(Page("http://a/", "http://a/", "", html, "text/html"))
    return [block.text for block in with_second_opinion([document])[0].blocks if block.main]


def test_short_lines_far_from_the_main_text_are_furniture() -> None:
    main = main_of(f"<body><div><article>{PROSE}</article></div><div>{LOOSE}</div></body>")
    assert sum("harbour" in text for text in main) == 12
    assert sum("Card" in text for text in main) <= 8


def test_a_page_of_short_lines_only_is_left_as_it_is() -> None:
    assert len(main_of(f"<body>{LOOSE}</body>")) == 30


def test_a_page_that_trafilatura_cannot_read_is_read_all_the_same() -> None:
    assert main_of("<svg><text>nothing</text></svg><p>The boat sails at noon.</p>") == ["The boat sails at noon."]


def test_a_page_that_marks_its_furniture_itself_is_not_overruled() -> None:
    menu = "<nav><ul><li><a href=/>Home</a><li><a href=/news>News</a></ul></nav>"
    main = main_of(f"<body>{menu}<div><article>{PROSE}</article></div><div>{LOOSE}</div></body>")
    assert sum("Card" in text for text in main) == 30
