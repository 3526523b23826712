"""Pages in the cache, by handle (what a later call names) and by URL (what a repeated fetch finds).

A handle is `winnow://page/` and 24 hex digits: twelve of the content's hash, twelve of the URL where it was found, so
that equal pages at two places keep their own citations. Handles expire with the page. Not for: when a page must be
asked for again (`pipeline/fetch/freshness.py`).
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from cache.store import JsonValue, Store
from pipeline.documents import Page

PREFIX: Final = "winnow://page/"
KEEP_SECONDS: Final = 7 * 86_400.0
"""How long a handle is good for, unless the page is evicted before."""
_HANDLE: Final = re.compile(r"(?:winnow://page/)?([0-9a-f]{24})\Z")
_TEXTS: Final = tuple(field.name for field in fields(Page) if field.name not in {"notes", "raw_tokens"})


@dataclass(frozen=True, slots=True)
class Known:
    """A page that was fetched before, and what is needed to ask whether it changed."""

    page: Page
    fresh_until: float
    """Seconds since the epoch."""
    validators: Mapping[str, str]
    """Headers for a conditional request; empty when the server gave none."""


def page_handle(page: Page) -> str:
    """Return the handle of a page, `winnow://page/<24 hex digits>`."""
    place = hashlib.blake2b(page.final_url.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{PREFIX}{page.content_hash[:12]}{place}"


def keep_page(store: Store, page: Page, *, seconds: float = KEEP_SECONDS) -> str:
    """Keep a page so that later calls can name it; return its handle."""
    handle = page_handle(page)
    store.set_json(_page_key(handle), page_to_json(page), expire=seconds)
    return handle


def find_page(store: Store, handle: str) -> Page | None:
    """Return the page that a handle names, None when it is unknown, expired or no handle at all."""
    match = _HANDLE.match(handle.strip())
    return page_from_json(store.get_json(_page_key(match.group(1)))) if match else None


def is_handle(source: str) -> bool:
    """Return whether a source is meant as a page handle."""
    return source.strip().startswith(PREFIX)


def keep_answer(store: Store, url: str, known: Known, *, seconds: float = KEEP_SECONDS) -> None:
    """Keep a page under the URL that was asked for, with what is needed to revalidate it."""
    handle = keep_page(store, known.page, seconds=seconds)
    entry: JsonValue = {"handle": handle, "fresh_until": known.fresh_until, "validators": dict(known.validators)}
    store.set_json(f"url:{url}", entry, expire=seconds)


def find_answer(store: Store, url: str) -> Known | None:
    """Return what is known of a URL, None when there is nothing."""
    entry = store.get_json(f"url:{url}")
    if not isinstance(entry, dict):
        return None
    handle, fresh_until, asked = entry.get("handle"), entry.get("fresh_until"), entry.get("validators")
    if not isinstance(handle, str) or not isinstance(fresh_until, int | float) or not isinstance(asked, dict):
        return None
    page = find_page(store, handle)
    return Known(page, float(fresh_until), {str(k): str(v) for k, v in asked.items()}) if page is not None else None


def page_to_json(page: Page) -> JsonValue:
    """Return a page as JSON, all its fields by name."""
    made: dict[str, JsonValue] = {name: getattr(page, name) for name in _TEXTS}
    made["notes"] = list(page.notes)
    made["raw_tokens"] = page.raw_tokens
    return made


def page_from_json(value: JsonValue) -> Page | None:
    """Return the page that `page_to_json` wrote, None for JSON of any other form."""
    if not isinstance(value, dict):
        return None
    texts = {name: value.get(name) for name in _TEXTS}
    notes, tokens = value.get("notes"), value.get("raw_tokens")
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(notes, list):
        return None
    if not isinstance(tokens, int) or not all(isinstance(note, str) for note in notes):
        return None
    known: dict[str, str] = {name: str(text) for name, text in texts.items()}
    return Page(**known, notes=tuple(str(note) for note in notes), raw_tokens=tokens)


def _page_key(handle: str) -> str:
    return f"page:{handle.removeprefix(PREFIX)}"
