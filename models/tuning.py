"""How one role's model is run: layers, devices, context, cache type, threads, sampling
and the rest.

One text a role, `NAME=VALUE` separated by blanks: the settings `generator_options`,
`embedder_options` and `reranker_options`. What is not named is chosen by the model
layer, from the file's header and the free memory (`models/llama/placement.py`). Not
for: which model it is (`models/choose.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

KV_TYPES: Final = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
"""Types of keys and values in llama.cpp's cache, the widest first."""
SWITCH: Final = ("on", "off")


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a person set for one role; 0, "", None and an empty tuple leave the choice
    to Winnow."""

    layers: int | None = None
    """Layers on the GPU; 0 for none, -1 for all."""
    devices: tuple[str, ...] = ()
    """Devices by llama.cpp's names, such as CUDA0; the first one takes what is not
    split."""
    split: tuple[float, ...] = ()
    """Share of the layers that each device gets, in the order of `devices`."""
    context: int = 0
    """Tokens of prompt and answer together."""
    kv: str = ""
    """Type of keys and values in the cache."""
    flash: str = ""
    """Flash attention: on, off."""
    threads: int = 0
    batch: int = 0
    """Most tokens of one batch; fewer than llama.cpp has sequences (256) end its
    process."""
    mmap: str = ""
    """Whether the file is mapped into memory instead of read: on, off."""
    temperature: float = 0.0
    """0 takes the likeliest token each time."""
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    thinking: bool = False
    """Whether a model that can think aloud is let to; its thoughts are never part of an
    answer."""
    speculate: int = 0
    """Tokens guessed ahead from the prompt itself and checked in one batch; 0 for
    none."""
    named: tuple[str, ...] = ()
    """Options that a person wrote, also where the value is the usual one."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Tuning":
        """Return the tuning that JSON holds, whose tuples became lists."""
        read: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**read)

    def sampling(self) -> dict[str, object]:
        """Return what goes into a request to a server: the temperature, and what was
        set; the rest is the server's choice."""
        named = ("top_k", "top_p", "min_p", "seed")
        body: dict[str, object] = {"temperature": self.temperature}
        return body | {
            name: value for name, value in set_options(self).items() if name in named
        }

    @property
    def key(self) -> str:
        """What of this changes an answer, as part of a model's name; "" for the
        usual."""
        named = (
            "context",
            "kv",
            "temperature",
            "top_k",
            "top_p",
            "min_p",
            "seed",
            "thinking",
        )
        changed = set_options(self)
        return ",".join(f"{name}={changed[name]}" for name in named if name in changed)


USUAL: Final = Tuning()
"""Nothing set."""


class Option(NamedTuple):
    """What reads one option, and what may be written."""

    read: Any
    """From the text to the value; raises `ValueError`."""
    form: str


def _between(low: float, high: float, kind: type = int) -> Option:
    def read(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return Option(read, f"a number from {low:,} to {high:,}")


def _one_of(*known: str) -> Option:
    def read(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(text)
        return text.lower()

    return Option(read, f"one of {', '.join(known)}")


def _layers(text: str) -> int:
    return -1 if text.lower() == "all" else int(_between(-1, 1_000).read(text))


def _shares(text: str) -> tuple[float, ...]:
    shares = tuple(float(part) for part in text.split(","))
    if min(shares) < 0 or sum(shares) <= 0:
        raise ValueError(text)
    return shares


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise ValueError(text)
    return names


TUNING_OPTIONS: Final[Mapping[str, Option]] = {
    "layers": Option(_layers, "a number of layers (0 for none), or all"),
    "devices": Option(_names, "names such as CUDA0,CUDA1"),
    "split": Option(_shares, "a share for each device, such as 3,1"),
    "context": _between(256, 1_048_576),
    "kv": _one_of(*KV_TYPES),
    "flash": _one_of(*SWITCH),
    "threads": _between(1, 512),
    "batch": _between(256, 8_192),
    "mmap": _one_of(*SWITCH),
    "temperature": _between(0, 2, float),
    "top_k": _between(0, 1_000),
    "top_p": _between(0.01, 1, float),
    "min_p": _between(0, 1, float),
    "seed": _between(0, 2**31 - 1),
    "thinking": _one_of(*SWITCH),
    "speculate": _between(0, 32),
}
"""Every option by name, in the order in which it is shown."""
WRITERS: Final = frozenset(
    {"kv", "temperature", "top_k", "top_p", "min_p", "seed", "thinking", "speculate"}
)
"""Options that only a model that writes has."""

THOUGHTS: Final = 2_048
"""Tokens that a model gets beside its answer's where it thinks and no switch stops it;
at most half of its context."""
Role = Literal["embedder", "reranker", "generator"]


def read_tuning(text: str, role: Role) -> Tuning:
    """Return the tuning that `text` says for a role; raises `ValueError` with what
    would be right.

    An empty text leaves all to Winnow; of an option given twice the last counts.
    """
    known = [
        name for name in TUNING_OPTIONS if role == "generator" or name not in WRITERS
    ]
    found: dict[str, Any] = {}
    for part in text.replace(";", " ").split():
        name, _, value = part.partition("=")
        if name not in known or not value:
            raise ValueError(
                f"{part!r} is not an option; use NAME=VALUE with {', '.join(known)}."
            )
        try:
            read = TUNING_OPTIONS[name].read(value)
        except ValueError as error:
            raise ValueError(
                f"{name} is {value!r}; use {TUNING_OPTIONS[name].form}."
            ) from error
        found[name] = read == "on" if name == "thinking" else read
    tuning = Tuning(**found, named=tuple(found))
    if tuning.split and len(tuning.split) != len(tuning.devices):
        raise ValueError("split needs one share for each device named in devices.")
    return tuning


def set_options(tuning: Tuning) -> dict[str, object]:
    """Return the options that a person wrote or that differ from the usual, by name."""
    values = {name: getattr(tuning, name) for name in TUNING_OPTIONS}
    return {
        name: value
        for name, value in values.items()
        if name in tuning.named or value != getattr(USUAL, name)
    }
