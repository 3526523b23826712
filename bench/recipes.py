"""Reads the runs of the training recipes, repeats their beginnings, and shows what they
brought and would cost.

    python -m bench.recipes                    the runs in papers/recipes/runs: steps, losses, figures before and after
    python -m bench.recipes --check            repeats 3 steps of each; exit code 1 naming each that falls short
    python -m bench.recipes --check --whole    the same with all samples in order, as training makes them (minutes)
    python -m bench.recipes --costs            memory and time on three sizes of GPU, computed
    python -m bench.recipes --judge NAME       a model on questions that no recipe saw; `--model FILE.gguf`, or the base

A run's folder holds `config.json`, `log.jsonl` and `first.json` (which samples its
first steps took). It also holds figures of the model before and after the run
(`before*.json`, `after*.json`), as `--judge` prints them (some rows by `bench.eval`,
which is in the history). Not for: training (`train/`)."""

import argparse
import importlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import anyio
import numpy as np

from errors import ModelError
from models.llama.model import LlamaGenerator
from models.protocols import Generator, Said
from papers.zero_index.ask import ask
from papers.zero_index.parser import REQUEST_SCHEMA
from pipeline.messages import ANSWER_TOKENS
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25
from pipeline.search.parse import parse_request
from train.reader.data import SHARED

RUNS: Final = Path(__file__).resolve().parents[1] / "papers" / "recipes" / "runs"
ASKED: Final = 400
"""Steps that a run of these must have: shorter ones show that the code runs, not that a
recipe teaches."""
PROVEN: Final = ("parser", "extractor", "pruner")
REPEATED: Final = 3
"""As many as `papers.recipes.lora.FIRST_STEPS` writes the samples of down."""
NEAR: Final = 0.02
"""Most that a repeated step's loss may differ: sums in another order, on another
processor, stay below it."""
AVERAGED: Final = 50
"""Steps of the mean of losses that is reported."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a judge."""

    what: str
    n: int
    model: float
    naive: float | None
    """Of the same questions without a model."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One run, as its folder shows it."""

    name: str
    config: dict[str, Any]
    log: list[dict[str, float]]
    before: dict[str, float]
    """Figures of the model that it began with, by name."""
    after: dict[str, float]
    first: dict[str, list[int]] = field(default_factory=dict)
    """Which of the samples that its recipe makes its first steps took, by part."""

    @property
    def losses(self) -> list[float]:
        """Loss of each step, in order."""
        return losses(self.log)

    @property
    def dev(self) -> list[float]:
        """Loss on the dev samples, from before the first step to after the last."""
        return [row["dev_loss"] for row in self.log if "dev_loss" in row]


def losses(log: Sequence[dict[str, float]]) -> list[float]:
    """Return the loss of each step in a log, in order; a run's last step is there
    twice."""
    return list({row["step"]: row["loss"] for row in log if "cpu" in row}.values())


def read_runs(folder: Path) -> list[Recorded]:
    """Return the runs in `folder`, by name."""
    return [
        Recorded(
            log.parent.name,
            json.loads((log.parent / "config.json").read_text("utf-8")),
            list(map(json.loads, log.read_text("utf-8").splitlines())),
            _figures(log.parent, "before"),
            _figures(log.parent, "after"),
            json.loads((log.parent / "first.json").read_text("utf-8")),
        )
        for log in sorted(folder.glob("*/log.jsonl"))
    ]


def _figures(folder: Path, when: str) -> dict[str, float]:
    rows = [
        row
        for path in sorted(folder.glob(f"{when}*.json"))
        for row in json.loads(path.read_text("utf-8"))["rows"]
    ]
    return {
        f"{row['step']}: {row['what']} (n={row['n']})": row["model"]
        for row in rows
        if row["model"] is not None
    }


def report(run: Recorded) -> None:
    """Print a run's steps, losses and figures."""
    first, last = np.mean(run.losses[:AVERAGED]), np.mean(run.losses[-AVERAGED:])
    hours = sum(row.get("cpu", 0.0) for row in run.log) / 3600
    print(
        f"\n{run.name}: {len(run.losses)} steps of {run.config['batch']}, {hours:.2f} processor "
        f"hours, "
        f"loss {first:.3f} in the first {AVERAGED} steps, {last:.3f} in the last, "
        f"dev {run.dev[0]:.3f} → {run.dev[-1]:.3f}"
    )
    for name in run.before.keys() & run.after.keys():
        print(f"  {run.before[name]:6.3f} → {run.after[name]:6.3f}  {name}")


