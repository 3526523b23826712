"""Pages that show nothing by themselves: what their data holds is read, and what they need is
said."""

import json
from contextlib import suppress
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

import readers
from errors import NeedsBrowser, SourceUnreadable
from readers.page import Document
from tests.support.waiting import bounded

STORY = (
    "The harbour light of Pell was built in 1871 by Orvane, and it still burns every night of "
    "the year."
)
MORE = (
    "Ferries to the island leave the north pier at nine every morning, and at noon on Sundays "
    "as well."
)
POST = {"title": "The light of Pell", "slug": "the-light", "body": f"<p>{STORY}</p><p>{MORE}"}
STATE = {"buildId": "x9", "props": {"pageProps": {"post": POST}}}
LINKED = {"headline": "The light of Pell", "articleBody": STORY + MORE}


MAY_NEED_BROWSER = "a browser that runs its scripts may show more"


def read(body: str) -> Document:
    return readers.read(body.encode(), content_type="text/html; charset=utf-8")


def shell(inside: str) -> str:
    return (
        f'<!doctype html><html lang="en"><title>Pell</title><body><div '
        f'id="__next"></div>{inside}</body></html>'
    )


SCRIPTS = {
    "__NEXT_DATA__": f'<script id="__NEXT_DATA__" '
    f'type="application/json">{json.dumps(STATE)}</script>',
    "any JSON": f'<script type="application/json" '
    f"data-x>{json.dumps({'list': [1, STATE]})}</script>",
    "assigned state": f"<script>window.__INITIAL_STATE__ = {json.dumps(STATE)};\nstart()</script>",
    "assigned to a name": f"<script>var __APOLLO_STATE__={json.dumps(STATE)}</script>",
    "parsed text": f"<script>window.__STATE__ = "
    f"JSON.parse({json.dumps(json.dumps(STATE))});</script>",
    "JSON-LD": f'<script type="application/ld+json">{json.dumps(LINKED)}</script>',
    "an attribute (Inertia)": f'<div data-page="{escape(json.dumps(STATE))}"></div><script '
    f"src=/app.js></script>",
    "an attribute of JSON in JSON (Discourse)": "<script src=/app.js></script>"
    f"<div data-preloaded='{escape(json.dumps({'t': json.dumps(STATE)}))}'></div>",
    "a fetched answer (SvelteKit)": '<script type="application/json" data-sveltekit-fetched '
    "data-url=/api>"
    f"{json.dumps({'status': 200, 'body': json.dumps(STATE)})}</script>",
    "a property of a component (Vue)": "<script src=/app.js></script>"
    f'<my-post :post="{escape(json.dumps(POST))}"></my-post>',
    "a second assignment": f"<script>window.__A__ = {{}};\nwindow.__B__ = "
    f"{json.dumps(STATE)};</script>",
}

SHOP = {"@type": "Product", "name": "Storm lantern", "description": STORY + MORE,
        "offers": {"price": "129.00", "priceCurrency": "EUR"}}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("ld+json", SHOP),
        ("json", {"props": [SHOP | {"price": {"amount": "129.00", "currencyCode": "EUR"}}]}),
    ],
)
def test_prices_of_data_are_said(kind: str, data: object) -> None:
    document = read(shell(f'<script type="application/{kind}">{json.dumps(data)}</script>'))
    assert "price: 129.00 EUR" in [block.text for block in document.blocks]
    assert document.text.startswith("Storm lantern")


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_empty_page_is_read_from_the_data_that_it_carries(name: str) -> None:
    document = read(shell(SCRIPTS[name] + "<script src=/app.js></script>"))
    assert "<h2>The light of Pell</h2>" in document.html
    assert STORY in document.text
    assert MORE in document.text
    assert "the-light" not in document.text
    assert [note.rpartition("; ")[2] for note in document.page.notes] == [
        MAY_NEED_BROWSER,
        "text was taken from its JSON-LD or script data",
    ]
    assert (document.page.title, document.page.language) == ("Pell", "en")


def test_what_a_loading_page_does_show_stays_beside_its_data() -> None:
    text = read(shell(f"<p>Pell harbour. Loading…</p>{SCRIPTS['__NEXT_DATA__']}")).text
    assert text.startswith("Pell harbour. Loading…")
    assert STORY in text


