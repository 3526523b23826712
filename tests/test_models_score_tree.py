"""Path scores and choices of a real small model, equal to evaluating every path by itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errors import ModelError
from models.protocols import tree_scorer
from tests.support.extras import needs_llama
from tests.support.llama_reference import plain_scores
from tests.support.model_server import Remote
from tests.support.models import model_of

PREFIX = "Once upon a time there was a little girl named Lily. She went to the"
PATHS = [
    f" {place} {how}{end}"
    for place in ("park", "shop", "sea")
    for how in ("with her mom", "to play", "")
    for end in (".", " and", ", but")
]


@pytest.fixture
def weights(shared: Path) -> Path:
    """A base model of 260 000 parameters in 32-bit floats."""
    return shared / "models" / "stories260K" / "stories260K-f32.gguf"


@needs_llama
@pytest.mark.anyio
async def test_a_tree_of_paths_scores_as_each_path_by_itself(stories: Any, weights: Path) -> None:
    found = await stories.score_tree(PREFIX, PATHS)
    assert np.abs(found.log_probabilities - plain_scores(weights, PREFIX, PATHS)).max() < 1e-3
    assert found.evaluated_tokens <= found.prefix_tokens + found.tree_tokens


@needs_llama
@pytest.mark.anyio
async def test_hundreds_of_paths_score_as_each_by_itself(stories: Any, weights: Path) -> None:
    words = ["park", "shop", "sea", "house", "tree", "big", "red", "old", "cat", "dog", "sun"]
    paths = [f" {one} {other} {third} ." for one in words for other in words for third in words[:3]]
    found = await stories.score_tree(PREFIX, paths)
    some = list(range(0, len(paths), 17))
    plain = plain_scores(weights, PREFIX, [paths[place] for place in some])
    assert len(paths) > 256
    assert np.abs(found.log_probabilities[some] - plain).max() < 1e-3


@needs_llama
@pytest.mark.anyio
async def test_a_prefix_that_stays_or_grows_is_not_evaluated_again(
    stories: Any, weights: Path
) -> None:
    first = await stories.score_tree(PREFIX, PATHS)
    again = await stories.score_tree(PREFIX, PATHS)
    longer = await stories.score_tree(PREFIX + " old", PATHS)
    # of the prefix the last token, which the first paths follow
    assert again.evaluated_tokens == first.evaluated_tokens - first.prefix_tokens + 1
    assert np.abs(first.log_probabilities - again.log_probabilities).max() < 1e-4
    assert longer.evaluated_tokens < first.evaluated_tokens
    assert (
        np.abs(longer.log_probabilities - plain_scores(weights, PREFIX + " old", PATHS)).max()
        < 1e-3
    )


@needs_llama
@pytest.mark.anyio
async def test_among_siblings_a_token_without_rivals_is_certain(stories: Any) -> None:
    alone = await stories.score_tree(PREFIX, [" park with her mom"], among_siblings=True)
    three = await stories.score_tree(PREFIX, [" park", " shop", " sea"], among_siblings=True)
    assert alone.log_probabilities[0] == pytest.approx(0, abs=1e-6)
    assert three.log_probabilities.max() < 0


@needs_llama
@pytest.mark.anyio
async def test_paths_and_options_that_cannot_be_scored_are_refused(stories: Any) -> None:
    with pytest.raises(ModelError, match="empty text"):
        await stories.score_tree(PREFIX, ["", " park"])
    with pytest.raises(ModelError, match="context is 512"):
        await stories.score_tree(PREFIX, [" park" * 600])
    assert (await stories.score_tree(PREFIX, [])).log_probabilities.size == 0


@needs_llama
@pytest.mark.anyio
async def test_a_backend_says_whether_it_can_score_paths(stories: Any, remote: Remote) -> None:
    assert tree_scorer(stories) is stories
    assert tree_scorer(model_of("generator", f"openai:{remote.url}#m")) is None
    assert tree_scorer(None) is None
