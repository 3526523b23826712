"""Sending OpenTelemetry traces to a collector, where one is set (extra `otel`).

Not for: making spans (the SDK makes one a message, `pipeline/trace.py` one a step).
"""

from collections.abc import Callable

from errors import MissingExtra
from server.version import VERSION


def start_telemetry(collector: str) -> Callable[[], None]:
    """Export spans to `collector` (OTLP over HTTP) and return what to call at the end; nothing happens without one.

    Raises:
        MissingExtra: The OpenTelemetry SDK is not installed.
    """
    if not collector:
        return _nothing
    try:
        from opentelemetry import trace  # noqa: PLC0415  the SDK below is an extra
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  as above
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  as above
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  as above
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  as above
    except ImportError as error:
        raise MissingExtra("opentelemetry-sdk", extra="otel", needed_for="WINNOW_OTLP") from error
    provider = TracerProvider(resource=Resource.create({"service.name": "winnow", "service.version": VERSION}))
    address = collector if collector.endswith("/v1/traces") else f"{collector}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address, timeout=5)))
    trace.set_tracer_provider(provider)
    end: Callable[[], None] = provider.shutdown
    return end


def _nothing() -> None:
    """No exporter, nothing to end."""
