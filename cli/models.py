"""`winnow models list|show|pull|remove|bench`: models, their roles, downloads, speed.

Only `pull` downloads. Not for: answering questions.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import anyio

from cli.output import OK, Check, for_person, print_json, show
from errors import UsageError, WinnowError
from extra import lacking
from models.catalogue import (
    MODELS,
    PROFILES,
    Offered,
    Profile,
    fitting_profile,
    wanted,
)
from models.choose import Chosen
from models.hardware import (
    OFFLOADS,
    Build,
    Hardware,
    Host,
    ThisHost,
    hardware_of,
    right_build,
)
from models.llama.model import GgufModel, LlamaGenerator
from models.llama.placement import Placement, Plan, place
from models.llama.probe import InstalledBuild, installed_build
from models.pipe import memory_of
from models.protocols import (
    CrossEncoder,
    Embedder,
    Generator,
    HeldModel,
    Reranker,
    Said,
    Window,
    abilities_of,
)
from models.pull import Hub, describe, kept_files, pull, remove
from models.remote.openai import OpenAIEmbedder, OpenAIGenerator
from models.remote.server import RemoteModel
from models.shares import usable_cores
from models.tuning import Tuning, set_options
from pipeline.text.tokens import count_tokens
from server.clients import service_client
from server.settings import Settings
from server.wiring import open_models

PROBE: Final = "A ferry leaves the harbour at noon."
BENCH_TEXTS: Final = tuple(
    f"{PROBE} It carries {n} cars, and the crossing takes two hours in fair weather. "
    * 4
    for n in range(32)
)
BENCH_PROMPT: Final = "Write a story about a ferry."

Model = Embedder | CrossEncoder | Reranker | Generator


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine's hardware and its llama.cpp build."""

    hardware: Hardware
    build: InstalledBuild


def look(host: Host | None = None, build: InstalledBuild | None = None) -> Machine:
    """Detect hardware and build; `host` and `build` replace them in tests."""
    hardware = hardware_of(host or ThisHost())
    return Machine(hardware, build if build is not None else installed_build())


def machine_checks(machine: Machine) -> list[Check]:
    """Return the checks of GPU and llama.cpp build, with the command to install the
    right build."""
    right, there = right_build(machine.hardware), machine.build
    cards = [str(card) for card in machine.hardware.cards]
    best = machine.hardware.best
    works = best is None or not best.fault
    graphics = Check(
        "graphics", "; ".join(cards) or "no GPU that models can use", healthy=works
    )
    line, wanted_build = str(there), right.backend in OFFLOADS
    suits = there.offloads and bool(there.devices) if wanted_build else not there.fault
    if not there.version:
        line += "; only GGUF models need it"
    fits = suits if there.version else not wanted_build
    if fits:
        return [graphics, Check("llama.cpp", line)]
    line += f"; {_how_to_install(right)}"
    return [graphics, Check("llama.cpp", line, healthy=not there.version)]


def _how_to_install(build: Build) -> str:
    """Return which build is right, why, and the ways to install it."""
    steps = (
        f"the right build: {build.backend} ({build.why})",
        build.needs,
        build.command or "pip install 'winnow-mcp[llama]'",
        build.wheels,
    )
    return "; ".join(filter(None, steps))


def run_models(
    args: argparse.Namespace,
    settings: Settings,
    *,
    machine: Callable[[], Machine] = look,
) -> int:
    """Run a `winnow models` command on `machine`; return the exit code.

    Raises `UsageError` for `pull` or `remove` without a name, for an unknown name, and
    for removing a file that was not downloaded.
    """
    hub = Hub(settings.hub or None, settings.models)
    if args.action in ("pull", "remove") and not args.names:
        raise UsageError(
            f"`winnow models {args.action}` requires a name.",
            hint="`winnow models list` shows them.",
        )
    if args.action == "list":
        return _list(hub, machine(), args.json)
    if args.action == "pull":
        return _pull(hub, wanted(tuple(args.names)), args)
    if args.action == "remove":
        return _remove(hub, wanted(tuple(args.names)))
    if args.action == "bench":
        return anyio.run(_bench, settings, args.json)
    if args.names:
        return _show_models(hub, wanted(tuple(args.names)), args.json)
    return _show_machine(settings, machine(), args.json)


def _remove(hub: Hub, models: list[Offered]) -> int:
    for offered in models:
        freed = remove(hub, offered.repository, offered.file)
        print(f"removed {offered.path}: {freed / 1e6:.0f} MB")
    return OK


def _show_models(hub: Hub, models: list[Offered], as_json: bool) -> int:
    rows = [_row(hub, offered) for offered in models]
    if as_json:
        print_json(rows)
        return OK
    for row in rows:
        show(row, as_json=False)
        print()
    return OK


