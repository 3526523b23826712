"""Fragments of addresses: reading begins where they point to, where nothing is asked."""

import pytest

from tests.support import Connect, Site, text_of

pytestmark = pytest.mark.anyio

FILL = "Its floor is clay over gravel, and silt comes in with each tide of spring. " * 5
MARKS = [
    '<h2 id="b{n}">Basin {n}</h2>',
    '<a name="b{n}"></a><h2>Basin {n}</h2>',
    "<h2><a id=b{n} href='#b{n}'>¶</a>Basin {n}</h2>",
    '<section id="b{n}"><!-- x --><script>var b = {n}</script><h2>Basin {n}</h2></section>',
    '<h3><span id="b{n}" class="mw-headline">Basin {n}</span></h3>',
]


def basins(mark: str) -> str:
    contents = "".join(f'<li><a href="#b{n}">Basin {n}</a></li>' for n in range(1, 9))
    parts = "".join(
        f"{mark.replace('{n}', str(n))}<p>Basin number {n} is dredged in week {n + 10}. {FILL}</p>"
        for n in range(1, 9)
    )
    head = '<meta name="b6" content="x"><title>Basins</title>'
    body = f"<main><h1>All basins</h1><ul>{contents}</ul>{parts}</main>"
    return f"<html lang=en><head>{head}</head><body>{body}</body></html>"


@pytest.mark.parametrize("mark", MARKS, ids=range(len(MARKS)))
@pytest.mark.parametrize(
    "fragment", ["b6", ":~:text=Basin%20number%206%20is", ":~:text=week%2015-,Basin%206,tide&x=1"]
)
async def test_the_section_at_a_fragment_comes_first(
    connect: Connect, site: Site, mark: str, fragment: str
) -> None:
    url = site.put(f"/basins{MARKS.index(mark)}", basins(mark))
    async with connect(folders=" ", search="none", networks="loopback") as client:
        there = await client.call_tool(
            "fetch_and_prune_html", {"sources": [f"{url}#{fragment}"], "max_tokens": 300}
        )
        top = await client.call_tool("fetch_and_prune_html", {"sources": [url], "max_tokens": 300})
        none = await client.call_tool(
            "fetch_and_prune_html", {"sources": [f"{url}#b77"], "max_tokens": 300}
        )
    assert "week 16" in text_of(there)
    assert "Basin number 5" not in text_of(there)
    assert "cursor=" in text_of(there)
    assert "week 16" not in text_of(top)
    assert "week 11" in text_of(none)


async def test_what_is_above_a_fragment_comes_last(connect: Connect, site: Site) -> None:
    url = site.put("/all", basins(MARKS[0]))
    async with connect(folders=" ", search="none", networks="loopback") as client:
        whole = text_of(
            await client.call_tool(
                "fetch_and_prune_html", {"sources": [f"{url}#b6"], "max_tokens": 8000}
            )
        )
    order = sorted(range(1, 9), key=lambda n: whole.index(f"Basin number {n} "))
    assert order == [6, 7, 8, 1, 2, 3, 4, 5]


async def test_a_fragment_that_a_script_made_of_a_heading_leads_to_that_heading(
    connect: Connect, site: Site
) -> None:
    url = site.put("/scripted", basins("<h2>Basin {n}</h2>"))
    async with connect(folders=" ", search="none", networks="loopback") as client:
        text = text_of(
            await client.call_tool(
                "fetch_and_prune_html", {"sources": [f"{url}#basin-6"], "max_tokens": 300}
            )
        )
    assert "week 16" in text
    assert "Basin number 5" not in text
