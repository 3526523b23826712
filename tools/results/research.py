"""The result of `research`, and the lines of its answer on how to go on."""

from typing import Final

from pydantic import BaseModel, Field

from pipeline.evidence.assemble import UNASKED
from pipeline.evidence.show import Sheet
from pipeline.question.wants import is_site
from pipeline.research import Researched
from pipeline.research_turn import TurnTaken
from pipeline.sources.gather import Gathered, provider_lines, write_search
from pipeline.text.frame import one_line
from tools.common.ending import Ending, larger, repeated, tables_to_query
from tools.common.results import AnswerResult, Next, answer_result

MOST_PAGES_READ: Final = 20
USUAL_PAGES_READ: Final = 8
"""Pages read where a caller names no number."""
ALL_FILES: Final = frozenset({"folder"})
"""Providers that rank every passage they have, so that more pages are no better
pages."""


class Statement(BaseModel):
    """One sentence of a written answer."""

    labels: list[str]
    supported: bool
    reason: str


class ResearchResult(AnswerResult):
    """Structured result of `research`."""

    session: str = Field(
        description=(
            "Handle of this line of research: pass it to continue, alone "
            "or with a further question"
        )
    )
    before: list[str] = Field(
        default=[], description="Labels of passages that the session had shown before"
    )
    understood: str = Field(
        default="",
        description="The question, completed with what it refers to in the session; empty where it refers to nothing",
    )
    queries: list[str] = Field(description="Queries sent besides the question")
    providers: list[str] = Field(description="Each provider with its status and reason")
    answer: list[Statement] = Field(
        default=[], description="Check of each sentence of a written answer"
    )


def turn_result(turn: TurnTaken, ending: Ending) -> ResearchResult:
    """Return the result for a turn of a session."""
    result, gathered = turn.researched, turn.researched.gathered
    queries = [query.text for query in gathered.parsed.queries[1:]]
    return answer_result(
        ResearchResult,
        result.answer,
        gathered.documents.values(),
        session=turn.session.handle,
        before=list(turn.before),
        understood=one_line(turn.understood),
        queries=queries,
        providers=provider_lines(gathered.outcomes, result.answer.delimiter),
        answer=_statements(result),
        **ending.facts,
    )


def _statements(result: Researched) -> list[Statement]:
    return [
        Statement(
            labels=list(statement.labels),
            supported=statement.supported,
            reason=statement.reason,
        )
        for statement in (result.written.statements if result.written else ())
    ]


def calls_after(
    tool: str, turn: TurnTaken, max_pages: int, max_tokens: int
) -> list[Next]:
    """Return follow-up calls of `tool`: what was not read, then the rest of the passages by the
    call with a larger budget, or more pages where nothing answers."""
    answer, session = turn.researched.answer, turn.session.short
    pages = (failure for failure in answer.failures if not is_site(failure.rest))
    calls = repeated(tool, pages, session=session)
    for failure in answer.failures:
        if is_site(failure.rest):
            narrowed = f"{failure.rest} {turn.question.text}"
            arguments: dict[str, object] = {"question": narrowed, "session": session}
            calls.append(Next(tool=tool, arguments=arguments))

    verdict, gathered = answer.reading.verdict, turn.researched.gathered
    tables = tables_to_query(answer)
    if tables:
        return calls + tables
    if answer.assembled.lacks(verdict, named=max_tokens > 0):
        calls += larger(tool, max_tokens or UNASKED)
    elif verdict == "none" and _has_more(gathered, max_pages):
        pages_more = min(2 * max_pages, MOST_PAGES_READ)
        calls.append(Next(tool=tool, arguments={"max_pages": pages_more}))
    return calls


def _has_more(gathered: Gathered, max_pages: int) -> bool:
    """Return whether reading more pages may bring better ones."""
    if not max_pages <= len(gathered.ranked) < MOST_PAGES_READ:
        return False
    searched = {outcome.provider for outcome in gathered.outcomes}
    return max_pages < USUAL_PAGES_READ or not searched <= ALL_FILES


def write_turn(turn: TurnTaken, sheet: Sheet, *, has_handle: bool) -> None:
    """Write the handle of the session, if it is to be shown, which passages it had shown
    before, and how the search went."""
    answer = turn.researched.answer
    if has_handle:
        sheet.add(f"Session: {turn.session.short}")
    if turn.before:
        is_all = len(turn.before) == len(answer.assembled.evidence)
        sheet.add(f"Shown before: {'all' if is_all else ', '.join(turn.before)}")
    write_search(
        turn.researched.gathered, answer.reading.verdict, sheet, answer.delimiter
    )
