"""The tool `research`: the whole zero-index pipeline in one call (design §3).

Not for: writing the answer; it returns the enriched prompt, and the caller writes.
"""

from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from pipeline.evidence.assemble import UNASKED
from pipeline.evidence.sheet import Sheet
from pipeline.evidence.show import hint_room
from pipeline.gather import Wanted
from pipeline.research import Researched
from pipeline.research import research as run
from tools.context import (
    BUDGET,
    Found,
    Next,
    ToolContext,
    behind,
    check_budget,
    found_in,
    larger,
    repeated,
    reporter,
    services_of,
    tell_notes,
    told,
    write_next,
)
from tools.context import answer as reply

TOOL: Final = "research"
MOST_PAGES: Final = 20


class Statement(BaseModel):
    """One sentence of a written answer; its words stand in the text part."""

    labels: list[str]
    supported: bool
    reason: str


class ResearchResult(Found):
    """Structured part of the answer."""

    queries: list[str] = Field(description="Queries that were sent besides the question")
    providers: list[str] = Field(description="Each provider with its status and reason")
    answer: list[Statement] = Field(default=[], description="Check of each sentence of a written answer")
    parsed_by: str = "rules"


async def research(
    question: Annotated[
        str, Field(description="The question, in full and in any language.", min_length=1, max_length=2000)
    ],
    ctx: ToolContext,
    max_tokens: Annotated[int, BUDGET] = 0,
    max_pages: Annotated[int, Field(description="Most pages to read.", ge=1, le=MOST_PAGES)] = 8,
    freshness: Annotated[
        Literal["any", "day", "week", "month", "year"], Field(description="Pages of this last period.")
    ] = "any",
    answer: Annotated[bool, Field(description="Let the local model answer too.")] = False,
) -> Annotated[CallToolResult, ResearchResult]:
    """Find evidence for a question on the web (or in the user's folders): searches, reads, returns cited passages.

    The first choice for a question. It says when nothing answers. Answer from the passages and cite them. To look
    deeper into one page use fetch_and_prune_html or extract_relevant.
    """
    check_budget(max_tokens)
    wanted = Wanted(question, max_pages, freshness)
    found = await run(wanted, services_of(ctx), max_tokens=max_tokens, report=reporter(ctx), write=answer)
    following = repeated(TOOL, found.gathered.missing())
    if found.assembled.left_out:
        following.extend(larger(TOOL, max_tokens or UNASKED))
    elif not found.assembled.evidence and max_pages <= len(found.gathered.ranked) < MOST_PAGES:
        following.append(Next(tool=TOOL, arguments={"max_pages": min(2 * max_pages, MOST_PAGES)}))
    sheet = Sheet(max_tokens or found.tokens + hint_room(UNASKED))
    sheet.add(found.text)
    if not found.assembled.evidence or hint_room(max_tokens or UNASKED):
        write_next(sheet, following, TOOL)
    pages = tuple(behind(found.assembled.evidence, found.gathered.documents.values()))
    tell_notes(sheet, pages)
    return reply(sheet.text, _data(found, following, sheet.tokens), pages=pages)


def _data(found: Researched, following: list[Next], tokens: int) -> ResearchResult:
    gathered = found.gathered
    return found_in(
        ResearchResult,
        found.reading,
        found.assembled,
        gathered.failures,
        queries=[query.text for query in gathered.parsed.queries[1:]],
        providers=list(dict.fromkeys(told(outcome, found.mark) for outcome in gathered.outcomes)),
        answer=[
            Statement(labels=list(one.labels), supported=one.supported, reason=one.reason)
            for one in (found.written.statements if found.written else ())
        ],
        parsed_by=gathered.parsed.made_by,
        next=following,
        tokens=tokens,
    )
