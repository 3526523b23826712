"""Trains the reader of many languages: the upper layers of multilingual-e5-small with the reader's
heads, on its lower layers as they are.

    pip install onnx torch safetensors
    python -m train.reader.multilingual --out FOLDER    # also goes on from FOLDER
    touch FOLDER/finish    # the rate falls to 0, then `final.safetensors` is written

The lower layers are those of the carried embedder, which is read from its files. With both, only
the layers above are carried (8.0 MB in 8 bits). Nothing is carried yet: after 18,000 windows it
orders XQuAD no better than words and cosine do (`docs/log.md`, 2026-11-27).

Pages with questions are in English; 430 of our questions are in other languages. Lower layers bring
languages together already. So that upper ones keep it, some windows are messages of programs, of
which a translation is looked for (`parallel`). XQuAD and rows marked `test` are not read. Not for:
the embedder (`train/embedder/e5.py`), or English pages (`train.py`).
"""

import argparse
import gettext
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor

from models.onnx import (
    MATRICES,
    MULTILINGUAL,
)
from models.protocols import Window
from train.reader.data import Corpus, load_own, load_public
from train.reader.draw import Drawer, Example
from train.reader.model import (
    WIDTH,
    Batch,
    Tensors,
    fresh_heads,
    layer,
    linear,
    make_batch,
    mask_of,
    norm,
    sentence_logits,
)
from train.reader.train import SHARES, Plan, Trained, Trainer, encoded

LAYERS, LOWER = 12, 8
"""Layers of the body, and those of them that stay; a trained one is 1.8 MB in 8 bits."""
SIGNS: Final = ("<s>", "</s>", "<unk>", ":")
"""`BERT_SIGNS` in XLM-R's vocabulary."""
PLAN: Final = Plan(rate=3e-4, batch=24, warm=40, fall=150, share=0.1, threads=1)
FASTER: Final = {"reader.near": 30.0, "reader.": 3.0}
"""Heads learn at this multiple of the rate."""
APART: Final = 1.2
"""Logits by which a deviation of the cosine raises a sentence before anything is learned."""
LANGUAGE_TIMES: Final = 3
"""How often a question in another language is drawn from in a round."""
OWN_SHARE: Final = 0.45
"""Of our questions in one round."""
PARALLEL: Final = 0.15
"""Windows of messages beside those of questions."""
CATALOGUES: Final = Path("/usr/share/locale")
"""Where an operating system keeps the messages of its programs, translated: GPL and like licences;
they are learned from, and not copied."""
WORDS: Final = range(4, 41)
"""Words of an English message that may be looked for."""
LETTERS: Final = range(11, 300)
FEWEST: Final = 8
"""Messages of a catalogue that has neighbours to choose from."""
RARE: Final = ("el", "ar", "hi", "th", "tr", "vi", "ro")
"""Languages that few catalogues have, and that are drawn four times as often."""

Messages = Mapping[str, str]


class Lower:
    """The layers of the body that stay as they are, in bf16."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Take the whole body by BertModel's names; `positions` have the type's vector added."""
        self._words = torch.from_numpy(weights["words"].astype(np.float16))
        self._positions = torch.from_numpy(weights["positions"].copy())
        self._weights: Tensors = {
            name: torch.from_numpy(value.copy()).bfloat16()
            for name, value in weights.items()
            if name.startswith(("embeddings.", *_names(range(LOWER))))
        }

    def __call__(self, batch: Batch) -> Tensor:
        """Return the hidden state under the trained layers [b, s, width]."""
        with torch.no_grad():
            words = F.embedding(batch.ids, self._words).float()
            hidden = words + self._positions[: batch.ids.shape[1]]
            hidden = norm(self._weights, "embeddings.LayerNorm", hidden.bfloat16())
            mask = mask_of(batch)
            for prefix in _names(range(LOWER)):
                hidden = layer(self._weights, prefix, hidden, mask)
            return hidden


