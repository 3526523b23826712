"""Makes `reader.onnx` in `models/embedded/`, its part of `manifest.json` and its table in
`README.md`.

    pip install onnx torch safetensors
    python -m train.reader.build --minilm model.safetensors --checkpoint FILE.safetensors

Weights of activations are eased over windows of the sample library; the 8-bit file is held against
torch on other such windows, and is not written below the bars. Run by hand or by `train.py` at its
end; its outcome is committed.
"""

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx.external_data_helper import set_external_data
from safetensors.torch import load_file

from models.onnx import (
    EMBEDDED,
    WEIGHTS,
    Encoded,
    encode,
    keep_logits,
    padded,
    read_tokenizer,
)
from train.embedder.build import MAX_BYTES, channel_peaks, run
from train.embedder.graph import Shape, build_reader
from train.reader.data import library_windows
from train.reader.model import Tensors, forward, from_minilm, make_batch

MOST_APART: Final = 0.1
"""Largest mean difference of a logit between 8 bits and torch that is shipped."""
NAME: Final = "winnow-reader"
SHARED: Final = "model.onnx"
"""The embedder, whose words and two lowest layers are the reader's as well: 13 MB."""
LEAST_SHARED: Final = 4096
"""Bytes of a tensor from which on it is read from there; smaller ones are equal by chance."""
TABLE: Final = re.compile(r"(?<=<!-- reader -->\n).*(?=\n<!-- /reader -->)", re.DOTALL)


def main() -> int:
    """Build, measure, write; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.reader.build", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--minilm",
        type=Path,
        required=True,
        metavar="FILE",
        help="float32 all-MiniLM-L6-v2",
    )
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="weights of train.py"
    )
    parser.add_argument(
        "--note", default="", help="one line on how the weights were trained"
    )
    parser.add_argument(
        "--figures",
        type=json.loads,
        default={},
        metavar="JSON",
        help="of the training, for the datasheet",
    )
    parser.add_argument("--out", type=Path, default=EMBEDDED, metavar="FOLDER")
    options = parser.parse_args()
    weights = from_minilm(options.minilm)
    if options.checkpoint:
        weights |= {
            name: tensor.float()
            for name, tensor in load_file(options.checkpoint).items()
        }
    return export(weights, options.out, note=options.note, figures=options.figures)


def export(
    weights: Tensors, folder: Path, *, note: str, figures: dict[str, float]
) -> int:
    """Write the 8-bit form of `weights` into `folder`, which holds the tokeniser; return 1 where it
    is too far off."""
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    windows = [
        window
        for question, parts in library_windows()
        for window in encode(tokenizer, question, parts)
    ]
    arrays = {
        name: np.ascontiguousarray(tensor.float().numpy())
        for name, tensor in weights.items()
    }
    probe = build_reader(arrays, Shape(), probe=True).SerializeToString()
    peaks = channel_peaks(run(probe, _feeds(windows[::2])))
    graph = build_reader(arrays, Shape(), peaks=peaks)
    small = _compare(weights, graph.SerializeToString(), windows[1::2])
    share(graph, folder / SHARED)
    data = graph.SerializeToString()
    small["mb"] = round(len(data) / 1e6, 1)
    print(json.dumps(small))
    if (
        max(small["keep_apart"], small["answer_apart"]) > MOST_APART
        or len(data) > MAX_BYTES
    ):
        print(
            f"not written: the bars are {MOST_APART} and {MAX_BYTES / 1e6:.0f} MB",
            file=sys.stderr,
        )
        return 1
    (folder / WEIGHTS).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256(data).hexdigest()
    own: dict[str, object] = {
        "name": NAME,
        "quantisation": "int8-token-eased",
        "sha256": digest,
        "shares": SHARED,
        "trained": note,
        **figures,
        **small,
    }
    manifest["reader"] = own
    (folder / "manifest.json").write_text(
        json.dumps(manifest, indent=2) + "\n", encoding="utf-8"
    )
    sheet = folder / "README.md"
    if sheet.is_file():
        text = sheet.read_text(encoding="utf-8")
        sheet.write_text(TABLE.sub(lambda _: _datasheet(own), text), encoding="utf-8")
    return 0


def share(graph: onnx.ModelProto, beside: Path) -> None:
    """Have `graph` read the 8-bit tensors that the file `beside` it holds too from there (ONNX's
    external data)."""
    there = beside.read_bytes()
    for tensor in graph.graph.initializer:
        raw = tensor.raw_data
        # Of tensors of other types the runtime wants the place to be a multiple of their size.
        if (
            tensor.data_type == onnx.TensorProto.INT8
            and len(raw) >= LEAST_SHARED
            and (at := there.find(raw)) >= 0
        ):
            set_external_data(tensor, beside.name, offset=at, length=len(raw))
            tensor.ClearField("raw_data")


def _compare(
    weights: Tensors, data: bytes, windows: Sequence[Encoded]
) -> dict[str, float]:
    """Return how far the logits of the 8-bit file are from torch's, and the CPU time of a window of
    180 tokens."""
    keep: list[float] = []
    answer: list[float] = []
    agree: list[bool] = []
    spent = tokens = 0.0
    began = time.process_time()
    for window, outputs in zip(windows, run(data, _feeds(windows)), strict=True):
        spent += time.process_time() - began
        tokens += len(window.ids)
        found = keep_logits(
            outputs["hidden"][0], outputs["tokens"][0], outputs["head"], window
        )
        with torch.inference_mode():
            expected, answers = forward(weights, make_batch([window]))
        keep += np.abs(found - expected.numpy()).tolist()
        answer.append(abs(float(outputs["answer"][0]) - float(answers[0])))
        agree.append(int(found.argmax()) == int(expected.argmax()))
        began = time.process_time()
    return {
        "windows": len(windows),
        "keep_apart": round(float(np.mean(keep)), 4),
        "answer_apart": round(float(np.mean(answer)), 4),
        "same_best_sentence": round(float(np.mean(agree)), 3),
        "cpu_ms_180_tokens": round(1000 * spent / tokens * 180, 1),
    }


def _feeds(windows: Sequence[Encoded]) -> Iterator[dict[str, NDArray[np.int64]]]:
    for window in windows:
        ids, mask = padded([window.ids])
        types = mask.copy()
        types[:, : window.asked] = 0
        yield {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def _datasheet(own: dict[str, object]) -> str:
    return "\n".join(
        [
            "| reader | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in own.items()),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
