"""Parsing HTML as it comes: hostile shapes are rewritten before the parser sees them,
streamed pieces find their place.

Lexbor takes time quadratic in nesting depth and in the attributes of one element, and
builds as many nodes as open formatting elements times paragraphs (measured: 20,000
nested `dd` 1.9 s, 20,000 attributes 0.7 s; 18 kB of open `b` and `p` 860 MB). `parse`
bounds all three by cheap counts that a page cannot talk down; a page over them goes
through `rebuild`, our own linear tokenizer, and comes out strictly nested, with limited
depth and few attributes. Not for: what is visible (`seen.py`)."""

import html as entities
import re
import time
from collections import Counter
from collections.abc import Collection
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from cancellation import check_cancelled
from readers.tree import MAX_DEPTH, tags

MAX_OPEN: Final = 10_000
"""Start tags; nesting them all takes Lexbor 0.5 s. Real pages have 8,490 at most (495
of them)."""
MAX_ATTRIBUTES: Final = MAX_OPEN * 2
"""Attributes of one tag, or as much work in several (it grows with their squares); they
take 0.7 s."""
MAX_TAGS: Final = 450_000
"""Maximum tags of a page that are read (1.9 s and 250 MB). Also the most nodes that
open formatting elements may add: their number times that of the tags is at most 254,000
on 495 real pages."""

_STARTS: Final = re.compile(rb"<[a-zA-Z]")
_LONG_TAG: Final = re.compile(rb"<[a-zA-Z][^>]{600,}")
"""Tags with fewer characters hold too few attributes to matter."""
_GOING_ON: Final = re.compile(
    rb"""=(?=\s*+(?:"[^">]*+>[^"]*+"([^>]*)|'[^'>]*+>[^']*+'([^>]*)))""",
)
"""A value that may be quoted and hold a `>`, so that the tag continues after it; a
group is a possible continuation."""
_GATHERING: Final = re.compile(
    rb"<[bcefhinstu](?:|ig|ody|ode|m|ont|tml|obr|mall|trike|trong|t)(?=[\s/>])[^>]*>",
    re.IGNORECASE,
)
"""Formatting elements (`b big code em font i nobr s small strike strong tt u`), which
the parser reopens in every paragraph, and root elements, whose attributes are merged.
One class of first letters makes it twice as fast as a list of names; the few strange
names that it takes for one (`cm`, `e`) do no harm."""

