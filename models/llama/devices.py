"""The devices that a build of llama.cpp offers, and the placement of a model on them. Not for: the choice's arithmetic.

Imported only in a model's own process, by `models/llama/native.py`.
"""

import ctypes
import os
import re
from typing import Final

import llama_cpp
from llama_cpp._ggml import libggml

from models.llama.placement import Device, Placement, Weights, chosen_device, place

GPU_KINDS: Final = (1, 2)
"""Kinds of ggml devices that are a GPU, with memory of its own or the processor's."""
INTEGRATED: Final = 2
NO_GPU: Final = frozenset({"CPU", "BLAS", "RPC"})
"""Backends that never have a GPU of this machine."""

Handles = ctypes.Array[ctypes.c_void_p]
"""Devices as llama.cpp takes them: pointers with a null one at the end."""


def placed(weights: Weights) -> tuple[Placement, Handles]:
    """Return where a model of these sizes goes on this machine, by what the build offers and is free now.

    With it, the one device to name to llama.cpp, or none: by itself it spreads over all cards, whose free memory the
    choice did not count, and computes long prompts on a card that was found too full.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    llama_cpp.llama_supports_gpu_offload()  # loads the backends of a build that keeps them in files
    _declare()
    found = _devices()
    devices = [device for device, _ in found]
    placement = place(weights, devices, backends=_backends(), cores=cores)
    if placement.gpu_layers == 0:
        return placement, handles()
    return placement, handles(found[devices.index(chosen_device(devices))][1])


def handles(*pointers: ctypes.c_void_p) -> Handles:
    """Return the pointers as llama.cpp takes them; without any, it computes on the processor alone."""
    return (ctypes.c_void_p * (len(pointers) + 1))(*pointers, None)


def _declare() -> None:
    """Tell ctypes what these functions return, which the bindings do not wrap."""
    for name, result in (
        ("ggml_backend_dev_count", ctypes.c_size_t),
        ("ggml_backend_dev_get", ctypes.c_void_p),
        ("ggml_backend_dev_type", ctypes.c_int),
        ("ggml_backend_dev_description", ctypes.c_char_p),
        ("ggml_backend_dev_name", ctypes.c_char_p),
        ("ggml_backend_dev_memory", None),
        ("ggml_backend_reg_count", ctypes.c_size_t),
        ("ggml_backend_reg_get", ctypes.c_void_p),
        ("ggml_backend_reg_name", ctypes.c_char_p),
    ):
        getattr(libggml, name).restype = result


def _backends() -> list[str]:
    """Return the names of the backends that may have a GPU; those whose driver is missing are not among them."""
    found = []
    for number in range(libggml.ggml_backend_reg_count()):
        backend = ctypes.c_void_p(libggml.ggml_backend_reg_get(ctypes.c_size_t(number)))
        found.append(libggml.ggml_backend_reg_name(backend).decode("utf-8", "replace"))
    return [name for name in found if name not in NO_GPU]


def _devices() -> list[tuple[Device, ctypes.c_void_p]]:
    """Return ggml's devices that are no processor, and the pointer to each."""
    found = []
    for number in range(libggml.ggml_backend_dev_count()):
        device = ctypes.c_void_p(libggml.ggml_backend_dev_get(ctypes.c_size_t(number)))
        kind = libggml.ggml_backend_dev_type(device)
        if kind not in GPU_KINDS:
            continue
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        libggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
        backend = libggml.ggml_backend_dev_name(device).decode("utf-8", "replace")
        told = libggml.ggml_backend_dev_description(device).decode("utf-8", "replace")
        named = Device(re.sub(r"\d+$", "", backend), told, free.value, integrated=kind == INTEGRATED)
        found.append((named, device))
    return found
