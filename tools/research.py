"""The tool `research`: the whole zero-index pipeline in one call

Not for: writing the answer; it returns the enriched prompt, and the caller writes.
"""

from functools import partial
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import Field

from pipeline.evidence.assemble import UNASKED
from pipeline.evidence.show import HINT_TOKENS, Sheet, hint_room
from pipeline.question.question import Question
from pipeline.research_turn import TurnOrder, take_turn
from tools.common.answer import Ending, behind
from tools.common.answer import answer as reply
from tools.common.context import (
    BUDGET,
    ToolContext,
    check_budget,
    owner_of,
    reporter,
    services_of,
)
from tools.common.tool import Tool
from tools.common.view import draw_evidence
from tools.results.research import (
    MOST_PAGES_READ,
    USUAL_PAGES_READ,
    ResearchResult,
    calls_after,
    turn_result,
    write_session,
)

NAME: Final = "research"
SESSION_FROM: Final = 1_000
"""Minimum max_tokens of an answer with a session line."""


async def research(
    question: Annotated[
        str,
        Field(description="In full, in any language.", min_length=1, max_length=2000),
    ],
    ctx: ToolContext,
    max_tokens: Annotated[int, BUDGET] = 0,
    max_pages: Annotated[
        int, Field(description="Page limit.", ge=1, le=MOST_PAGES_READ)
    ] = USUAL_PAGES_READ,
    freshness: Annotated[
        Literal["any", "day", "week", "month", "year"],
        Field(description="Age of pages."),
    ] = "any",
    answer: Annotated[
        bool, Field(description="Let the local model answer too.")
    ] = False,
    session: Annotated[
        str, Field(description="Handle of an earlier answer: go on or ask further.")
    ] = "",
) -> Annotated[CallToolResult, ResearchResult]:
    """Find evidence for a question on the web (or in the user's folders): searches,
    reads, returns cited passages.

    The first choice for a question. It says when nothing answers; cite its passages. To
    look deeper into one page use extract_relevant."""
    check_budget(max_tokens)
    # 1. Research in the session
    order = TurnOrder(
        Question(question),
        session,
        owner_of(ctx),
        max_tokens,
        max_pages,
        freshness,
        answer,
    )
    turn = await take_turn(order, services_of(ctx), reporter(ctx))
    result, budget = turn.researched, max_tokens or UNASKED
    evidence = result.assembled.evidence
    # 2. How to go on; what was not read is in the enriched prompt
    following = calls_after(NAME, turn, max_pages, max_tokens)
    sheet = Sheet(max_tokens or result.tokens + hint_room(UNASKED) + HINT_TOKENS)
    sheet.add(result.text)
    pages = tuple(behind(evidence, result.gathered.documents.values()))
    ending = Ending(NAME, sheet, following, pages=pages)
    hinted = not evidence or bool(hint_room(budget))
    handle = hinted and not 0 < max_tokens < SESSION_FROM
    ending.write(partial(write_session, turn, handle=handle), hinted=hinted)
    # 3. Hand it over
    view = await draw_evidence(
        ctx, question, result.assembled, result.documents, result.reading, max_tokens
    )
    return reply(sheet.text, turn_result(turn, ending), view=view)


TOOL: Final = Tool(
    function=research,
    title="Research",
    command="research",
    help="find cited evidence for a question",
    advice="For a question, call research; to ask further, call it again with its session.",
    place=10,
    heavy=True,
)
