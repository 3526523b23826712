"""Pages as they are today: what a person reads of them comes out, to the letter and in its
lines."""

import pytest

from readers.html.blocks import content_blocks
from readers.html.document import read_document
from readers.page import Page
from tests.support.today import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_today_reads_as_it_looks(name: str) -> None:
    html, text = PAGES[name]
    # Without what the page says of itself beside its text
    assert content_blocks(read_document(Page("u", "u", "", html, "text/html")).root)[0] == text
