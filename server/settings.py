"""Every setting: name, default, help, and how its text is read. The environment is read here and
nowhere else.

A setting `name` comes from `WINNOW_NAME`; the command line may overrule it. `docs/settings.md` is
made from `TABLE`. Not for: what each part does with a value.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

from platformdirs import user_cache_dir

from errors import UsageError, without_password
from models.tuning import Role, Tuning, read_tuning
from pipeline.fetch.forge import Forge, forge_at
from pipeline.search.provider import providers

MEGABYTE: Final = 1_000_000
"""Bytes; sizes in settings are decimal, as disks and downloads state them."""
KEYLESS: Final = tuple(
    one.name for one in providers().values() if one.keyless and one.kind == "web"
)
"""Providers that find pages without a key, in the order in which they are asked: the widest
first."""
CATALOGUES: Final = tuple(
    one.name for one in providers().values() if one.kind == "research"
)
"""Providers of published research, in the same way."""
PROVIDERS: Final = (*providers(), "folder")
GROUPS: Final = ("keyless", "academic")
IDMS: Final = tuple(
    rule + more
    for rule in ("partition", "running")
    for more in ("", "+density", "+density:model")
)
NAT64_LENGTHS: Final = frozenset((32, 40, 48, 56, 64, 96))
"""Of prefixes that translators have (RFC 6052 §2.2)."""
Raw = Mapping[str, str]
Read = Callable[[str], Any]
"""From a text without blanks around it to the value; raises ValueError with what would be right."""


def _words(separator: str | None) -> Read:
    return lambda text: tuple(
        part.strip() for part in text.split(separator) if part.strip()
    )


def _one_of(*allowed: str) -> Read:
    """Read one of some words, however it is capitalised."""
    known = {word.casefold(): word for word in allowed}

    def read(text: str) -> str:
        if text.casefold() not in known:
            raise ValueError(f"Use one of {', '.join(allowed)}.")
        return known[text.casefold()]

    return read


def _switch(text: str) -> bool:
    return _one_of("true", "false", "1", "0", "yes", "no", "on", "off")(text) in (
        "true",
        "1",
        "yes",
        "on",
    )


def _number(low: float, high: float) -> Read:
    """Read a number between bounds, both included."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if low <= (value := float(text)) <= high:
                return value
        raise ValueError(f"Use a number from {low:g} to {high:g}.")

    return read


def _whole(low: int, high: int) -> Read:
    return lambda text: int(_number(low, high)(text))


def _folders(text: str) -> tuple[Path, ...]:
    """Return the folders that are there.

    Raises `UsageError` where none of several is: without any folder the web would be searched
    instead, with questions that were meant for a person's own documents.
    """
    named = _named_folders(text)
    there = [path for path in named if os.path.exists(path)]
    if named and not there:
        missing = ", ".join(repr(str(path)) for path in named)
        what = (
            f"The folder {missing} does not exist."
            if len(named) == 1
            else f"None of these folders exists: {missing}."
        )
        raise UsageError(what, hint="Correct WINNOW_FOLDERS.")
    return tuple(dict.fromkeys(path.resolve() for path in there))


def _named_folders(text: str) -> list[Path]:
    # Unlike `Path.expanduser` this raises nothing for a user whom the machine does not have.
    return [
        Path(os.path.expanduser(part.strip()))
        for part in text.split(os.pathsep)
        if part.strip()
    ]


def missing_folders(text: str) -> list[str]:
    """Return those of the folders in `text`, a value of the setting `folders`, that do not
    exist."""
    return [str(path) for path in _named_folders(text) if not os.path.exists(path)]


def _path(text: str) -> Path | None:
    return Path(text).expanduser() if text else None


def _search(text: str) -> tuple[str, ...]:
    names = tuple(
        dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip())
    )
    if not set(names) <= {*PROVIDERS, *GROUPS, "auto", "none"} or (
        len(names) > 1 and {"auto", "none"} & {*names}
    ):
        raise ValueError(
            f"Use auto, none, or some of {', '.join((*PROVIDERS, *GROUPS))}."
        )
    return () if names == ("auto",) else names


def _matching(pattern: str, hint: str) -> Read:

    def read(text: str) -> str:
        if text and not re.fullmatch(pattern, text):
            raise ValueError(hint)
        return text

    return read


def _tuning(role: Role) -> Read:
    return lambda text: read_tuning(text, role)


