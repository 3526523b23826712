"""Recipes: what they are taught from, a run that is interrupted, and the file that comes out of
one."""

import copy
import importlib
import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.recipes import Recorded, costs, losses, missed
from models.llama.model import LlamaGenerator
from models.protocols import Said
from papers.raptor.summarise import supported_part
from tests.support.extras import need
from train.reader.data import Corpus, own_rows
from train.reader.overlap import findings

pytestmark = [
    pytest.mark.slow,
    # We and peft ask transformers by names that are about to go; the new ones are not in all
    # versions that we take.
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated:FutureWarning"),
]
torch = need("train")
lora, datasheet, pruner, summariser = (
    importlib.import_module(f"papers.recipes.{name}")
    for name in ("lora", "datasheet", "pruner", "summariser")
)
CONFIG = {
    "steps": 6,
    "batch": 2,
    "warmup": 1,
    "layers": 2,
    "rank": 4,
    "dev": 2,
    "every": 3,
    "threads": 1,
}
LAYERS = 8
"""Layers of the base that the loop is tried on."""


def _samples(*, pairs: bool = False) -> dict[str, Any]:
    def one(number: int) -> Any:
        return lora.Sample(
            f"When does boat {number} leave?", f"At {number} o'clock.", "Never." if pairs else ""
        )

    return {
        "train": [one(number) for number in range(20)],
        "dev": [one(number) for number in range(20, 23)],
    }


def _run(folder: Path, *, base: Any = None, pairs: bool = False, **others: Any) -> Any:
    """Return a run on a base of its own, or on one that takes a new adapter."""
    config = lora.Config(**CONFIG | others)
    if base is not None:
        base.restart(config)
    try:
        return lora.Run(config, base or lora.Base(config), _samples(pairs=pairs), folder)
    except lora.UsageError as error:
        pytest.skip(str(error))


def _cut(base: Any, layers: int) -> Any:
    """Return a base of the first `layers` of another, with weights of its own."""
    other = copy.copy(base)
    model = copy.deepcopy(base.model).unload()
    model.model.layers = model.model.layers[:layers]
    model.config.num_hidden_layers = layers
    other.adapt(model, lora.Config(**CONFIG))
    return other


def _copied(base: Any) -> Any:
    """Return a base with weights of its own, without reading the file again."""
    other = copy.copy(base)
    other.model = copy.deepcopy(base.model).requires_grad_(True)
    return other


def _losses(folder: Path) -> list[float]:
    return losses(
        [json.loads(line) for line in (folder / lora.LOG).read_text("utf-8").splitlines()]
    )


def _adapter(run: Any) -> dict[str, Any]:
    return {name: weight.clone() for name, weight in run.base.adapter().items()}


@pytest.fixture(scope="module")
def base(whole_base: Any) -> Any:
    """The first layers of SmolLM2, which learn as all 30 do in a quarter of the time; `restart`
    puts on a new adapter."""
    return _cut(whole_base, LAYERS)


@pytest.fixture(scope="module")
def whole_base() -> Any:
    """The base of the proofs, read once."""
    try:
        return lora.Base(lora.Config(**CONFIG))
    except lora.UsageError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("pairs", "rank"), [(False, 4), (True, 4), (False, 0)], ids=["sft", "dpo", "all weights"]
)
def test_a_run_that_was_interrupted_ends_with_the_weights_of_one_that_was_not(
    tmp_path: Path, base: Any, pairs: bool, rank: int
) -> None:
    def begun(folder: str) -> Any:
        # Where all weights learn, those of the base are gone after a run.
        shared = base if rank else _copied(base)
        return _run(tmp_path / folder, base=shared, pairs=pairs, rank=rank)

    whole = begun("whole")
    whole.go(2)
    wanted = _adapter(whole)
    first = begun("parts")
    first.go(1)
    second = begun("parts")
    assert second.step == 1
    second.go(1)
    found = _adapter(second)
    assert wanted.keys() == found.keys()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    rows = [
        json.loads(line) for line in (tmp_path / "parts" / lora.LOG).read_text("utf-8").splitlines()
    ]
    assert [row["step"] for row in rows if "cpu" in row] == [1, 2]


