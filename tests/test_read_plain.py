"""Plain text: what its lines are is seen in what they look like, and a line stays a line."""

import pytest

from readers import read
from readers.page import Block, Document
from tests.support.waiting import bounded

ESSAY = """The old school typed two spaces after a full stop.  That is how I learned it.
It makes no difference to a reader.  A program that takes it for a table of code
is in the wrong, and there are many."""


def plain(text: str) -> Document:
    return read(text.encode(), name="a.txt")


def blocks(text: str) -> list[Block]:
    return list(plain(text).blocks)


def units(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks(text)]


def test_a_double_blank_makes_no_listing_of_an_essay() -> None:
    assert units(ESSAY) == [("paragraph", " ".join(ESSAY.split()))]


@pytest.mark.parametrize(
    "table",
    [
        "Peak        Height   Country\nK2          8611 m   Pakistan\nEverest     8849 m   Nepal",
        "Peak\tHeight\tCountry\nK2\t8611 m\tPakistan\nEverest\t8849 m\tNepal",
        "| Peak | Height | Country |\n|------|------|------|\n| K2 | 8611 m | Pakistan |\n| "
        "Everest | 8849 m | Nepal |",
        "+--+--+\n| Peak | Height | Country |\n+==+==+\n| K2 | 8611 m | Pakistan |\n| Everest | "
        "8849 m | Nepal |",
    ],
)
def test_columns_are_a_table_under_its_header(table: str) -> None:
    row = blocks(f"Some mountains.\n\n{table}")[-1]
    assert row.kind == "row"
    assert row.cells == ("Everest", "8849 m", "Nepal")
    assert row.text == "Peak: Everest; Height: 8849 m; Country: Nepal"


def test_rules_in_columns_without_a_row_are_no_table() -> None:
    rules = "----  ----  ----\n-- -- -- --\n----  ----  ----\n----  ----  ----"
    assert {kind for kind, _ in units(f"Before.\n\n{rules}\n\nAfter.")}.isdisjoint({"row"})
    assert units(f"Before.\n\n{rules}\n\nAfter.")[-1] == ("paragraph", "After.")


def test_columns_that_miss_cells_keep_their_lines() -> None:
    disks = (
        "Filesystem      Size  Used Avail Use% Mounted on\n"
        "/dev/vda        252G   33G   70G  32% /\n"
        "/dev/vdb1       1.8T  1.2T             /srv"
    )
    assert units(disks) == [("code", disks)]


LISTED = (
    "-rw-r--r-- 1 anna crew 5853 Mar 12 18:10 fares-of-spring.md\ndrwxr-xr-x 3 anna crew "
    "4096 Mar 12 17:36 leaflets"
)
SERVED = (
    '203.0.113.7 - - [12/Mar/2026:10:00:01 +0000] "GET /ferry HTTP/1.1" 200 5120\n'
    '198.51.100.2 - bob [12/Mar/2026:10:00:04 +0000] "POST /login HTTP/1.1" 302 0'
)
FAILED = (
    '2026-03-12 10:00:01,123 ERROR worker failed\n  File "/srv/app/run.py", line 12, in main\n    '
    "step(4)\n"
    "2026-03-12 10:00:03,007 INFO restarted"
)
COMMIT = (
    "commit 58a1656bad68ef0043e3b66a7ea8463abaa3aac3\nAuthor: Anna Keel "
    "<anna@harbour.example>\nDate: Thu Mar 12"
)


@pytest.mark.parametrize(
    "lines", [LISTED, SERVED, FAILED, COMMIT, "Shopping:\nmilk\nbread (two)\napples"]
)
def test_records_stay_lines_of_their_own(lines: str) -> None:
    assert [text for _, text in units(lines)] == [
        " ".join(line.split()) for line in lines.split("\n")
    ]


def test_a_manual_is_headings_and_text() -> None:
    manual = (
        "DESCRIPTION\n       Shows the timetable in FILE.  With no FILE, or when FILE is -, read\n"
        "       standard input."
    )
    assert units(f"{manual}\n\nEnd.") == [
        ("heading", "DESCRIPTION"),
        (
            "paragraph",
            "Shows the timetable in FILE. With no FILE, or when FILE is -, read standard input.",
        ),
        ("paragraph", "End."),
    ]


