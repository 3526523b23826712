"""Every setting: name, default, help, and how its text is read. The environment is read
here and nowhere else.

A setting `name` comes from `WINNOW_NAME`; the command line may overrule it. pydantic
reads texts by the type of a field. `docs/settings.md` is made from `SETTINGS_TABLE`.
Not for: what each part does with a value."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_type_hints

from platformdirs import user_cache_dir, user_config_path
from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
)

from cache.server import ADDRESS
from errors import UsageError, encoded, without_password
from models.options import ModelOptions, read_options
from pipeline.fetch.page_source import Plan, site_at
from pipeline.search.provider import providers
from server.folder_list import as_list, folders_in, read_folder_list

MEGABYTE: Final = 1_000_000
"""Bytes a megabyte: decimal, as for disks and downloads."""
KEYLESS: Final = tuple(
    provider.name
    for provider in providers().values()
    if provider.keyless and provider.kind == "web"
)
"""Web search providers without a key, in the order of use: widest coverage first."""
CATALOGUES: Final = tuple(
    provider.name for provider in providers().values() if provider.kind == "research"
)
"""Providers of scholarly publications, in the order of use."""
PROVIDERS: Final = (*providers(), "folder")
KEYS: Final = {
    **{name: provider.key for name, provider in providers().items() if provider.key},
    "model": "Key of models that are set as openai:URL#MODEL.",
    "contact": (
        "Your email address, sent to Wikipedia and scholarly APIs, some of which give "
        "higher limits to users with one."
    ),
}
"""What the setting `keys` may hold."""
NAT64_LENGTHS: Final = frozenset((32, 40, 48, 56, 64, 96))
"""Prefix lengths of NAT64 translators (RFC 6052 §2.2)."""
Raw = Mapping[str, str]
Network = IPv4Network | IPv6Network


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _pairs(text: str) -> dict[str, str]:
    """Return NAME=VALUE pairs separated by spaces."""
    pairs = [pair.partition("=") for pair in text.split()]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("Use NAME=VALUE separated by spaces.")
    return {name: value for name, _, value in pairs}


def _matching(pattern: str, hint: str) -> Callable[[str], str]:
    """Return a reader for "" and texts of a form, without slashes at their end."""

    def read(text: str) -> str:
        text = text.rstrip("/")
        if text and not re.fullmatch(pattern, text):
            raise ValueError(hint)
        return text

    return read


_host = r"[^/\s:@]+(:\d{1,5})?(/.*)?"
_address = _matching(
    rf"https?://{_host}",
    "Use an address without a password, such as http://127.0.0.1:8888.",
)
_instance = _matching(
    rf"https?://([^/\s:@]+:[^/\s]*@)?{_host}",
    "Use an address such as http://127.0.0.1:8888, or http://user:password@host if it "
    "requires login.",
)


_daemon = _matching(
    r"(auto|on|off)( idle=\d{1,4}(\.\d+)?)?",
    "Use auto, on or off, and idle=MINUTES after it.",
)
_server = _matching(ADDRESS.pattern, "Use an address such as redis://127.0.0.1:6379/0.")


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _named_folders(text: str) -> dict[Path, str]:
    """Return folders with their addresses, as `folders_in` does."""
    # Unlike `Path.expanduser` this does not raise for an unknown user.
    return {
        Path(os.path.expanduser(name)): address
        for name, address in folders_in(text).items()
    }


_CORRECTED: Final = (
    "Correct --folder or WINNOW_FOLDERS, or `winnow folders remove DIR`."
)


def _folders(text: str) -> tuple[Path, ...]:
    """Return the folders that exist; if only some do, the others are skipped.

    Raises `UsageError` if none of several exists: otherwise questions about private
    documents would go to the web.
    """
    names_given = _named_folders(text)
    present = [path for path in names_given if os.path.exists(path)]
    if names_given and not present:
        missing = ", ".join(repr(str(path)) for path in names_given)
        message = (
            f"The folder {missing} does not exist."
            if len(names_given) == 1
            else f"None of these folders exist: {missing}."
        )
        raise UsageError(message, hint=_CORRECTED)
    return tuple(dict.fromkeys(path.resolve() for path in present))


def _search(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_words(text.lower())))
    exclusive = {"auto", "none"} & {*names}
    groups = (*PROVIDERS, "keyless", "academic")
    if not {*names} <= {*groups, "auto", "none"} or (exclusive and len(names) > 1):
        raise ValueError(f"Use auto, none, or some of {', '.join(groups)}.")
    return () if names == ("auto",) else names


def _keys(text: str) -> dict[str, str]:
    keys = _pairs(text)
    if not keys.keys() <= KEYS.keys():
        raise ValueError(f"Use NAME=KEY separated by spaces, with {', '.join(KEYS)}.")
    if not text.isascii() or not text.replace(" ", "").isprintable():
        raise ValueError("Copy the key again: it holds a character beyond ASCII.")
    _matching(r"[^@\s]+@[\w.-]+", "contact is an address such as ann@example.org.")(
        keys.get("contact", "")
    )
    return keys


def _forges(text: str) -> tuple[Plan, ...]:
    names_given = (word.partition("=") for word in _words(text))
    return tuple(
        site_at(kind.strip().lower(), _address(site.strip()))
        for kind, _, site in names_given
    )


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(word) for word in _words(text))
    except ValueError as error:
        raise ValueError(f"{error}. Use networks such as 10.0.0.0/8.") from error


def _reached_networks(text: str) -> "Networks":
    """Return the networks in `text`, whether it holds `loopback`, and, after `nat64=`,
    the prefixes of translators."""
    words = [word for word in _words(text) if word != "loopback"]
    private = [word for word in words if not word.startswith("nat64=")]
    prefixes = [word.removeprefix("nat64=") for word in words if word not in private]
    translators = tuple(
        network
        for network in _networks(",".join(prefixes))
        if isinstance(network, IPv6Network) and network.prefixlen in NAT64_LENGTHS
    )
    if len(translators) != len(prefixes):
        raise ValueError("Use an IPv6 prefix of length 32, 40, 48, 56, 64 or 96.")
    loopback = "loopback" in _words(text)
    return Networks(_networks(",".join(private)), translators, loopback)


def _issuer(text: str) -> str:
    """Return the address of an issuer as it is written: with a slash at its end it is
    another name, by which clients and tokens compare."""
    _address(text)
    return text


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Address = Annotated[str, PlainValidator(_address)]


class Papers(NamedTuple):
    """Steps as the papers print them."""

    pruning: Annotated[str, Field(pattern=r"^(winnow|paper(:\d{1,4})?)$")] = "winnow"
    extractor: Literal["rules", "lines", "tags", "votes", "pages"] = "rules"
    idms: Annotated[
        str, Field(pattern=r"^(partition|running)(\+density(:model)?)?$")
    ] = "partition"
    clustering: Literal["kmeans", "gmm", "umap"] = "kmeans"


class Networks(NamedTuple):
    """What pages may come from beside the public web."""

    private: tuple[Network, ...] = ()
    nat64: tuple[IPv6Network, ...] = ()
    """Prefixes of address translators."""
    loopback: bool = False
    """This machine."""


class Http(NamedTuple):
    """How HTTP is served."""

    issuer: Annotated[str, PlainValidator(_issuer)] = ""
    resource: Address = ""
    scopes: Words = ()
    rate: Annotated[int, Field(ge=0, le=10**6)] = 600
    """Requests a minute for each caller; 0 for no limit."""
    hosts: Words = ()
    proxies: Annotated[tuple[Network, ...], PlainValidator(_networks)] = ()
    stateless: bool = False
    metrics: Annotated[str, Field(pattern=r"^\S+:\d{1,5}$")] = ""


class Log(NamedTuple):
    """Where the log goes, and how."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "WARNING"
    format: Literal["text", "json"] = "text"
    file: str = ""


