"""Which test files a run need not import, which come first, and what it need not look through for
garbage.

A plugin of pytest (`tests/conftest.py`). `-m "not slow"` (`make quick`) imports no file whose tests
are all slow by its own `pytestmark`: two of them import torch, 4 s of processor time in each
process, all others 3 s. What the imports and the collection made stays to the end: no collection of
garbage walks it, of which each would take a second, and a test that times itself begins with one.
"""

import gc
import re
from pathlib import Path
from typing import Final, Literal

import pytest

LAST: Final = pytest.StashKey[Path]()
"""The file of the last test."""
WITHOUT_SLOW: Final = "not slow"
ALL_SLOW: Final = re.compile(r"^pytestmark = (?:\[[^\]]*?)?pytest\.mark\.slow\b", re.MULTILINE)

LONGEST: Final = ("test_recipes.py",)
"""Files that come first. One process then runs all of the file, and what it opens once is opened
once, while others run the rest; last, each process would open it for a few tests."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Literal[True] | None:
    """Leave out a file whose tests are all slow, where the run asks for none of them."""
    if config.getoption("markexpr") != WITHOUT_SLOW or collection_path.suffix != ".py":
        return None
    return True if ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Set aside what is there before the first test, and again where a server under test has given
    it back.

    That is asked once a file: the answer counts all that was set aside, 10 ms.
    """
    if item.config.stash.get(LAST, None) != item.path:
        item.config.stash[LAST] = item.path
        if gc.get_freeze_count() == 0:
            gc.collect()
            gc.freeze()
