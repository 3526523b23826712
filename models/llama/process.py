"""What runs in the process of a GGUF model: reads its arguments, sets its memory limit, picks its engine.

Started by `models/worker.py`, never imported by the server. Not for: llama.cpp itself (`models/llama/native.py`).
"""

import json

from models.llama.decode import Decoder
from models.llama.encode import Encoder
from models.llama.native import Native
from models.llama.placement import Plan, Weights
from models.pipe import Engine, serve

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]  # the one use looks for it


def main(text: str) -> None:
    """Serve the model that the JSON `text` names until stdin ends or nothing is asked for long.

    Args:
        text: `path`, and the fields of a `Plan` and of `Weights`, as `models/llama/model.py` writes them;
            `idle_seconds` and `memory_bytes` (most address space, or null) of the worker's `Limits`.
    """
    arguments = json.loads(text)
    bound = arguments["memory_bytes"]
    if bound is not None and resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))

    def load(cancelled: set[int]) -> Engine:
        plan = Plan(**arguments["plan"])
        native = Native(arguments["path"], weights=Weights(**arguments["weights"]), plan=plan, cancelled=cancelled)
        return Decoder(native) if plan.role == "generator" else Encoder(native)

    serve(load, idle_seconds=arguments["idle_seconds"])
