"""Every setting: name, default, help, and how its text is read. The environment is read
here and nowhere else.

A setting `name` comes from `WINNOW_NAME`; the command line may overrule it.
`docs/settings.md` is made from `SETTINGS_TABLE`. Not for: what each part does with a value."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

from platformdirs import user_cache_dir

from cache.server import ADDRESS
from errors import UsageError, without_password
from models.options import ModelOptions, read_options
from pipeline.fetch.page_source import ApiSite, site_at
from pipeline.search.provider import providers

MEGABYTE: Final = 1_000_000
"""Bytes a megabyte: decimal, as for disks and downloads."""
KEYLESS: Final = tuple(
    one.name for one in providers().values() if one.keyless and one.kind == "web"
)
"""Web search providers without a key, in the order of use: widest coverage first."""
CATALOGUES: Final = tuple(
    one.name for one in providers().values() if one.kind == "research"
)
"""Providers of scholarly publications, in the order of use."""
PROVIDERS: Final = (*providers(), "folder")
KEYS: Final = {
    **{name: one.key for name, one in providers().items() if one.key},
    "model": "Key of models that are set as openai:URL#MODEL.",
    "contact": (
        "Your email address, sent to Wikipedia and scholarly APIs, some of which give "
        "higher limits to users with one."
    ),
}
"""What the setting `keys` may hold."""
GROUPS: Final = ("keyless", "academic")
IDMS: Final = tuple(
    rule + more
    for rule in ("partition", "running")
    for more in ("", "+density", "+density:model")
)
NAT64_LENGTHS: Final = frozenset((32, 40, 48, 56, 64, 96))
"""Prefix lengths of NAT64 translators (RFC 6052 §2.2)."""
Raw = Mapping[str, str]
Read = Callable[[str], Any]
"""Converts a stripped text to the value; raises ValueError with the expected form."""


def _words(separator: str | None) -> Read:
    return lambda text: tuple(
        part.strip() for part in text.split(separator) if part.strip()
    )


def _one_of(*allowed: str) -> Read:
    """Return a reader for one of some words, case-insensitive; it raises `ValueError`
    for others."""
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
    """Return a reader for a number between two inclusive bounds; it raises `ValueError`
    for others."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if low <= (value := float(text)) <= high:
                return value
        raise ValueError(f"Use a number from {low:g} to {high:g}.")

    return read


def _whole(low: int, high: int) -> Read:
    return lambda text: int(_number(low, high)(text))


def _folders(text: str) -> tuple[Path, ...]:
    """Return the folders that exist; if only some do, the others are skipped.

    Raises `UsageError` if none of several exists: otherwise questions about private
    documents would go to the web.
    """
    named = _named_folders(text)
    there = [path for path in named if os.path.exists(path)]
    if named and not there:
        missing = ", ".join(repr(str(path)) for path in named)
        what = (
            f"The folder {missing} does not exist."
            if len(named) == 1
            else f"None of these folders exist: {missing}."
        )
        raise UsageError(what, hint="Correct WINNOW_FOLDERS.")
    return tuple(dict.fromkeys(path.resolve() for path in there))


def _named_folders(text: str) -> list[Path]:
    # Unlike `Path.expanduser` this does not raise for an unknown user.
    return [
        Path(os.path.expanduser(part.strip()))
        for part in text.split(os.pathsep)
        if part.strip()
    ]


