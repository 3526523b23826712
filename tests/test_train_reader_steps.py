"""Training the reader: goes on where it stopped, ends when reported; skipped where torch is not
installed."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.protocols import Window
from tests.support.extras import need
from train.reader.draw import Example

pytestmark = pytest.mark.slow
torch = need("train")
model, training = (importlib.import_module(f"train.reader.{name}") for name in ("model", "train"))
PLAN = training.Plan(batch=2, fall=4, warm=1, threads=1, rate=1e-3)


def _weights() -> Any:
    width: int = model.WIDTH
    draw = torch.Generator().manual_seed(1)
    inner = 4 * width
    shapes: dict[str, tuple[int, ...]] = {f"embeddings.{name}_embeddings.weight": (rows, width)
              for name, rows in (("word", 30_522), ("position", 512), ("token_type", 2))}  # fmt: skip
    for layer in range(model.LAYERS):
        begin = f"encoder.layer.{layer}."
        for name in (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        ):
            shapes[f"{begin}{name}.weight"] = (width, width)
        shapes[f"{begin}intermediate.dense.weight"] = (inner, width)
        shapes[f"{begin}output.dense.weight"] = (width, inner)
        shapes |= {
            f"{begin}{name}.LayerNorm.weight": (width,) for name in ("attention.output", "output")
        }
    heads = {
        "token": (width, width),
        "keep": (1, 2 * width),
        "pool": (width, width),
        "answer": (1, width),
    }
    shapes |= {"embeddings.LayerNorm.weight": (width,)} | {
        f"reader.{name}.weight": size for name, size in heads.items()
    }
    weights = {name: torch.randn(size, generator=draw) * 0.05 for name, size in shapes.items()}
    weights |= {name: torch.ones(size) for name, size in shapes.items() if "LayerNorm" in name}
    weights |= {
        f"{name.removesuffix('.weight')}.bias": torch.zeros(size[0])
        for name, size in shapes.items()
    }
    return weights | {"reader.near": torch.ones(width)}


def _windows(number: int) -> Any:
    sentences = tuple(f"The boat {place} leaves at {place + number}." for place in range(3))
    return training.encoded(
        [Example(f"When does boat {place} leave?", Window("Boats", sentences), frozenset({place}), 1.0, "answer")
         for place in range(3)]
        + [Example("Who steers?", Window("Boats", sentences), frozenset(), 1.0, kind) for kind in ("near", "other")]
    )  # fmt: skip


def _trainer(folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    return training.Trainer(PLAN, _weights(), folder, _windows, lambda: {"own": _windows(0)})


def test_training_that_was_interrupted_gives_the_weights_of_one_that_was_not(
    tmp_path: Path,
) -> None:
    whole = _trainer(tmp_path / "whole")
    assert not whole.run(5)
    assert not _trainer(tmp_path / "parts").run(2)
    parts = _trainer(tmp_path / "parts")
    assert not parts.run(3)
    names = model.trained(whole.weights)
    assert all(
        torch.allclose(whole.weights[name], parts.weights[name], atol=1e-4) for name in names
    )
    assert not torch.allclose(
        whole.weights["reader.keep.weight"], _weights()["reader.keep.weight"], atol=1e-4
    )


def test_what_stays_minilms_is_not_changed(tmp_path: Path) -> None:
    trainer, fresh = _trainer(tmp_path), _weights()
    trainer.run(2)
    kept = set(fresh) - set(model.trained(fresh))
    assert any(name.startswith("encoder.layer.1.") for name in kept)
    assert all(torch.equal(trainer.weights[name], fresh[name]) for name in kept)


def test_the_file_finish_lets_the_rate_fall_and_ends_with_figures(tmp_path: Path) -> None:
    (tmp_path / "finish").touch()
    assert _trainer(tmp_path).run()
    assert (tmp_path / "final.safetensors").is_file()
    assert not (tmp_path / "finish").exists()
    assert "own_near_auc" in (tmp_path / "final.json").read_text(encoding="utf-8")


def test_an_example_whose_answer_was_cut_off_is_left_out() -> None:
    long = Window("", ("word " * 79,) * 6)
    cut = Example("What?", long, frozenset({5}), 1.0, "answer")
    assert training.encoded([cut]) == []
    (kept,) = training.encoded([Example("What?", long, frozenset({0, 5}), 1.0, "answer")])
    assert kept.gold.tolist() == [1.0, 0.0, 0.0]


def test_the_share_of_pairs_in_order_counts_ties_half() -> None:
    assert training.auc(np.array([2.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx(0.875)
