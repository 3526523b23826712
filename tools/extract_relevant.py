"""The tool `extract_relevant`: numbered sentences of given sources → the ones that
answer, or none (zero-index §4.1).

Not for: searching. Sources are named by the caller.
"""

from typing import Annotated, Final, cast

from mcp_types import CallToolResult
from pydantic import Field

from errors import UsageError
from pipeline.evidence.assemble import UNASKED
from pipeline.evidence.show import hint_room
from pipeline.extract_sources import extract_sources
from pipeline.question.question import Question
from pipeline.text.tokens import count_tokens
from seams import optional
from tools.common.answer import Ending, answer, behind, larger, next_line
from tools.common.context import (
    BUDGET,
    FRESH,
    ToolContext,
    check_budget,
    noticed,
    reporter,
    services_of,
)
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
    # 1. The sentences that answer
    services, noticing = noticed(services_of(ctx), refresh=fresh)
    extracted = await extract_sources(
        Question(question),
        sources,
        services,
        max_tokens=max_tokens,
        offer=_offer_tokens,
        report=reporter(ctx),
    )
    # 2. How to go on
    documents, failures = extracted.loaded.documents, extracted.loaded.failures
    following = calls_after(NAME, extracted, max_tokens)
    pages = tuple(behind(extracted.assembled.evidence, documents))
    ending = Ending(NAME, extracted.sheet, following, failures, pages, noticing.ages)
    none = extracted.reading.verdict == "none"
    ending.write(hinted=none or bool(hint_room(max_tokens or UNASKED)))
    # 3. Hand it over
    data = sentences_result(extracted, ending)
    view = await draw_evidence(
        ctx, question, extracted.assembled, documents, extracted.reading, max_tokens
    )
    return answer(extracted.sheet.text, data, view=view)


def _offer_tokens(max_tokens: int) -> int:
    """Return the tokens of the line that offers more than `most`; 0 where none is shown."""
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