@pytest.mark.parametrize("name", sorted(datasheet.MAKERS))
def test_each_recipe_takes_two_steps_on_samples_of_its_own_and_is_resumed_among_them(
    tmp_path: Path, shared: Path, base: Any, name: str
) -> None:
    made = list(islice(datasheet.MAKERS[name]("dev", 0), 20))
    config = lora.Config(**CONFIG | {"steps": 2, "most_tokens": 400})
    base.restart(config)
    run = lora.Run(config, base, {"train": made, "dev": made}, tmp_path / "whole")
    assert run.go()["loss"] > 0
    wanted = _adapter(run)
    for steps in (1, 1):
        base.restart(config)
        run = lora.Run(config, base, {"train": made, "dev": made}, tmp_path / "parts")
        run.go(steps)
    found = _adapter(run)
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    assert _losses(tmp_path / "whole") == _losses(tmp_path / "parts")
    assert len(_losses(tmp_path / "parts")) == 2


def test_the_first_steps_of_a_run_are_repeated_from_the_places_of_their_samples(
    tmp_path: Path, base: Any
) -> None:
    run = _run(tmp_path / "run", base=base)
    run.go(lora.FIRST_STEPS)
    picked = lora.made_at(lambda part, _: _samples()[part], run.config, run.first)
    assert {part: len(samples) for part, samples in picked.items()} == {"train": 6, "dev": 1}
    base.restart(run.config)
    again = lora.Run(run.config, base, picked, tmp_path / "again")
    again.order = again.train
    again.go(lora.FIRST_STEPS)
    first, second = (_losses(tmp_path / name) for name in ("run", "again"))
    assert len(first) == lora.FIRST_STEPS
    assert first == second


def test_packing_and_checkpointing_spare_room_and_leave_the_losses(
    tmp_path: Path, base: Any
) -> None:
    samples = _samples()
    # Of two lengths, else nothing would be filled up.
    samples["train"][::2] = [
        lora.Sample(f"And then? {one.prompt * 3}", one.answer) for one in samples["train"][::2]
    ]
    found = []
    for name in ("plainly", "packing", "checkpointing"):
        config = lora.Config(**CONFIG | ({} if name == "plainly" else {name: True}))
        base.restart(config)
        lora.Run(config, base, samples, tmp_path / name).go(lora.FIRST_STEPS)
        found.append(_losses(tmp_path / name))
    assert np.allclose(found[1:], found[0], atol=2e-3)


@pytest.mark.parametrize(("constant", "level"), [(True, [1, 1, 1, 1]), (False, [1, 0.75, 0.25, 0])])
def test_a_run_steps_by_the_betas_decay_and_schedule_of_its_configuration(
    tmp_path: Path, base: Any, constant: bool, level: list[float]
) -> None:
    run = _run(tmp_path, base=base, steps=4, rate=2e-5, beta2=0.98, decay=1e-4, constant=constant)
    (group,) = run.optimizer.param_groups
    assert (group["betas"], group["weight_decay"]) == ((0.9, 0.98), 1e-4)
    rates = []
    for _ in range(4):
        run.optimizer.step()
        run.schedule.step()
        rates += run.schedule.get_last_lr()
    # One step of warm-up, then level or half a cosine over the three others
    assert np.allclose(rates, 2e-5 * np.array(level))


def test_a_run_is_not_gone_on_with_other_samples(tmp_path: Path, base: Any) -> None:
    run = _run(tmp_path, base=base)
    run.save()
    others = {part: samples[1:] for part, samples in _samples().items()}
    with pytest.raises(lora.UsageError, match="begun with other samples"):
        lora.Run(run.config, run.base, others, tmp_path)


