"""Algorithm 1, and the content units that every other step reads."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.htmlrag.block_tree import block_tree
from readers.html.blocks import content_blocks
from readers.html.clean import clean
from readers.html.document import read_document
from readers.page import Block, Page
from readers.tree import Node, text_of, walk
from tests.support.pages import resolve


def units(html: str) -> tuple[Block, ...]:
    return content_blocks(clean(html))[1]


def texts(html: str, kind: str = "") -> list[str]:
    return [block.text for block in units(html) if not kind or block.kind == kind]


WORDS = st.lists(
    st.sampled_from(["one", "two", "three", "天地", "word."]), min_size=1, max_size=5
).map(" ".join)
JOINERS = {
    "|",
    "/",
}  # what is between the cells of a row, and between the lines of a table inside a cell
TAGS = [
    "div",
    "p",
    "ul",
    "li",
    "span",
    "b",
    "a",
    "section",
    "h2",
    "blockquote",
    "dl",
    "dt",
    "dd",
    "nav",
    "figcaption",
]
TREES = st.recursive(
    WORDS,
    lambda below: st.one_of(
        st.builds(
            lambda tag, items: f"<{tag}>{' '.join(items)}</{tag}>",
            st.sampled_from(TAGS),
            st.lists(below, max_size=5),
        ),
        st.lists(st.lists(below, min_size=1, max_size=3), min_size=1, max_size=3).map(
            lambda rows: (
                "<table>"
                + "".join(
                    "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows
                )
                + "</table>"
            )
        ),
    ),
    max_leaves=25,
)


@pytest.mark.slow
@given(TREES, st.integers(1, 30))
@settings(max_examples=400, deadline=None)
def test_every_word_is_in_exactly_one_block_of_the_tree_and_paths_resolve(
    html: str, max_words: int
) -> None:
    root = clean(html)
    blocks = block_tree(root, max_words=max_words)
    assert Counter(word for block in blocks for word in block.text.split()) == Counter(
        split_words(root)
    )
    assert len({block.path for block in blocks}) == len(blocks)
    for block in blocks:
        node = resolve(root, block.path)
        assert node is not None
        assert block.text in {text_of(node), own_text(node)}


@pytest.mark.slow
@given(TREES)
@settings(max_examples=600, deadline=None)
def test_every_word_is_in_exactly_one_content_unit_and_paths_resolve(html: str) -> None:
    root = clean(html)
    text, blocks = content_blocks(root)
    have = Counter(
        word for word in text.replace(": ", " ").replace(", ", " ").split() if word not in JOINERS
    )
    assert have == Counter(text_of(root).split())
    assert len({block.path for block in blocks}) == len(blocks)
    last = -1
    for block in blocks:
        assert last < block.start < block.end
        last = block.end
        node = resolve(root, block.path)
        assert node is not None
        assert set(text[block.start : block.end].split()) - JOINERS <= set(
            text_of(root).replace(": ", " ").split()
        ) | {word + end for word in text_of(root).split() for end in ":,"}


def split_words(root: Node) -> list[str]:
    """Words as block texts hold them: cut where an inline element begins or ends, as Algorithm 1
    does."""
    return text_of(root).split()


def own_text(node: Node) -> str:
    return " ".join(" ".join(child for child in node.children if isinstance(child, str)).split())


def test_units_carry_the_headings_above_them() -> None:
    html = "<h1>A</h1><p>a</p><h2>B</h2><p>b</p><h3>C</h3><p>c</p><h2>D</h2><p>d</p><aside><h2>E</h2>e</aside><p>f</p>"
    assert {block.text: block.heading_path for block in units(html) if block.kind != "heading"} == {
        "a": ("A",),
        "b": ("A", "B"),
        "c": ("A", "B", "C"),
        "d": ("A", "D"),
        "e": ("A", "E"),
        "f": ("A", "D"),
    }


@pytest.mark.parametrize(
    ("html", "heading"),
    [
        ("<dl><dt>a</dt><dd>b<div><h3>Note</h3><p>c</p></div></dd><dt>d</dt><dd>{}</dd></dl>", "A"),
        ("<div><h2>B</h2><p>a</p></div><p>{}</p>", "B"),
        ("<p>a</p><div><h2>B</h2></div><div>{}</div>", "B"),
    ],
    ids=["in a definition", "first", "head of a section"],
)
def test_the_heading_of_a_note_in_a_definition_ends_with_it(html: str, heading: str) -> None:
    blocks = units(f"<h1>A</h1>{html.format('what follows')}")
    found = next(block for block in blocks if "what follows" in block.text)
    assert found.heading_path[-1] == heading


def test_rows_read_under_their_headers_and_stand_as_on_the_page() -> None:
    html = "<table><caption>Cities</caption><tr><th>City<th>Size<tr><td>Rome<td>3<tr><td>Oslo<td>1</table>"
    text, blocks = content_blocks(clean(html))
    assert [(block.kind, block.text, text[block.start : block.end]) for block in blocks] == [
        ("caption", "Cities", "Cities"),
        ("row", "City | Size", "City | Size"),
        ("row", "City: Rome; Size: 3", "Rome | 3"),
        ("row", "City: Oslo; Size: 1", "Oslo | 1"),
    ]
    assert blocks[2].cells == ("Rome", "3")
    assert blocks[2].lead == "Cities\n| City | Size |"


def test_spans_are_resolved_and_cells_are_carried_to_each_row_that_they_cover() -> None:
    html = (
        "<table><tr><th rowspan=2>Year<th colspan=2>Score<tr><th>Home<th>Away"
        "<tr><td rowspan=2>2001<td>1<td>2<tr><td>3<td>4</table>"
    )
    text, blocks = content_blocks(clean(html))
    assert [block.text for block in blocks[2:]] == [
        "Year: 2001; Score Home: 1; Score Away: 2",
        "Year: 2001; Score Home: 3; Score Away: 4",
    ]
    assert blocks[3].cells == ("2001", "3", "4")
    assert text.endswith("2001 | 3 | 4")


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (  # as Workiva writes a filing
            "<tr><td colspan=3><td colspan=3><td colspan=9>Year ended 31 May"
            "<tr><td colspan=3>(in thousands)<td colspan=3><td colspan=3>2025<td colspan=3><td colspan=3>2024"
            "<tr><td colspan=3>Tolls<td colspan=3><td>$<td>120<td><td colspan=3><td>$<td>98<td>"
            "<tr><td colspan=3>Loss<td colspan=3><td colspan=2>(4<td>)<td colspan=3><td colspan=2>—<td>",
            [
                ("", "Year ended 31 May"),
                ("(in thousands)", "2025", "2024"),
                ("Tolls", "$120", "$98"),
                ("Loss", "(4)", "—"),
            ],
        ),
        (  # with the percent sign, and columns that only keep others apart
            "<tr><th><th><th>2025<th><th><th>2024<th>"
            "<tr><td>Share<td><td>12.5<td>%<td><td>(3<td>)%<tr><td>Rest<td><td>87.5<td><td><td>9<td>",
            [("", "2025", "2024"), ("Share", "12.5%", "(3)%"), ("Rest", "87.5", "9")],
        ),
        (  # a column that is named holds values of its own
            "<tr><th>Key<th>Sign<th>Code<tr><td>a<td>$<td>36<tr><td>b<td>%<td>37",
            [("Key", "Sign", "Code"), ("a", "$", "36"), ("b", "%", "37")],
        ),
        (  # nor is a sign beside words part of them
            "<tr><td>Gulls<td>$<td>dear<tr><td>Terns<td>$<td>cheap",
            [("Gulls", "$", "dear"), ("Terns", "$", "cheap")],
        ),
        (
            "<tr><td>a<td><td>1<tr><td>b<td><td>2",
            [("a", "", "1"), ("b", "", "2")],
        ),
    ],
)
def test_a_value_whose_sign_is_in_a_cell_of_its_own_is_one_cell(
    table: str, rows: list[tuple[str, ...]]
) -> None:
    assert [block.cells for block in units(f"<table>{table}</table>")] == rows


def test_a_bar_in_a_cell_begins_no_further_one() -> None:
    html = "<table><tr><th>Stop<th>Trip 1<th>Trip 3<tr><td>Mill<td>07:13<td>|</table>"
    text, blocks = content_blocks(clean(html))
    assert text.endswith("Mill | 07:13 | \\|")
    assert blocks[-1].cells == ("Mill", "07:13", "|")


def test_a_row_across_the_table_heads_the_rows_below_it() -> None:
    html = "<table><tr><th>A<th>B<tr><td colspan=2>North<tr><td>1<td>2</table>"
    assert units(html)[-1].lead == "North\n| A | B |"


def test_infobox_rows_read_label_and_value() -> None:
    html = "<table><tr><th>Born<td>1815, London<tr><th>Died<td>1852</table>"
    assert texts(html) == ["Born: 1815, London", "Died: 1852"]


@pytest.mark.parametrize(
    "html",
    [
        "<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>",
        "<table><tr><td>only<tr><td>one column</table>",
        "<table><tr><td><table><tr><td>in<td>ner</table><td>x</table>",
        f"<table><tr><td><h2>Head</h2>{'text of a column ' * 20}<td>side<tr><td>x<td>y</table>",
    ],
)
def test_layout_tables_are_read_as_ordinary_blocks(html: str) -> None:
    assert units(html)[0].kind != "row"


def test_nested_lists_keep_their_items_apart_with_their_lead_in() -> None:
    html = "<p>We need:</p><ul><li>flour<ul><li>white<li>brown</ul><li>salt</ul>"
    blocks = units(html)
    assert [(block.kind, block.text, block.lead) for block in blocks] == [
        ("paragraph", "We need:", ""),
        ("item", "flour", "We need:"),
        ("item", "white", "flour"),
        ("item", "brown", "flour"),
        ("item", "salt", "We need:"),
    ]


def test_definitions_read_term_and_definition() -> None:
    html = "<dl><dt>HTML<dd>a language<dt>CSS<dt>Style<dd>rules<dd>more<dt>alone</dl>"
    assert texts(html, "definition") == ["HTML: a language", "CSS, Style: rules", "more", "alone"]


def test_code_is_one_unit_with_its_line_breaks_and_long_code_is_cut_at_empty_lines() -> None:
    assert texts("<pre>a = 1\n\n  b = 2\n</pre>", "code") == ["a = 1\n\n  b = 2"]
    long = "\n\n".join("\n".join(f"line {i} {j}" for j in range(12)) for i in range(6))
    parts = texts(f"<pre>{long}</pre>", "code")
    assert len(parts) > 1
    assert "\n\n".join(parts) == long


def test_two_line_breaks_end_a_paragraph_and_one_does_not() -> None:
    assert texts("<div>one<br>two<br><br>three</div>") == ["one two", "three"]


def test_navigation_and_link_lists_are_not_main_and_linked_prose_is() -> None:
    html = (
        "<nav><a>Home</a> <a>Shop</a></nav><p>A sentence of the article that <a>links</a> to "
        "something else.</p>"
        "<ul><li><a>One</a><li><a>Two</a><li><a>Three</a></ul><footer><p>© 2020 Somebody, "
        "address</p></footer>"
        "<p>Another paragraph that has enough words to be the larger part of this page, and says "
        "a little more.</p>"
    )
    main = {block.text.split()[0]: block.main for block in units(html)}
    assert main == {
        "Home": False, "A": True, "One": False, "Two": False, "Three": False, "©": False, "Another": True,
    }  # fmt: skip


def test_pickers_of_links_are_furniture_where_menus_hold_nearly_all_words() -> None:
    links = " ".join(f"<a href='?l={n}'>language number {n}</a>" for n in range(45))
    pickers = f"<div class=select-menu>{links}</div>" * 2
    html = (
        f"<main>{pickers}<div class=menu>Three boats and their crews</div><p>Two left.</p></main>"
    )
    assert [block.text for block in units(html) if block.main] == [
        "Three boats and their crews",
        "Two left.",
    ]


def test_a_document_holds_what_the_page_says_of_itself() -> None:
    html = (
        '<html lang="de-AT"><head><title>Ein Titel | Seite</title><meta name=author content="Eva '
        'Muster">'
        '<script type="application/ld+json">{"@type":"Article","datePublished":"2021-05-04T10:00:00Z"}</script>'
        "</head><body><h1>Ein Titel</h1><p>Text</p>"
    )
    page = read_document(Page("u", "u", "", html, "text/html")).page
    assert (page.title, page.author, page.published, page.language) == (
        "Ein Titel",
        "Eva Muster",
        "2021-05-04",
        "de",
    )
    kept = read_document(Page("u", "u", "Given", html, "text/html", author="Other")).page
    assert (kept.title, kept.author) == ("Given", "Other")


def test_a_client_side_page_is_read_from_its_data() -> None:
    story = "The river rose by two metres in one night and took the old bridge with it. " * 3
    body = f"<p>{story}</p><p>Second part of it all.</p>"
    state = '{"props":{"page":{"title":"Flood","body":"' + body + '","id":"a-b"}}}'
    html = f'<div id=app></div><script id=__NEXT_DATA__ type="application/json">{state}</script>'
    document = read_document(Page("u", "u", "", html, "text/html"))
    assert [block.text for block in document.blocks] == [
        "Flood",
        story.strip(),
        "Second part of it all.",
    ]
    assert document.page.notes
    linked = (
        '<script type="application/ld+json">{"@type":"Article","headline":"H","articleBody":"'
        + story
        + '"}</script>'
    )
    assert "old bridge" in read_document(Page("u", "u", "", linked, "text/html")).text


def test_a_page_without_text_gives_a_document_without_blocks() -> None:
    for html in ("", "<script>x</script>", "<html><body></body></html>"):
        document = read_document(Page("u", "u", "", html, "text/html"))
        assert (document.blocks, document.text) == ((), "")


def test_headings_of_real_pages_keep_their_sections(shared: Path) -> None:
    pages = sorted((shared / "data" / "pages").glob("*.html.gz"))[::40]
    if not pages:
        pytest.skip("../shared/data/pages is not beside this checkout")
    for path in pages:
        root = clean(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
        text, blocks = content_blocks(root)
        assert len({block.path for block in blocks}) == len(blocks)
        assert all(0 <= block.start < block.end <= len(text) for block in blocks)
        words = Counter(
            word for node in walk(root) if node.tag == "body" for word in text_of(node).split()
        )
        lost = words - Counter(text.replace(" | ", " ").split())
        assert lost.total() <= 0.02 * words.total() + 5


def test_one_articles_heading_does_not_name_what_the_next_begins_with() -> None:
    names = ("Dune", "Ember", "Fjord")
    cards = "".join(
        f"<article><p>By Mill House</p><h2>{name} kettle</h2><p>{name} costs 30 crowns</p></article>"
        for name in names
    )
    found = units(f"<h1>Kettles</h1><div>{cards}</div>")
    paths = [block.heading_path for block in found if block.text == "By Mill House"]
    assert paths == [("Kettles",)] * len(names)