def _options(model: str) -> str:
    """Return the help of an encoder's options."""
    return (
        f"How {model} from a GGUF file is run, as NAME=VALUE separated by blanks: layers, devices, "
        f"split, context (tokens of a text), flash, threads, batch, mmap (docs/local-models.md)."
    )


_key = _matching(
    r"[!-~]*", "Copy the key again: it holds a space or a character beyond ASCII."
)
_cache_server = _matching(
    r"((redis|valkey)s?://[^/\s]+(/\d*)?|unix://\S+)(\?\S*)?",
    "Use an address such as redis://127.0.0.1:6379/0.",
)


def _address(text: str) -> str:
    hint = "Use an address without a password, such as http://127.0.0.1:8888."
    return str(_matching(r"https?://[^/\s:]+(:\d{1,5})?(/.*)?", hint)(text.rstrip("/")))


def _instance(text: str) -> str:
    """Read the address of a search engine, which may carry the name and password that it asks
    for."""
    hint = (
        "Use an address such as http://127.0.0.1:8888, or http://user:password@host where it "
        "asks for them."
    )
    return str(
        _matching(r"https?://([^/\s:@]+:[^/\s]*@)?[^/\s:@]+(:\d{1,5})?(/.*)?", hint)(
            text.rstrip("/")
        )
    )


def _forges(text: str) -> tuple[Forge, ...]:
    named = (part.strip().partition("=") for part in text.split(",") if part.strip())
    return tuple(
        forge_at(kind.strip().lower(), _address(site.strip()))
        for kind, _, site in named
    )


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(
            ip_network(part.strip()) for part in text.split(",") if part.strip()
        )
    except ValueError as error:
        raise ValueError(f"{error}. Use networks such as 10.0.0.0/8.") from error


