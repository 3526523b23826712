"""Prometheus metrics at `/metrics` of a separate address (extra `metrics`).

A separate address, because scrapers have no token and network policies can restrict it.
Not for: single calls (`server/calls.py`).
"""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    start_http_server,
)
from prometheus_client.core import GaugeMetricFamily, Metric

from cache.store import Stores
from errors import UsageError
from server.calls import Admission, Ended
from server.version import VERSION

SECONDS_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Upper bounds of the call histogram in seconds: from a cached page to beyond the
default deadline."""


class Metrics:
    """Counts calls; at each scrape reads the state of queue and cache."""

    def __init__(
        self, admission: Admission, stores: Callable[[], Stores | None]
    ) -> None:
        self._registry = CollectorRegistry()
        self._calls = self._counter("calls", "Tool calls by outcome.", "outcome")
        self._tokens = self._counter("answer_tokens", "Tokens of answers.")
        self._unread = self._counter("sources_unread", "Sources that were not read.")
        self._seconds = Histogram(
            "winnow_call_seconds",
            "Seconds from arrival to end.",
            ("tool",),
            buckets=SECONDS_BUCKETS,
            registry=self._registry,
        )
        about = Info("winnow_version", "The running version.", registry=self._registry)
        about.info({"version": VERSION})
        self._admission = admission
        self._stores = stores
        self._registry.register(self)

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(
            f"winnow_{name}", help, ("tool", *labels), registry=self._registry
        )

    def __call__(self, call: Ended) -> None:
        """Count a finished call."""
        self._calls.labels(call.tool, call.outcome).inc()
        self._seconds.labels(call.tool).observe(call.seconds)
        self._tokens.labels(call.tool).inc(call.tokens)
        self._unread.labels(call.tool).inc(call.unread)

    def serve(self, address: str) -> None:
        """Serve at `address` (HOST:PORT) in a daemon thread; raises `UsageError` if it
        cannot listen there."""
        host, _, port = address.rpartition(":")
        try:
            start_http_server(int(port), addr=host.strip("[]"), registry=self._registry)
        except OSError as error:
            raise UsageError(
                f"metrics cannot be served at {address}: {error}.",
                hint="Set another address as metrics in WINNOW_HTTP.",
            ) from error

    def collect(self) -> Iterator[Metric]:
        """Yield what is read at each scrape: running and waiting calls of each kind and,
        if the stores are open, whether the cache is not used."""
        places = GaugeMetricFamily(
            "winnow_calls_now", "Running and waiting calls.", labels=("kind", "state")
        )
        for kind, (running, waiting) in self._admission.standing().items():
            places.add_metric((kind, "running"), running)
            places.add_metric((kind, "waiting"), waiting)
        yield places
        if (stores := self._stores()) is not None:
            unused = float(stores.pages.aside.active)
            yield GaugeMetricFamily(
                "winnow_cache_unused", "1 while the cache is not used.", value=unused
            )
