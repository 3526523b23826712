"""Telling that two addresses are one page, and two snippets one text, before anything is spent on them.

In the CRAG sample 12 of 50 result addresses repeat within one question. The canonical form is a
key for comparing only: the address as the provider gave it is what gets fetched. Not for: resolving redirects.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from pipeline.documents import SearchResult
from pipeline.text.words import index_terms

_TRACKING: Final = re.compile(
    r"utm_\w+|ga_\w+|mc_[ce]id|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|igsh|"
    r"li_fat_id|"
    r"_hs(?:enc|mi)|mkt_tok|vero_(?:id|conv)|oly_(?:anon|enc)_id|s_cid|cmpid|ncid|srsltid|wt_?\.?mc|ref_src|ref_url|"
    r"spm|scm|share_(?:source|from)|at_(?:medium|campaign)|trk|_ga|_gl|amp",
    re.IGNORECASE,
)
_DEFAULT_PORT: Final = {"http": 80, "https": 443}
_MOBILE_HOST: Final = re.compile(r"^(?:www\d?|m|mobile|amp|touch)\.(?=[^.]+\.)")
_MOBILE_LABEL: Final = re.compile(r"^([a-z]{2,3})\.m\.")
_INDEX_PAGE: Final = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$", re.IGNORECASE)
_AMP_PATH: Final = re.compile(r"(?:/amp(?:\.html)?|\.amp)/?$|^/amp(?=/.)", re.IGNORECASE)
_AMP_CACHE: Final = re.compile(r"^/(?:[cvi]/)?(?:s/)?(?=[^/]+\.[^/]+)")
_SAME_SNIPPET: Final = 0.9
"""Share of common three-word runs from which two snippets are one text; mirrors and syndicated copies lie at 0.95 and
above, two pages about one event below 0.5."""
_LONG_ENOUGH: Final = 12
"""Terms from which a snippet can tell; shorter ones ("Log in to see more") say nothing about the page."""


def canonical_url(url: str) -> str:
    """Return the key under which one page's many addresses meet.

    Scheme, `www.`, mobile and AMP hosts and paths, default ports, fragments, tracking parameters, the order of
    parameters, `index.html` and a trailing slash make no difference. What is no http(s) address comes back without its
    fragment.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return url.strip()
    if parts.scheme not in _DEFAULT_PORT or not parts.hostname:
        return url.strip().split("#", 1)[0]
    host, path, query = parts.hostname.rstrip("."), parts.path, parts.query
    # AMP caches carry the real address in host and path
    if host.endswith(".cdn.ampproject.org") or (host.startswith("www.google.") and path.startswith("/amp/")):
        inner = _AMP_CACHE.sub("", path.removeprefix("/amp"))
        host, _, path = inner.lstrip("/").partition("/")
        path = "/" + path
    host = _MOBILE_LABEL.sub(r"\1.", _MOBILE_HOST.sub("", host))
    path = _INDEX_PAGE.sub("/", _AMP_PATH.sub("", path))
    pairs = sorted(
        (key, value) for key, value in parse_qsl(query, keep_blank_values=True) if not _TRACKING.fullmatch(key)
    )
    shown = host if port in (None, _DEFAULT_PORT[parts.scheme]) else f"{host}:{port}"
    return f"//{shown}{_unquoted(path).rstrip('/')}" + (f"?{urlencode(pairs)}" if pairs else "")


def _unquoted(path: str) -> str:
    """Undo percent escapes except of characters that would change the path (`/`, `?`, `#`, `%`)."""
    return "/".join(
        re.sub(r"[%?#/]", lambda match: f"%{ord(match[0]):02X}", unquote(part, errors="surrogateescape"))
        for part in path.split("/")
    )


def distinct(results: Sequence[SearchResult]) -> tuple[SearchResult, ...]:
    """Return `results` in order without repeats: one an address, and one a snippet where snippets are the same text.

    What stays is the first, `merged` with the others.
    """
    by_url: dict[str, SearchResult] = {}
    for result in results:
        key = canonical_url(result.url)
        by_url[key] = merged(by_url[key], result) if key in by_url else result
    kept: list[SearchResult] = []
    shingles: list[frozenset[tuple[str, ...]]] = []
    for result in by_url.values():
        own = _shingles(result.snippet)
        same = next((number for number, other in enumerate(shingles) if _share(own, other) >= _SAME_SNIPPET), None)
        if same is not None:
            kept[same] = merged(kept[same], result)
            continue
        kept.append(result)
        shingles.append(own)
    return tuple(kept)


def merged(first: SearchResult, other: SearchResult) -> SearchResult:
    """Return `first` with the engines of both, and the other's date and language where it has none."""
    engines = dict.fromkeys(filter(None, (*first.engine.split("+"), *other.engine.split("+"))))
    return replace(
        first,
        engine="+".join(engines),
        published=first.published or other.published,
        language=first.language or other.language,
    )


def _shingles(snippet: str) -> frozenset[tuple[str, ...]]:
    terms = index_terms(snippet, keep_stop_words=True)
    if len(terms) < _LONG_ENOUGH:
        return frozenset()
    return frozenset(zip(terms, terms[1:], terms[2:], strict=False))


def _share(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    return len(one & other) / max(1, len(one | other))
