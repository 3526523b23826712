"""`winnow install CLIENT`: add Winnow to a client's configuration after showing the
change, or remove it.

A file that is not plain JSON, such as one with comments, is left alone; the entry to
paste is printed.
"""

import argparse
import difflib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio

from cache.store import parts_of_cache
from cli.daemon import stop_daemons
from cli.output import FAILED, OK, USAGE, Check, print_json
from errors import UsageError, is_checkout
from extras.install.clients import CLIENTS, OTHER, file_of
from server.folder_list import as_list, folders_in, read_folder_list, write_own
from server.settings import (
    SETTINGS_TABLE,
    folder_list,
    read_settings,
    survey_settings,
)
from server.version import VERSION
from server.wiring import without_faults

Json = dict[str, Any]
ENTRY_NAME: Final = "winnow"
ROOT: Final = Path(__file__).resolve().parents[2]
_PATHS: Final = frozenset({"folders", "cache", "cookies"})
_MODEL_ROLES: Final = frozenset({"embedder", "reader", "reranker", "generator"})
"""Settings whose value may be a backend's name followed by a file."""


def install(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Change one client's configuration, or print the entry for another client; return
    the exit code.

    Without `--yes` it asks first; a refusal, or no terminal, changes nothing and gives
    exit code 2. Raises `UsageError` for an unusable file, and the server's own error
    for invalid settings.
    """
    # 1. The entry, with the settings of the one that is there.
    path = None if args.client == OTHER else file_of(args.client, args.scope)
    key = CLIENTS[args.client].key if path else "mcpServers"
    before = _before(path, key, overrides)
    environment_before = before.get(key, {}).get(ENTRY_NAME, {}).get("env", {})
    after = {**before, key: {**before.get(key, {})}}
    changes: list[_Change] = []
    if args.undo:
        after[key].pop(ENTRY_NAME, None)
    else:
        anyio.run(_refuse_faults, {**_settings_in(environment_before), **overrides})
        settings = absolute(overrides)
        # A person's folders go to the list that all clients share; a project names its own.
        if args.folder and path and args.scope == "user":
            changes.append(_to_list(settings["folders"]))
            settings["folders"] = ""
        after[key][ENTRY_NAME] = _entry(settings, environment_before)
    # 2. Show the change, and ask.
    if path is None:
        print_json(after)
        return OK
    if not after[key]:
        del after[key]
    if after != before:
        changes.append(_to_client(path, after))
    changes = [change for change in changes if change.old != change.new]
    if not changes:
        print(f"{path}: nothing to change.")
        return OK
    # The confirmed change is written even if our output was closed (`| head`).
    with suppress(BrokenPipeError) if args.yes else nullcontext():
        for change in changes:
            print(_shown(change, (_settings_in(environment_before), overrides)))
    if args.dry_run:
        return OK
    files = " and ".join(str(change.path) for change in changes)
    if not (args.yes or _agreed(f"Write this to {files}?")):
        print("Nothing was changed.", file=sys.stderr)
        return USAGE
    # 3. Write it.
    for change in changes:
        _write(change)
    done = "removed" if args.undo else "added"
    print(f"{path}: Winnow was {done}. Quit {args.client} completely and restart it.")
    return OK


def uninstall(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Take Winnow out of every client of this account, then delete its caches (of these
    settings, of the clients' entries, and the one at the default place) and the list of
    folders, each after asking; return 0, or 1 if something stays that this cannot remove,
    which it names.

    Raises `UsageError` without a terminal to ask at."""
    if not (args.yes or sys.stdin.isatty()):
        raise UsageError(
            "There is no terminal to ask for confirmation: nothing was removed.",
            hint="Add --yes to remove Winnow without being asked.",
        )
    undo = {"scope": "user", "undo": True, "dry_run": False, "folder": None}
    own, _ = survey_settings(overrides)
    default = read_settings({}, {}).cache
    caches = [default, own.cache.parent if own.cookies else own.cache]
    left = list[str]()
    for name in CLIENTS:
        try:
            if entry := _entry_in(name):
                caches += _caches_of(entry)
                install(argparse.Namespace(client=name, yes=args.yes, **undo), {})
        except UsageError as error:
            left.append(f"{error.what} Remove the entry {ENTRY_NAME} by hand.")
    stop_daemons(args, overrides)
    for path in dict.fromkeys((*caches, folder_list())):
        is_named = path.is_dir() and path != default
        ours, others = parts_of_cache(path) if is_named else ([path.name], [])
        if ours and others:
            left.append(f"{path} is not deleted: {others[0]} is not of a cache.")
        elif ours and path.exists() and (args.yes or _agreed(f"Delete {path}?")):
            try:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                print(f"{path}: deleted.")
            except OSError as error:
                left.append(f"{path} cannot be deleted: {error.strerror or error}.")
    print(
        f"Then delete the folder {ROOT}, which holds the program and what it installed."
        if is_checkout()
        else "Then remove the program as you installed it: pipx uninstall winnow-mcp, "
        "uv tool uninstall winnow-mcp or pip uninstall winnow-mcp."
    )
    print("".join(f"winnow: {line}\n" for line in left), end="", file=sys.stderr)
    return FAILED if left else OK


def _caches_of(entry: Json) -> list[Path]:
    """Return the cache that a client's entry names, if it does."""
    named = _settings_in(entry.get("env", {})).get("cache")
    return [read_settings({"cache": named}, {}).cache] if named else []


def _entry_in(name: str) -> Json:
    """Return Winnow's entry in a client's configuration of this account, {} if it has
    none; raises `UsageError` for a file that may have one and cannot be read."""
    path, key = file_of(name, "user"), CLIENTS[name].key
    with suppress(OSError):  # `_read` says it
        if ENTRY_NAME.encode() not in path.read_bytes():
            return {}
    entry: Json = _read(path, key).get(key, {}).get(ENTRY_NAME, {})
    return entry


class _Change(NamedTuple):
    """What a file holds, and is to hold; nothing for none."""

    path: Path
    old: str
    new: str


def _to_list(folders: str) -> _Change:
    """Return the list of folders with these, separated as in PATH, added to it."""
    path = folder_list()
    listed = read_folder_list(path)
    both = listed | {
        os.path.expanduser(name): address
        for name, address in folders_in(folders).items()
    }
    return _Change(path, as_list(listed), as_list(both))


def _to_client(path: Path, config: Json) -> _Change:
    """Return a client's file with its new configuration, indented as it was."""
    text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    indent = "\t" if "\n\t" in text else 2
    written = json.dumps(config, indent=indent, ensure_ascii=False) + "\n"
    return _Change(path, text, written if config else "")


def client_checks() -> list[Check]:
    """Return the clients with Winnow in their user's configuration, and a failed check
    for each in which its command is gone or its file cannot be read."""
    ready, broken = [], []
    for name in CLIENTS:
        try:
            entry = _entry_in(name)
        except UsageError as error:
            broken.append(Check(f"client {name}", error.what, False))
            continue
        command = Path(str(entry.get("command"))) if entry else None
        if command and command.is_absolute() and not command.exists():
            line = f"its command {command} is gone; run winnow install {name} again"
            broken.append(Check(f"client {name}", line, False))
        elif command:
            ready.append(name)
    none = "none; winnow install CLIENT adds Winnow to one"
    return [Check("clients", ", ".join(ready) or none), *broken]


def _before(path: Path | None, key: str, overrides: Mapping[str, str]) -> Json:
    """Return the configuration; an error names the entry to add by hand."""
    try:
        return _read(path, key) if path else {}
    except UsageError as error:
        entry = {ENTRY_NAME: _entry(absolute(overrides), {})}
        snippet = _without_secrets(json.dumps(entry, ensure_ascii=False), overrides)
        hint = f"Add this by hand, under {key}: {snippet}"
        raise UsageError(error.what, hint=hint) from error


def _read(path: Path, key: str) -> Json:
    """Return the configuration; {} if there is none. Raises `UsageError` for a file
    that is not JSON with tables of servers and variables."""
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        config = json.loads(text or "{}")
        entry = config.get(key, {}).get(ENTRY_NAME, {})
        entry.get("env", {}).items()
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{path} cannot be edited: it is not plain JSON of the usual form ({error})."
        ) from error
    return dict(config)


