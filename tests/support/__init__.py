"""What several tests share besides fixtures: places, types, and a site on loopback to describe
pages with.

Nothing heavy is imported here: plugins of pytest beside this file are loaded by many short runs
(`test_extras.py`), and the SDK with the pipeline took .8 of the second that each took.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult

    from pipeline.reading.reading import Reading
    from readers.page import Sentence

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "examples" / "library"
SHARED = ROOT.parent / "shared"
RESULT: Final = "winnow/result"
"""Under which name an answer's `_meta` has its result, as hosts and the desk's app ask for it."""
Connect = Callable[..., AbstractAsyncContextManager["Client"]]


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        """Return seconds since the epoch."""
        return self.now


def best_units(reading: Reading) -> list[Sentence]:
    """Return the units of a reading, best first."""
    order = sorted(range(len(reading.values)), key=lambda row: -float(reading.values[row]))
    return [reading.places[row][1] for row in order]


def text_of(result: CallToolResult) -> str:
    """Return what a model reads of a result."""
    return "\n".join(part.text for part in result.content if part.type == "text")


def data_of(result: CallToolResult) -> dict[str, Any]:
    """Return what hosts and programs read of a result."""
    assert result.meta is not None, text_of(result)
    found: dict[str, Any] = result.meta[RESULT]
    return found


@dataclass
class Site:
    """A web site on loopback: what each path answers, and what was asked for."""

    port: int = 0
    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    """Paths that begin with /slow answer only after this is set."""
    held: threading.Event = field(default_factory=threading.Event)
    """Set when the first of them is asked for."""

    def put(
        self,
        path: str,
        body: str | bytes,
        *,
        status: int = 200,
        kind: str = "text/html; charset=utf-8",
    ) -> str:
        """Let `path` answer `body`; return its URL."""
        raw = body.encode() if isinstance(body, str) else body
        self.pages[path] = (status, {"Content-Type": kind, "Content-Length": str(len(raw))}, raw)
        return self.url(path)

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://127.0.0.1:{self.port}{path}"