def _show_machine(settings: Settings, machine: Machine, as_json: bool) -> int:
    """Print hardware, build, and each role's model with its options."""
    reports = [
        *machine_checks(machine),
        *anyio.run(partial(report_roles, settings, tried=False, machine=machine)),
    ]
    options = anyio.run(_options, settings, machine)
    shown: dict[str, object] = {report.name: report.line for report in reports}
    shown |= {
        f"{role} options": found if as_json else _lines(found)
        for role, found in options
    }
    show(shown, as_json=as_json)
    return OK


async def _options(
    settings: Settings, machine: Machine
) -> list[tuple[str, dict[str, str]]]:
    """Return, per role, every option with its value and origin."""
    async with (
        service_client(settings.seconds) as http,
        open_models(settings, http) as models,
    ):
        return [
            (role, options_of(chosen.model, machine.build))
            for role, chosen in models._asdict().items()
            if isinstance(chosen.model, GgufModel | OpenAIGenerator)
        ]


def _lines(options: dict[str, str]) -> str:
    return "".join(f"\n    {name:12} {shown}" for name, shown in options.items())


def options_of(
    model: GgufModel | OpenAIGenerator, build: InstalledBuild
) -> dict[str, str]:
    """Return every option of a model with its value and origin.

    A model that cannot be placed has the one option `devices`, with the reason.
    """
    if isinstance(model, OpenAIGenerator):
        return _served_options(model)
    tuning, plan = model.tuning, model.plan
    try:
        placed = place(
            model.weights,
            build.devices,
            backends=list(build.backends),
            cores=usable_cores(),
            tuning=tuning,
        )
    except WinnowError as error:
        return {"devices": str(error)}
    values = _usual_options(model, placed)
    if isinstance(model, LlamaGenerator):
        values |= _generator_options(plan, tuning)
    shown = {"split": tuning.split, "flash": tuning.flash, "mmap": tuning.mmap}
    for name in set_options(tuning).keys() & values:
        value, source = values[name]
        if name != "layers":
            source = f"set in {plan.role}_options"
        values[name] = (shown.get(name, value), source)
    return {name: f"{value}: {source}" for name, (value, source) in values.items()}


def _usual_options(
    model: GgufModel, placed: Placement
) -> dict[str, tuple[object, str]]:
    """Return the options of every GGUF model by name, each with its value and origin
    where it is not set."""
    plan, layers = model.plan, model.weights.layers
    on_gpu = layers if placed.gpu_layers < 0 else placed.gpu_layers
    trained = f"of {model.trained_tokens} that the model was trained for"
    return {
        "layers": (f"{on_gpu} of {layers} on a GPU", placed.reason),
        "devices": (
            ", ".join(placed.devices) or "processor",
            "the GPU with most free memory"
            if placed.devices
            else "no layer is on a GPU",
        ),
        "split": ("all on one device", "usual"),
        "context": (plan.context, trained),
        "flash": (_flash(plan, on_gpu), "usual for the role and the device"),
        "threads": (placed.threads, f"{usable_cores()} cores"),
        "batch": (plan.batch, "usual"),
        "mmap": ("on", "usual"),
    }


def _flash(plan: Plan, on_gpu: int) -> str:
    """Return whether flash attention is used where it is not set."""
    if plan.role != "generator":
        return "on"
    if on_gpu:
        return "llama.cpp decides"
    return "on" if plan.kv.startswith("q") else "off on the processor"


def _generator_options(plan: Plan, tuning: Tuning) -> dict[str, tuple[object, str]]:
    """Return the options that only a generator has."""
    kept = "32 bits while the cache is under 1 GB, else 16"
    guessed = f"{tuning.speculate} tokens by prompt lookup"
    return {
        "kv": (plan.kv or "f16", kept),
        **{name: (_value(tuning, name), "usual") for name in SAMPLING},
        "prompt cache": ("on", "shared prompt prefixes are evaluated once"),
        "speculate": (guessed if tuning.speculate else "none", "usual"),
    }


SAMPLING: Final = ("temperature", "top_k", "top_p", "min_p", "seed", "thinking")
SENT_ALWAYS: Final = ("temperature", "thinking")
"""Options of sampling that go with every request to a server."""


