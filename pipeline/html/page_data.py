"""The data that a page's markup carries for its scripts: in scripts, attributes, calls
of functions and streams.

    <script id="__NEXT_DATA__">{…}          window.__STATE__ = {…}      <div data-page="{…}">  (Inertia, Discourse)
    window.__NUXT__ = (function(a){…})(…)   start(app, {data: […]})     <astro-island props="{…}">
    streamController.enqueue("[…]")         __NUXT_DATA__               (values that name each other by number)
    document.write("<p>…")                  element.innerHTML = `<p>…`

Not for: which of it reads like text (`scripts.py`), or running scripts.
"""

import html as entities
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from pipeline.document.converted import MAX_ITEMS
from pipeline.html.literals import Json, Literals, NoLiteral

_JSON_TYPE: Final = re.compile(
    r"""\btype\s{0,3}=\s{0,3}["']?[\w.+/-]*json""", re.IGNORECASE
)
_OTHER_TYPE: Final = re.compile(
    r"""\btype\s{0,3}=\s{0,3}["']?(?!module|text/javascript|application/javascript)\w""",
    re.IGNORECASE,
)
_BEGINS: Final = re.compile(
    r"(?:=>?|[(,:?]|\breturn)\s{0,5}(?=[{\[])|[=(,]\s{0,5}(?=[\"'`]\s{0,20}(?:(?:[A-Z]?\d*:)?[{\[]|%[57]B|eyJ|W3si|<[a-z]))"
)
"""Where an object or list may begin in a script, or a string that holds one, or
markup."""
_JSON_START: Final = (
    r"\s{0,5}(?:[a-z_$][\w$.]{0,40}\s{0,3}=\s{0,3})?(?:[{\[]|%[57]B|eyJ|W3si)"
)
_JSON_ATTRIBUTE: Final = re.compile(
    rf"""\s[:a-z][\w:-]{{1,60}}\s{{0,3}}=\s{{0,3}}(?:"({_JSON_START}[^"]*+)"|'({_JSON_START}[^']*+)')""",
    re.IGNORECASE,
)
"""An attribute whose value may be JSON, or an object as JavaScript writes it."""
_ASSIGNED_NAME: Final = re.compile(r"\s*[A-Za-z_$][\w$.]{0,40}\s{0,3}=\s*")
"""The name that an attribute's value is given there (`ng-init`)."""
READ_IN_VAIN: Final = 4
"""Characters that may be read in vain where code is looked through for JSON, for each
of the page."""
COUNTED_CHARACTERS: Final = 20
"""Characters in which lines are counted in the time in which one is read."""
_LIKE_JSON: Final = re.compile(r'\{\s*+["}]|\[\s*+["\[{\d\]ntf-]')
_TEXT_CHARACTERS: Final = 40
"""Characters of an attribute or string below which it holds no text worth the
reading."""
_PERCENT_ENCODED: Final = frozenset({"%7B", "%5B"})
"""How an object or list begins that is percent-encoded."""
_IN_BASE64: Final = frozenset({"eyJ", "W3s"})
"""How an object or list of objects begins in base64."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_ANGULAR: Final = {"&q;": '"', "&s;": "'", "&l;": "<", "&g;": ">", "&a;": "&"}
_CHUNK_LABEL: Final = re.compile(r"[A-Z]?\d*:?(?=[{\[])")
_BY_NUMBER: Final = re.compile(r"_\d{1,9}")
"""Name of a property in a stream, whose own name is the value of that number."""


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
    """Yield the values that the scripts and attributes of a page hold, JSON-LD left
    out, in reading order by kind.

    Malformed JSON is None where the script's type says JSON, else left out. JSON in
    code is read within a bound that grows with the page."""
    literals, decoder = Literals(), _Decoder(READ_IN_VAIN * len(html))
    for tag, script in elements(html, "script"):
        if "ld+json" in tag:
            continue
        if _JSON_TYPE.search(tag) or script.lstrip()[:1] in {"{", "["}:
            value = value_of(_plain(script) if "&q;" in script else script)
            if value is not None or _JSON_TYPE.search(tag):
                yield (
                    _put_together(value)
                    if "__NUXT_DATA__" in tag and isinstance(value, list)
                    else opened(value)
                )
                continue
        if not _OTHER_TYPE.search(tag):
            yield from _script_values(script, literals, decoder)
    yield from _attribute_values(html, literals)


def _attribute_values(html: str, literals: Literals) -> Iterator[Json]:
    """Yield the values that the attributes of a page hold."""
    for match in _JSON_ATTRIBUTE.finditer(html):
        if len(match[0]) >= _TEXT_CHARACTERS:
            value = _attribute_value(entities.unescape(match[1] or match[2]), literals)
            if value is not None:
                yield opened(value)


def _attribute_value(text: str, literals: Literals) -> Json:
    """Return the value that an attribute holds as JSON or as JavaScript writes it, None
    for none."""
    match = _ASSIGNED_NAME.match(text)
    text = text[match.end() :] if match else text
    value = value_of(text)
    if value is None and text.lstrip()[:1] in {"{", "["}:
        try:
            value = literals.value(text, 0)[0]
        except NoLiteral:
            return None
    return value


def _plain(script: str) -> str:
    """Return JSON without the marks that Angular writes for quotes."""
    for escape, character in _ANGULAR.items():
        script = script.replace(escape, character)
    return script


def value_of(text: str) -> Json:
    """Return the JSON that a text begins with, None where that is none."""
    source = text.strip().removeprefix("<!--").removeprefix("//<![CDATA[").lstrip()
    source = _decoded(source)
    return _json_at(source, 0)[0] if source[:1] in {"{", "["} else None


def _decoded(text: str) -> str:
    """Return JSON that is percent-encoded or in base64 as itself; any other text, and
    malformed base64, as it is."""
    if text[:3].upper() in _PERCENT_ENCODED:
        return unquote(text)
    if text[:3] in _IN_BASE64 and _BASE64.fullmatch(text):
        with suppress(ValueError):
            return b64decode(text + "=" * (-len(text) % 4)).decode("utf-8")
    return text


def _json_at(source: str, offset: int) -> tuple[Json, int]:
    """Return the JSON at a place and where it ends; None with a place at least as far
    as it was read."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(source, offset)
    except json.JSONDecodeError as error:
        return None, error.pos
    except (ValueError, RecursionError):
        return None, len(source)


