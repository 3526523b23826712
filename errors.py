"""Every error that Winnow raises on purpose, and its readers.

Not for: programming mistakes, which stay ordinary exceptions and reach the log only.
"""

import random
import re
import string
import sys
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

HERE: Final = Path(__file__).resolve().parent
"""The checkout that runs, or the folder `_app` of an installation."""
QUOTED: Final = 300
"""Maximum characters of outside text quoted in one of our lines."""
_OUTSIDE_CHARACTERS: Final = 160
"""Maximum characters of outside text in an error, which lists cut at `QUOTED`."""
NARROW: Final = 80
"""Maximum characters of an address's host, and of its rest, in our messages."""
_SCHEME_CHARACTERS: Final = 12
"""Characters of a scheme; longer ones are words."""
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'`«»<>]*")
_PARTED: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/?#]*)(?P<rest>.*)", re.DOTALL
)
_PLAIN_CHARACTERS: Final = "!#$%&'()*+,-./:;=?@[]_~"
"""Characters kept in an address besides letters and digits. Others are percent-encoded,
so that no address contains spaces, line breaks or delimiters."""
_HALF_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]?\Z")
_OPEN_QUOTE: Final = re.compile(r"\s*«(\d{12})» (?!.*«/\1»).*\Z", re.DOTALL)
_LOT: Final = random.SystemRandom()


def new_delimiter(rng: random.Random = _LOT) -> str:
    """Return a random delimiter for one answer; pass `rng` for reproducible runs.

    A page guesses it with probability 10^-12. Three digits are one token, so every
    delimiter costs the same.
    """
    return "".join(rng.choices(string.digits, k=12))


def said(text: str) -> str:
    """Return outside text on one line, cut to `_OUTSIDE_CHARACTERS`, between delimiters; "" for
    ""."""
    seen = "".join(letter if letter.isprintable() else " " for letter in text)
    delimiter, folded = (
        new_delimiter(),
        without_password(" ".join(seen.split()))[:_OUTSIDE_CHARACTERS],
    )
    return f"«{delimiter}» {folded} «/{delimiter}»" if folded else ""


def unopened(text: str) -> str:
    """Return a truncated line without the quotation whose end was cut off."""
    return _OPEN_QUOTE.sub(" …", text)


def encoded(url: str) -> str:
    """Percent-encode an address: no spaces, line breaks or delimiters remain."""
    return quote(
        " ".join(url.split()), safe=_PLAIN_CHARACTERS, errors="replace"
    ).replace(quote("…"), "…")


def narrow(url: str) -> str:
    """Return an address shortened for messages: scheme, host, at most `NARROW`
    characters of the rest; of a path, the end.

    The author of a link or file name controls its letters; a long one can hold
    sentences. The folders of a file are the user's own: its address is whole where no
    name in it is longer.
    """
    encoded_url = encoded(url)
    match = _PARTED.fullmatch(encoded_url)
    if match and match["scheme"] == "file":
        names = unquote(match["rest"]).split("/")
        if max(map(len, names)) <= NARROW:
            return encoded_url
    if match is None or not match["host"]:
        head = f"{match['scheme'][:_SCHEME_CHARACTERS]}://" if match else ""
        path = match["rest"] if match else encoded_url
        is_path = bool(match) or "/" in path[:1] or ":" not in path
        return head + (
            path if len(path) <= NARROW else f"…{_end(path)}" if is_path else _cut(path)
        )
    scheme, host = match["scheme"][:_SCHEME_CHARACTERS], _cut(match["host"])
    return f"{scheme}://{host}{_cut(match['rest'])}"


def brief(source: str) -> str:
    """Return a caller's source shortened for messages, without a password."""
    if "://" in source or len(source) > NARROW:
        return narrow(without_password(source))
    return without_password(source)


def _cut(text: str) -> str:
    return (
        text if len(text) <= NARROW else f"{_HALF_ESCAPE.sub('', text[: NARROW - 1])}…"
    )


def _end(path: str) -> str:
    tail = path[1 - NARROW :]
    return tail[
        next(
            (
                index
                for index in range(3)
                if "%" not in tail[max(0, index - 2) : index + 1]
            ),
            0,
        ) :
    ]


def narrowed(text: str) -> str:
    """Return a text with every address shortened by `narrow`, without passwords."""
    return _ADDRESS.sub(lambda match: narrow(match[0]), without_password(text))


def without_password(text: str) -> str:
    """Return `text` with the name and password of every address in it replaced by an
    ellipsis."""
    head, *after = " ".join(map(_without_scheme, text.split(" "))).split("//")
    return "//".join([head, *map(_bare, after)])