def missing_folders(text: str) -> list[str]:
    """Return the folders in `text`, a value of the setting `folders`, that do not
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


_key = _matching(
    r"[!-~]*", "Copy the key again: it holds a space or a character beyond ASCII."
)


def _address(text: str) -> str:
    hint = "Use an address without a password, such as http://127.0.0.1:8888."
    return str(_matching(r"https?://[^/\s:]+(:\d{1,5})?(/.*)?", hint)(text.rstrip("/")))


def _instance(text: str) -> str:
    """Return the address of a search engine without its last slashes: http or https, a
    host, user:password@ before it if it requires login, a port, any path or query.

    Raises `ValueError` for another form.
    """
    hint = (
        "Use an address such as http://127.0.0.1:8888, or http://user:password@host "
        "if it requires login."
    )
    return str(
        _matching(r"https?://([^/\s:@]+:[^/\s]*@)?[^/\s:@]+(:\d{1,5})?(/.*)?", hint)(
            text.rstrip("/")
        )
    )


def _forges(text: str) -> tuple[ApiSite, ...]:
    named = (part.strip().partition("=") for part in text.split(",") if part.strip())
    return tuple(
        site_at(kind.strip().lower(), _address(site.strip())) for kind, _, site in named
    )


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(
            ip_network(part.strip()) for part in text.split(",") if part.strip()
        )
    except ValueError as error:
        raise ValueError(f"{error}. Use networks such as 10.0.0.0/8.") from error


def _named(form: Callable[..., Any], **readers: Read) -> Read:
    """Return a reader for NAME=VALUE pairs separated by spaces, each value by its own
    reader; it raises `ValueError` for another name. What is not named has the default
    of `form`."""

    def read(text: str) -> Any:
        values: dict[str, Any] = {}
        for pair in text.split():
            name, equals, value = pair.partition("=")
            if name not in readers or not equals:
                raise ValueError(
                    f"Use NAME=VALUE separated by spaces, with {', '.join(readers)}."
                )
            values[name] = readers[name](value)
        return form(**values)

    return read


class Papers(NamedTuple):
    """Steps as the papers print them."""

    pruning: Literal["winnow", "paper"] = "winnow"
    extractor: Literal["rules", "lines", "tags", "votes", "pages"] = "rules"
    idms: str = "partition"
    clustering: Literal["kmeans", "gmm", "umap"] = "kmeans"


class Networks(NamedTuple):
    """What pages may come from beside the public web."""

    private: tuple[IPv4Network | IPv6Network, ...] = ()
    nat64: tuple[IPv6Network, ...] = ()
    """Prefixes of address translators."""


class Http(NamedTuple):
    """How HTTP is served."""

    issuer: str = ""
    resource: str = ""
    scopes: tuple[str, ...] = ()
    rate: int = 600
    """Requests a minute for each caller; 0 for no limit."""
    hosts: tuple[str, ...] = ()
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    stateless: bool = False
    metrics: str = ""


class Log(NamedTuple):
    """Where the log goes, and how."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "WARNING"
    format: str = "text"
    file: str = ""


def _reached_networks(text: str) -> Networks:
    parts = [part.strip() for part in text.split(",")]
    prefixes = [part.removeprefix("nat64=") for part in parts if part[:6] == "nat64="]
    translators = tuple(
        network
        for network in _networks(",".join(prefixes))
        if isinstance(network, IPv6Network) and network.prefixlen in NAT64_LENGTHS
    )
    if len(translators) != len(prefixes):
        raise ValueError("Use an IPv6 prefix of length 32, 40, 48, 56, 64 or 96.")
    private = (part for part in parts if part[:6] != "nat64=")
    return Networks(_networks(",".join(private)), translators)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean X?" with the name in `known` closest to `name`, or ""."""
    as_written = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), as_written, n=1)
    return f" Did you mean {as_written[near[0]]}?" if near else ""


class Setting(NamedTuple):
    """Reference entry of one setting, and the function that reads its text."""

    name: str
    default: str
    help: str
    read: Read
    secret: bool


def _setting(
    default: str, help: str, read: Read | None = None, *, secret: bool = False
) -> Any:
    """Return a field of `Settings`; `read` defaults to the type's reader; a `secret` is
    never shown or logged."""
    return field(
        repr=not secret, metadata={"default": default, "help": help, "read": read}
    )


