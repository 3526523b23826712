"""The web as it is served, read as its reader sees it: numbers of items, terms, addresses, marks,
closed text, data."""

# ruff: noqa: E501  the rows of tables

import pytest

from pipeline.evidence.render import Kept, Style, all_links, render
from tests.support import Connect, Site, text_of
from tests.support.pages import document

pytestmark = pytest.mark.anyio
STORY = (
    "The harbour of Arnvik lies on the western shore and has been used by fishing boats for "
    "four hundred years."
)
LISTS = {
    "a start below zero": (
        "<ol start=-1><li>one<li>two<li>three</ol>",
        "-1. one\n0. two\n1. three",
    ),
    "a start that is no number": ("<ol start=x><li>one<li>two</ol>", "1. one\n2. two"),
    "a value that others follow": (
        "<ol><li>one<li value=7>two<li>three</ol>",
        "1. one\n7. two\n8. three",
    ),
    "counted down": ("<ol reversed><li>one<li>two<li>three</ol>", "3. one\n2. two\n1. three"),
    "counted down from a start": ("<ol reversed start=10><li>one<li>two</ol>", "10. one\n9. two"),
    "letters beyond z": ("<ol type=a start=26><li>one<li>two</ol>", "z. one\naa. two"),
    "capital Roman": ("<ol type=I start=39><li>one<li>two</ol>", "XXXIX. one\nXL. two"),
    "letters by style": (
        "<ol style='list-style-type: upper-latin'><li>one<li>two</ol>",
        "A. one\nB. two",
    ),
    "a paragraph in each": (
        "<ol start=4><li><p>one</p><p>more</p><li><p>two</p></ol>",
        "4. one\n\n   more\n\n5. two",
    ),
    "headings of steps": ("<ol start=3><li><h3>Mix</h3><p>Flour.</p></ol>", "# 3. Mix\n\nFlour."),
    "in another list": (
        "<ol start=2><li>one<ol type=i><li>in</ol><li>two</ol>",
        "2. one\n   i. in\n3. two",
    ),
    "listings": (
        "<ol start=5><li><pre>open</pre><li>two</ol>",
        "5. ```\n   open\n   ```\n\n6. two",
    ),
    "bullets": ("<ul start=4><li value=9>one</ul>", "- one"),
}
TERMS = {
    "a list": ("<dl><dt>Raises</dt><dd><ul><li>GateError</ul></dd></dl>", "Raises\n\n- GateError"),
    "a list in a box": (
        "<dl><dt>Sees</dt><dd><div><ul><li>a<li>b</ul></div></dd></dl>",
        "Sees\n\n- a\n- b",
    ),
    "a listing": (
        "<dl><dt>Usage</dt><dd><pre>gate --open</pre></dd></dl>",
        "Usage\n\n```\ngate --open\n```",
    ),
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
def test_a_term_is_above_the_definition_that_opens_with(case: str) -> None:
    html, wanted = TERMS[case]
    assert wanted in written(f"<p>Before.</p>{html}<p>Behind.</p>")


async def test_every_tool_cites_a_rule_by_its_number(connect: Connect, site: Site) -> None:
    rules = (
        "<ol start=4><li>No boat leaves the basin after dark.<li>Ice is reported to the pilot "
        "of the day.</ol>"
    )
    url = site.put(
        "/rules", f"<title>By-laws</title><h1>By-laws</h1><h2>Winter</h2><p>These hold.</p>{rules}"
    )
    question = "When may no boat leave the basin?"
    async with connect(networks="loopback", embedder="none") as client:
        calls: dict[str, dict[str, object]] = {
            "fetch_and_prune_html": {"sources": [url], "part": "section Winter"},
            "extract_relevant": {"sources": [url], "question": question},
        }
        for tool, arguments in calls.items():
            assert "4. No boat leaves the basin after dark." in text_of(
                await client.call_tool(tool, arguments)
            ), tool


FLAT = "style='max-height:0;overflow:hidden'"
CLOSED = {
    "a label of a box to tick": f"<div class=fold><input type=checkbox id=a><label "
    f"for=a>Q</label><p {FLAT}>WORD</p></div>",
    "a place that a link opens": f"<h2><a role=button href='#c'>Winter</a></h2><p>It is "
    f"so.</p><div id=c {FLAT}>WORD</div>",
    "a section that screen readers pass over": "<section aria-hidden=true><h2>Fees</h2><p>WORD</p></section>",
    "a table that screen readers pass over": "<div aria-hidden=true><table><tr><th>A<th>B<tr><td>1<td>WORD</table></div>",
}
UNOPENED = {
    "a paragraph for no reader": "<p aria-hidden=true>WORD</p>",
    "a section for no reader": "<section aria-hidden=true "
    "style='display:none'><h2>Stay</h2><p>WORD</p></section>",
    "a section that a sheet hides": "<style>.q{visibility:hidden}</style><div class=q "
    "aria-hidden=true><h2>A</h2><p>WORD</p></div>",
    "a dialog": "<div role=dialog aria-hidden=true><h2>Stay</h2><p>WORD</p></div>",
    "below a heading": f"<h1>Harbour</h1><p {FLAT}>WORD</p>",
    "below a paragraph in a box": f"<div class=faq><p>Boats leave.</p><p {FLAT}>WORD</p></div>",
    "behind one button": f"<button>Book</button><p {FLAT}>WORD</p>",
    "behind one question": f"<div><p class=q>Is it so?</p><p {FLAT}>WORD</p></div>",
    "behind plain questions": f"<p>Is it so?</p><p {FLAT}>WORD</p><p>Or so?</p><p {FLAT}>WORD</p>",
    "a menu": f"<div class=fold><button>Q</button><ul {FLAT}><li><a href=/a>WORD</a><li><a "
    f"href=/b>WORD two</a></ul></div>",
    "a log-in": f"<div class=login-panel><button>Log in</button><p {FLAT}>WORD</p></div>",
    "tiny behind a button": "<div class=faq><button>Q</button><p "
    "style='font-size:0'>WORD</p></div>",
    "off the screen": "<div class=faq><h3>Q</h3><p "
    "style='position:absolute;left:-9999px'>WORD</p></div>",
    "clear without a heading": "<div style='opacity:0;transform:translateY(9px)'><p>In.</p></div><p style='opacity:0'>WORD</p>",
    "clear and alone": "<section style='opacity:0'><h2>Fees</h2><p>WORD</p></section>",
}
COVERED = {
    "a price in a line": (
        "<p>A night costs <span aria-hidden=true>31 crowns</span>.</p>",
        "costs 31 crowns.",
    ),
    "a value in a cell": (
        "<table><tr><th>A<th>B<tr><td>1<td><span aria-hidden=true>31 crowns</span></table>",
        "31 crowns",
    ),
    "beside what is read out": (
        "<p>Now <span aria-hidden=true>$31.00</span><span class=sr-only>31 dollars</span></p>",
        "Now 31 dollars",
    ),
}


MARKS = {
    "<i class='fa fa-check'></i>": "✓",
    "<i class='bi bi-x-circle-fill'></i>": "✗",
    "<svg class='icon icon-tick'><path d='M0 0'/></svg>": "✓",
    "<svg><use href='/sprite.svg#icon-cross'/></svg>": "✗",
    "<img src=/img/check_green.png alt=''>": "✓",
    "<img src='/i/no.gif?v=2'>": "✗",
    "<span class=material-icons>close</span>": "✗",
    "<ion-icon name=checkmark-circle></ion-icon>": "✓",
    "<span class=not-included></span>": "✗",
    "<input type=checkbox checked disabled>": "✓",
    "<input type=checkbox disabled>": "✗",
    "<mat-icon>check_circle</mat-icon>": "✓",
    "<i class=ri-close-line></i>": "✗",
    "<span class=no-wrap></span>": "",
    "<span class=check-in></span>": "",
    "<i class=fa-check></i><i class=fa-times></i>": "",
    "<i class=fa-check hidden></i><i class=fa-times></i>": "✗",
    "<button><i class=fa-times></i></button>": "",
    "<input type=checkbox>": "",
    "done": "done",
}


@pytest.mark.parametrize("cell", MARKS)
def test_a_cell_without_words_has_the_mark_that_its_markup_names(cell: str) -> None:
    table = (
        f"<table><tr><th>Feature<th>Basic<tr><td>Crane<td>{cell}</td><tr><td>Water<td>yes</table>"
    )
    row = next(block for block in document(table).blocks if block.text.startswith("Feature: Crane"))
    assert row.text == "; ".join(
        ["Feature: Crane", *[f"Basic: {MARKS[cell]}"][: bool(MARKS[cell])]]
    )


HEADERS = {
    "two rows of headers": "<tr><th rowspan=2>Boat<th colspan=2>Night<tr><th>Summer<th>Winter",
    "plain cells below a wide header": "<tr><th>Boat<th "
    "colspan=2>Night<tr><td><td>Summer<td>Winter",
    "plain cells beside a high header": "<tr><th rowspan=2>Boat<th "
    "colspan=2>Night<tr><td>Summer<td>Winter",
    "bold print": "<tr><td><td "
    "colspan=2><b>Night</b><tr><td><b>Boat</b><td><b>Summer</b><td><b>Winter</b>",
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_of_two_rows_are_joined_and_stand_once(case: str) -> None:
    page = f"<table>{HEADERS[case]}<tr><td>Small<td>1<td>2<tr><td>Big<td>3<td>4</table>"
    assert written(page) == "Boat | Night Summer | Night Winter\n-|-|-\nSmall | 1 | 2\nBig | 3 | 4"


def test_a_title_over_all_columns_is_above_the_headers() -> None:
    page = (
        "<table><tr><th colspan=2>Rates "
        "2026<tr><th>Boat<th>Night<tr><td>Small<td>1<tr><td>Big<td>3</table>"
    )
    assert written(page) == "Rates 2026\n\nBoat | Night\n-|-\nSmall | 1\nBig | 3"


def test_a_large_table_in_a_cell_follows_its_row_and_leaves_the_others_in_place() -> None:
    inner = "".join(f"<tr><td>Day {n}<td>{n} crowns and a half" for n in range(20))
    page = f"<table><tr><th>Boat<th>Fees<tr><td>Small<td><table>{inner}</table></td><tr><td>Big<td>9</table>"
    texts = [block.text for block in document(page).blocks]
    assert texts[:2] == ["Boat | Fees", "Boat: Small"]
    assert texts[-1] == "Boat: Big; Fees: 9"


async def test_headings_over_empty_columns_are_kept_in_every_tool(
    connect: Connect, site: Site
) -> None:
    rota = (
        "<table><tr><th>Shift<th>Monday<th>Tuesday<th>Friday<tr><td>Morning<td>Ilse<td><td></table>"
    )
    url = site.put(
        "/rota",
        f"<title>Rota</title><h1>Rota</h1><p>It is filled in by hand every Friday.</p>{rota}",
    )
    async with connect(networks="loopback", embedder="none") as client:
        for tool, asked in (
            ("fetch_and_prune_html", {}),
            ("extract_relevant", {"question": "Who is on in the morning?"}),
        ):
            text = text_of(await client.call_tool(tool, {"sources": [url], **asked}))
            assert "Shift | Monday | Tuesday | Friday" in text, tool


DRAWN = {
    "a label": ("<svg viewBox='0 0 100 30'><text x=1 y=10>Depth 9 m</text></svg>", "Depth 9 m"),
    "labels of a chart": (
        "<figure><svg><g><text>May</text><text>12 t</text></g></svg></figure>",
        "May · 12 t",
    ),
    "lines of one": (
        "<svg><text><tspan x=0 dy=1em>North</tspan><tspan x=0 dy=1em>basin</tspan></text></svg>",
        "North basin",
    ),
    "letters of one": ("<svg><text>Ber<tspan fill=red>th</tspan></text></svg>", "Berth"),
    "HTML in a drawing": (
        "<svg><foreignObject><div>Open gate</div></foreignObject></svg>",
        "Open gate",
    ),
}
UNDRAWN = {
    "in definitions": "<svg><defs><text>WORD</text></defs></svg>",
    "no fill": "<svg><text fill=none>WORD</text></svg>",
    "the fill of the ground": "<svg><text fill='#fff'>WORD</text></svg>",
    "a fill by style": "<svg><text style='fill:white'>WORD</text></svg>",
    "a fill by sheet": "<style>.w{fill:#fff}</style><svg><text class=w>WORD</text></svg>",
    "clear": "<svg><g opacity=0><text>WORD</text></g></svg>",
    "hidden": "<svg visibility=hidden><text>WORD</text></svg>",
    "not displayed": "<svg><text display=none>WORD</text></svg>",
    "tiny": "<svg><text font-size='0.5'>WORD</text></svg>",
    "outside": "<svg viewBox='0 0 100 30'><text x=9000>WORD</text></svg>",
    "moved away": "<svg><g transform='translate(99999 0)'><text>WORD</text></g></svg>",
    "a drawing of no size": "<svg width=0 height=0><text>WORD</text></svg>",
    "a drawing that is hidden": "<svg style='display:none'><text>WORD</text></svg>",
    "a part of a line": "<svg><text>Depth <tspan fill-opacity=0>WORD</tspan></text></svg>",
    "in a frame of no size": "<iframe width=0 height=0 srcdoc='<p>WORD</p>'></iframe>",
    "in a frame that is hidden": "<iframe hidden srcdoc='<p>WORD</p>'></iframe>",
    "hidden in a frame": "<iframe srcdoc=\"<p style='display:none'>WORD</p>\"></iframe>",
    "behind an object": "<object data=plan.pdf><p>WORD</p></object>",
    "a frame in a frame": "<iframe srcdoc=\"<iframe srcdoc='WORD'></iframe>\"></iframe>",
}


@pytest.mark.parametrize("case", DRAWN)
def test_words_of_drawings_are_read(case: str) -> None:
    html, wanted = DRAWN[case]
    assert written(f"<p>{STORY}</p>{html}").endswith(f"\n{wanted}")


@pytest.mark.parametrize("case", UNDRAWN)
def test_words_that_no_reader_of_a_drawing_or_frame_sees_are_gone(case: str) -> None:
    assert "WORD" not in document(f"<p>{STORY}</p>{UNDRAWN[case]}<p>Behind.</p>").text


def test_prose_that_keeps_its_line_breaks_is_no_listing() -> None:
    text = written("<div style='white-space:pre-wrap'>The gate is shut.\n  It opens at six.</div>")
    assert text == "The gate is shut. It opens at six."


@pytest.mark.parametrize(
    "frame", ["<iframe src=inner.html></iframe>", "<base href=/a/><iframe src=inner.html></iframe>"]
)
async def test_a_frame_of_the_pages_own_site_is_said_not_to_be_read(
    connect: Connect, site: Site, frame: str
) -> None:
    url = site.put("/a/page", f"<p>{STORY}</p>{frame}")
    other = site.put("/b", f"<p>{STORY}</p><iframe src=http://127.0.0.2:1/x></iframe>")
    async with connect(networks="loopback", embedder="none") as client:
        text, links, second = [
            text_of(await client.call_tool("fetch_and_prune_html", arguments))
            for arguments in (
                {"sources": [url]},
                {"sources": [url], "part": "links"},
                {"sources": [other]},
            )
        ]
    assert "a frame of the page's own site was not read" in text
    assert "/a/inner.html" in links
    assert "a frame of the page's own site was not read" not in second


async def test_a_page_of_frames_names_them(connect: Connect, site: Site) -> None:
    frames = "<frameset cols=20%,80%><frame src=menu.html><frame src=main.html></frameset>"
    url = site.put("/frames", f"<html><head><title>Harbour</title></head>{frames}</html>")
    async with connect(networks="loopback", embedder="none") as client:
        text = text_of(await client.call_tool("fetch_and_prune_html", {"sources": [url]}))
    assert "a frame of the page's own site was not read" in text


@pytest.mark.parametrize("case", CLOSED)
def test_what_a_reader_opens_or_scrolls_to_is_content_of_low_rank(case: str) -> None:
    found = [
        block for block in document(f"<p>{STORY}</p>{CLOSED[case]}").blocks if "WORD" in block.text
    ]
    assert found
    assert all(block.closed and not block.main for block in found)


@pytest.mark.parametrize("case", UNOPENED)
def test_what_nothing_opens_is_not_read(case: str) -> None:
    assert "WORD" not in document(f"<p>{STORY}</p>{UNOPENED[case]}").text


@pytest.mark.parametrize("case", COVERED)
def test_words_that_only_screen_readers_pass_over_are_read_once(case: str) -> None:
    html, wanted = COVERED[case]
    assert written(f"<p>{STORY}</p>{html}").rstrip(" |").endswith(wanted)


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        ("<base href='/other/'>", "https://example.org/other/plan.pdf"),
        (
            "<base target=_blank><BASE HREF=//files.example.net/a/>",
            "https://files.example.net/a/plan.pdf",
        ),
        ("<base href='?a=1&amp;b=2'>", "https://example.org/plan.pdf"),
        (
            "<!-- <base href='/other/'> --><script>'<base href=/other/>'</script>",
            "https://example.org/plan.pdf",
        ),
        ("<base href='javascript:void(0)'>", "https://example.org/plan.pdf"),
        ("<base href='http://['>", "https://example.org/plan.pdf"),
    ],
)
def test_links_lead_where_the_base_of_the_page_says(base: str, wanted: str) -> None:
    page = document(
        f"<head>{base}</head><p>The <a href='plan.pdf'>plan</a> and <a href='#top'>the top</a>.</p>"
    )
    assert all_links(page) == {wanted: "plan"}


def test_a_page_of_which_most_would_be_hidden_is_read_as_it_is() -> None:
    rest = "<p>" + "The basin is dredged in spring. " * 40 + "</p>"
    page = f"<style>.old{{color:#fff}}</style><p>{STORY}</p><div class=old>{rest}</div>"
    assert "dredged" in document(page).text
    assert "dredged" not in document(page.replace(rest, "<p>It is dredged.</p>")).text
