"""Data that a page carries beside its markup: JSON-LD, and the state that a framework renders in the browser.

`read_linked_data` serves the metadata; `recover` makes a tree from what a client-side page would have drawn, for pages
whose markup holds next to nothing. Everything is bounded: nothing here takes longer than the page is long. Not for:
running scripts.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from pipeline.html.clean import clean
from pipeline.html.tree import Node, count_words, text_of

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_SCRIPT: Final = 4_000_000
"""Characters of one data script that are read."""
MAX_STRINGS: Final = 2_000
"""Texts that are recovered from one page."""
SENTENCE_WORDS: Final = 8
"""Words from which a string of a framework's state is taken for text rather than a label or setting."""

_BODIES: Final = (
    "articleBody",
    "text",
    "description",
    "abstract",
    "reviewBody",
    "recipeInstructions",
    "acceptedAnswer",
)
_STATE: Final = re.compile(
    r"(?:__NEXT_DATA__|__NUXT__|__INITIAL_STATE__|__PRELOADED_STATE__|__APOLLO_STATE__|__data|__remixContext)"
    r"[\"']?\]?\s*=\s*(?=[{\[])"
)
_SCRIPT_END: Final = "</script"
_TAGGED: Final = re.compile(r"</?(?:p|div|ul|ol|li|h[1-6]|br|table|strong|em|a|span|blockquote)\b", re.IGNORECASE)
_LETTERS: Final = re.compile(r"[^\W\d_]")


def read_linked_data(html: str) -> list[dict[str, Json]]:
    """Return the objects of all JSON-LD scripts of a page, graphs opened, in order; broken scripts are left out."""
    found: list[dict[str, Json]] = []
    for script in _scripts(html, "application/ld+json"):
        data = _parsed(script)
        waiting: list[Json] = [data]
        while waiting and len(found) < MAX_STRINGS:
            item = waiting.pop(0)
            if isinstance(item, list):
                waiting.extend(item[:MAX_STRINGS])
            elif isinstance(item, dict):
                graph = item.get("@graph")
                found.append(item)
                if isinstance(graph, list):
                    waiting.extend(graph[:MAX_STRINGS])
    return found


def recover(html: str) -> Node | None:
    """Return a tree of the texts in a page's data scripts, or None where they hold none.

    JSON-LD first (headline and body fields), then the state of known frameworks, then `noscript`.
    """
    texts: list[str] = []
    headline = ""
    for item in read_linked_data(html):
        headline = headline or _string(item.get("headline")) or _string(item.get("name"))
        for key in _BODIES:
            value = item.get(key)
            texts.extend([value] if isinstance(value, str) else _long_strings(value))
    if sum(count_words(text) for text in texts) < 50:
        for script in _scripts(html, "application/json"):
            texts.extend(_long_strings(_parsed(script)))
        for match in _STATE.finditer(html):
            texts.extend(_long_strings(_leading_object(html, match.end())))
    texts = list(dict.fromkeys(text.strip() for text in texts if text.strip()))[:MAX_STRINGS]
    if not texts:
        return _from_noscript(html)
    body = Node("body")
    if headline:
        body.children.append(_leaf("h1", headline))
    for text in texts:
        body.children.extend(_paragraphs(text))
    root = Node("html")
    root.children.append(body)
    return root if body.children else None


def _paragraphs(text: str) -> list[Node | str]:
    if _TAGGED.search(text):
        inner = clean(text)
        return [child for node in inner.children if isinstance(node, Node) for child in _blocks_of(node)]
    return [_leaf("p", line) for line in text.split("\n") if line.strip()]


def _blocks_of(node: Node) -> list[Node | str]:
    """Return what a cleaned fragment's body holds as blocks; the body itself where it holds bare text."""
    if node.tag == "title":
        return []
    if node.tag != "body":
        return [node]
    if any(isinstance(child, str) or not child.breaks for child in node.children):
        node.tag = "div"
        return [node]
    return list(node.children)


def _leaf(tag: str, text: str) -> Node:
    node = Node(tag)
    node.children.append(" ".join(text.split()))
    return node


def _from_noscript(html: str) -> Node | None:
    parts: list[str] = []
    lowered = html.lower()
    position = 0
    while (start := lowered.find("<noscript", position)) >= 0:
        begin = lowered.find(">", start) + 1
        end = lowered.find("</noscript", begin)
        if not begin or end < 0 or len(lowered) != len(html):
            break
        parts.append(html[begin:end])
        position = end + 10
    if not parts:
        return None
    root = clean("".join(f"<div>{part}</div>" for part in parts))
    return root if text_of(root) else None


def _scripts(html: str, media_type: str) -> Iterator[str]:
    position = 0
    while (found := html.find(media_type, position)) >= 0:
        begin = html.find(">", found) + 1
        end = html.find(_SCRIPT_END, begin)
        if not begin or end < 0:
            return
        position = end
        if 0 < end - begin <= MAX_SCRIPT and "<" not in html[found:begin]:
            yield html[begin:end]


def _parsed(script: str) -> Json:
    source = script.strip().removeprefix("<!--").removeprefix("//<![CDATA[").removesuffix("-->").removesuffix("//]]>")
    try:
        data: Json = json.loads(source, strict=False)
    except (ValueError, RecursionError):
        return None
    return data


def _leading_object(html: str, begin: int) -> Json:
    """Return the JSON value at `begin`, None where what stands there is a script rather than data."""
    end = html.find(_SCRIPT_END, begin)
    if end < 0 or end - begin > MAX_SCRIPT:
        return None
    try:
        value: Json = json.JSONDecoder(strict=False).raw_decode(html[begin:end])[0]
    except (ValueError, RecursionError):
        return None
    return value


def _long_strings(data: Json) -> list[str]:
    """Return the strings below `data` that read like text, in order."""
    found: list[str] = []
    stack: list[Json] = [data]
    while stack and len(found) < MAX_STRINGS:
        item = stack.pop()
        if isinstance(item, str):
            words = item.split()
            if len(words) >= SENTENCE_WORDS and len(_LETTERS.findall(item[:400])) > 0.6 * min(len(item), 400):
                found.append(item)
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            stack.extend(reversed(list(item.values())))
    return found


def _string(value: Json) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
