"""Filling a budget from several pages: what they have letter by letter is shown once, no page and
no site takes all."""

import re

import numpy as np
import pytest

from pipeline.document.units import tag_sentences
from pipeline.evidence.assemble import SHOWN_SHARE, Assembled, assemble
from pipeline.reading.reading import Reading
from pipeline.text.frame import headline, new_delimiter
from pipeline.text.tokens import count_tokens
from readers.html.document import read_document
from readers.page import LONGEST_AUTHOR, Document, Page

SAME = "The harbour light of Orvane was built in the year 1871 by the brothers Marr."
AND = "It is on the northern mole beside the fish market."


def page(url: str, *sentences: str, title: str = "Harbour") -> Document:
    body = "".join(f"<p>{sentence}</p>" for sentence in sentences)
    return read_document(Page(url, url, title, f"<main>{body}</main>", "text/html"))


LAMP = "def lit(hour):\n    # the lamp\n    return hour > 18"
LIGHT = "class Light:\n    def on(self):\n        turn()"


def filled(
    *documents: Document,
    max_tokens: int = 2000,
    scores: tuple[float, ...] = (),
    open_end: bool = False,
) -> Assembled:
    """Assemble pages whose sentences have `scores` in every page, else nearly the same, the first
    ones best."""
    tagged = tuple(tag_sentences(document) for document in documents)
    values = [
        scores[sentence.number - 1] if scores else 1.0 - 0.01 * place - 0.001 * sentence.number
        for place, sentences in enumerate(tagged)
        for sentence in sentences
    ]
    reading = Reading("answered", "", 1.0, tagged, np.array(values, dtype=np.float32), "bm25")
    return assemble(
        documents, reading, max_tokens=max_tokens, delimiter=new_delimiter(), open_end=open_end
    )


def test_equal_text_of_several_pages_is_shown_once_with_its_other_places() -> None:
    found = filled(
        page("https://a.example/1", SAME, AND),
        page("https://b.example/2", "Another page writes of boats and of ropes.", AND, SAME),
        page("https://c.example/3", "Nothing else is written on this third page."),
    )
    first = next(evidence for evidence in found.evidence if SAME in evidence.text)
    assert first.citation.startswith("https://a.example/1#:~:text=")
    assert [citation.partition("#")[0] for citation in first.also] == ["https://b.example/2"]
    assert "[1a] also: [2]" in found.shown.text


def test_a_statement_that_differs_by_one_word_is_shown_beside_the_other() -> None:
    found = filled(
        page("https://a.example/1", "The fine for a late return of the boat is 60 crowns."),
        page("https://b.example/2", "The fine for a late return of the boat is 65 crowns."),
    )
    assert [evidence.also for evidence in found.evidence] == [(), ()]
    assert "60 crowns" in found.shown.text
    assert "65 crowns" in found.shown.text
    assert "also" not in found.shown.text


def test_one_address_given_twice_is_no_second_source() -> None:
    found = filled(page("https://a.example/1", SAME), page("https://a.example/1", SAME))
    assert [evidence.also for evidence in found.evidence] == [()]


def test_the_same_words_under_different_headings_stay_two_statements() -> None:
    html = "<main><h2>Boats</h2><p>Yes, two.</p><h2>Nets</h2><p>Yes, two.</p></main>"
    url = "https://a.example/"
    text = filled(read_document(Page(url, url, "Harbour", html, "text/html"))).shown.text
    assert "Boats\nYes, two." in text
    assert "Nets\nYes, two." in text


def _lines(name: str, count: int = 60) -> list[str]:
    return [
        f"Sentence {number} of {name} describes the harbour light number {number}."
        for number in range(count)
    ]


FALLING = tuple(1 - 0.01 * number for number in range(60))


def test_one_site_does_not_take_all_while_another_has_something_to_say() -> None:
    documents = [page(f"https://www.a.example/{n}", *_lines(f"a{n}")) for n in range(5)]
    documents.append(page("https://b.example/", *_lines("b")))
    found = filled(*documents, max_tokens=900, scores=FALLING)
    hosts = {evidence.url.split("/")[2] for evidence in found.evidence}
    assert hosts == {"www.a.example", "b.example"}


def test_local_files_are_no_site() -> None:
    documents = [page(f"file:///notes/{n}.md", *_lines(f"a{n}")) for n in range(3)]
    found = filled(*documents, max_tokens=900, scores=FALLING)
    assert len({evidence.url for evidence in found.evidence}) == 3


