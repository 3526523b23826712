"""PDF, Word, Markdown, text, JSON, CSV, XML and feeds become HTML; what holds no text says why."""

import contextlib
import io
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from errors import AddressRefused, SourceNotFound, SourceTooLarge, SourceUnreadable
from pipeline.fetch.files import file_key, path_of_url, read_file
from readers.convert import Raw, to_page
from readers.converted import Unreadable
from readers.html.document import read_document
from readers.html.scripts import look_at
from readers.page import Page
from tests.support.attacks import IMAGE
from tests.support.docx import make_docx, paragraph
from tests.support.pdf import make_pdf, pdf_of, read_pdf
from tests.support.waiting import bounded


def read(body: bytes, kind: str = "", name: str = "") -> Page:
    return to_page(
        Raw(body, "https://example.org/x", "https://example.org/x", content_type=kind, name=name)
    )


def why_unreadable(body: bytes, kind: str = "", name: str = "") -> str:
    with pytest.raises(SourceUnreadable) as caught:
        read(body, kind, name)
    return caught.value.what


REPORT = [
    [
        *(
            ("The harbour of Piran", 24),
            ("", 12),
            ("It was rebuilt in 1287 after", 11),
            ("the great storm.", 11),
        ),
        *(
            ("", 30),
            ("1. The lighthouse", 16),
            ("", 12),
            ("It burns since then, and the light-", 11),
        ),
        ("house keeper is a woman of the town.", 11),
    ],
    [("2. Salt", 16), ("", 12), ("Salt was the town's wealth (and its duty).", 11)],
]


def test_a_pdf_keeps_headings_paragraphs_and_page_anchors() -> None:
    page = read(make_pdf(REPORT, title="Piran"), "application/pdf")
    assert page.media_type == "application/pdf"
    assert page.title == "Piran"
    assert "<h2>The harbour of Piran</h2>" in page.html
    assert "<h3>1. The lighthouse</h3>" in page.html
    assert "<p>It was rebuilt in 1287 after the great storm.</p>" in page.html
    assert (
        "<p>It burns since then, and the lighthouse keeper is a woman of the town.</p>" in page.html
    )
    assert '<section data-place="page=2">\n<h3>2. Salt</h3>' in page.html
    assert "wealth (and its duty)" in page.html


def test_lines_that_recur_on_every_page_are_left_out_but_for_the_first() -> None:
    pages = [
        [
            ("Yearbook of Salt", 9),
            (f"Chapter {n} describes the year {1900 + n * 7}.", 11),
            (f"page {n}", 9),
        ]
        for n in range(9)
    ]
    html = read(make_pdf(pages)).html
    assert html.count("Yearbook of Salt") == 1
    assert html.count("describes the year") == 9


def test_a_fixed_width_font_is_code() -> None:
    assert (
        "<pre>x = 1\ny = 2</pre>"
        in read(make_pdf([[("x = 1", 10), ("y = 2", 10)]], font="Courier")).html
    )


def test_an_encrypted_pdf_says_that_it_needs_a_password_and_one_without_is_read() -> None:
    for password, readable in (("", True), ("secret", False)):
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf(REPORT))))
        writer.encrypt(user_password=password, algorithm="AES-256")
        out = io.BytesIO()
        writer.write(out)
        if readable:
            assert "rebuilt in 1287" in read(out.getvalue()).html
        else:
            assert "password" in why_unreadable(out.getvalue())


SCANNED = pdf_of(
    "q 612 0 0 792 0 0 cm /Im0 Do Q",
    resources="/XObject << /Im0 {0} 0 R >>",
    more=(IMAGE,),
    said=(),
)


def test_a_pdf_of_images_says_that_it_is_scanned() -> None:
    assert "scanned" in why_unreadable(SCANNED)
    assert "empty pages" in why_unreadable(make_pdf([[("", 10)]]))


def test_a_long_pdf_is_cut_and_says_so() -> None:
    many = make_pdf([[(f"Page number {n} of many, with words.", 11)] for n in range(520)])
    page = read(many)
    assert page.unread == "pages 501 to 520 of 520"
    assert page.rest == "https://example.org/x#pages=501-520"


def test_a_slow_pdf_keeps_what_was_read_in_time() -> None:
    body = make_pdf(
        [[(f"Words of line {n} on this page.", 11) for n in range(90)] for _ in range(400)]
    )
    with bounded():
        made = read_pdf(body, seconds=1.0)
    assert made.unread.startswith("pages ") and made.unread.endswith(" to 400 of 400")


