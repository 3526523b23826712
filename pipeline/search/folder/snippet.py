"""Cutting the part of a passage that shows the hit.

Not for: choosing the passage (`pipeline/rank/passages.py`).
"""

import re
from typing import Final

from pipeline.text.words import index_terms

LENGTH: Final = 400
"""Characters of a snippet: about what web engines show, and enough for a sentence with its neighbours."""
_PIECE: Final = re.compile(r"[^\n.!?。！？]*(?:[.!?。！？](?=\S)[^\n.!?。！？]*)*[.!?。！？\n]*\s*")
"""Sentences, roughly: a stop inside a number or a name (`2.4`, `node.js`) does not end one."""


def snippet_around(text: str, question: str, *, language: str = "en", length: int = LENGTH) -> str:
    """Return at most about `length` characters of `text` around the densest place of the terms of `question`.

    Left-out text is marked `…`; line breaks become spaces.
    """
    if len(text) <= length:
        return " ".join(text.split())
    terms = set(index_terms(question, language=language))
    spans = [match.span() for match in _PIECE.finditer(text) if match.end() > match.start()]
    spans = [piece for span in spans for piece in _bounded(span, length)]
    found = [terms & set(index_terms(text[start:end], language=language)) for start, end in spans]
    best, best_first, best_last = -1.0, 0, 0
    for first in range(len(spans)):
        seen: set[str] = set()
        for last in range(first, len(spans)):
            if last > first and spans[last][1] - spans[first][0] > length:
                break
            seen |= found[last]
            worth = len(seen) + 0.1 * len(found[first]) - 0.001 * first
            if worth > best:
                best, best_first, best_last = worth, first, last
    # Fill up with what follows, so that the hit keeps its context
    while best_last + 1 < len(spans) and spans[best_last + 1][1] - spans[best_first][0] <= length:
        best_last += 1
    start, end = spans[best_first][0], spans[best_last][1]
    cut = " ".join(text[start:end].split())
    return ("… " if start > 0 else "") + cut + (" …" if end < len(text) else "")


def _bounded(span: tuple[int, int], length: int) -> list[tuple[int, int]]:
    start, end = span
    return [(at, min(at + length, end)) for at in range(start, end, length)]
