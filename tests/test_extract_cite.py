"""Citations: text fragments that a browser resolves to the words that were meant."""

import gzip
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from pipeline.document.cite import cite
from pipeline.document.units import tag_sentences
from readers.html.document import read_document
from readers.page import Block, BlockKind, Document, Page
from tests.support.waiting import bounded

BASE = "https://example.org/a?b=1"


def document(*units: tuple[BlockKind, str, tuple[str, ...]], url: str = BASE) -> Document:
    """A document whose text is the units, one a line, on the tree of an empty page."""
    empty = read_document(Page(url, url, "T", "<p>x</p>", "text/html"))
    blocks: list[Block] = []
    text = ""
    for number, (kind, unit, cells) in enumerate(units, start=1):
        start = len(text)
        text += unit + "\n"
        blocks.append(
            Block(
                f"p{number}",
                (),
                unit,
                "",
                kind=kind,
                start=start,
                end=start + len(unit),
                cells=cells,
            )
        )
    return Document(empty.page, "", text, tuple(blocks), empty.root)


def fragment(doc: Document, words: str) -> str:
    start = doc.text.index(words)
    return cite(doc, start, start + len(words)).partition("#:~:text=")[2]


def test_special_characters_are_encoded() -> None:
    doc = document(("paragraph", "It is 1,149 m long & well-known – très bien.", ()))
    assert fragment(doc, "It is 1,149 m long & well-known – très bien.") == (
        "It%20is%201%2C149%20m,%26%20well%2Dknown%20%E2%80%93%20tr%C3%A8s%20bien"
    )


def test_a_long_text_is_cited_by_its_first_and_last_words_in_order() -> None:
    words = (
        "The bridge across the harbour was opened in the spring of 1932 after eight years of "
        "work by many hands."
    )
    start, end = fragment(document(("paragraph", words, ())), words).split(",")
    assert words.startswith(unquote(start))
    assert unquote(start) == "The bridge across the"
    assert unquote(end) == "work by many hands"
    assert not unquote(start).endswith(" ")


def test_the_urls_own_fragment_is_dropped_and_files_are_cited_too() -> None:
    doc = document(("paragraph", "Some words.", ()), url="https://example.org/a#old")
    assert cite(doc, 0, 11) == "https://example.org/a#:~:text=Some%20words"
    doc = document(("paragraph", "Some words.", ()), url="file:///notes/a%20b.md")
    assert cite(doc, 0, 11) == "file:///notes/a%20b.md#:~:text=Some%20words"


def test_words_that_stand_earlier_as_well_get_the_words_before_them_as_context() -> None:
    doc = document(("paragraph", "It opened in 1932. Some say it opened in 1932.", ()))
    start = doc.text.rindex("it opened")
    assert cite(doc, start, start + 17).endswith("#:~:text=say-,it%20opened%20in%201932")


def test_a_row_is_cited_from_its_first_telling_cell_to_its_last_cell() -> None:
    doc = document(
        ("row", "1\tSydney\t1932", ("1", "Sydney", "1932")),
        ("row", "1\tSan Francisco\t1937", ("1", "San Francisco", "1937")),
    )
    assert fragment(doc, "1\tSan Francisco\t1937") == "San%20Francisco,1937"


def test_a_span_over_blocks_takes_start_and_end_from_one_block_each() -> None:
    doc = document(
        ("heading", "Opening hours", ()), ("item", "Monday", ()), ("item", "Tuesday to Friday", ())
    )
    assert cite(doc, 0, len(doc.text)).endswith("#:~:text=Opening%20hours,Tuesday%20to%20Friday")


def test_a_run_that_ends_in_a_table_ends_in_one_cell_of_its_last_row() -> None:
    doc = document(
        ("paragraph", "The longest rivers:", ()),
        ("row", "Volga | 3530 km", ("Volga", "3530 km")),
        ("row", "Ural | 2428 km", ("Ural", "2428 km")),
    )
    assert cite(doc, 0, len(doc.text)).endswith("#:~:text=The%20longest%20rivers,2428%20km")


def test_a_run_ends_in_an_earlier_cell_where_the_last_one_reads_like_one_above() -> None:
    doc = document(
        ("row", "North pier | open", ("North pier", "open")),
        ("row", "South pier | open", ("South pier", "open")),
    )
    assert cite(doc, 0, len(doc.text)).endswith("#:~:text=North%20pier,South%20pier")


def test_words_before_a_line_break_in_a_cell_are_no_context() -> None:
    html = "<table><tr><td>Ann<td>Out<br>(day 17)<tr><td>Bea<td>In<tr><td>Bea<td>In</table>"
    doc = read_document(Page(BASE, BASE, "", f"<p>Ann and Bea, In and Out.</p>{html}", "text/html"))
    start = doc.text.index("Bea | In")
    assert cite(doc, start, start + len("Bea | In")).endswith("#:~:text=17%29-,Bea,In")


def test_code_is_cited_within_its_lines() -> None:
    doc = document(("code", "import sys\nprint(sys.argv)", ()))
    assert fragment(doc, "import sys\nprint(sys.argv)") == "import%20sys,print%28sys.argv"


def test_chinese_is_cut_at_its_commas() -> None:
    words = "路德的著作广为流传，早在一五一九年就传到了法国、英格兰和意大利，"
    words += "学生们涌入威腾博格去听路德的演讲，他发表了一篇短评。"
    start, end = fragment(document(("paragraph", words, ())), words).split(",")
    assert words.startswith(unquote(start))
    assert words.rstrip("。").endswith(unquote(end))
    assert words[len(unquote(start))] in "，、"


