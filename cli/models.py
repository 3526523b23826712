"""`winnow models list|show|pull|remove|bench`: which models there are, which stand where, and getting them.

Nothing is fetched but by `pull`. Not for: answering questions.
"""

import argparse
import json
import sys

import anyio
from tqdm import tqdm

from cli.model_report import bench_roles, report_roles
from errors import UsageError
from models.catalogue import MODELS, PROFILES, Offered, fitting_profile, this_machine, wanted
from models.pull import Hub, describe, find_kept, kept_files, pull, remove
from server.settings import Settings


def run_models(args: argparse.Namespace, settings: Settings) -> int:
    """Do what `winnow models` was asked; return the exit code.

    Raises:
        WinnowError: A name is unknown, the hub failed, or a model did.
    """
    hub = Hub(settings.hub or None, settings.models)
    if args.action in ("pull", "remove") and not args.names:
        raise UsageError(f"`winnow models {args.action}` needs a name.", hint="`winnow models list` shows them.")
    if args.action == "list":
        return _list(hub, args.json)
    if args.action == "pull":
        return _pull(hub, wanted(tuple(args.names)), args)
    if args.action == "remove":
        for offered in wanted(tuple(args.names)):
            freed = remove(hub, offered.repository, offered.file)
            print(f"removed {offered.repository}/{offered.file}: {freed / 1e6:.0f} MB")
        return 0
    if args.action == "bench":
        return anyio.run(_bench, settings, args.json)
    if args.names:
        return _show_models(hub, wanted(tuple(args.names)), args.json)
    return anyio.run(_show_roles, settings, args.json)


async def _show_roles(settings: Settings, as_json: bool) -> int:
    reports = await report_roles(settings, tried=False)
    if as_json:
        print(json.dumps({report.role: report.line() for report in reports}, ensure_ascii=False, indent=2))
    else:
        for report in reports:
            print(f"{report.role}: {report.line()}")
    return 0


def _show_models(hub: Hub, models: list[Offered], as_json: bool) -> int:
    rows = [_row(hub, offered) for offered in models]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for row in rows:
            print("\n".join(f"{key}: {value}" for key, value in row.items()), end="\n\n")
    return 0


def _row(hub: Hub, offered: Offered) -> dict[str, object]:
    path = find_kept(hub, offered.repository, offered.file)
    size = path.stat().st_size / 1e6 if path else offered.megabytes
    return {
        "role": offered.role,
        "setting": f"WINNOW_{offered.role.upper()}={offered.spec}",
        "megabytes": round(size) or "unknown before `pull --dry-run`",
        "licence": offered.licence,
        "note": offered.note,
        "here": str(path) if path else "no",
    }


def _list(hub: Hub, as_json: bool) -> int:
    machine = this_machine()
    fitting = fitting_profile(machine)
    models = {
        name: {**_row(hub, offered), "profiles": [p.name for p in PROFILES.values() if name in p.models]}
        for name, offered in MODELS.items()
    }
    known = {offered.spec for offered in MODELS.values()}
    others = {f"llama:{name}": path for name, path in kept_files(hub).items() if f"llama:{name}" not in known}
    if as_json:
        profiles = {
            p.name: {"machine": p.machine, "models": p.models, "resident": p.resident} for p in PROFILES.values()
        }
        data = {"machine": str(machine), "fitting": fitting.name, "profiles": profiles, "models": models}
        print(json.dumps({**data, "others": list(others)}, ensure_ascii=False, indent=2))
        return 0
    print(f"This machine: {machine}; profile {fitting.name}.\n")
    for profile in PROFILES.values():
        total = sum(MODELS[name].megabytes for name in profile.models) / 1_000
        print(f"{profile.name}: {profile.machine}; {total:.1f} GB to fetch, {profile.resident} in memory")
        print(f"    {', '.join(profile.models)}")
    print()
    for name, row in models.items():
        mark = "here" if row["here"] != "no" else "    "
        print(f"{mark} {name:26} {row['role']:10} {row['megabytes']:>6} MB  {row['licence']}; {row['note']}")
    for spec, path in others.items():
        print(f"here {spec} {path.stat().st_size / 1e6:.0f} MB")
    return 0


def _pull(hub: Hub, models: list[Offered], args: argparse.Namespace) -> int:
    for offered in models:
        found = describe(hub, offered.repository, offered.file)
        facts = f"{found.bytes / 1e6:.1f} MB, {offered.licence}, hash {found.hash}, revision {found.revision[:12]}"
        print(f"{offered.repository}/{offered.file}: {facts}")
        if args.dry_run:
            continue
        path = pull(hub, found, progress=_Quiet if args.quiet else tqdm)
        print(f"  checked and kept at {path}")
        print(f"  auto takes it for the {offered.role}; or set WINNOW_{offered.role.upper()}={offered.spec}")
    return 0


class _Quiet(tqdm):  # type: ignore[misc]  # tqdm is published without types
    """Progress that is not shown."""

    def __init__(self, *args: object, **options: object) -> None:
        """Take what a bar takes, and show nothing."""
        super().__init__(*args, **{**options, "disable": True, "file": sys.stderr})


async def _bench(settings: Settings, as_json: bool) -> int:
    rows = await bench_roles(settings)
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for row in rows:
        if "tokens_per_second" in row:
            rate, count = row["tokens_per_second"], row["tokens"]
            print(f"{row['role']}: {row['model']}; {rate} tokens/s over {count} tokens (our counter); {row['memory']}")
        else:
            print(f"{row['role']}: {row['model']}; {row['reason']}")
    return 0
