"""Cookies: those that the hops of one request set, and those of a person's browser,
from its exported file.

The first go from hop to hop by their own rules (RFC 6265) and are dropped with the
request. The file is Netscape's cookies.txt, for the pages that need a login: each is
sent where the file says (host, subdomains, path, https only, until it expires), nothing
that a site answers changes the file, and nothing here says a value: not a message, not
a log, not `repr`. Not for: logging in, or for servers that others call, since the
cookies are one person's (`extras/http/serve.py` refuses)."""

import hashlib
import logging
import re
import warnings
from collections.abc import Sequence
from http.cookiejar import (
    CookieJar,
    DefaultCookiePolicy,
    LoadError,
    MozillaCookieJar,
)
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import Request

import httpx2

from errors import UsageError

MOST_COOKIES: Final = 50
"""Of one answer; browsers keep as many of a site (RFC 6265 §6.1)."""
LONGEST_COOKIE: Final = 4096
"""Letters of one, with its name and attributes (RFC 6265 §6.1)."""
_DOMAIN: Final = re.compile(r";\s*domain\s*=[^;]*", re.IGNORECASE)


class Cookies:
    """The cookies of one file."""

    def __init__(self, path: Path) -> None:
        """Read the cookies; raises `UsageError`, which never quotes the file, where it
        cannot be read or has another form than Netscape's cookies.txt."""
        # A cookie of a host alone is not for its subdomains, which Python's jar allows
        # by default.
        policy = DefaultCookiePolicy(
            strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain
        )
        self._jar = MozillaCookieJar(str(path), policy=policy)
        try:
            with warnings.catch_warnings(action="ignore"):
                self._jar.load(ignore_discard=True, ignore_expires=True)
        except (
            LoadError,
            UnicodeDecodeError,
        ):  # the first is an OSError, and both quote the file
            hint = (
                "Export the cookies again as Netscape cookies.txt; the first line "
                "must be # Netscape HTTP Cookie File."
            )
            raise UsageError(f"{path} is not a valid cookies.txt.", hint=hint) from None
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error.strerror}.",
                hint="Correct WINNOW_COOKIES.",
            ) from error
        for cookie in self._jar:
            if cookie.expires == 0:  # how exports write that it ends with the browser
                cookie.expires, cookie.discard = None, True
        self.hosts = len(
            {
                cookie.domain.lstrip(".")
                for cookie in self._jar
                if not cookie.is_expired()
            }
        )
        """Hosts that have one which has not expired."""
        # At DEBUG it writes every header of HTTP/2 to the log.
        logging.getLogger("hpack").setLevel(logging.INFO)

    def headers(self, url: str) -> dict[str, str]:
        """Return the header with which `url` is asked; none where the file has nothing
        for it."""
        request = Request(url)  # noqa: S310  nothing is asked: the jar takes scheme, host and path from it
        self._jar.add_cookie_header(request)
        value = request.get_header("Cookie", "")
        return {"Cookie": value} if value else {}

    def mark(self, url: str) -> str:
        """Return the part of a cache key for these cookies; "" if none is sent."""
        value = self.headers(url).get("Cookie", "")
        return (
            f" {hashlib.blake2b(value.encode(), digest_size=16).hexdigest()}"
            if value
            else ""
        )


class Jar:
    """The cookies of one request: a person's, and those that its hops set, which no
    other request sees."""

    def __init__(self, person: Cookies | None) -> None:
        """Begin with a person's cookies, or none."""
        self._person = person
        policy = DefaultCookiePolicy(
            strict_domain=True,
            strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain,
        )
        self._jar = CookieJar(policy)
        self.was_personal = False
        """Whether a cookie of the person's was sent."""

    def forget_person(self) -> None:
        """Send no cookie of the person's from now on."""
        self._person = None

    def keep(self, url: str, lines: Sequence[str]) -> None:
        """Take the `Set-Cookie` lines of the answer from `url`, as far as they are for
        its own site.

        Lines beyond `MOST_COOKIES`, and those longer than `LONGEST_COOKIE`, are
        dropped."""
        if _is_address(urlsplit(url).hostname or ""):
            # An address has no subdomains: the cookie is for the address itself.
            lines = [_DOMAIN.sub("", line) for line in lines]
        valid = [line for line in lines[:MOST_COOKIES] if len(line) <= LONGEST_COOKIE]
        answer = httpx2.Response(
            200,
            headers=[("Set-Cookie", line) for line in valid],
            request=httpx2.Request("GET", url),
        )
        httpx2.Cookies(self._jar).extract_cookies(answer)

    def headers(self, url: str) -> dict[str, str]:
        """Return the `Cookie` header with which `url` is asked, {} for no cookie; what
        a hop has set counts before the person's of that name."""
        request = Request(url)  # noqa: S310  nothing is asked
        self._jar.add_cookie_header(request)
        personal = self._person.headers(url) if self._person is not None else {}
        self.was_personal = self.was_personal or bool(personal)
        lines = personal.get("Cookie", ""), request.get_header("Cookie", "")
        pairs = [pair for line in lines for pair in line.split("; ") if pair]
        sent = {pair.partition("=")[0]: pair for pair in pairs}
        return {"Cookie": "; ".join(sent.values())} if sent else {}


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def same_site(host: str, second: str) -> bool:
    """Return whether two hosts are one site's: equal, or one below the other."""
    longer, shorter = sorted((host, second), key=len, reverse=True)
    return f".{longer}".endswith(f".{shorter}")