@pytest.mark.parametrize(("start", "end"), [(0, 0), (11, 12), (5, 2), (-4, 0), (99, 120)])
def test_a_span_without_visible_text_gives_the_bare_url(start: int, end: int) -> None:
    assert cite(document(("paragraph", "Some words.", ())), start, end) == BASE


def resolve(text: str, directive: str) -> int:
    """Where a browser's search for a text directive begins to highlight, -1 where it finds
    nothing."""
    parts = directive.split(",")
    prefix = unquote(parts.pop(0)[:-1]) if parts[0].endswith("-") else ""
    suffix = unquote(parts.pop()[1:]) if parts[-1].startswith("-") else ""
    words = [re.escape(word).replace(r"\ ", r"\s+") for word in map(unquote, parts)]
    # White space, block boundaries and the bars that represent cell boundaries may come between
    # context and words.
    between = r"[\s|]*"
    pattern = rf"(?<!\w){re.escape(prefix)}{between}(?P<start>{words[0]})(?!\w){between}{re.escape(suffix)}"
    for found in re.finditer(pattern.replace(r"\ ", r"\s+"), text, re.IGNORECASE):
        if len(words) == 1 or re.search(
            rf"(?<!\w){words[1]}(?!\w)", text[found.end("start") :], re.IGNORECASE
        ):
            return found.start("start")
    return -1


def test_citations_of_real_pages_resolve_to_their_own_words(shared: Path) -> None:
    paths = sorted((shared / "data" / "pages").glob("*.html.gz"))[::40]
    right = total = 0
    for path in paths:
        html = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        doc = read_document(Page("https://e.org/", "https://e.org/", "", html, "text/html"))
        sentences = tag_sentences(doc)
        for sentence in sentences[:: max(1, len(sentences) // 25)]:
            directive = cite(doc, sentence.start, sentence.end).partition("#:~:text=")[2]
            if directive:
                total += 1
                place = resolve(doc.text, directive)
                # A menu that is twice on a page reads the same in both places; either is its
                # own words.
                right += any(s.start <= place < s.end for s in sentences if s.text == sentence.text)
    assert total >= 200
    assert right >= 0.97 * total, f"{right} of {total}"


def test_what_a_page_says_of_itself_beside_its_text_is_cited_by_the_page_alone() -> None:
    head = '<meta name="author" content="Ilse Marr">'
    doc = read_document(
        Page(
            BASE, BASE, "T", f"<head>{head}</head><p>The light was built in 1871.</p>", "text/html"
        )
    )
    assert doc.text.splitlines()[0] == "Author: Ilse Marr"
    assert cite(doc, 0, doc.blocks[0].end) == BASE
    assert unquote(cite(doc, 0, len(doc.text))).endswith("#:~:text=The light was built,in 1871")


def test_words_that_only_the_markup_has_are_neither_cited_nor_context() -> None:
    portrait = '<figure><img alt="Profile photo for Ilse Marr"></figure>'
    html = (
        f"<p>Harbour news of the week</p>{portrait}<h2>Ilse Marr</h2><p>The light was built in "
        f"1871.</p>"
    )
    doc = read_document(Page(BASE, BASE, "", html, "text/html"))
    described = doc.text.index("Profile photo")
    assert cite(doc, described, described + len("Profile photo for Ilse Marr")) == BASE
    shown = doc.text.rindex("Ilse Marr")
    assert unquote(cite(doc, shown, len(doc.text))).endswith("#:~:text=Ilse Marr,was built in 1871")


def test_a_hundred_citations_of_a_page_full_of_pictures_cost_little() -> None:
    items = "".join(
        f'<p>Berth {n} <img alt="a picture of ship {n}"> is {n} m long.</p>' for n in range(4_000)
    )
    doc = read_document(Page(BASE, BASE, "", items, "text/html"))
    with bounded():
        for block in doc.blocks[:100]:
            assert cite(doc, block.start, block.end).startswith(BASE)


def test_struck_words_are_cited_without_the_marks_that_the_text_puts_around_them() -> None:
    html = (
        "<p>Old price <del>$79</del></p><p>Ticket <s>$32</s> $29 at the pier</p><p>Old price "
        "<del>$79</del></p>"
    )
    doc = read_document(Page(BASE, BASE, "", html, "text/html"))
    assert "~~$79~~" in doc.text
    assert unquote(fragment(doc, "Ticket ~~$32~~ $29 at the pier")) == "Ticket $32 $29 at,the pier"
    assert unquote(cite(doc, doc.text.rindex("Old"), len(doc.text))).endswith("pier-,Old price $79")


def test_a_row_with_a_picture_is_cited_by_the_words_beside_it() -> None:
    html = '<table><tr><td>Ship<td>Built<tr><td><img alt="Curlew.jpg"> The Curlew<td>1904</table>'
    doc = read_document(Page(BASE, BASE, "", html, "text/html"))
    start = doc.text.index("Curlew.jpg")
    assert unquote(cite(doc, start, len(doc.text))).endswith("#:~:text=The Curlew,1904")


def test_a_sign_is_no_end_of_a_row() -> None:
    doc = document(
        ("row", "Liberals | 38 | ✔ | ✔", ("Liberals", "38", "✔", "✔")),
        ("row", "Bloc | 12 | 12", ("Bloc", "12", "12")),
        ("row", "| Greens | 1", ("", "Greens", "1")),
    )
    assert fragment(doc, "Liberals | 38 | ✔ | ✔") == "Liberals,38"
    assert fragment(doc, "Bloc | 12 | 12") == "Bloc,12"