def _without_scheme(word: str) -> str:
    """Replace name and password in an address that has no scheme."""
    colon, at_sign = word.find(":"), word.find("@")
    if not 0 < colon < at_sign or "/" in word[:at_sign]:
        return word
    start = 1 + max(word.rfind(separator, 0, colon) for separator in "\n\t'\"(")
    return f"{word[:start]}…{word[at_sign:]}"


def _bare(text: str) -> str:
    stop = next(
        (
            index
            for index, letter in enumerate(text)
            if letter in "/?#" or letter.isspace()
        ),
        len(text),
    )
    port = text[:stop].partition(":")[2]
    if port and not port.isdigit() and not text.startswith("["):
        stop = len(text.split(maxsplit=1)[0])  # a password with a slash in it
    at_sign = text.rfind("@", 0, stop)
    return f"…{text[at_sign:]}" if at_sign >= 0 else text


class WinnowError(Exception):
    """Base of all errors that a caller can act on.

    `what`: what failed, with which value. `hint`: what to do next.
    """

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        """Both sentences, as the caller reads them; never with a password or a long
        address."""
        return f"{self.shown} {narrowed(self.hint)}".strip()

    @property
    def shown(self) -> str:
        """`what`, with addresses shortened."""
        return narrowed(self.what)


class UsageError(WinnowError):
    """The request cannot work; the caller has to change it."""


class SourceError(WinnowError):
    """One source could not be read; `source` is what the caller gave."""

    def __init__(self, what: str, *, source: str, hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.source = source

    @property
    def shown(self) -> str:
        """`what`, with the source's own address or path shortened."""
        return narrowed(
            self.what.replace(self.source, brief(self.source))
            if self.source
            else self.what
        )


class AddressRefused(SourceError):
    """The address may not be requested: scheme, port, private network, robots.txt,
    unresolvable name."""


class SourceNotFound(SourceError):
    """The source does not exist: 404, 410, missing file, expired or unknown handle."""


class SourceTimeout(SourceError):
    """The deadline passed before the source was complete."""


class SourceTooLarge(SourceError):
    """The source is over the cap on bytes, on the wire or unpacked."""


class SourceUnreadable(SourceError):
    """The source was loaded but contains no text: binary, encrypted, scanned or
    empty."""


class NeedsBrowser(SourceUnreadable):
    """The source is a page that is empty until its scripts run in a browser."""


class SearchFailed(WinnowError):
    """Every search provider failed; the text gives each one's reason."""


class ModelError(WinnowError):
    """A model failed (crash, refusal, invalid output); the caller may repeat the
    call."""


class ContextExceeded(ModelError):
    """The input exceeds the model's context; pipeline steps catch it and retry with
    less."""


def installer(prefix: Path = Path(sys.prefix)) -> str:
    """Return the command that installs packages where Winnow runs; before their names."""
    if "pipx" in prefix.parts:
        return "pipx runpip winnow-mcp install"
    return f"{sys.executable} -m pip install"


def is_checkout(here: Path = HERE) -> bool:
    """Whether Winnow runs from a checkout of its repository, not from a wheel."""
    return here.name != "_app"


def how_to_add(extra: str, here: Path = HERE, prefix: Path = Path(sys.prefix)) -> str:
    """Return the command that adds an extra to this copy of Winnow: a checkout, or an
    installation by uvx, pipx or pip."""
    if is_checkout(here):
        return f"make -C {here} extras EXTRAS={extra}"
    if "archive-v0" in prefix.parts:
        return f"uvx --from 'winnow-mcp[{extra}] @ git+https://github.com/winnow-mcp/winnow' winnow"
    return f"{installer(prefix)} 'winnow-mcp[{extra}]'"


class MissingExtra(ModelError):
    """A configured feature needs a package that is not installed."""

    def __init__(self, package: str, *, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package!r}, which is not installed.",
            hint=f"Install the extra {extra}: {how_to_add(extra)}",
        )
        self.extra = extra


class BrokenExtra(ModelError):
    """A configured feature needs packages that are installed but fail to import."""

    def __init__(
        self, cause: Exception, *, extra: str, packages: str, needed_for: str
    ) -> None:
        """Quote the import error on one line, at most `QUOTED` characters: some
        packages print their documentation."""
        cause_text = " ".join(str(cause).split())[:QUOTED]
        super().__init__(
            f"{needed_for} needs the extra {extra!r}, whose packages are installed "
            f"but cannot be imported: "
            f"{type(cause).__name__}: {cause_text}.",
            hint=f"Reinstall them: {installer()} --force-reinstall {packages}",
        )


class Busy(WinnowError):
    """The call cannot start in time; the caller should retry after `seconds`."""

    def __init__(self, why: str, *, seconds: int) -> None:
        super().__init__(
            f"Busy: {why}", hint=f"Retry in {seconds} s with the same arguments."
        )
        self.seconds = seconds


class CacheError(WinnowError):
    """The cache folder cannot be made or written."""
