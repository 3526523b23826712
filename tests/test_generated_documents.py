"""Files of other programs whose words are all known: read or said to be unread; with random damage:
read or refused.

Few of what `bench/documents.py` and `bench/mutated.py` read by the thousand.
"""

import pytest

from bench.documents import MAKERS, lacking, outcome, samples
from bench.mutated import SEED, outcomes

FILES = 4
"""Of each program."""
DAMAGED = 120


@pytest.fixture(scope="module")
def read() -> dict[str, list[tuple[str, ...]]]:
    """Return by program what was lost in silence, altered or shown though hidden, a file each."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for sample in samples(FILES * (len(MAKERS) - len(lacking()))):
        one = outcome(sample)
        found.setdefault(sample.by, []).append((*one.lost, *one.altered, *one.shown))
    return found


@pytest.mark.parametrize("program", [by for by in MAKERS if by not in lacking()])
def test_no_word_of_another_programs_file_is_lost_in_silence(
    program: str, read: dict[str, list[tuple[str, ...]]]
) -> None:
    assert read[program] == [()] * FILES


def test_damage_ends_in_a_text_or_a_refusal() -> None:
    found = outcomes(0, DAMAGED, SEED)
    assert [one for one in found if one.what not in {"read", "refused"}] == []
    assert {one.what for one in found} == {"read", "refused"}
