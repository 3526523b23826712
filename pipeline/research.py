"""The whole zero-index pipeline in one call: question in, enriched prompt with cited
evidence out (zero-index §2).

Reads as its numbered steps, each a call. A hop goes on from what was found: the passage
nearest to an open part names something, and that is asked about. "Who directed the film
that was shot at the lake?" finds the page of the lake, which names the film; the film's
page has the answer and shares hardly a word with the question. Links on the passage are
candidates beside what the search brings, and pages come through the same guard. Not
for: the first search (`pipeline/sources/gather.py`), or the answer itself, which the
calling model writes from the evidence."""

import hashlib
import html
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

import anyio
import numpy as np

from errors import SearchFailed
from pipeline.answer import settled, write
from pipeline.document.page import Document, Page, Sentence, Trust
from pipeline.evidence.assemble import UNASKED, Assembled
from pipeline.evidence.render import links_in
from pipeline.evidence.show import (
    FRAME_SHARE,
    Sheet,
    hint_room,
    notice_within,
    shortened,
)
from pipeline.generated import CheckedAnswer, Writing, write_answer
from pipeline.messages import ANSWER_TOKENS
from pipeline.question.question import Question, question_word
from pipeline.reading.extract import (
    extract,
    joined,
    left_unread,
    read_documents,
    units_of,
    widened,
)
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import Blend
from pipeline.search.chain import UNDATED
from pipeline.search.mixed import RankedPage
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult
from pipeline.services import Services
from pipeline.sources.gather import (
    Gathered,
    Wanted,
    failure_of,
    gather_pages,
    narrowed,
    open_all,
    room_for,
)
from pipeline.text.frame import (
    failure_text,
    framed,
    new_mark,
    notice,
    one_line,
    quoted,
    shown_location,
)
from pipeline.text.tokens import count_tokens
from pipeline.text.words import (
    find_entities,
    guess_language,
    index_terms,
)
from pipeline.work import LONG_SHARE, STEP_SHARE, Report, in_thread, time_left
from prompts import load

HOPS: Final = 3
"""Most further searches that start from what was found."""
HOP_PAGES: Final = 3
"""Pages that a hop reads."""
HOP_WORK: Final = 0.3
"""Windows that a cross-encoder reads in a hop, over those of a question over several
pages."""
HOP_NAMES: Final = 2
"""Names of a passage that are asked about at once; the first that has a page is
followed."""
_TITLE_SUFFIX: Final = re.compile(r"\s+[(|·–—-]")
"""Separators between a title and the site's name or a disambiguation."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A follow-up search (hop), and the passage that led to it."""

    name: str
    """What the passage names."""
    query: str
    url: str
    """Page of the passage, and the unit in it."""
    unit: int
    links: tuple[tuple[str, str], ...] = ()
    """Text and address of links in it; none from a user's own page, whose links are
    private."""
    own: bool = False
    inside: bool = False
    """Whether that page is from an internal network."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The state after the hops."""

    gathered: Gathered
    documents: tuple[Document, ...]
    reading: Reading
    hops: tuple[Hop, ...] = ()
    """The hops that found something."""


@dataclass(frozen=True, slots=True)
class Researched:
    """The enriched prompt and its evidence."""

    text: str
    tokens: int
    """Exactly `count_tokens(text)`."""
    state: Followed
    assembled: Assembled
    delimiter: str
    """The answer's own mark for untrusted text."""
    written: CheckedAnswer | None = None
    """The local generator's answer, where it was wanted."""


