"""Dates of pages: what a page says of itself first, then trafilatura, and never a date out of
running text."""

from pathlib import Path

from pipeline.fetch.files import read_file
from readers.html.document import read_document
from readers.page import Page

VISIBLE = (
    '<html><body><article><p class="date">Published: 4 May 2021</p><p>The boat '
    "sails.</p></article></body></html>"
)


def published(html: str) -> str:
    return read_document(Page("http://a/", "http://a/", "", html, "text/html")).page.published


def test_a_date_that_is_only_in_the_text_of_an_article_head_is_found() -> None:
    assert published(VISIBLE) == "2021-05-04"


def test_the_metadata_of_the_page_comes_first() -> None:
    meta = '<meta property="article:published_time" content="2020-01-02T10:00:00Z">'
    assert published(VISIBLE.replace("<body>", f"<head>{meta}</head><body>")) == "2020-01-02"


def test_a_page_without_a_date_has_none() -> None:
    assert published("<p>The boat sails at noon.</p>") == ""


def test_no_date_is_taken_from_what_a_page_cites_or_lists() -> None:
    cited = "<cite>A book. <span>Retrieved 2012-09-08</span></cite>"
    assert (
        published(f"<p>The boat sails.</p><ol class=references><li>{cited}</ol><p>{cited}</p>")
        == ""
    )
    rows = "<table><tr><th>Born<th>Name<tr><td><span class=date>2007-11-26</span><td>Ada</table>"
    assert published(f"<p>The boat sails.</p>{rows}") == ""


def test_no_date_is_taken_out_of_a_text_file(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text(
        "Meeting notes\n\nPublished: 4 May 2021, the boat was repaired.\n", encoding="utf-8"
    )
    assert read_document(read_file(note, roots=[tmp_path])).page.published == ""


def test_an_author_and_a_title_are_found_where_the_page_names_them_only_in_print() -> None:
    head = (
        '<div class="post-author">By <span class="author vcard">Maud Ferrier</span> in 2019</div>'
    )
    page = read_document(
        Page(
            "http://a/",
            "http://a/",
            "",
            f"<body>{head}<article><p>The boat sails.</p></article></body>",
            "text/html",
        )
    )
    assert page.page.author == "Maud Ferrier"
