"""Every setting: name, default, help, and how its text is read. The environment is read here and nowhere else.

A setting `name` comes from `WINNOW_NAME`; the command line may overrule it. `docs/settings.md` is made from `TABLE`.
Not for: what each part does with a value.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

from platformdirs import user_cache_dir

from errors import UsageError, without_password

MEGABYTE: Final = 1_000_000
"""Bytes; sizes in settings are decimal, as disks and downloads state them."""
PROVIDERS: Final = ("searxng", "brave", "tavily", "exa", "serper", "wikipedia", "ddgs", "folder")
IDMS: Final = tuple(rule + more for rule in ("partition", "running") for more in ("", "+density", "+density:model"))
NAT64_LENGTHS: Final = frozenset((32, 40, 48, 56, 64, 96))
"""Of prefixes that translators have (RFC 6052 §2.2)."""
_NEEDED: Final = {"searxng": "searxng", "brave": "brave_key", "exa": "exa_key", "serper": "serper_key"}
"""Providers that cannot be asked without another setting."""

Raw = Mapping[str, str]
Read = Callable[[Raw, str], Any]
"""From all settings as texts and the name of one to its value; raises UsageError."""


def _text(raw: Raw, name: str) -> str:
    return raw[name].strip()


def _words(separator: str | None) -> Read:
    """Read a list of words."""
    return lambda raw, name: tuple(part.strip() for part in raw[name].split(separator) if part.strip())


def _one_of(*allowed: str) -> Read:
    """Read one of some words, however it is capitalised."""

    def read(raw: Raw, name: str) -> str:
        for word in allowed:
            if raw[name].strip().casefold() == word.casefold():
                return word
        raise UsageError(f"{name} is {raw[name]!r}.", hint=f"Use one of {', '.join(allowed)}.")

    return read


def _switch(raw: Raw, name: str) -> bool:
    word: str = _one_of("true", "false", "1", "0", "yes", "no", "on", "off")(raw, name)
    return word in ("true", "1", "yes", "on")


def _number(low: float, high: float) -> Read:
    """Read a number between bounds, both included."""

    def read(raw: Raw, name: str) -> float:
        try:
            value = float(raw[name])
        except ValueError as error:
            raise UsageError(f"{name} is {raw[name]!r}.", hint="Use a number.") from error
        if not low <= value <= high:
            raise UsageError(f"{name} is {raw[name]}.", hint=f"Use a number from {low:g} to {high:g}.")
        return value

    return read


def _whole(low: int, high: int) -> Read:
    return lambda raw, name: int(_number(low, high)(raw, name))


def _folders(raw: Raw, name: str) -> tuple[Path, ...]:
    paths = [Path(part.strip()).expanduser() for part in raw[name].split(os.pathsep) if part.strip()]
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"The folder {str(path)!r} does not exist.", hint="Correct WINNOW_FOLDERS.")
    return tuple(dict.fromkeys(path.resolve() for path in paths))


def _path(raw: Raw, name: str) -> Path | None:
    return Path(raw[name]).expanduser() if raw[name] else None


def _cache_folder(raw: Raw, name: str) -> Path:
    return _path(raw, name) or Path(user_cache_dir("winnow"))


def _search(raw: Raw, name: str) -> tuple[str, ...]:
    """Read the order of providers: each is known and has what it needs."""
    names = tuple(dict.fromkeys(part.strip().lower() for part in raw[name].split(",") if part.strip()))
    if names in ((), ("auto",)):
        return ()
    for provider in names:
        if provider not in PROVIDERS:
            raise UsageError(f"search names {provider!r}.", hint=f"Use auto, or some of {', '.join(PROVIDERS)}.")
        needed = _NEEDED.get(provider)
        if needed and not raw[needed].strip():
            raise UsageError(f"search names {provider}.", hint=f"Set WINNOW_{needed.upper()}, or leave it out.")
    return names


def _matching(pattern: str, hint: str) -> Read:
    """Read a text of some form, or none; one that may hold a secret, so no message repeats it."""

    def read(raw: Raw, name: str) -> str:
        value = raw[name].strip()
        if value and not re.fullmatch(pattern, value):
            raise UsageError(f"{name} is not of the form that it needs.", hint=hint)
        return value

    return read


_key = _matching(r"[!-~]*", "Copy the key again: it holds a space or a character beyond ASCII.")
_cache_server = _matching(
    r"((redis|valkey)s?://[^/\s]+(/\d*)?|unix://\S+)(\?\S*)?", "Use an address such as redis://127.0.0.1:6379/0."
)


def _address(raw: Raw, name: str) -> str:
    value = raw[name].strip().rstrip("/")
    if value and not re.match(r"https?://[^/\s:]+(:\d{1,5})?(/|$)", value):
        shown = without_password(value)
        hint = "Use an address without a password, such as http://127.0.0.1:8888."
        raise UsageError(f"{name} is {shown!r}.", hint=hint)
    return value


def _networks(raw: Raw, name: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in raw[name].split(",") if part.strip())
    except ValueError as error:
        raise UsageError(f"{name} is {raw[name]!r}: {error}.", hint="Use networks such as 10.0.0.0/8.") from error


def _nat64(raw: Raw, name: str) -> tuple[IPv6Network, ...]:
    networks = _networks(raw, name)
    found = tuple(each for each in networks if isinstance(each, IPv6Network) and each.prefixlen in NAT64_LENGTHS)
    if len(found) != len(networks):
        raise UsageError(f"{name} is {raw[name]!r}.", hint="Use an IPv6 prefix of length 32, 40, 48, 56, 64 or 96.")
    return found


class Setting(NamedTuple):
    """What the reference says of one setting, and how its text is read."""

    name: str
    default: str
    help: str
    read: Read


def _setting(default: str, help: str, read: Read | None = None, *, secret: bool = False) -> Any:
    """Return a field of `Settings`, read by its type where `read` is None; a `secret` is never shown or logged."""
    return field(repr=not secret, metadata={"default": default, "help": help, "read": read})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings, checked and typed, each with its default, its help and what reads it."""

    folders: tuple[Path, ...] = _setting("", "Folders that may be searched and read, separated as in PATH.", _folders)
    searxng: str = _setting(
        "", "Base URL of a SearXNG instance with JSON enabled, such as http://127.0.0.1:8888.", _address
    )
    search: tuple[str, ...] = _setting(
        "auto",
        f"Providers in order, of {', '.join(PROVIDERS)}; auto: those with an address or a key, and the folders.",
        _search,
    )
    brave_key: str = _setting("", "Key of the Brave Search API.", _key, secret=True)
    tavily_key: str = _setting("", "Key of the Tavily API; tavily is asked without one if named.", _key, secret=True)
    exa_key: str = _setting("", "Key of the Exa API.", _key, secret=True)
    serper_key: str = _setting("", "Key of the Serper API (Google's results).", _key, secret=True)
    cache: Path = _setting("", "Folder of the disk cache; the user's cache directory by default.", _cache_folder)
    cache_mb: int = _setting(
        "1024", "Size of the cache in MB; what was stored longest ago goes first.", _whole(16, 10**6)
    )
    cache_url: str = _setting(
        "",
        "Valkey or Redis server that keeps the cache instead, redis://:PASSWORD@cache:6379/0 (extra redis).",
        _cache_server,
        secret=True,
    )
    embedder: str = _setting(
        "auto", "auto, none, onnx:embedded, onnx:FOLDER, llama:FILE.gguf, flag:NAME, openai:URL#MODEL."
    )
    reader: str = _setting("auto", "auto, none, onnx:FOLDER: the cross-encoder that reads question and text together.")
    reranker: str = _setting("auto", "auto, none, llama:FILE.gguf, flag:NAME, openai:URL#MODEL.")
    generator: str = _setting("auto", "auto, none, llama:FILE.gguf, openai:URL#MODEL.")
    pruner: Literal["trained", "any"] = _setting(
        "trained", "Which generator scores block paths: trained (HTML-Pruner models only), or any."
    )
    pruning: Literal["winnow", "paper"] = _setting(
        "winnow",
        "How pages are pruned: winnow, or paper (HtmlRAG's Algorithm 2, and 3 where a generator scores block paths).",
    )
    extractor: Literal["rules", "lines", "tags", "votes"] = _setting(
        "rules", "How a generator helps to extract: rules (not at all), lines, tags or votes."
    )
    idms: str = _setting(
        "partition",
        "How idms chunks are cut: partition (all boundaries at once), or running (the paper's mean of the margins so "
        "far). +density behind it lets a generator write forms of chunks that are searched as well (+density:model: it "
        "lists the names, too).",
        _one_of(*IDMS),
    )
    clustering: Literal["kmeans", "gmm", "umap"] = _setting(
        "kmeans", "How trees group nodes: kmeans; gmm or umap as in RAPTOR."
    )
    model_key: str = _setting("", "API key sent to openai: models.", secret=True)
    models: Path | None = _setting("", "Folder of downloaded models; the cache of Hugging Face by default.", _path)
    hub: str = _setting("", "Address that models are pulled from; Hugging Face by default.", _address)
    allow_loopback: bool = _setting("false", "Let pages be fetched from this machine; for tests and local sites.")
    robots: bool = _setting("true", "Respect robots.txt.")
    networks: tuple[IPv4Network | IPv6Network, ...] = _setting(
        "", "Private networks that pages may come from, such as 10.0.0.0/8.", _networks
    )
    nat64: tuple[IPv6Network, ...] = _setting(
        "", "Prefix of the network's IPv4 translator, such as 64:ff9b::/96, on machines without IPv4.", _nat64
    )
    proxy: str = _setting("", "http, https or socks5://[user:password@]host:port for public pages.", secret=True)
    proxy_resolves: bool = _setting("false", "Give the proxy names; it must then keep itself out of private networks.")
    browser: str = _setting("none", "Chromium that renders pages which only scripts fill: auto, none, or its path.")
    page_mb: int = _setting("30", "Largest page after decompression, in MB.", _whole(1, 1000))
    seconds: float = _setting("25", "Time a tool call may take before it answers with what it has.", _number(1, 3600))
    http_tokens: tuple[str, ...] = _setting(
        "", "Bearer tokens that let HTTP clients in, separated by commas.", _words(","), secret=True
    )
    http_issuer: str = _setting(
        "", "URL of the OAuth authorization server whose access tokens let HTTP clients in.", _address
    )
    http_resource: str = _setting(
        "", "Our own URL as those tokens name it, such as https://winnow.example/mcp.", _address
    )
    http_scopes: tuple[str, ...] = _setting("", "Scopes that those tokens need, separated by spaces.", _words(None))
    http_rate: int = _setting("600", "Requests a minute for each HTTP caller; 0 for no limit.", _whole(0, 10**6))
    http_stateless: bool = _setting(
        "false", "Open no sessions for HTTP clients of 2025, so that a balancer may send each request anywhere."
    )
    otlp: str = _setting(
        "", "Address of an OpenTelemetry collector (OTLP over HTTP), such as http://127.0.0.1:4318.", _address
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = _setting(
        "WARNING", "DEBUG, INFO, WARNING or ERROR; goes to stderr."
    )
    log_file: str = _setting("", "File that gets the log instead of stderr.")


def _reader(kind: object) -> Read:
    """Return what reads a text into one of some words, a switch, or a text."""
    if get_origin(kind) is Literal:
        return _one_of(*get_args(kind))
    return _switch if kind is bool else _text


_TYPES: Final = get_type_hints(Settings)
TABLE: Final = tuple(
    Setting(f.name, f.metadata["default"], f.metadata["help"], f.metadata["read"] or _reader(_TYPES[f.name]))
    for f in fields(Settings)
)


def read_settings(given: Raw, environment: Raw | None = None) -> Settings:
    """Return the settings from `given` (command line) over the environment over the defaults.

    Raises:
        UsageError: A value cannot be what it should be, or a folder does not exist.
    """
    env = os.environ if environment is None else environment
    raw = {s.name: given.get(s.name) or env.get(f"WINNOW_{s.name.upper()}") or s.default for s in TABLE}
    return Settings(**{s.name: s.read(raw, s.name) for s in TABLE})
