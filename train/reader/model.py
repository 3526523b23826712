"""The reader in torch: BERT's forward pass with two heads, on a plain dictionary of tensors.

Tensors have the names that the graph writer knows (BertModel's, and `reader.*` for the heads), so
that a checkpoint is exported as it is. No dropout. Not for: choosing windows (`draw.py`), or
reading in the product (`models/onnx.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from models.onnx import Encoded, padded

Tensors: TypeAlias = dict[str, Tensor]
LAYERS, HEADS, WIDTH = 6, 12, 384
FROZEN_LAYERS: Final = 2
"""The lowest ones stay MiniLM's, as do the embedding tables: 1.3 times the speed, and nothing was
lost by it."""
WIDTHS: Final = 16
"""A batch's width is a multiple of this: with more different sizes the allocator's heap fell to
pieces (7 GB)."""
NEAR: Final = 6.0
"""Weight of a channel's product of question and sentence at the beginning: the embedder's cosine,
from which the heads learn on; its bias of -4.5 makes few sentences likely."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows side by side."""

    ids: Tensor
    types: Tensor
    lengths: Tensor
    owner: Tensor
    """For each token [b, s] the number of its sentence through the whole batch, -1 for none."""
    window: Tensor
    """For each sentence the number of its window."""


def make_batch(windows: Sequence[Encoded]) -> Batch:
    """Return windows as one padded batch."""
    ids, mask = (
        np.pad(table, ((0, 0), (0, -table.shape[1] % WIDTHS)))
        for table in padded([one.ids for one in windows])
    )
    types, owner = mask.copy(), np.full_like(ids, -1)
    of: list[int] = []
    for row, window in enumerate(windows):
        types[row, : window.asked] = 0
        count = len(window.starts) - 1
        places = np.repeat(np.arange(len(of), len(of) + count), np.diff(window.starts))
        owner[row, window.starts[0] : window.starts[-1]] = places
        of += [row] * count
    lengths = torch.from_numpy(mask.sum(axis=1))
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(types),
        lengths,
        torch.from_numpy(owner),
        torch.tensor(of),
    )


