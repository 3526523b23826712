"""The tool `fetch_and_prune_html`: fetch, clean, cut into blocks, keep what answers within the budget (HtmlRAG §3).

Not for: choosing sentences (`extract_relevant`) or trees over long documents (`raptor_query`).
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from errors import UsageError
from pipeline.documents import Document, Page
from pipeline.evidence.cite import cite
from pipeline.evidence.sheet import Sheet
from pipeline.evidence.show import FRAME_SHARE, HEAD_TOKENS, WIDE, Head, hint_room, notice_within, page_head
from pipeline.fetch.handles import page_handle
from pipeline.prune.generate import is_pruner, path_scorer
from pipeline.prune.prune import Pruned, PruneOptions, prune
from pipeline.sources import Loaded, load_sources, room_for
from pipeline.text.frame import framed, new_mark, one_line
from pipeline.text.tokens import count_tokens
from tools.context import (
    BUDGET,
    FETCH_SHARE,
    FIRST,
    MODEL_SHARE,
    Next,
    ToolContext,
    answer,
    check_budget,
    failures_of,
    repeated,
    reporter,
    services_of,
    tell_failures,
    tell_notes,
    tell_rest,
    write_next,
)

TOOL: Final = "fetch_and_prune_html"


class PrunedPageInfo(BaseModel):
    """One page of the answer; what it says, its title included, stands in the text part."""

    number: int = Field(description="Number in the text part")
    url: str
    handle: str = Field(
        description="Pass it as a source to later calls; the resource of this name is the whole cleaned page"
    )
    published: str = Field(description="ISO date, empty when unknown")
    language: str
    raw_tokens: int = Field(description="Tokens of the page as it came")
    kept_tokens: int
    kept_blocks: int
    blocks: int
    citations: list[str] = Field(description="One URL with a text fragment for each kept block, on request")
    notes: list[str]


class FetchAndPruneResult(BaseModel):
    """Structured part of the answer."""

    pages: list[PrunedPageInfo]
    next_cursor: str = Field(description="Pass it as cursor for the next part; empty when nothing is left")
    failures: list[str] = Field(description="Pages that could not be read, with the reason")
    scored_by: str = ""
    next: list[Next] = Field(description="Calls that go on from here, best first")
    tokens: int = Field(description="Tokens of the text part")


async def fetch_and_prune_html(
    sources: Annotated[
        list[str],
        Field(description="1 to 20 URLs, files (also a.pdf#pages=66-120), handles.", min_length=1, max_length=20),
    ],
    ctx: ToolContext,
    question: Annotated[str, Field(description="What to look for; empty reads from the top.", max_length=2000)] = "",
    max_tokens: Annotated[int, BUDGET] = 0,
    format: Annotated[Literal["html", "markdown", "text"], Field(description="Form of the parts.")] = "markdown",
    references: Annotated[
        bool,
        Field(description="Add links and a citation for each part."),
    ] = False,
    cursor: Annotated[str, Field(description="next_cursor of the last answer.", max_length=64)] = "",
) -> Annotated[CallToolResult, FetchAndPruneResult]:
    """Fetch pages (HTML, PDF, DOCX, Markdown, text) and return the parts that bear on question, within max_tokens.

    Tables keep their header rows, parts their headings. For more, repeat the call with the cursor of the answer. Not
    for finding pages: use search_web or research.
    """
    check_budget(max_tokens)
    services, report = services_of(ctx), reporter(ctx)
    key = _key(list(sources), question, max_tokens, format, references)
    part = _part(cursor, key)
    # 1. Read the sources
    loaded = await load_sources(sources, services, seconds=services.seconds * FETCH_SHARE, report=report)
    # 2. Plan what stands around the pages' words
    mark = new_mark()
    heads = _heads(loaded.documents, max_tokens or WIDE, mark)
    frame = count_tokens(notice_within(mark, max_tokens or WIDE)) + sum(
        count_tokens(head.over(".", mark)) + 1 for head in heads
    )
    unread = room_for(loaded.failures, max_tokens or WIDE)
    room = max(0, max_tokens - frame - hint_room(max_tokens) - unread) if max_tokens else None
    # 3. Prune all pages together to the rest
    writer = services.generator
    # A model not trained for it gained nothing on 18 questions and takes seconds (docs/log.md): only on request.
    scoring = writer if writer and (services.any_pruner or is_pruner(writer.name)) else None
    pruned = await prune(
        loaded.documents,
        question,
        options=PruneOptions(room, format=format, links=references, method=services.pruning, part=part),
        reader=services.reader,
        embedder=services.embedder,
        finer=path_scorer(scoring, loaded.documents, seconds=services.seconds * MODEL_SHARE),
    )
    # 4. Write it out, and how to go on
    next_cursor = f"{part + 1}.{key}" if pruned.parts_left else ""
    most = max_tokens or pruned.budget + frame + hint_room(WIDE) + unread
    following = [Next(tool=TOOL, arguments={"cursor": next_cursor})] if next_cursor else []
    following.extend(repeated(TOOL, loaded.failures))
    sheet = _sheet(loaded, pruned, heads, mark, most)
    tell_rest(sheet, loaded.failures)
    if not pruned.pages or hint_room(max_tokens or WIDE):
        write_next(sheet, following, TOOL)
        if next_cursor:
            sheet.add(f"Left out: {pruned.left_out} weaker parts.")
    _add_notes(sheet, loaded, pruned)
    data = _data(loaded, pruned, next_cursor, following, sheet.tokens, citations=references)
    return answer(sheet.text, data, pages=_cut_pages(loaded, pruned))


def _key(*arguments: object) -> str:
    return hashlib.blake2b(repr(arguments).encode(), digest_size=6).hexdigest()


def _part(cursor: str, key: str) -> int:
    if not cursor:
        return 1
    number, _, of = cursor.partition(".")
    if of != key or not number.isdigit():
        raise UsageError(
            f"The cursor {cursor!r} belongs to another call.",
            hint="Repeat the call with the same sources, question, max_tokens and format, or leave cursor empty.",
        )
    return int(number)


def _heads(documents: Sequence[Document], max_tokens: int, mark: str) -> list[Head]:
    """Return the head of each page, within what a budget has for them."""
    marks = count_tokens(notice_within(mark, max_tokens)) + len(documents) * (count_tokens(framed(".", mark)) + 2)
    room = max(HEAD_TOKENS, (int(FRAME_SHARE * max_tokens) - hint_room(max_tokens) - marks) // len(documents))
    return [page_head(number, document.page, room) for number, document in enumerate(documents, start=1)]


def _cut_pages(loaded: Loaded, pruned: Pruned) -> list[Page]:
    """Pages of which something was left out, the first few."""
    kept = {page.document: len(page.kept) for page in pruned.pages}
    cut = [d.page for place, d in enumerate(loaded.documents) if kept.get(place, 0) < len(d.blocks)]
    return cut[:FIRST] if pruned.parts_left else []


def _sheet(loaded: Loaded, pruned: Pruned, heads: Sequence[Head], mark: str, max_tokens: int) -> Sheet:
    sheet = Sheet(max_tokens)
    if pruned.pages:
        sheet.add(notice_within(mark, max_tokens))
    for page in pruned.pages:
        sheet.add(heads[page.document].over(page.text, mark))
    shown = {page.document for page in pruned.pages}
    for place, document in enumerate(loaded.documents):
        if place not in shown:
            sheet.add_cut(f"{heads[place].above} ({_why_nothing(document, pruned)})")
    return sheet


def _add_notes(sheet: Sheet, loaded: Loaded, pruned: Pruned) -> None:
    tell_failures(sheet, loaded.failures)
    if pruned.scored_by:
        sheet.add_cut(f"Scores: words, embeddings, {one_line(pruned.scored_by)}.")
    tell_notes(sheet, (document.page for document in loaded.documents))


def _why_nothing(document: Document, pruned: Pruned) -> str:
    if not document.blocks:
        return "the page holds no visible text"
    return "no part of this page fitted" if pruned.parts_left else "nothing is left of this page"


def _data(
    loaded: Loaded, pruned: Pruned, next_cursor: str, following: list[Next], tokens: int, *, citations: bool
) -> FetchAndPruneResult:
    kept = {page.document: page for page in pruned.pages}
    pages = []
    for place, document in enumerate(loaded.documents):
        page = document.page
        blocks = [document.blocks[number] for number in kept[place].kept] if place in kept else []
        pages.append(
            PrunedPageInfo(
                number=place + 1,
                url=page.final_url,
                handle=page_handle(page),
                published=page.published,
                language=page.language,
                raw_tokens=page.raw_tokens,
                kept_tokens=kept[place].tokens if place in kept else 0,
                kept_blocks=len(blocks),
                blocks=len(document.blocks),
                citations=[cite(document, block.start, block.end) for block in blocks] if citations else [],
                notes=list(page.notes),
            )
        )
    return FetchAndPruneResult(
        pages=pages,
        next_cursor=next_cursor,
        failures=failures_of(loaded.failures),
        scored_by=pruned.scored_by,
        next=following,
        tokens=tokens,
    )
