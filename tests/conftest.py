"""Fixtures that every test may ask for."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the loop that the server uses."""
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real data and small real weights; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("../shared (real data and weights) is not beside this checkout")
    return SHARED
