"""uvicorn's HTTP protocol, for clients that send slowly or nothing."""

import asyncio
from typing import ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS: Final = 10.0
"""Seconds for the head of a request, and for its body of at most 1 MB."""
MOST_WAITING_HEADS: Final = 256
"""Connections that may wait for a head, half of those that uvicorn serves: beyond them the
oldest is closed, so that `/healthz` is answered beside any number of them."""


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a timeout for the request head."""

    _waiting: ClassVar[dict["PatientProtocol", asyncio.TimerHandle]] = {}
    """Connections without a whole head, the oldest first, and when they are closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base has it
        """Start the timeout for a request's head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Pass on data; the timeout starts at the first byte of a head."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self not in self._waiting:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        close = self.transport.close
        self._waiting[self] = self.loop.call_later(REQUEST_SECONDS, close)
        if len(self._waiting) > MOST_WAITING_HEADS:
            oldest = next(iter(self._waiting))
            oldest._stop_waiting()
            oldest.transport.abort()

    def _stop_waiting(self) -> None:
        if (late := self._waiting.pop(self, None)) is not None:
            late.cancel()
