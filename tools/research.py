"""The tool `research`: the whole zero-index pipeline in one call

Not for: writing the answer; it returns the enriched prompt, and the caller writes.
"""

from functools import partial
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import Field

from pipeline.evidence.assemble import UNASKED
from pipeline.evidence.show import HINT_TOKENS, hint_room
from pipeline.question.question import Question
from pipeline.research_turn import TurnOrder, take_turn
from tools.common.context import (
    BUDGET,
    ToolContext,
    check_budget,
    owner_of,
    reporter,
    services_of,
)
from tools.common.ending import Ending, result_of
from tools.common.tool import Tool
from tools.common.view import draw_evidence
from tools.results.research import (
    MOST_PAGES_READ,
    USUAL_PAGES_READ,
    ResearchResult,
    calls_after,
    turn_result,
    write_turn,
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
    # 1.-7. Research in the session
    hint = hint_room(max_tokens or UNASKED)
    has_handle = not 0 < max_tokens < SESSION_FROM
    order = TurnOrder(
        Question(question),
        session,
        owner_of(ctx),
        max_tokens,
        hint + HINT_TOKENS * has_handle,
        max_pages,
        freshness,
        answer,
    )
    turn = await take_turn(order, services_of(ctx), reporter(ctx))
    answered = turn.researched.answer
    # 8. How to go on
    following = calls_after(NAME, turn, max_pages, max_tokens)
    ending = Ending.of(NAME, answered, following)
    hinted = not answered.assembled.evidence or bool(hint)
    ending.write(partial(write_turn, turn, has_handle=has_handle), hinted=hinted)
    # 9. Hand it over
    view = await draw_evidence(ctx, question, answered, max_tokens)
    return result_of(answered.sheet.text, turn_result(turn, ending), view=view)


TOOL: Final = Tool(
    function=research,
    title="Research",
    command="research",
    help="find cited evidence for a question",
    advice="For a question, call research; to ask further, call it again with its session.",
    place=10,
    heavy=True,
)
