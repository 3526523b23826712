"""What is known of a call beside its answer: which request it belongs to, how it ended, a line of the log for it.

No word that was asked, read or answered is in any of it. Not for: figures over many calls (`server/metrics.py`), or
spans within one (`pipeline/work.py`).
"""

import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Outcome = Literal["answered", "refused", "failed", "cancelled", "crashed"]
"""An answer, whole or in part; Busy; an error that the caller can act on; the caller has left; a fault of ours."""
HEADER: Final = "x-request-id"
"""By which a balancer in front of us names a request, and we in the answer."""
_ID: Final = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({})))

_request: ContextVar[str] = ContextVar("winnow_request", default="")
_log: Final = logging.getLogger("winnow.calls")


@dataclass(slots=True)
class Ended:
    """One call of a tool that has ended."""

    tool: str
    outcome: Outcome = "cancelled"
    seconds: float = 0.0
    tokens: int = 0
    """Of the text part."""
    providers: list[tuple[str, str]] = field(default_factory=list)
    """Each provider of search that was asked, with its status."""
    unread: int = 0
    """Sources that could not be read."""

    def read(self, data: dict[str, Any] | None) -> None:
        """Take from a structured answer what it tells of itself."""
        told = data or {}
        self.outcome = "refused" if told.get("error") == "busy" else "answered"
        self.tokens = int(told.get("tokens", 0))
        self.unread = len(told.get("failures", []))
        for line in told.get("providers", []):
            provider, _, status = str(line).partition(": ")
            self.providers.append((provider, status.partition(" ")[0]))


Observer = Callable[[Ended], None]


def log_call(call: Ended) -> None:
    """Write a line of the log at level INFO."""
    facts = {"tool": call.tool, "outcome": call.outcome, "seconds": round(call.seconds, 3), "tokens": call.tokens}
    _log.info("%s %s after %.3f s", call.tool, call.outcome, call.seconds, extra=facts)


@contextmanager
def observed(tool: str, request: str, observers: Sequence[Observer]) -> Iterator[Ended]:
    """Have what is logged within name the `request`, and tell `observers` when the call has ended."""
    before = _request.set(request)
    call, began = Ended(tool), time.monotonic()
    try:
        yield call
    finally:
        call.seconds = time.monotonic() - began
        for observe in observers:
            observe(call)
        _request.reset(before)


def request_id(asked: str = "") -> str:
    """Return the name of a request: the one that it came with where that is short and plain, else a fresh one."""
    return asked if _ID.fullmatch(asked) else uuid.uuid4().hex


def name_request(record: logging.LogRecord) -> bool:
    """Write into a record which request it belongs to (a filter that lets everything pass)."""
    record.request = _request.get()
    return True


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request, and what else a record was given."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        line: dict[str, object] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {
            name: value for name, value in vars(record).items() if name not in _STANDARD and value not in ("", None)
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
