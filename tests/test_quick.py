"""What `make quick` leaves out is measured, and the table of it is true."""

from tests.support import ROOT
from tests.support.quick import SLOW, TABLE, rows, slow_tests


def test_the_table_names_the_tests_that_took_long_and_no_other() -> None:
    times = [
        (2.5, "tests/test_b.py::test_long[a b]"),
        (SLOW / 2, "tests/test_b.py::test_short"),
        (SLOW, "tests/test_a.py::test_c"),
    ]
    assert slow_tests(rows(times)) == ["tests/test_a.py::test_c", "tests/test_b.py::test_long[a b]"]


def test_every_file_that_the_table_names_has_the_test_that_it_names() -> None:
    named = slow_tests(TABLE.read_text(encoding="utf-8").splitlines())
    assert named
    for file, test in (name.split("::")[:2] for name in named):
        source = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {test.partition('[')[0]}(" in source, f"{file} has no {test}: run `make times`"
