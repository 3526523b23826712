"""The tool `raptor_query`: build (or reuse) a tree over the sources, and ask it (RAPTOR
§3).

Not for: short pages, where `extract_relevant` is cheaper and says None when nothing
answers."""

from functools import partial
from typing import Annotated, Final, Literal

from mcp_types import CallToolResult
from pydantic import Field

from pipeline.evidence.show import hint_room
from pipeline.question.question import Question
from pipeline.trees import AskedTree, TreeMode, TreeOrder, ask_tree
from tools.common.context import ToolContext, reporter, services_of
from tools.common.ending import Ending, larger, repeated, result_of
from tools.common.results import Next, Quoted, evidence_fields
from tools.common.tool import Tool
from tools.common.view import draw_evidence

NAME: Final = "raptor_query"


class RaptorQueryResult(Quoted):
    """Structured result of `raptor_query`."""

    tree: str = Field(
        description="Handle of the tree; pass it as source to ask the same tree again"
    )
    mode: str
    leaves: int


async def raptor_query(
    question: Annotated[
        str, Field(description="The question.", min_length=1, max_length=2000)
    ],
    sources: Annotated[
        list[str],
        Field(
            description="URLs, files, folders, handles.",
            min_length=1,
            max_length=50,
        ),
    ],
    ctx: ToolContext,
    mode: Annotated[
        TreeMode,
        Field(description="guided suits most; collapsed adds summaries."),
    ] = "guided",
    max_tokens: Annotated[
        int, Field(description="Token budget.", ge=200, le=20000)
    ] = 2000,
    chunking: Annotated[
        Literal["sentences", "idms"], Field(description="idms: cut by subject.")
    ] = "sentences",
    walk: Annotated[
        str,
        Field(
            description="For traversal: nodes x layers, as 3x2.",
            pattern=r"^[1-9]\d?(x[1-9]\d?)?$",
        ),
    ] = "10",
) -> Annotated[CallToolResult, RaptorQueryResult]:
    """Ask long documents (reports, books, folders) a question, through a RAPTOR
    tree; cites passages.

    "What is this about?" gives an outline. The tree's handle is the source of the next
    question. For single pages use extract_relevant."""
    # 1.-7. The tree, and its answer
    order = TreeOrder(chunking, mode, tuple(map(int, walk.split("x"))), max_tokens)
    asked = await ask_tree(
        Question(question), sources, order, services_of(ctx), reporter(ctx)
    )
    # 8. How to go on
    tree, answered = asked.tree, asked.answer
    following = larger(NAME, max_tokens) if answered.assembled.left_out else []
    if tree is None:
        following.append(Next(tool=NAME, arguments={}))
    elif sources != [tree.id]:
        following.append(Next(tool=NAME, arguments={"sources": [tree.id]}))
    if tree:
        following += repeated(NAME, answered.failures, beside=(tree.id,))
    ending = Ending.of(NAME, answered, following)
    hinted = tree is None or bool(hint_room(max_tokens))
    ending.write(partial(asked.write_tree, sized=hinted), hinted=hinted)
    # 9. Hand it over
    data = _result(asked, mode, ending)
    view = await draw_evidence(ctx, question, answered, max_tokens)
    return result_of(answered.sheet.text, data, view=view)


def _result(asked: AskedTree, mode: str, ending: Ending) -> RaptorQueryResult:
    """Return the result for a tree that was asked in `mode`."""
    tree = asked.tree
    facts: dict[str, object] = {
        "tree": tree.id if tree else "",
        "mode": mode if tree else "guided",
        "leaves": len(tree.leaves) if tree else 0,
    }
    # Leaves that replace a deleted page have no page to open.
    documents = (document for document in asked.answer.documents if document.page.html)
    passages = evidence_fields(asked.answer.assembled, documents)
    return RaptorQueryResult.model_validate(facts | passages | ending.facts)


TOOL: Final = Tool(
    function=raptor_query,
    title="Ask long documents",
    command="raptor",
    help="ask long documents through a tree",
    advice="For long documents and folders: raptor_query, then ask again with the tree handle it returns.",
    place=50,
    heavy=True,
)
