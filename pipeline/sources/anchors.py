"""Where on a page the fragment of an address points: `#section-9`,
`#:~:text=some%20words`, `#page=3`.

A page is cleaned without its ids, so the text after an id in the markup is matched with
the cleaned page's units: the longest common beginning wins. Not for: citing places
(`pipeline/document/cite.py`), nor pages of a PDF as a source (`#pages=66-120`,
`pipeline/fetch/files.py`)."""

import os
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from selectolax.lexbor import LexborNode

from readers.html.guard import parse
from readers.page import Block, Document

_TEXT_DIRECTIVE: Final = ":~:text="
_COMPARED_LETTERS: Final = 200
"""Letters after an id that are compared, to distinguish a heading from its entry in a
table of contents."""
_FRAGMENT_CHARACTERS: Final = 300
"""Letters of a fragment."""


def unit_of_address(document: Document) -> int | None:
    """Return the unit that the fragment of a page's address points to; None without
    one, and where none matches."""
    fragment = document.page.url.partition("#")[2][:_FRAGMENT_CHARACTERS]
    if not fragment:
        return None
    name, _, directive = fragment.partition(_TEXT_DIRECTIVE)
    blocks = document.blocks
    unit = _of_words(directive, blocks) if directive else None
    if unit is None and name.strip(":~"):
        unit = _of_file(name, blocks)
        unit = _of_id(unquote(name), document) if unit is None else unit
        unit = _of_heading(unquote(name), blocks) if unit is None else unit
    return unit


def _of_words(directive: str, blocks: Sequence[Block]) -> int | None:
    """Return the block with the first words of a text directive, after its prefix; its
    end and further directives are not read.

    Where no match has the prefix before it, that is the first match; None if no block
    has the words."""
    prefix, _, words = directive.partition("&")[0].rpartition("-,")
    words = _letters(unquote(words.partition(",")[0]))
    texts = [_letters(block.text) for block in blocks]
    numbers = [number for number, text in enumerate(texts) if words and words in text]
    for number in numbers:
        if _letters(unquote(prefix)) in "".join(texts[max(0, number - 2) : number + 1]):
            return number
    return numbers[0] if numbers else None


def _of_file(name: str, blocks: Sequence[Block]) -> int | None:
    """Return the first block at a position in a file, named as in citations (`page=3`);
    None if no block is there."""
    for number, block in enumerate(blocks):
        if block.place and block.place.partition("&")[0] == name:
            return number
    return None


def _of_heading(name: str, blocks: Sequence[Block]) -> int | None:
    """Return the first heading with exactly the letters and digits of `name`, as where
    scripts make ids of headings (`#basin-9` of "Basin 9"); None without one."""
    letters = _letters(name)
    for number, block in enumerate(blocks):
        if letters and block.kind == "heading" and _letters(block.text) == letters:
            return number
    return None


def _of_id(name: str, document: Document) -> int | None:
    """Return the unit with which the page goes on after the element with an id, or a
    link's name; None where there is no such element, or no unit begins so."""
    root = parse(document.page.html)
    if root is None:
        return None
    for node in root.css("script, style, template, noscript, svg"):
        node.decompose()
    names = {name, f"user-content-{name}"}
    for node in root.css("[id], a[name]"):
        if not names.isdisjoint(
            (node.attributes.get("id"), node.attributes.get("name"))
        ):
            return _beginning(_letters_from(node), document.blocks)
    return None


def _letters_from(node: LexborNode | None) -> str:
    """Return the first letters of a page from an element on."""
    letters = ""
    while node is not None and len(letters) < _COMPARED_LETTERS:
        letters += _letters(node.text())
        while node.next is None and node.parent is not None:
            node = node.parent
        node = node.next
    return letters[:_COMPARED_LETTERS]


def _beginning(letters: str, blocks: Sequence[Block]) -> int | None:
    """Return the unit from which the page has most of `letters`; None where none begins
    so."""
    texts = [_letters("".join(block.cells) or block.text) for block in blocks]
    longest, unit = 0, None
    for number, text in enumerate(texts):
        if not text or not letters.startswith(text[:20]):
            continue
        page = "".join(texts[number : number + _COMPARED_LETTERS])
        shared = len(os.path.commonprefix([page, letters]))  # noqa: RUF071  letters, no paths
        if shared > longest:
            longest, unit = shared, number
    return unit


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
