"""The reference for passages: a plain growth over the product's own scores.

Passages of the product (`pipeline/evidence`) must show as much as `grown`: the best unit,
its better neighbour again and again, and nothing else (`python -m bench run SET --versus
grow`). It writes no frame; marks, labels and links are taken to be `FRAME_SHARE` of the
budget and `LABEL_TOKENS` a passage."""

from collections.abc import Sequence
from typing import Final

from pipeline.reading.reading import Reading
from pipeline.text.tokens import count_each
from readers.page import Document

FRAME_SHARE: Final = 0.12
LABEL_TOKENS: Final = 6
LEAST: Final = 30
MOST: Final = 100
EDGE: Final = 0.5
HEADING_TOKENS: Final = 16


def grown(documents: Sequence[Document], reading: Reading, budget: int) -> list[int]:
    """Return the units of a reading that a plain growth shows within `budget` tokens."""
    units = [unit for _, unit in reading.places]
    scores: list[float] = reading.values.tolist()
    tokens = count_each([unit.text for unit in units])
    is_heading = [
        documents[index].blocks[unit.block].kind == "heading"
        for index, unit in reading.places
    ]
    room = budget - int(budget * FRAME_SHARE)
    most = min(MOST, max(LEAST, room // 2))
    shown: set[int] = set()
    used = 0
    for row in sorted(range(len(scores)), key=lambda row: -scores[row]):
        if used >= room - 8:
            break
        label = is_heading[row] and tokens[row] <= HEADING_TOKENS
        if row in shown or (label and row + 1 in shown):
            continue
        low = high = row
        size = tokens[row]
        while True:
            options: list[tuple[float, int]] = []
            before, after = low - 1, high + 1
            heading_path = units[row].heading_path
            if (
                before >= 0
                and before not in shown
                and (is_heading[before] or units[before].heading_path == heading_path)
            ):
                gain = 0.05 * (units[before].block == units[low].block)
                options.append((scores[before] + gain, before))
            if (
                after < len(units)
                and after not in shown
                and not is_heading[after]
                and units[after].heading_path == heading_path
            ):
                gain = 0.02 + 0.05 * (units[after].block == units[high].block)
                options.append((scores[after] + gain, after))
            options = [
                (score, unit) for score, unit in options if size + tokens[unit] <= most
            ]
            if not options:
                break
            score, unit = max(options)
            if size >= LEAST and score < EDGE * scores[row]:
                break
            low, high, size = min(low, unit), max(high, unit), size + tokens[unit]
        if used + size + LABEL_TOKENS > room:
            low = high = row
            size = tokens[row]
        if used + size + LABEL_TOKENS <= room:
            shown.update(range(low, high + 1))
            used += size + LABEL_TOKENS
    return sorted(shown)
