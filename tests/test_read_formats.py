"""Slides, sheets, OpenDocument, books, mail, notebooks, subtitles, RTF: read with their places,
through the tools."""

import json
import mailbox
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from errors import SourceUnreadable
from extras.transcript import SILENT
from pipeline.document.cite import cite
from pipeline.fetch.files import read_file
from readers.convert import Raw, to_page
from readers.html.document import read_document
from readers.page import Document, Page
from tests.support import Connect, made_files, text_of
from tests.support.hostile_files import HOSTILE, eml, epub, odf, pptx, read_all, shape, xlsx
from tests.support.web_site import Reply, open_local, open_site

pytestmark = pytest.mark.anyio

VTT = """WEBVTT

NOTE not said

1
00:12:31.000 --> 00:12:36.500
<v Ana>The lock of Pell was <i>built</i>

00:12:36.500 --> 00:12:41.000
<v Ana>by a mason from Brod.

01:00:02.000 --> 01:00:09.000
Boats pass it free of charge.
"""
CELLS = (
    '<row r="1"><c r="A1" t="str"><v>Costs of the year</v></c></row>'
    '<row r="3"><c r="A3" t="str"><v>Town</v></c><c r="B3" t="str"><v>Toll</v></c></row>'
    '<row r="4"><c r="A4" t="str"><v>Pell</v></c><c r="B4"><v>41</v></c></row>'
    '<row r="5"><c r="A5" t="str"><v>Brod</v></c><c r="B5"><v>17.5</v></c></row>'
)
SHEET = (
    '<table:table table:name="Tolls, old"><table:table-row '
    'table:number-rows-repeated="6"><table:table-cell/>'
    "</table:table-row><table:table-row><table:table-cell><text:p>Town</text:p></table:table-cell><table:table-cell>"
    "<text:p>Toll</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>Pell</text:p>"
    "</table:table-cell><table:table-cell "
    'table:number-columns-repeated="2"><text:p>41</text:p></table:table-cell>'
    "</table:table-row></table:table>"
)


def page_of(body: bytes, name: str) -> Page:
    return to_page(Raw(body, f"file:///{name}", f"file:///{name}", name=name))


def read(body: bytes, name: str) -> Document:
    return read_document(page_of(body, name))


def place(document: Document, words: str) -> str:
    """Return the fragment of the link to some words, without the words."""
    start = document.text.index(words)
    return unquote(cite(document, start, start + len(words)).partition(":~:")[0].partition("#")[2])


def test_slides_are_cited_by_number_with_titles_tables_and_notes() -> None:
    cells = "".join(
        f"<a:tc><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:tc>" for text in ("Town", "Toll")
    )
    rows = f"<a:tr>{cells}</a:tr><a:tr>{cells.replace('Town', 'Pell').replace('Toll', '41')}</a:tr>"
    title = shape("The lock").replace(
        "<a:p>", '<p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><a:p>', 1
    )
    unseen = shape("never shown").replace(
        "<a:p>", '<p:nvSpPr><p:cNvPr hidden="1"/></p:nvSpPr><a:p>', 1
    )
    body = pptx(
        f"{title}{unseen}{shape('It is of larch.')}<p:graphicFrame><a:tbl>{rows}</a:tbl></p:graphicFrame>"
    )
    document = read(body, "a.pptx")
    assert [block.text for block in document.blocks] == [
        "The lock",
        "It is of larch.",
        "Town | Toll",
        "Town: Pell; Toll: 41",
    ]
    assert place(document, "larch") == "slide=1"


def test_a_row_of_a_sheet_is_cited_by_its_cells_and_several_by_their_range() -> None:
    document = read(xlsx(CELLS), "a.xlsx")
    assert place(document, "Pell | 41") == "Costs!A4:B4"
    assert place(document, "Pell | 41\nBrod | 17.5") == "Costs!A4:B5"
    assert place(read(odf("spreadsheet", SHEET), "a.ods"), "Pell | 41") == "Tolls, old!A8:C8"


