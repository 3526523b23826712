"""Every error that Winnow raises on purpose, and who gets to read it.

Not for: programming mistakes, which stay ordinary exceptions and reach the log only.
"""

import random
import re
import string
from typing import Final
from urllib.parse import quote

QUOTED: Final = 300
"""Characters of what a stranger, a server or a model said, within a line of ours."""
_SAID: Final = 160
"""Of those within the line of an error, which is cut at `QUOTED` in lists: its first sentence,
mostly."""
NARROW: Final = 80
"""Characters of a host, and of what follows it, that a line of ours shows of an address."""
_SCHEME: Final = 12
"""Characters of a scheme; longer ones are words."""
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'`«»<>]*")
_PARTED: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/?#]*)(?P<rest>.*)", re.DOTALL
)
_PLAIN: Final = "!#$%&'()*+,-./:;=?@[]_~"
"""What stands in an address beside letters and digits; anything else is percent-encoded, so that no
address holds words with blanks between them, a line break or a mark."""
_CUT: Final = quote("…")
_HALF: Final = re.compile(r"%[0-9A-Fa-f]?\Z")
_OPEN_QUOTE: Final = re.compile(r"\s*«(\d{12})» (?!.*«/\1»).*\Z", re.DOTALL)
_LOT: Final = random.SystemRandom()


def new_mark(rng: random.Random = _LOT) -> str:
    """Draw a mark for one answer; a training run, which repeats itself, brings its own `rng`.

    A page that guesses has one chance in 10^12. Three digits are one token, so that every mark
    costs alike.
    """
    return "".join(rng.choices(string.digits, k=12))


def said(text: str) -> str:
    """Return what a server or a model said, on one line, short, and between marks of its own; empty
    for nothing."""
    seen = "".join(letter if letter.isprintable() else " " for letter in text)
    mark, folded = new_mark(), without_password(" ".join(seen.split()))[:_SAID]
    return f"«{mark}» {folded} «/{mark}»" if folded else ""


def unopened(text: str) -> str:
    """Return a line that was cut without a quotation whose closing mark is gone."""
    return _OPEN_QUOTE.sub(" …", text)


def encoded(url: str) -> str:
    """Return an address with nothing in it that reads as text: no blank, no line break, no mark."""
    return quote(" ".join(url.split()), safe=_PLAIN, errors="replace").replace(
        _CUT, "…"
    )


def is_narrow(url: str) -> bool:
    """Return whether an address, encoded already, has no more in it than a line of ours may
    show."""
    return narrow(url) == url


def narrow(url: str) -> str:
    """Return an address as lines of ours show it: scheme, host and at most `NARROW` characters; of
    a file its end.

    Who wrote a link, a redirect or a file's name chose these letters, and a long one holds
    sentences.
    """
    shown = encoded(url)
    parts = _PARTED.fullmatch(shown)
    if parts is None or not parts["host"]:
        head = f"{parts['scheme'][:_SCHEME]}://" if parts else ""
        path = parts["rest"] if parts else shown
        is_path = bool(parts) or "/" in path[:1] or ":" not in path
        return head + (
            path if len(path) <= NARROW else f"…{_end(path)}" if is_path else _cut(path)
        )
    scheme, host = parts["scheme"][:_SCHEME], _cut(parts["host"])
    return f"{scheme}://{host}{_cut(parts['rest'])}"


def brief(source: str) -> str:
    """Return what a caller named as a source, short: an address is narrow, of a path the end is
    kept."""
    if "://" in source or len(source) > NARROW:
        return narrow(without_password(source))
    return without_password(source)


def _cut(text: str) -> str:
    return text if len(text) <= NARROW else f"{_HALF.sub('', text[: NARROW - 1])}…"


def _end(path: str) -> str:
    kept = path[1 - NARROW :]
    return kept[
        next(
            (
                place
                for place in range(3)
                if "%" not in kept[max(0, place - 2) : place + 1]
            ),
            0,
        ) :
    ]


def narrowed(text: str) -> str:
    """Return a text in which every address is as `narrow` has it, without passwords."""
    return _ADDRESS.sub(lambda found: narrow(found[0]), without_password(text))


def without_password(text: str) -> str:
    """Return `text` with the name and password of every address in it replaced by an ellipsis."""
    head, *behind = " ".join(map(_without_scheme, text.split(" "))).split("//")
    return "//".join([head, *map(_bare, behind)])


