"""Dates and authors of pages: what the markup states, or words that call a date the page's; never
another date of the text."""

import pytest

from readers import read
from readers.page import Page

VISIBLE = (
    '<html><body><article><p class="date">Published: 2021-05-04</p><p>The boat '
    "sails.</p></article></body></html>"
)


def page_of(html: str) -> Page:
    return read(html.encode(), content_type="text/html; charset=utf-8").page


def published(html: str) -> str:
    return page_of(html).published


def test_a_date_that_the_text_calls_the_pages_is_found() -> None:
    assert published(VISIBLE) == "2021-05-04"


def test_the_metadata_of_the_page_comes_first() -> None:
    meta = '<meta property="article:published_time" content="2020-01-02T10:00:00Z">'
    assert published(VISIBLE.replace("<body>", f"<head>{meta}</head><body>")) == "2020-01-02"


def test_a_page_without_a_date_has_none() -> None:
    assert published("<p>The boat sails at noon.</p>") == ""


def test_a_date_of_an_example_a_listing_or_one_post_of_several_is_not_the_pages() -> None:
    for text in (
        "<pre>borg mount repo::server-2019-08-11 /mnt</pre>",
        "<p>Assume that it is 2016-01-01.</p>",
        "<pre>Build time: 2025-07-04 10:00</pre>",
        "<p>Updated 2020-01-01</p><p>Updated 2021-01-01</p>",
        "<article><p>By Ann Ray, 4 May 2021: a fine tool.</p></article>",
    ):
        page = page_of(text)
        assert (page.published, page.author) == ("", ""), text


def test_no_date_is_taken_from_what_a_page_cites_or_lists() -> None:
    cited = "<cite>A book. <span>Retrieved 2012-09-08</span></cite>"
    assert (
        published(f"<p>The boat sails.</p><ol class=references><li>{cited}</ol><p>{cited}</p>")
        == ""
    )
    rows = "<table><tr><th>Born<th>Name<tr><td><span class=date>2007-11-26</span><td>Ada</table>"
    assert published(f"<p>The boat sails.</p>{rows}") == ""


@pytest.mark.parametrize("date", ["4 May 2021", "2021-05-04"])
def test_no_date_is_taken_out_of_a_text_file(date: str) -> None:
    note = f"Meeting notes\n\nPublished: {date}, the boat was repaired.\n"
    assert read(note.encode(), name="note.txt").page.published == ""


def test_an_author_and_a_title_are_found_where_the_page_names_them_only_in_print() -> None:
    head = (
        '<div class="post-author">By <span class="author vcard">Maud Ferrier</span> in 2019</div>'
    )
    page = page_of(f"<body>{head}<article><p>The boat sails.</p></article></body>")
    assert page.author == "Maud Ferrier"
