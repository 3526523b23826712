"""What a reader without a question is shown of documentation: pages in the shapes that generators
give them."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import Connect, text_of

pytestmark = pytest.mark.anyio
PROSE = (
    "<p>The pump lifts water from the lower basin, and a valve keeps it from running back at "
    "night.</p>"
)
CHAPTERS = (
    "Valves and pipes",
    "Pumps of all sizes",
    "Basins above ground",
    "Winter and frost",
    "Who to call",
)


def links(*titles: str) -> str:
    return (
        "<ul>"
        + "".join(f"<li><a href='/{place}'>{title}</a></li>" for place, title in enumerate(titles))
        + "</ul>"
    )


MENU = links(*(f"Handbook of machine number {number}" for number in range(60)))


Shown = Callable[..., Awaitable[str]]


@pytest.fixture
def shown(connect: Connect, tmp_path: Path) -> Shown:
    """Return a function that writes pages and returns what a reader is shown of each."""

    async def shown(*pages: str) -> str:
        paths = [tmp_path / f"{number}.html" for number in range(len(pages))]
        for path, html in zip(paths, pages, strict=True):
            path.write_text(html, "utf-8")
        given = {"sources": [*map(str, paths)], "max_tokens": 10_000, "format": "text"}
        async with connect(folders=str(tmp_path), embedder="none", reader="none") as client:
            text = text_of(await client.call_tool("fetch_and_prune_html", given))
        framed = re.findall(r"^«(\w+)»\n(.*?)^«/\1»$", text, re.DOTALL | re.MULTILINE)
        return "\n".join(body for _, body in framed)

    return shown


@pytest.mark.parametrize(
    "body", [f"<h1>Pumps</h1>{PROSE}", f"<h1>Pumps</h1>{links(*CHAPTERS)}"], ids=["text", "links"]
)
@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (
            f"<nav class=wy-nav-side>{MENU}</nav><section class=wy-nav-content-wrap><main>",
            "</main></section>",
        ),
        (f"<nav id=sidebar>{MENU}</nav><div class=navcontainer><div role=main>", "</div></div>"),
        (f"<nav>{MENU}</nav><main>", "</main>"),
        (f"<nav>{MENU}</nav><div class=content>", "</div>"),
    ],
    ids=["read the docs", "named container", "main", "no main"],
)
async def test_a_short_page_is_read_without_its_long_menu(
    shown: Shown, before: str, behind: str, body: str
) -> None:
    text = await shown(before + body + behind + "<footer>Made with a generator.</footer>")
    assert "number 7" not in text and "generator" not in text
    assert "valve keeps" in text if PROSE in body else all(chapter in text for chapter in CHAPTERS)


async def test_links_are_content_where_there_is_little_else(shown: Shown) -> None:
    text = await shown(
        f"<nav>{MENU}</nav><h1>Contents</h1><p>Where to find it:</p>{links(*CHAPTERS)}"
    )
    assert all(chapter in text for chapter in CHAPTERS)
    assert "number 7" not in text
    text = await shown(f"<h1>Pumps</h1>{PROSE * 3}{links(*CHAPTERS)}")
    assert "valve keeps" in text and "Winter" not in text


@pytest.mark.parametrize("name", ["navheader", "navfooter", "spirit-nav", "navigation_bar"])
async def test_a_table_of_previous_and_next_is_no_content(shown: Shown, name: str) -> None:
    table = (
        "<table><tr><th colspan=3>Chapter 11. "
        "Pumps<tr><td><a>Prev</a><td><a>Up</a><td><a>Next</a></table>"
    )
    text = await shown(
        f"<div class={name}>{table}</div><h1>Pumps</h1>{PROSE * 3}<div class={name}>{table}</div>"
    )
    assert "valve keeps" in text
    assert "Prev" not in text and "Chapter 11" not in text


async def test_an_id_that_is_the_title_of_its_section_says_nothing_else(shown: Shown) -> None:
    page = (
        "<main><h1>Upkeep</h1>{0}<section id={1}><h2>{2}</h2><p>Tell the two keepers of the "
        "pump.</p></section></main>"
    )
    reported = page.format(PROSE * 3, "security-related-leaks", "4.2. Security related leaks")
    assert "two keepers" in await shown(reported)
    assert "two keepers" not in await shown(page.format(PROSE * 3, "related-posts", "You may like"))


async def test_a_text_is_shown_under_its_heading_where_the_page_has_no_title_of_its_own(
    shown: Shown,
) -> None:
    meaning = (
        f"<dl><dt>wait(+Pump)</dt><dd>Wait for water on one of the pumps.{PROSE * 6}</dd></dl>"
    )
    text = await shown(
        f"<title>Handbook</title><div>Handbook, part 4</div><h2>4.18 Status of pumps</h2>{meaning}"
    )
    assert text.splitlines()[:2] == ["Handbook", "4.18 Status of pumps"]


async def test_what_is_said_of_two_methods_in_a_list_of_definitions_is_read_of_both(
    shown: Shown,
) -> None:
    fails = "<dl><dt>Throws</dt><dd>A failure if the basin has run dry in the meantime.</dd></dl>"
    methods = "".join(
        f"<section><h3>{name}</h3><p>Method {name} moves water at {pace} litres a "
        f"minute.</p>{fails}</section>"
        for name, pace in (("lift", "forty"), ("drain", "ninety"))
    )
    assert (await shown(f"<main><h1>Pump</h1>{PROSE * 2}{methods}</main>")).count("run dry") == 2
