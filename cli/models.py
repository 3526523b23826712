"""`winnow models show|list|pull|remove`: the model of each role, and downloads.

Only `pull` downloads. Not for: answering questions.
"""

import argparse
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial
from typing import Any, Final, cast

import anyio

from cli.output import OK, Check, print_json, show
from cli.subcommand import settings_from
from errors import UsageError, WinnowError
from models.catalogue import MODELS, Offered, offered_models
from models.choose import Chosen
from models.protocols import (
    CrossEncoder,
    Embedder,
    Generator,
    HeldModel,
    Reranker,
    Said,
    Window,
)
from models.pull import describe, kept_files, pull, remove
from server.settings import Settings
from server.shared import Shared
from server.wiring import open_models

PROBE: Final = "A ferry leaves the harbour at noon."

Model = Embedder | CrossEncoder | Reranker | Generator


def run_models(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Run a `winnow models` command; return the exit code.

    Raises `UsageError` for `pull` or `remove` without a name, for an unknown name, and
    for removing a file that was not downloaded.
    """
    if args.action in ("pull", "remove") and not args.names:
        raise UsageError(
            f"`winnow models {args.action}` requires a name.",
            hint="`winnow models list` shows them.",
        )
    if args.action == "list":
        return _list(args.json)
    if args.action == "pull":
        return _pull(offered_models(args.names), args)
    if args.action == "remove":
        return _remove(offered_models(args.names))
    settings = settings_from(overrides)
    checks = anyio.run(partial(report_roles, settings, tried=False))
    show({check.name: check.line for check in checks}, as_json=args.json)
    return OK


def _list(as_json: bool) -> int:
    """Print what the catalogue offers, and every other file among the downloads."""
    downloads = kept_files()
    paths = {offered.path for offered in MODELS.values()}
    others = [f"llama:{name}" for name in downloads if name not in paths]
    if as_json:
        rows = {
            name: {**asdict(offered), "here": str(downloads.get(offered.path, "no"))}
            for name, offered in MODELS.items()
        }
        print_json({"models": rows, "others": others})
        return OK
    for name, offered in MODELS.items():
        status = "here" if offered.path in downloads else "    "
        size = f"{offered.megabytes:>6} MB"
        about = f"{offered.licence}; {offered.note}"
        print(f"{status} {name:26} {offered.role:10} {size}  {about}")
    for name in others:
        print(f"here {name}")
    return OK


def _pull(models: list[Offered], args: argparse.Namespace) -> int:
    for offered in models:
        remote = describe(offered.repository, offered.file)
        size = f"{remote.bytes / 1e6:.1f} MB"
        about = (
            f"{offered.licence}, hash {remote.hash}, revision {remote.revision[:12]}"
        )
        print(f"{offered.path}: {size}, {about}")
        if args.dry_run:
            continue
        path = pull(remote, quiet=args.quiet)
        setting = f"WINNOW_{offered.role.upper()}={offered.spec}"
        print(f"  verified and stored at {path}")
        print(f"  used while {offered.role} is auto; by name: {setting}")
    return OK


def _remove(models: list[Offered]) -> int:
    for offered in models:
        freed = remove(offered.repository, offered.file)
        print(f"removed {offered.path}: {freed / 1e6:.0f} MB")
    return OK


async def report_roles(settings: Settings, *, tried: bool) -> list[Check]:
    """Return a check for each role; with `tried`, each model runs a small input
    first."""
    async with AsyncExitStack() as stack:
        models = await open_models(settings, Shared(stack))
        return [
            await _report(role, chosen, tried=tried)
            for role, chosen in models._asdict().items()
        ]


async def _report(role: str, chosen: Chosen[Any], *, tried: bool) -> Check:
    model: Model | None = chosen.model
    if model is None:
        return Check(role, f"none; {chosen.reason}.")
    runs_on = model.runs_on if isinstance(model, HeldModel) else ""
    works, healthy = "", True
    if tried:
        started = time.perf_counter()
        try:
            await _use(role, model)
            seconds = time.perf_counter() - started
            works = f"works, {1_000 * seconds:.0f} ms with loading"
        except WinnowError as error:
            works, healthy = str(error), False
    phrases = (model.name, runs_on, works, chosen.reason)
    return Check(role, f"{'; '.join(filter(None, phrases))}.", healthy)


async def _use(role: str, model: Model) -> None:
    if role == "generator":
        generator = cast(Generator, model)
        await generator.generate([Said("user", "Say yes.")], max_tokens=4)
    elif role == "embedder":
        await cast(Embedder, model).embed([PROBE], kind="passage")
    elif role == "reader":
        await cast(CrossEncoder, model).read(PROBE, [Window("", (PROBE,))])
    else:
        await cast(Reranker, model).score(PROBE, [PROBE])
