"""The tool `fetch_and_prune_html`: fetch, clean, cut into blocks, keep what answers within the budget (HtmlRAG §3).

Not for: choosing sentences (`extract_relevant`) or trees over long documents (`raptor_query`).
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from errors import UsageError
from pipeline.documents import Document
from pipeline.fetch.handles import page_handle
from pipeline.frame import framed, new_mark, notice, one_line
from pipeline.html.prune import Pruned, PruneOptions, prune
from pipeline.sheet import Sheet
from pipeline.sources import Loaded, load_sources
from pipeline.tokens import count_tokens
from tools.context import ToolContext, answer, reporter, services_of

FETCH_SHARE = 0.6
"""Part of the call's time that pages may take to arrive."""
FOOT_TOKENS = 70
"""Kept free for what is left over and how to get it."""


class PrunedPageInfo(BaseModel):
    """One page of the answer; its text stands in the text part."""

    number: int = Field(description="Number in the text part")
    url: str
    handle: str = Field(
        description="Pass it as a source to later calls; the resource of this name is the whole cleaned page"
    )
    title: str
    published: str = Field(description="ISO date, empty when unknown")
    author: str
    language: str
    raw_tokens: int = Field(description="Tokens of the page as it came")
    kept_tokens: int
    kept_blocks: int
    blocks: int
    notes: list[str]


class FetchAndPruneResult(BaseModel):
    """Structured part of the answer."""

    pages: list[PrunedPageInfo]
    next_cursor: str = Field(description="Pass it as cursor for the next part; empty when nothing is left")
    failures: list[str] = Field(description="Pages that could not be read, with the reason")
    tokens: int = Field(description="Tokens of the text part")


async def fetch_and_prune_html(
    urls: Annotated[
        list[str], Field(description="1 to 20 URLs, file paths or page handles.", min_length=1, max_length=20)
    ],
    ctx: ToolContext,
    query: Annotated[
        str, Field(description="What the page should tell; empty reads it from the top.", max_length=2000)
    ] = "",
    max_tokens: Annotated[
        int, Field(description="Most tokens of the answer, over all pages.", ge=100, le=20000)
    ] = 2000,
    format: Annotated[
        Literal["html", "markdown", "text"], Field(description="How the kept parts are written.")
    ] = "html",
    cursor: Annotated[str, Field(description="next_cursor of an earlier answer to the same call.", max_length=64)] = "",
) -> Annotated[CallToolResult, FetchAndPruneResult]:
    """Fetch pages (HTML, PDF, DOCX, Markdown, text) and return the parts that bear on query, within max_tokens.

    Structure is kept: tables with their header rows, parts with their headings; hidden text and furniture are gone.
    The answer says what was left out: repeat the call with its cursor for the next part. Not for finding pages: use
    search_web or research.
    """
    services, report = services_of(ctx), reporter(ctx)
    key = _key(urls, query, max_tokens, format)
    part = _part(cursor, key)
    loaded = await load_sources(urls, services, seconds=services.seconds * FETCH_SHARE, report=report)
    mark = new_mark()
    heads = [_head(number, document) for number, document in enumerate(loaded.documents, start=1)]
    frame = sum(count_tokens(f"{head}\n{framed('.', mark)}") for head in heads) + count_tokens(notice(mark))
    options = PruneOptions(max_tokens=max(0, max_tokens - frame - FOOT_TOKENS), format=format, part=part)
    pruned = await prune(loaded.documents, query, options=options, embedder=services.embedder)
    next_cursor = f"{part + 1}.{key}" if pruned.parts_left else ""
    sheet = _sheet(loaded, pruned, heads, mark, max_tokens, next_cursor)
    return answer(sheet.text, _data(loaded, pruned, next_cursor, sheet.tokens))


def _key(urls: Sequence[str], query: str, max_tokens: int, form: str) -> str:
    return hashlib.blake2b(repr((list(urls), query, max_tokens, form)).encode(), digest_size=6).hexdigest()


def _part(cursor: str, key: str) -> int:
    if not cursor:
        return 1
    number, _, of = cursor.partition(".")
    if of != key or not number.isdigit():
        raise UsageError(
            f"The cursor {cursor!r} belongs to another call.",
            hint="Repeat the call with the same urls, query, max_tokens and format, or leave cursor empty.",
        )
    return int(number)


def _head(number: int, document: Document) -> str:
    page = document.page
    date = f" ({page.published})" if page.published else ""
    return f"[{number}] {one_line(page.title) or '(no title)'}{date}\n{page.final_url}"


def _sheet(loaded: Loaded, pruned: Pruned, heads: Sequence[str], mark: str, max_tokens: int, next_cursor: str) -> Sheet:
    sheet = Sheet(max_tokens)
    if pruned.pages:
        sheet.add_cut(notice(mark))
    for page in pruned.pages:
        sheet.add(f"{heads[page.document]}\n{framed(page.text, mark)}")
    shown = {page.document for page in pruned.pages}
    for place, document in enumerate(loaded.documents):
        if place not in shown:
            sheet.add_cut(f"{heads[place]}\n({_why_nothing(document, pruned)})")
    if next_cursor:
        sheet.add_cut(
            f'{pruned.left_out} parts were left out. For the next ones repeat the call with cursor="{next_cursor}".'
        )
    for document in loaded.documents:
        for note in document.page.notes:
            sheet.add_cut(f"Note on {document.page.final_url}: {note}")
    for failure in loaded.failures:
        sheet.add_cut(f"Not read: {one_line(failure.source)}: {one_line(failure.reason)}")
    return sheet


def _why_nothing(document: Document, pruned: Pruned) -> str:
    if not document.blocks:
        return "the page holds no visible text"
    return "no part of this page fitted" if pruned.parts_left else "nothing is left of this page"


def _data(loaded: Loaded, pruned: Pruned, next_cursor: str, tokens: int) -> FetchAndPruneResult:
    kept = {page.document: page for page in pruned.pages}
    pages = []
    for place, document in enumerate(loaded.documents):
        page = document.page
        pages.append(
            PrunedPageInfo(
                number=place + 1,
                url=page.final_url,
                handle=page_handle(page),
                title=one_line(page.title),
                published=page.published,
                author=one_line(page.author),
                language=page.language,
                raw_tokens=page.raw_tokens,
                kept_tokens=kept[place].tokens if place in kept else 0,
                kept_blocks=len(kept[place].kept) if place in kept else 0,
                blocks=len(document.blocks),
                notes=list(page.notes),
            )
        )
    return FetchAndPruneResult(
        pages=pages,
        next_cursor=next_cursor,
        failures=[f"{f.source}: {f.reason}" for f in loaded.failures],
        tokens=tokens,
    )
