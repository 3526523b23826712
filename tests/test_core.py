"""One core under the tools: the best sentence is always shown, what is around the words stays
small."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from mcp_types import CallToolResult

from tests.support import LIBRARY, Connect, data_of, text_of
from tests.support.tokens import count_tokens

pytestmark = pytest.mark.anyio

BUDGETS = (100, 128, 200, 256, 512, 1000, 3000)
UNASKED = 700
"""Tokens of an answer whose budget no one asks for."""
FRAME_SHARE = 0.15
"""Most of a budget that goes to what is not quoted."""
READING = ("extract_relevant", "fetch_and_prune_html", "research")
FILLER = "".join(
    f"<p>Paragraph {n} writes of birds, of trees and of the weather of that day.</p>"
    for n in range(60)
)
ENGLISH = (
    f"<h2>The light</h2><p>The harbour light of Orvane was built in 1871 by the brothers "
    f"Marr.</p>{FILLER}"
)
RUSSIAN = (
    "".join(
        f"<p>Абзац {n} рассказывает о птицах, деревьях и погоде того дня.</p>" for n in range(40)
    )
    + "<h2>Маяк</h2><p>Маяк в Орване построили в 1871 году братья Марр.</p>"
)
CHINESE = (
    "".join(f"<p>第{n}段讲的是那一天的鸟、树木和天气。</p>" for n in range(40))
    + "<h2>灯塔</h2><p>奥尔瓦内的灯塔由马尔兄弟于一八七一年建造。</p>"
)
BUILT = "The harbour light of Orvane was built in 1871 by the brothers Marr."
PAGES = {
    "English": ("en", "Harbour", ENGLISH, "When was the harbour light of Orvane built?", BUILT),
    "a title of 1,000 characters": (
        "en",
        "Harbour of Orvane " * 56,
        ENGLISH,
        "When was the harbour light built?",
        BUILT,
    ),
    "Russian": (
        "ru",
        "Орвана",
        RUSSIAN,
        "Когда построили маяк в Орване?",
        "Маяк в Орване построили в 1871 году братья Марр.",
    ),
    "Chinese": (
        "zh",
        "奥尔瓦内",
        CHINESE,
        "奥尔瓦内的灯塔是什么时候建造的？",
        "奥尔瓦内的灯塔由马尔兄弟于一八七一年建造。",
    ),
}


def html_of(name: str) -> str:
    language, title, body, *_ = PAGES[name]
    return f'<html lang="{language}"><title>{title}</title><main><h1>{title[:30]}</h1>{body}</main></html>'


def arguments(tool: str, question: str, source: str, **more: Any) -> dict[str, Any]:
    return (
        {"question": question, **more}
        if tool == "research"
        else {"question": question, "sources": [source], **more}
    )


def data(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    return data_of(result)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("tool", READING)
async def test_the_best_sentence_is_shown_at_every_budget(
    connect: Connect, tmp_path: Path, tool: str, name: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html_of(name), encoding="utf-8")
    question, best = PAGES[name][3:]
    async with connect(folders=str(tmp_path), embedder="none") as client:
        for budget in BUDGETS:
            result = await client.call_tool(
                tool, arguments(tool, question, str(file), max_tokens=budget)
            )
            text = text_of(result)
            assert data(result).get("verdict", "answered") == "answered"
            assert best in text, budget
            assert count_tokens(text) == data(result)["tokens"] <= budget


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose address is as long wherever tests run: that of `tmp_path` grows with the
    number of processes."""
    with TemporaryDirectory() as made:
        inner = Path(made, "papers-of-the-harbour")
        inner.mkdir()
        yield inner


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("tool", READING)
async def test_what_is_no_quoted_word_takes_a_small_part_of_the_budget(
    connect: Connect, folder: Path, tool: str, name: str
) -> None:
    file = folder / "page.html"
    file.write_text(html_of(name), encoding="utf-8")
    spoken = re.findall(r">([^<>]+)</(?:p|h1|h2)>", html_of(name))
    async with connect(folders=str(folder), embedder="none") as client:
        for budget in (256, 512, 1000):
            result = await client.call_tool(
                tool, arguments(tool, PAGES[name][3], str(file), max_tokens=budget)
            )
            text = text_of(result)
            around = text
            # Sentences first: a heading may be a part of one.
            for words in sorted(spoken, key=len, reverse=True):
                around = around.replace(words, "", 1)
            # Line breaks between quoted lines and Markdown's marks of headings are not words of
            # ours.
            lines = "\n".join(line for line in around.splitlines() if line.strip(" #…"))
            # Tokens are rounded a line, with its words there and without them here.
            # An address is never left out; at 256 tokens it alone takes a tenth.
            share = FRAME_SHARE if budget > 256 else 0.25
            assert count_tokens(lines) <= share * budget + 1, (budget, lines)


