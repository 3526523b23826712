"""What a recipe teaches with: a prompt and its answer. Importing this needs no extra.

Not for: training (`lora.py`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

Part = Literal["train", "dev"]
ADAPTED_MATRICES: Final = (
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
)
"""Matrices of a layer that get an adapter: all of them."""


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
