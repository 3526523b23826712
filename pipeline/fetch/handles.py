"""Pages in the cache, by handle (what a later call names) and by URL (what a repeated
fetch finds).

A handle is `winnow://page/` and 24 hex digits: twelve of the content's hash, twelve of
the URL where it was found, so that equal pages at two places keep their own citations.
Handles expire with the page. Not for: when a page must be asked for again
(`pipeline/fetch/exchange.py`)."""

import hashlib
import json
from dataclasses import fields, replace
from typing import Final, NamedTuple

from cache.store import JsonValue, Store
from pipeline.fetch.exchange import DAY
from readers.page import Page

PAGE_SCHEME: Final = "winnow://page/"
NO_COPY: Final = "not cached: its site does not allow it (no-store)"
"""Note of a page that came with `no-store`; its handle works in this process, from
memory."""
HANDLE_SECONDS: Final = DAY * 30
"""Seconds for which a handle is valid, unless its page is evicted."""
_FORM: Final = {field.name: str for field in fields(Page)} | {
    "notes": list,
    "hidden": int,
    "tables_whole": bool,
    "inside": bool,
}
del _FORM["age"]
"""The types of a page's fields in JSON."""


class KeptPage(NamedTuple):
    """A page that was fetched before."""

    page: Page
    fresh_until: float
    """Seconds since the epoch."""


def page_handle(page: Page) -> str:
    """Return the handle of a page, `winnow://page/<24 hex digits>`."""
    digest = hashlib.blake2b(
        page.final_url.encode("utf-8", "surrogatepass"), digest_size=6
    ).hexdigest()
    return f"{PAGE_SCHEME}{page.content_hash[:12]}{digest}"


def keep_page(store: Store, page: Page, *, seconds: float = HANDLE_SECONDS) -> str:
    """Keep a page so that later calls can name it; return its handle.

    A page that is there and was written in the last tenth of its time is not written
    again: two calls on one page within hours cost one write. What differs then is how
    and when it was asked for, which `keep_answer` keeps beside the URL. What may not be
    written, or cannot be, is held in this process only."""
    handle = page_handle(page)
    key, facts = f"page:{handle.removeprefix(PAGE_SCHEME)}", _facts(page)
    # What is a person's own is not for a cache that others read.
    if NO_COPY in page.notes or (store.shared and page.own):
        store.hold(key, page_to_bytes(page))
        return handle
    if store.get_json(f"young:{key}") is None or not (
        store.get_bytes(key) or b""
    ).startswith(facts):
        content = page_to_bytes(page)
        if store.set_bytes(key, content, expire=seconds):
            store.set_json(f"young:{key}", True, expire=seconds / 10)
        else:
            store.hold(key, content)  # its handle works in this process at least
    return handle


def find_page(store: Store, handle: str) -> Page | None:
    """Return the page that a handle names, None when it is unknown, expired or no
    handle at all."""
    digits = handle.strip().removeprefix(PAGE_SCHEME)
    is_valid = len(digits) == 24 and digits.isascii() and digits.isalnum()
    return (
        page_from_bytes(store.get_bytes(f"page:{digits}") or b"") if is_valid else None
    )


def is_handle(source: str) -> bool:
    """Return whether a source is meant as a page handle."""
    return source.strip().startswith(PAGE_SCHEME)


def keep_answer(store: Store, url: str, kept_page: KeptPage) -> None:
    """Keep a page under the URL that was asked for."""
    entry: JsonValue = {
        "handle": keep_page(store, kept_page.page),
        "fresh_until": kept_page.fresh_until,
        "fetched_at": kept_page.page.fetched_at,
    }
    store.set_json(f"url:{url}", entry, expire=HANDLE_SECONDS)


def find_answer(store: Store, url: str) -> KeptPage | None:
    """Return what is kept of a URL, None when there is nothing, its page has expired
    or the entry has another form."""
    match store.get_json(f"url:{url}"):
        case {
            "handle": str(handle),
            "fresh_until": int() | float() as fresh_until,
            "fetched_at": str(fetched_at),
        } if page := find_page(store, handle):
            return KeptPage(replace(page, fetched_at=fetched_at), float(fresh_until))
    return None


def page_to_bytes(page: Page) -> bytes:
    """Return a page as bytes: a line of JSON with its facts, one with how it was asked
    for, then the HTML as it is.

    JSON would escape the HTML and read it back letter by letter: 4 MB take 12 ms so,
    and 2 ms as UTF-8."""
    request = json.dumps({"url": page.url, "fetched_at": page.fetched_at}).encode(
        "ascii"
    )
    return b"".join(
        (_facts(page), request, b"\n", page.html.encode("utf-8", "surrogatepass"))
    )


def page_from_bytes(value: bytes) -> Page | None:
    """Return the page that `page_to_bytes` wrote, None for bytes of any other form."""
    try:
        facts, request, body = value.split(b"\n", 2)
        fields_read = {
            **json.loads(facts),
            **json.loads(request),
            "html": body.decode("utf-8", "surrogatepass"),
        }
    except (ValueError, TypeError, RecursionError):
        return None
    form = {name: type(value) for name, value in fields_read.items()}
    if form != _FORM or not all(isinstance(note, str) for note in fields_read["notes"]):
        return None
    return Page(**{**fields_read, "notes": tuple(fields_read["notes"])})


def _facts(page: Page) -> bytes:
    apart = {"html", "url", "fetched_at", "age"}
    facts = {
        field.name: getattr(page, field.name)
        for field in fields(Page)
        if field.name not in apart
    }
    # ASCII, so that it contains no line break but the last.
    return json.dumps(facts).encode("ascii") + b"\n"