def _settings_in(environment: Mapping[str, str]) -> dict[str, str]:
    names = (setting.name for setting in SETTINGS_TABLE)
    texts = {name: environment.get(f"WINNOW_{name.upper()}", "") for name in names}
    return {name: value for name, value in texts.items() if value}


async def _refuse_faults(overrides: Mapping[str, str]) -> None:
    """Raise the first fault of settings with which the server would not start in a
    client (without this shell's environment); a missing folder is one."""
    settings = read_settings(overrides, {})
    for missing in settings.missing:
        raise UsageError(
            f"The folder {missing!r} does not exist.",
            hint="Correct --folder, or leave it out.",
        )
    _, faults = await without_faults(settings)
    for error in faults.values():
        raise error


def absolute(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return settings with absolute paths: clients start servers in other folders.

    A path in a model's spec is changed only if it exists; empty folder names are
    dropped.
    """
    settings = dict(overrides)
    for name in _PATHS & overrides.keys():
        paths = (
            folders_in(overrides[name])
            if name == "folders"
            else {overrides[name].strip(): ""}
        )
        settings[name] = os.pathsep.join(
            f"{_from_root(path)}{address}" for path, address in paths.items() if path
        )
    for name in _MODEL_ROLES & overrides.keys():
        backend, _, file = overrides[name].partition(":")
        if file and os.path.exists(file):
            settings[name] = f"{backend}:{_from_root(file)}"
    return settings


def _from_root(path: str) -> str:
    return path if path.startswith("~") else os.path.abspath(path)


def _entry(overrides: Mapping[str, str], environment_before: Mapping[str, str]) -> Json:
    """Return the entry that starts this very installation, with the variables of
    `environment_before` that `overrides` does not replace; an empty value removes one.

    Paths are absolute: desktop clients have a short PATH and another working folder.
    """
    settings = {f"WINNOW_{name.upper()}": overrides[name] for name in sorted(overrides)}
    environment = {**environment_before, **settings}
    command, arguments = (
        _installed() if not is_checkout() else (sys.executable, [str(ROOT / "server")])
    )
    return {
        "type": "stdio",
        "command": command,
        "args": arguments,
        "env": {name: value for name, value in environment.items() if value},
    }


def _installed() -> tuple[str, list[str]]:
    """Return the command and arguments of an installed wheel."""
    # uvx runs from its cache, which may be emptied: the client has to call uvx too.
    uvx = shutil.which("uvx")
    if uvx and "archive-v0" in Path(sys.prefix).parts:
        return uvx, [f"winnow-mcp@{VERSION}", "serve"]
    return sys.executable, ["-c", "import winnow; winnow.main()", "serve"]


def _shown(change: _Change, settings: tuple[Mapping[str, str], ...]) -> str:
    """Return the diff without the secrets of `settings`."""
    old, new = change.old.splitlines(), change.new.splitlines()
    path = change.path
    text = "\n".join(
        difflib.unified_diff(old, new, str(path), f"{path} (new)", lineterm="")
    )
    for overrides in settings:
        text = _without_secrets(text, overrides)
    return text


def _without_secrets(text: str, overrides: Mapping[str, str]) -> str:
    secret = {setting.name for setting in SETTINGS_TABLE if setting.secret}
    for name in secret & overrides.keys():
        text = text.replace(overrides[name], "…") if overrides[name] else text
    return text


def _agreed(question: str) -> bool:
    """Ask the user `question`; return False without a terminal, and for any
    answer but y or yes."""
    if not sys.stdin.isatty():
        print(
            "No terminal to ask for confirmation: add --yes to write, or --dry-run to "
            "only show the change.",
            file=sys.stderr,
        )
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _write(change: _Change) -> None:
    """Write a change, or delete the file for an empty text.

    Raises `UsageError` if it cannot be written.
    """
    if change.new:
        write_own(change.path, change.new)
        return
    try:
        change.path.resolve().unlink()
    except OSError as error:
        raise UsageError(
            f"{change.path} cannot be deleted: {error.strerror}.",
            hint="Check its owner and permissions.",
        ) from error
