"""Where the words of a PDF are printed: the box that the desk is given with each passage."""

from pathlib import Path

import pytest

from bench.boxes import citations, generated, look

ASKED = 6
"""Questions for each file; of 80 citations by eight each, one or two boxes are a line too high."""


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "least"),
    [((1,), 3), pytest.param((1, 2, 5, 6, 7), 20, marks=pytest.mark.nightly)],
    ids=["one file", "five files"],
)
async def test_the_box_of_a_passage_holds_the_ink_of_its_words_and_little_else(
    shared: Path, tmp_path: Path, numbers: tuple[int, ...], least: int
) -> None:
    assert shared.is_dir()  # the words of the files that are generated
    generated(tmp_path)
    files = [tmp_path / f"{number}.pdf" for number in numbers]
    looked = look(await citations(files, tmp_path / "cache", asked=ASKED))
    assert len(looked) > least
    assert [one for one in looked if one.wrong] == []