def _noticed(default: Any = ()) -> Any:
    """Return a field of `Settings` for findings while reading, which is not a
    setting."""
    return field(default=default, metadata={"setting": False})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, typed and validated, with default, help and reader."""

    folders: tuple[Path, ...] = _setting(
        "",
        "Folders (or single files) that may be searched and read, separated as in "
        "PATH. Hidden files and folders are excluded unless named here themselves, "
        "such as ~/notes:~/notes/.drafts.",
        _folders,
    )
    searxng: str = _setting(
        "",
        "Base URL of a SearXNG instance with JSON enabled, such as http://127.0.0.1:8888; "
        "with user:password@ before the host if it requires login.",
        _instance,
        secret=True,
    )
    search: tuple[str, ...] = _setting(
        "auto",
        (
            f"Search providers in order, from: {', '.join(PROVIDERS)}. "
            "Also keyless (all web and scholarly providers that need no "
            "key) or academic (the scholarly ones alone); or a single none "
            "(no search) or auto (all with an address or key set, and the "
            "folders; keyless if nothing is set)."
        ),
        _search,
    )
    keys: Mapping[str, str] = _setting(
        "",
        "API keys as NAME=KEY separated by spaces: "
        + "; ".join(f"{name}: {what}" for name, what in KEYS.items()),
        _named(
            dict,
            **{
                **dict.fromkeys(KEYS, _key),
                "contact": _matching(
                    r"[^@\s]+@[\w.-]+", "Use an address such as ann@example.org."
                ),
            },
        ),
        secret=True,
    )
    cache: Path = _setting(
        "",
        "Folder of the disk cache; the user's cache directory by default.",
        lambda text: _path(text) or Path(user_cache_dir("winnow")),
    )
    cache_url: str = _setting(
        "",
        "Valkey or Redis server to use as the cache instead of the folder, such as "
        "redis://:PASSWORD@cache:6379/0 (extra redis). With ?private=true after it, only "
        "replicas of this server with the same folders use it: contents of folders, and "
        "sessions that may quote them, are then stored there too; otherwise these stay "
        "on this machine where WINNOW_FOLDERS is set. ?secret=TEXT encrypts the values "
        "with a key derived from that text.",
        _matching(ADDRESS.pattern, "Use an address such as redis://127.0.0.1:6379/0."),
        secret=True,
    )
    embedder: str = _setting(
        "auto",
        (
            "Model that compares texts by meaning: auto, none, "
            "onnx:embedded (English), onnx:multilingual, onnx:FOLDER, "
            "llama:FILE.gguf, flag:NAME (FlagEmbedding), openai:URL#MODEL."
        ),
    )
    reader: str = _setting(
        "auto",
        "Cross-encoder that scores question and text together: auto, none, "
        "onnx:FOLDER.",
    )
    reranker: str = _setting(
        "auto",
        (
            "Model that reorders the best passages: auto, none, "
            "llama:FILE.gguf, flag:NAME (FlagEmbedding), openai:URL#MODEL."
        ),
    )
    generator: str = _setting(
        "auto",
        (
            "Model that writes text, for optional steps "
            "(docs/settings.md): auto, none, llama:FILE.gguf, "
            "openai:URL#MODEL."
        ),
    )
    model_options: ModelOptions = _setting(
        "",
        "How your own models are run, as NAME=VALUE separated by spaces: temperature, "
        "top_k, top_p, min_p, seed, thinking, n_ctx; for GGUF files also n_gpu_layers "
        "and other arguments of llama-cpp-python (docs/local-models.md).",
        read_options,
    )
    papers: Papers = _setting(
        "",
        "Steps as the papers print them, as NAME=VALUE separated by spaces: "
        "pruning=paper (HtmlRAG); extractor=lines, tags, votes or pages (zero-index; "
        "needs a generator); idms=partition or running, with +density or +density:model "
        "after it; clustering=kmeans, gmm or umap (RAPTOR). Each: docs/settings.md.",
        _named(
            Papers,
            pruning=_one_of("winnow", "paper"),
            extractor=_one_of("rules", "lines", "tags", "votes", "pages"),
            idms=_one_of(*IDMS),
            clustering=_one_of("kmeans", "gmm", "umap"),
        ),
    )
    allow_loopback: bool = _setting(
        "false", "Allow fetching pages from this machine; for tests and local sites."
    )
    robots: bool = _setting("true", "Respect robots.txt.")
    networks: Networks = _setting(
        "",
        "Private networks that pages may come from, separated by commas, such as "
        "10.0.0.0/8; nat64=64:ff9b::/96 names the NAT64 prefix of a network without "
        "IPv4.",
        _reached_networks,
    )
    forges: tuple[ApiSite, ...] = _setting(
        "",
        (
            "Your own code forges as KIND=URL, separated by commas, such "
            "as gitlab=https://git.example.org; KIND is github, gitlab or "
            "gitea (also for Forgejo)."
        ),
        _forges,
    )
    proxy: str = _setting(
        "",
        (
            "Address of the HTTP proxy for public pages: http:// or https://, then "
            "[user:password@]host:port. The word resolves after the address sends host "
            "names unresolved; the proxy must then block private networks itself."
        ),
        secret=True,
    )
    browser: str = _setting(
        "none",
        "Chromium for pages that need JavaScript: auto, none, or its path.",
    )
    cookies: Path | None = _setting(
        "",
        "A browser's exported cookies.txt, for pages that need a login; each cookie "
        "is sent to its own hosts only. Stdio only; such pages are cached in a "
        "separate folder on this machine.",
        _path,
    )
    page_mb: int = _setting(
        "30", "Largest page or file in MB, compressed and unpacked.", _whole(1, 1000)
    )
    seconds: float = _setting(
        "25",
        "Seconds after which a tool call returns what it has found so far.",
        _number(1, 3600),
    )
    structured: bool = _setting(
        "false",
        "For programs: also return every answer as structured content, and list "
        "output schemas. Some clients pass that to the model instead of the text, "
        "some both.",
    )
    http_tokens: tuple[str, ...] = _setting(
        "",
        "Bearer tokens of allowed HTTP clients, separated by commas.",
        _words(","),
        secret=True,
    )
    http: Http = _setting(
        "",
        "How HTTP is served, as NAME=VALUE separated by spaces, lists with commas: "
        "issuer (URL of the OAuth server whose access tokens are accepted), resource "
        "(URL of this server in them, the audience) and scopes (that they must have); "
        "rate (requests a minute for each caller, 600; 0 for no limit); hosts (names by "
        "which clients call this server: NAME for port 443 or 80, else NAME:PORT); "
        "proxies (addresses or networks whose X-Forwarded-For is trusted); "
        "stateless=true (no MCP sessions for clients of the 2025 protocol, for a load "
        "balancer); metrics (address of /metrics, such as 127.0.0.1:9464; extra "
        "metrics).",
        _named(
            Http,
            issuer=_address,
            resource=_address,
            scopes=_words(","),
            rate=_whole(0, 10**6),
            hosts=_words(","),
            proxies=_networks,
            stateless=_switch,
            metrics=_matching(r"\S+:\d{1,5}", "Use HOST:PORT, such as 127.0.0.1:9464."),
        ),
    )
    log: Log = _setting(
        "",
        "The log, as NAME=VALUE separated by spaces: level=DEBUG, INFO, WARNING (the "
        "default) or ERROR; format=text, or json (one object a line, with its request "
        "id); file, instead of stderr.",
        _named(
            Log,
            level=_one_of("DEBUG", "INFO", "WARNING", "ERROR"),
            format=_one_of("text", "json"),
            file=str,
        ),
    )
    otlp: str = _noticed("")
    """OTEL_EXPORTER_OTLP_ENDPOINT: address of an OpenTelemetry collector."""
    missing: tuple[str, ...] = _noticed()
    """Configured folders that do not exist, if others do."""
    unknown: tuple[str, ...] = _noticed()
    """Environment variables that start with WINNOW_ but are not settings."""

    def warnings(self) -> dict[str, str]:
        """Return warnings that do not prevent starting: setting or variable to
        message."""
        variables = [_variable(setting.name) for setting in SETTINGS_TABLE]
        folders = {
            f"folder {one}": "It does not exist and is skipped. Correct WINNOW_FOLDERS."
            for one in self.missing
        }
        unknown = {
            one: f"It is not a setting and is ignored.{did_you_mean(one, variables)}"
            for one in self.unknown
        }
        return folders | unknown


def _reader(kind: object) -> Read:
    """Return the default reader of a type: literal, bool or str."""
    if get_origin(kind) is Literal:
        return _one_of(*get_args(kind))
    return _switch if kind is bool else str


def _table() -> Iterator[Setting]:
    """Yield every setting of the class."""
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


SETTINGS_TABLE: Final = tuple(_table())


def _variable(name: str) -> str:
    return f"WINNOW_{name.upper()}"


def refuse_unknown(name: str, shown: str) -> None:
    """Raise `UsageError` if `name` is not a setting; `shown` is the name as written,
    without its value."""
    known = [setting.name for setting in SETTINGS_TABLE]
    if name not in known:
        hint = (
            did_you_mean(name, known).strip() or "See docs/settings.md for all of them."
        )
        raise UsageError(f"{shown} is not a setting.", hint=hint)


def colours_wanted(environment: Raw | None = None) -> bool:
    """Return whether colors are allowed (NO_COLOR, no-color.org)."""
    env = os.environ if environment is None else environment
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def read_settings(given: Raw, environment: Raw | None = None) -> Settings:
    """Return the settings; raises `UsageError` for the first invalid one.

    Precedence: `given` (the command line), environment, defaults.
    """
    settings, faults = survey_settings(given, environment)
    for error in faults.values():
        raise error
    return settings


def _value(setting: Setting, text: str) -> tuple[Any, UsageError | None]:
    """Return the value of a setting's text and None; for an invalid text its default
    and the error."""
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
    """Return the error for the first configured search provider that lacks its key, or
    {}."""
    for name in values["search"]:
        provider = providers().get(name)
        if provider is None:
            continue
        if provider.at and not values[provider.at]:
            variable = _variable(provider.at)
        elif provider.key and not provider.keyless and not values["keys"].get(name):
            variable = f"WINNOW_KEYS={name}=KEY"
        else:
            continue
        return {
            "search": UsageError(
                f"The setting search contains {name}, whose key or address is not set.",
                hint=f"Set {variable}, or remove that provider from the setting search.",
            )
        }
    return {}


def _unknown(env: Raw) -> tuple[str, ...]:
    """Return the WINNOW_ variables of an environment that are not settings."""
    variables = {_variable(setting.name) for setting in SETTINGS_TABLE}
    ours = (name for name in sorted(env) if name.startswith("WINNOW_") and env[name])
    return tuple(name for name in ours if name not in variables)


_REFUSED: Final = {
    "WINNOW_CACHE_SECRET": "Add ?secret=TEXT to WINNOW_CACHE_URL; a cache folder is "
    "not encrypted, so put it on an encrypted disk.",
    "WINNOW_INDEX": "Words of your folders are always kept in WINNOW_CACHE; put it "
    "where they may be.",
    "WINNOW_CONFIG": "Set each setting as a variable, as in docs/settings.md.",
    "WINNOW_PROXY_RESOLVES": "Write the word resolves after the address in "
    "WINNOW_PROXY.",
    "WINNOW_NAT64": "Add nat64=PREFIX to WINNOW_NETWORKS.",
    "WINNOW_HTTP_ISSUER": "Add issuer=URL to WINNOW_HTTP.",
    "WINNOW_HTTP_RESOURCE": "Add resource=URL to WINNOW_HTTP.",
    "WINNOW_HTTP_SCOPES": "Add scopes=NAME to WINNOW_HTTP.",
    "WINNOW_HTTP_RATE": "Add rate=N to WINNOW_HTTP.",
    "WINNOW_HTTP_PROXIES": "Add proxies=ADDRESS to WINNOW_HTTP.",
}
"""Variables that left: without what they asked for, data would be kept in clear, or more
be searched or let in, than an operator meant. To what takes their place."""


def _refused(env: Raw) -> dict[str, UsageError]:
    """Return the error for each variable of an environment that must not be ignored."""
    return {
        variable: UsageError(f"{variable} is no longer a setting.", hint=hint)
        for variable, hint in _REFUSED.items()
        if env.get(variable)
    }


def _values(given: Raw, env: Raw) -> tuple[dict[str, Any], dict[str, UsageError]]:
    """Return each setting's value from the first of the two that has it, its default
    for an invalid one, and name to error."""
    values: dict[str, Any] = {}
    faults: dict[str, UsageError] = {}
    for setting in SETTINGS_TABLE:
        name = setting.name
        written = given.get(name) or env.get(_variable(name))
        text = (written or setting.default).strip()
        values[name], fault = _value(setting, text)
        if fault is not None:
            faults[name] = fault
        elif name == "folders":
            values["missing"] = tuple(missing_folders(text))
    return values, faults


def survey_settings(
    given: Raw, environment: Raw | None = None
) -> tuple[Settings, dict[str, UsageError]]:
    """Return settings like `read_settings`, with defaults for invalid ones, and name to
    error.

    With invalid `folders` or `search`, or a file of settings that is no longer read,
    nothing is searched, so that no question goes to the web by mistake.
    """
    env = os.environ if environment is None else environment
    values, faults = _values(given, env)
    faults |= _unmet_providers(values) if "search" not in faults else {}
    faults |= _refused(env)
    # Questions for folders or another provider must not go to the web
    if faults.keys() & {"folders", "search", "WINNOW_CONFIG"}:
        values["search"] = ("none",)
    values["unknown"] = _unknown(env)
    # Pages read with cookies are cached separately, on this machine
    if values["cookies"]:
        path = str(values["cookies"].absolute()).encode()
        whose = hashlib.blake2b(path, digest_size=8).hexdigest()
        values |= {"cache": values["cache"] / f"cookies-{whose}", "cache_url": ""}
    values["otlp"] = env.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").rstrip("/")
    return Settings(**values), faults