def missed(runs: Sequence[Recorded]) -> Iterator[str]:
    """Yield a line for each thing that the runs fall short of."""
    known = {run.name: run for run in runs}
    for name in PROVEN:
        run = known.get(name)
        if run is None or len(run.losses) < ASKED:
            yield f"{name}: {len(run.losses) if run else 0} steps, asked for {ASKED}"
        elif run.dev[-1] >= run.dev[0]:
            yield f"{name}: dev loss {run.dev[0]} before, {run.dev[-1]} after"
    better = sum(
        any(
            run.after[key] > run.before[key]
            for key in run.before.keys() & run.after.keys()
        )
        for run in runs
    )
    if better < len(PROVEN) - 1:
        yield (
            f"{better} runs have a figure that is better after than before, asked for "
            f"{len(PROVEN) - 1}"
        )


def repeated(runs: Sequence[Recorded], *, whole: bool) -> Iterator[str]:
    """Take the first steps of each run again; yield a line for each that differs.

    The base is loaded once, and a second process makes the samples meanwhile: of each
    run those up to the last that its first steps take, at the places that the run wrote
    down. With `whole` all are made and encoded, and put in order, as training does it,
    so that the places are shown, too."""
    lora = importlib.import_module("papers.recipes.lora")
    again = []
    # The cheapest samples first, so that steps are taken while the extractor's are made.
    for run in reversed(runs):
        if (
            run.config["start"]
            and not (RUNS.parents[2] / run.config["start"] / lora.CHECKPOINT).exists()
        ):
            print(
                f"{run.name}: not repeated, for it goes on from {run.config['start']}, whose "
                f"weights are not carried"
            )
        else:
            again.append(run)
    with ProcessPoolExecutor(1, get_context("spawn")) as second:
        waiting = [
            second.submit(samples_of, run.name, run.config, run.first, whole=whole)
            for run in again
        ]
        base = lora.Base(lora.Config(base=again[0].config["base"])) if again else None
        for run, samples in zip(again, waiting, strict=True):
            yield from repeat(run, samples.result(), base, whole=whole)


def samples_of(
    name: str, config: dict[str, Any], places: dict[str, list[int]], *, whole: bool
) -> dict[str, list[Any]]:
    """Return a run's samples by part, made again: those at some places, or all with
    `whole`."""
    lora = importlib.import_module("papers.recipes.lora")
    make, made = (
        importlib.import_module("papers.recipes.datasheet").MAKERS[name],
        lora.Config(**config),
    )
    if whole:
        return {part: list(samples) for part, samples in lora.made(make, made).items()}
    found: dict[str, list[Any]] = lora.made_at(make, made, places)
    return found


def repeat(
    run: Recorded, samples: dict[str, list[Any]], base: Any, *, whole: bool
) -> Iterator[str]:
    """Take the first steps of a run again with an adapter of its own on `base`; yield
    in what they differ."""
    lora = importlib.import_module("papers.recipes.lora")
    if not whole and {part: len(found) for part, found in samples.items()} != {
        k: len(v) for k, v in run.first.items()
    }:
        yield f"{run.name}: its recipe makes fewer samples than its first steps took"
        return
    # Within the warm-up the rate does not depend on how many steps there are.
    config = lora.Config(**run.config | {"steps": REPEATED, "dev": 1})
    base.restart(config)
    with tempfile.TemporaryDirectory() as folder:
        rerun = lora.Run(config, base, samples, Path(folder))
        if not whole:
            # They are in the order of the steps already.
            rerun.order = rerun.train
        elif rerun.first != run.first:
            yield (
                f"{run.name}: its first steps take the samples {rerun.first}, the run's took "
                f"{run.first}"
            )
        rerun.go(REPEATED)
        found = losses(
            list(
                map(
                    json.loads,
                    (Path(folder) / lora.LOG).read_text("utf-8").splitlines(),
                )
            )
        )
    worst = max(
        abs(one - other)
        for one, other in zip(found, run.losses[:REPEATED], strict=True)
    )
    print(
        f"{run.name}: losses of {len(found)} steps {found}, {worst:.4f} from the run's at most",
        flush=True,
    )
    if worst > NEAR:
        yield f"{run.name}: a repeated loss differs by {worst:.4f}, at most {NEAR}"


