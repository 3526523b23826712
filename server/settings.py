"""Every setting: name, default, help, read from the environment in this one place.

A setting `name` comes from `WINNOW_NAME`; the command line may overrule it. Nothing else reads the environment. Not
for: secrets in files, or what each part does with a value.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from platformdirs import user_cache_dir

from errors import UsageError


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the table."""

    name: str
    default: str
    help: str


TABLE: Final = (
    Setting("folders", "", f"Folders that may be searched and read, separated by {os.pathsep!r}; none by default."),
    Setting("searxng", "", "Base URL of a SearXNG instance with JSON enabled, such as http://127.0.0.1:8888."),
    Setting("cache", "", "Folder of the disk cache; the user's cache directory by default."),
    Setting("cache_mb", "1024", "Size of the cache in MB; the least recently used goes first."),
    Setting(
        "embedder", "auto", "auto, none, onnx:embedded, onnx:FOLDER, llama:FILE.gguf, flag:NAME, openai:URL#MODEL."
    ),
    Setting("reranker", "auto", "auto, none, flag:NAME, openai:URL#MODEL."),
    Setting("generator", "auto", "auto, none, llama:FILE.gguf, openai:URL#MODEL."),
    Setting("model_key", "", "API key sent to openai: models; never logged."),
    Setting("allow_loopback", "false", "Let pages be fetched from this machine; for tests and local sites."),
    Setting("robots", "true", "Respect robots.txt."),
    Setting("page_mb", "30", "Largest page after decompression, in MB."),
    Setting("seconds", "25", "Time a tool call may take before it answers with what it has."),
    Setting("log_level", "WARNING", "DEBUG, INFO, WARNING or ERROR; goes to stderr."),
    Setting("log_file", "", "File that gets the log instead of stderr."),
)
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings, checked and typed."""

    folders: tuple[Path, ...]
    searxng: str
    cache: Path
    cache_mb: int
    embedder: str
    reranker: str
    generator: str
    model_key: str
    allow_loopback: bool
    robots: bool
    page_mb: int
    seconds: float
    log_level: str
    log_file: str

    def __repr__(self) -> str:
        """All fields but the key."""
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name != "model_key")
        return f"Settings({', '.join(shown)})"


def read_settings(given: Mapping[str, str], environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings from `given` (command line) over the environment over the defaults.

    Raises:
        UsageError: A value cannot be what it should be, or a folder does not exist.
    """
    env = os.environ if environment is None else environment
    raw = {s.name: given.get(s.name) or env.get(f"WINNOW_{s.name.upper()}") or s.default for s in TABLE}
    level = raw["log_level"].upper()
    if level not in LEVELS:
        raise UsageError(f"log_level is {raw['log_level']!r}.", hint=f"Use one of {', '.join(LEVELS)}.")
    return Settings(
        folders=tuple(dict.fromkeys(_folder(part) for part in raw["folders"].split(os.pathsep) if part.strip())),
        searxng=_address(raw, "searxng"),
        cache=Path(raw["cache"] or user_cache_dir("winnow")).expanduser(),
        cache_mb=int(_number(raw, "cache_mb", 16, 1_000_000)),
        embedder=raw["embedder"],
        reranker=raw["reranker"],
        generator=raw["generator"],
        model_key=raw["model_key"],
        allow_loopback=_switch(raw, "allow_loopback"),
        robots=_switch(raw, "robots"),
        page_mb=int(_number(raw, "page_mb", 1, 1000)),
        seconds=_number(raw, "seconds", 1, 3600),
        log_level=level,
        log_file=raw["log_file"],
    )


def _folder(part: str) -> Path:
    path = Path(part.strip()).expanduser()
    if not path.is_dir():
        raise UsageError(f"The folder {part.strip()!r} does not exist.", hint="Correct WINNOW_FOLDERS.")
    return path.resolve()


def _address(raw: Mapping[str, str], name: str) -> str:
    value = raw[name].strip().rstrip("/")
    if value and not re.match(r"https?://[^/\s:]+(:\d{1,5})?(/|$)", value):
        raise UsageError(f"{name} is {value!r}.", hint="Use an address such as http://127.0.0.1:8888.")
    return value


def _switch(raw: Mapping[str, str], name: str) -> bool:
    value = raw[name].strip().lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise UsageError(f"{name} is {raw[name]!r}.", hint="Use true or false.")


def _number(raw: Mapping[str, str], name: str, low: float, high: float) -> float:
    try:
        value = float(raw[name])
    except ValueError as error:
        raise UsageError(f"{name} is {raw[name]!r}.", hint="Use a number.") from error
    if not low <= value <= high:
        raise UsageError(f"{name} is {raw[name]}.", hint=f"Use a number from {low:g} to {high:g}.")
    return value
