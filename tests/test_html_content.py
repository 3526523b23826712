"""What a page shows to a reader who asks nothing: its main content."""

from typing import Final

import pytest

from pipeline.prune.prune import PruneOptions, prune
from pipeline.question.question import Question
from pipeline.reading.relevance import Blend
from tests.support.pages import document

pytestmark = pytest.mark.anyio
STORY: Final = [
    f"The keeper of lamp {place} rowed out at dusk, trimmed the wick, wrote the hour into the log "
    f"and came home late."
    for place in range(12)
]
LEAFLET: Final = (
    "<p>One account opens every shop of the islands, and members hear first of our sales.</p>"
)
OTHERS: Final = "".join(
    f"<p><a href='/{n}'>Story {n}</a> is what others of our readers liked.</p>" for n in range(4)
)


def page(body: str) -> str:
    return f"<html><body><div>{LEAFLET}</div><article><h1>Lamps</h1>{body}</article><div>{OTHERS}</div></body></html>"


PARAGRAPHS: Final = "".join(f"<p>{line}</p>" for line in STORY)


async def shown(html: str, question: str = "", part: int = 1) -> str:
    options = PruneOptions(max_tokens=3000, part=part)
    found = await prune([document(html)], Question(question), options=options, reader=Blend(None))
    return "\n".join(one.text for one in found.pages)


async def test_what_is_before_and_behind_the_story_is_the_next_part() -> None:
    first, second = await shown(page(PARAGRAPHS)), await shown(page(PARAGRAPHS), part=2)
    assert all(line in first for line in STORY)
    assert "# Lamps" not in first  # the answer's head names the page
    assert "One account" not in first and "others of our readers" not in first
    assert "One account" in second and "others of our readers" in second


async def test_a_question_reaches_what_is_no_main_content() -> None:
    assert "members hear first" in await shown(
        page(PARAGRAPHS), "Who learns first of the sales of the islands?"
    )


async def test_a_text_for_two_widths_of_screen_is_shown_once() -> None:
    twice = await shown(page(f"<div>{PARAGRAPHS}</div><div>{PARAGRAPHS}</div>"))
    assert [twice.count(line) for line in STORY] == [1] * len(STORY)


async def test_equal_rows_of_a_table_all_stand() -> None:
    rows = "<tr><td>Orvane pier</td><td>one red lamp burns</td></tr>" * 3
    table = f"<table><tr><th>Place</th><th>Lamp</th></tr>{rows}</table>"
    assert (await shown(page(PARAGRAPHS + table))).count("one red lamp burns") == 3


async def test_a_short_page_is_shown_whole() -> None:
    assert "One account" in await shown(
        f"<body><div>{LEAFLET}</div><article><h1>Lamps</h1><p>Two burn.</p></article>"
    )


async def test_answers_that_open_with_a_click_are_content() -> None:
    answer = (
        "The boat leaves at six, in winter at five, and comes back when the last lamp of the "
        "island burns."
    )
    rest = "Of its stops reports the whole table of the ferries."
    asked = "<h2><button aria-expanded=false aria-controls=a>When does it leave?</button></h2>"
    menu = "".join(
        f"<p><a href='/{n}'>Every lamp of island number {n} on a map</a></p>" for n in range(9)
    )
    reported = f"{asked}<div id=a hidden><p>{answer}</p><p><a href=/f>{rest}</a></p></div>"
    closed = f"{reported}<div class=accordion hidden>{menu}</div>"
    text = await shown(page(f"{PARAGRAPHS}{closed}{PARAGRAPHS.replace('lamp', 'lantern')}"))
    assert answer in text
    assert "on a map" not in text


async def test_buttons_and_labels_beside_the_story_are_no_content() -> None:
    labels = (
        "<div><button>Add to the bag</button></div><div>5,421</div><div><button>Share "
        "it</button></div>"
    )
    text = await shown(page(f"{PARAGRAPHS}{labels}{PARAGRAPHS.replace('lamp', 'lantern')}"))
    assert "lantern 11" in text
    assert "bag" not in text
    assert "5,421" not in text


async def test_what_is_on_several_buttons_in_a_row_is_no_content() -> None:
    buttons = (
        "<ul><li><button>Save lamp &amp; log</button> <button>Tell a friend of "
        "it</button></li></ul>"
    )
    text = await shown(page(f"{PARAGRAPHS}{buttons}{PARAGRAPHS.replace('lamp', 'lantern')}"))
    assert "lantern 11" in text
    assert "Tell a friend" not in text


async def test_the_end_of_the_box_in_which_the_second_reader_stops_is_content() -> None:
    last = (
        "Whoever keeps the lamps after me finds the rest of the oil below the stairs of the "
        "old tower."
    )
    text = await shown(page(f"{PARAGRAPHS}<p class=embed>{last}</p>"))
    assert last in text
    assert "others of our readers" not in text