def did_you_mean(name: str, names_known: Iterable[str]) -> str:
    """Return " Did you mean X?" with the name in `names_known` closest to `name`, or ""."""
    as_written = {candidate.casefold(): candidate for candidate in names_known}
    matches = get_close_matches(name.casefold(), as_written, n=1)
    return f" Did you mean {as_written[matches[0]]}?" if matches else ""


class Setting(NamedTuple):
    """Reference entry of one setting."""

    name: str
    default: str
    """As in the documents."""
    help: str
    secret: bool

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"WINNOW_{self.name.upper()}"


def _setting(
    default: Any, help: str, *, secret: bool = False, written: str = ""
) -> Any:
    """Return a field of `Settings`, whose type reads its text; a `secret` is never
    shown or logged. `written` is the default in the documents, where it has no text of
    its own."""
    if isinstance(default, str | int | float):
        written = written or str(default).lower()
    about = {"help": help, "default": written}
    if default is dict:
        return field(default_factory=dict, repr=not secret, metadata=about)
    return field(default=default, repr=not secret, metadata=about)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, typed and validated, with default, help and reader."""

    folders: Annotated[tuple[Path, ...], PlainValidator(_folders)] = _setting(
        (),
        "Folders (or single files) that may be searched and read, separated as in "
        "PATH; DIR=https://… where answers shall cite that address, at which readers "
        "open what is in DIR. Hidden files and folders are excluded unless named here themselves, "
        "such as ~/notes:~/notes/.drafts. Those of `winnow folders` by default, save "
        "over HTTP.",
    )
    searxng: Annotated[str, PlainValidator(_instance)] = _setting(
        "",
        "Base URL of a SearXNG instance with JSON enabled, such as http://127.0.0.1:8888; "
        "with user:password@ before the host if it requires login.",
        secret=True,
    )
    search: Annotated[tuple[str, ...], PlainValidator(_search)] = _setting(
        (),
        (
            f"Search providers in order, from: {', '.join(PROVIDERS)}. "
            "Also keyless (all web and scholarly providers that need no "
            "key) or academic (the scholarly ones alone); or a single none "
            "(no search) or auto (all with an address or key set, and the "
            "folders; keyless if nothing is set)."
        ),
        written="auto",
    )
    keys: Annotated[Mapping[str, str], PlainValidator(_keys)] = _setting(
        dict,
        "API keys as NAME=KEY separated by spaces: "
        + "; ".join(f"{name}: {message}" for name, message in KEYS.items()),
        secret=True,
    )
    cache: Annotated[Path, PlainValidator(_path)] = _setting(
        Path(user_cache_dir("winnow")),
        "Folder of the disk cache; the user's cache directory by default.",
    )
    cache_url: Annotated[str, PlainValidator(_server)] = _setting(
        "",
        "Valkey or Redis server to use as the cache instead of the folder, such as "
        "redis://:PASSWORD@cache:6379/0 (extra redis). With ?private=true after it, only "
        "replicas of this server with the same folders use it: contents of folders, and "
        "sessions that may quote them, are then stored there too; otherwise these stay "
        "on this machine where WINNOW_FOLDERS is set. ?secret=TEXT encrypts the values "
        "with a key derived from that text.",
        secret=True,
    )
    embedder: str = _setting(
        "auto",
        (
            "Model that compares texts by meaning: auto, none, "
            "onnx:embedded (English), onnx:multilingual, "
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
    model_options: Annotated[ModelOptions, PlainValidator(read_options)] = _setting(
        dict,
        "How your own models are run, as NAME=VALUE separated by spaces: temperature, "
        "top_k, top_p, min_p, seed, thinking, n_ctx; for GGUF files also n_gpu_layers "
        "and other arguments of llama-cpp-python (docs/local-models.md).",
    )
    papers: Annotated[Papers, BeforeValidator(_pairs)] = _setting(
        Papers(),
        "Steps as the papers print them, as NAME=VALUE separated by spaces: "
        "pruning=paper (HtmlRAG), paper:128 for blocks of 128 words; extractor=lines, "
        "tags, votes or pages (zero-index; needs a generator); idms=partition or running, "
        "with +density or +density:model after it; clustering=kmeans, gmm or umap (RAPTOR). Each: docs/settings.md.",
    )
    web: Literal["auto", "named", "search", "off"] = _setting(
        "auto",
        "Which addresses of the web may be read: named (any that a call names, so also one "
        "that a page talked the model into), search (those that a search of this server found "
        "or an answer cites), off (none, and no search of the web). auto is off where folders "
        "alone are searched, else named.",
    )
    robots: bool = _setting(True, "Respect robots.txt.")
    networks: Annotated[Networks, PlainValidator(_reached_networks)] = _setting(
        Networks(),
        "Private networks that pages may come from, separated by commas, such as "
        "10.0.0.0/8; loopback is this machine; nat64=64:ff9b::/96 names the NAT64 prefix "
        "of a network without IPv4.",
    )
    forges: Annotated[tuple[Plan, ...], PlainValidator(_forges)] = _setting(
        (),
        (
            "Your own code forges as KIND=URL, separated by commas, such "
            "as gitlab=https://git.example.org; KIND is github, gitlab or "
            "gitea (also for Forgejo)."
        ),
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
    cookies: Annotated[Path | None, PlainValidator(_path)] = _setting(
        None,
        "A browser's exported cookies.txt, for pages that need a login; each cookie "
        "is sent to its own hosts only. Stdio only; such pages are cached in a "
        "separate folder on this machine.",
    )
    page_mb: Annotated[int, Field(ge=1, le=1000)] = _setting(
        30, "Largest page or file in MB, compressed and unpacked."
    )
    seconds: Annotated[float, Field(ge=1, le=3600)] = _setting(
        25,
        "Seconds after which a tool call returns what it has found so far.",
    )
    http_tokens: Words = _setting(
        (),
        "Bearer tokens of allowed HTTP clients, separated by commas.",
        secret=True,
    )
    http: Annotated[Http, BeforeValidator(_pairs)] = _setting(
        Http(),
        "How HTTP is served, as NAME=VALUE separated by spaces, lists with commas: "
        "issuer (URL of the OAuth server whose access tokens are accepted), resource "
        "(URL of this server in them, the audience) and scopes (that they must have); "
        "rate (requests a minute for each caller, 600; 0 for no limit); hosts (names by "
        "which clients call this server: NAME for port 443 or 80, else NAME:PORT); "
        "proxies (addresses or networks whose X-Forwarded-For is trusted); "
        "stateless=true (no MCP sessions for clients of the 2025 protocol, for a load "
        "balancer); metrics (address of /metrics, such as 127.0.0.1:9464; extra "
        "metrics).",
    )
    daemon: Annotated[str, PlainValidator(_daemon)] = _setting(
        "off",
        "Whether stdio clients of this user share one process: auto (where that is "
        "possible), on (else it is an error), off; after it idle=MINUTES for which the "
        "process stays without a client, 10 by default (docs/operations.md).",
    )
    log: Annotated[Log, BeforeValidator(_pairs)] = _setting(
        Log(),
        "The log, as NAME=VALUE separated by spaces: level=DEBUG, INFO, WARNING (the "
        "default) or ERROR; format=text, or json (one object a line, with its request "
        "id); file, instead of stderr.",
    )
    otlp: str = ""
    """OTEL_EXPORTER_OTLP_ENDPOINT: address of an OpenTelemetry collector."""
    missing: tuple[str, ...] = ()
    """Configured folders that do not exist, if others do."""
    addresses: tuple[tuple[str, str], ...] = ()
    """Of folders that readers open elsewhere: `file:` address, and theirs."""
    unknown: tuple[str, ...] = ()
    """Environment variables that start with WINNOW_ but are not settings."""

    def warnings(self) -> dict[str, str]:
        """Return warnings that do not prevent starting: setting or variable to
        message."""
        variables = [setting.variable for setting in SETTINGS_TABLE]
        skipped = f"It does not exist and is skipped. {_CORRECTED}"
        warnings = {f"folder {folder}": skipped for folder in self.missing}
        for name in self.unknown:
            nearest = did_you_mean(name, variables)
            warnings[name] = f"It is not a setting and is ignored.{nearest}"
        return warnings


SETTINGS_TABLE: Final = tuple(
    Setting(
        described.name,
        described.metadata["default"],
        described.metadata["help"],
        not described.repr,
    )
    for described in fields(Settings)
    if described.metadata
)


def refuse_unknown(name: str, written: str) -> None:
    """Raise `UsageError` if `name` is not a setting; `written` is the name as written,
    without its value."""
    names = [setting.name for setting in SETTINGS_TABLE]
    if name not in names:
        nearest = did_you_mean(name, names).strip()
        hint = nearest or "See docs/settings.md for all of them."
        raise UsageError(f"{written} is not a setting.", hint=hint)


def folder_list() -> Path:
    """Return where the person's list of folders is (`server/folder_list.py`)."""
    return user_config_path("winnow", appauthor=False) / "folders.txt"