def forward(weights: Tensors, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return a logit for each sentence of the batch, and one for each window."""
    with torch.no_grad():
        hidden = _embed(weights, batch)
    mask = mask_of(batch)
    for number in range(LAYERS):
        with torch.set_grad_enabled(
            torch.is_grad_enabled() and number >= FROZEN_LAYERS
        ):
            hidden = layer(weights, f"encoder.layer.{number}.", hidden, mask)
    pooled = torch.tanh(linear(weights, "reader.pool", hidden[:, 0]))
    return sentence_logits(weights, batch, hidden), linear(
        weights, "reader.answer", pooled
    ).float()[:, 0]


def mask_of(batch: Batch) -> Tensor | None:
    """Return what is added to attention scores so that filling is not seen; None without any."""
    length = batch.ids.shape[1]
    if int(batch.lengths.min()) == length:
        return None
    places = torch.arange(length)[None] < batch.lengths[:, None]
    return torch.where(places, 0.0, -1e9)[:, None, None]


def from_minilm(path: Path) -> Tensors:
    """Return MiniLM's weights with fresh heads."""
    given = load_file(path)
    weights = {
        name: tensor.float()
        for name, tensor in given.items()
        if name.startswith(("embeddings.", "encoder."))
    }
    weights.pop("embeddings.position_ids", None)
    return weights | fresh_heads()


def fresh_heads() -> Tensors:
    """Return heads that know nothing but the cosine of question and sentence."""
    heads: Tensors = {}
    shapes = {
        "token": (WIDTH, WIDTH),
        "keep": (1, 2 * WIDTH),
        "pool": (WIDTH, WIDTH),
        "answer": (1, WIDTH),
    }
    for name, (rows, columns) in shapes.items():
        heads[f"reader.{name}.weight"] = torch.randn(rows, columns) * 0.02
        heads[f"reader.{name}.bias"] = torch.zeros(rows)
    heads["reader.keep.bias"] -= 4.5
    heads["reader.near"] = torch.full((WIDTH,), NEAR)
    return heads


def trained(weights: Tensors) -> list[str]:
    """Return the names of the tensors that training changes, heads last."""
    frozen = (
        "embeddings.",
        *(f"encoder.layer.{layer}." for layer in range(FROZEN_LAYERS)),
    )
    return sorted(name for name in weights if not name.startswith(frozen))


def _embed(weights: Tensors, batch: Batch) -> Tensor:
    table = "embeddings.{}_embeddings.weight"
    words = F.embedding(batch.ids, weights[table.format("word")])
    kinds = F.embedding(batch.types, weights[table.format("token_type")])
    places = weights[table.format("position")][: batch.ids.shape[1]]
    return norm(weights, "embeddings.LayerNorm", words + kinds + places)


def layer(weights: Tensors, prefix: str, hidden: Tensor, mask: Tensor | None) -> Tensor:
    """Return the hidden state [b, s, width] after a layer of BERT; `mask` as `mask_of` says."""
    rows, length, _ = hidden.shape
    own = [f"{prefix}attention.self.{name}" for name in ("query", "key", "value")]
    query, key, value = (
        linear(weights, name, hidden)
        .view(rows, length, HEADS, WIDTH // HEADS)
        .transpose(1, 2)
        for name in own
    )
    # Torch's fused attention spends half of a step on its backward pass at 32 channels a head; the
    # plain one a tenth.
    scores = (query * (WIDTH // HEADS) ** -0.5) @ key.transpose(2, 3)
    with torch.autocast(
        "cpu", enabled=False
    ):  # or softmax would be computed in float32, and copied there and back
        shares = torch.softmax(
            scores if mask is None else scores + mask.to(scores.dtype), dim=-1
        )
        found = shares @ value.to(shares.dtype)
    context = linear(
        weights,
        f"{prefix}attention.output.dense",
        found.transpose(1, 2).reshape(rows, length, WIDTH),
    )
    hidden = norm(weights, f"{prefix}attention.output.LayerNorm", hidden + context)
    inner = F.gelu(linear(weights, f"{prefix}intermediate.dense", hidden))
    return norm(
        weights,
        f"{prefix}output.LayerNorm",
        hidden + linear(weights, f"{prefix}output.dense", inner),
    )


def sentence_logits(weights: Tensors, batch: Batch, hidden: Tensor) -> Tensor:
    """Return a logit for each sentence of the batch by the last layer's vectors [b, s, width]."""
    count = len(batch.window)
    inside = batch.owner >= 0
    owner, vectors = batch.owner[inside], hidden[inside]
    tokens = F.gelu(linear(weights, "reader.token", vectors)).float()
    lengths = torch.bincount(owner, minlength=count)[:, None]
    mean = torch.zeros(count, WIDTH).index_add(0, owner, tokens) / lengths
    places = owner[:, None].expand_as(tokens)
    largest = torch.full((count, WIDTH), -1e4).scatter_reduce(0, places, tokens, "amax")
    sentence = F.normalize(
        torch.zeros(count, WIDTH).index_add(0, owner, vectors.float()), dim=1
    )
    asked = (batch.types == 0) & (
        torch.arange(batch.ids.shape[1])[None] < batch.lengths[:, None]
    )
    asked[:, 0] = False
    question = F.normalize((hidden.float() * asked[:, :, None]).sum(dim=1), dim=1)
    near = (sentence * question[batch.window]) @ weights["reader.near"]
    keep = (
        torch.cat([mean, largest], dim=1) @ weights["reader.keep.weight"][0]
        + weights["reader.keep.bias"]
    )
    return keep + near


def linear(weights: Tensors, name: str, tensor: Tensor) -> Tensor:
    """Return what the layer of that name makes of `tensor`."""
    return F.linear(tensor, weights[f"{name}.weight"], weights[f"{name}.bias"])


def norm(weights: Tensors, name: str, tensor: Tensor) -> Tensor:
    """Return `tensor` normalised by the layer of that name."""
    return F.layer_norm(
        tensor, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], eps=1e-12
    )
