"""Where on a page the fragment of an address points: `#section-9`,
`#:~:text=some%20words`, `#page=3`.

A page is cleaned without its ids, so the text after an id in the markup is matched with
the cleaned page's units: the longest common beginning wins. Not for: citing places
(`pipeline/document/cite.py`), nor pages of a PDF as a source (`#pages=66-120`,
`pipeline/fetch/files.py`)."""

import html as entities
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from pipeline.document.page import Block, Document

_TEXT_DIRECTIVE: Final = ":~:text="
_COMPARED_LETTERS: Final = 200
"""Letters after an id that are compared, to distinguish a heading from its entry in a
table of contents."""
_SURE: Final = 20
"""Equal letters from which a unit is the place, or all of a shorter one."""
_UNIT_TRIES: Final = 5
"""Texts after an id with which a unit may begin; the first may be a button or a
mark."""
_SEARCHED_CHARACTERS: Final = 20_000
"""Characters after an id that are searched."""
_FRAGMENT_CHARACTERS: Final = 300
"""Letters of a fragment."""
_UNSHOWN_HTML: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|noscript|svg)\b.*?(?:</\1[^>]*>|\Z)|<[^>]*(?:>|\Z)",
    re.I | re.S,
)


def unit_of_address(document: Document) -> int | None:
    """Return the unit that the fragment of a page's address points to; None without
    one, where none matches, and for files."""
    fragment = document.page.url.partition("#")[2]
    if not fragment or not document.blocks or document.page.url.startswith("file:"):
        return None
    name, _, directive = fragment.partition(_TEXT_DIRECTIVE)
    found = _of_words(directive, document.blocks) if directive else None
    if found is None and name.strip(":~"):
        found = _of_file(name, document.blocks)
        found = _of_id(name, document) if found is None else found
        found = _of_heading(name, document.blocks) if found is None else found
    return found


def _of_words(directive: str, blocks: Sequence[Block]) -> int | None:
    """Return the block with the first words of a text directive, after its prefix; its
    end and further directives are not read.

    Where no match has the prefix before it, that is the first match; None if no block
    has the words."""
    parts = directive.partition("&")[0].split(",")
    before = _letters(unquote(parts.pop(0))) if parts[0].endswith("-") else ""
    wanted = _letters(unquote(parts[0])) if parts else ""
    texts = [_letters(block.text) for block in blocks]
    found = [
        number
        for number, text in enumerate(texts)
        if wanted and wanted[:_FRAGMENT_CHARACTERS] in text
    ]
    near = (
        number
        for number in found
        if before in "".join(texts[max(0, number - 2) : number + 1])
    )
    return next(near, found[0] if found else None)


def _of_file(name: str, blocks: Sequence[Block]) -> int | None:
    """Return the first block at a position in a file, named as in citations (`page=3`);
    None if no block is there."""
    places = (
        number
        for number, block in enumerate(blocks)
        if block.place and block.place.partition("&")[0] == name
    )
    return next(places, None)


def _of_id(name: str, document: Document) -> int | None:
    """Return the unit that begins after the element with an id, or a link's name.

    None where no text follows it, and for an id of more than `_FRAGMENT_CHARACTERS` characters."""
    html = document.page.html
    for said in dict.fromkeys((unquote(name), name, f"user-content-{unquote(name)}")):
        if len(said) > _FRAGMENT_CHARACTERS:
            return None
        written = "|".join({re.escape(said), re.escape(entities.escape(said))})
        for found in re.finditer(
            rf"\s(id|name)\s{{0,3}}=\s{{0,3}}[\"']?(?:{written})(?=[\"'\s>])",
            html,
            re.I,
        ):
            start = html.rfind(
                "<", max(0, found.start() - _FRAGMENT_CHARACTERS), found.start()
            )
            if start >= 0 and (
                found[1].lower() == "id"
                or html[start : start + 3].lower() in {"<a ", "<a\n"}
            ):
                return _after_id(
                    html[start : start + _SEARCHED_CHARACTERS], document.blocks
                )
    return None


def _of_heading(name: str, blocks: Sequence[Block]) -> int | None:
    """Return the first heading with exactly the letters and digits of `name`, as where
    scripts make ids of headings (`#basin-9` of "Basin 9"); None without one.

    A number that scripts append to the id of a repeated heading is not removed."""
    wanted = _letters(unquote(name))
    heads = (number for number, block in enumerate(blocks) if block.kind == "heading")
    return next(
        (
            number
            for number in heads
            if wanted and _letters(blocks[number].text) == wanted
        ),
        None,
    )


def _after_id(markup: str, blocks: Sequence[Block]) -> int | None:
    """Return the unit with which a page goes on as `markup` does; None where none
    begins so."""
    texts = [_letters("".join(block.cells) or block.text) for block in blocks]
    for beginning in _beginnings(markup):
        best, most = None, 0
        for number, text in enumerate(texts):
            if not text or not beginning.startswith(text[: min(_SURE, len(text))]):
                continue
            own = "".join(texts[number : number + _COMPARED_LETTERS])[
                :_COMPARED_LETTERS
            ]
            same = next(
                (
                    at
                    for at, (a, b) in enumerate(zip(own, beginning, strict=False))
                    if a != b
                ),
                len(own),
            )
            best, most = (number, same) if same > most else (best, most)
        if best is not None:
            return best
    return None


def _beginnings(markup: str) -> Iterator[str]:
    """Yield the letters of a markup's texts, then without the first of them, and so
    on."""
    pieces = [
        _letters(entities.unescape(piece))
        for piece in _UNSHOWN_HTML.sub("\0", markup).split("\0")
    ]
    shown = [piece for piece in pieces if piece]
    for first in range(min(_UNIT_TRIES, len(shown))):
        yield "".join(shown[first:])[:_COMPARED_LETTERS]


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
