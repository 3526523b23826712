"""Where a GGUF model runs, how many of its layers, with how many threads, and why; and the size of
its context.

Pure arithmetic on what llama.cpp and the file's header say, so that every machine's choice can be
tested on any. Not for: asking the devices (`models/llama/native.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from models.shares import MOST_CORES

BATCH: Final = 512
"""Tokens of a generator's batch (llama.cpp's own micro-batch), of a batch of several texts, and of
a text that an embedder reads. Attention spans the whole micro-batch, so that a larger one is slower
for short texts."""
KEPT_FREE: Final = 0.1
"""Part of a device's free memory that is left to others."""
BUFFERS: Final = 500_000_000
"""Bytes of compute buffers beside weights and context."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that a build of llama.cpp offers beside the processor."""

    backend: str
    """CUDA, Metal, Vulkan, ROCm, … as llama.cpp names it."""
    name: str
    free: int
    """Bytes of free memory."""
    integrated: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """Sizes of a model that decide where it fits."""

    layers: int
    """Blocks, and one for the output layer."""
    file_bytes: int
    context_bytes: int
    output_bytes: int = 0
    """Bytes of the output layer, the first to go to a device: many blocks' worth where the
    vocabulary is large."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a context is made, and for what."""

    role: Literal["embedder", "reranker", "generator"]
    context: int
    """Cells of the KV cache, shared by all sequences."""
    batch: int
    """Most tokens of one batch, and of one micro-batch."""
    sequences: int = 0
    """Sequences that share the cells; 0 for as many as llama.cpp can."""
    width: int = 0
    """Numbers that come out for a text, of an embedder or a reranker."""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model runs, and why."""

    backend: str
    device: str
    gpu_layers: int
    """Layers on the device; -1 for all."""
    threads: int
    reason: str


def chosen_device(devices: Sequence[Device]) -> Device:
    """Return the one device that layers go to: a card before graphics inside the processor, then
    the roomiest."""
    return max(devices, key=lambda found: (not found.integrated, found.free))


def place(
    weights: Weights, devices: Sequence[Device], *, backends: Sequence[str], cores: int
) -> Placement:
    """Return where the model goes: as many layers as fit in the free memory of the chosen
    device."""
    # Of many cores half are mostly second threads of the others.
    threads = max(1, min(2 * MOST_CORES, cores if cores <= MOST_CORES else cores // 2))
    cpu = f"{threads} of {cores} cores"
    if not devices:
        looked = (
            f"{' and '.join(backends)} of this build of llama.cpp found no GPU" if backends else ""
        )
        reason = looked or "this build of llama.cpp has no GPU backend"
        return Placement("CPU", "CPU", 0, threads, f"{reason}; {cpu}")
    device = chosen_device(devices)
    room = device.free * (1 - KEPT_FREE) - BUFFERS
    block = (weights.file_bytes - weights.output_bytes + weights.context_bytes) / max(
        1, weights.layers - 1
    )
    fitting = 1 + int((room - weights.output_bytes) / block) if room > weights.output_bytes else 0
    free = f"{device.backend} ({device.name}) has {device.free / 1e9:.1f} GB free"
    needed = (
        f"the model needs {(weights.file_bytes + weights.context_bytes + BUFFERS) / 1e9:.1f} GB"
    )
    if fitting >= weights.layers:
        return Placement(
            device.backend,
            device.name,
            -1,
            threads,
            f"{free}, {needed}: all {weights.layers} layers",
        )
    if fitting == 0:
        return Placement("CPU", "CPU", 0, threads, f"{free}, {needed}: no layer fits; {cpu}")
    reason = f"{free}, {needed}: {fitting} of {weights.layers} layers; the rest on {cpu}"
    return Placement(device.backend, device.name, fitting, threads, reason)


def fallen_back(placement: Placement) -> Placement:
    """Return the placement of a model that its device did not take after all."""
    reason = f"{placement.reason}; it could not be loaded there, so it runs on the processor"
    return replace(placement, backend="CPU", device="CPU", gpu_layers=0, reason=reason)
