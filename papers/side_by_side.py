"""Calls of a generator, several at once."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from errors import ModelError
from models.protocols import ANSWERS_AT_ONCE

T = TypeVar("T")


async def side_by_side(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return the results of `calls` in their order, at most `ANSWERS_AT_ONCE` of them
    under way at a time.

    Raises `ModelError`: one of them failed; the others are cancelled. Any other error
    is raised in an exception group."""
    found: dict[int, T] = {}
    failures: list[ModelError] = []
    limiter = anyio.CapacityLimiter(ANSWERS_AT_ONCE)

    async def run(number: int, call: Callable[[], Awaitable[T]]) -> None:
        async with limiter:
            try:
                found[number] = await call()
            except ModelError as error:
                failures.append(error)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for number, call in enumerate(calls):
            group.start_soon(run, number, call)
    if failures:
        raise failures[0]
    return [found[number] for number in range(len(calls))]
