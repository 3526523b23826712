"""The tool `fetch_and_prune_html`: fetch, clean, cut into blocks, keep what answers
within the budget (HtmlRAG §3).

Not for: choosing sentences (`extract_relevant`) or trees over long documents
(`raptor_query`)."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import Field

from errors import UsageError
from pipeline.document.cite import cite
from pipeline.document.page import Document, Trust
from pipeline.evidence.assemble import UNASKED
from pipeline.evidence.show import (
    FRAME_SHARE,
    HINT_TOKENS,
    ROOMY,
    WIDE,
    Head,
    Sheet,
    hint_room,
    injection_line,
    notice_within,
    page_head,
)
from pipeline.evidence.values import VALUE_FORMATS, values_text
from pipeline.fetch.handles import page_handle
from pipeline.prune.paper import is_pruner, path_scorer
from pipeline.prune.prune import Pruned, PrunedPage, PruneOptions, prune
from pipeline.question.question import NOTHING, Question
from pipeline.services import Services
from pipeline.sources.changes import earlier
from pipeline.sources.gather import Loaded, load_sources, room_for
from pipeline.sources.places import (
    load_folders,
    named_pages,
    read_from_address,
    read_place,
    split_place,
)
from pipeline.tables.answers import ask_parts
from pipeline.text.frame import framed, is_injection, new_mark, one_line
from pipeline.text.tokens import Budget, about_tokens, count_each, count_tokens
from pipeline.work import LONG_SHARE, STEP_SHARE, Report, in_thread
from tools.common.answer import (
    FIRST,
    Ending,
    answer,
    failures_of,
    repeated,
    write_next,
)
from tools.common.context import (
    BUDGET,
    FRESH,
    ToolContext,
    check_budget,
    noticed,
    reporter,
    services_of,
)
from tools.common.results import (
    APART,
    HIDDEN,
    INJECTION,
    TRUST,
    ComputedValue,
    Next,
    Part,
    computed_in,
)
from tools.common.tool import Tool
from tools.common.view import draw_pages

NAME: Final = "fetch_and_prune_html"
CURSOR_TOKENS: Final = 12
"""Tokens reserved below `ROOMY` for the cursor, which is needed to read the rest."""
PART: Final = (
    "Instead of question: outline, section HEADING, pages 66-120, whole, links, files (of a "
    "folder), tables, or "
    "table 2 where price < 50 and city = Porto sort price desc top 3 columns item, price; "
    "count, mean price by city."
)


class PrunedPageInfo(Part):
    """One page of the answer; the text has it under its number."""

    WORDS = frozenset(("title", "text"))

    number: int = Field(description="Number in the text")
    url: str
    handle: str = Field(
        description="Pass it as a source to later calls; the resource of this name is the whole "
        "cleaned page"
    )
    published: str = Field(description="ISO date, empty when unknown")
    language: str
    raw_tokens: int = Field(description="Tokens of the original page")
    kept_tokens: int
    kept_blocks: int
    blocks: int
    citations: list[str] = Field(
        description="One URL with a text fragment for each kept block, on request"
    )
    notes: list[str]
    trust: Trust = Field(default="visible", description=TRUST)
    hidden: int = Field(default=0, description=HIDDEN)
    speaks: bool = Field(default=False, description=INJECTION)
    title: str = Field(default="", description=f"Its title; {APART}")
    text: str = Field(default="", description=f"What is kept of it; {APART}")


class FetchAndPruneResult(Part):
    """Structured result of `fetch_and_prune_html`."""

    pages: list[PrunedPageInfo]
    computed: list[ComputedValue] = Field(
        default=[], description="Values computed over all rows of tables"
    )
    next_cursor: str = Field(
        description="Pass it as cursor for the next part; empty when nothing is left"
    )
    around_cursor: str = Field(
        default="",
        description="Cursor of the content around the main text: menus, teasers, comments",
    )
    around: int = Field(
        default=0,
        description="Parts around the main content, which around_cursor leads to",
    )
    left_out: int = Field(
        default=0, description="Parts of the pages that are in no answer yet"
    )
    failures: list[str] = Field(
        description="Pages that could not be read, with the reason"
    )
    scored_by: str = ""
    next: list[Next] = Field(description="Follow-up calls, best first")
    tokens: int = Field(description="Tokens of the text")


async def fetch_and_prune_html(  # noqa: PLR0913, PLR0917  a tool's arguments are its schema
    sources: Annotated[
        list[str],
        Field(description="1 to 20 URLs, files, handles.", min_length=1, max_length=20),
    ],
    ctx: ToolContext,
    question: Annotated[
        str,
        Field(
            description="What to look for; empty reads from the top.", max_length=2000
        ),
    ] = "",
    max_tokens: Annotated[int, BUDGET] = 0,
    part: Annotated[str, Field(description=PART, max_length=500)] = "",
    format: Annotated[
        Literal["html", "markdown", "text", "csv", "json"],
        Field(description="csv, json: tables."),
    ] = "markdown",
    references: Annotated[bool, Field(description="Add links and citations.")] = False,
    cursor: Annotated[
        str, Field(description="From the last answer.", max_length=64)
    ] = "",
    fresh: Annotated[bool, FRESH] = False,
) -> Annotated[CallToolResult, FetchAndPruneResult]:
    """Fetch pages (HTML, PDF, DOCX, text) and return what bears on question, or is
    at part, within max_tokens.

    For more, repeat the call with its cursor. To find pages use search_web or research.
    """
    check_budget(max_tokens)
    asked = Question(question)
    services, noticing = noticed(services_of(ctx), refresh=fresh)
    number = _number(
        cursor,
        key := _key(list(sources), question, max_tokens, format, references, part),
    )
    # 1. Read the sources
    loaded, part, before = await _load(sources, part, asked, services, reporter(ctx))
    # 2. Reserve room for heads and notes
    mark = new_mark()
    heads = _heads(loaded.documents, max_tokens or WIDE, mark)
    frame = count_tokens(notice_within(mark, max_tokens or WIDE))
    frame += sum(count_tokens(head.over(".", mark)) + 1 for head in heads)
    unread = room_for(loaded.failures, max_tokens or WIDE)
    about = NOTHING if part or number > 1 else asked
    computed = await in_thread(ask_parts, about, about.parts, loaded.documents)
    values = values_text(computed, loaded.documents, mark, max_tokens or UNASKED)
    frame += count_tokens(values) + 1 if values else 0
    hint = _hint(part, max_tokens)
    cited = int(FRAME_SHARE * (max_tokens or WIDE)) if references else 0
    room = max(0, max_tokens - frame - hint - unread - cited) if max_tokens else None
    # 3. Read the requested part, or prune all pages together to the remaining budget
    if part or format not in VALUE_FORMATS:
        place = partial(
            read_place,
            before=before,
            form=format,
            max_tokens=room,
            number=number,
            mark=mark,
        )
        pruned = await in_thread(place, loaded.documents, part or "table")
    else:
        options = PruneOptions(
            room, VALUE_FORMATS[format], references, services.pruning, number
        )
        pruned = await _pruned(loaded.documents, asked, options, services)
    # 4. Write the answer and follow-up calls
    further = f"{number + 1}.{key}"
    most = max_tokens or pruned.budget + frame + hint_room(WIDE) + unread + cited
    following = (
        [Next(tool=NAME, arguments={"cursor": further})] if pruned.parts_left else []
    )
    following.extend(repeated(NAME, loaded.failures))
    kept = {(page.document, place) for page in pruned.pages for place in page.kept}
    values = values_text(computed, loaded.documents, mark, max_tokens or UNASKED, kept)
    sheet = _sheet(loaded, pruned, heads, mark, most, values)
    data = await in_thread(
        _data, loaded, pruned, further, following, citations=references
    )
    await in_thread(_write_citations, sheet, data.pages, hint + unread)
    pages = [document.page for document in loaded.documents]
    ending = Ending(NAME, sheet, following, loaded.failures, pages, noticing.ages)
    own = partial(_write_own, data, pruned, part, max_tokens)
    ending.write(own, hinted=False)
    data.computed = computed_in(computed, loaded.documents, kept)
    data.tokens = sheet.tokens
    view = await draw_pages(ctx, question, loaded.documents, pruned)
    return answer(sheet.text, data, view=view)


def _hint(part: str, max_tokens: int) -> int:
    """Return the tokens reserved for follow-up calls."""
    # A truncated part without a note would look complete.
    if part:
        return HINT_TOKENS
    return CURSOR_TOKENS if 0 < max_tokens < ROOMY else hint_room(max_tokens)


def _key(*arguments: object) -> str:
    return hashlib.blake2b(repr(arguments).encode(), digest_size=3).hexdigest()


async def _load(
    sources: Sequence[str],
    part: str,
    question: Question,
    services: Services,
    report: Report,
) -> tuple[Loaded, str, list[Document | None]]:
    """Return the documents of the sources, the part still to read, and for changes the
    former documents."""
    place, said = split_place(part) if part.strip() else ("", "")
    seconds = services.seconds * LONG_SHARE
    if place == "files":
        return await load_folders(sources, services, seconds=seconds), part, []
    if place == "pages":
        sources, part = named_pages(sources, said), ""
    loaded = await load_sources(
        sources, services, seconds=seconds, report=report, question=question
    )
    before = (
        await earlier(loaded.documents, said, services) if place == "changes" else []
    )
    return loaded, part.strip(), before


async def _pruned(
    documents: Sequence[Document],
    question: Question,
    options: PruneOptions,
    services: Services,
) -> Pruned:
    led = None if question else await in_thread(read_from_address, documents, options)
    if led is not None:
        return led
    writer = services.generator
    # On request only: a model not trained for it gained nothing on 18 questions
    # (docs/log.md).
    scoring = (
        writer if writer and (services.any_pruner or is_pruner(writer.name)) else None
    )
    return await prune(
        documents,
        question,
        options=options,
        reader=services.reader,
        embedder=services.embedder,
        finer=path_scorer(scoring, documents, seconds=services.seconds * STEP_SHARE),
    )


def _number(cursor: str, key: str) -> int:
    if not cursor:
        return 1
    number, _, of = cursor.partition(".")
    if of != key or not number.isdigit():
        raise UsageError(
            f"The cursor {cursor!r} belongs to another call.",
            hint="Repeat the call with the same sources, question, max_tokens and format, or "
            "leave cursor empty.",
        )
    return int(number)


def _heads(documents: Sequence[Document], max_tokens: int, mark: str) -> list[Head]:
    """Return one head for each page, cut to its share of the budget; none is left out.
    `documents` must not be empty."""
    marks = count_tokens(notice_within(mark, max_tokens)) + len(documents) * (
        count_tokens(framed(".", mark)) + 2
    )
    room = max(
        1,
        (int(FRAME_SHARE * max_tokens) - hint_room(max_tokens) - marks)
        // len(documents),
    )
    return [
        page_head(number, document.page, room)
        for number, document in enumerate(documents, start=1)
    ]


def _sheet(
    loaded: Loaded,
    pruned: Pruned,
    heads: Sequence[Head],
    mark: str,
    max_tokens: int,
    values: str,
) -> Sheet:
    sheet = Sheet(max_tokens)
    if pruned.pages:
        sheet.add(notice_within(mark, max_tokens))
    sheet.add(values)
    for page in pruned.pages:
        sheet.add(
            "\n".join(
                filter(None, (page.said, heads[page.document].over(page.text, mark)))
            )
        )
    sheet.add(
        injection_line(
            str(page.document + 1) for page in pruned.pages if _speaks(page, loaded)
        )
    )
    shown = {page.document for page in pruned.pages}
    bare: dict[str, list[int]] = {}
    for place, document in enumerate(loaded.documents):
        if place not in shown:
            bare.setdefault(_why_nothing(document, pruned), []).append(place)
    for why, places in bare.items():
        # Dozens of page heads would fill the answer.
        if len(places) > FIRST:
            sheet.add_cut(f"{len(places)} further pages ({why})")
        else:
            sheet.add_cut(
                "\n".join(f"{heads[place].above} ({why})" for place in places)
            )
    return sheet


def _speaks(page: PrunedPage, loaded: Loaded) -> bool:
    return is_injection(f"{loaded.documents[page.document].page.title}\n{page.text}")


def _shown(page: PrunedPage) -> str:
    return "\n".join(filter(None, (page.said, page.text)))


def _write_own(
    data: FetchAndPruneResult, pruned: Pruned, part: str, max_tokens: int, sheet: Sheet
) -> None:
    """Write the calls that go on, and what scored beside the core."""
    _write_next(sheet, data, pruned, part, max_tokens)
    if pruned.scored_by:
        sheet.add_cut(f"Scores: words, embeddings, {one_line(pruned.scored_by)}.")


def _write_next(
    sheet: Sheet, data: FetchAndPruneResult, pruned: Pruned, part: str, max_tokens: int
) -> None:
    """Write follow-up calls, and the number of parts left out if there is room.

    A short answer has room for its cursor only. After the main content another call
    reads the content around it.
    """
    short = f"Around it: cursor={data.around_cursor}"
    if pruned.pages and _hint(part, max_tokens) == CURSOR_TOKENS:
        sheet.add(
            f"More: cursor={data.next_cursor}"
            if data.next_cursor
            else short
            if data.around_cursor
            else ""
        )
        return
    write_next(sheet, data.next, NAME)
    if pruned.parts_left and (part or not 0 < max_tokens < WIDE):
        sheet.add(
            f"Left out: {pruned.left_out} {'further' if part else 'weaker'} parts."
        )
    if data.around_cursor:
        ends = f"Main content ends here. Around it, {pruned.around} parts: the same call with"
        _ = sheet.add(f"{ends} cursor={data.around_cursor}") or sheet.add(short)


def _write_citations(sheet: Sheet, pages: Sequence[PrunedPageInfo], kept: int) -> None:
    """Write the text fragments of kept blocks, in order, as far as they fit with `kept`
    tokens reserved."""
    for page in pages:
        line = [f"[{page.number}]"]
        bare = page.url.partition("#")[0]
        links = [
            f" {link.removeprefix(bare)}" for link in page.citations if "#" in link
        ]
        budget = Budget(sheet.room - kept - count_tokens(line[0]))
        # No token goes across a space before a word, so costs add up
        costs = zip(links, count_each(links), strict=True)
        line += [link for link, cost in costs if budget.spend(cost)]
        sheet.add("".join(line) if len(line) > 1 else "")


def _why_nothing(document: Document, pruned: Pruned) -> str:
    if not document.blocks:
        return "the page contains no visible text"
    return (
        "no part of this page fits the budget"
        if pruned.parts_left
        else "all of this page was removed"
    )


def _data(
    loaded: Loaded,
    pruned: Pruned,
    cursor: str,
    following: list[Next],
    *,
    citations: bool,
) -> FetchAndPruneResult:
    kept = {page.document: page for page in pruned.pages}
    pages = []
    for place, document in enumerate(loaded.documents):
        page = document.page
        blocks = (
            [document.blocks[number] for number in kept[place].kept]
            if place in kept
            else []
        )
        pages.append(
            PrunedPageInfo(
                number=place + 1,
                url=page.final_url,
                handle=page_handle(page),
                published=page.published,
                language=page.language,
                raw_tokens=about_tokens(page.html),
                kept_tokens=kept[place].tokens if place in kept else 0,
                kept_blocks=len(blocks),
                blocks=len(document.blocks),
                citations=[cite(document, block.start, block.end) for block in blocks]
                if citations
                else [],
                notes=list(page.notes),
                trust=page.trust,
                hidden=page.hidden,
                speaks=place in kept and _speaks(kept[place], loaded),
                title=one_line(page.title),
                text=_shown(kept[place]) if place in kept else "",
            )
        )
    return FetchAndPruneResult(
        pages=pages,
        next_cursor=cursor if pruned.parts_left else "",
        around_cursor=cursor if pruned.around and not pruned.parts_left else "",
        around=0 if pruned.parts_left else pruned.around,
        left_out=pruned.left_out if pruned.parts_left else 0,
        failures=failures_of(loaded.failures),
        scored_by=pruned.scored_by,
        next=following,
        tokens=0,  # until the text is written
    )


TOOL: Final = Tool(
    function=fetch_and_prune_html,
    title="Fetch pages",
    command="fetch",
    help="fetch pages and keep what is relevant to a question",
    advice="To read known pages: fetch_and_prune_html with a question.",
    place=30,
)
