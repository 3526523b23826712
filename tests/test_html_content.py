"""What a page shows to a reader who asks nothing: its main content."""

from typing import Final

import pytest

from pipeline.prune.prune import PruneOptions, prune
from pipeline.rank.relevance import Blend
from tests.support.pages import document

pytestmark = pytest.mark.anyio
STORY: Final = [
    f"The keeper of lamp {place} rowed out at dusk, trimmed the wick, wrote the hour into the log and came home late."
    for place in range(12)
]
LEAFLET: Final = "<p>One account opens every shop of the islands, and members hear first of our sales.</p>"
OTHERS: Final = "".join(f"<p><a href='/{n}'>Story {n}</a> is what others of our readers liked.</p>" for n in range(4))


def page(body: str) -> str:
    return f"<html><body><div>{LEAFLET}</div><article><h1>Lamps</h1>{body}</article><div>{OTHERS}</div></body></html>"


PARAGRAPHS: Final = "".join(f"<p>{line}</p>" for line in STORY)


async def shown(html: str, question: str = "", part: int = 1) -> str:
    options = PruneOptions(max_tokens=3000, part=part)
    found = await prune([document(html)], question, options=options, reader=Blend(None))
    return "\n".join(one.text for one in found.pages)


async def test_what_stands_before_and_behind_the_story_is_the_next_part() -> None:
    first, second = await shown(page(PARAGRAPHS)), await shown(page(PARAGRAPHS), part=2)
    assert all(line in first for line in STORY) and "# Lamps" in first
    assert "One account" not in first and "others of our readers" not in first
    assert "One account" in second and "others of our readers" in second


async def test_a_question_reaches_what_is_no_main_content() -> None:
    assert "members hear first" in await shown(page(PARAGRAPHS), "Who hears first of the sales of the islands?")


async def test_a_text_for_two_widths_of_screen_is_shown_once() -> None:
    twice = await shown(page(f"<div>{PARAGRAPHS}</div><div>{PARAGRAPHS}</div>"))
    assert [twice.count(line) for line in STORY] == [1] * len(STORY)


async def test_equal_rows_of_a_table_all_stand() -> None:
    rows = "<tr><td>Orvane pier</td><td>one red lamp burns</td></tr>" * 3
    table = f"<table><tr><th>Place</th><th>Lamp</th></tr>{rows}</table>"
    assert (await shown(page(PARAGRAPHS + table))).count("one red lamp burns") == 3


async def test_a_short_page_is_shown_whole() -> None:
    assert "One account" in await shown(f"<body><div>{LEAFLET}</div><article><h1>Lamps</h1><p>Two burn.</p></article>")
