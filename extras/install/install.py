"""`winnow install CLIENT`: add Winnow to a client's configuration after showing the
change; undo.

Only Winnow's entry is changed; everything else in a file stays as it is.
"""

import argparse
import codecs
import difflib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import yaml  # type: ignore[import-untyped]  # its types are a package of their own

from cli.output import OK, USAGE, Check
from errors import UsageError
from extras.install.clients import CLIENTS, ENTRY_NAME, Client, file_of
from extras.install.jsonc import read_jsonc, with_member, without_member
from server.settings import SETTINGS_TABLE, read_settings

Json = dict[str, object]
ROOT: Final = Path(__file__).resolve().parents[2]
INSTALLED: Final = ROOT.name == "_app"
"""Whether this is an installed wheel (else a checkout)."""
_PATHS: Final = frozenset({"folders", "cache", "cookies"})
_MODEL_ROLES: Final = frozenset({"embedder", "reader", "reranker", "generator"})
"""Settings whose value may be a backend's name followed by a file."""
READY_STATE: Final = "ready"
"""State of Winnow's entry in a client that can start it."""
BEFORE: Final = ".before-winnow"
"""Suffix of the backup of a file before its first change."""


_SYNTAX_OF_ENDING: Final = {".toml": "TOML", ".yaml": "YAML"}
_PARSED: Final[Mapping[str, Callable[[str], object]]] = {
    "JSON": read_jsonc,
    "TOML": tomllib.loads,
    "YAML": yaml.safe_load,
}
_EMPTY_CONFIG: Final = {"JSON": "{}", "TOML": "", "YAML": "{}"}


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """The planned change of a client's configuration file."""

    path: Path
    kept: Path
    """Backup of the file before the first change."""
    text: str
    """The file's new content."""
    shown: str
    """The diff for the user, without secrets."""
    empty: bool
    """Whether the file contains no settings afterwards."""


