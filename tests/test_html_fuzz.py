"""Mutated pages: whatever the markup, nothing crashes, no word is lost, no budget is overrun."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.html_fuzz import FRAGMENTS, SPLINTERS, cases, examine, seeds

CASES = 600


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_mutated_pages_are_read_whole_and_pruned_within_their_budget(part: int) -> None:
    for number, html in enumerate(cases(CASES // 3, seeds(), seed=part + 1)):
        examine(html, seed=number)


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([*FRAGMENTS, *SPLINTERS, "word", " ", "two words"]), max_size=30),
    st.integers(0, 999),
)
@settings(max_examples=300, deadline=None)
def test_any_mixture_of_fragments_is_read_whole_and_pruned_within_its_budget(
    parts: list[str], seed: int
) -> None:
    examine("".join(parts), seed=seed)
