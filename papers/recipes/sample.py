"""What a recipe teaches with: a prompt and its answer. Importing this needs no extra.

Not for: training (`lora.py`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Part = Literal["train", "dev"]


@dataclass(frozen=True, slots=True)
class Sample:
    """What a model is asked, and the answer that it should learn."""

    prompt: str
    """Content of the user's message, as the product asks."""
    answer: str
    rejected: str = ""
    """A worse answer to the same: the sample is a preference pair then."""
    source: str = ""
    """The set that it was made from, for the datasheet."""


Maker = Callable[[Part, int], Iterable[Sample]]
"""Makes the samples of a part of the data, drawn with a seed."""
