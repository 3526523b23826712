"""Marks that many tests carry."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final, ParamSpec, TypeVar

import pytest

P = ParamSpec("P")
R = TypeVar("R")

LLAMA: Final = (
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("llama_cpp") is None, reason="the extra llama is not installed"),
)
"""Of tests that start a GGUF model in a process of its own."""


def needs_llama(test: Callable[P, R]) -> Callable[P, R]:
    """Mark one test with `LLAMA`."""
    for mark in LLAMA:
        test = mark(test)
    return test