class _Decoder:
    """Reads JSON in the midst of code, as long as what was read in vain is less than a
    bound."""

    def __init__(self, limit: int) -> None:
        """Begin with `limit` characters that may be read in vain."""
        self._left = limit

    def at(self, source: str, offset: int) -> tuple[Json, int]:
        """Return the JSON at a place and where it ends, None where there is none or the
        bound is reached."""
        if self._left <= 0 or _LIKE_JSON.match(source, offset) is None:
            return None, offset
        value, end = _json_at(source, offset)
        if value is None:
            self._left -= (
                end - offset + end // COUNTED_CHARACTERS
            )  # the error counts the lines up to it
        return value, end


def _script_values(
    script: str, literals: Literals, decoder: _Decoder
) -> Iterator[Json]:
    """Yield the values that a script of code assigns, or hands to functions."""
    called = literals.called(script)
    yield from map(opened, called)
    offset = 0
    while (begins := _BEGINS.search(script, offset)) is not None:
        offset = begins.end()
        value, end = decoder.at(script, offset)
        if value is None:
            try:
                value, end = literals.value(script, offset)
            except NoLiteral:
                continue
        offset = max(end, offset + 1)
        yield opened(value)


def opened(value: Json) -> Json:
    """Return a value with the JSON that its strings hold read, and what names its parts
    by number put together.

    Only the first `MAX_ITEMS` values are looked into. Lists and objects in `value` are
    changed in place."""
    waiting: list[tuple[list[Json] | dict[str, Json], str | int, Json]] = []
    top: list[Json] = [value]
    waiting.append((top, 0, value))
    for _ in range(MAX_ITEMS):
        if not waiting:
            break
        holder, key, item = waiting.pop()
        if isinstance(item, str) and len(item) >= _TEXT_CHARACTERS:
            item = _inside(item)
        if isinstance(item, list):
            item = _joined(item)
        elif isinstance(item, dict):
            item = _unwrapped(item)
        holder[key] = item  # type: ignore[index]  # a key of its own holder
        if isinstance(item, list):
            waiting.extend((item, index, element) for index, element in enumerate(item))
        elif isinstance(item, dict):
            waiting.extend((item, name, element) for name, element in item.items())
    return top[0]


def _inside(text: str) -> Json:
    """Return the JSON that a string is, else the string; of a line of a stream what its
    JSON begins with, None where that is malformed."""
    text = _decoded(text)
    label = _CHUNK_LABEL.match(text)
    if label is None:
        return text
    value, end = _json_at(text, label.end())
    if value is None or (not label[0] and text[end:].strip()):
        return text if not label[0] else None
    return value


def _joined(values: list[Json]) -> Json:
    """Return what was written as one list in which objects and lists name their parts
    by number, else the list."""
    head = values[0] if values else None
    by_number = any(
        isinstance(value, dict) and any(map(_BY_NUMBER.fullmatch, value))
        for value in values
    )
    marked = isinstance(head, list) and head[:1] in (
        ["ShallowReactive"],
        ["Reactive"],
    )
    return _put_together(values) if by_number or marked else values


def _put_together(values: list[Json]) -> Json:
    """Return the objects of a list that name their parts by number, and the texts that
    none of them names; a part that is an object itself, or that is not there, is
    None."""
    # One level is enough: each object is in the list itself, with everything it
    # references.
    leaves = {
        index: value
        for index, value in enumerate(values)
        if not isinstance(value, dict | list)
    }
    referenced: set[int] = set()

    def name(key: str) -> str:
        leaf = leaves.get(int(key[1:])) if _BY_NUMBER.fullmatch(key) else key
        return leaf if isinstance(leaf, str) else key

    def part(index: int) -> Json:
        referenced.add(index)
        element = values[index] if 0 <= index < len(values) else None
        if not isinstance(element, list):
            return leaves.get(index)
        referenced.update(
            reference for reference in element if isinstance(reference, int)
        )
        return [
            leaves.get(reference) for reference in element if isinstance(reference, int)
        ]

    objects: list[Json] = [
        {
            name(key): part(index)
            for key, index in value.items()
            if isinstance(index, int)
        }
        for value in values
        if isinstance(value, dict)
    ]
    return [
        *objects,
        *(
            value
            for index, value in leaves.items()
            if isinstance(value, str) and index not in referenced
        ),
    ]


def _unwrapped(value: dict[str, Json]) -> dict[str, Json]:
    """Return the properties of an island without the numbers of their types, where all
    have one (Astro); any other object is returned as it is."""
    if value and all(
        isinstance(pair, list) and len(pair) == 2 and pair[0] in range(12)
        for pair in value.values()
    ):
        return {key: pair[1] for key, pair in value.items() if isinstance(pair, list)}
    return value