def test_many_pdfs_at_once_each_have_processor_time_of_their_own() -> None:
    body = make_pdf(
        [[(f"Words of line {n} on this page.", 11) for n in range(60)] for _ in range(12)]
    )
    # One takes less than a second. Sharing one interpreter, each takes 24 times as long by the clock.
    alone = read_pdf(body, seconds=12)
    with ThreadPoolExecutor(24) as threads:
        together = list(threads.map(lambda _: read_pdf(body, seconds=12), range(24)))
    assert together == [alone] * 24


@given(st.binary(max_size=400), st.integers(0, 2000), st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_a_damaged_pdf_is_read_or_refused_and_never_crashes(
    noise: bytes, place: int, cut: int
) -> None:
    whole = make_pdf(REPORT)
    for body in (
        b"%PDF-1.7\n" + noise,
        whole[:place] + noise + whole[place + cut :],
        whole[:place],
    ):
        with contextlib.suppress(SourceUnreadable):  # in words, which is all that is asked
            assert read(body, "application/pdf").html


@pytest.mark.parametrize(("creator", "author"), [("A. Bonin", "A. Bonin"), ("python-docx", "")])
def test_a_word_file_keeps_headings_and_takes_no_tool_for_an_author(
    creator: str, author: str
) -> None:
    core = (
        '<cp:coreProperties xmlns:cp="a" xmlns:dc="b" xmlns:dcterms="c"><dc:title>Salt</dc:title>'
        f"<dc:creator>{creator}</dc:creator><dc:description>generated by "
        f"python-docx</dc:description>"
        "<dcterms:created>2013-12-23T23:15:00Z</dcterms:created></cp:coreProperties>"
    )
    body = make_docx(
        paragraph("The harbour", "Heading1") + paragraph("It was rebuilt in 1287."), core=core
    )
    page = read(body, name="report.docx")
    assert (page.title, page.author, page.published) == ("Salt", author, "")
    assert "<h1>The harbour</h1>" in page.html
    assert "<p>It was rebuilt in 1287.</p>" in page.html


def item(text: str) -> str:
    numbering = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    return f"<w:p><w:pPr>{numbering}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def table(*rows: Sequence[str]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


@pytest.mark.parametrize("paragraphs", [1, 30_000], ids=["short", "long"])
def test_a_word_file_of_any_length_keeps_headings_paragraphs_items_and_tables(
    paragraphs: int,
) -> None:
    filling = "".join(
        paragraph(f"Words of paragraph {n} about the harbour.") for n in range(paragraphs)
    )
    tons = table(("Year", "Tons"), ("1871", "40 &amp; more"))
    body = paragraph("Salt", "Heading2") + item("one pan") + tons + filling
    with bounded():
        page = read(make_docx(body), name="a.docx")
    assert "<h2>Salt</h2>" in page.html
    assert "one pan" in page.html
    assert "<li>one pan</li>" in page.html
    flat = page.html.replace("\n", "").replace("<p>", "").replace("</p>", "")
    assert "<tr><td>1871</td><td>40 &amp; more</td></tr>" in flat
    assert f"Words of paragraph {paragraphs - 1} about" in page.html
    assert page.unread == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "<w:tbl><w:tr>" + "<w:tc><w:p/></w:tc>" * 200_000 + "</w:tr></w:tbl>",
        "<w:tbl><w:tr><w:tc>" * 30_000 + paragraph("deep") + "</w:tc></w:tr></w:tbl>" * 30_000,
        "<w:sdt><w:sdtContent>" * 20_000 + paragraph("deep") + "</w:sdtContent></w:sdt>" * 20_000,
        pytest.param(paragraph("x") * 400_000, marks=pytest.mark.nightly),
    ],
    ids=["many cells", "tables in tables", "deep", "many paragraphs"],
)
def test_a_small_word_file_of_many_elements_takes_seconds(body: str) -> None:
    with bounded(), contextlib.suppress(SourceUnreadable):  # in words, which is all that is asked
        assert read(make_docx(body), name="a.docx").html


def test_word_files_that_are_bombs_or_damaged_are_refused() -> None:
    assert "unpacks to" in why_unreadable(make_docx(paragraph("boom " * 7_000_000)))
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    assert "entities" in why_unreadable(make_docx(paragraph("&b;"), extra=laughs))
    assert "damaged" in why_unreadable(make_docx("<w:p><w:r>"))
    assert "without text" in why_unreadable(make_docx(""))
    assert "application/zip" in why_unreadable(make_docx("x")[:200])


