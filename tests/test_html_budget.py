"""Budgets: never over, never empty, whatever the pages; and how many tokens are taken when no one
says."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.html_questions import pages
from pipeline.document.units import tag_sentences
from pipeline.evidence.assemble import UNASKED
from pipeline.fetch.files import read_file
from pipeline.prune.prune import UNASKED_PAGE, PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.relevance import Blend
from readers.html.document import read_document
from tests.support import LIBRARY, Connect, Site, data_of, text_of
from tests.support.html_budgets import mutated, nests, one_case
from tests.support.pages import document

pytestmark = pytest.mark.anyio
CASES = 120


@pytest.mark.parametrize("seed", range(3))
def test_mutated_real_pages_stay_within_every_budget(shared: Path, seed: int) -> None:
    sources = list(pages(25).values())
    assert shared.is_dir()
    for number in range(CASES):
        assert one_case(sources, random.Random(f"test {seed}:{number}")) == ""


TAGS = (
    "p",
    "h1",
    "h3",
    "ul",
    "ol",
    "li",
    "table",
    "tr",
    "th",
    "td",
    "pre",
    "dl",
    "dt",
    "dd",
    "div",
    "b",
    "details",
)
MARKUP = st.lists(
    st.one_of(
        st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS]),
        st.sampled_from(
            ["river", "1871", "a | b", "&lt;", "\n\n", "```", "天地", "x" * 90, "first of all "]
        ),
    ),
    max_size=60,
).map("".join)


@given(MARKUP, st.integers(0, 200), st.sampled_from(["", "the first river", "who wrote it"]))
@settings(max_examples=100, deadline=None)
async def test_html_nests_and_fits_for_any_soup_of_tags(html: str, budget: int, query: str) -> None:
    one = document(html)
    result = await prune(
        [one], Question(query), options=PruneOptions(budget, "html"), reader=Blend(None)
    )
    assert result.tokens <= budget
    assert all(nests(page.text) for page in result.pages)
    if budget >= 20 and one.blocks:
        assert result.pages


def test_mutation_depends_on_its_seed_alone() -> None:
    html = "<p>one</p><p>two</p>" * 50
    assert mutated(html, random.Random(7)) == mutated(html, random.Random(7))
    assert mutated(html, random.Random(7)) != mutated(html, random.Random(8))


FILLER = "".join(
    f"<p>Paragraph {i} describes birds and trees and weather of that day at length.</p>"
    for i in range(90)
)


async def test_without_a_budget_one_clear_answer_takes_few_tokens_and_many_near_ones_more() -> None:
    clear = document(f"<h1>Diary</h1>{FILLER}<p>The zeppelin landed at Orvane in 1931.</p>")
    flights = (
        f"<p>Zeppelin number {i} landed at Orvane after {i} hours in the air.</p>"
        for i in range(90)
    )
    many = document(f"<h1>Log</h1>{''.join(flights)}")
    options = PruneOptions(None, "html")
    one = await prune(
        [clear],
        Question("When did the zeppelin land at Orvane?"),
        options=options,
        reader=Blend(None),
    )
    more = await prune(
        [many],
        Question("When did the zeppelin land at Orvane?"),
        options=options,
        reader=Blend(None),
    )
    assert "1931" in one.pages[0].text
    assert 2 * one.tokens < more.tokens <= more.budget == UNASKED


async def test_without_query_and_budget_the_page_is_read_up_to_a_fixed_length() -> None:
    result = await prune(
        [document(FILLER)], Question(""), options=PruneOptions(None), reader=Blend(None)
    )
    assert result.tokens <= result.budget == UNASKED_PAGE


@pytest.mark.parametrize("budget", [40, 400])
async def test_reading_from_the_top_part_by_part_gives_every_unit_in_the_order_of_the_page(
    budget: int,
) -> None:
    for file in sorted(LIBRARY.iterdir())[:12]:
        page = read_document(read_file(file, roots=[LIBRARY]))
        headings = {block.text for block in page.blocks if block.kind == "heading"}
        parts: list[str] = []
        more = True
        while more:
            options = PruneOptions(budget, "text", part=len(parts) + 1)
            pruned = await prune([page], Question(""), options=options, reader=Blend(None))
            # A heading comes again above each piece of a unit that is cut.
            lines = [line for one in pruned.pages for line in one.text.splitlines()]
            parts.append(
                "\n".join(line for line in lines if line.rpartition(" › ")[2] not in headings)
            )
            numbers = [number for one in pruned.pages for number in one.kept]
            assert numbers == sorted(numbers), file.name
            more = bool(pruned.pages) and pruned.left_out + pruned.around > 0
        read = squashed("\n".join(parts))
        lost = [
            unit.text
            for unit in tag_sentences(page)
            if page.blocks[unit.block].kind not in {"heading", "row"}
            and squashed(unit.text) not in read
        ]
        assert lost == [], file.name


def squashed(text: str) -> str:
    return re.sub(r"\W+", "", text.casefold())


async def test_the_tool_chooses_a_budget_and_keeps_to_a_named_one(
    connect: Connect, site: Site
) -> None:
    url = site.put(
        "/diary",
        f"<title>Diary</title><h1>Diary</h1>{FILLER}<p>The zeppelin landed in <b>1931</b>.</p>",
    )
    arguments = {"sources": [url], "question": "When did the zeppelin land?"}
    async with connect(networks="loopback", embedder="none") as client:
        chosen = await client.call_tool("fetch_and_prune_html", arguments)
        named = await client.call_tool("fetch_and_prune_html", {**arguments, "max_tokens": 150})
        small = await client.call_tool("fetch_and_prune_html", {**arguments, "max_tokens": 50})
    assert "1931" in text_of(chosen) and "1931" in text_of(named)
    assert data_of(chosen)["tokens"] < 600
    assert data_of(named)["tokens"] <= 150
    assert small.is_error and "100 or more" in text_of(small)