_STEP: Final = re.compile(
    r"""([^<]*)(?:<(/?)([a-zA-Z][^\s/>]*)((?:[^>=]|=\s*"[^"]*"|=\s*'[^']*'|=|(?!))*+)>)?"""
)
"""Text up to the next `<`, and the tag there if it is a whole one."""
_ATTRIBUTE: Final = re.compile(
    r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?"""
)
_TEMPLATE: Final = re.compile(
    rb"<(?:!--.*?(?:-->|\Z)|(script|style)\b.*?(?:</\1|\Z)|(/?)template\b([^>]{0,300})>)",
    re.IGNORECASE | re.DOTALL,
)
"""A template's tag; comments, scripts and style sheets first, in which there is
none."""
_RAW_TEXT: Final = tags(
    "audio canvas iframe noembed noframes noscript object script style svg textarea title video xmp"
)
"""Read up to their end tag; all but style, text area and title hold nothing that a
reader sees."""
_FORMATTING: Final = tags("b big code em font i nobr s small strike strong tt u")
_PHRASES: Final = _FORMATTING | tags(
    "a abbr cite del ins kbd mark q samp span sub sup time var"
)
_VOID: Final = tags(
    "area base br col embed hr img input link meta param source track wbr"
)
_IMPLIED: Final = tags(
    "body caption col colgroup dd dt head html li optgroup option p rp rt rb rtc tbody td tfoot "
    "th thead tr"
)
"""Tags whose end may be left out. They nest only with another element between, so the
others' depth bounds theirs."""
_KEPT_ATTRIBUTES: Final = tags(
    "alt aria-hidden aria-level bgcolor class color colspan content datetime hidden href "
    "http-equiv id itemprop lang "
    "name open property rel reversed role rowspan scope start style title type value"
)


def parse(html: str) -> LexborNode | None:
    """Return the root element of `html` as a browser with scripting sees it, or None
    where there is none.

    Time and memory are linear in the length of `html`, whatever it holds; text after
    `MAX_TAGS` tags is not read.
    """
    source = html.encode("utf-8", "replace").replace(b"\0", b"")
    shadowed = b"shadowrootmode" in source
    if shadowed:
        source = _without_shadows(source)
    tag_count = source.count(b"<")
    if tag_count > MAX_TAGS:
        source = source[: -1 - len(source.split(b"<", MAX_TAGS)[-1])]
    if not _is_harmless(source, min(tag_count, MAX_TAGS)):
        source = rebuild(source.decode()).encode()
    # With events each option of a `select` is visited again for every further one.
    root = LexborHTMLParser(
        source, scripting=True, options=LexborDocumentOptions.WO_EVENTS
    ).root
    if root is not None and shadowed:
        _assign(root)
    return root


def _without_shadows(source: bytes) -> bytes:
    """Return `source` with declarative shadow roots as elements, which they are in a
    browser, instead of templates."""
    opened: list[bool] = []

    def named(match: re.Match[bytes]) -> bytes:
        if match[2] is None:
            return match[0]
        if match[2]:
            return b"</shadow-root>" if opened and opened.pop() else match[0]
        opened.append(b"shadowrootmode" in match[3].lower())
        return b"<shadow-root>" if opened[-1] else match[0]

    return _TEMPLATE.sub(named, source)


_HOST: Final = re.compile(
    "article|aside|blockquote|body|div|footer|h[1-6]|header|main|nav|p|section|span|[a-z].*-.*",
    re.DOTALL,
)
"""Elements that may have a shadow root (DOM §4.8)."""
SHADOW_SECONDS: Final = 0.3
"""Processor time for the shadow roots of a page; those within one another are looked
through once each."""


def _assign(root: LexborNode) -> None:
    """Remove the host's children that are in no slot of its shadow root.

    After `SHADOW_SECONDS` the rest stays as it is. A second root of a host, or one at
    an element that cannot have one, is removed."""
    ends = time.thread_time() + SHADOW_SECONDS
    hosts: set[int] = set()
    for shadow in root.css("shadow-root"):
        if time.thread_time() > ends:
            return
        host = shadow.parent
        if host is None or host.mem_id in hosts or not _HOST.fullmatch(host.tag or ""):
            shadow.decompose()  # a template like any other
            continue
        hosts.add(host.mem_id)
        _leave_slotted(host, shadow)


def _leave_slotted(host: LexborNode, shadow: LexborNode) -> None:
    """Remove the host's children that are in no slot of its shadow root."""
    slots = {slot.attributes.get("name") or "" for slot in shadow.css("slot")}
    child = host.first_child
    while child is not None:
        current, child = child, child.next
        slot_name = current.attributes.get("slot") if current.is_element_node else ""
        if (slot_name or "") not in slots and current.mem_id != shadow.mem_id:
            current.decompose()


def _is_harmless(source: bytes, tag_count: int) -> bool:
    """Whether simple upper bounds of depth, formatting elements and attributes are all
    below their limits.

    Args:
        source: The page.
        tag_count: How many `<` it holds, comments and signs in scripts with them: all that
    most pages need."""
    start_tags = tag_count - source.count(b"</") if tag_count > MAX_OPEN else tag_count
    if start_tags > MAX_OPEN and len(_STARTS.findall(source)) > MAX_OPEN:
        return False
    gathering = set(_GATHERING.findall(source))
    roots = [tag for tag in gathering if tag[1:5].lower() in {b"body", b"html"}]
    if (len(gathering) - len(roots)) * tag_count > MAX_TAGS:
        return False
    # Names of their own take three characters and more, on average, so that a small page has no
    # room for many.
    return (
        len(source) < 3 * MAX_ATTRIBUTES
        or _attribute_work(source, roots) <= MAX_ATTRIBUTES**2
    )


def _attribute_work(source: bytes, roots: Collection[bytes]) -> int:
    """Return an upper bound of the sum of the squares of the elements' numbers of
    attributes, short tags left out.

    A tag consists of the stretch up to the next `>` and the text after each quoted
    value with a `>`. All of the latter, and the attributes of all roots, are counted to
    the longest tag, which is the worst they can do.
    """
    stretches = sorted(map(_most_attributes, _LONG_TAG.findall(source)))
    longest = stretches.pop() if stretches else 0
    longest += sum(map(_most_attributes, roots))
    longest += sum(
        _most_attributes(double or single_quoted)
        for double, single_quoted in _GOING_ON.findall(source)
    )
    return longest**2 + sum(count**2 for count in stretches)


def _most_attributes(stretch: bytes) -> int:
    """Return at how many offsets an attribute may begin: after blanks, after a slash,
    after a quoted value."""
    quotes = stretch.count(b'"') + stretch.count(b"'")
    return (
        len(stretch.split())
        + stretch.count(b"/")
        + min(quotes // 2, stretch.count(b"="))
    )


def rebuild(html: str) -> str:
    """Return `html` rewritten in the strictest syntax, at most `MAX_DEPTH` deep.

    One pass with our own tokenizer. Text is escaped, so that the parser sees exactly
    the tags that were counted here. Formatting elements end before a block begins, so
    that none is opened again. Elements beyond `MAX_DEPTH` lose their tags and keep
    their text.
    """
    writer = _NestedWriter()
    position, steps = 0, 0
    while position < len(html) and (step := _STEP.match(html, position)) is not None:
        steps += 1
        if not steps % 65_536:
            check_cancelled()
        text, closing, name, source = step.groups()
        if text:
            writer.out.append(text.replace(">", "&gt;"))
        position = step.end()
        if name is None:
            position = _after_other(html, position, writer.out)
        elif not name.isascii():
            continue
        elif closing:
            writer.close(name.lower())
        elif (name := name.lower()) in _RAW_TEXT:
            position = _after_raw_text(html, name, position, writer.out)
        elif name not in {"frame", "frameset", "plaintext"}:
            writer.open(name, source)
    return "".join(writer.out)


def _after_other(html: str, start: int, out: list[str]) -> int:
    """Return where a comment, a declaration or a `<` that begins no tag ends; the
    latter goes to `out` as text.

    A comment or tag that never ends swallows the rest of the page."""
    if html.startswith("<!--", start):
        end = html.find("-->", start + 2)
        return (
            end + 3 if end >= 0 else len(html)
        )  # one that never ends swallows the rest, as in a browser
    following = html[start + 1 : start + 2]
    if following and following in "!?/" and (end := html.find(">", start)) >= 0:
        return end + 1
    if following.isalpha():
        return len(html)
    if start < len(html):
        out.append("&lt;")
    return start + 1


def _after_raw_text(html: str, name: str, position: int, out: list[str]) -> int:
    """Return where the element's end tag ends, or the page where it has none. The text
    of styles, text areas and titles goes to `out`, any other is dropped."""
    end_tag = re.compile(rf"</{name}(?:[\s/][^>]*)?>", re.IGNORECASE).search(
        html, position
    )
    stop = end_tag.start() if end_tag else len(html)
    if name in {"style", "textarea", "title"}:
        text = html[position:stop].replace("<", "" if name == "style" else "&lt;")
        out.append(f"<{name}>{text}</{name}>")
    return end_tag.end() if end_tag else len(html)


def _kept_of(source: str) -> str:
    """Return those attributes of a tag that mean something, of what begins in its first
    `MAX_ATTRIBUTES` characters."""
    return "".join(
        f' {name.lower()}="{_quoted(double or single_quoted or bare)}"'
        for name, double, single_quoted, bare in _ATTRIBUTE.findall(
            source[:MAX_ATTRIBUTES]
        )
        if name.lower() in _KEPT_ATTRIBUTES
    )


class _NestedWriter:
    """Writes tags that are strictly nested."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self._opened: list[str] = []
        self._formatting: int | None = None
        """Index in `_opened` of the outermost formatting element; only inline elements
        are inside of it."""
        self._dropped: Counter[str] = Counter()
        """Start tags that were too deep, by name; as many end tags are left out."""

    def open(self, name: str, source: str) -> None:
        """Write a start tag with those of its attributes that mean something; beyond
        `MAX_DEPTH` none, and of attributes only what begins in the first
        `MAX_ATTRIBUTES` characters."""
        if name not in _PHRASES and name not in _VOID:
            self._end_formatting()
        if name not in _VOID and name not in _IMPLIED:
            if len(self._opened) >= MAX_DEPTH:
                self._dropped[name] += 1
                return
            if name in _FORMATTING and self._formatting is None:
                self._formatting = len(self._opened)
            self._opened.append(name)
        self.out.append(f"<{name}{_kept_of(source)}>")

    def close(self, name: str) -> None:
        """Write the end tags of an element and of all in it, if it is open.

        An end tag in a table does not end what is open outside of it. One for which
        nothing is open is dropped."""
        if name == "br":
            self.out.append("<br>")
        elif name in _IMPLIED:
            self._end_formatting()
            self.out.append(f"</{name}>")
        elif self._dropped[name]:
            self._dropped[name] -= 1
        elif name in self._opened:
            position = len(self._opened) - 1 - self._opened[::-1].index(name)
            if (
                name == "table" or "table" not in self._opened[position:]
            ):  # in a cell, a stray end tag ends nothing outside
                self._end(position)

    def _end_formatting(self) -> None:
        if self._formatting is not None:
            self._end(self._formatting)

    def _end(self, size: int) -> None:
        """End the innermost elements until `size` are open."""
        self.out += [f"</{name}>" for name in reversed(self._opened[size:])]
        del self._opened[size:]
        if self._formatting is not None and self._formatting >= size:
            self._formatting = None


def _quoted(value: str) -> str:
    return (
        entities.escape(entities.unescape(value))
        if "&" in value
        else entities.escape(value)
    )


# Pages streamed by React: what came later and is moved to its place by a script.
#
# Such a hidden segment `S:…` follows the page, and a template `B:…` or `P:…` marks its
# position. Ids alone pair them where the page calls the mover (`$RC(`) or was stored
# without its scripts; elsewhere closed text would be let in.

_STREAM_PLACE: Final = re.compile(r"(.*)[BP]:([0-9a-f]+)")
MAX_FALLBACK: Final = 100
"""Maximum siblings that are searched for the end of a segment's placeholder."""


class Segments:
    """The segments of one page, each for one place."""

    def __init__(self, top: LexborNode) -> None:
        """Take a page's root; nothing is looked for until a place is met."""
        self._top = top
        self._found: dict[str, LexborNode] | None = None

    def at(
        self, placeholder: LexborNode
    ) -> tuple[LexborNode | None, LexborNode | None]:
        """Return the first node of the segment that belongs at `placeholder`, and the node
        after it; None and the next node where there is none, or it was returned before.

        The placeholder between the marks `$?` and `/$` is skipped, unless it is longer
        than `MAX_FALLBACK` nodes.
        """
        match = _STREAM_PLACE.fullmatch(placeholder.attributes.get("id") or "")
        if match is None:
            return None, placeholder.next
        if self._found is None:
            self._found = self._all()
        segment = self._found.pop(f"{match[1]}S:{match[2]}", None)
        if segment is None:
            return None, placeholder.next
        is_held = placeholder.prev is not None and _mark(placeholder.prev).startswith(
            "$"
        )
        return segment.first_child, _after_fallback(
            placeholder
        ) if is_held else placeholder.next

    def _all(self) -> dict[str, LexborNode]:
        texts = (script.text(deep=True).strip() for script in self._top.css("script"))
        scripts = list(filter(None, texts))
        is_moved = not scripts or any("$RC(" in text for text in scripts)
        nodes = self._top.css("[hidden][id*='S:']") if is_moved else []
        return {node.attributes["id"] or "": node for node in nodes}


def _after_fallback(placeholder: LexborNode) -> LexborNode | None:
    """Return the mark that ends the placeholder after a place; what is next to the
    place where `MAX_FALLBACK` siblings hold no such mark."""
    depth, following = 0, placeholder.next
    for _ in range(MAX_FALLBACK):
        if following is None or (depth == 0 and _mark(following) == "/$"):
            return following
        depth += {"/$": -1, "$": 1, "$?": 1, "$!": 1}.get(_mark(following), 0)
        following = following.next
    return placeholder.next


def _mark(node: LexborNode) -> str:
    """Return the text of a comment, empty for any other node."""
    return (node.comment_content or "").strip() if node.is_comment_node else ""
