"""Interstitial and error pages with status 200: bot checks, logins, consent, "not
found".

Recognized by few words of their own and a sign: the script of a service that checks for
robots, a field for a password, or an English title that says so. A title alone never
decides: articles are about logging in, too. Not for: statuses and headers
(`pipeline/fetch/exchange.py`)."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from selectolax.lexbor import LexborHTMLParser

from readers.converted import letters_in

Front = Literal["check", "login", "consent", "missing"]
"""A bot check, a login, a consent page, or a page that says that there is none."""
FRONTS: Final[Mapping[Front, str]] = {
    "check": "is behind a bot check",
    "login": "is behind a login",
    "consent": "is behind a cookie consent page",
    "missing": "is not there",
}
"""How messages say it of an address."""
_TITLES: Final[Mapping[Front, re.Pattern[str]]] = {
    "check": re.compile(
        r"just a moment|(?:are|making sure) you.{0,9} (?:human|robot|bot)|robot check"
        r"|security check|access.{0,25} denied|pardon our interruption"
    ),
    "login": re.compile(r"(?:please )?(?:log|sign)[ -]?in\b"),
    "consent": re.compile(r"before you continue"),
    "missing": re.compile(
        r"\b404\b|not found|can.t be found|no longer (?:exists|available)"
    ),
}
"""What a title or heading of each has."""
_EXTRA_WORDS: Final = 4
"""Words that a title has besides: a site's name, `to continue`."""
_OWN_TEXT_LETTERS: Final = 300
"""Letters, outside of links, menus and buttons, above which a page has text of its
own."""
_CHECKED_CHARACTERS: Final = 500_000
"""Maximum characters of a page that is checked; longer ones are not interstitials."""
_CHECKS: Final = re.compile(
    r"_cf_chl_opt|cf-challenge|challenge-form|challenge-error-text|captcha-delivery\.com|px-captcha|gokuProps"
    r"|sec-if-cpt-container|cp_challenge|sucuri_cloudproxy|anubis_challenge|KPSDK|_Incapsula_Resource\?[^\"'>]{0,200}edet"
    r"|ddos-guard/js-challenge|/\.well-known/vercel/security|bm-verify|geo\.captcha|arkose-enforcement|aws-waf-token"
)
"""What only the checks themselves have; the scripts that watch over every page of a
site are not among it."""
_TITLE_SEPARATOR: Final = re.compile(r"\s[-–—:/]\s|\s*[|»•·]\s*|:\s")
_FIELD: Final = "input[type=email i], input[type=text i], input[type=tel i]"
_NOT_ITS_TEXT: Final = (
    "head, script, style, template, noscript, svg, textarea, iframe, nav, footer, aside,"
    " button, select, a"
)
"""Elements whose text is not the page's own."""


def front_of(html: str) -> Front | None:
    """Return what a page that came with status 200 is in place of the one asked for;
    None for a page.

    A page of more than `_CHECKED_CHARACTERS` characters is always taken for a page."""
    if len(html) > _CHECKED_CHARACTERS:
        return None
    tree = LexborHTMLParser(html)
    titled = _titled(tree)
    has_check = _CHECKS.search(html) is not None
    acts = tree.css_first("script, form") is not None
    password = tree.css_first("input[type=password i]") is not None
    if titled == "consent":
        return "consent" if acts else None
    # Nearly all pages end here.
    if not (titled or has_check or password):
        return None
    letters = _own_letters(tree)
    front: Front | None = None
    if has_check or (titled == "check" and acts):
        front = "check"
    elif titled == "missing":
        front = "missing"
    elif password or (titled == "login" and tree.css_first(_FIELD) is not None):
        front = "login"
    return front if letters <= _OWN_TEXT_LETTERS else None


def _titled(tree: LexborHTMLParser) -> Front | None:
    """Return what title or first headings say that the page is."""
    title = tree.css_first("title")
    parts = _TITLE_SEPARATOR.split(title.text()) if title else ()
    headings = (node.text() for node in tree.css("h1, h2")[:2])
    for text in (*parts, *headings):
        folded = " ".join(text.casefold().split())[:200]
        for front, pattern in _TITLES.items():
            match = pattern.search(folded)
            if match and len(pattern.sub("", folded, count=1).split()) <= _EXTRA_WORDS:
                return front
    return None


def _own_letters(tree: LexborHTMLParser) -> int:
    """Return the letters of a page outside of links, menus, buttons and scripts, which
    are taken out of it."""
    for node in tree.css(_NOT_ITS_TEXT):
        node.decompose()
    return letters_in(tree.body.text(separator=" ")) if tree.body else 0
