"""The tool `extract_relevant`: numbered sentences of given sources → the ones that
answer, or none (zero-index §4.1).

Not for: searching. Sources are named by the caller.
"""

from functools import partial
from typing import Annotated, Final, cast

from mcp_types import CallToolResult
from pydantic import Field

from errors import UsageError
from pipeline.answer import answer, read_within
from pipeline.evidence.assemble import UNASKED
from pipeline.evidence.show import hint_room
from pipeline.question.question import Question
from pipeline.sources.gather import load_sources
from pipeline.text.tokens import count_tokens
from pipeline.work import LONG_SHARE
from seams import optional
from tools.common.context import (
    BUDGET,
    FRESH,
    ToolContext,
    check_budget,
    noticed,
    reporter,
    services_of,
)
from tools.common.ending import Ending, larger, next_line, result_of
from tools.common.tool import Tool
from tools.common.view import draw_evidence
from tools.results.sentences import (
    ExtractRelevantResult,
    calls_after,
    sentences_result,
)

NAME: Final = "extract_relevant"
LONGEST_DRAFT: Final = 100_000
"""Maximum characters of a draft (about 15,000 words)."""


async def extract_relevant(
    sources: Annotated[
        list[str],
        Field(description="URLs, site:URL, files, folders, handles.", max_length=50),
    ],
    ctx: ToolContext,
    question: Annotated[
        str, Field(description="What to look for.", max_length=2000)
    ] = "",
    max_tokens: Annotated[int, BUDGET] = 0,
    draft: Annotated[
        str,
        Field(
            description="Instead of question: text to check.", max_length=LONGEST_DRAFT
        ),
    ] = "",
    fresh: Annotated[bool, FRESH] = False,
) -> Annotated[CallToolResult, ExtractRelevantResult]:
    """Return the sentences of given pages or files that answer a question, word for
    word and cited, or that none does.

    Without known sources use research; for a very long document raptor_query.
    """
    check_budget(max_tokens)
    if draft:
        check = optional("extras.drafts.answer", "check_draft")
        if check is None:
            raise UsageError(
                "Drafts cannot be checked here: this installation lacks `extras/drafts`.",
                hint="Give a question and no draft.",
            )
        return cast(CallToolResult, await check(draft, sources, ctx, max_tokens))

    if not question.strip() or not sources:
        missing = "sources is empty." if question.strip() else "question is empty."
        raise UsageError(
            missing, hint='Call extract_relevant(question="…", sources=["https://…"]).'
        )
    # 1. Load the sources
    services, noticing = noticed(services_of(ctx), refresh=fresh)
    asked, budget = Question(question), max_tokens or UNASKED
    loaded = await load_sources(
        sources,
        services,
        seconds=services.seconds * LONG_SHARE,
        report=reporter(ctx),
        question=asked,
    )
    # 2.-7. Read them, and answer
    answered = await answer(
        partial(read_within, asked, services, loaded.documents),
        loaded.failures,
        max_tokens=max_tokens,
        reserve=_offer_tokens(budget),
    )
    # 8. How to go on
    following = calls_after(NAME, answered, max_tokens)
    ending = Ending.of(NAME, answered, following, noticing.ages)
    none = answered.reading.verdict == "none"
    ending.write(hinted=none or bool(hint_room(budget)))
    # 9. Hand it over
    data = sentences_result(answered, ending)
    view = await draw_evidence(ctx, question, answered, max_tokens)
    return result_of(answered.sheet.text, data, view=view)


def _offer_tokens(max_tokens: int) -> int:
    """Return the tokens of the line that offers more than `max_tokens`; 0 where none is shown."""
    if not hint_room(max_tokens):
        return 0
    return count_tokens(next_line(larger(NAME, max_tokens), NAME)) + 1


TOOL: Final = Tool(
    function=extract_relevant,
    title="Extract sentences",
    command="extract",
    help="the sentences of given sources that answer, or none",
    by_place=("question", "sources"),
    advice="To check whether known sources answer a question: extract_relevant.",
    place=40,
)
