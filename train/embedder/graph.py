"""The ONNX graphs of a BERT sentence encoder and of a cross-encoder on it, written node
by node from their weights.

Two forms: float32, as the reference, and 8 bits. In the 8-bit form a weight matrix has
one scale per column and an activation one scale per token, computed at run time. So a
text's vector does not depend on its batch, as it would with one scale for the whole
batch. A few channels of the hidden state are far larger than the others and would take
all the steps; part of their size is moved into the weights first (SmoothQuant, arXiv
2211.10438, §4). Needs the packages `onnx` and numpy; only what makes a model reads this
file. Not for: running a model (`models/onnx.py`).

The 8-bit form may lie in the file in 4 bits (`packed`): blocks of 32 weights with one
float16 scale each, which is llama.cpp's Q4_0. Matrices become bytes when a model is
loaded (`models/onnx.py`), and a run costs what it costs in 8 bits; the runtime could
fold them by itself, and keeps every step of it, a gigabyte. The word table stays
packed, and the rows of a text are unpacked. Weights that come out of Q4_0 lose nothing
by it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[np.generic]
Weights = Mapping[str, NDArray[np.float32]]
Peaks = Mapping[str, NDArray[np.float32]]
"""For each linear layer by name, the largest absolute value that each input channel
takes on sample texts [columns]."""

MICROSOFT: Final = "com.microsoft"
"""Domain of the runtime's own operators: fused attention, GELU, and the integer product
with a float result."""
LEVELS: Final = int(np.iinfo(np.int8).max)
"""Steps each side of zero in 8 bits, symmetric."""
MIGRATED: Final = 0.7
"""Share (as an exponent) of a channel's size that moves into the weights. Mean and
least cosine on the 200 texts: without 0.9955, 0.974; 0.5 0.9981, 0.990; 0.7 0.9984,
0.992. With the second product of the feed-forward eased too, 0.9975."""
EASED: Final = ("qkv", "intermediate.dense")
BLOCK: Final = 32
"""Weights that share a scale in 4 bits."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Measures of the encoder: layers, attention heads, width, and how many positions
    are kept; `packed` says that 8 bits are stored in 4, and of the word table only the
    first `fine` rows: the others in 2."""

    layers: int = 6
    heads: int = 12
    width: int = 384
    positions: int = 256
    packed: bool = False
    fine: int = 0


class _Graph:
    """Nodes and initialisers in the making; every method adds nodes and returns the
    name of a tensor."""

    def __init__(
        self, weights: Weights, peaks: Peaks | None, *, packed: bool = False
    ) -> None:
        self.weights = weights
        self.packed = packed
        self.peaks = peaks
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.linear_inputs: dict[str, str] = {}
        self.matrices: dict[str, tuple[Array, ...]] = {}

    def constant(self, name: str, value: Array) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(
                np.ascontiguousarray(value).reshape(value.shape), name
            )
        return name

    def number(self, value: float) -> str:
        return self.constant(f"float_{value!r}", np.array(value, dtype=np.float32))

    def axes(self, *values: int) -> str:
        return self.constant(
            "axes_" + "_".join(map(str, values)), np.array(values, dtype=np.int64)
        )

    def add(
        self,
        operator: str,
        inputs: list[str],
        *,
        output: str = "",
        domain: str = "",
        **attributes: object,
    ) -> str:
        name = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(
                operator, inputs, [name], name=name, domain=domain, **attributes
            )
        )
        return name

    def split(self, tensor: str, parts: int) -> list[str]:
        names = [f"Split_{len(self.nodes)}_{part}" for part in range(parts)]
        self.nodes.append(
            helper.make_node(
                "Split", [tensor], names, axis=2, num_outputs=parts, name=names[0]
            )
        )
        return names


def build_graph(
    weights: Weights,
    shape: Shape,
    *,
    peaks: Peaks | None = None,
    probe: bool = False,
    matrices: dict[str, tuple[Array, ...]] | None = None,
) -> onnx.ModelProto:
    """Return the model: `input_ids`, `attention_mask` int64 [b, s] → `embedding`
    float32 [b, width], unit length.

    Embeddings, layers, mean over the tokens of the mask, L2 normalisation. `weights`
    has the names of BertModel. Float32 without `peaks`, 8 bits with them. With `probe`,
    the inputs of the linear layers are outputs too, by name. `matrices` gets the packed
    form of each matrix by the name of its bytes: `packed`, scales of blocks, easing of
    columns, scales of rows."""
    graph = _Graph(weights, peaks, packed=shape.packed)
    _pooling(graph, _encoder(graph, shape))
    if matrices is not None:
        matrices.update(graph.matrices)
    return _model(
        graph,
        ("input_ids", "attention_mask"),
        {"embedding": ("batch", shape.width)},
        probe=probe,
    )


def build_reader(
    weights: Weights, shape: Shape, *, peaks: Peaks | None = None, probe: bool = False
) -> onnx.ModelProto:
    """Return the cross-encoder that `models/onnx.py` runs; `peaks` and `probe` as in
    `build_graph`.

    `input_ids`, `attention_mask`, `token_type_ids` int64 [b, s] → `hidden` and `tokens`
    float32 [b, s, width], `answer` [b] (a logit), and `head` [3 width + 1], a constant:
    weights of a sentence's mean, maximum and nearness, and a bias."""
    graph = _Graph(weights, peaks, packed=shape.packed)
    hidden = _encoder(graph, shape, typed=True)
    graph.add("Identity", [hidden], output="hidden")
    graph.add(
        "Gelu",
        [_named_linear(graph, "reader.token", hidden)],
        domain=MICROSOFT,
        output="tokens",
    )
    # One token a window: 8 bits would save no time here.
    first = graph.add(
        "Squeeze",
        [
            graph.add("Slice", [hidden, *(graph.axes(n) for n in (0, 1, 1))]),
            graph.axes(1),
        ],
    )
    for name in ("reader.pool", "reader.answer"):
        matrix = graph.constant(f"{name}.weight", weights[f"{name}.weight"].T)
        bias = graph.constant(f"{name}.bias", weights[f"{name}.bias"])
        last = graph.add("Add", [graph.add("MatMul", [first, matrix]), bias])
        first = graph.add("Tanh", [last])
    graph.add("Squeeze", [last, graph.axes(1)], output="answer")
    head = np.concatenate(
        [
            weights[f"reader.{name}"].ravel()
            for name in ("keep.weight", "near", "keep.bias")
        ]
    )
    graph.add("Identity", [graph.constant("head.constant", head)], output="head")
    token = ("batch", "tokens", shape.width)
    outputs = {
        "hidden": token,
        "tokens": token,
        "answer": ("batch",),
        "head": (len(head),),
    }
    return _model(
        graph, ("input_ids", "attention_mask", "token_type_ids"), outputs, probe=probe
    )


