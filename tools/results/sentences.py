"""The result of `extract_relevant`, and the calls that go on from it."""

from pydantic import Field

from pipeline.evidence.assemble import UNASKED
from pipeline.extract_sources import Extracted
from tools.common.answer import Ending, larger, notes_of, repeated, rest_by_name
from tools.common.results import Found, Item, Next, found_in


class ExtractRelevantResult(Found):
    """Structured result of `extract_relevant`."""

    checked: list[Item] = Field(
        default=[],
        description="The items of a draft that were looked up; those that lack something come first",
    )


def sentences_result(extracted: Extracted, ending: Ending) -> ExtractRelevantResult:
    """Return the result for the sentences that were found."""
    documents = extracted.loaded.documents
    return found_in(
        ExtractRelevantResult,
        extracted.reading,
        extracted.assembled,
        documents,
        notes=notes_of(ending.pages),
        **ending.facts,
    )


def calls_after(tool: str, extracted: Extracted, max_tokens: int) -> list[Next]:
    """Return follow-up calls of `tool`: what was not read, then a search where nothing answers, else
    the table or section that is quoted in part, else the call with a larger budget."""
    calls = repeated(tool, extracted.loaded.failures)
    evidence, documents = extracted.assembled.evidence, extracted.loaded.documents
    question = extracted.reading.question
    placed = rest_by_name(evidence, documents, question, max_tokens)
    if extracted.reading.verdict == "none":
        calls.append(Next(tool="research", arguments={}))
    elif placed:
        calls += placed
    elif extracted.assembled.lacks(extracted.reading.verdict, named=max_tokens > 0):
        calls += larger(tool, max_tokens or UNASKED)
    return calls
