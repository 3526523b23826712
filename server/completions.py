"""What a client may complete while a person fills in a prompt: a length, and documents of the allowed folders.

Handles of pages and trees are never completed: who may use one has been given it. Not for: the prompts themselves
(`server/offers.py`).
"""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from mcp.server import MCPServer
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from pipeline.work import in_thread
from server.opening import Opening

LENGTHS: Final = ("300", "600", "1200", "2000")
MOST: Final = 100
"""Values in one answer; the protocol's own limit."""
LOOKED_AT: Final = 20_000
"""Files that are looked at for one completion, so that a huge folder costs a fraction of a second."""
Reference = PromptReference | ResourceTemplateReference


def offer_completions(server: MCPServer[Opening], folders: Sequence[Path]) -> None:
    """Answer `completion/complete` for the arguments `length` and `sources` of our prompts; nothing for others."""

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK leaves it untyped
    async def complete(
        ref: Reference, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion | None:
        if not isinstance(ref, PromptReference):
            return None
        if (ref.name, argument.name) == ("research_report", "length"):
            return Completion(values=[length for length in LENGTHS if length.startswith(argument.value)])
        if (ref.name, argument.name) == ("compare_sources", "sources"):
            return await in_thread(_documents, argument.value, folders)
        return None


def _documents(typed: str, folders: Sequence[Path]) -> Completion:
    """Complete the last line typed with files whose path or name begins so."""
    earlier, newline, last = typed.rpartition("\n")
    wanted = last.strip().lower()
    found = [
        earlier + newline + str(path)
        for path in islice(_files(folders), LOOKED_AT)
        if str(path).lower().startswith(wanted) or path.name.lower().startswith(wanted)
    ]
    return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for place, below, names in os.walk(folder):
            below[:] = sorted(name for name in below if not name.startswith("."))
            yield from (Path(place) / name for name in sorted(names) if not name.startswith("."))