def test_names_with_values_are_lines_of_their_own() -> None:
    assert units("Name: Storm lantern\nPrice: 129 EUR\nIn stock: yes") == [
        ("paragraph", "Name: Storm lantern"),
        ("paragraph", "Price: 129 EUR"),
        ("paragraph", "In stock: yes"),
    ]


def test_lines_of_a_log_are_units_of_their_own() -> None:
    log = "2026-03-05 10:00:01 INFO started\n2026-03-05 10:00:09 ERROR disk full on /var"
    assert [text for _, text in units(log)] == log.split("\n")
    assert [text for _, text in units("[10:00:01] joined\n[10:00:02] left")] == [
        "[10:00:01] joined",
        "[10:00:02] left",
    ]


@pytest.mark.parametrize(
    "code",
    [
        "def area(r):\n    return 3 * r",
        "    indented by four\n        and more",
        "$ make test\n# done",
        "$ make test\nAll of the tests have passed, and a report was written.\nIt took four "
        "minutes and ten seconds.",
        "  0           1\n  0 1 2 3 4 5 6 7 8\n +-+-+-+-+-+-+-+-+-+\n |  Version   | Ty |\n "
        "+-+-+-+-+-+-+-+-+-+",
        "for (i = 0; i < n; i++) {\n  run(i);\n}",
        "   a      b\n  / \\    / \\\n c   d  e   f",
    ],
)
def test_code_keeps_its_lines(code: str) -> None:
    assert f"<pre>{code}</pre>" in plain(code).page.html.replace("&lt;", "<")


def test_a_program_is_listings_under_the_numbers_of_their_lines() -> None:
    method = (
        "    def step_{0}(self) -> int:\r\n        first = {0}\r\n\r\n        return first + "
        "{0}\r\n\r\n"
    )
    source = (
        '"""A walk."""\r\n\r\n\r\nclass Walk:\r\n'
        + "".join(method.format(n) for n in range(30))
        + "\r\nrun(Walk())"
    )
    lines, reported, inside = source.split("\r\n"), 0, set()
    for block in read(source.encode(), name="walk.py").blocks:
        if block.kind == "heading":
            numbers, _, around = block.text.partition(" · ")
            first, last = map(int, numbers.removeprefix("Lines ").split("-"))
            inside.add(around)
        else:
            assert block.kind == "code"
            assert block.main
            assert 'class="language-python"' in block.html
            assert "\n".join(lines[first - 1 : last]).strip("\n") == block.text
            assert reported == first - 1, "no line is left out"
            reported = last
            assert block.text.startswith(('"""', "    def", "run")), "cut between methods"
    assert reported == len(lines)
    assert inside == {"", "class Walk:"}


def test_indented_sentences_are_no_code() -> None:
    lines = (
        "The command prints the names of all files that it read.",
        "It writes nothing to disk unless asked to.",
    )
    text = "\n".join(" " * 7 + line for line in lines)
    assert {kind for kind, _ in units(text)} == {"paragraph"}


def test_headings_are_distinguished_from_short_lines() -> None:
    found = blocks(
        "INTRODUCTION\n\nIt began in May.\n\n2.1 Sources\n\nThere are "
        "two.\n\nYes.\n\nRegards\n\nANNA"
    )
    assert [block.text for block in found if block.kind == "heading"] == [
        "INTRODUCTION",
        "2.1 Sources",
    ]
    assert found[3].heading_path == ("2.1 Sources",)


def test_lines_stay_lines_unless_they_were_broken_to_fit() -> None:
    verse = "Tyger Tyger, burning bright,\nIn the forests of the night;\nWhat immortal hand or eye,"
    assert [text for _, text in units(verse)] == verse.split("\n")
    long = "First paragraph on one line. " * 20 + "\n" + "Second paragraph on one line. " * 20
    assert len(units(long)) == 2


def test_items_keep_their_continuation_and_numbers() -> None:
    assert units("- one\n  and its end\n- two") == [("item", "one and its end"), ("item", "two")]
    assert '<ol start="3"><li>three</li>' in plain("3. three\n4. four").page.html


@pytest.mark.parametrize(
    "line",
    [
        "-" * 200_000 + "x",
        " " * 200_000 + "x",
        "a:" * 100_000,
        "|" * 200_000,
        "; " * 100_000,
        "a@" * 100_000,
    ],
)
def test_no_line_takes_longer_than_it_is_long(line: str) -> None:
    with bounded():
        assert plain(f"{line}\n{line}").blocks
