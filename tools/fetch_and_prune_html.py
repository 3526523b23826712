"""The tool `fetch_and_prune_html`: fetch, clean, cut into blocks, keep what answers
within the budget (HtmlRAG §3).

Not for: choosing sentences (`extract_relevant`) or trees over long documents
(`raptor_query`)."""

import hashlib
from functools import partial
from typing import Annotated, Final

from mcp_types import CallToolResult
from pydantic import Field

from errors import UsageError
from pipeline.evidence.forms import Form
from pipeline.question.question import Question
from pipeline.read_pages import PagesOrder, read_pages
from pipeline.work import in_thread
from tools.common.context import (
    BUDGET,
    FRESH,
    ToolContext,
    check_budget,
    noticed,
    reporter,
    services_of,
)
from tools.common.ending import Ending, repeated, result_of
from tools.common.results import Next
from tools.common.tool import Tool
from tools.common.view import draw_pages
from tools.results.pages import FetchAndPruneResult, pages_result, write_further

NAME: Final = "fetch_and_prune_html"
PART: Final = (
    "Instead of question, one of: outline; section HEADING; pages 66-120; whole; links; files "
    "(of a folder; files NAME); tables (names, columns, rows of each); or SQL over all rows of the tables: "
    "sql: SELECT city, avg(price) FROM t1 GROUP BY city"
)


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
    part: Annotated[str, Field(description=PART, max_length=4000)] = "",
    format: Annotated[Form, Field(description="Of the text.")] = "markdown",
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
    # Where a part goes on is known by its items, so that its budget may change.
    budget = 0 if part else max_tokens
    call = repr((list(sources), question, budget, format, part))
    key = hashlib.blake2b(call.encode(), digest_size=3).hexdigest()
    number = _number(cursor, key)
    services, noticing = noticed(services_of(ctx), refresh=fresh)
    # 1. The pages, cut to the budget
    order = PagesOrder(Question(question), part, format, max_tokens, number)
    read = await read_pages(sources, order, services, reporter(ctx))
    # 2. How to go on
    next_cursor = f"{read.pruned.following or number + 1}.{key}"
    following = (
        [Next(tool=NAME, arguments={"cursor": next_cursor})]
        if read.pruned.parts_left
        else []
    )
    following += repeated(NAME, read.failures)
    pages = [document.page for document in read.documents]
    ending = Ending(NAME, read.sheet, following, read.failures, pages, noticing.ages)
    ending.write(partial(write_further, read, next_cursor, following), hinted=False)
    # 3. Hand it over
    data = await in_thread(pages_result, read, next_cursor, ending)
    view = await draw_pages(ctx, question, read.documents, read.pruned)
    return result_of(read.sheet.text, data, view=view)


def _number(cursor: str, key: str) -> int:
    if not cursor:
        return 1
    number, _, call_key = cursor.partition(".")
    if call_key != key or not number.isdigit():
        raise UsageError(
            f"The cursor {cursor!r} belongs to another call.",
            hint="Repeat the call with the same sources, question, part and format, "
            "without a part also max_tokens, or leave cursor empty.",
        )
    return int(number)


TOOL: Final = Tool(
    function=fetch_and_prune_html,
    title="Fetch pages",
    command="fetch",
    help="fetch pages and keep what is relevant to a question",
    advice="To read known pages: fetch_and_prune_html with a question.",
    place=30,
)