def _nat64(text: str) -> tuple[IPv6Network, ...]:
    networks = _networks(text)
    found = tuple(
        each
        for each in networks
        if isinstance(each, IPv6Network) and each.prefixlen in NAT64_LENGTHS
    )
    if len(found) != len(networks):
        raise ValueError("Use an IPv6 prefix of length 32, 40, 48, 56, 64 or 96.")
    return found


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the one of `known` that is nearest to `name`, a space before it; ""
    where none is near."""
    as_written = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), as_written, n=1)
    return f" Did you mean {as_written[near[0]]}?" if near else ""


class Setting(NamedTuple):
    """What the reference says of one setting, and how its text is read."""

    name: str
    default: str
    help: str
    read: Read
    secret: bool


def _setting(
    default: str, help: str, read: Read | None = None, *, secret: bool = False
) -> Any:
    """Return a field of `Settings`, read by its type where `read` is None; a `secret` is never
    shown or logged."""
    return field(
        repr=not secret, metadata={"default": default, "help": help, "read": read}
    )


def _noticed() -> Any:
    """Return a field of `Settings` that is no setting: what was noticed while they were read."""
    return field(default=(), metadata={"setting": False})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings, checked and typed, each with its default, its help and what reads it."""

    config: Path | None = _setting(
        "",
        "TOML file of settings, by their names in small letters (seconds = 20); the environment "
        "goes over it.",
        _path,
    )
    folders: tuple[Path, ...] = _setting(
        "",
        "Folders (or single files) that may be searched and read, separated as in PATH. What is "
        "hidden in them stays "
        "closed unless it is named here itself, such as ~/notes:~/notes/.drafts.",
        _folders,
    )
    searxng: str = _setting(
        "",
        "Base URL of a SearXNG instance with JSON enabled, such as http://127.0.0.1:8888; "
        "user:password@ stands before "
        "the host where it asks for them.",
        _instance,
        secret=True,
    )
    search: tuple[str, ...] = _setting(
        "auto",
        f"Providers in order, of {', '.join(PROVIDERS)}; keyless or academic for those without a "
        f"key; none; auto: "
        "those with an address or a key, and the folders; keyless where there is neither.",
        _search,
    )
    contact: str = _setting(
        "",
        "Your mail address, told to Wikipedia and the catalogues of research, which serve better "
        "who can be reached.",
        _matching(r"[^@\s]+@[\w.-]+", "Use an address such as ann@example.org."),
        secret=True,
    )
    cache: Path = _setting(
        "",
        "Folder of the disk cache; the user's cache directory by default.",
        lambda text: _path(text) or Path(user_cache_dir("winnow")),
    )
    cache_mb: int = _setting(
        "1024",
        "Size of the cache in MB; what was stored longest ago goes first.",
        _whole(16, 10**6),
    )
    index: bool = _setting(
        "true",
        "Keep the words of your folders in the cache folder, on top of its size; false: in "
        "memory, till the end.",
    )
    cache_url: str = _setting(
        "",
        "Valkey or Redis server that keeps the cache instead, redis://:PASSWORD@cache:6379/0 "
        "(extra redis).",
        _cache_server,
        secret=True,
    )
    cache_private: bool = _setting(
        "false",
        "Only replicas of this server read that cache server, and all have the same folders: what "
        "is read from them "
        "then lies there too, sessions included; false: it stays on this machine.",
    )
    cache_secret: str = _setting(
        "",
        "Values in the cache are encrypted with a key of this text; those of another one are not "
        "seen.",
        secret=True,
    )
    embedder: str = _setting(
        "auto",
        "auto, none, onnx:embedded (English), onnx:multilingual, onnx:FOLDER, llama:FILE.gguf, "
        "flag:NAME, openai:URL#MODEL.",
    )
    reader: str = _setting(
        "auto",
        "auto, none, onnx:FOLDER: the cross-encoder that reads question and text together.",
    )
    reranker: str = _setting(
        "auto", "auto, none, llama:FILE.gguf, flag:NAME, openai:URL#MODEL."
    )
    generator: str = _setting("auto", "auto, none, llama:FILE.gguf, openai:URL#MODEL.")
    embedder_options: Tuning = _setting(
        "", _options("an embedder"), _tuning("embedder")
    )
    reranker_options: Tuning = _setting("", _options("a reranker"), _tuning("reranker"))
    generator_options: Tuning = _setting(
        "",
        "How a generator is run, as NAME=VALUE separated by blanks: layers, devices, split, context, "
        "kv, flash, threads, batch, mmap; temperature, top_k, top_p, min_p, seed, thinking, "
        "speculate; `winnow models show` prints each with where its value comes from.",
        _tuning("generator"),
    )
    pruner: Literal["trained", "any"] = _setting(
        "trained",
        "Which generator scores block paths: trained (HTML-Pruner models only), or any.",
    )
    pruning: Literal["winnow", "blocks", "paper"] = _setting(
        "winnow",
        "How pages are pruned: winnow; paper (HtmlRAG's Algorithm 2 by the embedder, and 3 where a "
        "generator scores block paths); blocks (the same by words and embedder).",
    )
    extractor: Literal["rules", "lines", "tags", "votes", "pages"] = _setting(
        "rules",
        "How a generator helps to extract: rules (not at all), lines, tags or votes; pages as in "
        "zero-index: each page whole, a call a page, what it names is the evidence.",
    )
    idms: str = _setting(
        "partition",
        "How idms chunks are cut: partition (all boundaries at once), or running (as printed: the "
        "mean of the margins so far, no bounds on length, density by Eq. 2). +density behind it "
        "lets a generator write forms of chunks that are searched as well (+density:model: it "
        "lists the names, too).",
        _one_of(*IDMS),
    )
    clustering: Literal["kmeans", "gmm", "umap"] = _setting(
        "kmeans", "How trees group nodes: kmeans; gmm or umap as in RAPTOR."
    )
    model_key: str = _setting("", "API key sent to openai: models.", secret=True)
    models: Path | None = _setting(
        "", "Folder of downloaded models; the cache of Hugging Face by default.", _path
    )
    hub: str = _setting(
        "", "Address that models are pulled from; Hugging Face by default.", _address
    )
    allow_loopback: bool = _setting(
        "false", "Let pages be fetched from this machine; for tests and local sites."
    )
    robots: bool = _setting("true", "Respect robots.txt.")
    networks: tuple[IPv4Network | IPv6Network, ...] = _setting(
        "", "Private networks that pages may come from, such as 10.0.0.0/8.", _networks
    )
    nat64: tuple[IPv6Network, ...] = _setting(
        "",
        "Prefix of the network's IPv4 translator, such as 64:ff9b::/96, on machines without IPv4.",
        _nat64,
    )
    forges: tuple[Forge, ...] = _setting(
        "",
        "Your own code forges, as gitlab=https://git.example.org, with github, gitlab or gitea "
        "(Forgejo) in front.",
        _forges,
    )
    proxy: str = _setting(
        "",
        "http, https or socks5://[user:password@]host:port for public pages.",
        secret=True,
    )
    proxy_resolves: bool = _setting(
        "false",
        "Give the proxy names; it must then keep itself out of private networks.",
    )
    browser: str = _setting(
        "none",
        "Chromium that renders pages which only scripts fill: auto, none, or its path.",
    )
    cookies: Path | None = _setting(
        "",
        "A browser's exported cookies.txt, for pages that need a login: sent to the hosts that it "
        "names, by its rules. "
        "Over stdio only; what is read is cached in a folder of its own on this machine.",
        _path,
    )
    page_mb: int = _setting(
        "30", "Largest page or file, as it comes and unpacked, in MB.", _whole(1, 1000)
    )
    seconds: float = _setting(
        "25",
        "Time a tool call may take before it answers with what it has.",
        _number(1, 3600),
    )
    structured: bool = _setting(
        "false",
        "For programs: every answer a second time as structured content, output schemas in the "
        "list of tools. Some "
        "clients show a model that instead of the text, some both.",
    )
    http_tokens: tuple[str, ...] = _setting(
        "",
        "Bearer tokens that let HTTP clients in, separated by commas.",
        _words(","),
        secret=True,
    )
    http_issuer: str = _setting(
        "",
        "URL of the OAuth authorization server whose access tokens let HTTP clients in.",
        _address,
    )
    http_resource: str = _setting(
        "",
        "Our own URL as those tokens name it, such as https://winnow.example/mcp.",
        _address,
    )
    http_scopes: tuple[str, ...] = _setting(
        "", "Scopes that those tokens need, separated by spaces.", _words(None)
    )
    http_rate: int = _setting(
        "600",
        "Requests a minute for each HTTP caller; 0 for no limit.",
        _whole(0, 10**6),
    )
    http_proxies: tuple[IPv4Network | IPv6Network, ...] = _setting(
        "",
        "Addresses of reverse proxies whose X-Forwarded-For names the caller, such as 127.0.0.1.",
        _networks,
    )
    http_stateless: bool = _setting(
        "false",
        "Open no sessions for HTTP clients of 2025, so that a balancer may send each request "
        "anywhere.",
    )
    otlp: str = _setting(
        "",
        "Address of an OpenTelemetry collector (OTLP over HTTP), such as http://127.0.0.1:4318.",
        _address,
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = _setting(
        "WARNING", "DEBUG, INFO, WARNING or ERROR; goes to stderr."
    )
    log_file: str = _setting("", "File that gets the log instead of stderr.")
    log_format: Literal["text", "json"] = _setting(
        "text",
        "text, or json: one object a line, with the request that it belongs to (X-Request-Id).",
    )
    metrics: str = _setting(
        "",
        "Address at which Prometheus finds /metrics while HTTP is served, such as 127.0.0.1:9464 "
        "(extra metrics).",
        _matching(r"\S+:\d{1,5}", "Use HOST:PORT, such as 127.0.0.1:9464."),
    )
    keys: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata={"setting": False}
    )
    """Keys of search providers, by the provider's name."""
    missing: tuple[str, ...] = _noticed()
    """Folders that were named beside others and do not exist."""
    unknown: tuple[str, ...] = _noticed()
    """Variables of the environment that begin as settings do, and are none."""

    def warnings(self) -> dict[str, str]:
        """Return what is wrong with settings and keeps nothing from working, by what it is wrong
        with."""
        variables = [_variable(setting.name) for setting in TABLE]
        folders = {
            f"folder {one}": "It does not exist and is left out. Correct WINNOW_FOLDERS."
            for one in self.missing
        }
        unknown = {
            one: f"It is no setting and is not used.{did_you_mean(one, variables)}"
            for one in self.unknown
        }
        return folders | unknown


