"""A person's list of folders, one a line: command line, desk, doctor and clients'
servers search and read these where nothing names others. `DIR=https://…` also says at
which address readers open what is in a folder.

Not for: where the list is (`server/settings.py`), nor changing it (`cli/folders.py`)."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from errors import UsageError

_LISTED_FOLDER: Final = re.compile(
    r"([^S]+?)(=https?://[^\s/:@S]+(?::\d{1,5})?(?:[/?][^\s\"\\S]*)?)?\s*(?:S|\Z)".replace(
        "S", os.pathsep
    )
)
"""A folder between the separators of PATH, which an address may have before its
port."""


def folders_in(text: str) -> dict[str, str]:
    """Return the folders that WINNOW_FOLDERS names, as they are written, each with
    `=https://…` where readers have an address for it, else with ""."""
    entries = _LISTED_FOLDER.findall(text)
    return {name.strip(): address for name, address in entries if name.strip()}


def read_folder_list(path: Path) -> dict[str, str]:
    """Return the folders of the list at `path`, as `folders_in` does, none where it does
    not exist; raises `UsageError` where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(
            f"The list of folders, {path}, cannot be read: {error.strerror}.",
            hint="Check its owner and permissions.",
        ) from error
    return folders_in(text.replace("\n", os.pathsep))


def as_list(folders: Mapping[str, str], separator: str = "\n") -> str:
    """Return the text of a list of folders."""
    return "".join(f"{name}{address}{separator}" for name, address in folders.items())


def write_own(path: Path, text: str) -> None:
    """Replace a file's text at once; a new file is its owner's alone.

    Permissions and a symbolic link stay. Raises `UsageError` where it cannot be written.
    """
    try:
        target = path.resolve()  # a symbolic link (dotfiles) stays a link
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(target.name + ".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.",
            hint="Check its owner and permissions.",
        ) from error
