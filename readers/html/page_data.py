"""The JSON that a page's markup carries for its scripts.

    <script id="__NEXT_DATA__">{…}          <div data-page="{…}">  (Inertia, Discourse)
    window.__STATE__ = {…}                  window.__STATE__ = JSON.parse("{…}")

Not for: which of it reads like text (`scripts.py`), objects that are not JSON, or running
scripts.
"""

import html as entities
import json
import re
from collections.abc import Iterator
from typing import Final

Json = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

_JSON_TYPE: Final = re.compile(
    r"""\btype\s{0,3}=\s{0,3}["']?[\w.+/-]*json""", re.IGNORECASE
)
_ASSIGNED: Final = re.compile(
    r"""=\s{0,5}(?:JSON\.parse\(\s{0,5})?(?=\{\s*+"|\[\s*+[{\["]|"\s{0,5}[{\[])"""
)
"""Where JSON is given to a name, or a string that holds some."""
_JSON_ATTRIBUTE: Final = re.compile(
    r"""\s[:a-z][\w:-]{1,60}=(?:"(?:\w+\s*+=)?\s*+([{\[][^"]*+)"|'(?:\w+\s*+=)?\s*+([{\[][^']*+)')""",
    re.IGNORECASE,
)
_READ_IN_VAIN: Final = 100
"""Beginnings of JSON in the code of a page that may prove to be none; each may be read to
the end of its script."""
_DECODER: Final = json.JSONDecoder(strict=False)


def elements(html: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield opening tag and content of a page's elements that hold raw text; nothing
    after one that is not closed. `name` is looked for in lower case, also as the
    beginning of longer names."""
    position = 0
    while (start := html.find(f"<{name}", position)) >= 0:
        content_start = html.find(">", start) + 1
        content_end = html.find(f"</{name}", content_start)
        if not content_start or content_end < 0:
            return
        yield html[start:content_start], html[content_start:content_end]
        position = content_end


def page_values(html: str) -> Iterator[Json]:
    """Yield the JSON that the scripts and attributes of a page hold, JSON-LD left out,
    in reading order by kind."""
    failures = 0
    for tag, script in elements(html, "script"):
        if _JSON_TYPE.search(tag):
            yield None if "ld+json" in tag else value_of(script)
            continue
        position = 0
        while failures < _READ_IN_VAIN and (
            match := _ASSIGNED.search(script, position)
        ):
            value, position = json_at(script, match.end())
            failures += value is None
            yield value
    for match in _JSON_ATTRIBUTE.finditer(html):
        yield value_of(entities.unescape(match[1] or match[2]))


def value_of(text: str) -> Json:
    """Return the JSON that a text begins with, None where that is none."""
    source = text.strip().removeprefix("<!--").removeprefix("//<![CDATA[").lstrip()
    return json_at(source, 0)[0] if source.startswith(("{", "[")) else None


def json_at(source: str, offset: int) -> tuple[Json, int]:
    """Return the JSON at a place and where it ends; None and the place where there is
    none."""
    try:
        return _DECODER.raw_decode(source, offset)
    except (ValueError, RecursionError):
        return None, offset