def test_what_a_file_hides_from_its_readers_is_left_out_and_reported() -> None:
    page = page_of(xlsx(CELLS, state="veryHidden"), "a.xlsx")
    assert "unshown" not in page.html
    assert page.notes == ("workbook: hidden sheets removed: 1",)
    styles = (
        '<style:style style:name="T1"><style:text-properties text:display="none"/></style:style>'
    )
    text = '<text:p>Boats <text:span text:style-name="T1">obey me</text:span>lie here.</text:p>'
    changed = "<text:tracked-changes><text:p>was deleted</text:p></text:tracked-changes>"
    noted = (
        "<text:p>Ferries<office:annotation><text:p>a comment</text:p></office:annotation> "
        "too.</text:p>"
    )
    document = read(odf("text", changed + text + noted, styles=styles), "a.odt")
    assert document.text == "Boats lie here.\nFerries too."
    assert "obey" not in page_of(b"{\\rtf1 Boats {\\v obey me} lie here.\\par}", "a.rtf").html
    book = epub(
        {"1.xhtml": "<p class='x'>obey me</p><p>Boats.</p>"},
        extra={"s.css": ".x { display: none }"},
    )
    assert read(book, "a.epub").text == "Boats."


def test_silent_pictures_of_a_book_are_counted_but_not_ornaments_and_covers() -> None:
    book = epub(
        {
            "cover.xhtml": '<img src="cover.png"/>',
            "1.xhtml": '<p>Boats.</p><img src="a.png"/><img src="b.png" alt="Chart"/>'
            '<img src="c.png" alt=""/><img src="d.png" alt="Boats at the quay"/>',
        }
    )
    assert read(book, "a.epub").page.unread == "2 images"


def test_chapters_cells_messages_and_times_are_places() -> None:
    book = read(
        epub({"1.xhtml": "<h1>First</h1><p>Boats.</p>", "2.xhtml": "<h1>Second</h1><p>Locks.</p>"}),
        "a.epub",
    )
    assert place(book, "Locks") == "part=2"
    cells = [
        {"cell_type": "markdown", "source": ["# Tolls\n", "Of *all* towns."]},
        {
            "cell_type": "code",
            "source": "total()",
            "outputs": [{"output_type": "stream", "text": ["41 crowns\n"]}],
        },
    ]
    assert place(read(json.dumps({"cells": cells}).encode(), "a.ipynb"), "41 crowns") == "cell=2"
    film = read(VTT.encode(), "a.vtt")
    assert place(film, "Ana: The lock of Pell was built by a mason") == "t=00:12:31,00:12:41"
    assert place(film, "Boats pass it") == "t=01:00:02,01:00:09"
    tolls = read(b"town,toll\nPell,41\nBrod,17\n", "a.csv")
    assert place(tolls, "Brod") == "row=3"


def test_mail_shows_who_wrote_what_and_names_attachments_and_loads_nothing(
    tmp_path: Path,
) -> None:
    message = eml("plain twin")
    message["Date"] = "Tue, 02 Mar 2021 10:00:00 +0000"
    message.add_alternative(
        "<p>The lock opens at 6.</p><img src='https://tracker.test/p.gif'>", subtype="html"
    )
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    page = page_of(bytes(message), "a.eml")
    text = read_document(page).text
    assert (page.title, page.author, page.published) == ("Harbour", "a@example.org", "2021-03-02")
    assert (
        "The lock opens at 6." in text
        and "plan.pdf (application/pdf)" in text
        and "plain twin" not in text
    )
    box = mailbox.mbox(tmp_path / "a.mbox")
    for words in ("First words.\n\nFrom here on boats pass.", "Second words."):
        box.add(eml(words))
    box.close()
    document = read((tmp_path / "a.mbox").read_bytes(), "a.mbox")
    assert place(document, "From here on boats pass.") == "message=1"
    assert place(document, "Second words.") == "message=2"


def test_a_chapter_is_read_as_xml_whose_elements_may_be_empty() -> None:
    chapter = (
        "<html><head><title/><script src='a.js'/></head><body><a "
        "id='p1'/><p>Boats.<br/>Locks.</p></body></html>"
    )
    document = read(epub({"1.xhtml": chapter}), "a.epub")
    assert document.text == "Boats. Locks."
    assert "<a" not in document.html


def test_a_damaged_message_costs_a_mail_box_that_message_only() -> None:
    deep = HOSTILE["mail in mail 2,000 deep"][1]()
    body = (
        b"From a@b.c Thu Jan  1 00:00:00 1970\n"
        + bytes(eml("First."))
        + b"\n\nFrom a@b.c Thu Jan  1 00:00:00 1970\n"
        + deep
    )
    page = page_of(body, "a.mbox")
    assert "First." in page.html
    assert page.unread == "damaged messages: 2"


