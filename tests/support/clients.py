"""The sample question as clients are asked it, and how much of what a model reads it reads
twice."""

import re
from typing import Final

from tests.support import LIBRARY

QUESTION: Final = "What does the Nightbird minibus cost?"
ANSWER: Final = "9 crowns"
PAGE: Final = str(LIBRARY / "ferry-winter-cuts.html")
ASKED: Final = {"question": QUESTION, "sources": [PAGE]}
GONE: Final = str(LIBRARY / "gone.html")
TWICE: Final = 0.03
"""Most of the words that a model may read a second time."""
RUN: Final = 8
"""Words in a row that count as read before; labels, names and addresses are shorter."""
_ASIDE: Final = re.compile(r"\\[nt]|\w+://[^\s\"]+|#:~:text=[^\s\"]+|\"\w+\":")


def runs_of(text: str) -> list[tuple[str, ...]]:
    """Return each run of `RUN` words. Addresses are names, which a citation says each time,
    as names of fields are."""
    words = re.findall(r"\w+", _ASIDE.sub(" ", text).casefold())
    return [tuple(words[place : place + RUN]) for place in range(len(words) - RUN + 1)]


def read_twice(text: str) -> float:
    """Return the share of words that are in a run of `RUN` words which was read before."""
    runs = runs_of(text)
    seen: set[tuple[str, ...]] = set()
    again: set[int] = set()
    for place, run in enumerate(runs):
        if run in seen:
            again.update(range(place, place + RUN))
        seen.add(run)
    return len(again) / (len(runs) + RUN)
