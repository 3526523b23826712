"""Pages as they are today: what a person reads of them comes out, to the letter and in its
lines."""

import pytest

from bench.html_lost import compare
from readers.html.blocks import content_blocks
from readers.html.document import read_document
from readers.page import Page
from tests.support.today import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_today_reads_as_it_looks(name: str) -> None:
    html, text = PAGES[name]
    # Without what the page says of itself beside its text
    assert content_blocks(read_document(Page("u", "u", "", html, "text/html")).root)[0] == text


def _altered(shown: str, ours: str) -> int:
    beside = {
        "pieces": [],
        "alts": "",
        "shut": "",
        "unseen": "",
        "whole": "",
        "rows": [],
        "listings": [],
    }
    return compare({"text": shown, **beside}, ours).altered


def test_the_benchmark_separates_glued_numbers_from_a_date_beside_the_same_word() -> None:
    shown = "Ann 4 4 gold badges. Bob 44 gold badges. Eve 4 4 silver badges."
    assert (
        _altered(
            shown, "Ann 4 gold badges. Bob 44 gold badges. Eve 4 silver badges. Asked 2019 03 44"
        )
        == 0
    )
    assert _altered(shown, "Ann 44 gold badges. Bob 44 gold badges. Eve 4 4 silver badges.") == 1
