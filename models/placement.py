"""Where a GGUF model runs, how many of its layers, with how many threads, and why. Not for: asking the devices.

Pure arithmetic on what llama.cpp and the file's header say, so that every machine's choice can be tested on any.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Weights:
    """What a model takes."""

    layers: int
    """Blocks, and one for the output layer."""
    file_bytes: int
    context_bytes: int
    """Of the whole context's keys and values."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The choice and its reason."""

    backend: str
    device: str
    gpu_layers: int
    """-1 for all."""
    threads: int
    reason: str


def place(weights: Weights, devices: Sequence[Device], *, supports_offload: bool, cores: int) -> Placement:
    """Return where the model goes: as many layers as fit in the free memory of the roomiest device."""
    threads = max(1, min(MOST_THREADS, cores if cores <= FEW_CORES else cores // 2))
    cpu = f"{threads} of {cores} cores"
    if not supports_offload:
        reason = f"this build of llama.cpp has no GPU backend; {cpu}"
        return Placement("CPU", "CPU", 0, threads, reason)
    if not devices:
        return Placement("CPU", "CPU", 0, threads, f"this build of llama.cpp finds no GPU; {cpu}")
    device = max(devices, key=lambda found: found.free)
    room = device.free * (1 - KEPT_FREE) - BUFFERS
    each = (weights.file_bytes + weights.context_bytes) / weights.layers
    fitting = max(0, int(room / each))
    told = f"{device.backend} ({device.name}) has {device.free / 1e9:.1f} GB free"
    needed = f"the model needs {(weights.file_bytes + weights.context_bytes + BUFFERS) / 1e9:.1f} GB"
    if fitting >= weights.layers:
        return Placement(device.backend, device.name, -1, threads, f"{told}, {needed}: all {weights.layers} layers")
    if fitting == 0:
        return Placement("CPU", "CPU", 0, threads, f"{told}, {needed}: no layer fits; {cpu}")
    reason = f"{told}, {needed}: {fitting} of {weights.layers} layers; the rest on {cpu}"
    return Placement(device.backend, device.name, fitting, threads, reason)