def test_markdown_becomes_html_as_does_html_inside_it() -> None:
    front = (
        "---\nsubtitle: Sea\ntitle: 'Salt'\nauthor: Anna Berg\ndate: 2024-05-06T10:00:00Z\n---\n"
    )
    text = (
        f"{front}# Pans\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 "
        f"|\n\n<script>alert(1)</script>\n"
    )
    page = read(text.encode(), "text/markdown")
    assert (page.title, page.author, page.published) == ("Salt", "Anna Berg", "2024-05-06")
    assert "<h1>Pans</h1>" in page.html
    assert "<td>2</td>" in page.html
    assert "alert(1)" not in "\n".join(block.text for block in read_document(page).blocks)
    assert read(b"# One heading\n\ntext", "text/plain", "/notes.md").title == "One heading"


def test_plain_text_keeps_paragraphs_and_the_lines_of_code() -> None:
    broken = b"The first line of a paragraph that was broken to the\nwidth of a screen & more.\n\n"
    page = read(broken + b"Second <b>one</b>.\n\n    def f():\n        return 1\n", "text/plain")
    assert (
        "<p>The first line of a paragraph that was broken to the width of a screen &amp; more.</p>"
        in page.html
    )
    assert "<p>Second &lt;b&gt;one&lt;/b&gt;.</p>" in page.html
    assert "<pre>    def f():\n        return 1</pre>" in page.html


def test_json_becomes_nested_lists_a_person_can_read() -> None:
    value = {
        "title": "Salt <pans>",
        "years": [1287, 1343],
        "open": True,
        "keeper": None,
        "at": {"town": "Piran"},
    }
    page = read(json.dumps(value).encode(), "application/json; charset=utf-8")
    assert page.title == "Salt <pans>"
    assert "<li>title: Salt &lt;pans&gt;</li>" in page.html
    assert "<li>town: Piran</li>" in page.html
    assert "<li>1287</li>" in page.html
    assert "<li>keeper: null</li>" in page.html


def test_json_without_end_or_bottom_is_cut_or_read_as_text() -> None:
    deep = read(b"[" * 100_000 + b"]" * 100_000, "application/json")
    assert "[" in deep.html
    wide = read(json.dumps(list(range(50_000))).encode(), "application/json")
    assert wide.unread == "what follows its first 20000 values"
    assert "not json at all" in read(b"{not json at all", "application/json").html


def test_json_lines_and_csv_become_lists_and_tables() -> None:
    assert "<li>b: 2</li>" in read(b'{"a": 1}\n{"b": 2}\n', "application/x-ndjson").html
    table = read(b"town;salt\nPiran;12\nIzola;<7>\n", "text/csv").html
    assert "<th>town</th>" in table
    assert "<td>&lt;7&gt;</td>" in table


RSS = b"""<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>
<title>Salt news</title><language>en-gb</language><description>All of it</description>
<item><title>Pans &amp; people</title><link>https://example.org/1</link><pubDate>Fri, 02 Jan 2026 10:00:00 GMT</pubDate>
<description><![CDATA[<p>They <b>work</b> at dawn.<div>]]></description></item>
<item><title>Second</title><link>javascript:alert(1)</link><description>plain words</description></item>
</channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>Salz</title><entry><title>Eins</title>
<link href="https://example.org/e"/><updated>2026-01-02T00:00:00Z</updated>
<summary>Kurz und gut.</summary></entry></feed>"""


def test_feeds_become_articles_with_links_and_dates() -> None:
    page = read(RSS, "application/rss+xml")
    assert (page.title, page.language) == ("Salt news", "en")
    assert '<a href="https://example.org/1">Pans &amp; people</a>' in page.html
    assert "They <b>work</b> at dawn." in page.html
    assert "javascript:" not in page.html
    assert "<p>plain words</p>" in page.html
    atom = read(ATOM, "text/xml")
    assert (atom.title, atom.language) == ("Salz", "de")
    assert "https://example.org/e" in atom.html


def test_xml_gives_its_texts_and_never_its_entities() -> None:
    assert (
        "<p>Piran</p>"
        in read(b"<?xml version='1.0'?><t><town>Piran</town></t>", "application/xml").html
    )
    bomb = b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha ha ha ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><l>&b;</l>'
    assert "ha ha ha ha ha" not in read(bomb, "application/xml").html
    assert "&lt;!ENTITY" in read(bomb, "application/xml").html  # shown as text, never parsed
    hidden = bomb.replace(b"<!DOCTYPE", b"<!--" + b"x" * 9000 + b"--><!DOCTYPE")
    assert "&lt;!ENTITY" in read(hidden, "application/xml").html
    outside = (
        b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><l>&x;</l>'
    )
    assert "root:" not in read(outside, "application/xml").html


