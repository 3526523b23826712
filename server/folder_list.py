"""A person's list of folders, one path a line: command line, desk, doctor and clients'
servers search and read these where nothing names others.

Not for: where the list is (`server/settings.py`), nor changing it (`cli/folders.py`)."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from errors import UsageError


def read_folder_list(path: Path) -> list[str]:
    """Return the folders of the list at `path`, none where it does not exist; raises
    `UsageError` where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(
            f"The list of folders, {path}, cannot be read: {error.strerror}.",
            hint="Check its owner and permissions.",
        ) from error
    return [line for line in text.split("\n") if line.strip()]


def as_list(folders: Iterable[str]) -> str:
    """Return the text of a list of folders, each once."""
    return "".join(f"{folder}\n" for folder in dict.fromkeys(folders))


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
