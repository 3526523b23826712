"""Documents of paragraphs strung together, and how well boundaries found in them agree
with the true ones."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.longdoc import DATA, read_lines


@dataclass(frozen=True, slots=True)
class Cut:
    """How well some boundaries agree with the true ones."""

    pk: float
    """Share of windows of half a true segment whose ends are wrongly taken for one
    segment, or for two; 0 is best."""
    f1: float
    """Of boundaries at exactly the true places."""
    count: int
    """Boundaries found."""


def agreement(found: Sequence[tuple[int, int]], true: Sequence[tuple[int, int]]) -> Cut:
    """Return how well the ranges `found` agree with `true`, both [start, end) and
    covering the same n > 1 items."""
    n = true[-1][1]
    ours, theirs = (
        np.repeat(range(len(ranges)), [b - a for a, b in ranges])
        for ranges in (found, true)
    )
    window = min(n - 1, max(1, round(n / len(true) / 2)))
    wrong = (ours[:-window] == ours[window:]) != (theirs[:-window] == theirs[window:])
    cuts, truth = {start for start, _ in found[1:]}, {start for start, _ in true[1:]}
    both = len(cuts) + len(truth)
    return Cut(
        float(np.mean(wrong)), 2 * len(cuts & truth) / both if both else 1.0, len(cuts)
    )


def strung_documents() -> list[list[list[str]]]:
    """Documents of ten paragraphs from foreign articles, a list of sentences each; the
    odd half."""
    paragraphs: dict[str, list[str]] = {}
    for row in read_lines(DATA / "evidence" / "hotpot.texts.jsonl"):
        text, units = str(row["text"]), row["units"]
        assert isinstance(units, list)
        for match in re.finditer(
            r"(?:^|\n\n)[^\n]+\n([^\n]+(?:\n(?!\n)[^\n]+)*)", text
        ):
            start, end = match.span(1)
            sentences = [text[a:b].strip() for a, b in units if a >= start and b <= end]
            if 3 <= len(sentences) <= 9:
                paragraphs.setdefault(match.group(1), sentences)
    shuffled = list(paragraphs.values())
    random.Random(0).shuffle(shuffled)  # the same documents in every run
    whole = [shuffled[i : i + 10] for i in range(0, len(shuffled) - 9, 10)]
    return whole[1::2]
