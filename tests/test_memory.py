"""Garbage in a process that serves: looked for when it is quiet, and Python's own ways come back at the end."""

import gc

import anyio
import pytest

from server.memory import LOOK_SECONDS, collect_when_quiet

pytestmark = pytest.mark.anyio


class Knot:
    """An object that only a full collection can free once it is old."""

    def __init__(self) -> None:
        self.me = self


async def test_old_garbage_is_freed_at_a_quiet_moment_and_never_in_between() -> None:
    before = gc.get_threshold()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect_when_quiet)
        await anyio.sleep(0.1)
        during = gc.get_threshold()
        full = gc.get_stats()[2]["collections"]
        kept = [[Knot() for _ in range(20_000)] for _ in range(10)]  # old by the end, through the young collections
        made = gc.get_stats()[2]["collections"]
        kept.clear()
        await anyio.sleep(3 * LOOK_SECONDS)
        alive = sum(isinstance(each, Knot) for each in gc.get_objects())
        tasks.cancel_scope.cancel()
    assert during[2] > 1_000_000
    assert made == full
    assert alive < 20_000
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
