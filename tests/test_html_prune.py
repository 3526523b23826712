"""What pruning keeps, in which form, and that it never goes over its budget."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import UsageError
from pipeline.evidence.forms import Form
from pipeline.evidence.render import Kept, Style, render
from pipeline.prune.prune import Pruned, PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.relevance import Blend
from pipeline.text.tokens import count_tokens
from tests.support import Connect, Site, data_of
from tests.support import text_of as shown_of
from tests.support.doubles import Letters
from tests.support.pages import RIVERS, document

pytestmark = pytest.mark.anyio
FORMS: tuple[Form, ...] = ("html", "markdown", "text")


async def pruned(
    query: str, tokens: int, *, form: Form = "markdown", html: str = RIVERS, part: int = 1
) -> Pruned:
    options = PruneOptions(max_tokens=tokens, format=form, part=part)
    return await prune([document(html)], Question(query), options=options, reader=Blend(None))


async def test_the_answer_is_kept_under_its_heading() -> None:
    result = await pruned("How many countries does the Danube flow through?", 40)
    assert "ten countries" in result.pages[0].text
    assert "## Europe" in result.pages[0].text
    assert "Shop" not in result.pages[0].text


async def test_a_single_row_reads_with_its_headers_and_several_stand_under_them_once() -> None:
    one = document()
    row = next(i for i, block in enumerate(one.blocks) if block.text.startswith("River: Danube"))
    assert render(one, [Kept(row)], Style("markdown")).endswith(
        "## Rivers › Europe\n\nLongest rivers\n\nRiver: Danube; Length km: 2850; Mouth: Black Sea"
    )
    assert render(one, [Kept(row), Kept(row + 1)], Style("markdown")).endswith(
        "Longest rivers\n\nRiver | Length km | Mouth\n-|-|-\nDanube | 2850 | Black Sea\nUral | "
        "2428 | Caspian Sea\n\n… 2 other rows"
    )
    html = render(one, [Kept(row), Kept(row + 1)], Style("html"))
    assert (
        "<tr><th>River</th><th>Length km</th><th>Mouth</th></tr><tr><td>Danube</td><td>2850</td>"
        in html
    )


async def test_a_row_that_is_lifted_over_all_others_leaves_them_the_rest_of_the_budget() -> None:
    result = await pruned("Which river of Europe has the smallest length?", 400)
    assert "Dnieper | 2201" in result.pages[0].text and "Danube | 2850" in result.pages[0].text
    assert "choose a source" in result.pages[0].text


async def test_a_page_that_only_describes_an_image_says_so() -> None:
    one = document("<img alt='The keeper of Orvane lights the lamp'>")
    result = await prune([one], Question(""), options=PruneOptions(100), reader=Blend(None))
    assert "lights the lamp" in result.pages[0].text


async def test_items_keep_their_lead_in_and_code_its_lines() -> None:
    one = document()
    item = next(i for i, block in enumerate(one.blocks) if block.text.startswith("follow"))
    code = next(i for i, block in enumerate(one.blocks) if block.kind == "code")
    text = render(one, [Kept(item), Kept(code)], Style("markdown"))
    assert "To measure a river:\n\n- follow the deepest channel" in text
    assert "```\nlength = 0\nfor part in parts:\n    length += part\n```" in text
    assert "<pre>length = 0\nfor part in parts:\n    length += part</pre>" in render(
        one, [Kept(code)], Style("html")
    )


async def test_gaps_are_marked() -> None:
    html = "<p>first words</p><p>second words</p><p>third words</p>"
    assert (
        render(document(html), [Kept(0), Kept(2)], Style("text")) == "first words\n…\nthird words"
    )


async def test_questions_that_compare_rows_keep_the_extreme_row() -> None:
    rows = "".join(
        f"<tr><td>Team {i}<td>{100 + (i * 37) % 91}<td>{'note ' * 12}" for i in range(60)
    )
    html = f"<h1>League</h1><table><tr><th>Name<th>Points<th>Notes{rows}</table>"
    best = max(range(60), key=lambda i: (i * 37) % 91)
    result = await pruned("which has the most points?", 200, html=html)
    assert f"Team {best} " in result.pages[0].text.replace(";", " ")


async def test_the_head_of_a_page_names_its_author_and_date(connect: Connect, site: Site) -> None:
    meta = (
        '<meta name="author" content="Ada Byron"><meta property="article:published_time" '
        'content="1843-09-01">'
    )
    url = site.put("/rivers", f"<head><title>Rivers</title>{meta}</head>{RIVERS}")
    arguments = {"sources": [url], "question": "Who is the author of Rivers?", "max_tokens": 1000}
    async with connect(networks="loopback", embedder="none") as client:
        text = shown_of(await client.call_tool("fetch_and_prune_html", arguments))
    assert "»\nRivers – by Ada Byron (1843-09-01)" in text


@pytest.mark.parametrize("form", FORMS)
async def test_parts_together_hold_every_unit_once(form: Form) -> None:
    seen: list[str] = []
    for part in range(1, 60):
        result = await pruned("longest river", 90, form=form, part=part)
        assert result.tokens <= 90
        seen.extend(page.text for page in result.pages)
        if not result.parts_left:
            break
    together = " ".join(seen)
    for words in (
        "ten countries",
        "Volga",
        "choose a source",
        "from the mountains",
        "longest river of Asia",
    ):
        assert words in together
    assert sum(text.count("ten countries") for text in seen) == 1
    assert (await pruned("longest river", 90, form=form, part=80)).pages == ()


async def test_the_same_call_gives_the_same_text() -> None:
    assert await pruned("sea", 120) == await pruned("sea", 120)


async def test_without_a_query_the_page_is_read_from_the_top_without_furniture() -> None:
    result = await pruned("", 60)
    assert result.pages[0].text.startswith("Rivers carry water")
    assert "Shop" not in result.pages[0].text


async def test_the_budget_is_for_the_best_passages_of_all_pages() -> None:
    hive = "".join(
        f"<p>The hive of keeper {i} rests in a garden by the road.</p>" for i in range(60)
    )
    long = (
        f"<h1>All about bees</h1>{'<p>Bees make honey, and more honey every year.</p>' * 3}{hive}"
    )
    short = (
        "<h1>Wasps</h1><p>Honey is what wasps never make; honey they steal.</p><p>They hunt "
        "flies.</p>"
    )
    options = PruneOptions(max_tokens=200)
    result = await prune(
        [document(long), document(short)], Question("honey"), options=options, reader=Blend(None)
    )
    assert [page.document for page in result.pages] == [0, 1]
    assert result.tokens == count_tokens("\n".join(page.text for page in result.pages)) <= 200


async def test_the_embedder_votes_only_where_it_reads_the_query() -> None:
    options = PruneOptions(max_tokens=50)
    plain = await prune([document()], Question("河 Danube"), options=options, reader=Blend(None))
    assert (
        await prune([document()], Question("河 Danube"), options=options, reader=Blend(Letters()))
        == plain
    )
    assert (
        await prune([document()], Question("Danube"), options=options, reader=Blend(Letters()))
    ).pages


async def test_a_budget_too_small_for_any_unit_still_gives_its_beginning() -> None:
    result = await pruned("Yangtze dams", 5, html="<p>" + "The Yangtze has dams " * 40 + "</p>")
    assert 0 < result.tokens <= 5
    assert (await pruned("x", 0)).pages == ()


@pytest.mark.parametrize("form", FORMS)
async def test_a_first_word_over_the_budget_is_cut(
    form: Form,
) -> None:
    for word in ("a" * 700, "&lt;" * 300, "天" * 400):
        options = PruneOptions(max_tokens=70, format=form)
        result = await prune(
            [document(f"<p>{word} ends</p>")], Question("ends"), options=options, reader=Blend(None)
        )
        assert 0 < result.tokens <= 70


async def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(UsageError, match="Part 0"):
        await pruned("x", 10, part=0)


WORDS = st.lists(
    st.sampled_from(["river", "sea", "a|b", "<x>", "& so", "```", "天地"]), min_size=1, max_size=30
)
UNITS = st.one_of(
    WORDS.map(lambda words: f"<p>{' '.join(words).replace('&', '&amp;').replace('<', '&lt;')}</p>"),
    WORDS.map(lambda words: f"<h2>{words[0].replace('<', '&lt;')}</h2>"),
    WORDS.map(
        lambda words: (
            "<ul>" + "".join(f"<li>{word.replace('<', '&lt;')}" for word in words) + "</ul>"
        )
    ),
    WORDS.map(
        lambda words: (
            "<table><tr><th>k<th>v"
            + "".join(f"<tr><td>{i}<td>{w}" for i, w in enumerate(words))
            + "</table>"
        )
    ),
    WORDS.map(lambda words: "<pre>" + "\n".join(words).replace("<", "&lt;") + "</pre>"),
)


@given(
    st.lists(st.lists(UNITS, max_size=6), min_size=1, max_size=3),
    st.integers(0, 150),
    st.sampled_from(FORMS),
    st.sampled_from(["", "river sea", "which comes after the river?", "天地"]),
)
@settings(max_examples=120, deadline=None)
async def test_the_budget_holds_exactly_whatever_the_pages(
    pages: list[list[str]], tokens: int, form: Form, query: str
) -> None:
    documents = [document("".join(parts)) for parts in pages]
    options = PruneOptions(max_tokens=tokens, format=form)
    result = await prune(documents, Question(query), options=options, reader=Blend(None))
    assert result.tokens == count_tokens("\n".join(page.text for page in result.pages))
    assert result.tokens <= tokens
    if tokens >= 20 and any(one.blocks for one in documents):
        assert result.pages


async def test_a_listing_keeps_the_indentation_of_its_first_line() -> None:
    result = await pruned(
        "", 1000, html="<p>Run this.</p><pre>    indented = 1\n    second = 2</pre>"
    )
    assert "\n    indented = 1\n    second = 2\n" in result.pages[0].text


async def test_rows_of_a_table_without_header_cells_stand_on_one_line() -> None:
    rows = "".join(
        f"<tr><td>{name}<td>{place}<td>"
        for name, place in [("Horse", "Owner"), ("Spokane", "Armstrong")]
    )
    result = await pruned(
        "", 1000, html=f"<h1>Race</h1><p>The race was run.</p><table>{rows}</table>"
    )
    assert "Spokane | Armstrong" in result.pages[0].text


async def test_an_aside_around_the_whole_page_is_content_but_not_its_navigation() -> None:
    story = "<p>Rivers carry water from the mountains down to the wide sea.</p>" * 20
    result = await pruned(
        "", 1000, html=f"<aside>{story}<nav><p>Terms of service and prices</nav></aside>"
    )
    assert "Rivers carry" in result.pages[0].text
    document_ = document(f"<aside>{story}<nav><p>Terms of service and prices</nav></aside>")
    assert [block.main for block in document_.blocks] == [True] * 20 + [False]


async def test_a_navigation_box_longer_than_its_short_article_is_furniture() -> None:
    story = "<p>The race was run on a fast track in May.</p>" * 3
    box = (
        "<div class=navbox>"
        + "".join(f"<p>All the races and winners of {year}</p>" for year in range(10))
        + "</div>"
    )
    assert [block.main for block in document(story + box).blocks] == [True] * 3 + [False] * 10


STORY = (
    "<p>Rivers carry water from the high mountains down to the wide and salty sea every "
    "single day.</p>"
)


def main_of(html: str) -> list[str]:
    return [block.text for block in document(html).blocks if block.main]


async def test_a_style_or_a_sentence_that_names_furniture_in_passing_does_not_make_it() -> None:
    for label in (
        'class="top-[var(--nav-height)] lg:grid-cols-sidebar-content"',
        'id="how-to-write-a-good-page-footer"',
    ):
        assert len(main_of(f"<main>{STORY * 3}<div {label}>{STORY}</div></main>")) == 4
    assert len(main_of(f"<main>{STORY * 3}<div class='page-footer'>{STORY}</div></main>")) == 3


async def test_an_element_with_most_of_the_main_text_is_content_whatever_its_name() -> None:
    assert (
        len(
            main_of(
                f"<main><p>One short note.</p><div class='body-ad-wrapper'>{STORY * 4}</div></main>"
            )
        )
        == 5
    )


async def test_an_aside_of_running_text_in_the_story_is_content_and_one_of_links_is_not() -> None:
    links = "".join(f"<li><a href=/{n}>Another story of the sea number {n}</a>" for n in range(4))
    assert len(main_of(f"<article>{STORY * 8}<aside>{STORY}</aside></article>")) == 9
    assert len(main_of(f"<article>{STORY * 8}<aside><ul>{links}</ul></aside></article>")) == 8


async def test_a_list_of_headlines_keeps_them() -> None:
    cards = "".join(
        f"<li><h3><a href=/{n}>Harbour number {n} was dredged again this week</a></h3><div "
        f"class='card__footer'>"
        f"<a href=/a>Maud Ferrier</a> on Mar {n}</div></li>"
        for n in range(1, 5)
    )
    texts = main_of(
        f"<nav><ul><li><a>Home</a><li><a>News</a></ul></nav><main><ul>{cards}</ul></main>"
    )
    assert sum("Harbour number" in text for text in texts) == 4
    assert not any("Home" in text for text in texts)


async def test_a_page_wrapped_in_furniture_is_read_without_navigation_and_footer() -> None:
    menu = "<nav><p>All of our great products and services in one place for you to see</p></nav>"
    page = (
        f"<div class=sidebar>{menu}{STORY}</div><div class=popup>{STORY}</div><footer><p>Terms "
        f"and prices</p></footer>"
    )
    texts = main_of(page)
    assert len(texts) == 2
    assert all(text.startswith("Rivers") for text in texts)


async def test_a_header_over_all_columns_names_the_table_once() -> None:
    rows = "<tr><td>Volga<td>3531<tr><td>Ural<td>2428"
    text = (
        (
            await pruned(
                "", 500, html=f"<p>Rivers.</p><table><tr><th colspan=2>Longest{rows}</table>"
            )
        )
        .pages[0]
        .text
    )
    assert text.count("Longest") == 1
    assert "Volga | 3531" in text


async def test_the_cursor_ends_with_the_main_content_and_another_leads_around_it(
    connect: Connect, site: Site
) -> None:
    story = "".join(
        f"<p>Bend {n} of the river is {n} miles from the sea, and no boat turns there.</p>"
        for n in range(40)
    )
    menu = "".join(f"<li><a href=/{n}>Map {n}</a></li>" for n in range(9))
    url = site.put("/bends", f"<nav><ul>{menu}</ul></nav><main><h1>Bends</h1>{story}</main>")
    texts: list[str] = []
    cursor = ""
    async with connect(networks="loopback", embedder="none") as client:
        for _ in range(20):
            arguments = {"sources": [url], "max_tokens": 400, "cursor": cursor}
            result = await client.call_tool("fetch_and_prune_html", arguments)
            texts.append(shown_of(result))
            if not (cursor := data_of(result)["next_cursor"]):
                break
        around = data_of(result)["around_cursor"]
        rest = await client.call_tool("fetch_and_prune_html", {**arguments, "cursor": around})
    assert "Bend 39" in texts[-1] and "Map 3" not in "".join(texts)
    assert (
        f"Main content ends here. Around it, 9 parts: the same call with cursor={around}"
        in texts[-1]
    )
    assert "Map 3" in shown_of(rest) and "Bend 3" not in shown_of(rest)
    assert "around_cursor" not in data_of(rest)