def _reader(kind: object) -> Read:
    """Return what reads a text into one of some words, a switch, or a text."""
    if get_origin(kind) is Literal:
        return _one_of(*get_args(kind))
    return _switch if kind is bool else str


def _table() -> Iterator[Setting]:
    """Yield every setting: those of the class, and after `search` the keys of providers."""
    types = get_type_hints(Settings)
    for one in fields(Settings):
        if one.metadata.get("setting", True):
            read = one.metadata["read"] or _reader(types[one.name])
            yield Setting(
                one.name,
                one.metadata["default"],
                one.metadata["help"],
                read,
                not one.repr,
            )
        if one.name == "contact":
            for provider in providers().values():
                if provider.key:
                    yield Setting(f"{provider.name}_key", "", provider.key, _key, True)


TABLE: Final = tuple(_table())


def _variable(name: str) -> str:
    return f"WINNOW_{name.upper()}"


def refuse_unknown(name: str, shown: str) -> None:
    """Raise `UsageError` where `name` is no setting; `shown` is how a person wrote it, never with
    its value."""
    known = [setting.name for setting in TABLE]
    if name not in known:
        hint = (
            did_you_mean(name, known).strip() or "See docs/settings.md for all of them."
        )
        raise UsageError(f"{shown} is no setting.", hint=hint)


