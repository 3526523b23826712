"""Prometheus metrics at `/metrics` of a separate address (extra `metrics`).

A separate address, because scrapers have no token and network policies can restrict it.
Not for: single calls (`server/calls.py`).
"""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    start_http_server,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

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
        """Observe the queue of `admission`, and the `stores` once they are open."""
        self.registry = CollectorRegistry()
        own = self.registry
        self._calls = Counter(
            "winnow_calls",
            "Tool calls by outcome.",
            ("tool", "outcome"),
            registry=own,
        )
        self._seconds = Histogram(
            "winnow_call_seconds",
            "Seconds from arrival to end.",
            ("tool",),
            buckets=SECONDS_BUCKETS,
            registry=own,
        )
        self._tokens = Counter(
            "winnow_answer_tokens", "Tokens of answers.", ("tool",), registry=own
        )
        asked = "Answers of search providers by status."
        self._providers = Counter(
            "winnow_provider_answers", asked, ("provider", "status"), registry=own
        )
        self._unread = Counter(
            "winnow_sources_unread",
            "Sources that could not be read.",
            ("tool",),
            registry=own,
        )
        Gauge(
            "winnow_version_info", "The running version.", ("version",), registry=own
        ).labels(VERSION).set(1)
        own.register(_Standing(admission, stores))

    def __call__(self, call: Ended) -> None:
        """Count a finished call."""
        self._calls.labels(call.tool, call.outcome).inc()
        self._seconds.labels(call.tool).observe(call.seconds)
        self._tokens.labels(call.tool).inc(call.tokens)
        self._unread.labels(call.tool).inc(call.unread)
        for provider, status in call.providers:
            self._providers.labels(provider, status).inc()

    def serve(self, at: str) -> None:
        """Serve at `at` (HOST:PORT) in a daemon thread; raises `UsageError` if it
        cannot listen there."""
        host, _, port = at.rpartition(":")
        try:
            start_http_server(int(port), addr=host.strip("[]"), registry=self.registry)
        except OSError as error:
            raise UsageError(
                f"metrics cannot be served at {at}: {error}.",
                hint="Set another address as metrics in WINNOW_HTTP.",
            ) from error


class _Standing:
    """Collector of values that are read at each scrape."""

    def __init__(
        self, admission: Admission, stores: Callable[[], Stores | None]
    ) -> None:
        self._admission = admission
        self._stores = stores

    def collect(self) -> Iterator[Metric]:
        """Yield running and waiting calls of each lane; then, if the stores are open, of
        each store: lookups by outcome, failed operations, whether it is unusable."""
        places = GaugeMetricFamily(
            "winnow_calls_now", "Running and waiting calls.", labels=("lane", "state")
        )
        for lane, (running, waiting) in self._admission.standing().items():
            places.add_metric((lane, "running"), running)
            places.add_metric((lane, "waiting"), waiting)
        yield places
        stores = self._stores()
        if stores is None:
            return
        looked = CounterMetricFamily(
            "winnow_cache_lookups", "Lookups in the cache.", labels=("store", "found")
        )
        problems = CounterMetricFamily(
            "winnow_cache_problems",
            "Failed cache operations.",
            labels=("store",),
        )
        away = GaugeMetricFamily(
            "winnow_cache_away", "1 while a store is unusable.", labels=("store",)
        )
        for kind, store in stores.by_kind.items():
            seen = store.seen()
            looked.add_metric((kind, "yes"), seen["hits"])
            looked.add_metric((kind, "no"), seen["misses"])
            problems.add_metric((kind,), seen["problems"])
            away.add_metric((kind,), seen["away"])
        yield from (looked, problems, away)
