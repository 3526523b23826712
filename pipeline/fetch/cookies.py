"""Cookies of a person's browser, from its exported file (Netscape's cookies.txt), for the pages that need a login.

Each is sent where the file says: host, subdomains, path, https only, until it expires. Nothing that a site answers
changes them, and nothing here says a value: not a message, not a log, not `repr`. Not for: logging in, or for servers
that others call, since the cookies are one person's (`server/transports.py` refuses).
"""

import hashlib
import logging
import warnings
from http.cookiejar import DefaultCookiePolicy, LoadError, MozillaCookieJar
from pathlib import Path
from urllib.request import Request

from errors import UsageError


class Cookies:
    """The cookies of one file."""

    def __init__(self, path: Path) -> None:
        """Read them; `UsageError`, for no such file or another form, never says what stands in it."""
        # A cookie of a host alone is not for its subdomains, which Python's jar allows unless told.
        policy = DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain)
        self._jar = MozillaCookieJar(str(path), policy=policy)
        try:
            with warnings.catch_warnings(action="ignore"):
                self._jar.load(ignore_discard=True, ignore_expires=True)
        except (LoadError, UnicodeDecodeError):  # the first is an OSError, and both quote what stands in the file
            hint = "Export them anew as Netscape cookies.txt; its first line is # Netscape HTTP Cookie File."
            raise UsageError(f"{path} is no cookies.txt.", hint=hint) from None
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.", hint="Correct WINNOW_COOKIES.") from error
        for cookie in self._jar:
            if cookie.expires == 0:  # how exports write that it ends with the browser
                cookie.expires, cookie.discard = None, True
        self.hosts = len({cookie.domain.lstrip(".") for cookie in self._jar if not cookie.is_expired()})
        """Hosts that have one which has not expired."""
        # At DEBUG it writes every header of HTTP/2 to the log.
        logging.getLogger("hpack").setLevel(logging.INFO)

    def headers(self, url: str) -> dict[str, str]:
        """Return the header with which `url` is asked; none where the file has nothing for it."""
        request = Request(url)  # noqa: S310  nothing is asked: the jar takes scheme, host and path from it
        self._jar.add_cookie_header(request)
        value = request.get_header("Cookie", "")
        return {"Cookie": value} if value else {}

    def mark(self, url: str) -> str:
        """Return what tells the answers for these cookies apart from others; empty where none is sent."""
        value = self.headers(url).get("Cookie", "")
        return f" {hashlib.blake2b(value.encode(), digest_size=16).hexdigest()}" if value else ""


def same_site(first: str, other: str) -> bool:
    """Return whether two hosts are one site's: equal, or one below the other."""
    return first == other or first.endswith(f".{other}") or other.endswith(f".{first}")
