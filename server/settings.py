"""Every setting: name, default, help, read from the environment in this one place.

A setting `name` comes from `WINNOW_NAME`; the command line may overrule it. Nothing else reads the environment. Not
for: secrets in files, or what each part does with a value.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
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
    Setting("search", "auto", "In order: searxng, brave, tavily, exa, serper, wikipedia, ddgs, folder; or auto."),
    Setting("brave_key", "", "Key of the Brave Search API; never logged."),
    Setting("tavily_key", "", "Key of the Tavily API; without one tavily, if named, is asked keyless; never logged."),
    Setting("exa_key", "", "Key of the Exa API; never logged."),
    Setting("serper_key", "", "Key of the Serper API (Google's results); never logged."),
    Setting("cache", "", "Folder of the disk cache; the user's cache directory by default."),
    Setting("cache_mb", "1024", "Size of the cache folder in MB; what was stored longest ago goes first."),
    Setting("cache_url", "", "Valkey or Redis server that keeps the cache, such as redis://:PASSWORD@cache:6379/0."),
    Setting(
        "embedder", "auto", "auto, none, onnx:embedded, onnx:FOLDER, llama:FILE.gguf, flag:NAME, openai:URL#MODEL."
    ),
    Setting("reranker", "auto", "auto, none, llama:FILE.gguf, flag:NAME, openai:URL#MODEL."),
    Setting("generator", "auto", "auto, none, llama:FILE.gguf, openai:URL#MODEL."),
    Setting("pruner", "trained", "Which generator scores block paths: trained (HTML-Pruner models only), or any."),
    Setting("extractor", "rules", "How a generator helps to extract: rules (not at all), lines, tags or votes."),
    Setting("idms", "partition", "How idms chunks are cut: partition, deviation, running, valleys, fixed; +density."),
    Setting("clustering", "kmeans", "How trees group nodes: kmeans; gmm or umap as in RAPTOR; runs of neighbours."),
    Setting("model_key", "", "API key sent to openai: models; never logged."),
    Setting("models", "", "Folder of downloaded models; the cache of Hugging Face by default."),
    Setting("hub", "", "Address that models are pulled from; Hugging Face by default."),
    Setting("allow_loopback", "false", "Let pages be fetched from this machine; for tests and local sites."),
    Setting("robots", "true", "Respect robots.txt."),
    Setting("networks", "", "Private networks that pages may come from, such as 10.0.0.0/8; none by default."),
    Setting("nat64", "", "Prefix of the network's IPv4 translator, such as 64:ff9b::/96, on machines without IPv4."),
    Setting("proxy", "", "http, https or socks5://[user:password@]host:port for public pages; never logged whole."),
    Setting("proxy_resolves", "false", "Give the proxy names; it must then keep itself out of private networks."),
    Setting("browser", "none", "Chromium that renders pages which only scripts fill: auto, none, or its path."),
    Setting("page_mb", "30", "Largest page after decompression, in MB."),
    Setting("seconds", "25", "Time a tool call may take before it answers with what it has."),
    Setting("http_tokens", "", "Bearer tokens that let HTTP clients in, separated by commas; never logged."),
    Setting("http_issuer", "", "URL of the OAuth authorization server whose access tokens let HTTP clients in."),
    Setting("http_resource", "", "Our own URL as those tokens name it, such as https://winnow.example/mcp."),
    Setting("http_scopes", "", "Scopes that those tokens need, separated by spaces."),
    Setting("http_rate", "600", "Requests a minute for each HTTP caller; 0 for no limit."),
    Setting("otlp", "", "Address of an OpenTelemetry collector (OTLP over HTTP), such as http://127.0.0.1:4318."),
    Setting("log_level", "WARNING", "DEBUG, INFO, WARNING or ERROR; goes to stderr."),
    Setting("log_file", "", "File that gets the log instead of stderr."),
)
PROVIDERS: Final = ("searxng", "brave", "tavily", "exa", "serper", "wikipedia", "ddgs", "folder")
EXTRACTORS: Final = ("rules", "lines", "tags", "votes")
IDMS_RULES: Final = ("partition", "deviation", "running", "valleys", "fixed")
IDMS_MORE: Final = ("", "density", "density:model")
"""`density:model` lets the generator list the names that a density counts."""
_NEEDED: Final = {"searxng": "searxng", "brave": "brave_key", "exa": "exa_key", "serper": "serper_key"}
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
NAT64_LENGTHS: Final = (32, 40, 48, 56, 64, 96)
"""Of prefixes that translators have (RFC 6052 §2.2)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings, checked and typed."""

    folders: tuple[Path, ...]
    searxng: str
    search: tuple[str, ...]
    """Providers in order; empty for those that have a key or an address."""
    brave_key: str
    tavily_key: str
    exa_key: str
    serper_key: str
    cache: Path
    cache_mb: int
    cache_url: str
    embedder: str
    reranker: str
    generator: str
    pruner: str
    extractor: str
    idms: str
    """A rule for boundaries, and what else is done, joined by `+`."""
    clustering: str
    model_key: str
    models: Path | None
    hub: str
    allow_loopback: bool
    robots: bool
    networks: tuple[IPv4Network | IPv6Network, ...]
    nat64: tuple[IPv6Network, ...]
    proxy: str
    proxy_resolves: bool
    browser: str
    page_mb: int
    seconds: float
    http_tokens: tuple[str, ...]
    http_issuer: str
    http_resource: str
    http_scopes: tuple[str, ...]
    http_rate: int
    otlp: str
    log_level: str
    log_file: str

    def __repr__(self) -> str:
        """All fields but those that hold secrets."""
        secret = {"model_key", "cache_url", "proxy"}
        shown = (
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if f.name not in secret and not f.name.endswith("_key")
        )
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
        search=_providers(raw),
        brave_key=_key(raw, "brave_key"),
        tavily_key=_key(raw, "tavily_key"),
        exa_key=_key(raw, "exa_key"),
        serper_key=_key(raw, "serper_key"),
        cache=Path(raw["cache"] or user_cache_dir("winnow")).expanduser(),
        cache_mb=int(_number(raw, "cache_mb", 16, 1_000_000)),
        cache_url=_cache_server(raw["cache_url"].strip()),
        embedder=raw["embedder"],
        reranker=raw["reranker"],
        generator=raw["generator"],
        pruner=_one_of(raw, "pruner", ("trained", "any")),
        extractor=_extractor(raw["extractor"]),
        idms=_idms(raw["idms"]),
        clustering=_one_of(raw, "clustering", ("kmeans", "gmm", "umap", "runs")),
        model_key=raw["model_key"],
        models=Path(raw["models"]).expanduser() if raw["models"] else None,
        hub=_address(raw, "hub"),
        allow_loopback=_switch(raw, "allow_loopback"),
        robots=_switch(raw, "robots"),
        networks=_networks(raw, "networks"),
        nat64=_prefixes(raw, "nat64"),
        proxy=raw["proxy"],
        proxy_resolves=_switch(raw, "proxy_resolves"),
        browser=raw["browser"],
        page_mb=int(_number(raw, "page_mb", 1, 1000)),
        seconds=_number(raw, "seconds", 1, 3600),
        http_tokens=tuple(token.strip() for token in raw["http_tokens"].split(",") if token.strip()),
        http_issuer=_address(raw, "http_issuer"),
        http_resource=_address(raw, "http_resource"),
        http_scopes=tuple(raw["http_scopes"].split()),
        http_rate=int(_number(raw, "http_rate", 0, 1_000_000)),
        otlp=_address(raw, "otlp"),
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


def _providers(raw: Mapping[str, str]) -> tuple[str, ...]:
    """Check the order of providers: each is known and has what it needs."""
    names = tuple(dict.fromkeys(part.strip().lower() for part in raw["search"].split(",") if part.strip()))
    if names in ((), ("auto",)):
        return ()
    for name in names:
        if name not in PROVIDERS:
            raise UsageError(f"search names {name!r}.", hint=f"Use auto, or some of {', '.join(PROVIDERS)}.")
        if name in _NEEDED and not raw[_NEEDED[name]].strip():
            raise UsageError(f"search names {name}.", hint=f"Set WINNOW_{_NEEDED[name].upper()}, or leave it out.")
    return names


def _extractor(value: str) -> str:
    way = value.strip().lower()
    if way not in EXTRACTORS:
        raise UsageError(f"extractor is {value!r}.", hint=f"Use one of {', '.join(EXTRACTORS)}.")
    return way


def _idms(value: str) -> str:
    """Check the rule of idms chunking and what may follow it; return it in its full form."""
    rule, _, more = value.strip().lower().partition("+")
    if rule not in IDMS_RULES or more not in IDMS_MORE:
        told = f"Use one of {', '.join(IDMS_RULES)}; +density behind it lets a generator write forms for the index."
        raise UsageError(f"idms is {value!r}.", hint=told)
    return f"{rule}+{more}" if more else rule


def _key(raw: Mapping[str, str], name: str) -> str:
    """Check that a key can stand in a header; no message repeats it."""
    value = raw[name].strip()
    if not re.fullmatch(r"[!-~]*", value):
        raise UsageError(f"{name} holds a space or a character beyond ASCII.", hint="Copy the key again.")
    return value


def _cache_server(value: str) -> str:
    """Check the address of a cache server; it may hold a password, so no message repeats it."""
    if value and not re.match(r"((redis|valkey)s?://[^/\s]+(/\d*)?|unix://\S+)(\?\S*)?\Z", value):
        raise UsageError("cache_url is no address of a cache server.", hint="Use one such as redis://127.0.0.1:6379/0.")
    return value


def _networks(raw: Mapping[str, str], name: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in raw[name].split(",") if part.strip())
    except ValueError as error:
        raise UsageError(f"{name} is {raw[name]!r}: {error}.", hint="Use networks such as 10.0.0.0/8.") from error


def _prefixes(raw: Mapping[str, str], name: str) -> tuple[IPv6Network, ...]:
    found = tuple(network for network in _networks(raw, name) if isinstance(network, IPv6Network))
    if len(found) != len(_networks(raw, name)) or any(prefix.prefixlen not in NAT64_LENGTHS for prefix in found):
        raise UsageError(f"{name} is {raw[name]!r}.", hint="Use an IPv6 prefix of length 32, 40, 48, 56, 64 or 96.")
    return found


def _one_of(raw: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    if raw[name] not in allowed:
        raise UsageError(f"{name} is {raw[name]!r}.", hint=f"Use one of {', '.join(allowed)}.")
    return raw[name]


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
