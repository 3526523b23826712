"""What runs in the process of a GGUF model: reads its arguments, picks its engine.

Started by `models/worker.py`, never imported by the server. Not for: llama.cpp itself
(`models/llama/native.py`).
"""

import json

from models.llama.decode import Decoder
from models.llama.encode import Encoder
from models.llama.native import Native
from models.llama.placement import Plan, Weights
from models.pipe import Engine, serve
from models.tuning import Tuning


def main(text: str) -> None:
    """Serve the model that the JSON `text` of `models/llama/model.py` and the worker's
    `Limits` describes."""
    arguments = json.loads(text)

    def load(cancelled: set[int]) -> Engine:
        plan = Plan(
            **{**arguments["plan"], "tuning": Tuning.of(arguments["plan"]["tuning"])}
        )
        native = Native(
            arguments["path"],
            weights=Weights(**arguments["weights"]),
            plan=plan,
            cancelled=cancelled,
        )
        return Decoder(native) if plan.role == "generator" else Encoder(native)

    serve(
        load,
        idle_seconds=arguments["idle_seconds"],
        memory_bytes=arguments["memory_bytes"],
    )
