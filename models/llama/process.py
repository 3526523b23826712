"""What runs in the process of a GGUF model: reads its arguments, sets its memory limit, picks its engine.

Started by `models/worker.py`, never imported by the server. Not for: llama.cpp itself (`models/llama/native.py`).
"""

import json
from typing import TypedDict

from models.llama.decode import Decoder
from models.llama.encode import Encoder
from models.llama.native import Native, Plan
from models.llama.placement import Weights
from models.pipe import Engine, serve

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]  # the one place that looks is beside its use

DECODER_BATCH = 512
"""Tokens of a generator's batch: llama.cpp's own micro-batch."""
SEQUENCES = 256
"""Sequences of a generator's context, llama.cpp's largest number; they share the cells."""
TEXTS = 64
"""Texts of one batch."""


class Arguments(TypedDict):
    """What `models/llama/model.py` says of a model."""

    path: str
    role: str
    context: int
    width: int
    """Numbers that come out for a text."""
    weights: tuple[int, int, int, int]
    """Layers, bytes of the file, of the whole context, of the output layer."""
    wide: bool
    """Whether keys and values are kept as 32-bit floats."""
    idle_seconds: float
    memory_bytes: int | None


def main(text: str) -> None:
    """Serve the model that the JSON `text` (see `Arguments`) names until stdin ends or nothing is asked for long."""
    arguments: Arguments = json.loads(text)
    bound = arguments["memory_bytes"]
    if bound is not None and resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    serve(lambda cancelled: _engine(arguments, cancelled), idle_seconds=arguments["idle_seconds"])


def _engine(arguments: Arguments, cancelled: set[int]) -> Engine:
    role, context = arguments["role"], arguments["context"]
    running: set[int] = set()
    if role == "generator":
        plan = Plan(context, min(DECODER_BATCH, context), SEQUENCES, wide=arguments["wide"])
    else:
        plan = Plan(context, context, TEXTS, embeddings=True, ranks=role == "reranker")

    def stopped() -> bool:
        return bool(running) and running <= cancelled

    native = Native(arguments["path"], weights=Weights(*arguments["weights"]), plan=plan, stopped=stopped)
    if role == "generator":
        return Decoder(native, cancelled=cancelled, running=running)
    return Encoder(
        native,
        "reranker" if role == "reranker" else "embedder",
        arguments["width"],
        cancelled=cancelled,
        running=running,
    )
