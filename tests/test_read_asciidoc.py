"""AsciiDoc source: titles, blocks, lists, terms and tables without their markup."""

import time

from extras.documents.asciidoc import is_asciidoc
from pipeline.read.plain import plain_to_html

PAGE = """\
ferrycli(1)
===========
:toc: left

NAME
----
ferrycli - sells tickets at the landing

SYNOPSIS
--------
[verse]
'ferrycli' sell [--child] <crossing>

OPTIONS
-------
-c::
--child::
	Sell at half price. See linkgit:ferry-fares[5].
+
Not on *night* crossings.

--port=<n>::
	Listen on port 'n'.

== Rules

.Fog
[caption="Rule: "]
====
Do not sail with less than 200 m of sight.
====

. Cast off.
. Sound the horn:
+
----
horn --long
----
. Sail.

* Islands
** Skerry
* Mainland

|===
|Crossing |Crowns
|Skerry |40
|Mainland |90
|===
"""


def test_titles_of_both_forms_are_headings_and_attributes_go() -> None:
    html = plain_to_html(PAGE).html
    assert "<h1>ferrycli(1)</h1>" in html
    assert "<h2>OPTIONS</h2>" in html
    assert "<h2>Rules</h2>" in html
    assert not any(
        mark in html for mark in ("====", "----", "[verse]", ":toc:", "linkgit", "caption")
    )


def test_terms_have_their_description_with_what_is_attached() -> None:
    html = plain_to_html(PAGE).html
    assert "<dt>-c</dt><dt>--child</dt><dd>Sell at half price. See ferry-fares(5)." in html
    assert "<p>Not on night crossings.</p></dd><dt>--port=&lt;n&gt;</dt>" in html


def test_a_caption_keeps_the_kind_of_its_block() -> None:
    assert "<b>Rule: Fog</b></p>\n<div><p>Do not sail" in plain_to_html(PAGE).html


def test_steps_keep_the_listing_that_is_attached_to_one() -> None:
    html = plain_to_html(PAGE).html
    assert (
        "<ol><li>Cast off.</li><li>Sound the horn:<pre>horn --long</pre></li><li>Sail.</li></ol>"
        in html
    )


def test_a_list_inside_a_list_is_inside_its_item() -> None:
    assert (
        "<ul><li>Islands<ul><li>Skerry</li></ul></li><li>Mainland</li></ul>"
        in plain_to_html(PAGE).html
    )


def test_lines_between_bars_are_the_rows_of_a_table() -> None:
    html = plain_to_html(PAGE).html
    assert "<th>Crowns</th>" in html
    assert "<td>90</td>" in html


def test_restructured_text_and_markdown_are_no_asciidoc() -> None:
    assert not is_asciidoc(
        "Ferry\n=====\n\nRun it::\n\n    ferry --go\n\nOr so::\n\n    ferry\n\n.. note:: Mind the "
        "tide.\n"
    )
    assert not is_asciidoc("# Ferry\n\n- one\n- two\n\n[link](https://example.org)\n")
    assert not is_asciidoc("To the keeper\n\nThe lamp: it is out.\n")


def test_blocks_within_blocks_without_end_are_read_in_time() -> None:
    deep = "Lamp\n====\n\n" + "====\n--\n****\n" * 3_000 + "\n* a\n" * 3_000 + "x::\n" * 3_000
    start = time.process_time()
    assert "Lamp" in plain_to_html(deep + "\n:a: b\n" * 4).html
    assert time.process_time() - start < 5
