"""What scores keep of the prompt before: all that the next one shares, and nothing that it does
not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import anyio
import numpy as np
import pytest

from models.protocols import Said
from tests.support.extras import LLAMA
from tests.support.llama_reference import FLOAT32_CACHE, plain_scores
from tests.support.llama_shapes import Shape, write_model
from tests.support.models import model_of

pytestmark = [*LLAMA, pytest.mark.anyio]
STORY = "Once upon a time there was a little girl named Lily."


@pytest.fixture
def weights(shared: Path) -> Path:
    """A base model of 260 000 parameters in 32-bit floats."""
    return shared / "models" / "stories260K" / "stories260K-f32.gguf"


@pytest.fixture
async def merging(weights: Path, tmp_path: Path) -> AsyncIterator[Any]:
    """The weights of the model with one token for a full stop and the line's end after it, as Llama
    3 and Qwen have it."""
    target = tmp_path / "merging.gguf"
    length = (2).to_bytes(8, "little")
    data = weights.read_bytes()
    assert data.count(length + "ñ".encode()) == 1
    target.write_bytes(data.replace(length + "ñ".encode(), length + b".\n"))
    model = model_of("generator", f"llama:{target}", options=FLOAT32_CACHE)
    yield model
    await model.aclose()


async def test_a_prompt_that_parts_from_the_one_before_costs_the_rest_alone(
    stories: Any, weights: Path
) -> None:
    first = await stories.score_tree(f"{STORY} She went to the", [" park", " sea"])
    other = await stories.score_tree(f"{STORY} Her friend", [" ran", " was red"])
    assert other.evaluated_tokens < first.evaluated_tokens / 2
    plain = plain_scores(weights, f"{STORY} Her friend", [" ran", " was red"])
    assert np.abs(other.log_probabilities - plain).max() < 1e-3


async def test_a_prompt_that_is_the_beginning_of_the_one_before_is_read_again_at_its_end(
    stories: Any, weights: Path
) -> None:
    await stories.score_tree(f"{STORY} She went to the", [" park", " sea"])
    shorter = await stories.score_tree(STORY, [" She", " He"])
    assert shorter.evaluated_tokens == 1
    assert (
        np.abs(shorter.log_probabilities - plain_scores(weights, STORY, [" She", " He"])).max()
        < 1e-3
    )


async def test_a_prompt_that_goes_the_way_of_the_last_path_finds_it_evaluated(
    stories: Any, weights: Path
) -> None:
    paths = [" He ran home. He was happy", " She went to the park. It was a big park"]
    evaluated = []
    for along in paths:  # which of them is the last is the tree's order
        first = await stories.score_tree(STORY, [f"{path}. They saw" for path in paths])
        longer = await stories.score_tree(STORY + along, [" with", " and"])
        evaluated.append(longer.evaluated_tokens)
        assert (
            np.abs(
                longer.log_probabilities - plain_scores(weights, STORY + along, [" with", " and"])
            ).max()
            < 1e-3
        )
    assert min(evaluated) <= 2 < first.tree_tokens


async def test_a_growing_text_is_not_read_again_where_a_token_spans_the_lines(
    merging: Any,
) -> None:
    texts = ["The cat sat.", "It was red.", "Tom ran.", "The sun set.", "The dog saw a cat."]
    first = await merging.score_tree("\n".join(texts[:3]), [" Yes", " No"])
    second = await merging.score_tree("\n".join(texts[:4]), [" Yes", " No"])
    third = await merging.score_tree("\n".join(texts), [" Yes", " No"])
    assert first.prefix_tokens < second.prefix_tokens < third.prefix_tokens
    assert third.evaluated_tokens < third.prefix_tokens - first.prefix_tokens + third.tree_tokens


@pytest.fixture(params=get_args(Shape))
def shaped(request: pytest.FixtureRequest, weights: Path, tmp_path: Path) -> Path:
    """A file of a model that keeps a state, which has no way back, or one that forgets what is out
    of its window."""
    write_model(request.param, weights, tmp_path / "shaped.gguf")
    return tmp_path / "shaped.gguf"


async def test_models_with_a_state_or_a_window_score_as_whole_prompts_do(shaped: Path) -> None:
    model = model_of("generator", f"llama:{shaped}", options=FLOAT32_CACHE)
    prompts = [STORY, f"{STORY} She went", f"{STORY} Her friend", STORY]
    paths = [" to the park. It", " to the sea", " home", " ran and ran."]
    try:
        for prompt in prompts:
            found = await model.score_tree(prompt, paths)
            assert (
                np.abs(found.log_probabilities - plain_scores(shaped, prompt, paths)).max() < 1e-3
            )
        many = await model.score_tree(
            STORY, [f" park {letter} the {letter}" for letter in "abcdefghijkl"]
        )
    finally:
        await model.aclose()
    assert len(set(many.log_probabilities)) == 12


async def test_models_with_state_or_window_write_the_same_after_a_kept_beginning(
    shaped: Path,
) -> None:
    async def reported(model: Any, end: str) -> str:
        return str(await model.generate([Said("user", STORY * 3 + end)], max_tokens=9))

    ends = [" One day", " She saw a cat", " Her mom", " It"]
    kept, alone = model_of("generator", f"llama:{shaped}", options=FLOAT32_CACHE), []
    try:
        one_after_another = [await reported(kept, end) for end in ends]
    finally:
        await kept.aclose()
    for end in ends:
        fresh = model_of("generator", f"llama:{shaped}", options=FLOAT32_CACHE)
        alone.append(await reported(fresh, end))
        await fresh.aclose()
    assert one_after_another == alone


async def test_an_answer_beside_a_new_prompt_does_not_miss_what_the_last_prompt_held(
    stories: Any,
) -> None:
    await stories.score_tree(
        "The dog ran to the park with the girl and the boy. " * 20, [" They", " The sun"]
    )
    reported: list[str] = []

    async def write() -> None:
        reported.append(await stories.generate([Said("user", STORY * 12)], max_tokens=40))

    async with anyio.create_task_group() as group:
        group.start_soon(stories.score_tree, "A cat sat in a tree. " * 8, [" It", " The"])
        group.start_soon(write)
    assert reported[0]
