"""Models of other shapes than the real weights beside the tests have: random, small, with the
vocabulary of a real one.

What they answer means nothing; that it is the same however it is computed is what tests look at.
"""

import importlib
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Shape = Literal["mamba", "jamba", "gemma3"]
"""A state alone; a state and attention by turns; attention that sees the last `WINDOW` tokens."""
Floats = NDArray[np.float64]

WIDTH: Final = 64
LAYERS: Final = 2
INNER: Final = 128
HEADS: Final = 4
STATE: Final = 8
RANK: Final = 4
KERNEL: Final = 4
WINDOW: Final = 8


def write_model(shape: Shape, source: Path, target: Path) -> None:
    """Write a GGUF file of `shape` with random weights and the vocabulary of the file `source`."""
    gguf = importlib.import_module("gguf")
    fields = gguf.GGUFReader(source).fields
    writer = gguf.GGUFWriter(target, shape)
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_layer_norm_rms_eps(1e-5)
    attends = shape != "mamba"
    writer.add_feed_forward_length(INNER if attends else 0)
    writer.add_head_count(HEADS if attends else 0)
    if shape == "gemma3":
        writer.add_head_count_kv(HEADS)
        writer.add_sliding_window(WINDOW)
    else:
        writer.add_ssm_conv_kernel(KERNEL)
        writer.add_ssm_inner_size(INNER)
        writer.add_ssm_state_size(STATE)
        writer.add_ssm_time_step_rank(RANK)
    if shape == "jamba":
        writer.add_head_count_kv([0, HEADS] * (LAYERS // 2))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(fields["tokenizer.ggml.tokens"].contents())
    writer.add_token_scores(fields["tokenizer.ggml.scores"].contents())
    writer.add_token_types(fields["tokenizer.ggml.token_type"].contents())
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, values in _tensors(shape).items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(shape: Shape) -> dict[str, Floats]:
    chance = np.random.default_rng(7)
    tensors: dict[str, Floats] = {
        "output_norm.weight": np.ones(WIDTH),
        "token_embd.weight": chance.normal(0, 1, (512, WIDTH)),
    }
    for number in range(LAYERS):
        parts = {"attn_norm": np.ones(WIDTH)}
        if shape != "mamba":
            parts |= {"ffn_norm": np.ones(WIDTH), "ffn_down": _drawn(chance, WIDTH, INNER)}
            parts |= {f"ffn_{name}": _drawn(chance, INNER, WIDTH) for name in ("gate", "up")}
        if shape == "gemma3":
            parts |= {f"post_{name}_norm": np.ones(WIDTH) for name in ("attention", "ffw")}
            parts |= {f"attn_{name}_norm": np.ones(WIDTH // HEADS) for name in ("q", "k")}
        if shape == "gemma3" or (shape == "jamba" and number % 2):
            parts |= {
                f"attn_{name}": _drawn(chance, WIDTH, WIDTH) for name in ("q", "k", "v", "output")
            }
        else:
            parts |= _state(chance, normed=shape == "jamba")
        for name, values in parts.items():
            plain = name in {"ssm_a", "ssm_d"} or name.endswith(".bias")
            tensors[f"blk.{number}.{name}{'' if plain else '.weight'}"] = values
    return tensors


def _state(chance: np.random.Generator, *, normed: bool) -> dict[str, Floats]:
    shapes = {"in": (2 * INNER, WIDTH), "conv1d": (INNER, KERNEL), "x": (RANK + 2 * STATE, INNER)}
    shapes |= {"dt": (INNER, RANK), "out": (WIDTH, INNER)}
    parts = {f"ssm_{name}": _drawn(chance, *shape) for name, shape in shapes.items()}
    parts |= {"ssm_conv1d.bias": np.zeros(INNER), "ssm_dt.bias": np.full(INNER, -3.0)}
    parts |= {"ssm_a": -np.tile(np.arange(1.0, STATE + 1), (INNER, 1)), "ssm_d": np.ones(INNER)}
    if normed:
        parts |= {
            f"ssm_{name}_norm": np.ones(size)
            for name, size in {"dt": RANK, "b": STATE, "c": STATE}.items()
        }
    return parts


def _drawn(chance: np.random.Generator, rows: int, columns: int) -> Floats:
    return chance.normal(0, columns**-0.5, (rows, columns))
