"""Folders of a person's own documents: the list of them.

`winnow folders add|remove|list` changes and shows the list that `server/folder_list.py`
describes."""

import argparse
import os
import sys
from collections.abc import Mapping
from typing import Final

from cli.output import OK, print_json
from errors import UsageError
from server.folder_list import as_list, folders_in, read_folder_list, write_own
from server.settings import folder_list

_NONE_LISTED: Final = (
    "No folder is listed: winnow folders add DIR. Without a folder, questions search the "
    "web, unless WINNOW_WEB forbids it."
)
_REMOVED: Final = (
    "What was read of a folder stays in the cache until: winnow cache clear."
)


def change_list(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Add names to the list, or remove them, and print it; return the exit code.

    Raises `UsageError` for a folder that does not exist, or is not on the list."""
    path = folder_list()
    listed = read_folder_list(path)
    for name, address in folders_in(os.pathsep.join(args.names)).items():
        folder = os.path.abspath(os.path.expanduser(name))
        if args.action == "add":
            if not os.path.exists(folder) or "\n" in folder:
                raise UsageError(
                    f"The folder {folder!r} does not exist, or has {os.pathsep!r} in its path.",
                    hint="Check the path.",
                )
            listed[folder] = address
        elif args.action == "remove":
            if folder not in listed:
                raise UsageError(
                    f"{folder!r} is not on the list.", hint="See `winnow folders list`."
                )
            del listed[folder]
    text = as_list(listed)
    if args.names:
        write_own(path, text)
    if args.json:
        print_json({"folders": text.splitlines(), "list": str(path)})
    else:
        print(text.rstrip("\n") or _NONE_LISTED)
    if args.action == "remove":
        print(_REMOVED, file=sys.stderr)
    return OK