def read_settings(
    overrides: Raw, environment: Raw | None = None, *, for_others: bool = False
) -> Settings:
    """Return the settings; raises `UsageError` for the first invalid one.

    Precedence: `overrides` (the command line), environment (by default this process's),
    the person's list of folders (where this process's environment is read, and not
    where the server is `for_others`), defaults.
    """
    listed = None if for_others or environment is not None else folder_list()
    settings, faults = survey_settings(overrides, environment, listed)
    for error in faults.values():
        raise error
    return settings


def _read(setting: Setting, text: str) -> Any:
    """Return the value of a text; raises `UsageError`, without a secret."""
    types = get_type_hints(Settings, include_extras=True)
    try:
        return TypeAdapter(types[setting.name]).validate_python(text)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
    name = "".join(f"{step}: " for step in fault["loc"] if isinstance(step, str))
    hint = fault["msg"].removeprefix("Value error, ")
    value = "not of the form that it needs"
    if not setting.secret:
        value = repr(without_password(text))
    raise UsageError(f"{setting.name} is {value}.", hint=f"{name}{hint}")


def _unmet_providers(settings: Settings) -> dict[str, UsageError]:
    """Return the error for the first configured search provider that lacks its key, or
    {}."""
    for name in settings.search:
        provider = providers().get(name)
        if provider is None:
            continue
        if provider.at and not getattr(settings, provider.at):
            variable = f"WINNOW_{provider.at.upper()}"
        elif provider.key and not provider.keyless and not settings.keys.get(name):
            variable = f"WINNOW_KEYS={name}=KEY"
        else:
            continue
        message = (
            f"The setting search contains {name}, whose key or address is not set."
        )
        hint = f"Set {variable}, or remove that provider from the setting search."
        return {"search": UsageError(message, hint=hint)}
    return {}