# Picture


SIZES: Final = {
    "SmolLM2-135M": (0.135e9, 30, 576),
    "Phi-3.5-mini (HtmlRAG's pruner)": (3.8e9, 32, 3072),
    "Yi-6B (zero-index's parser)": (6.1e9, 32, 4096),
    "Yi-9B (zero-index's extractor)": (8.8e9, 48, 4096),
}
"""Parameters, layers and width."""
CARDS: Final = {8: 10e12, 24: 50e12, 80: 300e12}
"""GB, and operations a second that are assumed to be sustained in bf16, a third of what
such cards are sold as."""
ADAPTED: Final = 0.02
"""Adapters' parameters as a share of the model's: rank 16 on all matrices is 3.6 % of
135 M and 0.5 % of 8 B."""
SAMPLES: Final = 10_000
LENGTHS: Final = (2_048, 16_384)


def costs() -> list[str]:
    """Return a Markdown table of memory and hours, computed.

    Weights are 2 bytes a parameter; what is trained has 16 more (gradient, two moments
    and a copy in float32). Gradient checkpointing keeps one vector a token and layer
    and works on one layer at a time (34 bytes a token and unit of width). Operations a
    token are 2 a parameter forward, as many for checkpointing, as many backward through
    activations, as many again where all weights learn; causal attention adds 2 a token
    before it, layer and unit of width, halved, four times."""
    lines = [
        "| model | tokens | training | GB | fits | hours for 10,000 samples |",
        "|---|---|---|---|---|---|",
    ]
    for name, (size, layers, width) in SIZES.items():
        for length in LENGTHS:
            kept = length * width * (2 * layers + 34)
            attention = length * width * layers
            for how, learns, passes in (("LoRA", ADAPTED, 3), ("full", 1.0, 4)):
                bytes_ = 2 * size + 16 * learns * size + kept
                fits = [card for card in CARDS if bytes_ < 0.9 * card * 1e9]
                operations = 2 * passes * size + 8 * attention
                hours = [
                    operations * length * SAMPLES / CARDS[card] / 3600 for card in fits
                ]
                reported = ", ".join(
                    f"{hour:,.1f} ({card} GB)"
                    for hour, card in zip(hours, fits, strict=True)
                )
                room = f"from {fits[0]} GB" if fits else "no single card of these"
                lines.append(
                    f"| {name} | {length:,} | {how} | {bytes_ / 1e9:,.1f} | {room} | "
                    f"{reported or '–'} |"
                )
    return lines


# Judges: what a recipe teaches, on questions that it did not see


async def exact_parses(model: LlamaGenerator, count: int) -> list[Row]:
    """Return how often a model says of a dev request what is right by how the request
    was made.

    Beside it, for what they find, the rules that replace a model.
    """
    samples = importlib.import_module("papers.recipes.parser").parsed_requests(
        "dev", seed=1
    )[:count]
    said, rules = Counter[str](), Counter[str]()
    for request, one in samples:
        right = json.loads(one.answer)
        by_rule = parse_request(request, today=date(2024, 1, 1))
        rules["freshness"] += by_rule.queries[0].freshness == right["freshness"]
        rules["names"] += set(by_rule.entities) == set(right["entities"])
        try:
            found = json.loads(
                await model.generate(
                    [Said("user", one.prompt)],
                    max_tokens=ANSWER_TOKENS,
                    schema=REQUEST_SCHEMA,
                )
            )
        except ModelError:
            continue
        said["freshness"] += found["freshness"] == right["freshness"]
        said["names"] += set(found["entities"]) == set(right["entities"])
        said["queries"] += {one["text"] for one in found["queries"]} == {
            one["text"] for one in right["queries"]
        }
    return [
        Row(
            "freshness exact",
            len(samples),
            said["freshness"] / len(samples),
            rules["freshness"] / len(samples),
        ),
        Row(
            "names exact",
            len(samples),
            said["names"] / len(samples),
            rules["names"] / len(samples),
        ),
        Row("queries exact", len(samples), said["queries"] / len(samples), None),
    ]