def test_a_forwarded_message_is_read_with_the_one_that_carries_it() -> None:
    outer = eml("See below.")
    outer.add_attachment(eml("The inner words."))
    assert "The inner words." in read(bytes(outer), "a.eml").text


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("an old Word file", "ave it as .docx"),
        ("an old workbook", "ave it as .xlsx"),
        ("an old presentation", "ave it as .pptx"),
        ("a workbook with a password", "save a copy without one"),
        ("a text with a password", "save a copy without one"),
        ("a sealed book", "encrypted"),
    ],
)
def test_old_and_locked_files_say_what_to_do(name: str, hint: str) -> None:
    file, made = HOSTILE[name]
    with pytest.raises(SourceUnreadable, match=re.escape(hint)):
        page_of(made(), file)


def test_no_page_and_no_chapter_can_say_that_it_is_at_another_place() -> None:
    web = to_page(
        Raw(
            b"<p DATA-PLACE='slide=9'>Boats are many here.</p>",
            "https://a.test/",
            "https://a.test/",
        )
    )
    assert place(read_document(web), "Boats") == ""
    book = read(epub({"1.xhtml": "<p data-place='chapter=9'>Boats.</p>"}), "a.epub")
    assert place(book, "Boats") == "part=1"


@pytest.mark.slow
@pytest.mark.nightly
def test_hostile_files_of_every_format_end_typed_within_seconds_and_memory() -> None:
    found = {spent.name: spent for spent in read_all()}
    assert set(found) == set(HOSTILE)
    assert [one for one in found.values() if one.megabytes > made_files.MEGABYTES] == []


@pytest.mark.slow
@pytest.mark.parametrize("form", list(made_files.FORMATS))
def test_files_that_other_programs_made_are_read_whole_and_each_thing_has_its_place(
    form: str, tmp_path: Path
) -> None:
    if missing := made_files.lacking(form):
        pytest.skip(f"{missing}, which makes such files, does not run here")
    for made in made_files.FORMATS[form](tmp_path)[:2]:
        document = read_document(read_file(made.path, roots=[tmp_path]))
        for thing, where in zip(made.things, made.places, strict=True):
            start = document.text.casefold().rindex(thing.name.casefold())
            assert made_files.leads_to(
                where, f"{cite(document, start, start + len(thing.name))} "
            ), (
                thing,
                where,
            )
            assert all(answer in document.text for _, answer in map(thing.asked, range(4)))


async def test_a_folder_of_all_kinds_is_searched_and_tables_of_sheets_are_queried(
    connect: Connect, tmp_path: Path
) -> None:
    files = {
        "talk.pptx": pptx(shape("The zeppelin mast rests on the north pier.")),
        "tolls.xlsx": xlsx(CELLS),
        "book.epub": epub({"1.xhtml": "<p>The observatory opened in spring.</p>"}),
        "minutes.odt": odf("text", "<text:p>The council bought an icebreaker.</text:p>"),
        "letter.eml": bytes(eml("The sawmill burned down at night.")),
        "film.srt": b"1\n00:12:31,000 --> 00:12:36,500\nThe cider press rests idle.\n",
        "memo.rtf": b"{\\rtf1 The tramway needs new rails.\\par}",
    }
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    asked = {
        "mast": "talk.pptx",
        "observatory": "book.epub",
        "icebreaker": "minutes.odt",
        "cider press": "film.srt",
    }
    asked |= {"sawmill": "letter.eml", "tramway": "memo.rtf", "toll of Pell": "tolls.xlsx"}
    async with connect(
        folders=str(tmp_path), search="folder", cache=str(tmp_path / ".cache"), seconds="60"
    ) as client:
        for words, name in asked.items():
            text = "documents are read"
            while "documents are read" in text:  # a busy machine reads some of them in each call
                text = text_of(
                    await client.call_tool(
                        "search_web", {"question": f"What is said of the {words}?"}
                    )
                )
            assert name in text, words
        table = {
            "sources": [str(tmp_path / "tolls.xlsx")],
            "part": "sql: SELECT * FROM t1 WHERE toll > 20",
        }
        text = text_of(await client.call_tool("fetch_and_prune_html", table))
        assert "Pell | 41" in text and "Brod" not in text
        sources = {"sources": [str(tmp_path / "film.srt")], "question": "What rests idle?"}
        reported = await client.call_tool("extract_relevant", sources)
        assert "#t=00:12:31,00:12:36" in text_of(reported)


def player(path: str, **more: str) -> bytes:
    """Return a page as YouTube's, that is filled by scripts and names its captions in its player's
    data."""
    tracks = [{"baseUrl": path, "languageCode": "en", **more}]
    said = json.dumps(
        {"captions": {"playerCaptionsTracklistRenderer": {"captionTracks": tracks}}}
    ).replace("&", "\\u0026")
    return (
        f"<html lang=en><title>The lock</title><body><script>var p = {said};</script></body></html>"
    ).encode()


