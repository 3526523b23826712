"""The devices that a build of llama.cpp offers, and the placement of a model on them. Not for: the choice's arithmetic.

Imported only in a model's own process, by `models/llama_native.py`.
"""

import ctypes
import os
import re
from typing import Final

import llama_cpp
from llama_cpp._ggml import libggml

from models.placement import Device, Placement, Weights, place

GPU_KINDS: Final = (1, 2)
"""Kinds of ggml devices that are a GPU, with memory of its own or the processor's."""


def placed(weights: Weights) -> Placement:
    """Return where a model of these sizes goes on this machine, by what the build offers and is free now."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    offload = bool(llama_cpp.llama_supports_gpu_offload())
    return place(weights, _devices() if offload else [], supports_offload=offload, cores=cores)


def _devices() -> list[Device]:
    """Return ggml's devices that are no processor; the bindings do not wrap these five functions."""
    for name, result in (
        ("ggml_backend_dev_count", ctypes.c_size_t),
        ("ggml_backend_dev_get", ctypes.c_void_p),
        ("ggml_backend_dev_type", ctypes.c_int),
        ("ggml_backend_dev_description", ctypes.c_char_p),
        ("ggml_backend_dev_name", ctypes.c_char_p),
        ("ggml_backend_dev_memory", None),
    ):
        getattr(libggml, name).restype = result
    found = []
    for number in range(libggml.ggml_backend_dev_count()):
        device = ctypes.c_void_p(libggml.ggml_backend_dev_get(ctypes.c_size_t(number)))
        if libggml.ggml_backend_dev_type(device) not in GPU_KINDS:
            continue
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        libggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
        backend = libggml.ggml_backend_dev_name(device).decode("utf-8", "replace")
        told = libggml.ggml_backend_dev_description(device).decode("utf-8", "replace")
        found.append(Device(re.sub(r"\d+$", "", backend), told, free.value))
    return found
