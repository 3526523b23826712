"""Sentence embeddings on onnxruntime: the embedded default, and any folder with an exported encoder.

A folder holds `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`; ours also has `manifest.json`, others are
described by the files that sentence-transformers leaves (`config.json`, `sentence_bert_config.json`,
`1_Pooling/config.json`). Nothing is read before the first use. Not for: making the file (`models/embedded/`),
caching, other runtimes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.fingerprint import DIGITS, fingerprint
from models.protocols import TextKind, Vectors, unit_rows
from models.session import HINT, Loaded, OnnxBackend, load_model, padded, read_file, run_batches
from models.text import CHARACTERS_A_TOKEN, MANY_SCRIPTS, TEXTS_AT_ONCE, printable, reads_latin


@dataclass(frozen=True, slots=True)
class _Card:
    """What a folder says of its model: facts that are known without loading it."""

    name: str
    dimension: int
    max_tokens: int
    latin_only: bool
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the files that Winnow carries, by name; empty for a folder that is not ours."""
    pooling: str = "mean"
    prompts: Mapping[TextKind, str] = field(default_factory=dict)


class OnnxEmbedder(OnnxBackend):
    """An `Embedder` on the processor, in threads of this process.

    Safe to call from many tasks at once. A text longer than the model's window is cut at its end.
    """

    @property
    def name(self) -> str:
        """Model, quantisation, runtime, and twelve digits of the weights' sha256."""
        return self._card.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._card.dimension

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's script: six in ten letters are Latin, or the model is multilingual."""
        return not self._card.latin_only or reads_latin(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; see `Embedder.embed`.

        Work goes on in threads, a batch of equal lengths at a time; a cancelled call stops after the running batch.
        """
        found = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return found
        model = await self._ready()
        ids: list[list[int]] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            ids += await anyio.to_thread.run_sync(self._tokenize, model, texts[start : start + TEXTS_AT_ONCE], kind)

        def run(batch: list[int]) -> None:
            found[batch] = self._run(model, [ids[place] for place in batch])

        await run_batches([len(tokens) for tokens in ids], run)
        return found

    @cached_property
    def _card(self) -> _Card:
        try:
            if (self._folder / "manifest.json").is_file():
                return _own_card(json.loads(read_file(self._folder / "manifest.json")))
            return _foreign_card(self._folder)
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"The files that describe the model in {self._folder} are broken: {error!r}.", hint=HINT
            ) from error

    def _load(self) -> Loaded:
        card = self._card
        tokenizer = self._folder / "tokenizer.json"
        return load_model(_weights_file(self._folder), tokenizer, sha256=card.sha256, max_tokens=card.max_tokens)

    def _tokenize(self, model: Loaded, texts: Sequence[str], kind: TextKind) -> list[list[int]]:
        card = self._card
        prompt = card.prompts.get(kind, "")
        limit = card.max_tokens * CHARACTERS_A_TOKEN
        cut = [prompt + printable(text[:limit]) for text in texts]
        return model.tokenizer.encode(cut)

    def _run(self, model: Loaded, batch: list[list[int]]) -> Vectors:
        ids, mask = padded(batch)
        output = model.run({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
        vectors = _pool(output, mask, self._card.pooling)
        if vectors.shape[1] != self.dimension or not np.isfinite(vectors).all():
            raise ModelError(
                f"The model in {self._folder} gave {vectors.shape}, not finite rows of {self.dimension}.",
                hint="Its config.json does not describe it, or the file is damaged: put the right files there.",
            )
        return vectors


def _pool(output: NDArray[np.float32], mask: NDArray[np.int64], pooling: str) -> Vectors:
    """Return unit rows from a sentence output [n, d] or a token output [n, s, d]."""
    if output.ndim == 3:
        weights = mask[:, :, None].astype(np.float32)
        output = output[:, 0] if pooling == "cls" else (output * weights).sum(axis=1)
    return unit_rows(output)


def _weights_file(folder: Path) -> Path:
    inner = folder / "onnx" / "model.onnx"
    return inner if inner.is_file() else folder / "model.onnx"


def _own_card(manifest: dict[str, object]) -> _Card:
    hashes = manifest["sha256"]
    if not isinstance(hashes, dict):
        raise TypeError("sha256")
    digest = str(hashes["model.onnx"])[:DIGITS]
    return _Card(
        name=f"{manifest['name']}:{manifest['quantisation']}:onnx:{digest}",
        dimension=int(str(manifest["dimension"])),
        max_tokens=int(str(manifest["max_tokens"])),
        latin_only=manifest.get("scripts") == ["Latin"],
        sha256={str(name): str(value) for name, value in hashes.items()},
    )


def _foreign_card(folder: Path) -> _Card:
    config = json.loads(read_file(folder / "config.json"))
    sentence = _optional_json(folder / "sentence_bert_config.json")
    pooling = _optional_json(folder / "1_Pooling" / "config.json")
    prompts = _optional_json(folder / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    weights = _weights_file(folder)
    longest = int(config.get("max_position_embeddings", 512))
    # RoBERTa's positions start after the padding's: the table has two more than texts may have tokens.
    longest -= 2 if str(config.get("model_type", "")).endswith("roberta") else 0
    return _Card(
        name=f"{folder.name}:onnx:{fingerprint([weights, *sorted(weights.parent.glob(f'{weights.name}?data*'))])}",
        dimension=int(config["hidden_size"]),
        max_tokens=min(longest, int(str(sentence.get("max_seq_length") or longest))),
        latin_only=int(config.get("vocab_size", 0)) < MANY_SCRIPTS,
        pooling="cls" if pooling.get("pooling_mode_cls_token") else "mean",
        prompts={
            "query": str(prompts.get("query") or ""),
            "passage": str(prompts.get("passage") or prompts.get("document") or ""),
        },
    )


def _optional_json(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    found = json.loads(read_file(path))
    return found if isinstance(found, dict) else {}