async def research(
    request: Wanted,
    services: Services,
    *,
    max_tokens: int,
    report: Report,
    write: bool = False,
    note: str = "",
) -> Researched:
    """Answer `request.question` with evidence, within `max_tokens`; with `write`, also
    with a written answer.

    `note` is a line above the evidence. With 0 `max_tokens` the budget is
    `UNASKED`, and weak passages are left out.

    Raises `SearchFailed`: no provider could answer. A failing model is only named."""
    began = anyio.current_time()
    # 1.–4. PARSER, search, fetch, mixed ranking
    gathered = await gather_pages(request, services, report=report)
    # 5.–6. Documents, best page first; EXTRACTOR: the core's reading of all of them, or None
    documents, reading = await _read(request.question, gathered, services)
    if not documents:
        reading = replace(reading, reason="No pages were found.")
    reading, unread = settled(reading, documents, gathered.missing())
    gathered = replace(gathered, failures=(*gathered.failures, *unread))
    await report(8, 10, reading.reason)
    # 7. Hops: what the passage nearest to an open part names is asked about
    state = await follow(request, gathered, documents, reading, services)
    await report(9, 10, state.reading.reason)
    # 8. Assemble the enriched prompt within the budget
    budget = max_tokens or UNASKED
    room = budget - (min(ANSWER_TOKENS, budget // 3) if write else 0)
    text, assembled, delimiter = await in_thread(
        enriched,
        state,
        services,
        room,
        note,
        open_end=not max_tokens,
    )
    # 9. Where it is wanted, the local generator's answer, each sentence checked
    seconds_left = services.seconds - (anyio.current_time() - began)
    written = (
        await _written(request.question, assembled, services, seconds=seconds_left)
        if write
        else None
    )
    if written is not None:
        text = _above(written, text, delimiter, budget)
    await report(
        10,
        10,
        f"{len(assembled.evidence)} passage{'s' * (len(assembled.evidence) != 1)}",
    )
    return Researched(text, count_tokens(text), state, assembled, delimiter, written)


async def _read(
    question: Question, gathered: Gathered, services: Services
) -> tuple[list[Document], Reading]:
    """Return the pages with their reading; without time for that, only their best
    passages, by words."""
    with anyio.move_on_after(LONG_SHARE * time_left()):
        # A page that did not come is represented by its snippet.
        documents = [
            await _document(ranked, gathered, services) for ranked in gathered.ranked
        ]
        reading = await extract(
            question,
            documents,
            reader=services.reader,
            extractor=services.extractor,
        )
        return documents, reading
    short_pages = [
        await services.documents.read(
            _short_page(page.result, page.passage, trust="visible")
        )
        for page in gathered.ranked
    ]
    reading = await read_documents(
        question, short_pages, reader=Blend(None), seconds=services.seconds
    )
    return short_pages, replace(reading, late=True)


async def _written(
    question: Question, assembled: Assembled, services: Services, *, seconds: float
) -> CheckedAnswer:
    if services.generator is None:
        return CheckedAnswer(
            (), "", 0, "No answer was written: no generator is set (WINNOW_GENERATOR)."
        )
    writing = Writing(
        services.generator, services.stores.scores, max(seconds, 0.0), services.today()
    )
    return await write_answer(
        question.text, assembled.evidence, assembled.shown.labels, writing
    )


def _above(written: CheckedAnswer, text: str, delimiter: str, max_tokens: int) -> str:
    """Return `text` with the written answer above it; what a model wrote from outside
    pages is framed as outside text. Both are cut to `max_tokens`; a failure is written
    in place of the answer."""
    sheet = Sheet(max_tokens)
    room = max_tokens - count_tokens(text) - 1
    if written.failure:
        sheet.add(shortened(one_line(written.failure), room))
    else:
        head = (
            f"Answer by {one_line(written.model)} from {written.shown} passages, checked word "
            f"by word:"
        )
        frame_tokens = count_tokens(f"{head}\n{framed('-', delimiter)}")
        sheet.add(
            f"{head}\n{framed(shortened(written.text, max(0, room - frame_tokens)), delimiter)}"
        )
    sheet.add_cut(text)
    return sheet.text


async def _document(
    ranked: RankedPage, gathered: Gathered, services: Services
) -> Document:
    result = ranked.result
    if result.url in gathered.documents:
        return gathered.documents[result.url]
    return await services.documents.read(
        _short_page(result, result.snippet, trust="snippet")
    )


def _short_page(result: SearchResult, text: str, *, trust: Trust) -> Page:
    """Return a page with only the passage or snippet of a result."""
    return Page(
        url=result.url,
        final_url=result.url,
        title=result.title,
        html=f"<p>{html.escape(text)}</p>",
        media_type="text/html",
        author=result.author,
        published=result.published,
        doi=result.doi,
        content_hash=hashlib.blake2b(
            f"{result.url}\n{text}".encode(), digest_size=16
        ).hexdigest(),
        trust=trust,
    )


def enriched(
    state: Followed,
    services: Services,
    max_tokens: int,
    note: str = "",
    *,
    open_end: bool,
) -> tuple[str, Assembled, str]:
    """Return the enriched prompt of a state within `max_tokens`, its passages and
    its mark.

    `note` is a line above the evidence. With `open_end` weak passages are left out even
    if they fit. A small budget or a `none` leaves the instructions out. Without passages the text says why no answer
    was found."""
    gathered, documents, reading = state.gathered, state.documents, state.reading
    delimiter = new_mark()
    prompt = load("enriched")
    values = {"date": services.today().isoformat(), "notice": notice(delimiter)}
    # The instructions are included if they leave enough of the budget to passages.
    filled = count_tokens(prompt.fill(**values, evidence=""))
    instructed = reading.verdict != "none" and filled <= FRAME_SHARE * max_tokens / 2
    head = (
        prompt.fill(**values, evidence="").strip()
        if instructed
        else notice_within(delimiter, max_tokens)
    )
    hops = [_followed(hop, "10a", delimiter) for hop in state.hops]
    sheet = Sheet(
        max_tokens,
        reserve=hint_room(max_tokens)
        + room_for(gathered.failures, max_tokens)
        + sum(count_tokens(line) + 1 for line in hops),
    )
    sheet.add(head)
    sheet.add(note)
    assembled = write(
        documents,
        reading,
        sheet,
        delimiter,
        open_end=open_end,
    )
    sheet.release()
    for hop in state.hops:
        sheet.add(_followed(hop, assembled.label_of(hop.url, hop.unit), delimiter))
    for line in _foot(
        gathered, reading, {passage.url for passage in assembled.evidence}
    ):
        sheet.add_cut(line) if reading.verdict == "none" else sheet.add(line)
    # A provider's message is quoted between delimiters, so it is written whole or not
    # at all. What a provider can never search bears on a verdict that nothing answers.
    messages = dict.fromkeys(
        (outcome.provider, message)
        for outcome in _outcomes_to_name(gathered.outcomes)
        for message, is_said in (
            (outcome.reason, outcome.status != "ok" or reading.verdict != "answered"),
            (outcome.unsearched, reading.verdict == "none"),
        )
        if message and is_said
    )
    for provider, message in messages:
        sheet.add(f"{provider}: {quoted(message, delimiter)}")
    return sheet.text, assembled, delimiter


def _outcomes_to_name(outcomes: Sequence[SearchOutcome]) -> list[SearchOutcome]:
    """Return the outcomes without the empty ones of a provider that found something by
    another wording of the question."""
    answering = {outcome.provider for outcome in outcomes if outcome.status == "ok"}
    return [
        outcome
        for outcome in outcomes
        if outcome.status != "empty" or outcome.provider not in answering
    ]


def _followed(hop: Hop, label: str, delimiter: str) -> str:
    """Return the line about follow-up searches and the passage that led to them."""
    return (
        f"Follow-up search from {f'[{label}]' if label else shown_location(hop.url)}: "
        f"{quoted(hop.query, delimiter)}"
    )


def _foot(
    gathered: Gathered, reading: Reading, quoted_pages: AbstractSet[str]
) -> list[str]:
    """Return what was not read, and what was searched: failures always, all of it where
    nothing answers.

    What a page lacks that an answer does not quote is no matter of that answer. At most
    five failures are listed."""
    aside = reading.verdict == "answered"
    failures = [
        failure
        for failure in gathered.failures
        if not (aside and failure.page and failure.page not in quoted_pages)
    ]
    sources: dict[str, list[str]] = {}
    for failure in failures[:5]:
        sources.setdefault(failure.reason, []).append(failure.source)
    lines = [
        f"Not read: {', '.join([*map(shown_location, earlier), failure_text(source, reason)])}"
        for reason, (*earlier, source) in sources.items()
    ]
    outcomes = _outcomes_to_name(gathered.outcomes)
    answers = ", ".join(
        dict.fromkeys(f"{outcome.provider}: {outcome.status}" for outcome in outcomes)
    )
    lines += gathered.notes
    texts = [query.text for query in gathered.parsed.queries]
    queries = "; ".join(
        f'"{one_line(text)}"' for text in texts if text != reading.question.text
    )
    is_reworded = reading.verdict == "none" and (queries or len(outcomes) > 1)
    if is_reworded or any(outcome.status != "ok" for outcome in outcomes):
        lines.append(
            f"Searched: {queries} ({answers})." if queries else f"Searched: {answers}."
        )
    return lines


# Hops


async def follow(
    request: Wanted,
    gathered: Gathered,
    documents: Sequence[Document],
    reading: Reading,
    services: Services,
) -> Followed:
    """Run up to `HOPS` follow-up searches; stop if one brings
    nothing, or too little time is left."""
    state = Followed(gathered, tuple(documents), reading)
    searched: set[str] = set()
    for _ in range(HOPS):
        hops = await in_thread(_leads, request.question, state)
        hop = next((hop for hop in hops if hop.query not in searched), None)
        if hop is None or time_left() < STEP_SHARE * services.seconds:
            break
        searched.add(hop.query)
        extended = await _hop(hop, request, state, services)
        if extended is None:
            break
        state = extended
    return state


def _leads(question: Question, state: Followed) -> list[Hop]:
    """Return what the nearest passage leads to: of an answered question once, and only
    to a page at hand."""
    reading = state.reading
    at_hand = {about_of(page.page.title) for page in state.gathered.documents.values()}
    if not len(reading.values) or (reading.answered and state.hops):
        return []
    hops = _named(question, reading, state.documents, at_hand)
    return [
        hop for hop in hops if not reading.answered or hop.name.casefold() in at_hand
    ]


def about_of(title: str) -> str:
    """Return what a page is about by its title, without the name of its site or a word
    in brackets."""
    return _TITLE_SUFFIX.split(title.casefold(), maxsplit=1)[0].strip()


def _named(
    question: Question,
    reading: Reading,
    documents: Sequence[Document],
    at_hand: AbstractSet[str],
) -> list[Hop]:
    """Return the names in the best unit that the question lacks, with what of
    it the unit does not say.

    At most `HOP_NAMES`; none where the unit has all words of the question."""
    rows = np.argsort(-reading.values, kind="stable").tolist()
    row = next(
        (row for row in rows if _is_text(reading.places[row], documents)), rows[0]
    )
    owner, unit = reading.places[row]
    page = documents[owner].page
    language = question.language
    unit_terms = set(
        index_terms(
            " ".join((unit.text, *unit.heading_path, page.title)), language=language
        )
    )
    unsaid = [
        word
        for word in question.words
        if set(index_terms(word, language=language)) - unit_terms
    ]
    query_words = " ".join(word for word in unsaid if not question_word(word, language))
    if not query_words:
        return []
    entities = find_entities(
        unit.text, language=page.language or guess_language(unit.text)
    )
    familiar = f"{question.text} {page.title}".casefold()
    names = [name for name in entities if name.casefold() not in familiar]
    # What the question itself names may have a page at hand that shares nothing else with it.
    own_names = [name for name in question.entities if name.casefold() in at_hand]
    names += [name for name in own_names if name.casefold() != about_of(page.title)]
    links = (
        ()
        if page.own
        else tuple(
            (one_line(text), url)
            for text, url in links_in(documents[owner], unit.block)
        )
    )
    linked = {text.casefold() for text, _ in links}
    names.sort(
        key=lambda name: (name.casefold() not in at_hand, name.casefold() not in linked)
    )
    return [
        Hop(
            name,
            f"{name} {query_words}",
            page.final_url,
            unit.number,
            links,
            page.own,
            page.inside,
        )
        for name in list(dict.fromkeys(names))[:HOP_NAMES]
    ]


def _is_text(unit: tuple[int, Sentence], documents: Sequence[Document]) -> bool:
    return documents[unit[0]].blocks[unit[1].block].kind != "heading"


async def _hop(
    hop: Hop, request: Wanted, state: Followed, services: Services
) -> Followed | None:
    """Search, read and judge for one hop; None where that brings nothing or the search
    fails.

    A name from a user's own page is searched for only among the user's documents."""
    gathered = state.gathered
    language = gathered.parsed.queries[0].language
    query = narrowed(SearchQuery(hop.query, language), request)
    outcomes: tuple[SearchOutcome, ...] = ()
    results: tuple[SearchResult, ...] = ()
    # 1. Pages about the name: at hand, else searched for and linked from the passage
    name = hop.name.casefold()
    about = [
        url
        for url, page in gathered.documents.items()
        if about_of(page.page.title) == name
    ][:HOP_PAGES]
    if not about:
        # Text of a user's own page is never sent to a search engine.
        if hop.own and set(services.chain.names) != UNDATED:
            return None
        try:
            findings = await services.chain.search([query], limit=2 * HOP_PAGES)
        except SearchFailed:
            return None
        outcomes, results = findings.outcomes, findings.results
        titles = {url: text for text, url in hop.links} | {
            result.url: result.title for result in findings.results
        }
        about = [url for url, title in titles.items() if name in title.casefold()][
            :HOP_PAGES
        ]
    # 2. Read them
    new = [url for url in about if url not in gathered.documents]
    inside = {result.url for result in results if result.inside} | {
        url for _, url in hop.links if hop.inside
    }
    services.addresses.give(new)
    opened, errors = await open_all(
        new, services, seconds=STEP_SHARE * time_left(), outside=set(new) - inside
    )
    pages = {**gathered.documents, **opened}
    read = list(
        {
            pages[url].page.final_url: pages[url] for url in about if url in pages
        }.values()
    )
    if not read:
        return None
    # 3. Judge them; what says nothing to it, or less than is known, is left out
    before = state.reading
    question = Question(f"{request.question.word} {hop.query}".strip())
    seconds = STEP_SHARE * time_left()
    after = await read_documents(
        question,
        read,
        reader=services.reader,
        seconds=seconds,
        share=HOP_WORK,
    )
    if after.verdict == "none" or not (
        before.answered or after.confidence > before.confidence
    ):
        return None
    # 4. Take it into what is known
    documents, reading = await in_thread(_with_pages, state, read, after)
    return Followed(
        replace(
            gathered,
            parsed=replace(gathered.parsed, queries=(*gathered.parsed.queries, query)),
            documents=pages,
            outcomes=(*gathered.outcomes, *outcomes),
            failures=(
                *gathered.failures,
                *map(failure_of, errors),
                *left_unread(after, read),
            ),
        ),
        documents,
        reading,
        (*state.hops, hop),
    )


def _with_pages(
    state: Followed, read: Sequence[Document], after: Reading
) -> tuple[tuple[Document, ...], Reading]:
    """Return the documents that are known with those that a hop `read`, and the reading
    of all.

    `after` is the reading of the latter alone.
    """
    known_urls = {document.page.final_url for document in state.documents}
    documents = (
        *state.documents,
        *(document for document in read if document.page.final_url not in known_urls),
    )
    units = units_of(after, read) | units_of(state.reading, state.documents)
    reading = joined(
        widened(state.reading, state.documents, documents, units),
        widened(after, read, documents, units),
    )
    return documents, reading
