"""Parsing HTML that may be hostile: shapes that make the parser slow are rewritten before it sees them.

Lexbor takes time quadratic in nesting depth and in the attributes of one tag, and builds as many nodes as formatting
elements times paragraphs where they are left open (measured: 20,000 nested `dd` 1.9 s, 20,000 attributes 0.7 s, 2,400
open `b` 735 MB). `parse` bounds all three by cheap counts that a page cannot talk down; a page over them goes through
`rebuild`, our own linear tokenizer, and comes out with limited depth, few attributes and no formatting elements. Not
for: what is visible (`clean.py`).
"""

import html as entities
import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline.html.tree import MAX_DEPTH, tags
from pipeline.work import check_cancelled

SMALL: Final = 20_000
"""Characters below which no shape takes longer than 0.2 s."""
MAX_OPEN: Final = 10_000
"""Start tags that are not closed at once; nesting them all takes Lexbor 0.5 s. Real pages: at most 8,700."""
MAX_ATTRIBUTES: Final = 20_000
"""Attributes of one tag, or as much work in several (it grows with their squares); they take 0.7 s."""
MAX_FORMATTING: Final = 64
"""Different formatting tags (same name and attributes count once); the most on 495 real pages is 63."""

_LEAF: Final = re.compile(r"""<([a-zA-Z][a-zA-Z0-9]*)(?:\s+[\w:-]+(?:=(?:"[^"<>]*"|[^\s"'<>=`]+))?)*+\s*>[^<]*</\1>""")
_EMPTY: Final = re.compile(r"<(?:br|img|meta|link|input|hr)\b", re.IGNORECASE)
_LONG_TAG: Final = re.compile(r"<[a-zA-Z][^>]{600,}")
_QUOTED_END: Final = re.compile(r"""=\s*(?:"[^">]*+>|'[^'>]*+>)(?=([^>]*))""")
"""A `>` that may stand inside a quoted value, where the tag goes on; the group is what it may go on with."""
_SHORT_TAG: Final = 150
"""Most attributes of a tag that is not overlong."""
_FORMATTING: Final = re.compile(r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\b[^>]*>", re.IGNORECASE)

_TOKEN: Final = re.compile(r"""<(?:(/?)([a-zA-Z][^\s/>]*)((?:[^>=]|=\s*"[^"]*"|=\s*'[^']*'|=)*+)>|[!?/][^>]*>)""")
_ATTRIBUTE: Final = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_RAW_TEXT: Final = tags(
    "audio canvas iframe noembed noframes noscript object script style svg template textarea title video xmp"
)
"""Read up to their end tag; all but style, text area and title hold nothing that a reader sees."""
_DROPPED: Final = tags("b big code em font i nobr s small strike strong tt u frameset frame plaintext")
_VOID: Final = tags("area base br col embed hr img input link meta param source track wbr")
_IMPLIED: Final = tags(
    "body caption col colgroup dd dt head html li optgroup option p rp rt rb rtc tbody td tfoot th thead tr"
)
"""Tags whose end may be left out. They nest only with another element between, so the others' depth bounds theirs."""
_KEPT_ATTRIBUTES: Final = tags(
    "alt aria-hidden aria-level bgcolor class color colspan content datetime hidden href id itemprop lang name open "
    "property rel reversed role rowspan scope start style type value"
)


def parse(html: str) -> LexborNode | None:
    """Return the root element of `html` as a browser with scripting sees it, or None where there is none.

    Time and memory are linear in the length of `html`, whatever it holds.
    """
    if "\0" in html:
        html = html.replace("\0", "")
    if len(html) > SMALL and not _is_harmless(html):
        html = _without_scripts(html)
        if not _is_harmless(html):
            html = rebuild(html)
    return LexborHTMLParser(html.encode("utf-8", "replace"), scripting=True).root


def _without_scripts(html: str) -> str:
    """Return `html` without script elements, whose text looks like tags to the counts."""
    lowered = html.lower()
    if len(lowered) != len(html):  # a few capitals grow when lowered, and places would no longer agree
        return html
    kept: list[str] = []
    position = 0
    while (start := lowered.find("<script", position)) >= 0:
        kept.append(html[position:start])
        end = lowered.find("</script", start)
        position = lowered.find(">", end) + 1 if end >= 0 else 0
        if not position:
            return "".join(kept)
    kept.append(html[position:])
    return "".join(kept)


def _is_harmless(html: str) -> bool:
    """Whether simple upper bounds of depth, attributes and open formatting elements are all below their limits."""
    opened = html.count("<") - html.count("</")
    if opened > MAX_OPEN:
        # An element that is closed by the very next tag, written in the strictest syntax, adds no depth.
        opened -= len(_LEAF.findall(html))
    if opened > MAX_OPEN:
        opened -= len(_EMPTY.findall(html))
    if opened > MAX_OPEN:
        return False
    return _attribute_work(html) <= MAX_ATTRIBUTES**2 and len(set(_FORMATTING.findall(html))) <= MAX_FORMATTING


def _attribute_work(html: str) -> int:
    """Return an upper bound of the sum of the squares of the tags' numbers of attributes, short tags left out.

    A tag cannot hold more attributes than the words of the stretch up to the next `>`. Each `>` that may be quoted
    joins two stretches at most, so with n of them the longest n + 1 are taken for one tag.
    """
    stretches = sorted((len(tag.split()) for tag in _LONG_TAG.findall(html)), reverse=True)
    going_on = [len(rest.split()) + _SHORT_TAG for rest in _QUOTED_END.findall(html)]
    joined = len(going_on) + 1
    return (sum(stretches[:joined]) + sum(going_on)) ** 2 + sum(count**2 for count in stretches[joined:])


def rebuild(html: str) -> str:
    """Return `html` written anew in the strictest syntax, at most `MAX_DEPTH` deep, without formatting elements.

    One pass with our own tokenizer. Whatever it takes for text is escaped, so the parser behind sees exactly the tags
    that were counted here.
    """
    out: list[str] = []
    opened: list[str] = []
    dropped: dict[str, int] = {}
    position, steps = 0, 0
    while True:
        steps += 1
        if not steps % 65_536:
            check_cancelled()
        start = html.find("<", position)
        if start < 0:
            out.append(html[position:].replace(">", "&gt;"))
            break
        if start > position:
            out.append(html[position:start].replace(">", "&gt;"))
        if html.startswith("<!--", start):
            end = html.find("-->", start + 2)
            if end < 0:
                break  # a comment or tag that never ends swallows the rest, as in a browser
            position = end + 3
            continue
        match = _TOKEN.match(html, start)
        if match is None:
            if html[start + 1 : start + 2].isalpha():
                break
            position = start + 1
            out.append("&lt;")
            continue
        position = match.end()
        closing, name = match.group(1), (match.group(2) or "").lower()
        if not name or not name.isascii():
            continue
        if not closing and name in _RAW_TEXT:
            position = _after_raw_text(html, name, position, out)
        elif closing:
            _close(name, opened, dropped, out)
        elif name not in _DROPPED:
            _open(name, match.group(3), opened, dropped, out)
    return "".join(out)


def _after_raw_text(html: str, name: str, position: int, out: list[str]) -> int:
    """Return where the element's end tag ends; what is of use of its text goes to `out`."""
    end = re.compile(rf"</{name}(?:[\s/][^>]*)?>", re.IGNORECASE).search(html, position)
    stop = end.start() if end else len(html)
    if name in {"style", "textarea", "title"}:
        text = html[position:stop].replace("<", "" if name == "style" else "&lt;")
        out.append(f"<{name}>{text}</{name}>")
    return end.end() if end else len(html)


def _open(name: str, source: str, opened: list[str], dropped: dict[str, int], out: list[str]) -> None:
    if name not in _VOID and name not in _IMPLIED:
        if len(opened) >= MAX_DEPTH:
            dropped[name] = dropped.get(name, 0) + 1
            return
        opened.append(name)
    attributes = ""
    if source and not source.isspace():
        for match in _ATTRIBUTE.finditer(source[:20_000]):
            if match[1].lower() in _KEPT_ATTRIBUTES:
                value = match[2] or match[3] or match[4] or ""
                attributes += f' {match[1].lower()}="{_quoted(value)}"'
    out.append(f"<{name}{attributes}>")


def _quoted(value: str) -> str:
    return entities.escape(entities.unescape(value)) if "&" in value else entities.escape(value)


def _close(name: str, opened: list[str], dropped: dict[str, int], out: list[str]) -> None:
    if name in _VOID or name in _DROPPED:
        if name == "br":
            out.append("<br>")
        return
    if name in _IMPLIED:
        out.append(f"</{name}>")
        return
    if dropped.get(name, 0):
        dropped[name] -= 1
        return
    if name in opened:
        while True:
            last = opened.pop()
            out.append(f"</{last}>")
            if last == name:
                return
