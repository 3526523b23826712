"""The result of `raptor_query`."""

from pydantic import Field

from pipeline.trees import UNBUILT, AskedTree
from tools.common.answer import Ending, notes_of
from tools.common.results import Quoted, shown_in


class RaptorQueryResult(Quoted):
    """Structured result of `raptor_query`."""

    tree: str = Field(
        description="Handle of the tree; pass it as source to ask the same tree again"
    )
    mode: str
    leaves: int


def tree_result(answer: AskedTree, mode: str, ending: Ending) -> RaptorQueryResult:
    """Return the result for a tree that was asked in `mode`."""
    tree = answer.tree
    facts: dict[str, object] = {
        "tree": tree.id if tree else "",
        "mode": mode if tree else "guided",
        "leaves": len(tree.leaves) if tree else 0,
        "notes": [
            *([] if tree else [UNBUILT]),
            *answer.made,
            *notes_of(ending.pages),
        ],
    }
    passages = shown_in(answer.assembled, answer.documents)
    return RaptorQueryResult.model_validate(facts | passages | ending.facts)
