"""The one way from the core to `papers/`: a name to a callable there, imported at its
first use.

Not for: plug-in points of several files each (`seams.py`)."""

from collections.abc import Callable
from typing import Any, Final

from seams import later

_WHERE: Final = {
    "ask_nodes": "papers.raptor.ask",
    "extractor": "papers.zero_index.ask",
    "parse": "papers.zero_index.parser",
    "rank_as_printed": "papers.zero_index.ranking",
    "chunker": "papers.idms.idms",
    "prune_by_blocks": "papers.htmlrag.prune",
}
"""Function in `papers/` to its module."""


def printed(function: str) -> Callable[..., Any]:
    """Return a function of `papers/`; its module is imported when it is called.

    Raises `KeyError` for a name that is not listed here."""
    return later(_WHERE[function], function)