def test_what_a_page_shows_is_not_gone_on_with_by_data_that_it_does_not_show() -> None:
    assert (
        read(f"<h1>The light of Pell</h1><p>{STORY}</p>{SCRIPTS['JSON-LD']}").text
        == f"The light of Pell\n{STORY}"
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_data_of_a_short_page_never_replaces_what_it_shows(script: str) -> None:
    fact = (
        "The ferry of Skellmouth costs four pounds on Sundays, and three on every other day of "
        "the week."
    )
    assert read(f"<h1>Ferries</h1><p>{fact}</p>{SCRIPTS[script]}").text == f"Ferries\n{fact}"
    assert (
        read(f"<p>The boat costs four pounds.</p>{SCRIPTS[script]}").text
        == "The boat costs four pounds."
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_frame_of_a_site_around_an_empty_place_does_not_keep_its_data_unread(
    script: str,
) -> None:
    frame = (
        "© 2026 The harbour authority of Pell. All rights reserved. Imprint, privacy, terms "
        "of use, accessibility."
    )
    for footer in (f"<footer>{frame}</footer>", f"<div><p>{frame}</p></div>"):
        text = read(shell(footer + SCRIPTS[script])).text
        assert STORY in text
        assert frame in text


BEGUN = (
    "=[1,",
    "={a:[",
    ",[1,1,1,1,1,1,1,1",
    "(function(a){return {a:",
    "=`{",
    ':"[',
    "({\\",
    "=>[{",
)


@pytest.mark.parametrize("piece", BEGUN)
def test_code_that_begins_values_without_end_is_read_in_the_time_of_its_length(piece: str) -> None:
    with bounded(), suppress(SourceUnreadable):
        read(f"<div id=root></div><script>{piece * 60_000}</script>")


def test_a_page_that_shows_its_text_only_without_scripts_is_read() -> None:
    message = "<noscript>You need to enable JavaScript to run this app.</noscript>"
    document = read(
        shell(
            f"{message}<script "
            f"src=/app.js></script><noscript><p>{STORY}</p><p>{MORE}</p></noscript>"
        )
    )
    assert document.text.endswith(f"{STORY}\n{MORE}")


def test_a_summary_in_a_pages_data_does_not_stand_for_the_whole_text_without_scripts() -> None:
    summary = (
        f'<script type="application/ld+json">{{"@type": "DiscussionForumPosting", "text": '
        f'"{STORY}"}}</script>'
    )
    document = read(shell(f"{summary}<noscript><p>{STORY}</p><p>{MORE}</p></noscript>"))
    assert document.text.endswith(f"{STORY}\n{MORE}")


@pytest.mark.parametrize(
    "script",
    [
        '<script type="application/json">{"a": "b", "path": "/a/b/c", "n": [1, 2, 3]}</script>',
        "<script>window.x = function () { return 'a long sentence that only code would hold in "
        "it, truly' }</script>",
        '<script type="application/json">{"broken": "' + STORY + "</script>",
        "<script>window.deep = " + "[" * 100_000 + "</script>",
        "<script src=/app.js></script>",
    ],
)
def test_a_shell_without_such_data_says_that_it_needs_a_browser_and_what_it_shows(
    script: str,
) -> None:
    with pytest.raises(NeedsBrowser, match=r"needs JavaScript.*it shows nothing") as caught:
        read(shell(script))
    assert "WINNOW_BROWSER" in caught.value.hint


def test_a_header_and_a_footer_around_an_empty_place_are_noted() -> None:
    frame = "Home Boats Harbour Contact Imprint Privacy Cookies Newsletter " * 6
    document = read(shell(f"<footer>{frame}</footer><script src=/app.js></script>"))
    assert MAY_NEED_BROWSER in " ".join(document.page.notes)
    long = read(shell(f"<main><p>{STORY * 30}</p></main><script src=/app.js></script>"))
    assert MAY_NEED_BROWSER not in " ".join(long.page.notes)


def test_a_page_whose_text_is_in_a_shadow_root_is_read() -> None:
    shadow = f"<my-app><template shadowrootmode=open><p>{STORY}</p></template></my-app>"
    assert STORY in read(shell(f"{shadow}<script src=/app.js></script>")).text


def test_a_page_without_scripts_and_text_is_no_matter_for_a_browser() -> None:
    with pytest.raises(SourceUnreadable) as caught:
        read("<!doctype html><title>x</title><body><div></div></body>")
    assert type(caught.value) is SourceUnreadable


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=80),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(
    json_values,
    st.sampled_from(["", "type=application/json", 'type="application/ld+json"']),
    st.text(max_size=20),
)
def test_any_data_in_any_script_is_read_without_a_crash(
    value: object, kind: str, before: str
) -> None:
    data = (
        f"<script {kind}>{before}{json.dumps(value)}</script><script>window.x = "
        f"{json.dumps(value)}{before}</script>"
    )
    with suppress(SourceUnreadable):
        assert read(shell(data)).text