def forward(lower: Lower, weights: Tensors, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return a logit for each sentence of the batch, and one for each window."""
    hidden = lower(batch)
    second = batch.types[:, :, None] * weights["reader.second"]
    hidden = hidden + second.to(hidden.dtype)
    mask = mask_of(batch)
    for prefix in _names(range(LOWER, LAYERS)):
        hidden = layer(weights, prefix, hidden, mask)
    pooled = torch.tanh(linear(weights, "reader.pool", hidden[:, 0]))
    answer = linear(weights, "reader.answer", pooled).float()[:, 0]
    return sentence_logits(weights, batch, hidden), answer


def _names(layers: range) -> tuple[str, ...]:
    return tuple(f"encoder.layer.{number}." for number in layers)


def body() -> dict[str, NDArray[np.float32]]:
    """Return the carried embedder's float32 weights by BertModel's names, `words` and
    `positions`."""
    found: dict[str, NDArray[Any]] = {}
    matrices: dict[str, NDArray[np.float32]] = {}
    model = onnx.load(MULTILINGUAL / "model.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            found[tensor.name] = numpy_helper.to_array(tensor)
    with np.load(MULTILINGUAL / MATRICES) as parts:
        for key in parts.files:
            if key.endswith(":0"):
                scales = parts[f"{key[:-2]}:1"]
                matrices[key[: -len(".bytes:0")]] = _from_four(parts[key], scales)

    bits = [found["rare"] >> bit & 3 for bit in (0, 2, 4, 6)]
    levels = np.concatenate(bits, axis=1).astype(np.float32) - 1.5
    rare = levels * found["rare.scale"].astype(np.float32) * found["rare.columns"]
    fine = _from_four(found["words"], found["words.scale"])
    weights = {"words": np.concatenate([fine, rare]), "positions": found["positions"]}
    weights |= {
        name: value
        for name, value in found.items()
        if name.endswith(("LayerNorm.weight", "LayerNorm.bias", "dense.bias"))
    }

    for name, matrix in matrices.items():
        if not name.endswith("qkv"):
            weights[f"{name}.weight"] = matrix
            continue
        prefix = name.removesuffix("qkv")
        biases = np.split(found[f"{name}.bias"], 3)
        for part, one, bias in zip(
            ("query", "key", "value"), np.split(matrix, 3), biases, strict=True
        ):
            weights[f"{prefix}attention.self.{part}.weight"] = one
            weights[f"{prefix}attention.self.{part}.bias"] = bias
    return {name: np.ascontiguousarray(value) for name, value in weights.items()}


def _from_four(
    packed: NDArray[np.uint8], scales: NDArray[np.float16]
) -> NDArray[np.float32]:
    """Return the rows that `quantise_blocks` packed."""
    halves = packed.reshape(*scales.shape, -1)
    steps = np.concatenate([halves & 15, halves >> 4], axis=2).astype(np.float32) - 8
    found = steps * scales[:, :, None].astype(np.float32)
    return np.asarray(found.reshape(len(scales), -1), dtype=np.float32)


def begun(
    weights: Mapping[str, NDArray[np.float32]], lower: Lower, windows: Sequence[Trained]
) -> Tensors:
    """Return the layers above with fresh heads, which rank sentences by their cosine with the
    question; its mean and deviation are measured on `windows`."""
    upper = {
        name: torch.from_numpy(value.copy())
        for name, value in weights.items()
        if name.startswith(_names(range(LOWER, LAYERS)))
    }
    upper |= fresh_heads() | {
        "reader.second": torch.zeros(WIDTH),
        "reader.near": torch.ones(WIDTH),
        "reader.keep.weight": torch.zeros(1, 2 * WIDTH),
        "reader.keep.bias": torch.zeros(1),
    }
    batch = make_batch([one.window for one in windows])
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        cosines = forward(lower, upper, batch)[0].float()
    scale = APART / float(cosines.std())
    upper["reader.near"] *= scale
    upper["reader.keep.bias"] -= 1.8 + scale * float(cosines.mean())
    upper["reader.keep.weight"] = 0.02 * torch.randn(1, 2 * WIDTH)
    return upper


def draw_round(number: int) -> list[Trained]:
    """Return a round's windows: a share of the public questions and of ours, those in other
    languages more often, and messages."""
    draw = random.Random(PLAN.seed + 7 * number)
    public, own = load_public("train"), load_own("train")
    count = int(PLAN.share * len(public.questions))
    chosen = [
        one
        for one in draw.sample(public.questions, count)
        if draw.random() < SHARES.get(one.source, 1.0)
    ]
    chosen += draw.sample(own.questions, int(OWN_SHARE * len(own.questions)))
    chosen += LANGUAGE_TIMES * [
        one for one in own.questions if one.source == "own-language"
    ]
    drawer = Drawer(
        Corpus(public.texts | own.texts, public.questions + own.questions),
        seed=draw.randrange(10**6),
    )
    examples = [one for question in chosen for one in drawer.examples(question)]
    messages = parallel(draw)
    examples += [next(messages) for _ in range(int(PARALLEL * len(examples)))]
    return encoded(examples, MULTILINGUAL, SIGNS)


def parallel(draw: random.Random) -> Iterator[Example]:
    """Yield windows of one program's messages in one language, and one of them in another as what
    is looked for; in a fifth it is not there."""
    catalogues = {
        name: of for name, of in _catalogues().items() if len(of) > 2 and "en" in of
    }
    names = sorted(catalogues)
    sizes = [min(300, max(map(len, catalogues[name].values()))) for name in names]
    while True:
        (name,) = draw.choices(names, sizes)
        languages = sorted(catalogues[name])
        often = [4 if language in RARE else 1 for language in languages]
        asked, shown = (
            catalogues[name][language]
            for language in draw.choices(languages, often, k=2)
        )
        both = [key for key in asked if key in shown]
        if asked is shown or len(both) < FEWEST // 2:
            continue
        wanted = draw.choice(both)
        keys = list(shown)
        place = keys.index(wanted)
        around = keys[max(0, place - 4) : place] + keys[place + 1 : place + 5]
        others = [key for key in keys if key != wanted]
        pool = around if draw.random() < 0.5 else others
        rows = draw.sample(pool, min(draw.randrange(3, 7), len(pool)))
        if there := draw.random() < 0.8:
            rows.insert(draw.randrange(len(rows) + 1), wanted)
        gold = frozenset([rows.index(wanted)] if there else ())
        window = Window("", tuple(shown[key] for key in rows))
        yield Example(asked[wanted], window, gold, 0.6, "parallel")


def _catalogues() -> dict[str, dict[str, Messages]]:
    """Return the messages of each program in each language, English ones by themselves."""
    found: dict[str, dict[str, Messages]] = defaultdict(dict)
    for path in sorted(CATALOGUES.glob("*/LC_MESSAGES/*.mo")):
        try:
            with path.open("rb") as file:
                pairs = vars(gettext.GNUTranslations(file))["_catalog"].items()
        except (ValueError, IndexError):  # another encoding or no plural rule: a few
            continue
        whole = {
            " ".join(key.split()): " ".join(text.split())
            for key, text in pairs
            if isinstance(key, str) and isinstance(text, str) and key != text
        }
        kept = {
            key: text
            for key, text in whole.items()
            if len(key.split()) in WORDS
            and len(key) in LETTERS
            and len(text) in LETTERS
            and key.count("%") + key.count("<") < 3
        }
        if len(kept) >= FEWEST:
            found[path.name][path.parts[-3].partition("@")[0]] = kept
            found[path.name].setdefault("en", {key: key for key in kept})
    return found


def dev_sets() -> dict[str, list[Trained]]:
    """Return the windows of the development figures: of public questions and of ours, both
    English, and ours in other languages."""
    public, own = load_public("dev"), load_own("dev")
    draw = random.Random(0)
    parts = {
        "public": draw.sample(public.questions, 200),
        "own": draw.sample(own.questions, 200),
        "language": [one for one in own.questions if one.source == "own-language"],
    }
    found = {}
    for name, questions in parts.items():
        drawer = Drawer(public if name == "public" else own, seed=0)
        examples = [one for question in questions for one in drawer.plain(question)]
        found[name] = encoded(examples, MULTILINGUAL, SIGNS)
    return found


def main() -> int:
    """Train until `finish` is there, or go on; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.reader.multilingual", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(PLAN.threads)
    whole = body()
    lower = Lower(whole)
    weights = begun(whole, lower, draw_round(0)[:96])
    trainer = Trainer(
        PLAN,
        weights,
        folder,
        draw_round,
        dev_sets,
        forward=lambda weights, batch: forward(lower, weights, batch),
        faster=FASTER,
    )
    trainer.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