@pytest.mark.parametrize("budget", [100, 173, 300, 777, 1500])
def test_the_budget_is_kept_with_duplicates_and_their_citations(budget: int) -> None:
    documents = [
        page(f"https://{host}.example/", SAME, *_lines(host, 20), AND) for host in "abcdef"
    ]
    found = filled(*documents, max_tokens=budget)
    assert found.shown.tokens == count_tokens(found.shown.text) <= budget
    assert "Orvane" in found.shown.text


def test_a_page_is_headed_by_title_author_and_date_and_no_author_twice() -> None:
    head = (
        '<meta name="author" content="Ilse Marr"><meta property="article:published_time" '
        'content="2024-05-06">'
    )
    url = "https://a.example/"
    named = read_document(
        Page(url, url, "Harbour", f"<head>{head}</head><p>{SAME}</p>", "text/html")
    )
    known = read_document(
        Page(url, url, "Harbour, by Ilse Marr", f"<head>{head}</head><p>{SAME}</p>", "text/html")
    )
    assert filled(named).shown.text.splitlines()[2] == "Harbour – by Ilse Marr (2024-05-06)"
    assert filled(known).shown.text.splitlines()[2] == "Harbour, by Ilse Marr (2024-05-06)"


def test_an_authors_name_is_one_short_line() -> None:
    head = headline("Harbour", "", author="Ilse\nMarr " * 40)
    assert "\n" not in head
    assert len(head) <= len("Harbour – by ") + LONGEST_AUTHOR


def test_sentences_far_weaker_than_the_best_are_not_shown() -> None:
    third = (
        "A third sentence writes of boats and of ropes and sails"
        + " and of other things" * 12
        + "."
    )
    html = f"<main><p>{SAME}</p><p>{AND}</p><h2>Boats</h2><p>{third}</p></main>"
    url = "https://a.example/"
    document = read_document(Page(url, url, "Harbour", html, "text/html"))
    weak = SHOWN_SHARE - 0.01
    assert "ropes" in filled(document, scores=(1.0, 0.5, weak, SHOWN_SHARE + 0.01)).shown.text
    found = filled(document, scores=(1.0, 0.5, weak, weak))
    assert "market" in found.shown.text
    assert "ropes" not in found.shown.text


RIVERS = """<main><table><caption>Rivers</caption><tr><th>River<th>Length<tr><td>Volga<td>3530 km
<tr><td>Danube<td>2850 km<tr><td>Ural<td>2428 km</table></main>"""


def table(*scores: float) -> Assembled:
    """Assemble a table with `scores` of its caption, header row and rows."""
    url = "https://a.example/"
    return filled(read_document(Page(url, url, "", RIVERS, "text/html")), scores=scores)


def test_rows_that_follow_each_other_stand_below_their_header_which_is_said_once() -> None:
    text = table(0.1, 0.1, 1.0, 0.9, 0.8).shown.text
    assert "River | Length\nVolga | 3530 km\nDanube | 2850 km\nUral | 2428 km" in text
    assert text.count("Length") == 1


def far_rows(*, headed: bool) -> str:
    """Return the text of an answer with the first two and the last two rows of a long table, whose
    rows between do not bear on the question."""
    head = "<tr><th>River<th>Length</tr>" if headed else ""
    rows = "".join(f"<tr><td>Brook {n}<td>{n} km and some" for n in range(30))
    lead = "<p>The rivers of the plain by length are as follows:</p>" if headed else ""
    html = f"<main>{lead}<table>{head}{rows}</table></main>"
    document = read_document(
        Page("https://a.example/", "https://a.example/", "", html, "text/html")
    )
    scores = tuple(
        1.0 if re.search(r"rivers of|Brook [01]\b|Brook 2[89]", unit.text) else 0.02
        for unit in tag_sentences(document)
    )
    return filled(document, scores=scores, max_tokens=200).shown.text


def test_far_rows_of_a_table_are_one_passage_below_one_header() -> None:
    text = far_rows(headed=True)
    assert text.count("River | Length") == 1
    assert "Brook 1 | 1 km and some" in text
    assert "Brook 29 | 29 km and some" in text
    assert "(b)" not in text


