"""Pages as they are today: what a person reads of them comes out, to the letter and in its
lines."""

import pytest

from readers import read
from tests.support.today import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_today_reads_as_it_looks(name: str) -> None:
    html, text = PAGES[name]
    document = read(html.encode(), content_type="text/html; charset=utf-8")
    # Without what the page says of itself beside its text
    blocks = [block for block in document.blocks if block.kind != "about"]
    assert document.text[blocks[0].start :].rstrip() == text