async def right_lines(model: Generator, count: int) -> list[Row]:
    """Return how well the lines that a model names are those that answer, on pages of
    sites held aside.

    Beside it the line nearest by BM25, which never says None.
    """
    held = importlib.import_module("papers.recipes.extractor").shown_candidates(
        "held", seed=0
    )[:count]
    some: list[tuple[float, float]] = []
    nothing: list[float] = []
    exact: list[tuple[float, float]] = []
    not_none: list[float] = []
    for one in held:
        gold = frozenset(
            line.row
            for number, line in enumerate(one.candidates, start=1)
            if number in one.gold
        )
        try:
            chosen = frozenset(
                (await ask(one.question, one.candidates, model, way="lines")).rows
            )
        except ModelError:
            chosen = frozenset({-1})
        scores = BM25([line.sentence.text for line in one.candidates]).scores(
            Question(one.question)
        )
        nearest = frozenset({one.candidates[int(np.argmax(scores))].row})
        exact.append((float(chosen == gold), float(nearest == gold)))
        if gold:
            some.append((f1(gold, chosen), f1(gold, nearest)))
            not_none.append(float(bool(chosen)))
        else:
            nothing.append(float(not chosen))
    by_model, by_words = np.mean(some, axis=0).tolist()
    return [
        Row("F1 of lines where some answer", len(some), by_model, by_words),
        Row("None said where none answers", len(nothing), float(np.mean(nothing)), 0.0),
        Row("not None where some answer", len(some), float(np.mean(not_none)), 1.0),
        Row("exact, None among it", len(exact), *np.mean(exact, axis=0).tolist()),
    ]


def f1(gold: frozenset[int], chosen: frozenset[int]) -> float:
    """Return the harmonic mean of precision and recall; `gold` is not empty."""
    return 2 * len(gold & chosen) / (len(gold) + len(chosen))


async def right_paths(model: LlamaGenerator, count: int) -> list[Row]:
    """Return how often a model gives the block that answers the highest score, on pages
    of sites held aside.

    Beside it what a choice at random gives.
    """
    held = list(
        importlib.import_module("papers.recipes.pruner").path_samples("held", seed=0)
    )
    held = [
        held[number * len(held) // count] for number in range(min(count, len(held)))
    ]
    right, ranks = [], []
    for one in held:
        found = await model.score_tree(
            [Said("user", one.prompt)], one.paths, among_siblings=True
        )
        scores = found.log_probabilities
        ahead = int((scores > scores[one.gold]).sum()) + 0.5 * (
            int((scores == scores[one.gold]).sum()) - 1
        )
        right.append(float(ahead == 0))
        ranks.append(1 / (1 + ahead))
    chance = float(np.mean([1 / len(one.paths) for one in held]))
    return [
        Row(
            "the right block's path is first", len(held), float(np.mean(right)), chance
        ),
        Row(
            "reciprocal rank of the right path", len(held), float(np.mean(ranks)), None
        ),
    ]


JUDGES: Final = {
    "parser": exact_parses,
    "extractor": right_lines,
    "pruner": right_paths,
}


async def judge(recipe: str, path: Path, count: int) -> dict[str, Any]:
    """Return what a recipe's judge says of the model in a GGUF file, in the form of
    `winnow eval --json`."""
    model = LlamaGenerator(path)
    try:
        rows = await JUDGES[recipe](model, count)
    finally:
        await model.aclose()
    return {
        "generator": path.name,
        "rows": [{"step": recipe, **asdict(row)} for row in rows],
    }


def main() -> int:
    """Print what is asked for; return 1 when `--check` finds something short."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument(
        "--whole",
        action="store_true",
        help="for --check: all samples made, encoded and ordered again",
    )
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--judge", choices=sorted(JUDGES))
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FILE.gguf",
        help="for --judge; the base of the proofs without",
    )
    parser.add_argument("--count", type=int, default=200, help="samples for --judge")
    chosen = parser.parse_args()
    if chosen.costs:
        print("\n".join(costs()))
        return 0
    if chosen.judge:
        path = chosen.model or importlib.import_module("papers.recipes.lora").packaged()
        print(
            json.dumps(
                anyio.run(partial(judge, chosen.judge, path, chosen.count)), indent=1
            )
        )
        return 0
    runs = read_runs(RUNS)
    for run in runs:
        report(run)
    if not chosen.check:
        return 0
    short = list(missed(runs))
    if SHARED.is_dir() and importlib.util.find_spec("peft"):
        short += repeated(runs, whole=chosen.whole)
    else:
        print("not repeated: ../shared/data or the extra `train` is missing")
    for line in short:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