@pytest.mark.parametrize(
    ("make", "note"),
    [
        (lambda url: player(url("/captions?v=1&lang=en")), "as the page gives it"),
        (lambda url: player(url("/captions?v=1"), kind="asr"), "automatic"),
        (
            lambda url: (
                b"<h1>The lock</h1><video controls><track kind=captions src=/captions></video>"
            ),
            "as the page gives it",
        ),
        (
            lambda url: b"<h1>The lock</h1><audio controls></audio><a href=/words.vtt>Words</a>",
            "as the page gives it",
        ),
    ],
)
async def test_the_transcript_that_a_page_gives_is_read_with_its_times(
    make: Callable[[Callable[[str], str]], bytes], note: str
) -> None:
    captions = Reply(VTT.encode(), kind="text/vtt")
    async with open_site({"/captions": captions, "/words.vtt": captions}) as site:
        for path in ("/captions?v=1&lang=en&fmt=vtt", "/captions?v=1&fmt=vtt"):
            site.routes[path] = captions
        site.routes["/film"] = Reply(make(site.url))
        async with open_local() as fetcher:
            page = await fetcher.fetch(site.url("/film"))
    assert any(note in reported for reported in page.notes)
    assert place(read_document(page), "built by a mason") == "t=00:12:31,00:12:41"


@pytest.mark.parametrize(
    ("page", "note"),
    [
        (b"<h1>The lock</h1><video controls src=a.mp4></video>", SILENT),
        (b"<h1>The lock</h1><video controls><track src=/gone></video>", "could not be read"),
        (
            b"<h1>The lock</h1><video controls><track src=http://10.0.0.1/a></video>",
            "could not be read",
        ),
    ],
)
async def test_a_page_whose_film_has_no_transcript_says_so(page: bytes, note: str) -> None:
    async with open_site({"/film": Reply(page)}) as site, open_local() as fetcher:
        fetched = await fetcher.fetch(site.url("/film"))
        assert note in " ".join((*fetched.notes, fetched.unread))


def test_a_link_to_a_moment_of_a_film_is_one_that_the_site_understands() -> None:
    url = "https://www.youtube.com/watch?v=abc"
    made = to_page(
        Raw(VTT.encode(), "https://a.test/a.vtt", "https://a.test/a.vtt", content_type="text/vtt")
    )
    document = read_document(Page(url, url, "The lock", made.html, "text/html"))
    assert cite(document, 0, 5).startswith(f"{url}&t=751s#:~:text=")


async def test_a_feed_names_the_transcripts_of_its_episodes() -> None:
    feed = (
        '<rss xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel><title>Locks</title><item><title>One</title>'
        '<podcast:transcript url="https://a.test/1.vtt" type="text/vtt"/></item></channel></rss>'
    )
    page = page_of(feed.encode(), "a.rss")
    assert 'href="https://a.test/1.vtt"' in page.html


@pytest.mark.parametrize(
    ("name", "body", "says", "hides"),
    [
        (
            "feeds.opml",
            '<opml><head><title>Feeds</title></head><body><outline text="Boats"><outline '
            'text="Arnvik ferry" xmlUrl="https://x.example/feed"/></outline></body></opml>',
            ["Feeds", "Boats", "Arnvik ferry"],
            "outline",
        ),
        (
            "rules.org",
            "#+TITLE: Ferry\n* Rules\n- Dogs travel free.\n| Port | Fare |\n|------+------|\n"
            "| Arnvik | 120 |\n# not on Sundays\n#+begin_src sh\n# call the keeper\n#+end_src\n",
            ["Ferry", "Rules", "free.\nPort | Fare\nArnvik | 120", "# call the keeper"],
            "Sundays",
        ),
        (
            "paper.tex",
            "\\section{Ferry}\nDogs travel free. % not on Sundays\n50\\% off\n\\input{fares}\n"
            "\\begin{verbatim}\n 50 % of 120\n\\end{verbatim}\n",
            ["Dogs travel free.", "50\\% off", "50 % of 120"],
            "Sundays",
        ),
        ("fares.json", '{"port": ["A", "B", "C"], "fare": [3, 4, 5]}', ["port | fare\nA | 3"], "["),
    ],
)
def test_outlines_org_latex_and_columns_of_json_are_read_as_what_they_are(
    name: str, body: str, says: list[str], hides: str
) -> None:
    document = read(body.encode(), name)
    text = f"{document.page.title}\n{document.text}"
    assert [line for line in says if line not in text] == []
    assert hides not in text
    unread = {"paper.tex": "included files: 1 (fares)"}
    assert document.page.unread == unread.get(name, "")
