"""Folders of a person's own documents: the list of them.

`winnow folders add|remove|list` changes and shows the list that `server/folder_list.py`
describes."""

import os
from collections.abc import Sequence
from pathlib import Path

from cli.output import OK, print_json
from errors import UsageError
from server.folder_list import as_list, read_folder_list, write_own
from server.settings import did_you_mean


def change_list(path: Path, action: str, names: Sequence[str], *, as_json: bool) -> int:
    """Add `names` to the list at `path`, or remove them, and print it; return the exit
    code.

    Raises `UsageError` for a folder that does not exist, or is not on the list, and for
    `add` or `remove` without one."""
    listed = read_folder_list(path)
    folders = [os.path.abspath(os.path.expanduser(name)) for name in names]
    if (action == "list") == bool(folders):
        raise UsageError(
            f"`winnow folders {action}` takes {'no' if folders else 'a'} folder.",
            hint="Write `winnow folders add DIR`, `remove DIR` or `list`.",
        )
    for folder in folders:
        if action == "add" and ("\n" in folder or not os.path.exists(folder)):
            raise UsageError(
                f"The folder {folder!r} does not exist.", hint="Check the path."
            )
        if action == "add" and folder not in listed:
            listed.append(folder)
        elif action == "remove" and folder not in listed:
            hint = did_you_mean(folder, listed).strip() or "See `winnow folders list`."
            raise UsageError(f"{folder!r} is not on the list.", hint=hint)
        elif action == "remove":
            listed.remove(folder)
    if folders:
        write_own(path, as_list(listed))
    if as_json:
        print_json({"folders": listed, "list": str(path)})
    else:
        print("\n".join(listed) or "No folder is listed: winnow folders add DIR.")
    return OK
