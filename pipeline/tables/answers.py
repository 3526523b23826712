"""Values that tables answer, where the step `table answers` is there (`extras/tables/`)."""

from collections.abc import Iterable, Sequence

from pipeline.document.page import Document
from pipeline.document.table import TableAnswer
from pipeline.question.question import Question
from pipeline.steps import steps


def ask_parts(
    question: Question, parts: Iterable[Question], documents: Sequence[Document]
) -> tuple[TableAnswer, ...]:
    """Return the table answers to a question, or else to its parts."""
    ask = steps().get("table answers")
    found: tuple[TableAnswer, ...] = ask(question, parts, documents) if ask else ()
    return found
