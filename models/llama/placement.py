"""Where a GGUF model runs, how many of its layers, with how many threads, and why. Not for: asking the devices.

Pure arithmetic on what llama.cpp and the file's header say, so that every machine's choice can be tested on any.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

KEPT_FREE: Final = 0.1
"""Part of a device's free memory that is left to others."""
BUFFERS: Final = 500_000_000
"""Bytes of compute buffers beside weights and context (notes/models §5: 0.5 GB)."""
MOST_THREADS: Final = 8
FEW_CORES: Final = 4
"""Up to here all cores compute; above, half of them: the other half are mostly second threads of the same cores."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that a build of llama.cpp offers beside the processor."""

    backend: str
    """CUDA, Metal, Vulkan, ROCm, … as llama.cpp names it."""
    name: str
    free: int
    """Bytes."""
    integrated: bool = False
    """Whether it is part of the processor and its memory the processor's."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What a model takes."""

    layers: int
    """Blocks, and one for the output layer."""
    file_bytes: int
    context_bytes: int
    """Of the whole context's keys and values."""
    output_bytes: int = 0
    """Of the output layer's weights, the first to go to a device: many blocks' worth where the vocabulary is large."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The choice and its reason."""

    backend: str
    device: str
    gpu_layers: int
    """-1 for all."""
    threads: int
    reason: str


def chosen_device(devices: Sequence[Device]) -> Device:
    """Return the one device that layers go to: a card before graphics inside the processor, then the roomiest."""
    return max(devices, key=lambda found: (not found.integrated, found.free))


def place(weights: Weights, devices: Sequence[Device], *, backends: Sequence[str], cores: int) -> Placement:
    """Return where the model goes: as many layers as fit in the free memory of the chosen device.

    Args:
        weights: What the model takes.
        devices: What the build finds on this machine.
        backends: The build's backends beside the processor's, by name.
        cores: Of the processor.
    """
    threads = max(1, min(MOST_THREADS, cores if cores <= FEW_CORES else cores // 2))
    cpu = f"{threads} of {cores} cores"
    if not devices:
        looked = f"{' and '.join(backends)} of this build of llama.cpp found no GPU" if backends else ""
        reason = looked or "this build of llama.cpp has no GPU backend"
        return Placement("CPU", "CPU", 0, threads, f"{reason}; {cpu}")
    device = chosen_device(devices)
    room = device.free * (1 - KEPT_FREE) - BUFFERS
    block = (weights.file_bytes - weights.output_bytes + weights.context_bytes) / max(1, weights.layers - 1)
    fitting = 1 + int((room - weights.output_bytes) / block) if room > weights.output_bytes else 0
    told = f"{device.backend} ({device.name}) has {device.free / 1e9:.1f} GB free"
    needed = f"the model needs {(weights.file_bytes + weights.context_bytes + BUFFERS) / 1e9:.1f} GB"
    if fitting >= weights.layers:
        return Placement(device.backend, device.name, -1, threads, f"{told}, {needed}: all {weights.layers} layers")
    if fitting == 0:
        return Placement("CPU", "CPU", 0, threads, f"{told}, {needed}: no layer fits; {cpu}")
    reason = f"{told}, {needed}: {fitting} of {weights.layers} layers; the rest on {cpu}"
    return Placement(device.backend, device.name, fitting, threads, reason)


def fallen_back(placement: Placement) -> Placement:
    """Return the placement of a model that its device did not take after all."""
    reason = f"{placement.reason}; it could not be loaded there, so it runs on the processor"
    return replace(placement, backend="CPU", device="CPU", gpu_layers=0, reason=reason)
