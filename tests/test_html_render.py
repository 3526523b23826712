"""How a selection of units is written: HTML that nests, Markdown that a parser reads as meant,
definitions in lists."""

import re
from collections import Counter

import pytest
from markdown_it import MarkdownIt

from pipeline.evidence.forms import Form
from pipeline.evidence.render import Kept, Style, render
from readers.html.document import read_document
from readers.page import Document, Page
from tests.support.html_budgets import nests

FORMS: tuple[Form, ...] = ("html", "markdown", "text")


def document(html: str) -> Document:
    return read_document(Page("http://a/dir/page", "http://a/dir/page", "", html, "text/html"))


def written(html: str, texts: tuple[str, ...], style: Style) -> str:
    one = document(html)
    found = [
        number
        for number, block in enumerate(one.blocks)
        if any(text in block.text for text in texts)
    ]
    return render(one, [Kept(number) for number in found], style)


LISTS = (
    "<h1>Bread</h1><p>You "
    "need:</p><ul><li>flour<li>water<ol><li>cold<li>filtered<li>still</ol><li>salt</ul>"
    "<p>Wait.</p>"
)
TABLE = (
    "<h2>Rivers</h2><table><caption>Longest</caption><tr><th><th>km|mi<th>Sea<tr><td "
    "colspan=3>Europe"
    "<tr><td>Volga<td>3531<td>Caspian<tr><td>Ural<td>2428<td>Caspian"
    "<tr><td colspan=3>Asia<tr><td>Yangtze<td>6300<td>Pacific<tr><td>Mekong<td>4350<td></table><p>After.</p>"
)


def test_nested_lists_keep_their_nesting_and_numbers() -> None:
    texts = ("flour", "water", "cold", "still", "salt", "Wait")
    assert written(LISTS, texts, Style("markdown")) == (
        "# Bread\n\nYou need:\n\n- flour\n- water\n  1. cold\n  3. still\n- salt\n\nWait."
    )
    assert written(LISTS, texts, Style("html")) == (
        "<h1>Bread</h1><p>You need:</p><ul><li>flour</li><li>water<ol><li>cold</li><li "
        "value=3>still</li></ol></li>"
        "<li>salt</li></ul><p>Wait.</p>"
    )


def test_a_nested_item_without_the_item_around_it_is_at_the_margin() -> None:
    text = written(LISTS, ("filtered", "salt"), Style("markdown"))
    assert "\n2. filtered\n" in text
    assert text.splitlines()[-2:] == ["", "- salt"]
    assert nests(written(LISTS, ("filtered", "salt"), Style("html")))


def test_rows_stand_under_header_caption_and_group_and_pipes_in_cells_are_escaped() -> None:
    text = written(TABLE, ("Ural", "Yangtze", "Mekong", "After"), Style("markdown"))
    assert text == (
        "# Rivers\n\nLongest\n\nEurope\n\n|  | km\\|mi | Sea |\n-|-|-\nUral | 2428 | Caspian\n| "
        "Asia |\n"
        "Yangtze | 6300 | Pacific\nMekong | 4350\n\n… 1 other row\n\nAfter."
    )


def test_html_closes_every_cell_row_and_item() -> None:
    html = written(TABLE, ("Volga", "Ural"), Style("html"))
    assert html.endswith(
        "<table><tr><th></th><th>km|mi</th><th>Sea</th></tr><tr><td>Volga</td><td>3531</td><td>Caspian</td></tr>"
        "<tr><td>Ural</td><td>2428</td><td>Caspian</td></tr></table><p>… 2 other rows</p>"
    )
    rest = written(LISTS, ("flour", "cold", "still"), Style("html")) + html
    for tag in ("p", "li", "ul", "ol", "tr", "td", "th", "table"):
        assert len(re.findall(rf"<{tag}[ >]", rest)) == rest.count(f"</{tag}>") > 0


def test_under_the_page_s_title_no_heading_repeats_it() -> None:
    assert written(LISTS, ("Wait",), Style("markdown", titled=True)) == "Wait."


def test_headings_above_share_a_line_and_are_written_once() -> None:
    html = "<h1>A</h1><h2>B</h2><h3>C</h3><p>one</p><h3>D</h3><p>two</p><h2>E</h2><p>three</p>"
    texts = ("one", "two", "three")
    assert written(html, texts, Style("text")) == "A › B › C\none\nD\ntwo\nE\nthree"
    assert (
        written(html, texts, Style("markdown"))
        == "### A › B › C\n\none\n\n### D\n\ntwo\n\n## E\n\nthree"
    )


def test_a_fence_is_longer_than_any_in_the_listing() -> None:
    text = written("<pre>a\n````\nb</pre>", ("a",), Style("markdown"))
    assert text == "`````\na\n````\nb\n`````"


def test_markup_in_text_is_escaped_in_html_and_verbatim_elsewhere() -> None:
    html = "<p>Use &lt;b&gt; &amp; go</p>"
    assert written(html, ("Use",), Style("html")) == "<p>Use &lt;b&gt; &amp; go</p>"
    assert written(html, ("Use",), Style("markdown")) == "Use <b> & go"


def test_definitions_stand_in_a_list_of_their_own() -> None:
    text = written(
        "<dl><dt>Ebb<dd>falling tide<dt>Flow<dd>rising tide</dl><p>Sea.</p>",
        ("tide", "Sea"),
        Style("html"),
    )
    assert (
        text
        == "<dl><dt>Ebb</dt><dd>falling tide</dd><dt>Flow</dt><dd>rising tide</dd></dl><p>Sea.</p>"
    )


def test_a_markdown_reader_finds_the_tables_lists_and_listings_that_were_written() -> None:
    html = (
        f"{LISTS}{TABLE}<pre>x = "
        f"1\n```\n</pre><table><tr><th>one<td>2<tr><th>three<td>4</table><p>End.</p>"
    )
    texts = (
        "need",
        "flour",
        "water",
        "cold",
        "salt",
        "Wait",
        "Volga",
        "Ural",
        "After",
        "x = 1",
        "one",
        "three",
        "End",
    )
    tokens = MarkdownIt("commonmark").enable("table").parse(written(html, texts, Style("markdown")))
    kinds = Counter(token.type for token in tokens)
    assert (
        kinds["table_open"],
        kinds["fence"],
        kinds["bullet_list_open"],
        kinds["ordered_list_open"],
    ) == (2, 1, 1, 1)
    assert [token.content for token in tokens if token.content in {"Wait.", "After.", "End."}] == [
        "Wait.",
        "After.",
        "End.",
    ]


def test_a_table_without_a_head_is_written_without_an_empty_one() -> None:
    html = "<table><tr><td>Length<td>4.2 m<tr><td>Width<td>1.8 m</table>"
    assert (
        written(html, ("Length", "Width"), Style("markdown"))
        == "Length | 4.2 m\n-|-\nWidth | 1.8 m"
    )


@pytest.mark.parametrize("form", FORMS)
def test_nothing_kept_is_nothing_written(form: Form) -> None:
    assert render(document(LISTS), [], Style(form)) == ""
