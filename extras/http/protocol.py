"""uvicorn's HTTP protocol, for clients that send slowly or nothing."""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS: Final = 10.0
"""Seconds for the head of a request, and for its body of at most 1 MB."""


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a timeout for the request head."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base has it
        """Start the timeout for a request's head."""
        super().connection_made(transport)
        self._late = self.loop.call_later(REQUEST_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Pass on data; the timeout starts at the first byte of a head."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
