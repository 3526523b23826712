"""The tool `extract_relevant`: numbered sentences of given sources → the ones that
answer, or none (zero-index §4.1).

Not for: searching. Sources are named by the caller.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

from mcp_types import CallToolResult
from pydantic import Field

from errors import UsageError
from pipeline.document.page import Reading
from pipeline.evidence.assemble import UNASKED, Assembled, assemble, most_unasked
from pipeline.evidence.show import (
    Sheet,
    doubt,
    hint_room,
    notice_within,
    parts_line,
)
from pipeline.evidence.values import rows_shown, values_text
from pipeline.question.question import Question
from pipeline.reading.extract import extract, left_unread, unless_cut
from pipeline.reading.rows import named_rows_first
from pipeline.sources.gather import Loaded, load_sources, room_for
from pipeline.steps import steps
from pipeline.text.frame import new_mark, place_of
from pipeline.text.tokens import count_tokens
from pipeline.work import LONG_SHARE, in_thread
from tools.common.answer import (
    Ending,
    answer,
    behind,
    larger,
    next_line,
    notes_of,
    repeated,
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
from tools.common.results import Found, Item, Next, found_in
from tools.common.tool import Tool
from tools.common.view import draw_evidence

NAME: Final = "extract_relevant"
LONGEST_DRAFT: Final = 100_000
"""Maximum characters of a draft (about 15,000 words)."""


class ExtractRelevantResult(Found):
    """Structured result of `extract_relevant`."""

    checked: list[Item] = Field(
        default=[], description="Of a draft: what does not hold first"
    )


async def extract_relevant(
    sources: Annotated[
        list[str],
        Field(description="URLs, site:URL, files, folders, handles.", max_length=50),
    ],
    ctx: ToolContext,
    question: Annotated[
        str, Field(description="The question, or what to look for.", max_length=2000)
    ] = "",
    max_tokens: Annotated[int, BUDGET] = 0,
    draft: Annotated[
        str,
        Field(
            description="Text to check, in place of question.", max_length=LONGEST_DRAFT
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
        return await _check_draft(draft, sources, ctx, max_tokens)
    if not question.strip() or not sources:
        missing = "sources is empty." if question.strip() else "question is empty."
        raise UsageError(
            missing, hint='Call extract_relevant(question="…", sources=["https://…"]).'
        )
    asked = Question(question)
    services, noticing = noticed(services_of(ctx), refresh=fresh)
    report = reporter(ctx)
    # 1. Read the sources
    seconds = services.seconds * LONG_SHARE
    loaded = await load_sources(
        sources, services, seconds=seconds, report=report, question=asked
    )
    # 2. The core's reading of all of them
    reading = await extract(
        asked, loaded.documents, reader=services.reader, asking=services.asking
    )
    unread = left_unread(reading, loaded.documents)
    loaded = replace(loaded, failures=(*loaded.failures, *unread))
    reading = unless_cut(reading, loaded.failures)
    # 3. Fill the budget with cited passages
    sheet, assembled = await in_thread(_sheet, loaded, reading, max_tokens)
    # 4. How to go on
    following = repeated(NAME, loaded.failures)
    if reading.verdict == "none":
        following.append(Next(tool="research", arguments={}))
    elif assembled.left_out:
        following.extend(larger(NAME, max_tokens or UNASKED))
    pages = tuple(behind(assembled.evidence, loaded.documents))
    ending = Ending(NAME, sheet, following, loaded.failures, pages, noticing.ages)
    none = reading.verdict == "none"
    ending.write(hinted=none or bool(hint_room(max_tokens or UNASKED)))
    data = found_in(
        ExtractRelevantResult,
        reading,
        assembled,
        loaded.documents,
        loaded.documents,
        notes=notes_of(pages),
        **ending.facts,
    )
    view = await draw_evidence(
        ctx, question, assembled, loaded.documents, reading, max_tokens
    )
    return answer(sheet.text, data, view=view)


async def _check_draft(
    draft: str, sources: Sequence[str], ctx: ToolContext, max_tokens: int
) -> CallToolResult:
    """Return a draft checked against `sources` and the sources that it cites.

    Raises `UsageError` where the step `draft check` is not installed, and what that
    step raises."""
    check = steps().get("draft check")
    if check is None:
        raise UsageError(
            "Drafts cannot be checked here: the step `draft check` is not installed.",
            hint="Give a question and no draft.",
        )
    checked: CallToolResult = await check(draft, sources, ctx, max_tokens=max_tokens)
    return checked


def _sheet(
    loaded: Loaded, reading: Reading, max_tokens: int
) -> tuple[Sheet, Assembled]:
    mark = new_mark()
    most = max_tokens or most_unasked(reading)
    # Where parts are left out the answer ends with the call that shows them
    further = (
        count_tokens(next_line(larger(NAME, most), NAME)) + 1 if hint_room(most) else 0
    )
    sheet = Sheet(most, reserve=further + room_for(loaded.failures, most))
    if reading.verdict != "none":
        sheet.add(notice_within(mark, most))
    sheet.add(doubt(reading))
    valued = values_text(reading.computed, loaded.documents, mark, most)
    room = sheet.room_beside(parts_line(reading), valued)
    chosen = named_rows_first(loaded.documents, reading)
    assembled = assemble(
        loaded.documents, chosen, max_tokens=room, mark=mark, open_end=not max_tokens
    )
    shown = rows_shown(reading.computed, loaded.documents, assembled.evidence)
    sheet.add(values_text(reading.computed, loaded.documents, mark, most, shown))
    sheet.add(parts_line(reading, assembled.parts))
    sheet.add(assembled.shown.text)
    sheet.release()
    if reading.verdict == "none":
        sheet.add_cut(
            f"None: no sentence of the sources answers the question. {reading.reason}"
        )
        sheet.add_cut(
            "Read: "
            + ", ".join(
                place_of(document.page.final_url) for document in loaded.documents[:10]
            )
        )
    return sheet, assembled


TOOL: Final = Tool(
    function=extract_relevant,
    title="Extract sentences",
    command="extract",
    help="the sentences of given sources that answer, or none",
    by_place=("question", "sources"),
    advice="To get the exact sentences of known sources, or none: extract_relevant.",
    place=40,
)
