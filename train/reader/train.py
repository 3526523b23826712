"""Trains the reader: rounds of newly drawn windows, resumable checkpoints, an end on
request.

    python -m train.reader.train --out FOLDER --minilm model.safetensors   # also goes on from FOLDER
    touch FOLDER/finish     # the rate falls to 0 over the next steps; then `final.safetensors` is written and exported

A round takes every question of ours once and a share of the public ones in turn, so
ours weigh more; questions that were added are drawn from the next round on. `log.jsonl`
has a line a hundred steps and the development figures. SIGTERM and SIGINT end it after
a checkpoint. Not for: the graph (`build.py`), windows (`draw.py`)."""

import argparse
import dataclasses
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from models.onnx import BERT_SIGNS, EMBEDDED, Encoded, join, read_tokenizer, tokenize
from train.reader.data import ROOT, Corpus, Question, Split, load_own, load_public
from train.reader.draw import Drawer, Example
from train.reader.model import Batch, Tensors, forward, from_minilm, make_batch, trained

Forward: TypeAlias = Callable[[Tensors, Batch], tuple[torch.Tensor, torch.Tensor]]
KEEP_WEIGHT: Final = 3.0
"""Of the sentences' loss beside the window's."""
FASTER: Final = {"reader.near": 10.0, "reader.": 3.0}
"""Heads learn at this multiple of the rate."""
POOL: Final = 2_000
"""Windows that are sorted by length to make batches without much filling."""
SHARES: Final = {"kou": 0.5, "nqg": 0.6, "reddit": 0.8}
"""Weight of sources with isolated, lowercase or informal sentences."""
DEV_QUESTIONS: Final = 400


@dataclass(frozen=True, slots=True)
class Plan:
    """How to train; every field is an option of the command."""

    rate: float = 2e-4
    batch: int = 32
    warm: int = 60
    """Steps in which the rate rises, after each start."""
    fall: int = 1_500
    """Steps in which it falls to 0 at the end."""
    share: float = 0.25
    """Of the public questions in one round."""
    threads: int = 2
    evaluate: int = 1_000
    """Steps between development figures."""
    checkpoint_minutes: float = 10.0
    steps: int = 10**9
    """Step at which the rate begins to fall by default."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Trained:
    """A window as tokens, with what is right."""

    window: Encoded
    gold: NDArray[np.float32]
    weight: float
    kind: str


def main() -> int:
    """Train until the end is requested; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.reader.train", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--minilm",
        type=Path,
        required=True,
        metavar="FILE",
        help="float32 all-MiniLM-L6-v2",
    )
    parser.add_argument(
        "--start",
        type=Path,
        metavar="FILE",
        help="weights to begin with, of an earlier run",
    )
    parser.add_argument(
        "--export",
        type=Path,
        default=EMBEDDED,
        metavar="FOLDER",
        help="where the end is exported to",
    )
    parser.add_argument(
        "--judge",
        type=Path,
        metavar="FILE",
        help="only print its figures on the sites held out; - for none",
    )
    for item in dataclasses.fields(Plan):
        parser.add_argument(
            f"--{item.name.replace('_', '-')}",
            type=type(item.default),
            default=item.default,
        )
    options = parser.parse_args()
    plan = Plan(
        **{item.name: getattr(options, item.name) for item in dataclasses.fields(Plan)}
    )
    options.out.mkdir(parents=True, exist_ok=True)
    weights = from_minilm(options.minilm)
    given = options.judge or options.start
    if given and given.is_file():
        weights |= {name: tensor.float() for name, tensor in load_file(given).items()}
    if options.judge:
        print(
            json.dumps(
                {
                    name: measure(weights, windows)
                    for name, windows in dev_sets("held").items()
                }
            )
        )
        return 0
    trainer = Trainer(
        plan, weights, options.out, lambda number: draw_round(plan, number), dev_sets
    )
    ended = trainer.run()
    if not ended:
        return 0
    figures = json.loads((options.out / "final.json").read_text(encoding="utf-8"))
    command = [
        "--minilm",
        options.minilm,
        "--checkpoint",
        options.out / "final.safetensors",
    ]
    command += [
        "--out",
        options.export,
        "--note",
        figures.pop("note"),
        "--figures",
        json.dumps(figures),
    ]
    build = [sys.executable, "-m", "train.reader.build", *map(str, command)]
    return subprocess.run(build, cwd=ROOT, check=False).returncode  # noqa: S603  our own command