async def test_what_is_between_the_title_and_where_the_second_reader_begins_is_content() -> None:
    first = (
        "Twelve lamps burned on this coast until the year in which the last keeper of them "
        "moved inland."
    )
    text = await shown(page(f"<div class=embed>{first}</div>{PARAGRAPHS}"))
    assert first in text
    assert "members hear first" not in text


async def test_below_a_picture_is_the_next_part_where_another_reader_has_the_text() -> None:
    picture = (
        "<figure><img src=a.png><figcaption>A hand with a lantern in it, at low "
        "tide.</figcaption></figure>"
    )
    html = page(f"{PARAGRAPHS}{picture}{PARAGRAPHS.replace('lamp', 'lantern')}")
    assert "at low tide" not in await shown(html)
    assert "at low tide" in await shown(html, part=2)


@pytest.mark.parametrize(
    "heading", ["Related articles", "Das könnte dich auch interessieren", "関連記事"]
)
async def test_a_section_whose_heading_leads_on_is_the_next_part(heading: str) -> None:
    story = (
        f"{PARAGRAPHS}<h2>{heading}</h2><p>{LEAFLET}</p><h2>Oil</h2><p>Forty barrels of whale "
        f"oil a year burned.</p>"
    )
    text = await shown(f"<main><h1>Lamps</h1>{story}{PARAGRAPHS.replace('lamp', 'lantern')}</main>")
    assert "Forty barrels" in text and "lantern 11" in text
    assert "One account" not in text


async def test_behind_a_heading_near_the_end_that_leads_on_nothing_is_content() -> None:
    more = "".join(
        f"<div><h3>Wreck {n}</h3><p>The hull of wreck {n} lay on the shore for years.</p></div>"
        for n in (1, 2)
    )
    text = await shown(
        f"<main><h1>Lamps</h1>{PARAGRAPHS}<div><h4>You may also like</h4></div>{more}</main>"
    )
    assert STORY[11] in text
    assert "hull of wreck" not in text


async def test_credits_in_the_box_of_the_title_are_the_next_part() -> None:
    credit = "4 May 2026 · 12 comments · filed under Coast by admin"
    head = f"<h1>The lamps of the outer coast</h1><div class=byline>{credit}</div>"
    article = f"<article><header>{head}</header><div>{PARAGRAPHS}</div></article>"
    html = f"<html><body><main>{article}</main></body></html>"
    assert "filed under" not in await shown(html)
    assert "filed under" in await shown(html, part=2)


async def test_teasers_below_a_story_are_the_next_part_and_alone_are_content() -> None:
    teasers = "".join(
        f"<li><div><h3>Wreck {n} is seen again</h3><p>Divers who went down to wreck {n} at low "
        f"water brought up a bell, a plate, and a bottle of wine that was still sealed.</p></div>"
        for n in range(40)
    )
    below = f"<div><h2>Recommended for you</h2><ul>{teasers}</ul></div>"
    text = await shown(f"<main><h1>Lamps</h1><div>{PARAGRAPHS}</div>{below}</main>")
    assert STORY[11] in text and "Divers" not in text
    assert "to wreck 39" in await shown(f"<main><h1>Wrecks</h1>{below}</main>")


async def test_a_table_below_a_heading_that_leads_on_is_content() -> None:
    table = "<table><tr><th>Pier<th>Lamps</tr><tr><td>Orvane<td>31</tr><tr><td>Sunder<td>17</tr></table>"
    html = (
        f"<main><h1>Lamps</h1>{PARAGRAPHS}<h2>Related resources</h2><p>{LEAFLET}</p>{table}</main>"
    )
    assert "Sunder | 17" in await shown(html)
    assert "One account" not in await shown(html)


async def test_comments_below_an_article_are_the_next_part_those_of_a_thread_content() -> None:
    said = (
        "<p>I rowed there with my father, and the third lamp had no glass at all that winter.</p>"
    )
    article = f"<main><h1>Lamps</h1>{PARAGRAPHS}<h2>2 replies to “Lamps”</h2>{said * 2}</main>"
    assert "my father" not in await shown(article)
    posts = "".join(
        f"<div><p>{line}</p><h3>{n} comments</h3>{said}</div>"
        for n, line in enumerate(STORY, start=2)
    )
    assert "my father" in await shown(f"<main><h1>Lamps</h1>{posts}</main>")


