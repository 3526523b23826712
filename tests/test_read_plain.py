"""Plain text: what its lines are is seen in what they look like, and a line stays a line."""

import pytest

from pipeline.documents import Block, Page
from pipeline.html.document import read_document
from pipeline.read.plain import plain_to_html

ESSAY = """The old school typed two spaces after a full stop.  That is how I learned it.
It makes no difference to a reader.  A program that takes it for a table of code
is in the wrong, and there are many."""


def blocks(text: str) -> list[Block]:
    return list(read_document(Page("u", "u", "", plain_to_html(text).html, "text/html")).blocks)


def units(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks(text)]


def test_a_double_blank_makes_no_listing_of_an_essay() -> None:
    assert units(ESSAY) == [("paragraph", " ".join(ESSAY.split()))]


@pytest.mark.parametrize(
    "table",
    [
        "Peak        Height   Country\nK2          8611 m   Pakistan\nEverest     8849 m   Nepal",
        "Peak\tHeight\tCountry\nK2\t8611 m\tPakistan\nEverest\t8849 m\tNepal",
        "| Peak | Height | Country |\n|------|------|------|\n| K2 | 8611 m | Pakistan |\n| Everest | 8849 m | Nepal |",
        "+--+--+\n| Peak | Height | Country |\n+==+==+\n| K2 | 8611 m | Pakistan |\n| Everest | 8849 m | Nepal |",
    ],
)
def test_columns_are_a_table_under_its_header(table: str) -> None:
    row = blocks(f"Some mountains.\n\n{table}")[-1]
    assert row.kind == "row"
    assert row.cells == ("Everest", "8849 m", "Nepal")
    assert row.text == "Peak: Everest; Height: 8849 m; Country: Nepal"


def test_names_with_values_are_definitions() -> None:
    assert units("Name: Storm lantern\nPrice: 129 EUR\nIn stock: yes") == [
        ("definition", "Name: Storm lantern"),
        ("definition", "Price: 129 EUR"),
        ("definition", "In stock: yes"),
    ]
    assert units("We met twice: in May\nand again in June of the same year.") == [
        ("paragraph", "We met twice: in May and again in June of the same year."),
    ]


def test_lines_of_a_log_are_units_of_their_own() -> None:
    log = "2026-03-05 10:00:01 INFO started\n2026-03-05 10:00:09 ERROR disk full on /var"
    assert [text for _, text in units(log)] == log.split("\n")
    assert [text for _, text in units("[10:00:01] joined\n[10:00:02] left")] == ["[10:00:01] joined", "[10:00:02] left"]


@pytest.mark.parametrize(
    "code",
    [
        "def area(r):\n    return 3 * r",
        "    indented by four\n        and more",
        "$ make test\n# done",
        "for (i = 0; i < n; i++) {\n  run(i);\n}",
        "   a      b\n  / \\    / \\\n c   d  e   f",
    ],
)
def test_code_keeps_its_lines(code: str) -> None:
    assert f"<pre>{code}</pre>" in plain_to_html(code).html.replace("&lt;", "<")


def test_indented_sentences_are_no_code() -> None:
    lines = ("The command prints the names of all files that it read.", "It writes nothing to disk unless asked to.")
    text = "\n".join(" " * 7 + line for line in lines)
    assert {kind for kind, _ in units(text)} == {"paragraph"}


def test_headings_are_told_from_short_lines() -> None:
    found = blocks("INTRODUCTION\n\nIt began in May.\n\n2.1 Sources\n\nThere are two.\n\nYes.\n\nRegards\n\nANNA")
    assert [block.text for block in found if block.kind == "heading"] == ["INTRODUCTION", "2.1 Sources"]
    assert found[3].heading_path == ("2.1 Sources",)


def test_lines_stay_lines_unless_they_were_broken_to_fit() -> None:
    verse = "Tyger Tyger, burning bright,\nIn the forests of the night;\nWhat immortal hand or eye,"
    assert [text for _, text in units(verse)] == verse.split("\n")
    long = "First paragraph on one line. " * 20 + "\n" + "Second paragraph on one line. " * 20
    assert len(units(long)) == 2


def test_items_keep_their_continuation_and_numbers() -> None:
    assert units("- one\n  and its end\n- two") == [("item", "one and its end"), ("item", "two")]
    assert '<ol start="3"><li>three</li>' in plain_to_html("3. three\n4. four").html


@pytest.mark.parametrize(
    "line", ["-" * 200_000 + "x", " " * 200_000 + "x", "a:" * 100_000, "|" * 200_000, "; " * 100_000]
)
def test_no_line_takes_longer_than_it_is_long(line: str) -> None:
    assert plain_to_html(f"{line}\n{line}").html