def colours_wanted(environment: Raw | None = None) -> bool:
    """Return whether a person lets terminals be written to in colours (no-color.org)."""
    env = os.environ if environment is None else environment
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def _written(file: str) -> Raw:
    """Return the settings of a TOML file, by name, as texts; raises `UsageError`."""
    if not file:
        return {}
    try:
        found = tomllib.loads(Path(file).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The settings in {file} cannot be read: {error}.",
            hint="Correct WINNOW_CONFIG.",
        ) from error
    for name, value in found.items():
        if name == "config":
            raise UsageError(
                f"{file} names 'config', which is not for a file.",
                hint="See docs/settings.md.",
            )
        refuse_unknown(name, f"{name!r} in {file}")
        if not isinstance(value, str | int | float):
            raise UsageError(
                f"{name} in {file} is no text, number or switch.",
                hint="Write it as in the environment.",
            )
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in found.items()
    }


def read_settings(given: Raw, environment: Raw | None = None) -> Settings:
    """Return the settings; raises `UsageError`.

    `given` (the command line) goes over the environment, that over the file that the setting
    `config` names, and that over the defaults.
    """
    settings, faults = survey_settings(given, environment)
    for error in faults.values():
        raise error
    return settings


def _value(setting: Setting, text: str) -> tuple[Any, UsageError | None]:
    """Return what a setting's text means; its default, and why, where it means nothing."""
    try:
        return setting.read(text), None
    except UsageError as error:
        return setting.read(setting.default), error
    except ValueError as error:
        unshown = "not of the form that it needs"
        shown = unshown if setting.secret else repr(without_password(text))
        fault = UsageError(f"{setting.name} is {shown}.", hint=str(error))
        fault.__cause__ = error
        return setting.read(setting.default), fault


def _unmet_providers(values: Mapping[str, Any]) -> dict[str, UsageError]:
    """Return why the search providers cannot be as they are set: the first that lacks its key."""
    for provider in values["search"]:
        known = providers().get(provider)
        needed = known.needed if known is not None else ""
        if needed and not values[needed]:
            hint = f"Set {_variable(needed)}, or leave it out."
            return {"search": UsageError(f"search names {provider}.", hint=hint)}
    return {}


def _unknown(env: Raw) -> tuple[str, ...]:
    """Return the variables of ours in an environment that no setting has."""
    variables = {_variable(setting.name) for setting in TABLE}
    ours = (name for name in sorted(env) if name.startswith("WINNOW_") and env[name])
    return tuple(name for name in ours if name not in variables)


def survey_settings(
    given: Raw, environment: Raw | None = None
) -> tuple[Settings, dict[str, UsageError]]:
    """Return settings as `read_settings` does, with the default in place of what cannot be, and by
    name why not."""
    env = os.environ if environment is None else environment
    faults: dict[str, UsageError] = {}
    file: Raw = {}
    try:
        file = _written(given.get("config") or env.get("WINNOW_CONFIG") or "")
    except UsageError as error:
        faults["config"] = error
    values: dict[str, Any] = {}
    for setting in TABLE:
        name = setting.name
        written = given.get(name) or env.get(_variable(name)) or file.get(name)
        text = (written or setting.default).strip()
        values[name], fault = _value(setting, text)
        if fault is not None:
            faults[name] = fault
        elif name == "folders":
            values["missing"] = tuple(missing_folders(text))
    faults |= _unmet_providers(values) if "search" not in faults else {}
    # The web is not asked what was meant for folders, or for another provider
    if "folders" in faults or "search" in faults:
        values["search"] = ("none",)
    values["unknown"] = _unknown(env)
    # What is read with cookies is kept apart, and on this machine
    if values["cookies"]:
        path = str(values["cookies"].absolute()).encode()
        whose = hashlib.blake2b(path, digest_size=8).hexdigest()
        values |= {"cache": values["cache"] / f"cookies-{whose}", "cache_url": ""}
    keys = {
        name: values.pop(f"{name}_key") for name, one in providers().items() if one.key
    }
    return Settings(**values, keys=keys), faults
