"""The web as it is served, read as its reader sees it: numbers of items, terms, addresses, marks, closed text, data."""

import pytest

from pipeline.prune.render import Kept, Style, all_links, render
from tests.support import Connect, Site, text_of
from tests.support.pages import document

pytestmark = pytest.mark.anyio
LISTS = {
    "a start below zero": ("<ol start=-1><li>one<li>two<li>three</ol>", "-1. one\n0. two\n1. three"),
    "a start that is no number": ("<ol start=x><li>one<li>two</ol>", "1. one\n2. two"),
    "a value that others follow": ("<ol><li>one<li value=7>two<li>three</ol>", "1. one\n7. two\n8. three"),
    "counted down": ("<ol reversed><li>one<li>two<li>three</ol>", "3. one\n2. two\n1. three"),
    "counted down from a start": ("<ol reversed start=10><li>one<li>two</ol>", "10. one\n9. two"),
    "letters beyond z": ("<ol type=a start=26><li>one<li>two</ol>", "z. one\naa. two"),
    "capital Roman": ("<ol type=I start=39><li>one<li>two</ol>", "XXXIX. one\nXL. two"),
    "letters by style": ("<ol style='list-style-type: upper-latin'><li>one<li>two</ol>", "A. one\nB. two"),
    "a paragraph in each": ("<ol start=4><li><p>one</p><p>more</p><li><p>two</p></ol>", "4. one\n\n   more\n\n5. two"),
    "headings of steps": ("<ol start=3><li><h3>Mix</h3><p>Flour.</p></ol>", "# 3. Mix\n\nFlour."),
    "in another list": ("<ol start=2><li>one<ol type=i><li>in</ol><li>two</ol>", "2. one\n   i. in\n3. two"),
    "bullets": ("<ul start=4><li value=9>one</ul>", "- one"),
}
TERMS = {
    "a list": ("<dl><dt>Raises</dt><dd><ul><li>GateError</ul></dd></dl>", "Raises\n\n- GateError"),
    "a list in a box": ("<dl><dt>Sees</dt><dd><div><ul><li>a<li>b</ul></div></dd></dl>", "Sees\n\n- a\n- b"),
    "a listing": ("<dl><dt>Usage</dt><dd><pre>gate --open</pre></dd></dl>", "Usage\n\n```\ngate --open\n```"),
    "a definition list": (
        "<dl><dt>class Gate</dt><dd><dl><dt>open</dt><dd>Opens.</dd></dl></dd></dl>",
        "class Gate\n\n",
    ),
    "a second one": (
        "<dl><dt>A</dt><dd><ul><li>one</ul></dd><dt>B</dt><dd>two</dd></dl>",
        "A\n\n- one\n\nB: two",
    ),
}


def written(html: str) -> str:
    """Return all of a page as Markdown."""
    one = document(html)
    kept = [Kept(number) for number, block in enumerate(one.blocks) if block.kind != "about"]
    return render(one, kept, Style("markdown"))


@pytest.mark.parametrize("case", LISTS)
def test_items_have_the_numbers_that_a_reader_sees(case: str) -> None:
    html, wanted = LISTS[case]
    assert wanted in written(f"<p>Before.</p>{html}<p>Behind.</p>")


@pytest.mark.parametrize("case", TERMS)
def test_a_term_stands_above_the_definition_that_opens_with(case: str) -> None:
    html, wanted = TERMS[case]
    assert wanted in written(f"<p>Before.</p>{html}<p>Behind.</p>")


async def test_every_tool_cites_a_rule_by_its_number(connect: Connect, site: Site) -> None:
    rules = "<ol start=4><li>No boat leaves the basin after dark.<li>Ice is reported to the pilot of the day.</ol>"
    url = site.put("/rules", f"<title>By-laws</title><h1>By-laws</h1><h2>Winter</h2><p>These hold.</p>{rules}")
    question = "When may no boat leave the basin?"
    async with connect(allow_loopback="true", embedder="none") as client:
        calls: dict[str, dict[str, object]] = {
            "fetch_and_prune_html": {"sources": [url], "part": "section Winter"},
            "extract_relevant": {"sources": [url], "question": question},
        }
        for tool, arguments in calls.items():
            assert "4. No boat leaves the basin after dark." in text_of(await client.call_tool(tool, arguments)), tool


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        ("<base href='/other/'>", "https://example.org/other/plan.pdf"),
        ("<base target=_blank><BASE HREF=//files.example.net/a/>", "https://files.example.net/a/plan.pdf"),
        ("<base href='?a=1&amp;b=2'>", "https://example.org/plan.pdf"),
        ("<!-- <base href='/other/'> --><script>'<base href=/other/>'</script>", "https://example.org/plan.pdf"),
        ("<base href='javascript:void(0)'>", "https://example.org/plan.pdf"),
        ("<base href='http://['>", "https://example.org/plan.pdf"),
    ],
)
def test_links_lead_where_the_base_of_the_page_says(base: str, wanted: str) -> None:
    page = document(f"<head>{base}</head><p>The <a href='plan.pdf'>plan</a> and <a href='#top'>the top</a>.</p>")
    assert all_links(page) == {wanted: "plan"}
