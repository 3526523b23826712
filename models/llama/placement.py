"""Where a GGUF model runs, how many of its layers, with how many threads, and why; and
the size of its context.

Pure arithmetic on what llama.cpp and the file's header say, so that every machine's
choice can be tested on any. Not for: asking the devices (`models/llama/native.py`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from errors import ModelError
from models.shares import MOST_CORES
from models.tuning import USUAL, Tuning

BATCH_TOKENS: Final = 512
"""Tokens of a generator's batch (llama.cpp's own micro-batch), of a batch of several
texts, and of a text that an embedder reads. Attention spans the whole micro-batch, so
that a larger one is slower for short texts."""
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
    number: str = ""
    """What llama.cpp calls this one, such as CUDA0."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Sizes of a model that decide where it fits."""

    layers: int
    """Blocks, and one for the output layer."""
    file_bytes: int
    context_bytes: int
    output_bytes: int = 0
    """Bytes of the output layer, the first to go to a device: many blocks' worth where
    the vocabulary is large."""


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
    kv: str = ""
    """Type of keys and values; "" for 16-bit floats."""
    tuning: Tuning = USUAL


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model runs, and why."""

    backend: str
    device: str
    gpu_layers: int
    """Layers on the device; -1 for all."""
    threads: int
    reason: str
    devices: tuple[str, ...] = ()
    """Numbers of the devices that layers go to."""


KV_SIZES: Final = {
    "f32": 2.0,
    "f16": 1.0,
    "bf16": 1.0,
    "q8_0": 34 / 64,
    "q5_1": 24 / 64,
    "q5_0": 22 / 64,
    "q4_1": 20 / 64,
    "q4_0": 18 / 64,
}
"""Size of a type of keys and values against 16-bit floats: bytes of a block of 32
values, over 64."""


def chosen_device(devices: Sequence[Device]) -> Device:
    """Return the one device that layers go to where none was set: a card before
    graphics inside the processor, then the roomiest."""
    return max(devices, key=lambda found: (not found.integrated, found.free))


def chosen_devices(devices: Sequence[Device], tuning: Tuning) -> list[Device]:
    """Return the devices that layers go to, in the order set; raises `ModelError` for
    one that is not there. Without a setting it is one device, or none."""
    if not tuning.devices:
        return [chosen_device(devices)] if devices else []
    known = {device.number.lower(): device for device in devices}
    missing = [name for name in tuning.devices if name.lower() not in known]
    if missing:
        there = (
            ", ".join(device.number for device in devices)
            or "none except the processor"
        )
        raise ModelError(
            f"The options name the device {missing[0]!r}, which this build of "
            f"llama.cpp does not have.",
            hint=f"It has: {there}.",
        )
    return [known[name.lower()] for name in tuning.devices]


def threads_for(cores: int, tuning: Tuning = USUAL) -> int:
    """Return how many threads compute on the processor."""
    # Of many cores half are mostly second threads of the others.
    usual = max(1, min(2 * MOST_CORES, cores if cores <= MOST_CORES else cores // 2))
    return tuning.threads or usual


def place(
    weights: Weights,
    devices: Sequence[Device],
    *,
    backends: Sequence[str],
    cores: int,
    tuning: Tuning = USUAL,
) -> Placement:
    """Return where the model goes: as many layers as fit in the free memory of the
    chosen devices, or as many as `tuning` says.

    Raises `ModelError` where `tuning` names a device that is not there.
    """
    threads = threads_for(cores, tuning)
    cpu = f"{threads} of {cores} cores"
    chosen = chosen_devices(devices, tuning)
    if not chosen or tuning.layers == 0:
        reason = "layers=0 was set" if chosen else _no_gpu(backends)
        return Placement("CPU", "CPU", 0, threads, f"{reason}; {cpu}")
    fitting, found = _layers(weights, chosen, tuning)
    if fitting == 0:
        return Placement("CPU", "CPU", 0, threads, f"{found}: no layer fits; {cpu}")
    layers = weights.layers
    on_gpu, split = -1, f"all {layers} layers"
    if fitting < layers:
        on_gpu, split = fitting, f"{fitting} of {layers} layers; the rest on {cpu}"
    return Placement(
        chosen[0].backend,
        ", ".join(device.name for device in chosen),
        on_gpu,
        threads,
        f"{found}: {split}",
        tuple(device.number for device in chosen),
    )


def _layers(
    weights: Weights, chosen: Sequence[Device], tuning: Tuning
) -> tuple[int, str]:
    """Return how many layers go to the chosen devices, as set or as fit, and the
    memory that is free and needed."""
    free = " and ".join(
        f"{one.backend} ({one.name}) has {one.free / 1e9:.1f} GB free" for one in chosen
    )
    needed = f"the model needs {(weights.file_bytes + weights.context_bytes + BUFFERS) / 1e9:.1f} GB"
    found = f"{free}, {needed}"
    if tuning.layers is None:
        return _fitting(weights, sum(device.free for device in chosen)), found
    set_all = tuning.layers < 0
    found = f"layers={'all' if set_all else tuning.layers} was set; {found}"
    return weights.layers if set_all else tuning.layers, found


def _no_gpu(backends: Sequence[str]) -> str:
    """Return why a build with these backends computes on the processor."""
    if not backends:
        return "this build of llama.cpp has no GPU backend"
    return f"{' and '.join(backends)} of this build of llama.cpp found no GPU"


def _fitting(weights: Weights, free: int) -> int:
    """Return how many layers fit in `free` bytes: 0 if the output layer does not, and
    perhaps more than the model has."""
    room = free * (1 - KEPT_FREE) - BUFFERS
    block = (weights.file_bytes - weights.output_bytes + weights.context_bytes) / max(
        1, weights.layers - 1
    )
    return (
        1 + int((room - weights.output_bytes) / block)
        if room > weights.output_bytes
        else 0
    )


def fallen_back(placement: Placement) -> Placement:
    """Return the placement on the processor after loading on the device failed."""
    reason = (
        f"{placement.reason}; it could not be loaded there, so it runs on the processor"
    )
    return replace(placement, backend="CPU", device="CPU", gpu_layers=0, reason=reason)