def _served_options(model: OpenAIGenerator) -> dict[str, str]:
    """Return the options of a remote model."""
    given = set_options(model.tuning)
    kind = model.server or "the server"
    unused = [name for name in given if name not in (*SAMPLING, "context")]
    found = dict.fromkeys(SAMPLING, f"not sent: {kind} decides")
    found |= {name: f"{_value(model.tuning, name)}: usual" for name in SENT_ALWAYS}
    found |= {
        name: f"{_value(model.tuning, name)}: set in generator_options"
        for name in SAMPLING
        if name in given
    }
    window = model.context_tokens
    source = {
        "setting": "set in generator_options",
        "server": f"from {kind}",
        "usual": "usual where the server does not say",
    }[model.context_source]
    if "context" not in given and model.trained_tokens > window:
        source += (
            f"; the model was trained for {model.trained_tokens}, and context=N in "
            "generator_options asks for more"
        )
    found["context"] = f"{window}: {source}"
    return found | dict.fromkeys(unused, f"not used: {kind} decides it")


def _value(tuning: Tuning, name: str) -> object:
    """Return an option's value as a person writes it."""
    value = getattr(tuning, name)
    return {True: "on", False: "off"}[value] if name == "thinking" else value


def _row(hub: Hub, offered: Offered) -> dict[str, object]:
    path = kept_files(hub).get(offered.path)
    size = path.stat().st_size / 1e6 if path else offered.megabytes
    return {
        "role": offered.role,
        "setting": f"WINNOW_{offered.role.upper()}={offered.spec}",
        "megabytes": round(size) or "unknown until `pull --dry-run`",
        "licence": offered.licence,
        "note": offered.note,
        "here": str(path) if path else "no",
    }


def _list(hub: Hub, machine: Machine, as_json: bool) -> int:
    fitting = fitting_profile(machine.hardware)
    checks = machine_checks(machine)
    models = {
        name: {
            **_row(hub, offered),
            "profiles": [p.name for p in PROFILES.values() if name in p.models],
        }
        for name, offered in MODELS.items()
    }
    known = {offered.spec for offered in MODELS.values()}
    others = {
        f"llama:{name}": path
        for name, path in kept_files(hub).items()
        if f"llama:{name}" not in known
    }
    if as_json:
        profiles = {
            p.name: {"machine": p.machine, "models": p.models, "resident": p.resident}
            for p in PROFILES.values()
        }
        data = {
            "machine": str(machine.hardware),
            **{check.name: check.line for check in checks},
            "fitting": fitting.name,
            "profiles": profiles,
            "models": models,
        }
        print_json({**data, "others": list(others)})
        return OK
    print(f"This machine: {machine.hardware}; profile {fitting.name}.")
    print(f"llama.cpp: {checks[-1].line}.\n")
    _print_profiles()
    print()
    for name, row in models.items():
        mark = "here" if row["here"] != "no" else "    "
        print(
            f"{mark} {name:26} {row['role']:10} {row['megabytes']:>6} MB  {row['licence']}; "
            f"{row['note']}"
        )
    for spec, path in others.items():
        print(f"here {spec} {path.stat().st_size / 1e6:.0f} MB")
    return OK


def _print_profiles() -> None:
    for profile in PROFILES.values():
        total = sum(MODELS[name].megabytes for name in profile.models) / 1_000
        print(
            f"{profile.name}: {profile.machine}; {total:.1f} GB to download, "
            f"{profile.resident} in "
            f"memory"
        )
        print(f"    {', '.join(profile.models)}")


def _pull(hub: Hub, models: list[Offered], args: argparse.Namespace) -> int:
    for offered in models:
        found = describe(hub, offered.repository, offered.file)
        facts = (
            f"{found.bytes / 1e6:.1f} MB, {offered.licence}, hash {found.hash}, revision "
            f"{found.revision[:12]}"
        )
        print(f"{offered.path}: {facts}")
        if args.dry_run:
            continue
        path = pull(hub, found, quiet=args.quiet)
        print(f"  verified and stored at {path}")
        print(
            f"used for the {offered.role} while that is set to auto; to "
            "set it by name: "
            f"WINNOW_{offered.role.upper()}={offered.spec}"
        )
    return OK


async def report_roles(
    settings: Settings, *, tried: bool, machine: Machine
) -> list[Check]:
    """Return a check for each role; with `tried`, each model runs a small input
    first."""
    profile = fitting_profile(machine.hardware)
    async with (
        service_client(settings.seconds) as http,
        open_models(settings, http) as models,
    ):
        return [
            await _report(role, chosen, profile, tried=tried)
            for role, chosen in models._asdict().items()
        ]


async def _report(
    role: str, chosen: Chosen[Any], profile: Profile, *, tried: bool
) -> Check:
    model: Model | None = chosen.model
    parts = ["none", chosen.reason]
    healthy = True
    if model is not None:
        works = ""
        try:
            if tried:
                started = time.perf_counter()
                await _use(role, model, [PROBE], "Say yes.", 4)
                works = f"works, {1_000 * (time.perf_counter() - started):.0f} ms with loading"
        except WinnowError as error:
            works, healthy = for_person(str(error)), False
        backend, device, memory = _standing(model)
        parts = [
            backend,
            model.name,
            device,
            memory,
            works,
            _reason(model, chosen.reason),
        ]
    line = "; ".join(part for part in parts if part) + "."
    better = _better(role, chosen.reason, profile)
    return Check(role, f"{line} Better: {better}" if better else line, healthy)


