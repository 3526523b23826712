"""Reading without a question is reading from the top: by cursor to the end the whole page comes once,
in its order, whatever the budget, the form and the format.

Pages whose words each occur once, so that each word that is missing, early or repeated is seen. Not
for: which words a reader takes from a file (`test_generated_documents.py`), or how lines are written
(`test_html_render.py`).
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from mcp import Client

from bench.documents import MAKERS, lacking, samples
from pipeline.evidence.render import is_header_row
from pipeline.prune.main_content import main_content
from readers.convert import Raw, to_page
from readers.html.document import read_document
from readers.page import Block, Document
from tests.support import Connect, data_of, text_of
from tests.support.odd_documents import odd_documents

pytestmark = pytest.mark.anyio
BUDGETS: Final = (200, 500, 2000)
FORMS: Final = ("markdown", "text", "html")
PAGES: Final = 300
PAGES_OF_A_TEST: Final = 15
FRAME: Final = re.compile(r"«(\d+)»\n(.*?)\n«/\1»", re.DOTALL)
WORD: Final = re.compile(r"\w+")
SYLLABLES: Final = [f"{a}{b}" for a in "bdfgklmnprstvz" for b in "aeiou"]


def new_words() -> Iterator[str]:
    """Yield words that are all different."""
    for number in count():
        yield "".join(SYLLABLES[number // step % 70] for step in (1, 70, 4900))


class Author:
    """Writes a page of sections, lists, tables and listings of chance."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.words = new_words()

    def say(self, least: int, most: int) -> str:
        """Return a sentence of new words."""
        number = self.chance.randint(least, most)
        return " ".join(islice(self.words, number)).capitalize() + "."

    def page(self) -> str:
        """Return sections of chance below a title, each with its own parts."""
        parts = [f"<h1>{self.say(1, 6)}</h1>"]
        for _ in range(self.chance.randint(2, 24)):
            level = self.chance.choice((2, 2, 2, 3, 4))
            title = self.say(1, self.chance.choice((3, 16)))
            parts.append(f"<h{level}>{title}</h{level}>")
            for _ in range(self.chance.choice((0, 1, 1, 1, 3))):
                kind = self.chance.choice(
                    (self.prose, self.prose, self.items, self.rows, self.code)
                )
                parts.append(kind())
        return f"<main>{''.join(parts)}</main>"

    def prose(self) -> str:
        """Return a paragraph, seldom longer than a budget."""
        size = self.chance.choice((3, 10, 40, 300))
        return "<p>" + " ".join(self.say(3, 12) for _ in range(max(1, size // 8))) + "</p>"

    def items(self) -> str:
        """Return a list, at times within a list."""
        inner = f"<li>{self.say(1, 4)}<ul><li>{self.say(2, 5)}</ul>" * self.chance.randint(0, 1)
        items = "".join(f"<li>{self.say(1, 14)}" for _ in range(self.chance.randint(2, 9)))
        return f"<p>{self.say(2, 5)[:-1]}:</p><ul>{items}{inner}</ul>"

    def rows(self) -> str:
        """Return a table with a header row."""
        columns = self.chance.randint(2, 6)
        head = "".join(f"<th>{self.say(1, 2)[:-1]}" for _ in range(columns))
        rows = (
            "<tr>" + "".join(f"<td>{self.say(1, 4)[:-1]}" for _ in range(columns))
            for _ in range(self.chance.randint(2, 12))
        )
        return f"<table><tr>{head}{''.join(rows)}</table>"

    def code(self) -> str:
        """Return a listing."""
        return (
            "<pre>"
            + "\n".join(self.say(1, 9) for _ in range(self.chance.randint(2, 20)))
            + "</pre>"
        )


async def walk(client: Client, path: Path, budget: int, form: str) -> str:
    """Return what the answers quote, from the first to the last cursor, then around the content."""
    quoted: list[str] = []
    given: dict[str, Any] = {"sources": [str(path)], "max_tokens": budget, "format": form}
    cursor, around = "", True
    while True:
        answer = await client.call_tool("fetch_and_prune_html", {**given, "cursor": cursor})
        assert not answer.is_error, text_of(answer)
        data = data_of(answer)
        quoted += [found[2] for found in FRAME.finditer(text_of(answer))]
        cursor = data.get("next_cursor", "")
        if not cursor and around:
            cursor, around = data.get("around_cursor", ""), False
        if not cursor:
            return "\n".join(quoted)
        assert len(quoted) < 3000, "the cursor leads nowhere"


def own_words(block: Block) -> list[str]:
    """Return the words of a block."""
    return WORD.findall((" ".join(block.cells) or block.text).lower())


def unlike(document: Document, quoted: str) -> dict[str, list[str]]:
    """Return which blocks are lost, twice there, or out of order in what was quoted."""
    blocks, shown = document.blocks, WORD.findall(quoted.lower())
    times = Counter(shown)
    place = {word: index for index, word in reversed(list(enumerate(shown)))}
    on_page = Counter(word for block in blocks for word in own_words(block))
    of_page = WORD.findall(f"{document.page.title} {document.page.author}".lower())
    above = {
        word
        for block in blocks
        for text in (block.header, block.lead, *block.heading_path)
        for word in WORD.findall(text.lower())
    }.union(of_page)
    content = main_content(document)
    order = sorted(range(len(blocks)), key=lambda number: not content[number])
    found: dict[str, list[str]] = {"lost": [], "twice": [], "early": []}
    reached = -1
    for number in order:
        block = blocks[number]
        words = own_words(block)
        if any(word not in times and word not in of_page for word in words):
            found["lost"].append(block.text)
        if block.kind in {"heading", "caption", "about"} or is_header_row(blocks, number):
            continue  # they are written again above what follows in a later answer
        once = [
            word for word in words if on_page[word] == 1 and word in times and word not in above
        ]
        if any(times[word] > 1 for word in once):
            found["twice"].append(block.text)
        places = [place[word] for word in once]
        if places and (min(places) < reached or places != sorted(places)):
            found["early"].append(block.text)
        reached = max(places, default=reached)
    return {kind: texts for kind, texts in found.items() if texts}


async def check(connect: Connect, folder: Path, files: list[tuple[str, bytes]]) -> None:
    """Read files by cursor; each has a budget and a form of its own."""
    async with connect(
        folders=str(folder), cache=str(folder.parent / f"{folder.name}c"), embedder="none"
    ) as client:
        for number, (name, body) in enumerate(files):
            path = folder / name
            path.write_bytes(body)
            document = read_document(to_page(Raw(body, path.as_uri(), path.as_uri(), name=name)))
            budget, form = BUDGETS[number % 3], FORMS[number // 3 % 3]
            quoted = await walk(client, path, budget, form)
            assert not unlike(document, quoted), (name, budget, form)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.nightly] if first else [])
        for first in range(0, PAGES, PAGES_OF_A_TEST)
    ],
)
async def test_a_page_read_by_cursor_comes_whole_once_and_in_order(
    first: int, connect: Connect, tmp_path: Path
) -> None:
    numbers = range(first, first + PAGES_OF_A_TEST)
    pages = [(f"{number}.html", Author(number).page().encode()) for number in numbers]
    await check(connect, tmp_path, pages)


async def test_each_format_is_read_from_the_top(connect: Connect, tmp_path: Path) -> None:
    made = [(sample.name, sample.body) for sample in samples(2 * (len(MAKERS) - len(lacking())))]
    odd = [
        (f"odd{number}{Path(one.file).suffix}", one.body)
        for number, (_, one) in enumerate(odd_documents())
    ]
    await check(connect, tmp_path, made + odd)
