"""Text that a page carries beside its markup: JSON-LD, the state that a framework draws in the browser, `noscript`.

`linked_data` serves the metadata of every page; `script_texts` is for pages that show nothing by themselves. Nothing
here takes longer than the page is long. Not for: running scripts; what is no JSON is left alone.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from pipeline.read.converted import MAX_ITEMS
from pipeline.work import check_cancelled

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

SENTENCE_WORDS: Final = 6
"""A string of a framework's state with fewer words is a label, a path or a class name."""
EMPTY_LETTERS: Final = 60
"""Letters below which a text says next to nothing: a name, `Loading…`, a copyright line. Data with less than twice as
many says what a page is about, not what it says."""

_LINKED_TEXTS: Final = (
    "articleBody text description abstract reviewBody recipeIngredient recipeInstructions step mainEntity "
    "acceptedAnswer itemListElement review"
)
_NAMES: Final = ("headline", "name", "title")
_ABOUT_THE_SITE: Final = frozenset(
    ["BreadcrumbList", "ImageObject", "Organization", "Person", "SiteNavigationElement", "WebSite"]
)
_MARKUP: Final = re.compile(r"<style[^<]*</style>|<[^<>]*>")
_ASSIGNED: Final = re.compile(
    r"\s{0,200}(?:(?:window|self|globalThis|var|let|const)[\s.]\s{0,5})?[\w$.\[\]\"']{1,80}\s{0,5}=\s{0,5}(JSON\.parse\(\s{0,5})?(?=[{\[\"])"
)
"""`window.__INITIAL_STATE__ = {` and its kin, where data stands first in a script."""


def linked_data(html: str) -> list[dict[str, Json]]:
    """Return the JSON-LD objects of a page, graphs opened, in order; without broken ones and those about its site."""
    found: list[dict[str, Json]] = []
    for tag, script in _elements(html, "script"):
        waiting = deque([_value(script)] if "application/ld+json" in tag else [])
        while waiting and len(found) < MAX_ITEMS:
            item = waiting.popleft()
            if isinstance(item, list):
                waiting.extend(item)
            elif isinstance(item, dict):
                found.append(item)
                waiting.append(item.get("@graph"))
    return [item for item in found if not _is_about_the_site(item)]


def script_texts(html: str) -> list[tuple[str, str]]:
    """Return tag and text of what a page's data says, in reading order.

    From the first of JSON-LD, state (`h2` and `p`; a text may be HTML) and `noscript` (HTML) that holds more than
    names; empty where none does.
    """
    state: list[Json] = [_value(script) for tag, script in _elements(html, "script") if "ld+json" not in tag]
    for texts in (
        _texts([*linked_data(html)], _LINKED_TEXTS.split()),
        _texts(state),
        (("noscript", inner) for _, inner in _elements(html, "noscript")),
    ):
        check_cancelled()
        found = list(dict.fromkeys(texts))
        if sum(letters_in(_MARKUP.sub(" ", text)) for _, text in found) >= 2 * EMPTY_LETTERS:
            return found
    return []


def letters_in(text: str) -> int:
    """Return how many letters and digits a text holds."""
    return sum(map(str.isalnum, text))


def _elements(html: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield opening tag and content of a page's elements that hold raw text."""
    position = 0
    while (start := html.find(f"<{name}", position)) >= 0:
        begin = html.find(">", start) + 1
        end = html.find(f"</{name}", begin)
        if not begin or end < 0:
            return
        yield html[start:begin], html[begin:end]
        position = end


def _is_about_the_site(item: dict[str, Json]) -> bool:
    kinds = item.get("@type")
    names = {kinds} if isinstance(kinds, str) else set(map(str, kinds)) if isinstance(kinds, list) else set()
    return bool(names) and names <= _ABOUT_THE_SITE


def _value(script: str) -> Json:
    """Return the JSON that a script is or assigns, None when it is neither."""
    source = script.strip().removeprefix("<!--").removeprefix("//<![CDATA[").lstrip()
    assigned = _ASSIGNED.match(source) if source[:1] not in "{[" else None
    if assigned is None and source[:1] not in {"{", "["}:
        return None
    try:
        value: Json = json.JSONDecoder(strict=False).raw_decode(source, assigned.end() if assigned else 0)[0]
        if assigned and assigned[1] and isinstance(value, str):
            value = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return None
    return value


def _texts(data: list[Json], keys: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield tag and text of names and of what they name, without recursion.

    With `keys`, of the values below them; without, of all strings that read like sentences.
    """
    waiting: list[Json] = data[::-1]
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, str):
            if item.strip() and (keys or _reads_like_text(item)):
                yield "p", item.strip()
        elif isinstance(item, list):
            waiting.extend(reversed(item))
        elif isinstance(item, dict):
            name = next((value for key in _NAMES if isinstance(value := item.get(key), str)), "")
            inner = [value for key in keys or item if (value := item.get(key)) and value != name]
            if name.strip() and (keys or any(isinstance(value, str) and _reads_like_text(value) for value in inner)):
                yield "h2", " ".join(name.split())
            waiting.extend(reversed(inner))


def _reads_like_text(text: str) -> bool:
    """Whether the beginning of a string is words; letters are counted where a script does not divide words."""
    start = text[:400].strip()
    letters = sum(map(str.isalpha, start))
    if 2 * letters < len(start) or "://" in start[:12]:
        return False
    if len(text.split(maxsplit=SENTENCE_WORDS)) >= SENTENCE_WORDS:
        return True
    return letters >= 2 * SENTENCE_WORDS and not start.isascii() and start.count(" ") * 20 < len(start)
