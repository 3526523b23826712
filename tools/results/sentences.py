"""The result of `extract_relevant`, and the calls that go on from it."""

from pydantic import Field

from pipeline.answer import Answer
from pipeline.evidence.assemble import UNASKED
from tools.common.ending import Ending, larger, repeated, tables_to_query
from tools.common.results import AnswerResult, DraftItem, Next, answer_result


class ExtractRelevantResult(AnswerResult):
    """Structured result of `extract_relevant`."""

    checked: list[DraftItem] = Field(
        default=[],
        description="The items of a draft that were looked up; those that lack something come first",
    )


def sentences_result(answer: Answer, ending: Ending) -> ExtractRelevantResult:
    """Return the result for the quoted sentences."""
    return answer_result(
        ExtractRelevantResult,
        answer,
        answer.documents,
        **ending.facts,
    )


def calls_after(tool: str, answer: Answer, max_tokens: int) -> list[Next]:
    """Return follow-up calls of `tool`: what was not read, then a search where nothing answers, else
    the table that is quoted in part, else the call with a larger budget."""
    calls = repeated(tool, answer.failures)
    tables = tables_to_query(answer)
    if answer.reading.verdict == "none":
        calls.append(Next(tool="research", arguments={}))
    elif tables:
        calls += tables
    elif answer.assembled.lacks(answer.reading.verdict, named=max_tokens > 0):
        calls += larger(tool, max_tokens or UNASKED)
    return calls