def test_a_feed_with_deeply_nested_content_takes_no_time() -> None:
    with bounded():
        deep = RSS.replace(b"They", b"<i>" * 100_000)
        assert "work" in read(deep, "application/rss+xml").html


@pytest.mark.parametrize(
    ("name", "body", "kind"),
    [
        ("a.html", b"<p>Salt of Piran</p>", "text/html"),
        ("a.md", b"# Salt of Piran", "text/markdown"),
        ("a.txt", b"Salt of Piran", "text/plain"),
        ("a.py", b"print('Salt of Piran')", "text/x-source"),
        ("a.json", b'{"t": "Salt of Piran"}', "application/json"),
        ("a.csv", b"t\nSalt of Piran\n", "text/csv"),
        ("noending", b"<!doctype html><p>Salt of Piran</p>", "text/html"),
        ("a.pdf", make_pdf([[("Salt of Piran", 11)]]), "application/pdf"),
    ],
)
def test_files_below_a_root_are_read_by_their_kind(
    tmp_path: Path, name: str, body: bytes, kind: str
) -> None:
    (tmp_path / name).write_bytes(body)
    page = read_file(tmp_path / name, roots=[tmp_path], max_bytes=100_000)
    assert page.media_type == kind
    assert "Salt of Piran" in page.html
    assert page.title
    assert page.final_url == (tmp_path / name).resolve().as_uri()
    assert read_file(Path(name), roots=[tmp_path], max_bytes=100_000).html == page.html


def test_nothing_outside_the_roots_is_read_by_any_road(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "folder").symlink_to(outside)
    (inside / "loop").symlink_to(inside / "loop")
    roads = [
        "link.txt",
        "folder/secret.txt",
        "../out/secret.txt",
        "loop",
        "/etc/passwd",
        str(outside / "secret.txt"),
    ]
    for road in roads:
        with pytest.raises((AddressRefused, SourceNotFound)) as caught:
            read_file(inside / road, roots=[inside], max_bytes=1000)
        assert "secret\n" not in str(caught.value)
    with pytest.raises(AddressRefused, match="no folder is open"):
        read_file(outside / "secret.txt", roots=[], max_bytes=1000)
    with pytest.raises(AddressRefused, match="does not lie below"):
        read_file(tmp_path / "inside-neighbour" / "x", roots=[tmp_path / "in"], max_bytes=1000)


def test_folders_pipes_missing_and_large_files_are_refused_in_words(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large.txt").write_bytes(b"x" * 2000)
    with pytest.raises(AddressRefused, match="not a regular file"):
        read_file(tmp_path / "pipe", roots=[tmp_path], max_bytes=1000)
    with pytest.raises(AddressRefused, match="not a regular file"):
        read_file(tmp_path, roots=[tmp_path], max_bytes=1000)
    with pytest.raises(SourceNotFound):
        read_file(tmp_path / "missing.txt", roots=[tmp_path], max_bytes=1000)
    with pytest.raises(SourceTooLarge, match="2,000 bytes"):
        read_file(tmp_path / "large.txt", roots=[tmp_path], max_bytes=1000)


def test_a_file_url_names_a_path_of_this_machine_only(tmp_path: Path) -> None:
    odd = tmp_path / "a b ü.txt"
    assert path_of_url(odd.as_uri()) == odd
    with pytest.raises(AddressRefused, match="another machine"):
        path_of_url("file://server/share/x.txt")


def test_the_key_of_a_file_changes_when_it_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    before = file_key(path)
    assert file_key(path) == before
    path.write_text("three")
    assert file_key(path) != before


KINDS = [
    "",
    "text/html",
    "text/plain",
    "application/json",
    "application/xml",
    "text/csv",
    "application/pdf",
    "image/png",
]


@given(
    st.binary(max_size=2000),
    st.sampled_from(KINDS),
    st.sampled_from(["", "/x.md", "/x.jsonl", "/x.docx", "/x.rss"]),
)
@settings(deadline=None)
def test_any_bytes_under_any_type_become_a_page_or_are_refused_in_words(
    body: bytes, kind: str, name: str
) -> None:
    try:
        page = read(body, kind, name)
    except SourceUnreadable as e:
        assert e.what
    else:
        assert page.html
        assert page.content_hash


tags = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "<",
        ">",
        "<noscript>",
        "<title>",
        "<div id=root>",
    ]
)


@given(st.lists(tags | st.text(max_size=12), max_size=60).map("".join))
def test_any_tangle_of_tags_is_looked_at_without_a_crash(html: str) -> None:
    try:
        assert look_at(html).html
    except Unreadable as e:
        assert "page" in str(e)
