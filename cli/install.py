"""`winnow install CLIENT`: put Winnow into a client's configuration, after showing what would change; and undo it.

Not for: where the files lie and what is in them (`cli/clients.py`).
"""

import argparse
import difflib
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cli import clients
from cli.clients import CLIENTS, Json
from server import VERSION

DONE, FAILED, REFUSED = 0, 1, 2
HERE: Final = Path(__file__).resolve().parents[1]


def install(args: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Change one client's configuration; return the exit code.

    Args:
        args: `client`, `scope`, `dry_run`, `yes`, `undo`.
        given: Settings that the entry shall carry, by name.

    Raises:
        UsageError: The file cannot be read or written.
    """
    # 1. Which file, and what stands there.
    client = CLIENTS[args.client]
    path = clients.file_of(args.client, args.scope, clients.places_here())
    before = clients.read_config(path)
    # 2. What it would be.
    if args.undo:
        after = clients.without_entry(before, client.key, clients.earlier_config(path))
    else:
        after = clients.with_entry(before, client.key, entry(given))
    if after == before:
        print(f"{path}: nothing to change.")
        return DONE
    # 3. Show it, and ask.
    print(_difference(path, before, after))
    if args.dry_run:
        return DONE
    if not (args.yes or _agreed(path)):
        print("Nothing was changed.", file=sys.stderr)
        return REFUSED
    # 4. Write it.
    if args.undo:
        clients.restore_config(path, after)
        print(f"{path}: Winnow is out.")
    else:
        clients.write_config(path, after)
        print(f"{path}: Winnow is in. {client.after} Undo: winnow install {args.client} --undo")
    return DONE


def entry(given: Mapping[str, str]) -> Json:
    """Return the configuration entry that starts this very installation, with absolute paths.

    Desktop clients have a short PATH and start servers in a folder of their own (notes/mcp §5.2).
    """
    environment: Json = {"PYTHONUNBUFFERED": "1"}
    environment |= {f"WINNOW_{name.upper()}": value for name, value in sorted(given.items()) if value}
    command, arguments = _launcher()
    if not _is_installed():
        environment["PYTHONPATH"] = str(HERE)
    return {"type": "stdio", "command": command, "args": arguments, "env": environment}


def _launcher() -> tuple[str, list[str]]:
    if not _is_installed():
        return sys.executable, ["-m", "server"]
    # What uvx runs lies in its cache, which may be emptied: the client has to call uvx as the person did.
    uvx = shutil.which("uvx")
    if uvx and "archive-v0" in Path(sys.prefix).parts:
        return uvx, [f"winnow-mcp@{VERSION}", "serve"]
    script = Path(sys.executable).with_name("winnow.exe" if sys.platform == "win32" else "winnow")
    return (
        (str(script), ["serve"])
        if script.exists()
        else (sys.executable, ["-c", "import winnow; winnow.main()", "serve"])
    )


def _is_installed() -> bool:
    return HERE.name == "_app"


def _difference(path: Path, before: Json, after: Json) -> str:
    lines = difflib.unified_diff(
        clients.shown(before).splitlines(), clients.shown(after).splitlines(), str(path), f"{path} (new)", lineterm=""
    )
    return "\n".join(lines)


def _agreed(path: Path) -> bool:
    """Ask the person; nobody to ask means no."""
    if not sys.stdin.isatty():
        print("Nobody to ask here: add --yes to write, or --dry-run to only look.", file=sys.stderr)
        return False
    return input(f"Write this to {path}? [y/N] ").strip().lower() in ("y", "yes")
