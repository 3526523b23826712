"""Links of kept units as numbered references: a mark after the linked words, the addresses listed below.

Only links to other pages over http(s) are listed, each address once; longer ones than `LONGEST_LABEL` carry tracking
data and cost more than they tell. Not for: following links, or links within a page.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import urldefrag, urljoin, urlsplit

from pipeline.documents import Document
from pipeline.html.blocks import resolve
from pipeline.html.tree import LONGEST_LABEL, Node, text_of
from pipeline.prune.forms import Form, Line


class References:
    """The addresses that one page's kept units link to, numbered as they come."""

    def __init__(self, document: Document, form: Form) -> None:
        """Start without any; `form` decides how marks are written."""
        self._document = document
        self._form = form
        self._numbers: dict[str, int] = {}

    def marked(self, block: int, text: str) -> str:
        """Return the text of a unit, or a part of it, with a mark after each link."""
        return self.marked_cells(block, (text,))[0]

    def marked_cells(self, block: int, cells: Sequence[str]) -> tuple[str, ...]:
        """Return the cells of a row with a mark after each link; links are looked for in their order."""
        marked = list(cells)
        cell, position = 0, 0
        for words, address in self._links(block):
            for place in range(cell, len(marked)):
                found = marked[place].find(words, position if place == cell else 0)
                if found >= 0:
                    shown = self._mark(words, address)
                    marked[place] = f"{marked[place][:found]}{shown}{marked[place][found + len(words) :]}"
                    cell, position = place, found + len(shown)
                    break
        return tuple(marked)

    def lines(self) -> list[Line]:
        """Return the list of addresses, one a line."""
        sign = ":" if self._form == "markdown" else ""
        return [Line("reference", f"[{number}]{sign} {address}") for address, number in self._numbers.items()]

    def _mark(self, words: str, address: str) -> str:
        number = self._numbers.setdefault(address, len(self._numbers) + 1)
        return f"[{words}][{number}]" if self._form == "markdown" else f"{words} [{number}]"

    def _links(self, block: int) -> Iterator[tuple[str, str]]:
        path = self._document.blocks[block].path
        node = resolve(self._document.root, path)
        if node is None:
            return
        run = path.rpartition("/")[2].removeprefix("text").isdigit()
        here = urldefrag(self._document.page.final_url).url
        stack: list[Node] = [node]
        while stack:
            one = stack.pop()
            below = [child for child in one.children if isinstance(child, Node)]
            stack.extend(child for child in reversed(below) if not (run and child.breaks))
            if one.tag == "a" and (words := text_of(one)) and (address := _absolute(one.attrs.get("href", ""), here)):
                yield words, address


def _absolute(href: str, base: str) -> str:
    """Return the address of a link to another page, empty for any other."""
    try:
        address = urljoin(base, "".join(href.split()))
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.netloc or len(address) > LONGEST_LABEL:
        return ""
    return "" if urldefrag(address).url == base else address
