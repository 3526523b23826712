"""Recipes: what they are taught from, and what is said of their runs."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench.recipes import Recorded, costs, drawn, missed
from pipeline.raptor.summarise import supported_part
from train.reader.data import own_rows

pytestmark = pytest.mark.slow
pytest.importorskip("torch")
pruner: Any = pytest.importorskip("train.pruner", exc_type=ImportError)
summariser: Any = pytest.importorskip("train.summariser", exc_type=ImportError)


def test_the_pruner_is_shown_the_block_that_answers_among_others_of_its_page(shared: Path) -> None:
    asked = {row["question"] for row in own_rows() if row["split"] == "train"}
    made = list(islice(pruner.path_samples("train"), 20))
    assert len(made) == 20
    for one in made:
        assert one.question in asked
        assert len(one.paths) >= 2
        assert len(set(one.paths)) == len(one.paths)
        tag = one.paths[one.gold].rpartition("<")[2].partition(">")[0]
        assert f"<{tag}>" in one.prompt
    again = list(islice(pruner.path_samples("train"), 20))
    assert made == again


def test_a_rejected_summary_says_what_no_paragraph_says_and_the_right_one_does_not(shared: Path) -> None:
    made = [one for one in islice(summariser.summary_samples("train"), 20) if one.rejected]
    assert made
    for one in made:
        said = one.prompt.partition("Passages:")[2].rpartition("Summary:")[0]
        assert not supported_part(one.summary, said, max_tokens=1_000).unsupported
        assert supported_part(one.rejected, said, max_tokens=1_000).unsupported


def test_runs_that_are_short_or_learn_nothing_are_named() -> None:
    rows = [{"step": 0, "dev_loss": 2.0}] + [{"loss": 2.0 - step / 400, "cpu": 1.0} for step in range(400)]
    good = Recorded("parser", {"batch": 2}, [*rows, {"step": 400, "dev_loss": 1.0}], {"f1": 0.1}, {"f1": 0.2})
    flat = Recorded("pruner", {"batch": 2}, [*rows, {"step": 400, "dev_loss": 2.0}], {"f1": 0.1}, {"f1": 0.1})
    found = list(missed([good, flat]))
    assert [line.split(":")[0] for line in found[:2]] == ["extractor", "pruner"]
    assert found[2].startswith("1 runs have a figure that is better")
    assert drawn([good, flat]).count("<polyline") == 2
    assert "| SmolLM2-135M | 2,048 | LoRA |" in "\n".join(costs())