@pytest.mark.anyio
async def test_a_tuned_model_is_written_as_gguf_and_answers_as_it_did_in_training(
    tmp_path: Path, whole_base: Any
) -> None:
    run = _run(tmp_path, base=_copied(whole_base))
    for weight in run.weights:
        torch.nn.init.normal_(weight, std=0.02, generator=torch.Generator().manual_seed(1))
    asked, options = "When does boat 3 leave?", ("At 3 o'clock.", "Never.")
    pairs = [run.base.encode(lora.Sample(asked, option), 200)[0] for option in options]
    with torch.no_grad():
        wanted = [float(found[:-1].sum()) for found in run.base.log_probabilities(pairs)]
    fingerprint = lora.export(run.base, run.config, tmp_path / "tuned.gguf", "q8_0")
    assert len(fingerprint) == 64
    model = LlamaGenerator(tmp_path / "tuned.gguf")
    try:
        scores = await model.score_tree([Said("user", asked)], options)
    finally:
        await model.aclose()
    # 8 bits a weight shift a log-probability by some hundredths a token.
    assert np.allclose(scores.log_probabilities, wanted, atol=1.0)
    assert (
        abs((scores.log_probabilities[0] - scores.log_probabilities[1]) - (wanted[0] - wanted[1]))
        < 0.7
    )


def test_the_pruner_is_shown_the_block_that_answers_among_others_of_its_page(shared: Path) -> None:
    asked = {row["question"] for row in own_rows() if row["split"] == "train"}
    made = list(islice(pruner.path_samples("train"), 20))
    assert len(made) == 20
    for one in made:
        assert one.question in asked
        assert len(one.paths) >= 2
        assert len(set(one.paths)) == len(one.paths)
        tag = one.paths[one.gold].rpartition("<")[2].partition(">")[0]
        assert f"<{tag}>" in one.prompt
    again = list(islice(pruner.path_samples("train"), 20))
    assert made == again


def test_a_library_of_pages_held_aside_asks_what_they_answer_and_what_they_do_not(
    tmp_path: Path, shared: Path
) -> None:
    count = pruner.write_library(tmp_path, "dev")
    asked = [
        json.loads(line) for line in (tmp_path / "questions.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(asked) == count
    rows = [row for row in own_rows() if row["split"] == "dev"]
    answered, others = ({row[kind] for row in rows} for kind in ("question", "twin"))
    for one in asked:
        assert one["question"] in (answered if one["answers"] else others - {""})
        assert (tmp_path / "library" / one["pages"][0]).is_file()
    assert any(not one["answers"] for one in asked)


def test_a_rejected_summary_says_what_no_paragraph_says_and_the_right_one_does_not(
    shared: Path,
) -> None:
    made = [one for one in islice(summariser.summary_samples("train"), 20) if one.rejected]
    assert made
    for one in made:
        said = one.prompt.partition("Passages:")[2].rpartition("Summary:")[0]
        assert not supported_part(one.summary, said, max_tokens=1_000).unsupported
        assert supported_part(one.rejected, said, max_tokens=1_000).unsupported


def test_runs_that_are_short_or_learn_nothing_are_named() -> None:
    steps = [{"step": step + 1, "loss": 2.0 - step / 400, "cpu": 1.0} for step in range(400)]
    rows = [{"step": 0, "dev_loss": 2.0}, *steps]
    good = Recorded(
        "parser", {"batch": 2}, [*rows, {"step": 400, "dev_loss": 1.0}], {"f1": 0.1}, {"f1": 0.2}
    )
    flat = Recorded(
        "pruner", {"batch": 2}, [*rows, {"step": 400, "dev_loss": 2.0}], {"f1": 0.1}, {"f1": 0.1}
    )
    found = list(missed([good, flat]))
    assert [line.split(":")[0] for line in found[:2]] == ["extractor", "pruner"]
    assert found[2].startswith("1 runs have a figure that is better")
    assert "| SmolLM2-135M | 2,048 | LoRA |" in "\n".join(costs())


def test_no_article_that_summaries_are_made_of_judges_us(shared: Path) -> None:
    found = findings(Corpus(datasheet.articles(), []))
    assert found == {"question": [], "sentence": [], "page": []}
