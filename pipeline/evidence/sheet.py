"""A text that cannot grow over its token budget: what every tool writes its answer on.

Parts are joined by line breaks; because `count_tokens` is additive over lines, the running total is exact and no part
is counted twice. Not for: deciding what is worth its tokens (`assemble.py`, `pipeline/prune`).
"""

from typing import Final

from pipeline.text.tokens import count_tokens, cut_to_tokens

CUT_MARK: Final = "…"
"""Ends a part that was cut; costs one token or two."""


class Sheet:
    """Collects parts up to `max_tokens`, counted by `pipeline.text.tokens.count_tokens`."""

    def __init__(self, max_tokens: int, *, reserve: int = 0) -> None:
        """Open a sheet; `reserve` tokens are kept free until `release` for what is written last."""
        self._max = max_tokens
        self._reserve = min(reserve, max_tokens)
        self._parts: list[str] = []
        self._used = 0

    @property
    def text(self) -> str:
        """Everything written so far."""
        return "\n".join(self._parts)

    @property
    def tokens(self) -> int:
        """Exactly `count_tokens(self.text)`."""
        return count_tokens(self.text)

    @property
    def room(self) -> int:
        """Tokens that the next part may cost."""
        return self._max - self._reserve - self._used - (1 if self._parts else 0)

    def release(self) -> None:
        """Give the reserve free for the parts that follow."""
        self._reserve = 0

    def add(self, part: str) -> bool:
        """Write `part` if it fits whole; return whether it did. Blank parts always fit and write nothing."""
        part = part.strip()
        if not part:
            return True
        cost = count_tokens(part)
        if cost > self.room:
            return False
        self._used += cost + (1 if self._parts else 0)
        self._parts.append(part)
        return True

    def add_cut(self, part: str) -> bool:
        """Write `part`, shortened at a word to what fits; return whether anything was written."""
        return self.add(part) or self.add(shortened(part, self.room))


def shortened(text: str, max_tokens: int) -> str:
    """Return `text` with at most `max_tokens` tokens, a cut marked; empty where not even one word fits."""
    text = text.strip()
    if count_tokens(text) <= max_tokens:
        return text
    for most in (max_tokens - 1, max_tokens - 2):
        cut = f"{kept} {CUT_MARK}" if (kept := cut_to_tokens(text, most)) else ""
        if count_tokens(cut) <= max_tokens:
            return cut
    return ""