ABOUT = (
    ("Who is the author of this page?", "Author: Ilse Marr"),
    ("Who wrote the article about the harbour?", "Author: Ilse Marr"),
    ("When was this page published?", "Published: 2024-05-06"),
    ("When was the harbour light of Orvane built?", "built in 1871"),
)


@pytest.mark.parametrize("tool", (*READING, "raptor_query"))
async def test_who_wrote_a_page_and_when_is_shown_to_those_who_ask(
    connect: Connect, tmp_path: Path, tool: str
) -> None:
    head = (
        '<meta name="author" content="Ilse Marr"><meta property="article:published_time" '
        'content="2024-05-06">'
    )
    title = (
        "Harbour of Orvane and all that was built there in the days of the brothers Marr and "
        "after them"
    )
    file = tmp_path / "page.html"
    file.write_text(
        f'<html lang="en"><title>{title}</title>{head}<main>{FILLER}{ENGLISH}</main></html>',
        "utf-8",
    )
    async with connect(folders=str(tmp_path)) as client:
        for question, said in ABOUT:
            text = text_of(
                await client.call_tool(tool, arguments(tool, question, str(file), max_tokens=200))
            )
            marks = [line for line in text.splitlines() if line.startswith("«")]
            assert said in text.partition(marks[0])[2].partition(marks[-1])[0], question


QUESTIONS = (
    (
        "ferry-timetable.html",
        "When does the first ferry leave on Sundays?",
        ("Stop", "Sundays and holidays"),
    ),
    (
        "ferry-timetable.html",
        "What does a bicycle cost on the ferry?",
        ("Prices in crowns, tax included.",),
    ),
    (
        "pell-light-history.html",
        "When was the Pell light built?",
        ("Work on the tower began in April 1871",),
    ),
)


@pytest.mark.parametrize(("name", "question", "words"), QUESTIONS)
async def test_the_tools_show_the_same_best_sentence_of_a_page_first(
    connect: Connect, tmp_path: Path, name: str, question: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / name
    file.write_bytes((LIBRARY / name).read_bytes())
    async with connect(folders=str(tmp_path)) as client:
        for tool in READING:
            text = text_of(
                await client.call_tool(tool, arguments(tool, question, str(file), max_tokens=200))
            )
            assert [word for word in words if word not in text] == [], tool


@pytest.mark.parametrize("tool", READING)
async def test_the_result_repeats_no_sentence_of_the_text(
    connect: Connect, tmp_path: Path, tool: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html_of("English"), encoding="utf-8")
    async with connect(folders=str(tmp_path), embedder="none") as client:
        result = await client.call_tool(tool, arguments(tool, PAGES["English"][3], str(file)))
    structured = json.dumps(data(result), ensure_ascii=False)
    assert "brothers Marr" in text_of(result)
    assert "built in 1871 by the brothers Marr" not in structured
    assert "Paragraph" not in structured


async def test_an_answer_of_research_without_a_budget_is_short(connect: Connect) -> None:
    async with connect() as client:
        for _, question, _ in QUESTIONS:
            result = await client.call_tool("research", {"question": question})
            assert count_tokens(text_of(result)) == data(result)["tokens"] <= UNASKED + 100


@pytest.mark.parametrize(
    ("question", "verdict"),
    [("When does the boat leave?", "unsure"), ("Who was the first king of Portugal?", "none")],
)
async def test_what_is_nearest_is_called_so_only_where_nothing_answers(
    connect: Connect, tmp_path: Path, question: str, verdict: str
) -> None:
    page = tmp_path / "boats.md"
    page.write_text("# Boats\n\nThe boat to Arnvik is red.\n\nThe boat leaves at noon.\n", "utf-8")
    async with connect(folders=str(tmp_path)) as client:
        asked = {"question": question, "sources": [str(page)]}
        result = await client.call_tool("extract_relevant", asked)
    assert data_of(result)["verdict"] == verdict
    assert ("Nearest lines:" in text_of(result)) == (verdict == "none")