def _without_scheme(word: str) -> str:
    """Replace the same of an address whose scheme a person left out."""
    colon, at = word.find(":"), word.find("@")
    if not 0 < colon < at or "/" in word[:at]:
        return word
    start = 1 + max(word.rfind(sign, 0, colon) for sign in "\n\t'\"(")
    return f"{word[:start]}…{word[at:]}"


def _bare(text: str) -> str:
    end = next(
        (
            place
            for place, letter in enumerate(text)
            if letter in "/?#" or letter.isspace()
        ),
        len(text),
    )
    port = text[:end].partition(":")[2]
    if port and not port.isdigit() and not text.startswith("["):
        end = len(text.split(maxsplit=1)[0])  # a password with a slash in it
    at = text.rfind("@", 0, end)
    return f"…{text[at:]}" if at >= 0 else text


class WinnowError(Exception):
    """Base of all errors that a caller can act on.

    `what` says what failed and with which value; `hint` says what to do next.
    """

    def __init__(self, what: str, *, hint: str = "") -> None:
        """Keep both sentences; `str()` joins them."""
        super().__init__(what, hint)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        """Both sentences, as the caller reads them; never with a password or a long address."""
        return f"{self.shown} {narrowed(self.hint)}".strip()

    @property
    def shown(self) -> str:
        """What failed, as lines of ours repeat it."""
        return narrowed(self.what)


class UsageError(WinnowError):
    """The request cannot work as it stands; read by the caller, who corrects it."""


class SourceError(WinnowError):
    """One source could not be read; `source` is what the caller gave."""

    def __init__(self, what: str, *, source: str, hint: str = "") -> None:
        """Keep the source beside the sentences, for lists of failures."""
        super().__init__(what, hint=hint)
        self.source = source

    @property
    def shown(self) -> str:
        """What failed, with the source's own address or path as lines of ours show it."""
        return narrowed(
            self.what.replace(self.source, brief(self.source))
            if self.source
            else self.what
        )


class AddressRefused(SourceError):
    """The address may not be asked: scheme, port, private network, robots.txt, unresolvable
    name."""


class SourceNotFound(SourceError):
    """Nothing is there: 404, 410, a missing file, an expired or unknown handle."""


class SourceBlocked(SourceError):
    """Something is there but not for us: 401, 403, 429, a bot check."""


class SourceUnavailable(SourceError):
    """The other side is broken or away: 5xx, refused or reset connection, unknown host."""


class SourceTimeout(SourceError):
    """The deadline passed before the source was complete."""


class SourceTooLarge(SourceError):
    """The source is over the cap on bytes, on the wire or unpacked."""


class SourceUnreadable(SourceError):
    """The source came, but holds no text: binary, encrypted, scanned or empty."""


class NeedsBrowser(SourceUnreadable):
    """The source is a page that is empty until its scripts run in a browser."""


class SearchFailed(WinnowError):
    """No search provider gave an answer; the text names each with its reason."""


class ModelError(WinnowError):
    """A model failed (died, refused, answered nonsense); read by the caller, who may repeat the
    call."""


class ContextExceeded(ModelError):
    """The input is longer than the model's context; read by steps, which show the model less and
    ask again."""


class MissingExtra(ModelError):
    """A backend was asked for whose package is not installed."""

    def __init__(self, package: str, *, extra: str, needed_for: str) -> None:
        """Name the package, what it is needed for, and the extra that brings it."""
        super().__init__(
            f"{needed_for} needs the package {package!r}, which is not installed.",
            hint=f"Install the extra: pip install 'winnow-mcp[{extra}]'.",
        )


class BrokenExtra(ModelError):
    """A backend was asked for whose packages are installed and cannot be imported."""

    def __init__(self, cause: Exception, *, extra: str, needed_for: str) -> None:
        """Say what the import raised; one line of it, for some packages repeat their
        documentation."""
        said = " ".join(str(cause).split())[:QUOTED]
        super().__init__(
            f"{needed_for} needs the extra {extra!r}, which is installed and cannot be imported: "
            f"{type(cause).__name__}: {said}.",
            hint=f"Install it again, with what it asks for: pip install --upgrade "
            f"'winnow-mcp[{extra}]'.",
        )


class Busy(WinnowError):
    """The call cannot begin in time; read by the caller, who comes again after `seconds`."""

    def __init__(self, why: str, *, seconds: int) -> None:
        """Say why, and when to come again."""
        super().__init__(
            f"Busy: {why}", hint=f"Again in {seconds} s, with the same arguments."
        )
        self.seconds = seconds


class CannotListen(WinnowError):
    """The address for clients cannot be had: in use, kept from us, not this machine's; read by who
    starts a server."""


class CacheError(WinnowError):
    """The cache folder cannot be made or written."""
