"""Filling a budget from several pages: what they say alike is said once, no page and no site takes
all."""

import re

import numpy as np
import pytest

from pipeline.document.page import Document, Page, Verdict
from pipeline.document.units import tag_sentences
from pipeline.evidence.assemble import Assembled, assemble
from pipeline.html.document import read_document
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import WORTH
from pipeline.text.frame import LONGEST_AUTHOR, headline, new_mark
from pipeline.text.tokens import count_tokens

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
    return assemble(documents, reading, max_tokens=max_tokens, mark=new_mark(), open_end=open_end)


def test_what_several_pages_say_alike_is_shown_once_with_all_their_citations() -> None:
    found = filled(
        page("https://a.example/1", SAME, AND),
        page(
            "https://b.example/2", "Another page writes of boats and of ropes.", SAME.upper(), AND
        ),
        page("https://c.example/3", f"{SAME[:-1]}!", "Nothing else is written on this third page."),
    )
    first = next(evidence for evidence in found.evidence if SAME in evidence.text)
    assert first.citation.startswith("https://a.example/1#:~:text=")
    assert [citation.partition("#")[0] for citation in first.also] == [
        "https://b.example/2",
        "https://c.example/3",
    ]
    # The second page goes on with the same words as the first, the third does not.
    assert "market" in first.also[0]
    assert "Marr" in first.also[1]
    assert found.shown.text.casefold().count("brothers marr") == 1
    assert "Independent origins: 1. [1a] also: [2], [3]" in found.shown.text


def test_one_address_given_twice_is_no_second_source() -> None:
    found = filled(page("https://a.example/1", SAME), page("https://a.example/1", SAME))
    assert [evidence.also for evidence in found.evidence] == [()]


def test_short_words_on_two_pages_stay_two_statements() -> None:
    found = filled(page("https://a.example/", "Yes, two."), page("https://b.example/", "Yes, two."))
    assert [evidence.also for evidence in found.evidence] == [(), ()]
    assert len(found.evidence) == 2


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


def test_without_a_budget_sentences_far_weaker_than_the_best_are_not_shown() -> None:
    third = (
        "A third sentence writes of boats and of ropes and sails"
        + " and of other things" * 12
        + "."
    )
    html = f"<main><p>{SAME}</p><p>{AND}</p><h2>Boats</h2><p>{third}</p></main>"
    url = "https://a.example/"
    document = read_document(Page(url, url, "Harbour", html, "text/html"))
    assert "ropes" in filled(document, scores=(1.0, WORTH, WORTH - 0.01, WORTH - 0.01)).shown.text
    weak = filled(document, scores=(1.0, WORTH, WORTH - 0.01, WORTH - 0.01), open_end=True)
    assert "market" in weak.shown.text
    assert "ropes" not in weak.shown.text


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


def test_a_row_by_itself_names_its_columns() -> None:
    brooks = "".join(f"<tr><td>Brook {n}<td>{n} km" for n in range(20))
    html = RIVERS.replace("</table>", f"{brooks}</table>")
    page = read_document(Page("https://a.example/", "https://a.example/", "", html, "text/html"))
    text = filled(page, scores=(0.1, 0.1, 0.1, 1.0, *[0.1] * 21), open_end=True).shown.text
    assert "River: Danube; Length: 2850 km" in text
    assert "Volga" not in text


def test_a_tables_header_is_no_passage_without_a_row() -> None:
    brooks = "".join(f"<tr><td>Brook {n}<td>{n} km" for n in range(20))
    html = RIVERS.replace("<caption>Rivers</caption>", "").replace("</table>", f"{brooks}</table>")
    page = read_document(Page("https://a.example/", "https://a.example/", "", html, "text/html"))
    found = filled(page, scores=(0.9, 0.1, 0.1, 0.1, *[0.1] * 10, 1.0, *[0.1] * 9))
    assert [one.text for one in found.evidence] == ["River: Brook 10; Length: 10 km"]


def test_a_term_is_no_passage_without_the_listing_that_defines_it() -> None:
    url = "https://a.example/"
    terms = "".join(
        f"<dt>Undo the commit of day {n} and keep what it changed"
        f"<dd><pre>undo --day={n} {'--keep=all --and=more ' * n * 6}</pre>"
        for n in range(9)
    )
    html = f"<main><h2>Examples</h2><dl>{terms}</dl></main>"
    document = read_document(Page(url, url, "", html, "text/html"))
    scores = tuple(
        1.0 if "day 1" in unit.text else 0.9 if "day 8" in unit.text else 0.02
        for unit in tag_sentences(document)
    )
    text = filled(document, scores=scores, max_tokens=150).shown.text
    assert "day 1 and keep what it changed\nundo --day=1" in text
    assert "day 8" not in text


@pytest.mark.parametrize("second", ["answered", "unsure"])
def test_an_answer_to_parts_ends_early_only_where_all_of_them_are_answered(
    second: Verdict,
) -> None:
    url = "https://a.example/"
    terms = "".join(
        f"<dt>--option{n}<dd>Keeps what is number {n} {'in the log of the mill ' * 15}there."
        for n in range(6)
    )
    html = f"<main><p>{SAME}</p><dl>{terms}</dl></main>"
    document = read_document(Page(url, url, "", html, "text/html"))
    tagged = (tag_sentences(document),)

    def scored(verdict: Verdict, best: int) -> Reading:
        values = np.array(
            [1.0 if f"number {best} " in one.text else 0.6 for one in tagged[0]],
            dtype=np.float32,
        )
        return Reading(verdict, "", 1.0, tagged, values, "bm25")

    parts = (scored("answered", 1), scored(second, 4))
    values = np.maximum(parts[0].values, parts[1].values)
    reading = Reading(second, "", 1.0, tagged, values, "bm25", parts=parts)
    found = assemble((document,), reading, max_tokens=700, mark=new_mark(), open_end=True)
    assert found.shown.text.count("number 1 ") == found.shown.text.count("number 4 ") == 1
    assert ("number 2 " in found.shown.text) == (second == "unsure")


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


def test_a_listing_that_does_not_fit_is_cut_at_its_end_and_the_lines_that_follow_are_counted() -> (
    None
):
    document, scores = listing(60)
    text = filled(document, scores=scores, open_end=True).shown.text
    assert LAMP in text
    assert re.search(r"\n… \d+ more lines\n", text)


def test_neighbours_of_two_slides_are_two_passages_each_with_the_rows_of_its_own_table() -> None:
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


def test_header_rows_that_are_read_as_one_stand_once_and_a_row_of_another_table_stays() -> None:
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


def test_an_edited_copy_is_named_beside_its_passage_and_is_no_origin_of_its_own() -> None:
    edited = f"{SAME} {AND}".replace("the harbour light", "the light").replace(
        "brothers", "two brothers"
    )
    found = filled(
        page("https://a.example/1", SAME, AND),
        page("https://mirror.example/2", "Sign in to read on.", *edited.split(". ")),
        page(
            "https://c.example/3",
            "Orvane had its harbour light from 1871 on, which two brothers had built for it.",
        ),
    )
    first = found.evidence[0]
    assert [citation.partition("#")[0] for citation in first.also] == ["https://mirror.example/2"]
    assert "Sign" not in first.also[0]
    # A page with words of its own is another origin.
    assert "Independent origins: 2. [1a] also: [2]" in found.shown.text


def test_pages_with_words_of_their_own_are_reported_in_not_a_word_more() -> None:
    found = filled(
        page("https://a.example/1", SAME),
        page("https://b.example/2", "The light is from 1871, some say."),
    )
    assert "origins" not in found.shown.text
