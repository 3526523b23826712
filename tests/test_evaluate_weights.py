"""`python -m bench.eval` and `bench.leaves` with small real weights."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.eval import STEPS, Steps
from bench.leaves import STEPS as FOR_TREES
from tests.support.extras import needs_llama
from tests.support.llama_reference import smol_weights
from tests.test_evaluate import measured, write_set

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three pages and three questions, one of them without an answer."""
    return write_set(tmp_path / "data")


@needs_llama
@pytest.mark.parametrize(
    ("command", "steps"), [(("bench.eval",), STEPS), (("bench.leaves",), FOR_TREES)]
)
def test_every_step_runs_with_real_weights_and_counts_their_tokens(
    tmp_path: Path, data: Path, shared: Path, command: Sequence[str], steps: Steps
) -> None:
    weights = shared / "models" / "stories260K" / "stories260K-f32.gguf"
    run = measured(
        tmp_path, str(data), "--limit", "1", "--json", generator=f"llama:{weights}", command=command
    )
    reported = json.loads(run.stdout)
    assert {row["step"] for row in reported["rows"]} == set(steps)
    # 512 tokens of context and no chat: what does not fit is counted and reported, and the rest goes
    # on.
    for row in reported["rows"]:
        assert bool(row["failed"]) == bool(row["note"]) or row["model"] is None, row
    assert any(row["tokens"] for row in reported["rows"])


@needs_llama
def test_a_small_instruct_model_gets_a_table_for_people(tmp_path: Path, data: Path) -> None:
    model = f"llama:{smol_weights()}"
    run = measured(
        tmp_path,
        str(data),
        "--steps",
        "segment",
        "--limit",
        "1",
        generator=model,
        command=("bench.leaves",),
    )
    assert run.returncode == 0, run.stderr
    head, names, *lines = run.stdout.splitlines()
    assert "SmolLM2" in head
    assert names.split()[:5] == ["step", "figure", "n", "rules", "model"]
    assert [line.split()[0] for line in lines if line.startswith("segment")] == ["segment"]
    partition = next(line for line in lines if "partition: Pk" in line)
    assert re.search(r"1( +\d\.\d{3}){4}$", partition), partition
