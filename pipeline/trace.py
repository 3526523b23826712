"""One OpenTelemetry span for each step of the pipeline; free unless an exporter is set up (`server/telemetry.py`).

The SDK opens a span for every MCP message; these hang below it. Spans carry names and durations only: a question or an
address is the user's. Not for: logs, progress.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar, cast

from opentelemetry import trace

P = ParamSpec("P")
R = TypeVar("R")
TRACER: Final = trace.get_tracer("winnow")


def traced(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that runs a function or coroutine function within the span `winnow.{name}`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def later(*args: P.args, **kwargs: P.kwargs) -> Any:
                with TRACER.start_as_current_span(f"winnow.{name}"):
                    return await function(*args, **kwargs)

            return cast("Callable[P, R]", later)

        @functools.wraps(function)
        def now(*args: P.args, **kwargs: P.kwargs) -> R:
            with TRACER.start_as_current_span(f"winnow.{name}"):
                return function(*args, **kwargs)

        return now

    return decorate
