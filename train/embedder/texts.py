"""Two hundred varied texts on which the 8-bit model is held against the float32 one.

Written for this project or made from its own word list by a seeded draw: prose of 1 to
250 words, accents, other scripts, code, tables, addresses, numbers, emoji, empty. Not
for: retrieval quality (bench/)."""

import json
import random
from pathlib import Path
from typing import Final

_LENGTHS: Final = (1, 2, 3, 5, 8, 12, 18, 25, 40, 60, 90, 130, 180, 250)
_WRITTEN: Final = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
_WORDS: Final = " ".join(_WRITTEN["words"]).split()


def varied_texts() -> list[str]:
    """Return the 200 texts, always the same ones in the same order; the longest go past
    250 tokens."""
    fixed: list[str] = _WRITTEN["fixed"]
    return [*fixed, *_drawn(random.Random(20261121), 200 - len(fixed))]


def calibration_texts() -> list[str]:
    """Return other random texts, for measuring activations before quantization."""
    return _drawn(random.Random(7), 100)


def _drawn(draw: random.Random, count: int) -> list[str]:
    return [
        _punctuate(draw.choices(_WORDS, k=_LENGTHS[number % len(_LENGTHS)]), draw)
        for number in range(count)
    ]


def _punctuate(words: list[str], draw: random.Random) -> str:
    written = [words[0].capitalize()]
    for word in words[1:]:
        ends = written[-1].endswith(".")
        mark = draw.choices(
            ["", ",", ".", f" {draw.randrange(3000)}"], weights=[80, 8, 8, 4]
        )[0]
        written.append((word.capitalize() if ends else word) + mark)
    return " ".join(written).rstrip(".,") + "."