def _encoder(graph: _Graph, shape: Shape, *, typed: bool = False) -> str:
    hidden = _embeddings(graph, shape, typed=typed)
    mask = graph.add("Cast", ["attention_mask"], to=onnx.TensorProto.INT32)
    for layer in range(shape.layers):
        hidden = _layer(graph, f"encoder.layer.{layer}.", (hidden, mask), shape)
    return hidden


def _model(
    graph: _Graph,
    inputs: Sequence[str],
    outputs: Mapping[str, Sequence[str | int]],
    *,
    probe: bool,
) -> onnx.ModelProto:
    taken = [
        helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["batch", "tokens"])
        for name in inputs
    ]
    given = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, size)
        for name, size in outputs.items()
    ]
    for name, tensor in graph.linear_inputs.items() if probe else ():
        given.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
        graph.add("Identity", [tensor], output=name)
    body = helper.make_graph(
        graph.nodes, "encoder", taken, given, list(graph.constants.values())
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(
        body, opset_imports=opsets, ir_version=9, producer_name="winnow"
    )


def quantise_rows(
    matrix: NDArray[np.float32],
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return 8-bit rows and the scale of each [rows]: row = scale * bytes, within half
    a step."""
    scale = np.maximum(np.abs(matrix).max(axis=1), np.float32(1e-12)) / np.float32(
        LEVELS
    )
    rounded = np.round(matrix / scale[:, None]).clip(-LEVELS, LEVELS)
    return rounded.astype(np.int8), scale.astype(np.float32)


def _embeddings(graph: _Graph, shape: Shape, *, typed: bool) -> str:
    table = graph.weights["embeddings.word_embeddings.weight"]
    if graph.peaks is not None and graph.packed:
        words = _packed_rows(graph, table, shape.fine)
    elif graph.peaks is not None:
        rows, scale = quantise_rows(table)
        words = graph.add(
            "Gather", [graph.constant("words", rows), "input_ids"], axis=0
        )
        words = graph.add("Cast", [words], to=onnx.TensorProto.FLOAT)
        scales = graph.add(
            "Gather",
            [graph.constant("words.scale", scale[:, None]), "input_ids"],
            axis=0,
        )
        words = graph.add("Mul", [words, scales])
    else:
        words = graph.add(
            "Gather", [graph.constant("words", table), "input_ids"], axis=0
        )
    # The vector of type 0 joins the positions; a reader's second part has the difference to type 1
    # added.
    kinds = graph.weights["embeddings.token_type_embeddings.weight"]
    places = (
        graph.weights["embeddings.position_embeddings.weight"][: shape.positions]
        + kinds[0]
    )
    length = graph.add("Shape", ["input_ids"], start=1, end=2)
    positions = graph.add(
        "Slice",
        [graph.constant("positions", places), graph.axes(0), length, graph.axes(0)],
    )
    summed = graph.add("Add", [words, positions])
    if typed:
        second = graph.add("Cast", ["token_type_ids"], to=onnx.TensorProto.FLOAT)
        second = graph.add("Unsqueeze", [second, graph.axes(2)])
        added = graph.add(
            "Mul", [second, graph.constant("second", kinds[1] - kinds[0])]
        )
        summed = graph.add("Add", [summed, added])
    return _norm(graph, "embeddings.LayerNorm", summed)


def quantise_blocks(
    matrix: NDArray[np.float32],
) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Return rows in 4 bits [rows, columns / 2] and the scale of each block [rows,
    columns / 32].

    A block's byte holds weight n in its low half and weight n + 16 in its high one;
    weight = scale * (half - 8). The largest weight of a block is -8 of its scales."""
    rows, columns = matrix.shape
    blocks = matrix.reshape(rows, columns // BLOCK, BLOCK)
    largest = np.take_along_axis(
        blocks, np.abs(blocks).argmax(axis=2)[:, :, None], axis=2
    )
    scales = (largest / np.float32(-8)).astype(np.float16)
    divisor = np.where(scales == 0, np.float32(1), scales.astype(np.float32))
    halves = (np.round(blocks / divisor) + 8).clip(0, 15).astype(np.uint8)
    packed = halves[:, :, : BLOCK // 2] | (halves[:, :, BLOCK // 2 :] << 4)
    return packed.astype(np.uint8).reshape(rows, columns // 2), scales[:, :, 0]


def quantise_coarse(
    matrix: NDArray[np.float32],
) -> tuple[NDArray[np.uint8], NDArray[np.float16], NDArray[np.float32]]:
    """Return rows in 2 bits [rows, columns / 4], the scale of each, and that of each
    column.

    Byte n of a row holds weights n, n + columns / 4, … from its low bits on; weight =
    scale of the row * scale of the column * (bits - 1.5)."""
    columns = matrix.std(axis=0)
    even = matrix / columns
    # The step at which four even levels are nearest to a normal distribution.
    rows = even.std(axis=1, keepdims=True) * np.float32(0.9957)
    bits = np.floor(even / rows + 2).clip(0, 3).astype(np.uint8)
    levels = bits - np.float32(1.5)
    rows = (even * levels).sum(axis=1) / (levels * levels).sum(axis=1)
    parts = np.split(bits, 4, axis=1)
    packed = parts[0] | parts[1] << 2 | parts[2] << 4 | parts[3] << 6
    return packed.astype(np.uint8), rows[:, None].astype(np.float16), columns


def _packed_rows(graph: _Graph, table: NDArray[np.float32], fine: int) -> str:
    """Return the float32 rows of a packed table that `input_ids` name: the first `fine`
    from 4 bits, the others from 2."""
    packed, scales = quantise_blocks(table[:fine])
    ids = graph.add(
        "Min", ["input_ids", graph.constant("last_fine", np.array(fine - 1))]
    )
    rows = graph.add("Gather", [graph.constant("words", packed), ids], axis=0)
    scale = graph.add("Gather", [graph.constant("words.scale", scales), ids], axis=0)
    words = _unpacked(graph, rows, scale, places=2)
    if fine == len(table):
        return words
    begin = graph.constant("coarse_begin", np.array(fine))
    ids = graph.add("Sub", [graph.add("Max", ["input_ids", begin]), begin])
    is_fine = graph.add("Less", ["input_ids", begin])
    is_fine = graph.add("Unsqueeze", [is_fine, graph.axes(-1)])
    return graph.add("Where", [is_fine, words, _coarse_rows(graph, table[fine:], ids)])


def _coarse_rows(graph: _Graph, table: NDArray[np.float32], ids: str) -> str:
    packed, scales, columns = quantise_coarse(table)
    rows = graph.add("Gather", [graph.constant("rare", packed), ids], axis=0)
    three = graph.constant("three", np.array(3, dtype=np.uint8))
    parts: list[str] = []
    for bit in (0, 2, 4, 6):
        by = graph.constant(f"by_{bit}", np.array(bit, dtype=np.uint8))
        shifted = graph.add("BitShift", [rows, by], direction="RIGHT")
        parts.append(graph.add("BitwiseAnd", [shifted, three]))
    bits = graph.add(
        "Cast", [graph.add("Concat", parts, axis=-1)], to=onnx.TensorProto.FLOAT
    )
    levels = graph.add("Sub", [bits, graph.number(1.5)])
    scale = graph.add("Gather", [graph.constant("rare.scale", scales), ids], axis=0)
    scale = graph.add("Cast", [scale], to=onnx.TensorProto.FLOAT)
    by_row = graph.add("Mul", [levels, scale])
    return graph.add("Mul", [by_row, graph.constant("rare.columns", columns)])


def _unpacked(graph: _Graph, packed: str, scales: str, *, places: int) -> str:
    """Return float32 weights from 4 bits; rows lie in so many `places`."""
    same = [0] * places
    shape = np.array([*same, -1, BLOCK // 2], dtype=np.int64)
    halves = graph.add("Reshape", [packed, graph.constant(f"halves_{places}", shape)])
    four = graph.constant("four", np.array(4, dtype=np.uint8))
    low = graph.add(
        "BitwiseAnd", [halves, graph.constant("low", np.array(15, dtype=np.uint8))]
    )
    high = graph.add("BitShift", [halves, four], direction="RIGHT")
    steps = graph.add("Concat", [low, high], axis=-1)
    steps = graph.add(
        "Sub",
        [graph.add("Cast", [steps], to=onnx.TensorProto.FLOAT), graph.number(8.0)],
    )
    scale = graph.add("Cast", [scales], to=onnx.TensorProto.FLOAT)
    scaled = graph.add("Mul", [steps, graph.add("Unsqueeze", [scale, graph.axes(-1)])])
    whole = graph.constant(f"whole_{places}", np.array([*same, -1], dtype=np.int64))
    return graph.add("Reshape", [scaled, whole])


def _layer(graph: _Graph, prefix: str, tensors: tuple[str, str], shape: Shape) -> str:
    hidden, mask = tensors
    own = [f"{prefix}attention.self.{name}" for name in ("query", "key", "value")]
    weight = np.concatenate([graph.weights[f"{name}.weight"] for name in own])
    bias = np.concatenate([graph.weights[f"{name}.bias"] for name in own])
    query, key, value = graph.split(
        _linear(graph, f"{prefix}qkv", hidden, (weight, bias)), 3
    )
    context = graph.add(
        "MultiHeadAttention",
        [query, key, value, "", mask],
        domain=MICROSOFT,
        num_heads=shape.heads,
    )
    context = _named_linear(graph, f"{prefix}attention.output.dense", context)
    hidden = _norm(
        graph,
        f"{prefix}attention.output.LayerNorm",
        graph.add("Add", [context, hidden]),
    )
    inner = _named_linear(graph, f"{prefix}intermediate.dense", hidden)
    inner = _named_linear(
        graph, f"{prefix}output.dense", graph.add("Gelu", [inner], domain=MICROSOFT)
    )
    return _norm(graph, f"{prefix}output.LayerNorm", graph.add("Add", [inner, hidden]))


def _norm(graph: _Graph, name: str, tensor: str) -> str:
    scale = graph.constant(f"{name}.weight", graph.weights[f"{name}.weight"])
    bias = graph.constant(f"{name}.bias", graph.weights[f"{name}.bias"])
    return graph.add(
        "LayerNormalization", [tensor, scale, bias], axis=-1, epsilon=1e-12
    )


def _named_linear(graph: _Graph, name: str, tensor: str) -> str:
    return _linear(
        graph,
        name,
        tensor,
        (graph.weights[f"{name}.weight"], graph.weights[f"{name}.bias"]),
    )


def _linear(
    graph: _Graph,
    name: str,
    tensor: str,
    parameters: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> str:
    """Add tensor @ weight.T + bias, in float32 or in 8 bits."""
    weight, bias = parameters
    graph.linear_inputs[name] = tensor
    if graph.peaks is None:
        product = graph.add(
            "MatMul", [tensor, graph.constant(f"{name}.weight", weight.T)]
        )
    else:
        easing = np.ones(weight.shape[1], dtype=np.float32)
        if name.endswith(EASED):
            easing = _easing(weight, graph.peaks[name])
            tensor = graph.add(
                "Mul",
                [tensor, graph.constant(f"{name}.easing", np.float32(1) / easing)],
            )
        product = _product_8bit(graph, name, tensor, (weight, easing))
    return graph.add("Add", [product, graph.constant(f"{name}.bias", bias)])


def _easing(
    weight: NDArray[np.float32], peaks: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return what each input channel is divided by and its weights are multiplied with;
    geometric mean 1."""
    largest = np.maximum(np.abs(weight).max(axis=0), 1e-6)
    raw = np.maximum(peaks, 1e-6) ** MIGRATED / largest ** (1 - MIGRATED)
    return np.asarray(raw / np.exp(np.log(raw).mean()), dtype=np.float32)


def _product_8bit(
    graph: _Graph,
    name: str,
    tensor: str,
    parameters: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> str:
    weight, easing = parameters
    columns, scale = quantise_rows(weight * easing)
    if graph.packed:
        graph.matrices[f"{name}.bytes"] = (*quantise_blocks(weight), easing, scale)
    # Activations are unsigned bytes about 128: unsigned by signed is the fast integer product on
    # x86.
    zero = graph.constant("zero_u8", np.array(LEVELS + 1, dtype=np.uint8))
    largest = graph.add(
        "ReduceMax", [graph.add("Abs", [tensor]), graph.axes(-1)], keepdims=1
    )
    step = graph.add("Mul", [largest, graph.number(1 / LEVELS)])
    # Rounded and clipped by QuantizeLinear; the step of each token was divided out before.
    rounded = graph.add(
        "QuantizeLinear", [graph.add("Div", [tensor, step]), graph.number(1.0), zero]
    )
    factors = [
        rounded,
        graph.constant(f"{name}.bytes", columns.T),
        graph.number(1.0),
        graph.constant(f"{name}.scale", scale),
        zero,
        graph.constant(f"zero_s8_{len(scale)}", np.zeros(len(scale), dtype=np.int8)),
    ]
    return graph.add(
        "Mul", [graph.add("MatMulIntegerToFloat", factors, domain=MICROSOFT), step]
    )


def _pooling(graph: _Graph, hidden: str) -> None:
    mask = graph.add("Cast", ["attention_mask"], to=onnx.TensorProto.FLOAT)
    summed = graph.add(
        "MatMul", [graph.add("Unsqueeze", [mask, graph.axes(1)]), hidden]
    )
    summed = graph.add("Squeeze", [summed, graph.axes(1)])
    # The mean and the sum have the same direction, and only the direction is kept.
    length = graph.add("ReduceL2", [summed, graph.axes(1)], keepdims=1)
    graph.add("Div", [summed, length], output="embedding")
