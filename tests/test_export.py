"""A session handed on: each form as it was agreed (golden files), hostile pages made harmless, read
by real readers.

After a change that is meant: `python -m tests.test_export` writes the golden files; read their
diff.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from pipeline.session.export import export, exports
from pipeline.session.session import SeenPage, Session, Turn
from readers.page import Evidence, Score

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = (
    '<script>alert(1)</script> "quoted" & [click](javascript:alert(1)) '
    "![x](http://evil.example/pixel.png)\n"
    "# no heading\n- no item\n1. no number\n=====\n`code` *bold* _it_ {brace} } { 100 % $x$ ~ ^ "
    "\\ @misc{x, y={z}}\n"
    "www.evil.example \u202egnp.exe\u202c <img src=x onerror=alert(1)>"
)


def quote(text: str, url: str, citation: str) -> Evidence:
    return Evidence(
        text,
        url,
        "",
        "html/body/p",
        (3,),
        Score(1.0, "read"),
        citation,
        start=10,
        end=10 + len(text),
    )


def page(
    url: str, title: str, author: str = "", published: str = "", kind: str = "text/html"
) -> SeenPage:
    return SeenPage(
        url,
        url,
        f"winnow://page/{24 * '0'}",
        title,
        author,
        published,
        "en",
        kind,
        "2026-11-22T12:00:00+00:00",
    )


def session() -> Session:
    """A session of three questions: one answered, one on hostile pages, one that never was."""
    light, report = "https://orvane.example/light", "https://orvane.example/report.pdf"
    evil, own, data = (
        "https://evil.example/a?b={c}&d=%7B",
        "file:///home/ann/My%20notes.txt",
        "javascript:alert(1)//x",
    )
    harbour = quote(
        "The light was first lit on 4 May 1871.", light, f"{light}#:~:text=The%20light,1871"
    )
    depth = quote("Stop | Depth\nPell | 12 m", report, f"{report}#page=12:~:text=Pell")
    again = quote("It burnt oil – until 1921.", light, f"{light}#:~:text=It%20burnt")
    turns = (
        Turn(
            "When was the light on Orvane Head first lit, and how deep is Pell?",
            "2026-11-22T12:00:00+00:00",
            "unsure",
            "Said twice.",
            ("orvane light",),
            (harbour, depth, again),
            ("https://orvane.example/slow: It was late.",),
        ),
        Turn(
            "What do <b>hostile</b> pages say?",
            "2026-11-22T12:01:00+00:00",
            "none",
            "*Nothing* here.",
            (),
            (
                quote(HOSTILE, evil, f"{evil}#:~:text=x"),
                quote("Mine.", own, own),
                quote("Data.", data, data),
            ),
        ),
        Turn("And who kept it?", "2026-11-22T12:02:00+00:00"),
    )
    pages = (
        page(light, "Orvane Light & Co. – 50 % of it", "Anna Lind", "1999-05-04"),
        page(report, "Depths", "Hydrographic Office", "2024", "application/pdf"),
        page(
            evil,
            "</title><script>alert(2)</script> } @book{evil, title={x}",
            "Mallory\nER  - \nTY  - JOUR",
        ),
        page(own, ""),
        page("https://orvane.example/unquoted", "Read in vain"),
    )
    return Session(
        "winnow://session/0123456789abcdef01234567",
        "digest",
        "2026-11-22T12:00:00+00:00",
        turns,
        pages,
    )


@pytest.mark.parametrize("form", exports())
def test_each_form_is_as_its_golden_file(form: str) -> None:
    written = export(session(), form)
    assert written == (GOLDEN / f"session.{form}").read_bytes().decode()
    assert written == export(session(), form)


class Tags(HTMLParser):
    """What a browser would take for elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.found.append((tag, dict(attrs)))


def test_the_html_runs_and_loads_nothing_and_leads_to_pages_and_files_only() -> None:
    tags = Tags()
    tags.feed(export(session(), "html"))
    allowed = "html head meta title style body h1 h2 footer ul ol li blockquote p cite a bdi"
    assert {tag for tag, _ in tags.found} <= set(allowed.split())
    links = [attributes["href"] or "" for tag, attributes in tags.found if tag == "a"]
    assert len(links) == 9
    assert all(link.startswith(("https://", "file:///")) for link in links)
    given = {name for _, attributes in tags.found for name in attributes}
    assert given <= {"charset", "http-equiv", "content", "name", "dir", "href", "rel"}
    policy = next(a["content"] or "" for tag, a in tags.found if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "\u202e" not in export(session(), "html")


def test_a_reader_of_markdown_draws_the_words_of_pages_as_words() -> None:
    drawn = Tags()
    drawn.feed(
        MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(
            export(session(), "markdown")
        )
    )
    assert {tag for tag, _ in drawn.found} <= {
        "h1",
        "h2",
        "p",
        "ul",
        "ol",
        "li",
        "blockquote",
        "br",
        "a",
    }
    links = [attributes["href"] or "" for tag, attributes in drawn.found if tag == "a"]
    assert len(links) == 7  # this reader draws no link to a file
    assert all(link.startswith("https://") for link in links)


def test_a_reader_of_bibtex_finds_each_source_with_its_quotes_links_and_pages() -> None:
    bibtexparser = pytest.importorskip(
        "bibtexparser", reason="the reader of BibTeX is not installed (group dev)"
    )
    found = bibtexparser.loads(export(session(), "bibtex")).entries
    assert [entry["ENTRYTYPE"] for entry in found] == ["misc"] * 5
    light, report, evil, own, _ = found
    assert light["author"] == "{Anna Lind}"
    assert light["title"] == r"{Orvane Light \& Co. – 50 \% of it}"
    assert (light["year"], light["month"], light["url"]) == (
        "1999",
        "5",
        "https://orvane.example/light",
    )
    assert "“The light was first lit on 4 May 1871.”" in light["annote"]
    assert "text=It\\%20burnt" in light["annote"]
    assert report["pages"] == "12"
    assert "p. 12" in report["annote"]
    assert "@book" in evil["title"]
    assert evil["url"] == "https://evil.example/a?b=%7Bc%7D&d=%7B"
    assert own["url"] == "file:///home/ann/My%20notes.txt"
    assert len({entry["ID"] for entry in found}) == 5


def test_no_page_ends_a_record_of_ris_or_begins_one() -> None:
    records = export(session(), "ris").split("ER  - \r\n")
    assert len(records) == 6
    assert all(record.strip().startswith("TY  - ELEC") for record in records[:-1])
    assert all(
        re.match(r"[A-Z][A-Z0-9]  - |\Z", line)
        for record in records
        for line in record.split("\r\n")
    )


def test_json_reports_what_programs_need_and_not_whose_session_it_is() -> None:
    reported = json.loads(export(session(), "json"))
    assert "owner" not in reported
    assert reported["turns"][0]["passages"][0]["start"] == 10
    assert reported["turns"][2]["verdict"] == ""


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name in exports():
        (GOLDEN / f"session.{name}").write_bytes(export(session(), name).encode())
