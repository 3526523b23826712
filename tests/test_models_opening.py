"""Prompts that begin alike: their beginning is evaluated once, and answers are those of whole
prompts."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from models.protocols import Said
from tests.support.extras import LLAMA
from tests.support.llama_reference import FLOAT32_CACHE, tokens
from tests.support.models import model_of

pytestmark = [
    pytest.mark.anyio,
    *LLAMA,
]
BEGINNING = (
    "Once upon a time there was a little girl named Lily. She liked to go to the park and to see "
    "the big dog. " * 2
)
ENDS = [
    f"One day she saw a {thing}"
    for thing in ("cat", "red ball", "bird in a tree", "boy", "big box", "frog")
]


async def answers_alone(weights: Path) -> list[str]:
    """Each answer of a process of its own, which has kept nothing."""
    found = []
    for end in ENDS:
        model = model_of("generator", f"llama:{weights}", options=FLOAT32_CACHE)
        found.append(await model.generate([Said("user", BEGINNING + end)], max_tokens=12))
        await model.aclose()
    return found


async def test_instructions_that_prompts_share_are_evaluated_once(
    stories: Any, shared: Path
) -> None:
    answers, spent = [], []
    for end in ENDS:
        before = await tokens(stories)
        answers.append(await stories.generate([Said("user", BEGINNING + end)], max_tokens=12))
        spent.append(await tokens(stories) - before)
    assert answers == await answers_alone(
        shared / "models" / "stories260K" / "stories260K-f32.gguf"
    )
    assert spent[0] > 80
    assert max(spent[1:]) < 45


async def test_answers_side_by_side_are_those_of_answers_alone(stories: Any, shared: Path) -> None:
    found: dict[int, str] = {}

    async def ask(number: int) -> None:
        found[number] = await stories.generate(
            [Said("user", BEGINNING + ENDS[number])], max_tokens=12
        )

    for _ in range(2):
        async with anyio.create_task_group() as group:
            for number in range(len(ENDS)):
                group.start_soon(ask, number)
    alone = await answers_alone(shared / "models" / "stories260K" / "stories260K-f32.gguf")
    assert [found[number] for number in range(len(ENDS))] == alone


async def test_a_call_given_up_in_the_middle_of_a_shared_beginning_leaves_no_trace(
    stories: Any, shared: Path
) -> None:
    await stories.generate([Said("user", BEGINNING + ENDS[0])], max_tokens=2)
    with anyio.move_on_after(0.002):
        await stories.generate([Said("user", BEGINNING + ENDS[1])], max_tokens=300)
    reported = [
        await stories.generate([Said("user", BEGINNING + end)], max_tokens=12) for end in ENDS
    ]
    assert reported == await answers_alone(
        shared / "models" / "stories260K" / "stories260K-f32.gguf"
    )


async def test_an_input_that_needs_the_whole_context_gets_it(stories: Any) -> None:
    for end in ENDS[:3]:
        await stories.generate([Said("user", BEGINNING + end)], max_tokens=4)
    long = "The dog ran to the park with the girl and the boy. " * 22
    assert await stories.generate([Said("user", long)], max_tokens=8)
    scored = await stories.score_tree(long, [" They", " The sun"])
    assert len(scored.log_probabilities) == 2
