"""Results of search providers as plain text, and what their queries share.

Titles and snippets arrive with marks around the hits (`<b>`), entities and control
characters, and were written by strangers. Not for: asking (`web_api.py`)."""

import html
import re
from collections.abc import Callable
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from pipeline.search.query import SearchQuery, SearchResult
from pipeline.text.frame import one_line
from readers.page import TITLE_CHARACTERS

_SNIPPET_TAG: Final = re.compile(r"<(?:!--[^<>]*|/?[a-zA-Z][^<>]*)>")


def plain_text(value: object, *, longest: int = 2_000) -> str:
    """Return `value` as one line without markup, entities and invisible characters;
    "" if it is not text.

    `longest`: Characters kept; real snippets have a median of 1,509 in the CRAG sample
    and a long tail."""
    if not isinstance(value, str):
        return ""
    bare = html.unescape(_SNIPPET_TAG.sub("", value[: 4 * longest]))
    return one_line(bare)[:longest]


def web_address(value: object) -> str:
    """Return `value` if it is an http(s) address with a host, else the empty string."""
    if not isinstance(value, str) or not value.strip().isprintable():
        return ""
    try:
        address = urlsplit(value.strip())
    except ValueError:
        return ""
    is_web = address.scheme in ("http", "https") and address.hostname
    return value.strip() if is_web else ""


def day_of(value: object) -> str:
    """Return the ISO day of a date as APIs write it: ISO, mail format, `May 3, 2024` or
    a list of numbers.

    A year, or a year and its month, stays as it is; empty for anything else."""
    if isinstance(value, list):
        value = "-".join(f"{number:02}" for number in value if isinstance(number, int))
    if isinstance(value, str) and re.fullmatch(r"[12]\d{3}(-\d\d)?", value):
        return value
    if not isinstance(value, str) or len(value) > 60:
        return ""
    readers: tuple[Callable[[str], date], ...] = (
        lambda text: date.fromisoformat(text[:10]),
        lambda text: datetime.strptime(text.strip(), "%b %d, %Y").date(),
        lambda text: parsedate_to_datetime(text).date(),
    )
    for read in readers:
        try:
            return read(value).isoformat()
        except (ValueError, TypeError, IndexError):
            continue
    return ""


def hit(
    engine: str, *, url: object, title: object, snippet: object
) -> SearchResult | None:
    """Return a result; None without a web address. Without a title that is the
    address."""
    address = web_address(url)
    if not address:
        return None
    text = plain_text(title, longest=TITLE_CHARACTERS)
    return SearchResult(text or address, address, plain_text(snippet), engine=engine)


def on_site(url: str, site: str) -> bool:
    """Return whether `url` lies on the host `site` or below it; any address does where
    `site` is empty."""
    site = site.lower().strip(". ").removeprefix("www.")
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    return not site or host == site or host.endswith(f".{site}")


def words_of(
    query: SearchQuery,
    *,
    longest: int = 400,
    words: int = 1_000,
    operator: bool = False,
) -> str:
    """Return the words of `query`, cut to what an API takes.

    Most engines cut or refuse more than 400 characters. With `operator` the site is
    prefixed as `site:HOST`."""
    site = f"site:{query.site} " if operator and query.site else ""
    text = " ".join(query.text.split()[: words - bool(site)])
    return site + text[: longest - len(site)]


def unmet(query: SearchQuery, able: frozenset[str]) -> str:
    """Return the sentence on what of `query` a provider cannot honour; empty when it
    honours all that is set."""
    filters = {
        "freshness": query.freshness != "any" and not (query.since or query.until),
        "dates": bool(query.since or query.until),
        "language": bool(query.language),
        "region": bool(query.region),
        "safe search": bool(query.safe),
        "paging": query.page > 1,
    }
    missing = [name for name, is_set in filters.items() if is_set and name not in able]
    return f"Ignored filters: {', '.join(missing)}." if missing else ""


def sentences(*texts: str) -> str:
    """Join sentences, leaving out empty ones."""
    return " ".join(filter(None, texts))