def test_far_rows_of_a_table_without_a_header_are_two_passages_without_a_gap() -> None:
    text = far_rows(headed=False)
    assert "Brook 29" in text
    assert "(b)" in text
    assert "… Brook" not in text


def listing(lines: int) -> tuple[Document, tuple[float, ...]]:
    """Return a page with a listing of two functions with `lines` between them, and scores of its
    units."""
    left_out = "\n\n".join(
        f"depth_of_basin_{number} = sound(basin={number})" for number in range(lines)
    )
    url = "https://a.example/"
    html = f"<main><p>{SAME}</p><pre>{LAMP}\n\n{left_out}\n\n{LIGHT}</pre></main>"
    document = read_document(Page(url, url, "", html, "text/html"))
    return document, (
        0.9,
        *(0.1 if "basin" in unit.text else 1.0 for unit in tag_sentences(document)[1:]),
    )


def test_a_listing_that_fits_is_quoted_whole_and_in_its_lines() -> None:
    document, scores = listing(1)
    text = filled(document, scores=scores, open_end=True).shown.text
    assert f"Marr.\n{LAMP}\n\ndepth_of_basin_0 = sound(basin=0)\n\n{LIGHT}" in text


def test_a_long_listing_is_cut_at_its_end_and_the_lines_left_are_counted() -> None:
    document, scores = listing(300)
    text = filled(document, scores=scores, open_end=True).shown.text
    assert LAMP in text
    assert re.search(r"\n… \d+ more lines\n", text)


def test_items_that_another_passage_shows_are_not_counted_as_left_out() -> None:
    items = "".join(f"<li>Chest {n} is on shelf {n} of the long harbour hall" for n in range(20))
    url = "https://a.example/"
    document = read_document(Page(url, url, "", f"<main><ul>{items}</ul></main>", "text/html"))
    scores = tuple(1.0 if n in {2, 3, 14, 15} else 0.0 for n in range(20))
    text = filled(document, scores=scores, max_tokens=200).shown.text
    chests = [int(number) for number in re.findall(r"- Chest (\d+)", text)]
    counts = [int(number) for number in re.findall(r"… (\d+) more items", text)]
    assert chests == [2, 3, 14, 15]
    assert counts == [14, 4]


def test_two_slides_are_two_passages_each_with_rows_of_its_own_table() -> None:
    slide = (
        '<section data-place="slide={0}"><h2>Lock '
        "{0}</h2><table><tr><th>Fact</th><th>Value</th></tr>"
        "<tr><td>Built</td><td>183{0}</td></tr><tr><td>Maker</td><td>Ilse "
        "{0}</td></tr></table></section>"
    )
    url = "file:///locks.pptx"
    html = "".join(map(slide.format, (1, 2, 3)))
    found = filled(read_document(Page(url, url, "Locks", html, "text/html"))).shown.text
    labels = re.findall(r"\(\w, (slide \d)\) (Lock \d)", found)
    assert sorted(labels) == [(f"slide {number}", f"Lock {number}") for number in (1, 2, 3)]
    assert "more row" not in found


def test_joined_header_rows_are_shown_once_and_another_tables_row_stays() -> None:
    html = """<main><table><tr><td>Map | North</td><td>Chart | 12</td></table><table>
    <thead><tr><th rowspan=2>Model<th colspan=2>Optics<tr><th>Field<th>Focus</thead>
    <tbody><tr><td>Fen<td>138 m<td>1.7 m<tr><td>Rill<td>131 m<td>2.1 m</tbody></table></main>"""
    url = "https://a.example/"
    text = filled(read_document(Page(url, url, "", html, "text/html"))).shown.text
    assert "Model | Optics Field | Optics Focus\nFen | 138 m | 1.7 m\nRill | 131 m | 2.1 m" in text
    assert text.count("Focus") == 1
    assert "North" in text


def test_a_heading_that_is_a_whole_statement_is_shown_and_not_only_what_is_below_it() -> None:
    said = (
        "For over a hundred years the Marr family has kept the light of Orvane and every boat "
        "that passed by it."
    )
    html = f"<main><h2>{said}</h2><p>Call us.</p><p>{AND}</p></main>"
    document = read_document(
        Page("https://a.example/", "https://a.example/", "", html, "text/html")
    )
    assert said in filled(document, max_tokens=200, scores=(1.0, 0.2, 0.6)).shown.text