async def test_a_line_that_a_menu_holds_as_well_is_shown() -> None:
    menu = (
        "<nav><ul><li><a href=#o>The oil that they burned</a></li><li><a href=#w>The wrecks "
        "of</a></li></ul></nav>"
    )
    story = (
        f"{menu}{PARAGRAPHS}<p>The oil that they burned</p>{PARAGRAPHS.replace('lamp', 'lantern')}"
    )
    assert "The oil that they burned" in await shown(page(story))


async def test_what_a_forum_writes_out_for_crawlers_is_read_before_its_summary() -> None:
    said = f'{{"@type":"DiscussionForumPosting","text":"{STORY[0]} {STORY[1]}"}}'
    data = f'<script type="application/ld+json">{said}</script>'
    text = await shown(
        f"<html><body><div id=root></div>{data}<noscript>{PARAGRAPHS}</noscript></body></html>"
    )
    assert STORY[11] in text


def test_who_wrote_a_post_and_when_is_above_all_that_it_says() -> None:
    posts = "".join(
        f"<li><div><i>{name}</i><p>{day}</p></div><div><p>{STORY[place]}</p><p>{STORY[place + 1]}</p></div></li>"
        for place, (name, day) in enumerate(
            [("Ada", "3 May 2025"), ("Bo", "4 May 2025"), ("Cy", "5 May 2025")]
        )
    )
    blocks = document(f"<main><h1>Lamps</h1><ul>{posts}</ul></main>").blocks
    above = [block.heading_path for block in blocks if block.text == STORY[2]]
    assert above == [
        ("Lamps", "Bo · 4 May 2025"),
        ("Lamps", "Cy · 5 May 2025"),
    ]


def test_a_heading_within_a_quotation_names_nothing_behind_it() -> None:
    html = (
        f"<h4>Ada</h4><blockquote><h3>Our shop</h3><p>{STORY[0]}</p></blockquote><p>{STORY[1]}</p>"
    )
    assert [block.heading_path for block in document(html).blocks if block.text == STORY[1]] == [
        ("Ada",)
    ]


async def test_a_piece_of_a_post_is_shown_with_its_writer() -> None:
    posts = "".join(
        f"<li><div>Keeper{place}</div><p>{line}</p></li>" for place, line in enumerate(STORY)
    )
    options = PruneOptions(max_tokens=150)
    site = document(f"<main><h1>Lamps</h1><ol>{posts}</ol></main>")
    found = await prune(
        [site], Question("Who rowed out to lamp 7?"), options=options, reader=Blend(None)
    )
    assert "Keeper7" in found.pages[0].text


async def test_of_what_names_a_post_only_what_its_labels_do_not_show_is_written_again() -> None:
    posts = "".join(
        f"<article><h4>Keeper{n % 2}</h4><p>{n} May 2025</p><div><button>Reply {n}</button></div>"
        f"<p>{line}</p></article>"
        for n, line in enumerate(STORY, start=2)
    )
    text = await shown(f"<main><h1>Lamps</h1>{posts}{PARAGRAPHS.replace('lamp', 'lantern')}</main>")
    assert [text.count(f"\n{n} May 2025") for n in range(2, 14)] == [1] * 12
    assert text.count("Keeper0") == text.count("Keeper1") == 6


async def test_the_price_of_a_card_is_shown_with_its_title() -> None:
    cards = "".join(
        f"<div class=card><div><a href=/{place}>{name} lantern</a></div><p>by "
        f"Maud</p><p>${price}</p></div>"
        for place, (name, price) in enumerate(
            [("Harbour", 129), ("Pilot", 88), ("Fisher", 45), ("Beacon", 310)]
        )
    )
    site = document(f"<main><h1>Lamps</h1><p>{STORY[0]}</p><div>{cards}</div></main>")
    found = await prune(
        [site],
        Question("What is sold at $88?"),
        options=PruneOptions(max_tokens=30),
        reader=Blend(None),
    )
    assert "Pilot lantern" in found.pages[0].text
    assert "$88" in found.pages[0].text


async def test_a_piece_of_a_post_in_boxes_is_shown_with_its_writer() -> None:
    posts = "".join(
        f"<div><div>Keeper{place}</div><div><p>{line}</p></div></div>"
        for place, line in enumerate(STORY)
    )
    site = document(f"<main><h1>Lamps</h1>{posts}</main>")
    options = PruneOptions(max_tokens=150)
    found = await prune(
        [site], Question("Who rowed out to lamp 7?"), options=options, reader=Blend(None)
    )
    assert "Keeper7" in found.pages[0].text


def test_sections_of_a_page_are_no_records() -> None:
    sections = "".join(
        f"<section><h2>Part {place}</h2><p>{line}</p></section>" for place, line in enumerate(STORY)
    )
    assert {block.lead for block in document(f"<main><h1>Lamps</h1>{sections}</main>").blocks} == {
        ""
    }


