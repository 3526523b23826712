"""Manual pages saved as text: sections, terms with descriptions, lists, examples."""

import time

import pytest

from extras.documents.manual import is_manual
from pipeline.read.plain import plain_to_html

PAGE = """\
SKIFF(1)                         General Commands Manual                        SKIFF(1)

NAME
       skiff - rows files from one shore to the other

SYNOPSIS
       skiff [-vn] [--oars=N] SHORE
       skiff --list

       Without a shore the nearest one is taken, as the harbour master wrote it down in spring.

DESCRIPTION
       Skiff rows files.  It can carry several at once, and it  knows  the  tides.   It
       waits for high water where the landing is dry, which may take up to six hours of
       pa‐
       tience.

   Tides
       The tide table is read from /etc/tides.

OPTIONS
       -n     do not row, only say what would be rowed

       -v, --verbose
              say more about each stroke

              Twice: also about the wind.

       --oars=N
              row with N oars;
              the default is 2

EXIT STATUS
       o      0 - landed

       o      1 - capsized

       o

              o      4 - Harbour closed. Either:

                     for the night

       o      23 - lost an oar

KEYS
       q           Stop rowing.
       Left, Right
                   Turn the skiff.
       Space       Rest.

EXAMPLES
       To row a letter to Brindle:

              $ skiff --oars=4 brindle < letter
              landed

Skiff 2.1                              4 May 2026                               SKIFF(1)
"""


def test_a_manual_page_is_reported_by_its_first_line() -> None:
    assert is_manual(PAGE)
    assert not is_manual("NOTES\n\nThe skiff(1) was rowed home.\n")
    assert not is_manual("SKIFF(1)   a report about BARGE(1)\n\nIt floats.\n")


def test_terms_get_their_descriptions() -> None:
    html = plain_to_html(PAGE).html
    assert "<dt>-n<dd><p>do not row, only say what would be rowed</p>" in html
    assert (
        "<dt>-v, --verbose<dd><p>say more about each stroke</p>\n<p>Twice: also about the wind.</p>"
        in html
    )
    assert "<dt>--oars=N<dd><p>row with N oars; the default is 2</p>" in html
    assert "<dt>q<dd><p>Stop rowing.</p>\n<dt>Left, Right<dd><p>Turn the skiff.</p>" in html


def test_the_synopsis_and_examples_are_listings_and_prose_is_not() -> None:
    html = plain_to_html(PAGE).html
    assert "<pre>skiff [-vn] [--oars=N] SHORE\nskiff --list</pre>" in html
    assert "<p>Without a shore the nearest one is taken" in html
    assert "<pre>$ skiff --oars=4 brindle &lt; letter\nlanded</pre>" in html


def test_broken_words_sections_and_the_title_are_whole() -> None:
    page = plain_to_html(PAGE)
    assert page.title == "SKIFF(1) – rows files from one shore to the other"
    assert "six hours of patience." in page.html
    assert "<h3>Tides</h3>" in page.html
    assert "4 May 2026" not in page.html


def test_bold_print_of_a_terminal_is_read_as_its_letters() -> None:
    bold = PAGE.replace("NAME", "N\bNA\bAM\bME\bE")
    assert plain_to_html(bold).html == plain_to_html(PAGE).html


@pytest.mark.parametrize(
    "line", ["\n", "o      item\n\n", "       -x     y\n", "term\n       text\n", " " * 7 + "a b\n"]
)
def test_ten_times_the_lines_take_about_ten_times_as_long(line: str) -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        plain_to_html(PAGE.replace("DESCRIPTION\n", "DESCRIPTION\n" + line * count))
        return time.process_time() - began

    seconds(100)
    assert seconds(20_000) < 30 * seconds(2_000) + 0.5
