"""One OpenTelemetry span for each step of the pipeline; free unless an exporter is set up (`server/telemetry.py`).

The SDK opens a span for every MCP message; these hang below it. Spans carry names and durations only: a question or an
address is the user's. Not for: logs, progress.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from opentelemetry import trace

T = TypeVar("T")
TRACER: Final = trace.get_tracer("winnow")


def traced(name: str) -> Callable[[T], T]:
    """Return a decorator that runs a function or coroutine function within the span `winnow.{name}`."""
    return TRACER.start_as_current_span(f"winnow.{name}")
