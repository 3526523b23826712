"""Which files below a folder are not searched, by their names: what `.gitignore` and
`.winnowignore` say, of which a pattern may be any (gitignore(5)), and what every folder
has of programs.

Not for: hidden files and keys (`pipeline/search/listing.py`)."""

import fnmatch
import os
import re
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

from pipeline.fetch.files import beginning_of

_FILES: Final = (".gitignore", ".winnowignore")
"""Files of patterns; what the second says overrules the first."""
_PATTERN_BYTES: Final = 10_000
"""Bytes of a file of patterns that are read."""
_FOLDER_END: Final = "\0"
"""End of a folder's path, which no name has."""
_PROGRAMS: Final = (
    "node_modules/\n__pycache__/\nsite-packages/\n*.lock\npackage-lock.json\n"
    "npm-shrinkwrap.json\npnpm-lock.yaml\ngo.sum\nThumbs.db\n"
)


_Patterns = tuple[re.Pattern[str], tuple[bool, ...]]


def _expression(line: str) -> str:
    """Return a pattern as a group that matches paths below its folder, folders with
    `_FOLDER_END` at their end.

    What a star passes over is not tried again, in a name (`fnmatch`) or over folders, so
    that no pattern is slow."""
    glob = line.removeprefix("!")
    place = "" if "/" in glob.rstrip("/") else "(?>(?:.*/)?)"
    path, *parts = (
        fnmatch.translate(part)[len("(?s:") : -len(r")\Z")].replace(".*", "[^/]*")
        for part in glob.strip("/").split("**/")
    )
    path += "".join(f"(?>(?:[^/]+/)*?{part})" for part in parts[:-1])
    path += "".join(f"(?:.*/)?{part}" for part in parts[-1:])
    return f"({place}{path}{_FOLDER_END}{'' if glob.endswith('/') else '?'})"


@lru_cache(maxsize=1_000)
def _patterns(text: str) -> _Patterns:
    """Return the lines of a text, the last first, as the groups of one expression, and
    whether each ignores what it matches."""
    lines = [
        line.strip()
        for line in reversed(text.splitlines())
        if line.strip(" /!") and not line.startswith("#")
    ]
    return (
        re.compile("|".join(map(_expression, lines)) or r"\b\B", re.DOTALL),
        tuple(not line.startswith("!") for line in lines),
    )


class Ignored(NamedTuple):
    """The patterns that hold in a folder, nearest last, each with the folder that they
    begin at."""

    patterns: tuple[tuple[str, _Patterns], ...] = (("", _patterns(_PROGRAMS)),)

    def below(self, folder: str) -> "Ignored":
        """Return these and the patterns that `folder` has itself."""
        texts = []
        for name in _FILES:
            with suppress(OSError):
                start = beginning_of(os.path.join(folder, name), _PATTERN_BYTES)
                texts.append(start.decode("utf-8", "replace"))
        own = _patterns("\n".join(texts)) if texts else None
        return Ignored((*self.patterns, (folder, own))) if own else self

    def has(self, path: str, *, is_folder: bool) -> bool:
        """Whether a file or folder is ignored; the last pattern that it matches says."""
        for folder, (expression, ignores) in reversed(self.patterns):
            relative = path[len(folder) :].replace(os.sep, "/").lstrip("/")
            match = expression.fullmatch(relative + _FOLDER_END * is_folder)
            if match is not None and match.lastindex is not None:
                return ignores[match.lastindex - 1]
        return False