def install(args: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Change one client's configuration; return the exit code.

    Without `--yes` it asks first; a refusal, or no terminal, changes nothing and gives
    exit code 2. Raises `UsageError` for an unusable file, and the server's own error
    for invalid settings.
    """
    # 1. What would change.
    if not args.undo:
        kept = _kept_settings(args.client, args.scope)
        anyio.run(_refuse_faults, {**kept, **given})
        given = absolute(given)
    change = plan_change(args.client, args.scope, given, undo=args.undo)
    if change is None:
        print(f"{file_of(args.client, args.scope)}: nothing to change.")
        return OK
    # 2. Show it, and ask.
    # The confirmed change is written even if our output was closed (`| head`).
    with suppress(BrokenPipeError) if args.yes else nullcontext():
        print(change.shown)
    if args.dry_run:
        return OK
    if not (args.yes or _agreed(change.path)):
        print("Nothing was changed.", file=sys.stderr)
        return USAGE
    # 3. Write it.
    make_change(change, undo=args.undo)
    added = f"Winnow was added. {CLIENTS[args.client].after} Undo: winnow install {args.client} --undo"
    print(f"{change.path}: {'Winnow was removed.' if args.undo else added}")
    return OK


def client_checks() -> list[Check]:
    """Return the clients with Winnow, and a check for each in which it cannot start."""
    states = {name: state for name in CLIENTS if (state := client_state(name))}
    ready = ", ".join(name for name, state in states.items() if state == READY_STATE)
    none = "none; winnow install CLIENT adds Winnow to one"
    broken = [
        Check(f"client {name}", state, healthy=False)
        for name, state in states.items()
        if state != READY_STATE
    ]
    return (
        [Check("clients", ready), *broken]
        if ready or broken
        else [Check("clients", none)]
    )


def client_state(name: str) -> str:
    """Return the state of Winnow in a client's configuration, or "" if it is not in it.

    Looks at the user's configuration, not at a project's; a command without an absolute
    path is not checked.
    """
    path = file_of(name, "user")
    try:
        entry = entry_in(read_config(path), CLIENTS[name].key)
    except UsageError:
        return f"{path} cannot be read"
    if entry is None:
        return ""
    command = entry.get("command", entry.get("cmd"))
    command = command[0] if isinstance(command, list) and command else command
    if (
        isinstance(command, str)
        and Path(command).is_absolute()
        and not Path(command).exists()
    ):
        return f"its command {command} is gone; run winnow install {name} again"
    return READY_STATE


def _kept_settings(name: str, scope: str) -> dict[str, str]:
    """Return the settings of the entry that is there, which a further install keeps; {}
    where the file cannot be read."""
    client = CLIENTS[name]
    with suppress(UsageError):
        entry = entry_in(read_config(file_of(name, scope)), client.key)
        return _settings_in(_environment_of(entry, client))
    return {}


def _environment_of(
    entry: Mapping[str, object] | None, client: Client
) -> dict[str, str]:
    """Return the variables of an entry."""
    form = client.entry.items()
    place = next(field for field, value in form if value == "$environment")
    found = (entry or {}).get(place)
    variables = found.items() if isinstance(found, Mapping) else ()
    return {name: value for name, value in variables if isinstance(value, str)}


def _settings_in(environment: Mapping[str, str]) -> dict[str, str]:
    names = (setting.name for setting in SETTINGS_TABLE)
    found = {name: environment.get(f"WINNOW_{name.upper()}", "") for name in names}
    return {name: value for name, value in found.items() if value}


async def _refuse_faults(given: Mapping[str, str]) -> None:
    """Raise for settings with which the server would not start in a client (without
    this shell's environment).

    The first fault is raised; a missing folder is one.
    """
    settings = read_settings(given, {})
    for missing in settings.missing:
        raise UsageError(
            f"The folder {missing!r} does not exist.",
            hint="Correct --folder, or leave it out.",
        )
    if given.keys() <= {"folders"}:
        return  # other defaults work everywhere

    from server.wiring import without_faults  # noqa: PLC0415  imports the pipeline

    _, faults = await without_faults(settings)
    for error in faults.values():
        raise error


def absolute(given: Mapping[str, str]) -> dict[str, str]:
    """Return settings with absolute paths: clients start servers in other folders.

    A path in a model's spec is changed only if it exists; empty folder names are
    dropped.
    """
    made = dict(given)
    for name in _PATHS & given.keys():
        parts = given[name].split(os.pathsep) if name == "folders" else [given[name]]
        made[name] = os.pathsep.join(
            _from_root(part.strip()) for part in parts if part.strip()
        )
    for name in _MODEL_ROLES & given.keys():
        backend, _, rest = given[name].partition(":")
        if rest and os.path.exists(rest):
            made[name] = f"{backend}:{_from_root(rest)}"
    return made


def _from_root(path: str) -> str:
    return path if path.startswith("~") else os.path.abspath(path)


def plan_change(
    name: str, scope: str, given: Mapping[str, str], *, undo: bool
) -> ConfigChange | None:
    """Return the change that adds (with `undo`: removes) Winnow, or None if nothing
    changes.

    An entry that is there keeps the variables that `given` does not name; an empty
    value removes one. With `undo`, an entry that was there before the first change
    comes back; secrets are not shown. Raises `UsageError` for an unusable file, with
    the text to add by hand.
    """
    client = CLIENTS[name]
    path = file_of(name, scope)
    kept = path.with_name(path.name + BEFORE)
    try:
        before = read_config(path)
    except UsageError as error:
        entry = _without_secrets(
            json.dumps({ENTRY_NAME: _entry(given, client, {})}, ensure_ascii=False),
            given,
        )
        raise UsageError(
            error.what, hint=f"Add this by hand, under {client.key}: {entry}"
        ) from error
    former = _environment_of(entry_in(before, client.key), client)
    if undo:
        after = _without_entry(before, client.key, read_config(kept))
    else:
        after = {
            **before,
            client.key: {
                **_servers(before, client.key),
                ENTRY_NAME: _entry(given, client, former),
            },
        }
    if after == before:
        return None
    old = _text(path)
    new = _undone(path, kept, before, client.key) if undo else None
    new = _edited(path, after, client.key) if new is None else new
    shown = "\n".join(
        difflib.unified_diff(
            old.splitlines(), new.splitlines(), str(path), f"{path} (new)", lineterm=""
        )
    )
    for settings in (_settings_in(former), given):
        shown = _without_secrets(shown, settings)
    return ConfigChange(path, kept, new, shown, empty=not after)


def make_change(change: ConfigChange, *, undo: bool) -> None:
    """Write the change; after an undo, delete the backup. Raises `UsageError` if the
    file cannot be written, `OSError` if the backup cannot be deleted."""
    _write(change.path, change.text, change.kept)
    if not undo:
        return
    if change.empty and not change.kept.read_bytes():
        change.path.unlink()  # Winnow created the file, and it is empty again
    change.kept.unlink()


def _without_secrets(text: str, given: Mapping[str, str]) -> str:
    secret = {setting.name for setting in SETTINGS_TABLE if setting.secret}
    for name in secret & given.keys():
        text = text.replace(given[name], "…") if given[name] else text
    return text


def read_config(path: Path) -> Json:
    """Return the configuration; {} if the file does not exist.

    JSON may have comments and trailing commas. Raises `UsageError` for an unreadable
    file, and for one that holds no object.
    """
    form = _form(path)
    try:
        text = _text(path)
        config = _PARSED[form](text or _EMPTY_CONFIG[form])
        config = {} if config is None else config  # YAML without an entry reads as None
    except (ValueError, yaml.YAMLError, OSError) as error:
        raise UsageError(
            f"{path} cannot be read as {form} ({error}), so it was not changed."
        ) from error
    if not isinstance(config, dict):
        raise UsageError(f"{path} is not a {form} object.")
    return config


def entry_in(config: Json, key: str) -> Mapping[str, object] | None:
    """Return Winnow's entry in a configuration, or None."""
    entry = _servers(config, key).get(ENTRY_NAME)
    return entry if isinstance(entry, Mapping) else None


def _entry(given: Mapping[str, str], client: Client, former: Mapping[str, str]) -> Json:
    """Return the configuration entry that starts this very installation, with the
    variables of the `former` one that `given` does not replace.

    Paths are absolute: desktop clients have a short PATH and another working folder.
    """
    environment: Json = {"PYTHONUNBUFFERED": "1", **former}
    environment.pop("PYTHONPATH", None)
    environment |= {
        f"WINNOW_{name.upper()}": value for name, value in sorted(given.items())
    }
    environment = {name: value for name, value in environment.items() if value}
    command, arguments = _launcher()
    if not INSTALLED:
        environment["PYTHONPATH"] = str(ROOT)
    filled = {
        "$command": command,
        "$arguments": arguments,
        "$line": [command, *arguments],
        "$environment": environment,
    }
    return {
        name: filled.get(value, value) if isinstance(value, str) else value
        for name, value in client.entry.items()
    }


def _launcher() -> tuple[str, list[str]]:
    if not INSTALLED:
        return sys.executable, ["-m", "server"]
    # uvx runs from its cache, which may be emptied: the client has to call uvx too.
    from server.version import VERSION  # noqa: PLC0415  keeps serving fast to start

    uvx = shutil.which("uvx")
    if uvx and "archive-v0" in Path(sys.prefix).parts:
        return uvx, [f"winnow-mcp@{VERSION}", "serve"]
    script = Path(sys.executable).with_name(
        "winnow.exe" if sys.platform == "win32" else "winnow"
    )
    if script.exists():
        return str(script), ["serve"]
    return sys.executable, ["-c", "import winnow; winnow.main()", "serve"]


def _agreed(path: Path) -> bool:
    """Ask the user for confirmation; return False without a terminal, and for any
    answer but y or yes."""
    if not sys.stdin.isatty():
        print(
            "No terminal to ask for confirmation: add --yes to write, or --dry-run to "
            "only show the change.",
            file=sys.stderr,
        )
        return False
    return input(f"Write this to {path}? [y/N] ").strip().lower() in ("y", "yes")


def _without_entry(config: Json, key: str, earlier: Json) -> Json:
    """Return the configuration without Winnow; `earlier`: the file before its first
    change.

    An entry of Winnow in `earlier` is put back; `key` is removed if Winnow added it and
    it is empty.
    """
    servers = {
        name: server
        for name, server in _servers(config, key).items()
        if name != ENTRY_NAME
    }
    if (former := entry_in(earlier, key)) is not None:
        servers[ENTRY_NAME] = former
    if not servers and key not in earlier:
        return {name: value for name, value in config.items() if name != key}
    return {**config, key: servers}


def _servers(config: Json, key: str) -> Mapping[str, object]:
    servers = config.get(key, {})
    if not isinstance(servers, Mapping):
        raise UsageError(
            f"The client's configuration file has {key!r}, but not as a table of servers.",
            hint="Fix the file by hand.",
        )
    return servers


def _text(path: Path) -> str:
    """Return a file's text with LF line ends; `_write` restores the original ones."""
    return (
        path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        if path.exists()
        else ""
    )


def _form(path: Path) -> str:
    return next(
        (form for suffix, form in _SYNTAX_OF_ENDING.items() if suffix in path.suffixes),
        "JSON",
    )


def _edited(path: Path, config: Json, key: str) -> str:
    """Return the file's new text: only our own lines change, comments stay.

    Raises `UsageError` if the edited text does not read as `config`.
    """
    form, entry, text = _form(path), entry_in(config, key), _text(path)
    if form == "JSON":
        new = _json(text, key, entry, left=key in config)
    elif form == "TOML":
        new = _toml(text, key, entry)
    else:
        new = _yaml(text, key, entry, left=key in config)
    with suppress(yaml.YAMLError):
        if (_PARSED[form](new) or {}) == config:
            return new
    raise UsageError(
        f"{path} has a layout that Winnow cannot edit.",
        hint="Edit it by hand.",
    )


def _undone(path: Path, kept: Path, before: Json, key: str) -> str | None:
    """Return the text before the first change if only our entry changed since, else
    None; always None for TOML and YAML."""
    former, entry = _text(kept), entry_in(before, key)
    if (
        _form(path) != "JSON"
        or entry is None
        or with_member(former, (key, ENTRY_NAME), entry) != _text(path)
    ):
        return None
    return former


def _json(
    text: str, key: str, entry: Mapping[str, object] | None, *, left: bool
) -> str:
    """Return JSON with or without our entry below `key`; an empty `key` stays only if
    `left`."""
    if entry is not None:
        return with_member(text, (key, ENTRY_NAME), entry)
    return without_member(text, (key, ENTRY_NAME) if left else (key,))


def _toml(text: str, key: str, entry: Mapping[str, object] | None) -> str:
    tables = re.split(r"^(?=[ \t]*\[)", text, flags=re.MULTILINE)
    ours = re.compile(rf"[ \t]*\[\s*{key}\s*\.\s*\"?{ENTRY_NAME}\"?\s*[.\]]")
    rest = "".join(table for table in tables if not ours.match(table)).rstrip("\n")
    parts = [
        part
        for part in (rest, _table(f"{key}.{ENTRY_NAME}", entry) if entry else "")
        if part
    ]
    return "\n\n".join(parts) + "\n" if parts else ""


def _table(name: str, values: Mapping[str, object]) -> str:
    """Return a TOML table of strings, lists of strings and tables (JSON string
    syntax)."""
    inner = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    own = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in values.items()
        if key not in inner
    ]
    tables = [_table(f"{name}.{key}", value) for key, value in inner.items()]
    return "\n\n".join(["\n".join([f"[{name}]", *own]), *tables])


def _yaml(
    text: str, key: str, entry: Mapping[str, object] | None, *, left: bool
) -> str:
    """Return YAML with or without our entry, first below `key`; an empty `key` stays
    only if `left`.

    Every indented entry of our name is removed, below other keys too; the caller checks
    the result.
    """
    # Our entry: one line and all deeper-indented lines after it.
    rest = re.sub(
        rf"^([ ]+){ENTRY_NAME}:.*\n(?:\1[ ]+.*\n)*", "", text, flags=re.MULTILINE
    )
    if entry is None:
        return rest if left else re.sub(rf"^{key}:.*\n", "", rest, flags=re.MULTILINE)
    rest = rest if re.search(rf"^{key}:", rest, re.MULTILINE) else f"{rest}{key}:\n"
    found = re.search(rf"^{key}:.*\n(?:\s*#.*\n|\s*\n)*([ ]+)\S", rest, re.MULTILINE)
    depth = found[1] if found else "  "
    # JSON is valid YAML.
    lines = [
        f"{depth}  {name}: {json.dumps(value, ensure_ascii=False)}\n"
        for name, value in entry.items()
    ]
    ours = f"{depth}{ENTRY_NAME}:\n{''.join(lines)}"
    return re.sub(
        rf"^{key}:.*\n", lambda head: head[0] + ours, rest, count=1, flags=re.MULTILINE
    )


def _write(path: Path, text: str, kept: Path) -> None:
    """Write the configuration atomically; back up the original file to `kept`, unless
    there is a backup.

    Keeps CRLF line ends, a byte order mark, permissions and a symbolic link. Raises
    `UsageError` if the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            kept.write_bytes(path.read_bytes() if path.exists() else b"")
        former = path.read_bytes() if path.exists() else b""
        text = text.replace("\n", "\r\n") if b"\r\n" in former else text
        mark = codecs.BOM_UTF8 if former.startswith(codecs.BOM_UTF8) else b""
        target = path.resolve()  # a symbolic link (dotfiles) stays a link
        fresh = target.with_name(target.name + ".new")
        fresh.write_bytes(mark + text.encode())
        if target.exists():
            fresh.chmod(target.stat().st_mode)
        os.replace(fresh, target)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.",
            hint="Check its owner and permissions.",
        ) from error