class Trainer:
    """Weights, optimiser and place in the rounds, which together go on where they
    stopped."""

    def __init__(
        self,
        plan: Plan,
        weights: Tensors,
        folder: Path,
        rounds: Callable[[int], list[Trained]],
        dev: Callable[[], dict[str, list[Trained]]],
        *,
        forward: Forward = forward,
        faster: Mapping[str, float] = FASTER,
    ) -> None:
        """Take the weights to begin with; what `folder` holds of an earlier run goes
        before them."""
        torch.set_num_threads(plan.threads)
        self._plan, self._folder, self._rounds, self._dev = plan, folder, rounds, dev
        self._forward = forward
        self.weights = weights
        self._names = trained(weights)
        scales = [
            [more for begin, more in faster.items() if name.startswith(begin)]
            for name in self._names
        ]
        self._scale = [found[0] if found else 1.0 for found in scales]
        groups = [
            {"params": [weights[name].requires_grad_(True)], "lr": 0.0}
            for name in self._names
        ]
        self._optimizer = torch.optim.AdamW(
            groups, betas=(0.9, 0.98), weight_decay=0.01, fused=True
        )
        self._place = {
            "step": 0,
            "round": 0,
            "batch": 0,
            "fall_from": -1,
            "windows": 0,
            "size": 0,
        }
        self._cpu = 0.0
        self._stopped = False
        if (folder / "state.pt").is_file():
            state = torch.load(folder / "state.pt", weights_only=True)
            self._place, self._cpu = state["place"], state["cpu"]
            self._optimizer.load_state_dict(state["optimizer"])
            with torch.no_grad():
                for name in self._names:
                    weights[name].copy_(state["weights"][name])

    def run(self, most: int = 10**9) -> bool:
        """Train for at most `most` steps; return whether the rate fell to its end."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._stop)
        place, plan, begun = self._place, self._plan, self._place["step"]
        saved, spent = time.monotonic(), time.process_time()
        sums: list[tuple[float, float, float]] = []
        for batch in self._batches():
            rate = self._rate(place["step"] - begun)
            if rate <= 0 or self._stopped or place["step"] - begun >= most:
                break
            if place["step"] % plan.evaluate == 0:
                self._log(self.evaluate())
            sums.append(self._step(batch, rate))
            place["step"] += 1
            place["batch"] += 1
            place["windows"] += len(batch)
            self._cpu, spent = (
                self._cpu + time.process_time() - spent,
                time.process_time(),
            )
            if place["step"] % 100 == 0:
                keep, answer, right = np.mean(sums, axis=0).round(4).tolist()
                self._log(
                    {"keep": keep, "answer": answer, "right": right, "rate": rate}
                )
                sums.clear()
            if time.monotonic() - saved > 60 * plan.checkpoint_minutes:
                self.save()
                saved = time.monotonic()
        self.save()
        if self._stopped or self._rate(place["step"] - begun) > 0:
            return False
        self._finish()
        return True

    def evaluate(self) -> dict[str, float]:
        """Return the development figures."""
        sets = {
            name: measure(self.weights, windows, self._forward)
            for name, windows in self._dev().items()
        }
        return {
            f"{name}_{key}": value
            for name, found in sets.items()
            for key, value in found.items()
        }

    def save(self) -> None:
        """Write what is needed to go on, in one step."""
        weights = {name: self.weights[name].detach() for name in self._names}
        state = {
            "weights": weights,
            "optimizer": self._optimizer.state_dict(),
            "place": self._place,
            "cpu": self._cpu,
        }
        torch.save(state, self._folder / "state.new")
        (self._folder / "state.new").replace(self._folder / "state.pt")
        save_file(
            {name: tensor.contiguous() for name, tensor in weights.items()},
            self._folder / "last.safetensors",
        )

    def _finish(self) -> None:
        weights = {
            name: self.weights[name].detach().contiguous() for name in self._names
        }
        save_file(weights, self._folder / "final.safetensors")
        figures = self.evaluate()
        self._log(figures)
        note = (
            f"{self._place['windows']:,} windows in {self._cpu / 60:.0f} core-minutes"
        )
        (self._folder / "final.json").write_text(
            json.dumps({"note": note, **figures}), encoding="utf-8"
        )
        (self._folder / "finish").unlink(missing_ok=True)

    def _batches(self) -> Iterator[Sequence[Trained]]:
        place = self._place
        while True:
            windows = self._rounds(place["round"])
            if place["batch"] and place["size"] != len(
                windows
            ):  # questions were added since: it is another round
                place |= {"round": place["round"] + 1, "batch": 0}
                continue
            place["size"] = len(windows)
            batches = _batched(
                windows,
                self._plan.batch,
                random.Random(self._plan.seed * 1_000 + place["round"]),
            )
            self._log({"round": place["round"], "drawn": len(windows)})
            yield from batches[place["batch"] :]
            place["round"] += 1
            place["batch"] = 0

    def _step(
        self, batch: Sequence[Trained], rate: float
    ) -> tuple[float, float, float]:
        for group, scale in zip(self._optimizer.param_groups, self._scale, strict=True):
            group["lr"] = rate * scale
        gold, right, weight, each = _targets(batch)
        with torch.autocast("cpu", torch.bfloat16):
            keep, answer = self._forward(
                self.weights, make_batch([one.window for one in batch])
            )
        keep_loss = (
            F.binary_cross_entropy_with_logits(keep.float(), gold, reduction="none")
            * each
        ).mean()
        answer_loss = (
            F.binary_cross_entropy_with_logits(answer, right, reduction="none") * weight
        ).mean()
        (KEEP_WEIGHT * keep_loss + answer_loss).backward()
        torch.nn.utils.clip_grad_norm_(
            [self.weights[name] for name in self._names], 1.0
        )
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        right_share = ((answer > 0) == (right > 0)).float().mean()
        return (
            float(keep_loss.detach()),
            float(answer_loss.detach()),
            float(right_share),
        )

    def _rate(self, since: int) -> float:
        plan, place = self._plan, self._place
        finished = place["step"] >= plan.steps or (self._folder / "finish").exists()
        if place["fall_from"] < 0 and finished:
            place["fall_from"] = place["step"]
        falling = (
            1.0
            if place["fall_from"] < 0
            else 1 - (place["step"] - place["fall_from"]) / plan.fall
        )
        return plan.rate * min(1.0, (since + 1) / plan.warm) * max(0.0, falling)

    def _log(self, figures: dict[str, float]) -> None:
        line = {
            "step": self._place["step"],
            "windows": self._place["windows"],
            "cpu_minutes": round(self._cpu / 60, 2),
        }
        with (self._folder / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(
                json.dumps(line | {"at": time.strftime("%H:%M:%S")} | figures) + "\n"
            )

    def _stop(self, *_: object) -> None:
        self._stopped = True


def draw_round(plan: Plan, number: int) -> list[Trained]:
    """Return a round's windows: all questions of ours, and the public ones whose turn
    it is."""
    public, own = load_public("train"), load_own("train")
    draw = random.Random(plan.seed)
    turns = max(1, round(1 / plan.share))
    chosen: list[Question] = []
    for place, question in enumerate(
        draw.sample(public.questions, len(public.questions))
    ):
        if place % turns == number % turns and draw.random() < SHARES.get(
            question.source, 1.0
        ):
            chosen.append(question)
    drawer = Drawer(
        Corpus(public.texts | own.texts, public.questions + own.questions),
        seed=plan.seed + 7 * number,
    )
    return encoded(
        [
            example
            for question in chosen + own.questions
            for example in drawer.examples(question)
        ]
    )


@cache
def dev_sets(own: Split = "dev") -> dict[str, list[Trained]]:
    """Return the windows of the development figures, always the same: of public
    questions, and of a part of ours."""
    found: dict[str, list[Trained]] = {}
    for name, corpus in (("public", load_public("dev")), ("own", load_own(own))):
        questions = random.Random(0).sample(
            corpus.questions, min(DEV_QUESTIONS, len(corpus.questions))
        )
        drawer = Drawer(corpus, seed=0)
        found[name] = encoded(
            [example for question in questions for example in drawer.plain(question)]
        )
    return found


def encoded(
    examples: Sequence[Example],
    folder: Path = EMBEDDED,
    signs: Sequence[str] = BERT_SIGNS,
) -> list[Trained]:
    """Return examples as tokens of the model in `folder`; one whose gold was cut off is left
    out."""
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    texts = dict.fromkeys(
        text
        for one in examples
        for text in (one.question, one.window.above, *one.window.sentences)
    )
    ids = dict(zip(texts, tokenize(tokenizer, list(texts)), strict=True))
    found: list[Trained] = []
    for one in examples:
        window = join(
            tokenizer,
            ids[one.question],
            ids[one.window.above],
            [ids[text] for text in one.window.sentences],
            signs,
        )
        gold = np.zeros(len(window.starts) - 1, dtype=np.float32)
        gold[[place for place in one.gold if place < len(gold)]] = 1
        if gold.any() or not one.gold:
            found.append(Trained(window, gold, one.weight, one.kind))
    return found


def measure(
    weights: Tensors, windows: Sequence[Trained], forward: Forward = forward
) -> dict[str, float]:
    """Return how well sentences and windows are separated.

    `keep_r`: share of an answering window's gold among its best as many sentences.
    AUCs: `keep_auc` of the sentences of answering windows; of answering windows against
    questions written as unanswerable (`near_auc`) and other windows."""
    keep: list[NDArray[np.float32]] = []
    answer: list[float] = []
    order = sorted(
        range(len(windows)), key=lambda place: len(windows[place].window.ids)
    )
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for start in range(0, len(order), 32):
            group = [windows[place].window for place in order[start : start + 32]]
            logits, answers = forward(weights, make_batch(group))
            keep += np.split(
                logits.float().numpy(),
                np.cumsum([len(one.starts) - 1 for one in group])[:-1],
            )
            answer += answers.tolist()
    ordered = [windows[place] for place in order]
    asked = [place for place, one in enumerate(ordered) if one.kind == "answer"]
    precision = []
    for place in asked:
        count = int(ordered[place].gold.sum())
        precision.append(
            float(ordered[place].gold[np.argsort(-keep[place])[:count]].mean())
        )
    gold = np.concatenate([ordered[place].gold for place in asked])
    scores = np.concatenate([keep[place] for place in asked])
    yes = [answer[place] for place in asked]
    found = {
        "keep_r": float(np.mean(precision)),
        "keep_auc": auc(scores[gold > 0], scores[gold == 0]),
    }
    for kind in ("near", "other"):
        found[f"{kind}_auc"] = auc(
            yes,
            [answer[place] for place, one in enumerate(ordered) if one.kind == kind],
        )
    return {name: round(value, 4) for name, value in found.items()}


def auc(
    high: Sequence[float] | NDArray[np.float32],
    low: Sequence[float] | NDArray[np.float32],
) -> float:
    """Return how often a score of `high` is above one of `low`; ties count half."""
    ordered = np.sort(np.asarray(low))
    below = np.searchsorted(ordered, high, side="left") + np.searchsorted(
        ordered, high, side="right"
    )
    return float(below.mean() / 2 / max(1, len(ordered)))


def _batched(
    windows: Sequence[Trained], size: int, draw: random.Random
) -> list[list[Trained]]:
    shuffled = draw.sample(list(windows), len(windows))
    batches = []
    for start in range(0, len(shuffled), POOL):
        pool = sorted(
            shuffled[start : start + POOL], key=lambda one: len(one.window.ids)
        )
        groups = [pool[at : at + size] for at in range(0, len(pool), size)]
        batches += draw.sample(groups, len(groups))
    return batches


def _targets(batch: Sequence[Trained]) -> tuple[Any, Any, Any, Any]:
    """Return gold of each sentence, whether each window answers, the windows' weights,
    and the sentences'."""
    gold = torch.from_numpy(np.concatenate([one.gold for one in batch]))
    right = torch.tensor([float(one.gold.any()) for one in batch])
    weight = torch.tensor([one.weight for one in batch])
    return (
        gold,
        right,
        weight,
        weight.repeat_interleave(torch.tensor([len(one.gold) for one in batch])),
    )


if __name__ == "__main__":
    sys.exit(main())