def for_a_person(settings: Settings) -> Settings:
    """Return the settings of a call whose addresses a person writes, not a model: they
    are read unless `web` says otherwise."""
    return replace(settings, web="named") if settings.web == "auto" else settings


def survey_settings(
    overrides: Raw, environment: Raw | None = None, listed: Path | None = None
) -> tuple[Settings, dict[str, UsageError]]:
    """Return settings like `read_settings`, with defaults for invalid ones, and name to
    error; `listed` is the file of the list of folders, which has to be readable.

    With invalid `folders` or `search` nothing is searched, so that no question goes to
    the web by mistake.
    """
    env = os.environ if environment is None else environment
    if listed is not None and not env.get("WINNOW_FOLDERS"):
        env = {**env, "WINNOW_FOLDERS": as_list(read_folder_list(listed), os.pathsep)}
    values: dict[str, Any] = {}
    faults: dict[str, UsageError] = {}
    for setting in SETTINGS_TABLE:
        name = setting.name
        text = (overrides.get(name) or env.get(setting.variable) or "").strip()
        try:
            values |= {name: _read(setting, text)} if text else {}
        except UsageError as error:
            faults[name] = error
    if "folders" not in faults:
        paths = _named_folders(
            overrides.get("folders") or env.get("WINNOW_FOLDERS", "")
        )
        missing = (str(path) for path in paths if not os.path.exists(path))
        values["missing"] = tuple(missing)
        values["addresses"] = tuple(
            (path.resolve().as_uri(), encoded(address[1:].rstrip("/")))
            for path, address in paths.items()
            if address
        )
    settings = Settings(**values)
    faults |= _unmet_providers(settings) if "search" not in faults else {}
    # Questions for folders or another provider must not go to the web
    if faults.keys() & {"folders", "search"}:
        settings = replace(settings, search=("none",))
    if "web" in faults:
        settings = replace(settings, web="off")
    # Pages read with cookies are cached separately, on this machine
    if settings.cookies:
        path = str(settings.cookies.absolute()).encode()
        digest = hashlib.blake2b(path, digest_size=8).hexdigest()
        cache = settings.cache / f"cookies-{digest}"
        settings = replace(settings, cache=cache, cache_url="")
    variables = {setting.variable for setting in SETTINGS_TABLE}
    present = sorted(name for name in env if name.startswith("WINNOW_") and env[name])
    unknown = tuple(name for name in present if name not in variables)
    collector = env.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").rstrip("/")
    return replace(settings, unknown=unknown, otlp=collector), faults
