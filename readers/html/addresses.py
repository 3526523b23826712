"""What the addresses in a page are relative to: its own, or that of its `base` element.

Not for: which addresses are links to other pages (`pipeline/evidence/render.py`).
"""

import html as entities
import re
from typing import Final
from urllib.parse import urljoin, urlsplit

from readers.tree import Node, walk

_BASE_TAG: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|textarea|title)\b.*?(?:</\1|\Z)|<base\b([^<>]*)>",
    re.IGNORECASE | re.DOTALL,
)
"""A `base` element; what holds no elements is passed over."""
LINKING: Final = frozenset({"a", "iframe"})
"""Nodes of a cleaned tree that lead to another page."""
_ADDRESS_ATTRIBUTE: Final = re.compile(
    r"""(?<![a-z-])([a-z-]++)\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""",
    re.IGNORECASE,
)


def attributes_of(tag: str) -> dict[str, str]:
    """Return the values of the attributes in a tag's markup, without entities, by names in lower
    case; the first of each name, as browsers take it."""
    values: dict[str, str] = {}
    for name, double, single_quoted, bare in _ADDRESS_ATTRIBUTE.findall(tag):
        values.setdefault(
            name.lower(), entities.unescape(double or single_quoted or bare)
        )
    return values


def base_of(html: str, url: str) -> str:
    """Return the address that those in a page at `url` are relative to: its first
    `base`, or `url` where that is missing, malformed or not http(s)."""
    if "<base" not in html and "<BASE" not in html:
        return url
    tags = (match[2] for match in _BASE_TAG.finditer(html) if match[2])
    base_href = next(
        (href for tag in tags if (href := attributes_of(tag).get("href"))), None
    )
    if base_href is None:
        return url
    try:
        base = urljoin(url, base_href.strip())
        return base if urlsplit(base).scheme in {"http", "https"} else url
    except ValueError:
        return url


def rebase(root: Node, base: str) -> None:
    """Make the links of a cleaned tree absolute; those to a place in the page, and
    malformed ones, stay as they are."""
    for node in walk(root):
        href = node.attrs.get("href", "") if node.tag in LINKING else ""
        if href and not href.startswith("#"):
            try:
                node.attrs = {
                    **node.attrs,
                    "href": urljoin(base, "".join(href.split())),
                }
            except ValueError:
                continue