async def _use(
    role: str, model: Model, texts: Sequence[str], prompt: str, max_tokens: int
) -> int:
    """Run a model on `texts` or `prompt`; return the number of tokens by our
    counter."""
    if role == "generator":
        written = await cast(Generator, model).generate(
            [Said("user", prompt)], max_tokens=max_tokens
        )
        return count_tokens(written)
    if role == "embedder":
        await cast(Embedder, model).embed(texts, kind="passage")
    elif role == "reader":
        await cast(CrossEncoder, model).read(
            PROBE, [Window("", (text,)) for text in texts]
        )
    else:
        await cast(Reranker, model).score(PROBE, texts)
    return sum(map(count_tokens, texts))


async def _bench(settings: Settings, as_json: bool) -> int:
    """Print tokens per second (our counter) and memory of each configured model."""
    rows: list[dict[str, object]] = []
    async with (
        service_client(settings.seconds) as http,
        open_models(settings, http) as models,
    ):
        for role, chosen in models._asdict().items():
            model: Model | None = chosen.model
            if model is None:
                rows.append({"role": role, "model": "none", "reason": chosen.reason})
                continue
            await _use(role, model, [PROBE], "Say yes.", 4)  # loads it
            started = time.perf_counter()
            tokens = await _use(role, model, BENCH_TEXTS, BENCH_PROMPT, 64)
            rate = round(tokens / max(time.perf_counter() - started, 1e-6))
            done = {
                "tokens_per_second": rate,
                "tokens": tokens,
                "memory": _standing(model)[2],
            }
            rows.append({"role": role, "model": model.name, **done})
    if as_json:
        print_json(rows)
        return OK
    for row in rows:
        if "tokens_per_second" in row:
            speed = f"{row['tokens_per_second']} tokens/s over {row['tokens']} tokens (our counter)"
            shown = [str(row["model"]), speed, str(row["memory"])]
            print(f"{row['role']}: {'; '.join(filter(None, shown))}")
        else:
            print(f"{row['role']}: {row['model']}; {row['reason']}")
    return OK


def _standing(model: Model) -> tuple[str, str, str]:
    """Return backend, device and memory of a model; memory is "" if unknown."""
    if isinstance(model, RemoteModel):
        return (
            model.server or "OpenAI-compatible server",
            "runs on the server",
            "",
        )
    if isinstance(model, GgufModel):
        placed = model.placement
        device = (
            f"device {placed['device']}"
            if "device" in placed
            else "device chosen at first use"
        )
        megabytes = memory_of(model.pid)[1] / 1e6 if model.pid is not None else 0.0
        memory = (
            f"{megabytes:.0f} MB in its process"
            if megabytes
            else "no memory before its first use"
        )
        return "llama.cpp", device, memory
    megabytes = memory_of("self")[1] / 1e6
    memory = f"this process takes {megabytes:.0f} MB" if megabytes else ""
    runs_on = model.runs_on if isinstance(model, HeldModel) else None
    return *(runs_on or ("onnxruntime", "processor")), memory


def _reason(model: Model, reason: str) -> str:
    if isinstance(model, GgufModel) and "reason" in model.placement:
        return f"{reason}; {model.placement['reason']}"
    if isinstance(model, RemoteModel) and not model.found:
        return f"{reason}; the server did not answer at /models"
    if isinstance(model, OpenAIEmbedder) and model.dimension:
        return f"{reason}; {model.dimension} dimensions"
    if (
        (found := abilities_of(model))
        and {"choose", "score_tree"} - found
        and "generate" in found
    ):
        return f"{reason}; can do: {', '.join(sorted(found))}"
    return reason


def _better(role: str, reason: str, profile: Profile) -> str:
    """Return the profile's model for a role and how to get it; "" if the role is not on
    `auto`, a model was pulled for it, or the profile has none."""
    if not reason.startswith("auto: ") or "was pulled" in reason:
        return ""
    name = next((model for model in profile.models if MODELS[model].role == role), None)
    if name is None:
        return ""
    offered = MODELS[name]
    first = "pip install 'winnow-mcp[llama]', then " if lacking("llama") else ""
    return (
        f"{offered.file} ({offered.megabytes} MB, {offered.note}) of the profile {profile.name}: "
        f"{first}winnow models pull {name}"
    )
