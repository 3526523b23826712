"""What an audit of the packages says, and when it fails."""

import json

import pytest

from tests.support.audit import judged

FAULT = {"id": "GHSA-1", "fix_versions": ["2.1"]}
CLEAN = {"name": "anyio", "version": "4", "vulns": []}
UNKNOWN = {"name": "numpy", "skip_reason": "could not be audited"}


@pytest.mark.parametrize(
    ("rows", "line", "faulty"),
    [
        ([CLEAN, {**CLEAN, "vulns": [FAULT]}], "anyio 4: GHSA-1, mended in 2.1", True),
        ([CLEAN, {**CLEAN, "vulns": [{**FAULT, "fix_versions": []}]}], "in no version", True),
        ([CLEAN, UNKNOWN], "No known faults in 1 of 2 packages.", False),
        ([UNKNOWN, UNKNOWN], "Not audited: no database of advisories knew any of 2", False),
    ],
)
def test_a_known_fault_fails_and_a_database_out_of_reach_is_said(
    rows: list[object], line: str, *, faulty: bool
) -> None:
    verdict = judged(json.dumps({"dependencies": rows}))
    assert line in verdict.line
    assert verdict.faulty is faulty


@pytest.mark.parametrize("said", ["", "Traceback", "[]", '{"a": 1}', "null"])
def test_an_audit_that_could_not_run_is_said(said: str) -> None:
    assert judged(said).line.startswith("Not audited")
    assert not judged(said).faulty