async def test_a_short_story_among_teasers_is_shown_without_them() -> None:
    lines = (
        "The last lamp of the outer coast went dark on Sunday, ninety years after the first "
        "keeper rowed out to it.",
        "Maud Orvane, who trimmed its wick for half of that time, asked for the glass and was "
        "given it by the council.",
        "What the tower will be used for is open, since the road to it lies under water for "
        "eleven hours of the day.",
    )
    story = "".join(f"<p>{line}</p>" for line in lines)
    teasers = "".join(
        f"<div class=card><a href=/{n}><h3>Wreck {n} is seen again off the northern isle</h3></a>"
        f"<p>Divers who went down to wreck {n} brought up a bell, a plate, and a bottle of "
        f"wine.</p></div>"
        for n in range(40)
    )
    text = await shown(
        f"<body><div class=story><h1>The last lamp</h1>{story}</div><div>{teasers}</div></body>"
    )
    assert all(line in text for line in lines)
    assert "Divers" not in text


@pytest.mark.parametrize("line", ["Porridge with milk and salt", "Two cups of tea"])
async def test_a_line_that_two_days_of_a_plan_have_in_common_is_in_both(line: str) -> None:
    days = "".join(
        f"<section><h2>{day}</h2><ul><li>Breakfast at seven sharp</li><li>{line}</li>"
        f"<li>{STORY[place]}</li></ul></section>"
        for place, day in enumerate(("Monday", "Tuesday", "Wednesday"))
    )
    text = await shown(page(f"{days}{PARAGRAPHS.replace('lamp', 'lantern')}"))
    assert text.count(line) == text.count("Breakfast at seven sharp") == 3


async def test_a_heading_behind_the_story_is_not_where_it_begins() -> None:
    more = "".join(f"<p>{line.replace('lamp', 'lantern')}</p>" for line in STORY[:4])
    head = "<head><title>The last lamp - The Magazine</title></head>"
    story = f"<main><h2>The last lamp</h2>{PARAGRAPHS}</main>"
    text = await shown(
        f"<html>{head}<body>{story}<main><h1>More of this magazine</h1>{more}</main></body></html>"
    )
    assert STORY[0] in text and STORY[11] in text


@pytest.mark.parametrize("name", ["menu", "share-box"])
async def test_what_a_box_named_as_furniture_holds_is_shown_where_it_is_the_story(
    name: str,
) -> None:
    dishes = "".join(f"<h2>Course {n}</h2><p>{line}</p>" for n, line in enumerate(STORY))
    text = await shown(
        f"<body><h1>The inn</h1><p>{LEAFLET}</p><div "
        f"id={name}>{dishes}</div><p>{LEAFLET}</p></body>"
    )
    assert all(line in text for line in STORY)


async def test_the_story_goes_on_behind_an_inset_near_its_end() -> None:
    inset = f"<div class=inset><h3>Related articles</h3>{OTHERS}</div>"
    end = "".join(f"<p>{line.replace('lamp', 'lantern')}</p>" for line in STORY[:3])
    text = await shown(f"<main><h1>Lamps</h1><div>{PARAGRAPHS}{inset}{end}</div></main>")
    assert "lantern 0" in text and "lantern 2" in text
    assert "others of our readers" not in text


@pytest.mark.parametrize(
    "thread",
    [
        "<div class=thread><a href='/t/{n}'>{title}</a> <span>by Ada{n}, {n} replies</span></div>",
        "<h3><a href='/t/{n}'>{title}</a></h3><div>Started by <a href=/u>Ada{n}</a>, 0{n}-05-2026</div>",
        "<article><a href='/t/{n}'>{title}</a> <a href=/c{n}>comments on this thread: {n}</a></article>",
    ],
)
async def test_threads_that_a_board_lists_below_its_title_are_content(thread: str) -> None:
    titles = [f"How to mend a torn sail of kind {n}" for n in range(14)]
    listed = "".join(thread.format(n=n, title=title) for n, title in enumerate(titles))
    about = f"<div class=about><h3>About</h3><p>{STORY[0]} {STORY[1]}</p><p>{STORY[2]} {STORY[3]}</p></div>"
    html = f"<title>Boats</title><div id=page><h1>Boats</h1><div class=threads>{listed}</div>{about}</div>"
    text = await shown(html)
    assert [title for title in titles if title not in text] == []


async def test_entries_of_a_menu_below_a_title_are_none() -> None:
    entries = "".join(f"<li><a href=/m{n}>Entry {n}</a></li>" for n in range(14))
    text = await shown(f"<title>Lamps</title><h1>Lamps</h1><ul>{entries}</ul>{PARAGRAPHS}")
    assert "Entry 5" not in text
