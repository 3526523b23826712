"""Writing a tuned model as a GGUF file: everything of the base's file but the weights,
in the precision asked for.

Not for: reading one (transformers does), or models whose layers are not Llama's.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import gguf
import numpy as np
from llama_cpp import llama_cpp
from numpy.typing import NDArray

from errors import ModelError

Quantized = Literal["f16", "q8_0", "q4_k"]
Weights = Mapping[str, NDArray[np.float32]]
_LAYER: Final = re.compile(r"blk\.(\d+)\.(\w+)\.weight")
_NAMES: Final = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_OUTER: Final = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_OWN: Final = ("GGUF.", "general.file_type", "general.quantization_version")
"""Fields that the writer makes itself."""


def tuned_gguf(
    base: Path,
    weights: Weights,
    path: Path,
    heads: tuple[int, int],
    quantized: Quantized,
) -> str:
    """Write `weights` with the other content of `base` to `path`; return the file's
    SHA-256.

    Args:
        base: GGUF file of the model that was tuned.
        weights: By transformers' names.
        path: Output file, overwritten.
        heads: Attention heads, and heads of keys and values.
        quantized: q4_k is made of q8_0 by llama.cpp's own quantizer.
    """
    plain = path.with_suffix(".q8_0.part") if quantized == "q4_k" else path
    kind = (
        gguf.GGMLQuantizationType.F16
        if quantized == "f16"
        else gguf.GGMLQuantizationType.Q8_0
    )
    _write(gguf.GGUFReader(base), weights, plain, heads, kind)
    if quantized == "q4_k":
        settings = llama_cpp.llama_model_quantize_default_params()
        settings.ftype, settings.allow_requantize = (
            llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M,
            True,
        )
        if failed := llama_cpp.llama_model_quantize(
            str(plain).encode(), str(path).encode(), settings
        ):
            raise ModelError(
                f"llama.cpp did not quantize {plain.name} ({failed}).",
                hint="Use --quantized q8_0.",
            )
        plain.unlink()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write(
    base: Any,
    weights: Weights,
    path: Path,
    heads: tuple[int, int],
    kind: gguf.GGMLQuantizationType,
) -> None:
    writer = gguf.GGUFWriter(
        path, str(base.get_field("general.architecture").contents())
    )
    for field in base.fields.values():
        if not field.name.startswith(_OWN) and field.name != "general.architecture":
            sub = (
                field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            )
            writer.add_key_value(field.name, field.contents(), field.types[0], sub)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_file_type(
        gguf.LlamaFileType.MOSTLY_F16
        if kind.name == "F16"
        else gguf.LlamaFileType.MOSTLY_Q8_0
    )
    for tensor in base.tensors:
        values = _values(tensor.name, weights, heads)
        # Norms are vectors, which stay as they are.
        made = kind if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(
            tensor.name, gguf.quants.quantize(values, made), raw_dtype=made
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _values(name: str, weights: Weights, heads: tuple[int, int]) -> NDArray[np.float32]:
    if name in _OUTER:
        return weights[_OUTER[name]]
    layer = _LAYER.fullmatch(name)
    if layer is None or layer[2] not in _NAMES:
        raise ModelError(
            f"{name} is not a tensor of a Llama model.",
            hint="Convert it with llama.cpp's own script.",
        )
    values = weights[f"model.layers.{layer[1]}.{_NAMES[layer[2]]}.weight"]
    count = {"attn_q": heads[0], "attn_k": heads[1]}.get(layer[2])
    # Rotary positions pair rows i and i + half in transformers, neighbours in llama.cpp.
    return values if count is None else _paired(values, count)


def _paired(values: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    rows, width = values.shape
    return (
        values.reshape(count, 2, rows // count // 2, width)
        .swapaxes(1, 2)
        .reshape(rows, width)
    )
