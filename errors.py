"""Every error that Winnow raises on purpose, and who gets to read it.

Not for: programming mistakes, which stay ordinary exceptions and reach the log only.
"""

QUOTED = 300
"""Characters of what a stranger, a server or a model said, within a line of ours."""


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
    end = next((place for place, letter in enumerate(text) if letter in "/?#" or letter.isspace()), len(text))
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
        """Both sentences, as the caller reads them; never with a password."""
        return without_password(f"{self.what} {self.hint}".strip())


class UsageError(WinnowError):
    """The request cannot work as it stands; read by the caller, who corrects it."""


class SourceError(WinnowError):
    """One source could not be read; `source` is what the caller gave."""

    def __init__(self, what: str, *, source: str, hint: str = "") -> None:
        """Keep the source beside the sentences, for lists of failures."""
        super().__init__(what, hint=hint)
        self.source = source


class AddressRefused(SourceError):
    """The address may not be asked: scheme, port, private network, robots.txt, unresolvable name."""


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
    """A model failed (died, refused, answered nonsense); read by the caller, who may repeat the call."""


class ContextExceeded(ModelError):
    """The input is longer than the model's context; read by steps, which show the model less and ask again."""


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
        """Say what the import raised; one line of it, for some packages repeat their documentation."""
        said = " ".join(str(cause).split())[:QUOTED]
        super().__init__(
            f"{needed_for} needs the extra {extra!r}, which is installed and cannot be imported: "
            f"{type(cause).__name__}: {said}.",
            hint=f"Install it again, with what it asks for: pip install --upgrade 'winnow-mcp[{extra}]'.",
        )


class Busy(WinnowError):
    """The call cannot begin in time; read by the caller, who comes again after `seconds`."""

    def __init__(self, why: str, *, seconds: int) -> None:
        """Say why, and when to come again."""
        super().__init__(f"Busy: {why}", hint=f"Again in {seconds} s, with the same arguments.")
        self.seconds = seconds


class CannotListen(WinnowError):
    """The address for clients cannot be had: in use, kept from us, not this machine's; read by who starts a server."""


class CacheError(WinnowError):
    """The cache folder cannot be made or written."""
